"""The Delta log: of two commits to one slice the first wins; constraints are those of the contract."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake

from epsjoin.errors import TableError
from epsjoin.lake import delta_log, slices
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.targets import Target
from tests.lake.rows import checks_of, pairs, read
from tests.tiny import RUN, has_slice


@pytest.mark.parametrize("before", [None, ((5, 6, 0.5),), ()])
def test_commit__of_two_jobs_on_one_slice_the_first_wins(
    lake: Lake, before: tuple[tuple[int, int, float], ...] | None
) -> None:
    if before is not None:
        slices.write_slice(lake, Slice("pairs", RUN), pairs(*before))
    first, second = delta_log.pin_versions(lake, "merge_join"), delta_log.pin_versions(lake, "merge_join")
    slices.write_slice(first, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    with pytest.raises(
        TableError, match="another job changed pairs of run 2023-06-01 while .* run merge_join again when"
    ):
        slices.write_slice(second, Slice("pairs", RUN), pairs((3, 4, 0.5)))
    assert read(lake) == [{"left_id": 1, "right_id": 2, "distance": 0.5}]
    slices.write_slice(delta_log.pin_versions(lake, "merge_join"), Slice("pairs", RUN), pairs((3, 4, 0.5)))
    assert read(lake) == [{"left_id": 3, "right_id": 4, "distance": 0.5}]


def test_commit__of_two_gates_on_one_slice_the_first_wins(lake: Lake) -> None:
    """A slow gate must not put what it saw of older tables over what a later one saw."""
    row = {"expectation": "one row", "severity": "error", "success": True, "observed": ""}
    names = ("clusters", "outliers", "pairs")
    rows = {name: slices.table_of(lake, "quality", [{"table": name, **row}]) for name in names}
    for name in names:
        slices.write_slice(lake, Slice("quality", RUN, also=(("table", name),)), rows[name])
    slow, fast = (delta_log.pin_versions(lake, "quality_results") for _ in range(2))
    for name in ("pairs", "outliers"):  # the second commit meets what the first removed
        slices.write_slice(fast, Slice("quality", RUN, also=(("table", name),)), rows[name])
    with pytest.raises(TableError, match="another job changed quality of run 2023-06-01 while"):
        slices.write_slice(slow, Slice("quality", RUN, also=(("table", "pairs"),)), rows["pairs"])
    slices.write_slice(slow, Slice("quality", RUN, also=(("table", "clusters"),)), rows["clusters"])
    assert sorted(found["table"] for found in read(lake, table="quality")) == list(names)


@pytest.mark.parametrize("again", [False, True])
def test_commit__of_jobs_on_different_slices_all_succeed(lake: Lake, again: bool) -> None:
    runs = (RUN, "2023-05-01", "2023-04-01")
    for run in runs if again else ():  # Delta refuses whom another's removal of files might concern
        slices.write_slice(lake, Slice("pairs", run), pairs((7, 8, 0.5)))
    jobs = {run: delta_log.pin_versions(lake, "merge_join") for run in runs}
    for number, (run, of_job) in enumerate(jobs.items()):
        slices.write_slice(of_job, Slice("pairs", run), pairs((number, 9, 0.5)))
    assert [read(lake, run)[0]["left_id"] for run in jobs] == [0, 1, 2]
    jobs = {job: delta_log.pin_versions(lake, job) for job in ("cluster", "outliers")}
    for job, of_job in jobs.items():
        rows = slices.table_of(lake, "job_metrics", [{"job": job, "counter": "n", "value": 1.0}])
        slices.write_slice(of_job, Slice("job_metrics", RUN, also=(("job", job),)), rows)
    assert {row["job"] for row in read(lake, table="job_metrics")} == set(jobs)


def test_open_or_create__brings_an_older_table_to_its_contract(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constraints that came from a contract are those of today's; those of others stay."""
    with monkeypatch.context() as older:
        older.setattr(Lake, "checks", lambda *_: {"right_id_is_odd__0123abcd": "right_id <> 4"})
        slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((1, 2, 0.5)))
    DeltaTable(lake.location("pairs")).alter.add_constraint({"of_the_team": "left_id > 0"})
    jobs = [delta_log.pin_versions(lake, "merge_join") for _ in range(2)]
    assert set(checks_of(lake)) == {*lake.checks("pairs"), "of_the_team"}
    version = DeltaTable(lake.location("pairs")).version()
    for job, run in zip(jobs, (RUN, "2023-07-01"), strict=True):
        slices.write_slice(job, Slice("pairs", run), pairs((3, 4, 0.5)))
    assert DeltaTable(lake.location("pairs")).version() == version + 2, "constraints are set once"
    assert [len(read(lake, run)) for run in ("2023-05-01", RUN, "2023-07-01")] == [1, 1, 1]


