"""The base of an increment: each condition holds at its limit, and not beyond it; without a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epsjoin.commands import cli
from epsjoin.errors import UnfitTableError
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints, new_fingerprint
from epsjoin.lake.lake import Slice
from epsjoin.params import RunParams
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from epsjoin.spark.join import base
from epsjoin.spark.join.base import Changes, Increment, IncrementPlan, base_tables, find_increment
from tests.spark.ingest.here import new_job, reading_here
from tests.tiny import coordinate, key

EPS = 0.5
FIRST, SECOND, THIRD = "2023-06-01", "2023-07-01", "2023-08-01"
COLUMNS = [key(), coordinate("x"), {"name": "note", "logicalType": "string"}]
Points = Mapping[int, tuple[float, str]]
BEFORE: Points = {i: (i / 2, "") for i in range(100)}


def come_in(job: Job, run: str, points: Points) -> None:
    lines = [f"{i},{x},{note}" for i, (x, note) in points.items()]
    (job.project / f"{run}.csv").write_text("\n".join(["id,x,note", *lines]) + "\n")
    with reading_here():
        ingest.run(replace(job, run=run, params=RunParams(accept=("lost", "new", "moved", "keys"))))


def write(job: Job, run: str, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    kinds = {"string": "x", "double": 0.5, "int32": 1, "int64": 1, "bool": True}
    schema = job.lake.schema(table)
    whole = [
        {c.name: None if c.nullable else kinds[str(c.type)] for c in schema if c.name != "run"} | dict(row)
        for row in rows
    ]
    where = Fingerprints(job.lake, run).slice(table)
    slices.write_slice(job.lake, where, slices.table_of(job.lake, table, whole))


def join(job: Job, run: str, n_pairs: int = 99, **plan: Any) -> None:
    """Leave what the steps until merge_join leave of a run that has come in."""
    n_points = slices.count_rows(job.lake, Fingerprints(job.lake, run).slice("points"))
    of_plan = {"kind": "planned", "plan": "{}", "metric": "euclidean", "n_points": n_points}
    of_plan |= {"expected_candidates": 1000.0, "generation": 0}
    write(job, run, "epsilon", [{"eps": EPS, "method": "given"}])
    write(job, run, "join_plan", [{"eps": EPS, **of_plan, **plan}])
    write(job, run, "pairs", [{"left_id": i, "right_id": i + 1, "distance": EPS} for i in range(n_pairs)])


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """The next run of one that has been joined; its points have not come in."""
    first = new_job(tmp_path, COLUMNS)
    come_in(first, FIRST, BEFORE)
    join(first, FIRST)
    return replace(first, run=SECOND)


def find(job: Job, eps: float = EPS, **params: Any) -> Increment | str:
    params = {"increment": 0.1, **params}
    return find_increment(Fingerprints(job.lake, job.run), replace(RunParams(), **params), eps)


def row_of(found: Increment | str) -> dict[str, Any]:
    assert isinstance(found, Increment), found
    return found.row


def placed(n: int) -> Points:
    """Of the points before, n are elsewhere; all have another note, which is no place."""
    return {i: (x + 0.125 * (i < n), "other") for i, (x, _) in BEFORE.items()}


def test_increment__is_allowed_at_each_limit_and_not_beyond_it(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    come_in(job, SECOND, placed(5))
    found = find(job, increment=0.05)
    assert row_of(found)["placed"] == 5
    assert str(found.changes if isinstance(found, Increment) else "") == "0 new, 0 deleted, 5 moved"
    assert find(job, increment=0.0499) == (
        "5% of the points are new or moved since run 2023-06-01, 4.99% may be"
    )
    assert row_of(find(job, max_pairs=99))
    assert "are expected, more than max_pairs" in str(find(job, max_pairs=98))
    assert "has eps 0.5, this one 0.5000000000001" in str(find(job, eps=0.5000000000001))
    monkeypatch.setattr(base, "MAX_CHANGES", 10)
    assert row_of(find(job))
    monkeypatch.setattr(base, "MAX_CHANGES", 9)
    assert "10 points differ from run 2023-06-01, an increment's plan names at most 9" in str(find(job))
    monkeypatch.undo()
    monkeypatch.setattr(base, "rows_that_fit", lambda *_: 11)
    assert row_of(find(job))
    monkeypatch.setattr(base, "rows_that_fit", lambda *_: 9)
    assert "5 points new or moved since run 2023-06-01 do not fit a worker" in str(find(job))


def test_increment__of_another_eps_writes_both_in_one_way(job: Job) -> None:
    """As a person wrote it, and as the table has it; as all other distances of the data set."""
    come_in(job, SECOND, placed(1))
    in_km = replace(job, lake=replace(job.lake, source=replace(job.lake.source, unit="km")))
    for eps in (2, 2.0):
        assert find(in_km, eps=eps) == f"run {FIRST} has eps 0.5 km, this one 2 km"


def test_estimate__says_what_replicate_will_do(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    come_in(job, SECOND, placed(3))
    lake = ["--lake", job.lake.uri, "--dataset", "tiny", "--contracts", str(job.lake.contracts)]
    for eps, says in (
        (EPS, f"increment on run {FIRST}, number 1 in a row: 3 points new or moved, 3 deleted or moved"),
        (0.25, f"of all points: run {FIRST} has eps 0.5, this one 0.25"),
    ):
        assert cli.main(["estimate", *lake, "--run", SECOND, "--eps", str(eps)]) == 0
        assert f" join {says} parts " in " ".join(capsys.readouterr().out.split())


def test_increment__counts_who_is_placed_and_not_who_is_gone(job: Job) -> None:
    now = {i: of for i, of in BEFORE.items() if i >= 10} | {200 + i: (100.0 + i, "") for i in range(5)}
    come_in(job, SECOND, now)
    row = row_of(find(job, increment=0.06))
    assert (row["placed"], row["gone"], row["n_points"]) == (5, 10, 95)


def test_changes__are_in_the_plan_by_rising_id_whatever_the_order_of_the_points(job: Job) -> None:
    now = {**placed(3), 200: (7.0, "")}
    now.pop(50)
    come_in(job, SECOND, dict(reversed(now.items())))
    row = row_of(find(job))
    changes = Changes.from_row(row)
    assert [ids.tolist() for ids in changes] == [[0, 1, 2, 200], [0, 1, 2, 50]]
    assert str(changes) == "1 new, 1 deleted, 3 moved"
    with pytest.raises(UnfitTableError, match="an earlier version wrote it; run replicate again"):
        Changes.from_row({**row, "run": SECOND, "gone_ids": None})


def test_increment__expects_pairs_by_the_square_of_the_number_of_points(job: Job) -> None:
    come_in(job, SECOND, {**BEFORE, **{200 + i: (100.0 + i, "") for i in range(10)}})
    row = row_of(find(job, max_pairs=120))
    assert row["expected_pairs"] == pytest.approx(99 * 1.21)
    assert row["expected_candidates"] == pytest.approx(1000 * 1.21 * (1 - (100 / 110) ** 2))
    assert "120 pairs are expected" in str(find(job, max_pairs=119))


def test_increment__of_an_increment_counts_on_from_it(job: Job) -> None:
    plan = IncrementPlan(FIRST, "fingerprint-", 2000.0).to_json()
    come_in(job, SECOND, placed(1))
    join(job, SECOND, kind="increment", plan=plan, base=FIRST, generation=1, expected_candidates=7.0)
    come_in(job, THIRD, placed(1))
    third = replace(job, run=THIRD)
    row = row_of(find(third, most_generations=2))
    assert (row["base"], row["generation"], row["placed"]) == (SECOND, 2, 0)
    made = IncrementPlan.from_json(row["plan"])
    assert made == IncrementPlan(SECOND, base_tables(job.lake, SECOND).pairs.fingerprint, 2000.0)
    assert made.pairs
    assert "is increment number 1 in a row" in str(find(third, most_generations=1))


def test_increment__is_on_the_latest_run_before_and_on_no_later_one(job: Job) -> None:
    come_in(job, SECOND, placed(1))
    assert row_of(find(job))["base"] == FIRST
    join(job, SECOND)
    for run in (THIRD, "2023-09-01"):
        come_in(job, run, placed(1))
        join(job, run)
    assert row_of(find(job))["base"] == FIRST
    assert row_of(find(replace(job, run=THIRD)))["base"] == SECOND
    assert find(replace(job, run=FIRST)) == "there is no earlier run with pairs"


def test_increment__is_not_on_a_base_whose_tables_do_not_belong_together(job: Job) -> None:
    come_in(job, SECOND, placed(1))
    where = Fingerprints(job.lake, FIRST).slice("digests")
    digests = slices.read_slice(job.lake, where).drop_columns(["run"])

    def states() -> Iterator[str]:
        write(job, FIRST, "join_plan", [{**plan(job), "plan": '{"other": 1}'}])
        yield "pairs of run 2023-06-01 was made from other tables"
        join(job, FIRST)
        slices.write_slice(job.lake, Slice("digests", FIRST, fingerprint=new_fingerprint()), digests)
        yield "digests of run 2023-06-01 was made from other tables"
        slices.write_slice(job.lake, where, digests.slice(1))
        yield "has not a digest for each point"
        slices.write_slice(job.lake, where, digests)
        mine = Fingerprints(job.lake, SECOND).slice("digests")
        of_mine = slices.read_slice(job.lake, mine).drop_columns(["run"])
        slices.write_slice(job.lake, mine, of_mine.slice(1))
        yield "has not a digest for each point"
        slices.write_slice(job.lake, mine, of_mine)

    assert row_of(find(job))
    for why in states():
        assert why in str(find(job))
    assert row_of(find(job))


def plan(job: Job) -> dict[str, Any]:
    return {k: v for k, v in Fingerprints(job.lake, FIRST).row("join_plan").items() if k != "run"}


def test_increment__is_of_the_same_metric_by_planned_cuts_with_a_key(job: Job) -> None:
    come_in(job, SECOND, placed(1))
    other = replace(job, lake=replace(job.lake, source=replace(job.lake.source, metric="manhattan")))
    assert find(other) == "run 2023-06-01 has the metric euclidean, this one manhattan"
    keyless = replace(job, lake=replace(job.lake, source=replace(job.lake.source, key=())))
    assert "the source has no key" in str(find(keyless))
    assert "the cuts are regular" in str(find(job, cuts="regular"))
    assert "switched off" in str(find(job, increment=0.0))
