"""The declaration of the pipeline: complete, in an order that can be run, and what others derive from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from epsjoin import pipeline
from epsjoin.pipeline import (
    ANY_JOB,
    CHAINS,
    STAGES,
    TABLES,
    chain_of,
    jobs_of,
    joined_table,
    tables_at,
    tables_of,
    tables_up_to,
    writer_of,
)

REPO = Path(__file__).resolve().parents[1]


def test_tables__are_those_that_have_a_contract() -> None:
    contracts = {file.name.split(".")[0] for file in (REPO / "data_contracts" / "tables").iterdir()}
    assert set(TABLES) == contracts


def test_tables__come_after_what_they_are_made_from() -> None:
    before: set[str] = set()
    for table in TABLES.values():
        sources = {source.table for source in table.made_from if not source.is_before}
        assert sources <= before, f"{table.name} is made from {sources - before}, which are declared after it"
        assert table.agrees is None or table.agrees[0] in before
        before.add(table.name)
        assert {source.table for source in table.made_from} <= before, "of the run before, it may be itself"


def test_tables__with_a_fingerprint_of_their_inputs_have_inputs() -> None:
    for table in TABLES.values():
        assert bool(table.made_from) or table.fingerprint != "inputs", table.name


def test_jobs__run_each_writer_before_the_gate_of_its_tables_and_end_with_the_report() -> None:
    assert set(STAGES) == {stage for stages in CHAINS.values() for stage in stages}
    for chain, stages in CHAINS.items():
        jobs = jobs_of(chain)
        assert jobs[-1] == "report"
        for stage in stages:
            for table in tables_at(stage, chain):
                assert jobs.index(writer_of(table, chain)) < jobs.index(f"quality_{stage}"), table


def test_chain_of_trees__has_candidates_and_a_job_that_refines_them() -> None:
    others = [job for job in jobs_of("trees") if job != "refine"]
    assert others == list(jobs_of("join")), "the job before cluster is the only one of its own"
    assert jobs_of("trees").index("refine") == jobs_of("trees").index("merge_join") + 1
    assert [joined_table(chain) for chain in ("join", "match", "trees")] == ["pairs", "pairs", "candidates"]
    assert [tables_of(job, "trees")[0] for job in ("merge_join", "refine")] == ["candidates", "pairs"]
    assert set(tables_up_to("results", "trees")) - set(tables_up_to("results")) == {"candidates"}


def test_chain_of__a_gate_is_what_comes_before_it() -> None:
    assert chain_of("input") == ("input",)
    assert chain_of("results") == ("input", "results")
    assert chain_of("matches") == ("input", "matches")


def test_jobs__have_an_entry_point_each() -> None:
    for job in set().union(*map(jobs_of, CHAINS)):
        name = "quality" if job.startswith("quality_") else job
        assert (REPO / "jobs" / f"{name}.py").is_file(), f"jobs/{name}.py is missing"


@pytest.mark.parametrize("job", [*jobs_of("join"), *jobs_of("match"), "verify"])
def test_tables_of__a_job_are_those_that_name_it_as_their_writer(job: str) -> None:
    writer = job.partition("_")[0] if job.startswith("quality_") else job
    expected = [
        name
        for name, table in TABLES.items()
        if table.written_by in (writer, ANY_JOB) and not table.is_only_of_trees
    ]
    assert list(tables_of(job)) == expected
    assert "job_metrics" in expected


def test_writer_of__a_table_outside_of_the_lake_is_its_own_name() -> None:
    assert "similarity_join" not in pipeline.TABLES
    assert writer_of("similarity_join") == "similarity_join"
