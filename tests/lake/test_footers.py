"""Footers of Parquet files, which have no checksums: no bit of one makes a reader return other rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from epsjoin.errors import TableError
from epsjoin.lake import delta_log, parquet, slices, targets, transactions, uris
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File
from epsjoin.lake.schemas import parse_ddl
from tests.lake.rows import pairs
from tests.tiny import RUN

N_ROWS = 300


@pytest.fixture
def stored(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, File]:
    """A file of pairs in two row groups."""
    monkeypatch.setattr(targets, "ROW_GROUP_BYTES", 1)
    rows = pairs(*((i, i + N_ROWS, i / N_ROWS) for i in range(N_ROWS)))
    file = targets.target_of(lake, Slice("pairs", RUN)).write([rows.slice(0, 100), rows.slice(100)])
    assert file is not None
    transactions.commit(lake, {Slice("pairs", RUN): [file]})
    return Path(uris.filesystem_of(lake.location("pairs"))[1]) / file.path, file


def test_stream_file__with_another_bit_in_a_footer_gives_the_same_rows_or_the_sentence(
    lake: Lake, stored: tuple[Path, File]
) -> None:
    path, file = stored
    columns = targets.target_of(lake, Slice("pairs", RUN)).inner_schema
    content = path.read_bytes()
    expected = list(parquet.stream_file(lake.location("pairs"), file, columns, N_ROWS))
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    same, sentences = 0, []
    for bit in range(8 * begin, 8 * len(content), 3):
        broken = bytearray(content)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        try:
            found = list(parquet.stream_file(lake.location("pairs"), file, columns, N_ROWS))
        except TableError as error:
            sentences.append(str(error))
        else:
            same += 1
            assert found == expected, f"bit {bit} made other rows"
    assert same > 500, "bits of statistics change nothing"
    assert len(sentences) > 500
    prefix = f"pairs: {lake.location('pairs')}/{file.path} "
    assert all(said.startswith(prefix) and "; run merge_join again" in said for said in sentences)
    for kind in ("it has no column ", f"its table's log says {N_ROWS:,}", "codec can't decode"):
        assert any(kind in said for said in sentences), kind


@pytest.mark.parametrize("columns", ["left_id long, right_id long, weight double", "left_id double"])
def test_every_reader__wants_the_names_and_types_of_the_contract(
    lake: Lake, stored: tuple[Path, File], columns: str
) -> None:
    _, file = stored
    wanted = parse_ddl(columns)
    last = wanted.field(len(wanted) - 1)
    said = f"cannot be read .it has no column {last.name} of type {last.type}.; run merge_join again for run "
    for read in (
        lambda: parquet.read_file(lake.location("pairs"), file, wanted),
        lambda: list(parquet.stream_file(lake.location("pairs"), file, wanted, N_ROWS)),
        lambda: parquet.take_rows(lake.location("pairs"), file, wanted, pa.array([1]).to_numpy()),
        lambda: parquet.check_footers(lake.location("pairs"), [file], wanted),
    ):
        with pytest.raises(TableError, match=said):
            read()


def test_read_slice__opens_each_file_once_and_the_log_once(
    lake: Lake, stored: tuple[Path, File], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks read nothing a second time."""
    opened: list[str] = []
    real_file, real_log = parquet.pq.ParquetFile, delta_log.DeltaTable

    def open_file(*given: object, **named: object) -> object:
        opened.append("file")
        return real_file(*given, **named)

    def open_log(*given: object) -> object:
        opened.append("log")
        return real_log(*given)

    monkeypatch.setattr(parquet.pq, "ParquetFile", open_file)
    monkeypatch.setattr(delta_log, "DeltaTable", open_log)
    assert slices.read_slice(lake, Slice("pairs", RUN)).num_rows == N_ROWS
    assert opened == ["log", "file"]


def test_take_rows__of_no_rows_has_the_columns_of_the_file(lake: Lake, stored: tuple[Path, File]) -> None:
    """Rows of several files are put together; some files may have none of them."""
    _, file = stored
    columns = parse_ddl("right_id long, left_id long")
    some, none = (
        parquet.take_rows(lake.location("pairs"), file, columns, pa.array(rows, pa.int64()).to_numpy())
        for rows in ([5, 150], [])
    )
    assert pa.concat_tables([some, none])["left_id"].to_pylist() == [5, 150]
