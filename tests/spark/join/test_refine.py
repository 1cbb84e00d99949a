"""Documents through the chain: what comes in, the pairs that are refined, the rule that holds them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from epsjoin.commands import cli, show
from epsjoin.errors import ArgumentError, DataRefusedError, TableError
from epsjoin.lake import delta_log, slices, targets, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.spark.checks import measuring
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.checks.verify import Request, verify_tables
from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from epsjoin.spark.join import refine
from epsjoin.spark.report.gather import gather
from epsjoin.spark.rows.write import Written
from oracles.trees import Tree, n_nodes
from tests.local.trees.cases import as_tree
from tests.spark.conftest import JobMaker, copy_of, new_job
from tests.spark.documents import (
    BAD,
    EARLIER,
    LATER,
    STEPS_OF_TREES,
    expected_pairs,
    job_of_documents,
    run_until,
    some_documents,
    write_snapshot,
)
from tests.spark.real_data import content
from tests.spark.test_survival import Commits, KilledError

RULE = "pairs_are_candidates_at_whole_distances_from_the_bound_on"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Job:
    """The chain has run on documents; to be copied, never to be changed."""
    folder = tmp_path_factory.mktemp("documents")
    write_snapshot(folder, EARLIER, some_documents())
    job = job_of_documents(lambda *columns, **how: new_job(spark, folder, *columns, **how))
    for step in STEPS_OF_TREES.values():
        step(job)
    return job


def pairs_of(job: Job) -> set[tuple[frozenset[str], int]]:
    """Names and edits of the stored pairs."""
    points = slices.read_slice(job.lake, Slice("points", job.run), ["id", "name"]).to_pylist()
    names = {row["id"]: row["name"] for row in points}
    pairs = slices.read_slice(job.lake, Slice("pairs", job.run)).to_pylist()
    assert all(row["left_id"] < row["right_id"] for row in pairs)
    return {
        (frozenset((names[row["left_id"]], names[row["right_id"]])), int(row["distance"])) for row in pairs
    }


def test_ingest__stores_each_document_or_a_reason(done: Job) -> None:
    points = slices.read_slice(done.lake, Slice("points", done.run)).to_pylist()
    assert {row["name"]: json.loads(row["doc"]) for row in points} == some_documents()
    assert {len(row["point"]) for row in points} == {8 * 48}
    refused = slices.read_slice(done.lake, Slice("quarantine", done.run)).to_pylist()
    reasons = {row["raw"]: row["reason"] for row in refused}
    assert set(reasons) == set(BAD.values())
    of = {name: reasons[raw] for name, raw in BAD.items()}
    assert of["twice"] == "an object has a key twice: 'a'"
    assert of["nan"] == "doc: NaN or Infinity: '[nan]'"
    assert of["half"] == "doc: half a surrogate pair"
    assert of["large"] == "doc: more than 12 nodes: '21 nodes'"
    assert of["broken"].startswith("not JSON")
    assert of["text"] == "doc: not an object or array: '[]'"


def test_refine__leaves_the_pairs_of_documents_within_eps_edits(done: Job) -> None:
    expected = expected_pairs(some_documents())
    assert pairs_of(done) == expected
    assert {edits for _, edits in expected} == {0, 1, 2}, "equal documents are among them"
    assert slices.count_rows(done.lake, Slice("candidates", done.run)) > len(expected)


def test_refine__by_tasks_writes_what_the_driver_writes(done: Job, tmp_path: Path) -> None:
    job = copy_of(done, tmp_path / "copy")
    by_driver = content(job, "pairs")
    counters = refine.run(job, max_here=0)
    assert content(job, "pairs").equals(by_driver)
    again = refine.run(job)
    for name in ("candidates", "refinements", "pairs"):
        assert counters[name] == again[name] > 0, name


def test_refine__that_is_killed_around_its_commit_and_run_again_writes_the_same(
    done: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, commits = copy_of(done, tmp_path / "copy"), Commits(monkeypatch)
    expected = content(job, "pairs")
    transactions.commit(job.lake, {Fingerprints(job.lake, job.run).slice("pairs"): []})
    for moment in ("before", "after"):
        commits.names, commits.last = [], (0, moment)
        with pytest.raises(KilledError):
            refine.run(replace(job, lake=delta_log.pin_versions(job.lake, "refine")))
        assert commits.names == ["pairs"]
        assert len(content(job, "pairs")) == (0 if moment == "before" else len(expected))
    commits.last = None
    refine.run(replace(job, lake=delta_log.pin_versions(job.lake, "refine")))
    assert content(job, "pairs").equals(expected)


def test_refine__that_has_not_compared_all_candidates_leaves_no_file(
    done: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = copy_of(done, tmp_path / "copy")

    def miscount(reports: Any) -> tuple[list[File], dict[str, float]]:
        files, counters = Written.of(reports)
        assert files
        return files, {**counters, "candidates": counters["candidates"] - 1}

    monkeypatch.setattr(refine, "Written", SimpleNamespace(of=miscount))
    before = set(tmp_path.rglob("*.parquet"))
    with pytest.raises(TableError, match=r"candidates were compared, the log says .* run refine again"):
        refine.run(job)
    assert set(tmp_path.rglob("*.parquet")) == before


def test_refine__wants_candidates_of_these_documents(done: Job, tmp_path: Path) -> None:
    job = copy_of(done, tmp_path / "copy")
    points = Fingerprints(job.lake, job.run).slice("points")
    kept = slices.read_slice(job.lake, points).slice(1).drop_columns(["run"])
    file = targets.target_of(job.lake, points).write([kept])
    assert file is not None
    transactions.commit(job.lake, {points: [file]})
    with pytest.raises(TableError, match=r"epsilon of run .* was made from other tables .* run fit_epsilon"):
        refine.run(job)


def spoiled(rows: pa.Table, wrong: str) -> pa.Table:
    """Pairs, of which the last is none: it has half an edit, is nearer than its bound, or is no candidate."""
    ids, distance = rows["left_id"].to_numpy().copy(), rows["distance"].to_numpy().copy()
    if wrong == "no candidate":
        ids[-1] = np.iinfo(np.int64).min
    else:
        distance[-1] = {"not whole": 1.5, "below the bound": 0.0}[wrong]
    return rows.set_column(0, "left_id", pa.array(ids)).set_column(2, "distance", pa.array(distance))


@pytest.mark.parametrize("wrong", ["not whole", "below the bound", "no candidate"])
def test_quality__holds_pairs_against_their_candidates(
    done: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """By the driver's engine, and once by Spark; only the rule about both tables is looked at."""
    job = copy_of(done, tmp_path / "copy")
    inputs = Fingerprints(job.lake, job.run)
    names = ("points", "epsilon", "pairs", "candidates")

    def broken() -> float:
        tables = {name: measuring.Table.of(job.lake, inputs.slice(name)) for name in names}
        return measuring.measure_rules(job, tables, ["candidates"])["candidates"][RULE].number

    assert broken() == 0
    pairs = inputs.slice("pairs")
    rows = slices.read_slice(job.lake, pairs).drop_columns(["run"]).sort_by("distance")
    slices.write_slice(job.lake, pairs, spoiled(rows, wrong))
    assert broken() == 1
    if wrong == "not whole":
        monkeypatch.setattr(measuring, "MAX_ROWS", -1)
        assert broken() == 1


