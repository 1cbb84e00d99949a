"""The Delta log: a table is made and kept as its contract says, whoever else does the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from epsjoin.errors import TableError, UnfitTableError
from epsjoin.lake import delta_log, slices
from epsjoin.lake.lake import Lake, Slice
from tests.lake.rows import checks_of, pairs, read
from tests.tiny import RUN, has_slice


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


def test_begin__of_a_table_whose_rows_break_a_newer_contract_lets_them_be_made_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log has the condition as soon as no row breaks it; until then it has all others."""
    for run in ("2023-05-01", RUN):
        slices.write_slice(lake, Slice("pairs", run), pairs((1, 2, 0.5)))
    now = {"far__0123abcd": "distance >= 1", "left__0123abcd": "left_id < right_id"}
    monkeypatch.setattr(Lake, "checks", lambda *_: now)
    for run, broken in (("2023-05-01", f"2023-05-01, {RUN}"), (RUN, RUN)):
        job = delta_log.pin_versions(lake, "merge_join")
        sentence = f"pairs: rows of {broken} break the contract as it is now, which wants distance >= 1; "
        assert capsys.readouterr().out.startswith(sentence)
        slices.write_slice(job, Slice("pairs", run), pairs((1, 2, 1.5)))
        assert set(checks_of(lake)) == {"left__0123abcd"}
        assert not capsys.readouterr().out
    delta_log.pin_versions(lake, "merge_join")
    assert set(checks_of(lake)) == set(now)
    assert not capsys.readouterr().out
    assert read(lake) == [{"left_id": 1, "right_id": 2, "distance": 1.5}]


def test_begin__of_a_condition_that_delta_cannot_have_says_so(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    monkeypatch.setattr(Lake, "checks", lambda *_: {"odd__0123abcd": "nothing >= 1"})
    with pytest.raises(TableError, match="pairs: the conditions .* cannot be put into its log .*nothing"):
        delta_log.pin_versions(lake, "merge_join")


def test_begin__of_a_column_that_is_there_in_other_letters_says_so(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    schema = lake.schema("pairs").append(pa.field("Distance", pa.float64()))
    monkeypatch.setattr(Lake, "schema", lambda *_: schema)
    with pytest.raises(UnfitTableError, match="pairs: column Distance is there in other letters"):
        delta_log.pin_versions(lake, "merge_join")


def test_begin__of_a_column_that_the_contract_calls_otherwise_says_so(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    where = lake.schema("pairs").get_field_index("distance")
    schema = lake.schema("pairs").set(where, pa.field("meters", pa.float64(), nullable=False))
    monkeypatch.setattr(Lake, "schema", lambda *_: schema)
    with pytest.raises(UnfitTableError, match="pairs: its rows have no column meters, which the"):
        delta_log.pin_versions(lake, "merge_join")


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


def test_open_or_create__makes_tables_that_both_engines_can_read(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    table = DeltaTable(lake.location("pairs"))
    assert table.metadata().partition_columns == ["run"]
    assert table.metadata().configuration["delta.enableDeletionVectors"] == "false"
