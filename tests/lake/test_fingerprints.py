"""Fingerprints: they follow from the declaration of the pipeline, and name what has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from epsjoin import pipeline
from epsjoin.errors import TableError
from epsjoin.lake import slices, targets, transactions
from epsjoin.lake.fingerprints import Fingerprints, new_fingerprint
from epsjoin.lake.lake import Lake, Slice
from tests.stored_runs import new_lake, row

RUN = "2023-06-01"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return new_lake(tmp_path)


def write(lake: Lake, where: Slice, rows: Sequence[Mapping[str, Any]]) -> None:
    slices.write_slice(lake, where, slices.table_of(lake, where.table, rows))


def write_points(lake: Lake, fingerprint: str, ids: Sequence[int] = (1, 2)) -> None:
    where = Slice("points", RUN, fingerprint=fingerprint)
    write(lake, where, [row(lake, "points", id=i) for i in ids])


def write_plan(lake: Lake, eps: float = 20.0, plan: str = "{}") -> None:
    write(
        lake, Slice("join_plan", RUN), [row(lake, "join_plan", eps=eps, kind="planned", plan=plan, base=None)]
    )


def write_epsilon(lake: Lake, eps: float = 20.0) -> None:
    where = Fingerprints(lake, RUN).slice("epsilon")
    write(lake, where, [row(lake, "epsilon", eps=eps, method="given")])


def names(lake: Lake, table: str) -> list[str]:
    return [file.path for file in slices.files_of(lake, Slice(table, RUN))]


def digest(text: str, paths: Sequence[str]) -> str:
    return hashlib.blake2b((text + "".join(paths)).encode(), digest_size=8).hexdigest() + "-"


def test_slice__of_a_table_is_the_digest_of_what_the_pipeline_says_it_is_made_from(lake: Lake) -> None:
    """Lakes of earlier versions are read, so these digests must not change."""
    write_points(lake, new_fingerprint())
    write_epsilon(lake)
    write_plan(lake, plan='{"n": 1}')
    found = Fingerprints(lake, RUN)
    of_pairs = digest('{"n": 1}', names(lake, "points"))
    assert found.slice("epsilon").fingerprint == digest("", names(lake, "points"))
    assert found.slice("epsilon_curve").fingerprint == digest("", names(lake, "epsilon"))
    for table in ("replicas", "pairs", "clusters"):
        assert found.slice(table).fingerprint == of_pairs
    write(lake, found.slice("clusters"), [row(lake, "clusters", role="core")])
    found = Fingerprints(lake, RUN)
    assert found.slice("outliers").fingerprint == digest(of_pairs, names(lake, "clusters"))
    for table in ("join_plan", "quality", "job_metrics"):
        assert found.slice(table) == Slice(table, RUN)


def test_slice__of_tables_of_one_pass_has_the_fingerprint_of_the_pass(lake: Lake) -> None:
    mine = new_fingerprint()
    write_points(lake, mine)
    for table in ("points", "digests", "value_counts", "guard", "snapshots", "quarantine"):
        assert Fingerprints(lake, RUN).slice(table) == Slice(table, RUN, fingerprint=mine)


def test_slice__of_inputs_that_are_not_committed_yet_is_that_of_them_once_they_are(lake: Lake) -> None:
    write_points(lake, new_fingerprint())
    write_epsilon(lake)
    before = Fingerprints(lake, RUN).slice("replicas", join_plan="{}")
    write_plan(lake)
    assert before == Fingerprints(lake, RUN).slice("replicas")


def test_slice__is_another_where_an_input_was_written_again(lake: Lake) -> None:
    write_points(lake, new_fingerprint())
    write_epsilon(lake)
    write_plan(lake)
    before = Fingerprints(lake, RUN).slice("pairs")
    write_plan(lake)
    assert Fingerprints(lake, RUN).slice("pairs") == before, "the same plan gives the same pairs"
    write_points(lake, new_fingerprint())
    with pytest.raises(TableError, match="epsilon of run 2023-06-01 was made from other tables than these"):
        Fingerprints(lake, RUN).slice("pairs")
    write_epsilon(lake)
    assert Fingerprints(lake, RUN).slice("pairs") != before


def test_row__of_a_plan_with_another_eps_names_both_and_the_job(lake: Lake) -> None:
    write_points(lake, new_fingerprint())
    write_epsilon(lake, eps=20.0)
    write_plan(lake, eps=30.0)
    sentence = "join_plan of run 2023-06-01 has eps 30.0, epsilon 20.0; run replicate again"
    with pytest.raises(TableError, match=sentence):
        Fingerprints(lake, RUN).row("join_plan")


@pytest.mark.parametrize("name", ["foreign-", "-before-all-others"])
def test_slice__of_points_with_a_file_of_somebody_else_is_refused(lake: Lake, name: str) -> None:
    """A row that another program has appended must not become a point of the run."""
    write_points(lake, "0" * 16 + "-")
    mine = slices.files_of(lake, Slice("points", RUN))
    foreign = Slice("points", RUN, fingerprint=name)
    rows = slices.table_of(lake, "points", [row(lake, "points", id=9)])
    file = targets.target_of(lake, foreign).write([rows])
    assert file is not None
    transactions.commit(lake, {Slice("points", RUN): [*mine, file]})
    with pytest.raises(TableError, match="points of run 2023-06-01 was made from other tables .* run ingest"):
        Fingerprints(lake, RUN).slice("epsilon")


def test_slices__are_those_that_a_gate_checks(lake: Lake) -> None:
    write_points(lake, new_fingerprint())
    write_epsilon(lake)
    write_plan(lake)
    write(lake, Fingerprints(lake, RUN).slice("clusters"), [row(lake, "clusters", role="core")])
    for table in ("cluster_flows", "cluster_names"):
        write(lake, Fingerprints(lake, RUN).slice(table), [])
    found = Fingerprints(lake, RUN).slices()
    tables = [table for stage in pipeline.CHAINS["join"] for table in pipeline.STAGES[stage]]
    assert {name: where.table for name, where in found.items()} == dict(zip(tables, tables, strict=True))


def write_clusters(lake: Lake, run: str, points: str) -> None:
    """A run whose clusters fit its points and its plan."""
    here = Slice("points", run, fingerprint=points)
    write(lake, here, [row(lake, "points", id=1)])
    write(lake, Fingerprints(lake, run).slice("epsilon"), [row(lake, "epsilon", eps=0.5, method="given")])
    write(
        lake, Slice("join_plan", run), [row(lake, "join_plan", eps=0.5, kind="planned", plan="{}", base=None)]
    )
    write(lake, Fingerprints(lake, run).slice("clusters"), [row(lake, "clusters", role="core")])


def test_before__is_the_latest_earlier_run_whose_clusters_fit(lake: Lake) -> None:
    for run in ("2023-03-01", "2023-04-01", "2023-05-01", "2023-07-01"):
        write_clusters(lake, run, new_fingerprint())
    write(lake, Slice("points", "2023-05-01", fingerprint=new_fingerprint()), [row(lake, "points", id=2)])
    before = Fingerprints(lake, RUN).before
    assert before is not None
    assert before.run == "2023-04-01", "the points of May are others than those of its clusters"
    assert before.before is not None
    assert before.before.run == "2023-03-01"
    assert before.before.before is None
    all_runs = Fingerprints.of_all(lake)
    assert [each.run for each in all_runs] == ["2023-03-01", "2023-04-01", "2023-07-01"]
    assert [each.before and each.before.run for each in all_runs] == [None, "2023-03-01", "2023-04-01"]


def test_slice__of_a_comparison_is_another_where_the_run_before_is_another(lake: Lake) -> None:
    tables = ("changes", "cluster_flows", "cluster_names")
    for run in ("2023-03-01", RUN):
        write_clusters(lake, run, new_fingerprint())
        write(lake, Fingerprints(lake, run).slice("cluster_flows"), [])
        write(lake, Fingerprints(lake, run).slice("cluster_names"), [])
    found = [Fingerprints(lake, RUN).slice(table) for table in tables]
    write(lake, Slice("cluster_names", "2023-03-01", fingerprint=found[2].fingerprint), [])
    again = [Fingerprints(lake, RUN).slice(table) for table in tables]
    assert again[:2] == found[:2]
    assert again[2] != found[2], "names go on from those of the run before, whatever these were made from"
    write_clusters(lake, "2023-04-01", new_fingerprint())
    others = [Fingerprints(lake, RUN).slice(table) for table in tables[:1]]
    assert others != found[:1]
    with pytest.raises(
        TableError, match="cluster_flows of run 2023-06-01 was made from other .* run compare"
    ):
        Fingerprints(lake, RUN).slice("cluster_names")
