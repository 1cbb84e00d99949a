"""Quality gates: what a run leaves passes; every expectation of every contract finds what breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import quality
from epsjoin.contracts.odcs import Column as Contracted
from epsjoin.contracts.odcs import load_source, load_table
from epsjoin.contracts.row_rules import range_words
from epsjoin.errors import DataRefusedError
from epsjoin.lake import schemas, slices, uris
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.pipeline import STAGES
from epsjoin.spark import scan
from epsjoin.spark.checks.quality import (
    Outcome,
    check_quality,
    column_expectations,
    rules_of,
    validate,
    validate_columns,
    validate_rules,
)
from epsjoin.spark.job import Job
from tests.spark.conftest import REPO, STEPS, JobMaker, copy_of, new_job
from tests.tiny import RUN, coordinate, key

TABLES = [name for stage in STAGES.values() for name in stage]
ROWS = "id,x,y\n" + "".join(f"{i},{i % 12}.5,{i // 12 % 3}\n" for i in range(60)) + "60,40,40\n61,n/a,0\n"
Frames = dict[str, DataFrame]
Change = Callable[[Frames], DataFrame]
CONTRACTS = REPO / "data_contracts"
SOURCE = load_source(CONTRACTS, "navaids")
RULES = {(name, rule.name): rule for name in TABLES for rule in load_table(CONTRACTS, name, SOURCE).rules}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """A run with clusters of all roles, noise, and a quarantined row."""
    place = tmp_path_factory.mktemp("chain")
    (place / "snapshot.csv").write_text(ROWS)
    columns = [key(), coordinate("x"), coordinate("y")]
    params = {"eps": 1.0, "min_pts": 9, "lof_k": 3}
    job = new_job(spark, place, columns, params=params, max_quarantine_share=0.5, interval="day")
    for step in STEPS.values():
        step(job)
    return job


@pytest.fixture
def job(chain: Job, tmp_path: Path) -> Job:
    return copy_of(chain, tmp_path / "copy")


@pytest.fixture(scope="module")
def broken_by() -> dict[tuple[str, str], Change]:
    """Of every rule of a contract: the table with something in it that breaks the rule."""

    def where(name: str, condition: Column, column: str, value: Any) -> Change:
        def change(frames: Frames) -> DataFrame:
            new = value if isinstance(value, Column) else F.lit(value)
            return frames[name].withColumn(column, F.when(condition, new).otherwise(F.col(column)))

        return change

    def without(name: str, condition: str) -> Change:
        return lambda frames: frames[name].where(f"NOT ({condition})")

    def also(name: str, **values: Any) -> Change:
        def add(frames: Frames) -> DataFrame:
            row = frames[name].limit(1)
            for column, value in values.items():
                row = row.withColumn(column, F.lit(value).cast(frames[name].schema[column].dataType))
            return frames[name].unionByName(row)

        return add

    always, first = F.lit(True), F.col("id") == 0
    return {
        ("snapshots", "rows_add_up"): where("snapshots", always, "rows_read", F.col("rows_read") + 1),
        ("snapshots", "quarantine_has_what_was_put_there"): where(
            "snapshots", always, "rows_quarantined", F.col("rows_quarantined") + 1
        ),
        ("snapshots", "nothing_was_quarantined"): lambda frames: frames["snapshots"],
        ("points", "points_has_what_was_read"): without("points", "id = 0"),
        ("points", "there_are_points"): without("points", "true"),
        ("epsilon", "one_row"): also("epsilon"),
        ("epsilon", "all_points_were_counted"): where("epsilon", always, "n_points", F.col("n_points") - 1),
        ("epsilon", "the_fit_is_straight"): lambda frames: frames["epsilon"].withColumns(
            {"method": F.lit("neighbours"), "r_squared": F.lit(0.5)}
        ),
        ("join_plan", "one_row"): also("join_plan"),
        ("join_plan", "eps_is_that_of_epsilon"): where("join_plan", always, "eps", 1.5),
        ("join_plan", "pairs_are_as_expected"): where("join_plan", always, "expected_pairs", 1e6),
        ("replicas", "every_point_has_a_row"): without("replicas", "id = 7"),
        ("replicas", "every_row_is_a_point"): where("replicas", first, "id", -7),
        ("pairs", "left_is_below_right"): also("pairs", left_id=9, right_id=8),
        ("pairs", "distance_is_within_eps"): also("pairs", distance=1.001),
        ("pairs", "left_is_a_point"): also("pairs", left_id=-9),
        ("pairs", "right_is_a_point"): also("pairs", right_id=1000),
        ("clusters", "every_point_has_a_label"): without("clusters", "id = 60"),
        ("clusters", "every_label_is_of_a_point"): also("clusters", id=1000, degree=1),
        ("clusters", "degree_is_the_number_of_pairs"): where(
            "clusters", first, "degree", F.col("degree") + 1
        ),
        ("clusters", "noise_is_in_no_cluster"): where("clusters", F.col("id") == 60, "cluster_id", 5),
        ("clusters", "core_points_have_more_pairs_than_others"): where(
            "clusters", F.col("role") == "core", "degree", 2
        ),
        ("clusters", "a_cluster_is_named_by_a_core_point_of_its_own"): where(
            "clusters", F.col("role") == "core", "cluster_id", 60
        ),
        ("clusters", "not_all_points_are_in_one_cluster"): lambda frames: frames["clusters"].withColumns(
            {"cluster_id": F.lit(1).cast("long"), "role": F.lit("core")}
        ),
        ("outliers", "every_point_has_a_score"): without("outliers", "id = 60"),
        ("outliers", "ranks_are_one_to_n"): where("outliers", F.col("rank") == 3, "rank", 4),
        ("outliers", "noise_is_that_of_clusters"): where("outliers", first, "degree", F.col("degree") + 1),
        ("outliers", "all_k_distances_are_known_or_none"): where(
            "outliers", first, "k_distance", F.lit(None).cast("double")
        ),
    }


@pytest.fixture(scope="module")
def frames(chain: Job) -> Frames:
    """The tables in memory, since rules read them again and again."""
    stored = {name: scan.read(chain.spark, chain.lake, Slice(name, RUN)) for name in TABLES}
    return {name: chain.spark.createDataFrame(f.collect(), f.schema) for name, f in stored.items()}


def failing(outcomes: list[Outcome]) -> set[str]:
    return {outcome.expectation for outcome in outcomes if not outcome.success}


def test_gates__pass_what_a_run_leaves(job: Job) -> None:
    counters = {stage: check_quality(job, stage) for stage in STAGES}
    assert [found["errors"] for found in counters.values()] == [0, 0]
    assert counters["input"]["warnings"] == 1
    rows = slices.read_slice(job.lake, Slice("quality", RUN)).to_pylist()
    assert {row["table"] for row in rows} == set(TABLES), "the second stage leaves the first one's slices"
    assert len(rows) == sum(found["expectations"] for found in counters.values())
    warnings = [(row["expectation"], row["severity"], row["observed"]) for row in rows if not row["success"]]
    assert warnings == [("nothing_was_quarantined", "warning", "1")]


def test_columns__a_validated_table_is_not_persisted(job: Job) -> None:
    job.spark.catalog.clearCache()  # of what other tests may have kept
    validate_columns(scan.read(job.spark, job.lake, Slice("points", RUN)), job.lake.contract("points"))
    assert job.spark._jsparkSession.sharedState().cacheManager().isEmpty()


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


@pytest.mark.parametrize("stage", STAGES)
def test_gates__that_stop_a_run_say_so_whatever_becomes_of_its_report(
    stage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object) -> None:
        raise DataRefusedError("a rule does not hold")

    def break_(*_: object) -> None:
        raise ZeroDivisionError("of a broken table")

    monkeypatch.setattr(quality, "check_quality", stop)
    monkeypatch.setattr(quality, "publish", break_)
    with pytest.raises(DataRefusedError, match="a rule does not hold"):
        quality.check(None, stage)
    said = capsys.readouterr()
    assert ("ZeroDivisionError: of a broken table" in said.err) == (stage == "results")
    assert ("there is no report" in said.out) == (stage == "results"), "before the join there is none to make"


def test_rules__every_one_has_its_broken_table(broken_by: dict[tuple[str, str], Change]) -> None:
    assert sorted(broken_by) == sorted(RULES)


@pytest.mark.parametrize(("name", "rule"), sorted(RULES))
def test_rule__finds_what_breaks_it(
    frames: Frames, broken_by: dict[tuple[str, str], Change], name: str, rule: str
) -> None:
    for table, frame in frames.items():
        frame.createOrReplaceTempView(table)
    of_rule = RULES[name, rule]
    alone = replace(load_table(CONTRACTS, name, SOURCE), key=(), rules=(of_rule,))
    (found,) = validate_rules(broken_by[name, rule](frames), alone)
    assert (found.expectation, found.severity, found.success) == (rule, of_rule.severity, False)


@pytest.mark.parametrize("name", [*TABLES, "quality", "job_metrics"])
def test_columns__each_expectation_finds_what_breaks_it(
    make_job: JobMaker, spark: SparkSession, name: str
) -> None:
    """The same key twice, values below and above a range, other or missing values; other columns, types."""
    lake = make_job([key(), coordinate("x")]).lake
    contract = replace(lake.contract(name), rules=())
    kinds = {column.name: schemas.to_ddl([column]).split()[-1] for column in lake.schema(name)}
    odd = spark.range(2).select(*(_odd(c).cast(kinds[c.name]).alias(c.name) for c in contract.columns))
    missing = spark.range(1).select(*(F.lit(None).cast(k).alias(n) for n, k in kinds.items()))
    found = failing(validate(odd.union(missing), contract))
    others = missing.select(
        *(F.lit(None).cast("decimal(5,2)").alias(n) for n in kinds), F.lit(1).alias("more")
    )
    outcomes = validate(others, contract)
    assert all(
        o.observed.startswith("not asked") for o in outcomes if o.expectation.startswith("rows differ")
    )
    found |= failing(outcomes)
    ranged = [c for c in contract.columns if c.minimum is not None or c.maximum is not None]
    if above := [c for c in ranged if c.maximum is not None or c.type == "double"]:
        frame = odd.select(
            *(_above(c).cast(kinds[c.name]).alias(c.name) if c in above else c.name for c in contract.columns)
        )
        assert {range_words(c) for c in above} <= failing(validate_columns(frame, contract))
    of_columns = {each.name for each in column_expectations(contract)}
    assert found == of_columns | {rule.name for rule in rules_of(contract)}


def _odd(column: Contracted) -> Column:
    if column.values:
        return F.lit("another")
    if column.minimum is not None:
        return F.lit(column.minimum - 1)
    return F.lit(column.maximum + 1) if column.maximum is not None else F.lit("0")


def _above(column: Contracted) -> Column:
    """More than the range has: to Spark, NaN is."""
    return F.lit("NaN") if column.type == "double" else F.lit(column.maximum + 1)
