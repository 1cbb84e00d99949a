"""Files of a table: what is written keeps the contract, and nothing is in a table before a commit."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.errors import TableError
from epsjoin.lake import slices, targets, uris
from epsjoin.lake.lake import Lake, Slice
from tests.lake.rows import pairs, read
from tests.tiny import RUN


def test_write__refuses_a_partition_that_breaks_its_contract(lake: Lake) -> None:
    rows = slices.table_of(lake, "replicas", [{"id": 1, "mask": 0, "point": b""}]).drop_columns(["part"])
    with pytest.raises(TableError, match=r"replicas: part is at least 0 .* \(part '-1'\)"):
        targets.target_of(lake, Slice("replicas", RUN)).write([rows], part=-1)
    assert targets.target_of(lake, Slice("replicas", RUN)).write([rows], part=0)


def test_write__files_that_were_never_committed_are_in_no_table(lake: Lake) -> None:
    targets.target_of(lake, Slice("pairs", RUN)).write([pairs((5, 6, 0.5))])
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    assert len(read(lake)) == 1


def test_write__packs_close_numbers_and_compresses_what_becomes_smaller(lake: Lake) -> None:
    rng = np.random.default_rng(5)
    n = 20_000
    into = targets.target_of(lake, Slice("pairs", RUN))
    numbers = np.arange(n) + 7 * 10**18
    hashes = rng.integers(-(2**63), 2**63 - 1, n)
    for ids, distances, encoded in (
        (numbers, rng.random(n), ["DELTA_BINARY_PACKED UNCOMPRESSED"] * 2 + ["PLAIN UNCOMPRESSED"]),
        (hashes, np.round(rng.random(n), 2), ["PLAIN ZSTD"] * 3),
    ):
        rows = pa.table({"left_id": ids, "right_id": ids + 1, "distance": distances})
        file = into.write([rows])
        assert file is not None
        found = pq.ParquetFile(Path(uris.filesystem_of(into.location)[1]) / file.path)
        columns = map(found.metadata.row_group(0).column, range(3))
        assert [f"{each.encodings[-1]} {each.compression}" for each in columns] == encoded
        assert found.read().to_pydict() == rows.to_pydict()


def test_write__that_fails_leaves_no_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "ROW_GROUP_BYTES", 1)
    into = targets.target_of(lake, Slice("pairs", RUN))

    def batches() -> Iterator[pa.RecordBatch]:
        yield from pairs((1, 2, 0.5)).to_batches()
        assert written()
        raise KeyboardInterrupt

    def written() -> list[Path]:
        return list(Path(uris.filesystem_of(into.location)[1]).rglob("*.parquet"))

    with pytest.raises(KeyboardInterrupt):
        into.write(batches())
    assert not written()


def test_write__that_cannot_be_ended_leaves_no_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    into = targets.target_of(lake, Slice("pairs", RUN))
    close = pq.ParquetWriter.close

    def fail(writer: pq.ParquetWriter) -> None:
        close(writer)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "close", fail)
    with pytest.raises(TableError, match="^file:.* cannot be written .*No space left"):
        into.write([pairs((1, 2, 0.5))])
    assert not list(Path(uris.filesystem_of(into.location)[1]).rglob("*.parquet"))


def test_write_empty_file__that_cannot_be_ended_names_it_and_leaves_none(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = targets.target_of(lake, Slice("pairs", RUN))
    close = pq.ParquetWriter.close

    def fail(writer: pq.ParquetWriter) -> None:
        close(writer)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "close", fail)
    with pytest.raises(TableError, match=r"^file:.*\.parquet cannot be written .*No space left"):
        targets.write_empty_file(into)
    assert not list(Path(uris.filesystem_of(into.location)[1]).rglob("*.parquet"))


def test_deleted_on_error__deletes_what_was_written_within_and_nothing_else(lake: Lake) -> None:
    """Also what nobody remembers, as of a task that was ended before it could tell."""

    def write(into: targets.Target, *parts: int) -> list[Path]:
        rows = slices.table_of(lake, "replicas", [{"id": 1, "mask": 0, "point": b""}]).drop_columns(["part"])
        files = [into.write([rows], part=part) for part in parts]
        return [Path(uris.filesystem_of(into.location)[1]) / file.path for file in files if file]

    into, of_another = (targets.target_of(lake, Slice("replicas", RUN)) for _ in range(2))
    theirs, committed = write(of_another, 0, 1), set[str]()
    mine: list[Path] = []

    def work() -> None:
        with targets.deleted_on_error(into, committed=committed):
            mine.extend(write(into, 0, 0))
            committed.add(f"run={RUN}/part=0/{mine[0].name}")
            mine.extend(write(pickle.loads(pickle.dumps(into)), 1))  # as in a task
            assert all(path.exists() for path in mine)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert all(path.exists() for path in [*theirs, mine[0]])
    assert [path.exists() for path in mine] == [True, False, False]
