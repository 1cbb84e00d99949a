"""Slices: a run's rows are replaced whole or not at all, and what is broken is said."""

from __future__ import annotations

import errno
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from unittest import mock
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from epsjoin.errors import TableError, UnfitTableError
from epsjoin.lake import delta_log, slices, transactions, uris
from epsjoin.lake.lake import Lake, Slice
from tests.lake.rows import pairs, read
from tests.tiny import RUN, has_slice


def test_write_slice__replaces_the_runs_rows_and_no_others(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((1, 2, 0.5)))
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5), (3, 4, 0.1)))
    slices.write_slice(lake, Slice("pairs", RUN), pairs((7, 8, 0.25)))
    assert read(lake) == [{"left_id": 7, "right_id": 8, "distance": 0.25}]
    assert read(lake, "2023-05-01") == [{"left_id": 1, "right_id": 2, "distance": 0.5}]


def test_write_slice__an_empty_slice_is_there_and_a_missing_one_is_not(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    slices.write_slice(lake, Slice("pairs", RUN), pairs())
    assert read(lake) == []
    assert has_slice(lake, "pairs", RUN)
    assert not has_slice(lake, "pairs", "2022-01-01")
    assert not has_slice(lake, "clusters", RUN)


def test_write_counters__replaces_those_of_the_job_alone(lake: Lake) -> None:
    for job, value in (("ingest", 1.0), ("cluster", 2.0), ("ingest", 3.0)):
        slices.write_counters(lake, RUN, job, {"n": value})
    found = sorted((row["job"], row["value"]) for row in read(lake, table="job_metrics"))
    assert found == [("cluster", 2.0), ("ingest", 3.0)]


def test_write_slice__many_runs_at_once_on_a_table_that_does_not_exist_yet(lake: Lake) -> None:
    runs = [f"2023-{month:02}-01" for month in range(1, 13)]
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda run: slices.write_slice(lake, Slice("pairs", run), pairs((1, int(run[5:7]) + 1, 0.5))),
                runs,
            )
        )
    assert [read(lake, run)[0]["right_id"] for run in runs] == list(range(2, 14))


@pytest.mark.long
def test_write_slice__many_jobs_at_once_make_a_table_once(lake: Lake, tmp_path: Path) -> None:
    """A table that is made twice has another identity in its second version: every other job would fail."""
    for number in range(25):  # the two must meet within microseconds
        empty = replace(lake, uri=(tmp_path / f"lake{number}").as_uri())
        jobs = {f"2023-{month:02}-01": delta_log.pin_versions(empty, "merge_join") for month in range(1, 9)}
        with ThreadPoolExecutor(8) as pool:
            list(
                pool.map(
                    lambda each: slices.write_slice(each[1], Slice("pairs", each[0]), pairs()), jobs.items()
                )
            )
        assert DeltaTable(empty.location("pairs")).version() == len(jobs) + 1  # one for the constraints


def test_write_slice__two_at_once_on_one_slice_leave_one_of_them(lake: Lake) -> None:
    def write(number: int) -> bool:
        try:
            slices.write_slice(lake, Slice("pairs", RUN), pairs((number, 100, 0.5), (number, 101, 0.5)))
        except TableError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        went_well = list(pool.map(write, range(8)))
    left = {row["left_id"] for row in read(lake)}
    assert len(read(lake)) == 2
    assert len(left) == 1
    assert went_well[left.pop()]