def test_open_or_create__of_jobs_at_once_all_end_with_the_constraints(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [f"2023-{month:02}-01" for month in range(1, 13)]
    with monkeypatch.context() as older:
        older.setattr(Lake, "checks", lambda *_: {})
        slices.write_slice(lake, Slice("pairs", "2022-01-01"), pairs((1, 2, 0.5)))
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda run: slices.write_slice(
                    delta_log.pin_versions(lake, "merge_join"), Slice("pairs", run), pairs()
                ),
                runs,
            )
        )
    assert set(checks_of(lake)) == set(lake.checks("pairs"))
    assert all(has_slice(lake, "pairs", run) for run in runs)


def test_begin__of_a_table_whose_rows_break_a_newer_contract_says_so(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    monkeypatch.setattr(Lake, "checks", lambda *_: {"far__0123abcd": "distance >= 1"})
    with pytest.raises(
        TableError, match="rows of earlier runs break its contract as it is now .* run merge_join"
    ):
        delta_log.pin_versions(lake, "merge_join")
    assert read(lake) == [{"left_id": 1, "right_id": 2, "distance": 0.5}]


def test_begin__of_a_job_under_an_older_contract_the_commit_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(Lake, "checks", lambda *_: {})
        slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((1, 2, 0.5)))
        job = delta_log.pin_versions(lake, "merge_join")
    delta_log.pin_versions(lake, "merge_join")
    with pytest.raises(TableError, match="another job changed pairs"):
        slices.write_slice(job, Slice("pairs", RUN), pairs((3, 4, 0.5)))
    slices.write_slice(delta_log.pin_versions(lake, "merge_join"), Slice("pairs", RUN), pairs((3, 4, 0.5)))


def test_replace_table__refuses_a_table_of_other_columns_that_was_made_meanwhile(tmp_path: Path) -> None:
    location = tmp_path.as_uri()
    others = Target("others", location, pa.schema([("id", pa.int64())]), (), {})
    delta_log.replace_table(others, [])
    into = Target("pairs", location, pa.schema([("left_id", pa.int64())]), (), {})
    with pytest.raises(TableError, match=r"is a table of other columns \(id\)"):
        delta_log.replace_table(into, [])
    assert DeltaTable(location).version() == 1


def test_replace_table__refuses_a_partitioned_table(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "x": [1, 1]})
    write_deltalake(tmp_path, rows, partition_by=["x"])
    into = Target("pairs", tmp_path.as_uri(), rows.schema, (), {})
    for look in (delta_log.check_replaceable, lambda into: delta_log.replace_table(into, [])):
        with pytest.raises(TableError, match="is partitioned by x; take another folder"):
            look(into)
    assert DeltaTable(tmp_path).version() == 0


def test_refuse_other_columns__of_a_log_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("no log")
    into = Target("pairs", tmp_path.as_uri(), pa.schema([("id", pa.int64())]), (), {})
    with pytest.raises(
        TableError,
        match=r"the Delta log of .* cannot be read \(Kernel error: Json error[^<]*\); where [^<]*$",
    ):
        delta_log.check_replaceable(into)


def test_open_or_create__makes_tables_that_both_engines_can_read(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    table = DeltaTable(lake.location("pairs"))
    assert table.metadata().partition_columns == ["run"]
    assert table.metadata().configuration["delta.enableDeletionVectors"] == "false"


def test_commit__leaves_a_foreign_column_out_of_the_whole_table(lake: Lake) -> None:
    """As docs/contracts.md says: readers ignore it, the next commit drops it."""
    slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((1, 2, 0.5)))
    DeltaTable(lake.location("pairs")).alter.add_columns([Field("note", "string")])
    assert read(lake, "2023-05-01") == [{"left_id": 1, "right_id": 2, "distance": 0.5}]
    slices.write_slice(lake, Slice("pairs", RUN), pairs())
    assert "note" not in DeltaTable(lake.location("pairs")).schema().to_arrow().names
