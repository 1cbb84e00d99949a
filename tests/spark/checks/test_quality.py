"""Quality gates: what a run leaves passes; every expectation of every contract finds what breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import quality
from epsjoin.contracts.expected import COLUMNS
from epsjoin.contracts.sources import load_source
from epsjoin.contracts.tables import load_table
from epsjoin.errors import DataRefusedError
from epsjoin.lake import delta_log, parquet, slices, targets, uris
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.measure import Measured, measure_rows
from epsjoin.lake.questions import Stored
from epsjoin.pipeline import CHAINS, STAGES
from epsjoin.spark import scan
from epsjoin.spark.checks import measuring
from epsjoin.spark.checks.judge import judge
from epsjoin.spark.checks.measuring import ask_driver, ask_spark
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.job import Job
from tests.spark.conftest import REPO, STEPS, copy_of, new_job
from tests.tiny import RUN, coordinate, key

TABLES = [name for stage in CHAINS["join"] for name in STAGES[stage]]
BEFORE = "2023-05-31"
ROWS = "id,x,y\n" + "".join(f"{i},{i % 12}.5,{i // 12 % 3}\n" for i in range(60)) + "60,40,40\n61,n/a,0\n"
Frames = dict[str, DataFrame]
Change = Callable[[Frames], DataFrame]
CONTRACTS = REPO / "data_contracts"
SOURCE = load_source(CONTRACTS, "navaids")
RULES = {(name, rule.name): rule for name in TABLES for rule in load_table(CONTRACTS, name, SOURCE).rules}


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
def broken_by(spark: SparkSession) -> dict[tuple[str, str], Change]:
    """Of every rule of a contract: the table with something in it that breaks the rule."""

    def where(name: str, condition: Column, column: str, value: Any) -> Change:
        def change(frames: Frames) -> DataFrame:
            new = value if isinstance(value, Column) else F.lit(value)
            return frames[name].withColumn(column, F.when(condition, new).otherwise(F.col(column)))

        return change

    def without(name: str, condition: str) -> Change:
        return lambda frames: frames[name].where(f"NOT ({condition})")

    def also(name: str, /, **values: Any) -> Change:
        def add(frames: Frames) -> DataFrame:
            row = frames[name].limit(1)
            for column, value in values.items():
                row = row.withColumn(column, F.lit(value).cast(frames[name].schema[column].dataType))
            return frames[name].unionByName(row)

        return add

    def changed(**values: Any) -> Change:
        """A record that differs, where none does."""
        row = {"run": RUN, "against": BEFORE, "id": 0, "what": "updated", "moved": False}
        row |= {"columns": "[]", "before": "{}", "now": "{}", **values}
        return lambda frames: frames["changes"].unionByName(
            spark.createDataFrame([row], frames["changes"].schema)
        )

    def counted(value: str, points: int) -> Change:
        """The values of a column, where none is counted; the run before had one of them."""
        row = {"run": RUN, "column_name": "type", "value": value, "points": points}
        return lambda frames: spark.createDataFrame([row], frames["value_counts"].schema)

    always, first = F.lit(True), F.col("id") == 0
    of_noise = F.col("cluster_id") == -1
    nothing, one_more = F.lit(None), F.col("members") + 1
    return {
        ("snapshots", "rows_add_up"): where("snapshots", always, "rows_read", F.col("rows_read") + 1),
        ("snapshots", "quarantine_has_what_was_put_there"): where(
            "snapshots", always, "rows_quarantined", F.col("rows_quarantined") + 1
        ),
        ("snapshots", "nothing_was_quarantined"): lambda frames: frames["snapshots"],
        ("guard", "nothing_was_unusual"): where("guard", always, "verdict", "warned"),
        ("digests", "every_point_has_a_row"): without("digests", "id = 0"),
        ("digests", "every_row_is_a_point"): where("digests", first, "id", -7),
        ("value_counts", "every_point_is_counted"): counted("VOR", 60),
        ("value_counts", "no_value_unseen_for_w_runs"): counted("NDB", 61),
        ("points", "points_has_what_was_read"): without("points", "id = 0"),
        ("points", "there_are_points"): without("points", "true"),
        ("epsilon", "one_row"): also("epsilon"),
        ("epsilon", "all_points_were_counted"): where("epsilon", always, "n_points", F.col("n_points") - 1),
        ("epsilon", "the_fit_is_straight"): lambda frames: frames["epsilon"].withColumns(
            {"method": F.lit("neighbours"), "r_squared": F.lit(0.5)}
        ),
        ("join_plan", "one_row"): also("join_plan"),
        ("join_plan", "eps_is_that_of_epsilon"): where("join_plan", always, "eps", 1.5),
        ("join_plan", "an_increment_has_an_earlier_base"): where("join_plan", always, "base", "9999-01-01"),
        ("join_plan", "pairs_are_as_expected"): where("join_plan", always, "expected_pairs", 1e6),
        ("join_plan", "all_points_were_joined_lately"): where("join_plan", always, "generation", 31),
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
        ("changes", "records_before_are_those_of_updated_and_deleted"): changed(
            what="inserted", columns=None
        ),
        ("changes", "records_now_are_those_of_updated_and_inserted"): changed(what="deleted", columns=None),
        ("changes", "columns_are_those_of_updated_records"): changed(columns=None),
        ("changes", "only_updated_records_have_moved"): changed(
            what="inserted", moved=True, columns=None, before=None
        ),
        ("changes", "records_now_are_points"): changed(id=-7),
        ("changes", "all_rows_are_against_one_run"): changed(against=RUN),
        ("cluster_flows", "records_are_in_one_of_the_runs_at_least"): also(
            "cluster_flows", cluster_before=None, cluster_id=None, cores=0
        ),
        ("cluster_flows", "there_is_nothing_before_the_first_run"): where(
            "cluster_flows", always, "against", nothing
        ),
        ("cluster_flows", "core_points_are_members"): where("cluster_flows", always, "cores", one_more),
        ("cluster_flows", "only_records_of_clusters_are_core_points"): where(
            "cluster_flows", of_noise, "cores", 1
        ),
        ("cluster_flows", "flows_end_in_all_points"): where("cluster_flows", of_noise, "members", one_more),
        ("cluster_flows", "flows_make_up_the_clusters"): where("cluster_flows", ~of_noise, "cores", 1),
        ("cluster_flows", "what_comes_and_goes_is_inserted_and_deleted"): where(
            "cluster_flows", of_noise, "cluster_before", nothing
        ),
        ("cluster_flows", "all_rows_are_against_one_run"): where(
            "cluster_flows", of_noise, "against", "2023-05-30"
        ),
        ("cluster_names", "noise_has_no_name"): where("cluster_names", always, "name", -1),
        ("cluster_names", "records_come_from_somewhere"): where("cluster_names", always, "stayed", 1),
        ("cluster_names", "core_points_are_records"): where(
            "cluster_names", always, "core", F.col("size") + 1
        ),
        ("cluster_names", "no_two_clusters_have_one_name"): also("cluster_names", cluster_id=9),
        ("cluster_names", "every_cluster_has_a_name"): without("cluster_names", "true"),
        ("cluster_names", "every_name_is_of_a_cluster"): also("cluster_names", cluster_id=1000, name=1000),
        ("cluster_names", "names_tell_what_the_flows_do"): where("cluster_names", always, "from_noise", 0),
        ("cluster_names", "no_name_begins_after_its_run"): where("cluster_names", always, "runs", 2),
        ("cluster_events", "splits_and_mergers_have_another_cluster"): where(
            "cluster_events", always, "event", "merged"
        ),
        ("cluster_events", "a_cluster_is_not_its_own_other"): where(
            "cluster_events", always, "other", F.col("name")
        ),
        ("cluster_events", "only_what_is_no_more_ends"): where("cluster_events", always, "ends", True),
        ("cluster_events", "a_name_that_ends_has_no_cluster"): where("cluster_events", always, "ends", True),
        ("cluster_events", "a_name_that_does_not_end_has_a_cluster"): where(
            "cluster_events", always, "name", -5
        ),
        ("cluster_events", "what_is_born_or_split_off_has_a_new_name"): where(
            "cluster_events", always, "name", -5
        ),
        ("cluster_events", "every_new_name_is_born_or_split_off"): without("cluster_events", "true"),
        ("cluster_events", "all_rows_are_against_one_run"): where("cluster_events", always, "against", RUN),
    }


@pytest.fixture(scope="module")
def frames(chain: Job) -> Frames:
    """The tables in memory, since rules read them again and again."""
    stored = {name: scan.read(chain.spark, chain.lake, Slice(name, RUN)) for name in TABLES}
    frames = {name: chain.spark.createDataFrame(f.collect(), f.schema) for name, f in stored.items()}
    before = {"run": RUN, "column_name": "type", "value": "VOR", "points": 61}
    frames["value_counts_before"] = chain.spark.createDataFrame([before], frames["value_counts"].schema)
    return frames


@pytest.fixture(scope="module")
def stored(frames: Frames, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stored]:
    """The same tables in files that no lake knows, which may break every rule."""
    folder = tmp_path_factory.mktemp("stored")
    return {name: store(frame, folder / name) for name, frame in frames.items()}


def store(frame: DataFrame, place: Path) -> Stored:
    write_deltalake(str(place), frame.toArrow())
    return Stored(place.as_uri(), 0, {"run": RUN})


def quality_rows(job: Job) -> list[dict[str, Any]]:
    return slices.read_slice(job.lake, Slice("quality", RUN)).to_pylist()


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
        versions.append(slices.version_and_files(job.lake, Slice("quality", RUN))[0])
    assert versions[1] == versions[0] + 1


def ignoring_fingerprints(find: Callable[..., Any]) -> Callable[..., Any]:
    """Outliers of the clusters before they were broken are as good."""
    return lambda lake, where: find(lake, replace(where, fingerprint=""))


@pytest.mark.long  # two gates by Spark; that both engines answer every rule alike is tried below
def test_gates__say_the_same_of_what_spark_reads(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken rows in several files; slices are too large for the driver as soon as they have a row.

    Then the driver reads no page and answers no rule; otherwise it does all, and no session is asked for.
    """
    monkeypatch.setattr(slices, "version_and_files", ignoring_fingerprints(slices.version_and_files))
    where = Fingerprints(job.lake, RUN).slice("clusters")
    rows = slices.read_slice(job.lake, where).drop_columns(["run"]).to_pylist()
    for row in rows[5:12]:
        row |= {"degree": -row["id"], "role": f"role {row['id']}"}
    broken = slices.table_of(job.lake, "clusters", [*rows, *rows[:3]])
    into = replace(targets.target_of(job.lake, where), constraints=())
    delta_log.commit(job.lake, {where: [into.write([broken.slice(i, 9)]) for i in range(0, len(broken), 9)]})
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
        monkeypatch.setattr("epsjoin.spark.stored.MAX_HERE_BYTES", limit)
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