def test_write_slice__keeps_a_tables_contract(lake: Lake) -> None:
    with pytest.raises(TableError, match="pairs: columns .* where the contract has"):
        slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)).drop_columns(["distance"]))
    with pytest.raises(TableError, match="pairs: distance is null in a row"):
        slices.write_slice(
            lake,
            Slice("pairs", RUN),
            pa.table({"left_id": [1], "right_id": [2], "distance": pa.nulls(1, pa.float64())}),
        )
    with pytest.raises(TableError, match="a column is not of its contract's type"):
        slices.write_slice(
            lake, Slice("pairs", RUN), pa.table({"left_id": ["x"], "right_id": [2], "distance": [0.5]})
        )


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ((5, 5, 0.5), r"pairs: left_is_below_right does not hold in a row \(left_id 5, right_id 5\)"),
        ((5, 6, -0.5), r"pairs: distance is at least 0 does not hold in a row \(distance -0.5\)"),
        ((5, 6, float("nan")), r"pairs: distance is at least 0 does not hold in a row \(distance nan\)"),
    ],
)
def test_write_slice__refuses_a_row_that_breaks_its_contract(
    lake: Lake, row: tuple[int, int, float], sentence: str
) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.0)))
    with pytest.raises(TableError, match=sentence):
        slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5), row, (3, 4, 0.5)))
    assert read(lake) == [{"left_id": 1, "right_id": 2, "distance": 0.0}]


def file_of(lake: Lake) -> Path:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5), (3, 4, 0.1)))
    _, root = uris.filesystem_of(lake.location("pairs"))
    return Path(root) / slices.files_of(lake, Slice("pairs", RUN))[0].path


def test_read_small__notices_a_file_that_is_gone_or_broken(lake: Lake) -> None:
    file = file_of(lake)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(TableError, match="cannot be read .* run merge_join again"):
        read(lake)
    file.unlink()
    with pytest.raises(TableError, match="cannot be read .* run merge_join again"):
        read(lake)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "Permission denied.; let this user read it$"),
        (OSError("AWS Error ACCESS_DENIED during GetObject"), "let this user read it$"),
        (
            OSError("AWS Error NETWORK_CONNECTION"),
            "; try again; .*, run merge_join again$",
        ),
        (
            OSError(errno.EIO, "Input/output error"),
            "; try again; if that does not help, run merge_join again",
        ),
        (
            MemoryError("malloc of size 9"),
            "; there was too little memory: try again; ",
        ),
        (OSError("Couldn't deserialize thrift"), "thrift.; run merge_join again$"),
        (FileNotFoundError(errno.ENOENT, "no such file"), "the file is gone.; run merge_join again$"),
    ],
)
def test_read_small__of_a_file_that_is_sound_does_not_advise_to_make_it_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    file_of(lake)
    _, root = uris.filesystem_of(lake.location("pairs"))
    failing = mock.Mock(open_input_file=mock.Mock(side_effect=error))
    monkeypatch.setattr("epsjoin.lake.parquet.filesystem_of", lambda _: (failing, root))
    with pytest.raises(TableError, match=said):
        read(lake)


def test_read_small__notices_a_file_with_other_rows_than_its_log_says(lake: Lake) -> None:
    file = file_of(lake)
    table = pa.parquet.read_table(file, partitioning=None)
    pa.parquet.write_table(table.slice(0, 1), file)
    with pytest.raises(TableError, match="has 1 rows, its table's log says 2"):
        read(lake)


def test_files_of__refuses_files_made_from_something_else(lake: Lake) -> None:
    transactions.commit(lake, {Slice("pairs", RUN, fingerprint="old-"): []})
    assert slices.files_of(lake, Slice("pairs", RUN, fingerprint="old-"))
    with pytest.raises(
        TableError, match="pairs of run 2023-06-01 was made from other tables .* run merge_join again"
    ):
        slices.files_of(lake, Slice("pairs", RUN, fingerprint="new-"))


def append_a_row(lake: Lake, run: str = RUN) -> None:
    """As another program does."""
    rows = pairs((5, 6, 0.5)).append_column("run", pa.array([run]))
    write_deltalake(lake.location("pairs"), rows, mode="append")