def test_quality__takes_the_tables_of_documents_and_refuses_wrong_pairs(done: Job, tmp_path: Path) -> None:
    job = copy_of(done, tmp_path / "copy")
    for stage in ("input", "results"):
        assert check_quality(job, stage)["errors"] == 0
    pairs = Fingerprints(job.lake, job.run).slice("pairs")
    rows = slices.read_slice(job.lake, pairs).drop_columns(["run"])
    halves = pa.array(rows["distance"].to_numpy() + 0.5)
    slices.write_slice(job.lake, pairs, rows.set_column(2, "distance", halves))
    with pytest.raises(DataRefusedError, match=f"candidates: {RULE} does not hold"):
        check_quality(job, "results")


def later(documents: dict[str, Any]) -> dict[str, Any]:
    """A month later: one is edited, one is written with its keys in another order, one came, one went."""
    names = sorted(documents)
    edited = {**documents[names[0]], "new": 1}
    turned = dict(reversed(documents[names[1]].items()))
    kept = {name: document for name, document in documents.items() if name != names[2]}
    return {**kept, names[0]: edited, names[1]: turned, "came": documents[names[3]]}


def test_increment__of_candidates_gives_the_pairs_of_a_whole_run(make_job: JobMaker, tmp_path: Path) -> None:
    """And ``changes`` and the guard tell a document that moved from one that is only written anew."""
    documents = later(some_documents())
    write_snapshot(tmp_path, EARLIER, some_documents())
    write_snapshot(tmp_path, LATER, documents)
    job = job_of_documents(make_job)
    run_until(job, "compare")
    job = replace(job, run=LATER)
    counters = run_until(job, "compare")
    plan = slices.read_row(job.lake, Slice("join_plan", LATER))
    assert (plan["kind"], plan["base"], plan["placed"], plan["gone"]) == ("increment", EARLIER, 2, 2)
    assert pairs_of(job) == expected_pairs(documents)
    assert {name: counters["compare"][name] for name in ("inserted", "updated", "deleted", "moved")} == {
        "inserted": 1,
        "updated": 2,
        "deleted": 1,
        "moved": 1,
    }
    guard = slices.read_slice(job.lake, Slice("guard", LATER)).to_pylist()
    observed = {row["check"]: row["observed"] for row in guard}
    assert observed["moved"] == pytest.approx(1 / (len(documents) - 1))
    by_increment = {name: content(job, name) for name in ("candidates", "pairs", "clusters", "outliers")}
    whole = replace(job, params=replace(job.params, increment=0.0))
    run_until(whole, "outliers")
    assert slices.read_row(job.lake, Slice("join_plan", LATER))["kind"] == "planned"
    for name, rows in by_increment.items():
        assert content(job, name).equals(rows), name


