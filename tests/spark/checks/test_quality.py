"""Quality gates: what a run leaves passes; every expectation of every contract finds what breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import quality
from epsjoin.contracts.expected import COLUMNS
from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.tables import load_table
from epsjoin.errors import DataRefusedError
from epsjoin.lake import delta_log, parquet, slices, targets, transactions, uris
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.measure import Measured, measure_rows
from epsjoin.paths import CONTRACTS
from epsjoin.pipeline import CHAINS, STAGES
from epsjoin.spark.checks import measuring
from epsjoin.spark.checks.judge import Outcome, judge
from epsjoin.spark.checks.measuring import Answers, ask_driver, ask_spark
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.job.job import Job
from tests.spark.checks.broken import BEFORE, Rule, changes_that_break
from tests.spark.checks.stored import store
from tests.spark.conftest import STEPS, copy_of, new_job
from tests.tiny import RUN, coordinate, key

TABLES = [name for stage in CHAINS["join"] for name in STAGES[stage]]
ROWS = "id,x,y\n" + "".join(f"{i},{i % 12}.5,{i // 12 % 3}\n" for i in range(60)) + "60,40,40\n61,n/a,0\n"
SOURCE = load_source(CONTRACTS, "navaids")
RULES = {(name, rule.name): rule for name in TABLES for rule in load_table(CONTRACTS, name, SOURCE).rules}
VIEWS = {key: "__".join(key) for key in RULES}
"""Of each rule, the name that its broken table has in queries."""
Tables = dict[str, pa.Table]
QUERIES = {key: rule.query.replace("${object}", VIEWS[key]) for key, rule in RULES.items()}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """A run with clusters of all roles, noise, and a quarantined row; in the run before all was noise."""
    place = tmp_path_factory.mktemp("chain")
    (place / "snapshot.csv").write_text(ROWS)
    columns = [key(), coordinate("x"), coordinate("y")]
    params = {"eps": 1.0, "min_pts": 9, "lof_k": 3}
    job = new_job(spark, place, columns, params=params, max_quarantine_share=0.5, interval="day")
    for each in (replace(job, run=BEFORE, params=replace(job.params, eps=0.1)), job):
        for step in STEPS.values():
            step(each)
    return job


@pytest.fixture
def job(chain: Job, tmp_path: Path) -> Job:
    return copy_of(chain, tmp_path / "copy")


@pytest.fixture(scope="module")
def tables(chain: Job) -> Tables:
    """The tables of the run; of the run before it those that rules look at."""
    tables = {name: slices.read_slice(chain.lake, Slice(name, RUN)) for name in TABLES}
    before = {"run": RUN, "column_name": "type", "value": "VOR", "points": 61}
    schema = tables["value_counts"].schema
    return {**tables, "value_counts_before": pa.Table.from_pylist([before], schema)}


@pytest.fixture(scope="module")
def broken(tables: Tables) -> dict[Rule, pa.Table]:
    """Of every rule, the table that breaks it, changed here: Spark would plan a query for each change."""
    rows = {name: table.to_pylist() for name, table in tables.items()}
    changes = changes_that_break().items()
    return {key: pa.Table.from_pylist(change(rows), tables[key[0]].schema) for key, change in changes}


@pytest.fixture(scope="module")
def asked(tables: Tables, broken: dict[Rule, pa.Table]) -> Tables:
    """All tables that queries name."""
    return {**tables, **{VIEWS[key]: table for key, table in broken.items()}}


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, asked: Tables) -> Answers:
    """What Spark says of every broken table; it is asked about all rules of a table at once, as by a gate."""
    return ask_spark({name: spark.createDataFrame(table) for name, table in asked.items()}, QUERIES)


@pytest.fixture(scope="module")
def by_driver(asked: Tables, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What the driver says, of the same tables in files that no lake knows, which may break every rule."""
    folder = tmp_path_factory.mktemp("stored")
    of_view = {view: name for (name, _), view in VIEWS.items()}
    contracts = {name: of_view.get(name, name.removesuffix("_before")) for name in asked}
    types = {
        name: {c.name: c.type for c in load_table(CONTRACTS, contract, SOURCE).columns}
        for name, contract in contracts.items()
    }
    stored, read = store(asked, folder)
    return ask_driver(stored, types, QUERIES, read)


