"""Of every rule of a contract, how its table is broken, and the rule with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.tiny import RUN

BEFORE = "2023-05-31"
Row = dict[str, Any]
Rows = dict[str, list[Row]]
"""The rows of each table."""
Change = Callable[[Rows], list[Row]]
Condition = Callable[[Row], bool]
Rule = tuple[str, str]
"""A table and a rule of its contract."""


def changes_that_break() -> dict[Rule, Change]:
    """Of every rule of a contract: the rows of its table with something in them that breaks the rule."""

    def where(name: str, condition: Condition, /, **values: Any) -> Change:
        """Rows with other values, which may be functions of a row."""

        def change(rows: Rows) -> list[Row]:
            return [row | new_values(row) if condition(row) else row for row in rows[name]]

        def new_values(row: Row) -> Row:
            return {column: value(row) if callable(value) else value for column, value in values.items()}

        return change

    def without(name: str, condition: Condition) -> Change:
        return lambda rows: [row for row in rows[name] if not condition(row)]

    def also(name: str, /, **values: Any) -> Change:
        return lambda rows: [*rows[name], rows[name][0] | values]

    def changed(**values: Any) -> Change:
        """A record that differs, where none does."""
        row = {"run": RUN, "against": BEFORE, "id": 0, "what": "updated", "moved": False}
        row |= {"columns": "[]", "before": "{}", "now": "{}", **values}
        return lambda rows: [*rows["changes"], row]

    def counted(value: str, points: int) -> Change:
        """The values of a column, where none is counted; the run before had one of them."""
        return lambda _: [{"run": RUN, "column_name": "type", "value": value, "points": points}]

    def plus_one(column: str) -> Callable[[Row], Any]:
        return lambda row: row[column] + 1

    def has(column: str, *values: Any) -> Condition:
        return lambda row: row[column] in values

    def always(_: Row) -> bool:
        return True

    def of_clusters(row: Row) -> bool:
        return row["cluster_id"] not in (None, -1)

    first, of_noise, core = has("id", 0), has("cluster_id", -1), has("role", "core")
    return {
        ("snapshots", "rows_add_up"): where("snapshots", always, rows_read=plus_one("rows_read")),
        ("snapshots", "quarantine_has_what_was_put_there"): where(
            "snapshots", always, rows_quarantined=plus_one("rows_quarantined")
        ),
        ("snapshots", "nothing_was_quarantined"): lambda rows: rows["snapshots"],
        ("guard", "nothing_was_unusual"): where("guard", always, verdict="warned"),
        ("digests", "every_point_has_a_row"): without("digests", first),
        ("digests", "every_row_is_a_point"): where("digests", first, id=-7),
        ("value_counts", "every_point_is_counted"): counted("VOR", 60),
        ("value_counts", "no_value_unseen_for_w_runs"): counted("NDB", 61),
        ("points", "points_has_what_was_read"): without("points", first),
        ("points", "there_are_points"): without("points", always),
        ("epsilon", "one_row"): also("epsilon"),
        ("epsilon", "all_points_were_counted"): where(
            "epsilon", always, n_points=lambda row: row["n_points"] - 1
        ),
        ("epsilon", "the_fit_is_straight"): where("epsilon", always, method="neighbours", r_squared=0.5),
        ("join_plan", "one_row"): also("join_plan"),
        ("join_plan", "eps_is_that_of_epsilon"): where("join_plan", always, eps=1.5),
        ("join_plan", "an_increment_has_an_earlier_base"): where("join_plan", always, base="9999-01-01"),
        ("join_plan", "pairs_are_as_expected"): where("join_plan", always, expected_pairs=1e6),
        ("join_plan", "all_points_were_joined_lately"): where("join_plan", always, generation=31),
        ("replicas", "every_point_has_a_row"): without("replicas", has("id", 7)),
        ("replicas", "every_row_is_a_point"): where("replicas", first, id=-7),
        ("pairs", "left_is_below_right"): also("pairs", left_id=9, right_id=8),
        ("pairs", "distance_is_within_eps"): also("pairs", distance=1.001),
        ("pairs", "left_is_a_point"): also("pairs", left_id=-9),
        ("pairs", "right_is_a_point"): also("pairs", right_id=1000),
        ("clusters", "every_point_has_a_label"): without("clusters", has("id", 60)),
        ("clusters", "every_label_is_of_a_point"): also("clusters", id=1000, degree=1),
        ("clusters", "degree_is_the_number_of_pairs"): where("clusters", first, degree=plus_one("degree")),
        ("clusters", "noise_is_in_no_cluster"): where("clusters", has("id", 60), cluster_id=5),
        ("clusters", "core_points_have_more_pairs_than_others"): where("clusters", core, degree=2),
        ("clusters", "a_cluster_is_named_by_a_core_point_of_its_own"): where("clusters", core, cluster_id=60),
        ("clusters", "not_all_points_are_in_one_cluster"): where(
            "clusters", always, cluster_id=1, role="core"
        ),
        ("outliers", "every_point_has_a_score"): without("outliers", has("id", 60)),
        ("outliers", "every_score_is_of_a_point"): where("outliers", first, id=-7),
        # one rank twice and one beyond n: as many ranks are missing as the largest is too large
        ("outliers", "ranks_are_one_to_n"): lambda rows: [
            row | {"rank": {3: 2, len(rows["outliers"]): row["rank"] + 1}.get(row["rank"], row["rank"])}
            for row in rows["outliers"]
        ],
        ("outliers", "noise_is_that_of_clusters"): where("outliers", first, degree=plus_one("degree")),
        ("outliers", "all_k_distances_are_known_or_none"): where("outliers", first, k_distance=None),
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
            "cluster_flows", always, against=None
        ),
        ("cluster_flows", "core_points_are_members"): where(
            "cluster_flows", always, cores=plus_one("members")
        ),
        ("cluster_flows", "only_records_of_clusters_are_core_points"): where(
            "cluster_flows", of_noise, cores=1
        ),
        ("cluster_flows", "flows_end_in_all_points"): where(
            "cluster_flows", of_noise, members=plus_one("members")
        ),
        ("cluster_flows", "flows_make_up_the_clusters"): where("cluster_flows", of_clusters, cores=1),
        ("cluster_flows", "what_comes_and_goes_is_inserted_and_deleted"): where(
            "cluster_flows", of_noise, cluster_before=None
        ),
        ("cluster_flows", "all_rows_are_against_one_run"): where(
            "cluster_flows", of_noise, against="2023-05-30"
        ),
        ("cluster_names", "noise_has_no_name"): where("cluster_names", always, name=-1),
        ("cluster_names", "records_come_from_somewhere"): where("cluster_names", always, stayed=1),
        ("cluster_names", "core_points_are_records"): where("cluster_names", always, core=plus_one("size")),
        ("cluster_names", "no_two_clusters_have_one_name"): also("cluster_names", cluster_id=9),
        ("cluster_names", "every_cluster_has_a_name"): without("cluster_names", always),
        ("cluster_names", "every_name_is_of_a_cluster"): also("cluster_names", cluster_id=1000, name=1000),
        ("cluster_names", "names_tell_what_the_flows_do"): where("cluster_names", always, from_noise=0),
        ("cluster_names", "no_name_begins_after_its_run"): where("cluster_names", always, runs=2),
        ("cluster_events", "splits_and_mergers_have_another_cluster"): where(
            "cluster_events", always, event="merged"
        ),
        ("cluster_events", "a_cluster_is_not_its_own_other"): where(
            "cluster_events", always, other=lambda row: row["name"]
        ),
        ("cluster_events", "only_what_is_no_more_ends"): where("cluster_events", always, ends=True),
        ("cluster_events", "a_name_that_ends_has_no_cluster"): where("cluster_events", always, ends=True),
        ("cluster_events", "a_name_that_does_not_end_has_a_cluster"): where(
            "cluster_events", always, name=-5
        ),
        ("cluster_events", "what_is_born_or_split_off_has_a_new_name"): where(
            "cluster_events", always, name=-5
        ),
        ("cluster_events", "every_new_name_is_born_or_split_off"): without("cluster_events", always),
        ("cluster_events", "all_rows_are_against_one_run"): where("cluster_events", always, against=RUN),
    }