def test_report__shows_two_documents_of_each_of_the_largest_clusters(done: Job, tmp_path: Path) -> None:
    """The edits between them are as many as their distance, and lead from the left to the right one."""
    job = copy_of(done, tmp_path / "copy")
    transactions.commit(job.lake, {Slice("job_metrics", job.run, also=(("job", "none"),)): []})
    found = gather(job)
    largest = [row["cluster_id"] for row in found.largest_clusters[:5]]
    assert [pair["cluster_id"] for pair in found.alike] == largest
    assert {row["cluster_id"]: row["key"] for row in found.largest_clusters}.keys() >= set(largest)
    assert {row["dimensions"] for row in found.largest_clusters} == {None}
    assert (found.n_usual, found.n_of_cluster) == (0, 0)
    expected = expected_pairs(some_documents())
    for pair in found.alike:
        names = [pair[side]["key"][0] for side in ("left", "right")]
        assert (frozenset(names), pair["distance"]) in expected
        assert len(pair["edits"]) == pair["distance"] > 0, "equal ones are not the first choice"
        for side, name in zip(("left", "right"), names, strict=True):
            assert json.loads(pair[side]["text"]) == some_documents()[name]
    assert (found.label, found.map_axes) == ("name", ("nodes", "leaves"))
    sizes = sorted(zip(*found.map_points.astype(int).T.tolist(), strict=True))
    trees = [as_tree(document) for document in some_documents().values()]
    assert sizes == sorted((n_nodes(tree), n_leaves(tree)) for tree in trees)
    assert "doc" not in found.outliers[0]["columns"], "a document is too long for a cell"


def test_show__of_documents_has_the_job_of_their_own_and_no_bins(done: Job, tmp_path: Path) -> None:
    job = copy_of(done, tmp_path / "copy")
    for number, name in enumerate(("cluster", "refine")):
        rows = slices.table_of(
            job.lake, "job_metrics", [{"job": name, "counter": "seconds", "value": number + 1.0}]
        )
        slices.write_slice(job.lake, Slice("job_metrics", job.run, also=(("job", name),)), rows)
    said = list(show.summarise(job.lake, job.run))
    assert said[-1] == ("seconds per step", "refine 2, cluster 1")
    (first,) = [text for name, text in said if name == "top outliers"]
    assert first.startswith("1. ")
    assert "half" not in first


def test_estimate__of_documents_says_that_its_pairs_are_those_of_points(
    done: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = done.lake
    of = ["--lake", lake.uri, "--dataset", lake.source.name, "--run", done.run]
    assert cli.main(["estimate", *of, "--contracts", str(lake.contracts)]) == 0
    said = capsys.readouterr().out
    n_candidates = slices.count_rows(lake, Slice("candidates", done.run))
    assert re.search(
        rf"pairs +{n_candidates:,} \(of all rows\); at most, as candidates whose documents", said
    )
    assert "edits (tree_edit)" in said


def n_leaves(tree: Tree) -> int:
    return sum(map(n_leaves, tree[1])) if tree[1] else 1


def test_verify__of_documents_says_what_checks_them(done: Job) -> None:
    with pytest.raises(ArgumentError, match="tiny has documents; run the gate quality_results"):
        verify_tables(done, Request(points=1, cells=1, seed=0))


@pytest.mark.parametrize("eps", [1.5, 0.5])
def test_fit_epsilon__of_documents_wants_whole_edits(done: Job, eps: float) -> None:
    job = replace(done, params=replace(done.params, eps=eps))
    with pytest.raises(ArgumentError, match=f"must be a whole number of edits, 1 at least, not {eps}"):
        fit_epsilon.run(job)


def test_ingest__documents_may_be_texts_in_a_csv_file(make_job: JobMaker, tmp_path: Path) -> None:
    (tmp_path / "snapshot.csv").write_text(
        'id,doc\n1,"{""a"": [1, 2]}"\n2,"{""a"": 1, ""a"": 2}"\n3,[1\n4,\n5,[NaN]\n6,null\n'
    )
    column = {"name": "doc", "logicalType": "string", "role": "tree", "required": False}
    job = make_job(
        [{"name": "id", "logicalType": "integer", "primaryKey": True}, column],
        metric="tree_edit",
        max_quarantine_share=0.9,
        defaults={"eps": 1},
    )
    counters = ingest.run(job)
    assert (counters["rows_ok"], counters["rows_quarantined"], counters["rows_left_out"]) == (2, 3, 1)
    points = slices.read_slice(job.lake, Slice("points", job.run)).sort_by("id").to_pylist()
    assert [(row["id"], row["doc"]) for row in points] == [(1, '{"a": [1, 2]}'), (6, "null")]