def test_files_of__refuses_another_number_of_rows_than_the_job_has_written(lake: Lake) -> None:
    """What the log says of the slice stays when other slices change, and in a checkpoint."""
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5), (3, 4, 0.1)))
    slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs())
    append_a_row(lake, "2023-05-01")
    assert len(read(lake)) == 2
    append_a_row(lake)
    DeltaTable(lake.location("pairs")).create_checkpoint()
    with pytest.raises(
        UnfitTableError,
        match="^pairs of run 2023-06-01 has 3 rows, merge_join wrote 2: .* run merge_join again$",
    ):
        read(lake)
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    assert len(read(lake)) == 1


def test_files_of__reads_a_log_again_only_where_it_has_changed(lake: Lake) -> None:
    with mock.patch.object(slices, "open_log", wraps=slices.open_log) as opened:
        assert not has_slice(lake, "pairs", RUN)
        for n_rows in (1, 2):
            slices.write_slice(lake, Slice("pairs", RUN), pairs(*[(1, 2, 0.5)] * n_rows))
            opened.reset_mock()
            assert [len(read(lake)) for _ in range(3)] == [n_rows] * 3
            assert slices.list_runs(lake, "pairs") == [RUN]
            assert opened.call_count == 1
        append_a_row(lake, "2023-05-01")
        assert slices.list_runs(lake, "pairs") == ["2023-05-01", RUN]


def test_files_of__of_a_table_made_anew_are_its_own(lake: Lake) -> None:
    """With as many commits as the one before it, of the same names."""
    place = Path(unquote(urlsplit(lake.location("pairs")).path))
    for n_rows in (1, 2):
        slices.write_slice(lake, Slice("pairs", RUN), pairs(*[(1, 2, 0.5)] * n_rows))
        assert len(read(lake)) == n_rows
        shutil.rmtree(place)


def test_files_of__keeps_a_few_logs(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "_looks", {})
    monkeypatch.setattr(slices, "_MAX_LOOKS", 2)
    tables = ("points", "pairs", "clusters")
    with mock.patch.object(slices, "open_log", wraps=slices.open_log) as opened:
        for table in (*tables, "clusters", "pairs", "points"):
            assert not has_slice(lake, table, RUN)
    asked = [call.args[0].rpartition("/")[2] for call in opened.call_args_list]
    assert asked == [*tables, "points"]


def test_files_of__of_a_log_that_cannot_be_listed_says_so(lake: Lake) -> None:
    log = Path(unquote(urlsplit(lake.location("pairs")).path), "_delta_log")
    log.parent.mkdir(parents=True)
    log.write_text("no folder")
    with pytest.raises(TableError, match="the Delta log of .*/pairs cannot be read .*_delta_log"):
        slices.files_of(lake, Slice("pairs", RUN))


def test_files_of__reads_slices_of_earlier_versions_whose_log_does_not_say_how_many_rows(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(transactions, "transaction_of", lambda partition: f"run={partition['run']}")
        slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5), (3, 4, 0.1)))
    assert len(read(lake)) == 2


def test_read_counters__is_empty_if_missing_and_an_error_if_broken(lake: Lake) -> None:
    assert slices.read_counters(lake, RUN) == {}
    slices.write_counters(lake, RUN, "ingest", {"n": 1.0})
    for path in Path(unquote(urlsplit(lake.location("job_metrics")).path)).rglob("*.parquet"):
        path.write_bytes(b"broken")
    with pytest.raises(TableError, match="cannot be read"):
        slices.read_counters(lake, RUN)


def test_read_quality__is_empty_if_missing_and_an_error_if_broken(lake: Lake) -> None:
    assert slices.read_quality(lake, RUN) == []
    passed = {"expectation": "rows", "severity": "error", "success": True, "observed": "3"}
    rows = slices.table_of(lake, "quality", [passed])
    slices.write_slice(lake, Slice("quality", RUN, also=(("table", "pairs"),)), rows)
    for path in Path(unquote(urlsplit(lake.location("quality")).path)).rglob("*.parquet"):
        path.write_bytes(b"broken")
    with pytest.raises(TableError, match="cannot be read"):
        slices.read_quality(lake, RUN)
