"""Of every rule of a contract, how its table is broken, and the rule with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.tiny import RUN

BEFORE = "2023-05-31"
Frames = dict[str, DataFrame]
Change = Callable[[Frames], DataFrame]
Rule = tuple[str, str]
"""A table and a rule of its contract."""


def changes_that_break(spark: SparkSession) -> dict[Rule, Change]:
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