@pytest.fixture(scope="module")
def judged(by_spark: Answers) -> dict[Rule, Outcome]:
    """What is said of every rule where its table is broken."""
    contracts = [replace(load_table(CONTRACTS, name, SOURCE), key=(), columns=()) for name in TABLES]
    measured: dict[str, dict[str, Measured]] = {name: {COLUMNS: Measured(0)} for name in TABLES}
    for (name, rule), answer in by_spark.items():
        assert answer is not None
        measured[name][rule] = Measured(answer)
    found = judge(contracts, measured)
    return {(name, each.expectation): each for name, outcomes in found.items() for each in outcomes}


def quality_rows(job: Job) -> list[dict[str, Any]]:
    return slices.read_slice(job.lake, Slice("quality", RUN)).to_pylist()


def test_gates__look_into_the_log_of_a_table_once(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def log_files(location: str) -> delta_log.LogFiles:
        looked.append(location)
        return delta_log.log_files(location)

    monkeypatch.setattr(slices, "log_files", log_files)
    check_quality(job, "results")
    assert job.lake.location("clusters") in looked
    assert sorted(looked) == sorted(set(looked))


def test_gates__pass_what_a_run_leaves(job: Job) -> None:
    counters = {stage: check_quality(job, stage) for stage in CHAINS["join"]}
    assert [found["errors"] for found in counters.values()] == [0, 0]
    assert counters["input"]["warnings"] == 1
    rows = quality_rows(job)
    assert {row["table"] for row in rows} == set(TABLES), "the second stage leaves the first one's slices"
    assert len(rows) == sum(found["expectations"] for found in counters.values())
    warnings = [(row["expectation"], row["severity"], row["observed"]) for row in rows if not row["success"]]
    assert warnings == [("nothing_was_quarantined", "warning", "1")]


def test_gates__commit_the_results_of_all_tables_at_once(job: Job) -> None:
    versions = []
    for stage in CHAINS["join"]:
        check_quality(job, stage)
        versions.append(slices.log_and_files(job.lake, Slice("quality", RUN))[0].version())
    assert versions[1] == versions[0] + 1


def ignoring_fingerprints(find: Callable[..., Any]) -> Callable[..., Any]:
    """Outliers of the clusters before they were broken are as good."""
    return lambda lake, where: find(lake, replace(where, fingerprint=""))


@pytest.mark.long  # two gates by Spark; that both engines answer every rule alike is tried below
def test_gates__say_the_same_of_what_spark_reads(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken rows in several files; slices are too large for the driver as soon as they have a row.

    Then the driver reads no page and answers no rule; otherwise it does all, and no session is asked for.
    """
    monkeypatch.setattr(slices, "log_and_files", ignoring_fingerprints(slices.log_and_files))
    where = Fingerprints(job.lake, RUN).slice("clusters")
    rows = slices.read_slice(job.lake, where).drop_columns(["run"]).to_pylist()
    for row in rows[5:12]:
        row |= {"degree": -row["id"], "role": f"role {row['id']}"}
    broken = slices.table_of(job.lake, "clusters", [*rows, *rows[:3]])
    into = replace(targets.target_of(job.lake, where), constraints=())
    transactions.commit(
        job.lake, {where: [into.write([broken.slice(i, 9)]) for i in range(0, len(broken), 9)]}
    )
    by: list[str] = []

    def noting(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            by.append(name)
            return work(*arguments)

        return run

    # of this process alone: workers of tasks have the function as it was
    monkeypatch.setattr(parquet, "stream_file", noting("driver reads", parquet.stream_file))
    monkeypatch.setattr(measuring, "ask_driver", noting("driver answers", measuring.ask_driver))
    watched = replace(job, session=noting("Spark", job.session))
    found, done = [], []
    for limit in (1 << 30, 0):
        monkeypatch.setattr("epsjoin.spark.rows.stored.MAX_HERE_BYTES", limit)
        monkeypatch.setattr(measuring, "MAX_ROWS", limit)
        by.clear()
        with pytest.raises(DataRefusedError, match="clusters: "):
            check_quality(watched, "results")
        done.append(set(by))
        found.append(quality_rows(job))
    assert done == [{"driver reads", "driver answers"}, {"Spark"}]
    assert found[0] == found[1]
    observed = {row["expectation"]: row["observed"] for row in found[0] if row["table"] == "clusters"}
    least = [sorted(row[name] for row in rows[5:12])[:3] for name in ("degree", "role")]
    assert observed["degree is at least 1"] == f"7 rows, such as {', '.join(map(str, least[0]))}"
    assert observed["role is one of core, border, noise"] == f"7 rows, such as {', '.join(least[1])}"
    assert observed["rows differ in id"] == "6"
    assert job.spark._jsparkSession.sharedState().cacheManager().isEmpty(), "nothing is kept in memory"


def test_gates__stop_the_run_on_an_error_that_is_in_the_table_then(job: Job) -> None:
    pairs = slices.read_slice(job.lake, Slice("pairs", RUN), ["left_id", "right_id", "distance"])
    doubled = pairs.slice(0, 2)
    where = Fingerprints(job.lake, RUN).slice("pairs")
    slices.write_slice(job.lake, where, pa.concat_tables([pairs, doubled]))
    report = Path(uris.filesystem_of(job.lake.location("reports"))[1]) / f"run={RUN}" / "report.html"
    assert not report.exists()
    with pytest.raises(
        DataRefusedError, match=r"pairs: rows differ in left_id, right_id does not hold \(4\)"
    ):
        quality.check(job, "results")
    assert "This run was stopped: 2 expectations do not hold." in report.read_text()
    rows = slices.read_slice(job.lake, Slice("quality", RUN)).to_pylist()
    broken = {(row["table"], row["expectation"]) for row in rows if not row["success"]}
    assert ("pairs", "rows differ in left_id, right_id") in broken
    assert ("clusters", "degree_is_the_number_of_pairs") in broken
    assert {row["table"] for row in rows} == set(STAGES["results"]), "the tables after it were looked at, too"


@pytest.mark.parametrize("stage", CHAINS["join"])
def test_gates__that_stop_a_run_say_so_whatever_becomes_of_its_report(
    stage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object) -> None:
        raise DataRefusedError("a rule does not hold")

    def break_(*_: object) -> None:
        raise ZeroDivisionError("of a broken table")

    monkeypatch.setattr(quality, "check_quality", stop)
    monkeypatch.setattr("epsjoin.report.publish.publish", break_)
    with pytest.raises(DataRefusedError, match="a rule does not hold"):
        quality.check(None, stage)
    said = capsys.readouterr()
    assert ("ZeroDivisionError: of a broken table" in said.err) == (stage == "results")
    assert ("there is no report" in said.out) == (stage == "results"), "before the join there is none to make"


def test_rules__every_one_has_its_broken_table() -> None:
    assert sorted(changes_that_break()) == sorted(RULES)


@pytest.mark.parametrize("key", sorted(RULES), ids="-".join)
def test_rule__finds_what_breaks_it_by_either_engine(
    broken: dict[Rule, pa.Table],
    by_spark: Answers,
    by_driver: Answers,
    judged: dict[Rule, Outcome],
    key: Rule,
) -> None:
    (name, rule), of_rule, answer = key, RULES[key], by_spark[key]
    assert by_driver[key] == answer
    contract = replace(load_table(CONTRACTS, name, SOURCE), key=(), rules=(of_rule,))
    counted = measure_rows(broken[key], contract)  # of rules that rows break one by one
    assert counted.get(rule, Measured(answer)).number == answer
    found = judged[key]
    assert (found.severity, found.success) == (of_rule.severity, False)