def test_rules__every_one_has_its_broken_table(broken_by: dict[tuple[str, str], Change]) -> None:
    assert sorted(broken_by) == sorted(RULES)


@pytest.mark.parametrize(("name", "rule"), sorted(RULES))
def test_rule__finds_what_breaks_it_by_either_engine(
    frames: Frames,
    stored: dict[str, Stored],
    broken_by: dict[tuple[str, str], Change],
    tmp_path: Path,
    name: str,
    rule: str,
) -> None:
    of_rule = RULES[name, rule]
    query = {(name, rule): of_rule.query.replace("${object}", name)}
    broken = broken_by[name, rule](frames)
    types = {
        table: {c.name: c.type for c in load_table(CONTRACTS, table.removesuffix("_before"), SOURCE).columns}
        for table in frames
    }
    answer = ask_spark({**frames, name: broken}, query)
    assert ask_driver({**stored, name: store(broken, tmp_path / name)}, types, query) == answer
    contract = replace(load_table(CONTRACTS, name, SOURCE), key=(), rules=(of_rule,))
    counted = measure_rows(broken.toArrow(), contract)  # of rules that rows break one by one
    assert counted.get(rule, Measured(answer[name, rule])).number == answer[name, rule]
    contract = replace(contract, columns=())
    measured = {COLUMNS: Measured(0), rule: Measured(answer[name, rule])}
    found = judge([contract], {name: measured})[name][-1]
    assert (found.expectation, found.severity, found.success) == (rule, of_rule.severity, False)
