"""Ways in which the tables of a run may be wrong, and who must see each: the gate, or ``verify``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from epsjoin.spark.checks.verify import Request

Row = dict[str, Any]
Change = Callable[["Tables"], None]

ONE_POINT = Request(points=1, cells=0, scores=0)
"""What all rows show, while one point of 700 is looked at by brute force."""
ALL_POINTS = Request(points=700, cells=0, scores=700)


class Tables:
    """The rows of ``points``, ``pairs``, ``clusters`` and ``outliers``, to be changed."""

    def __init__(self, pairs: list[Row], clusters: list[Row], outliers: list[Row]) -> None:
        self.pairs, self.clusters = pairs, clusters
        self.outliers = sorted(outliers, key=lambda row: row["rank"])
        self.labels = {row["id"]: row for row in clusters}
        self.scores = {row["id"]: row for row in outliers}
        self.near: dict[int, dict[int, float]] = {id_: {} for id_ in self.labels}
        for row in pairs:
            self.near[row["left_id"]][row["right_id"]] = row["distance"]
            self.near[row["right_id"]][row["left_id"]] = row["distance"]

    def ids(self, role: str) -> list[int]:
        return sorted(id_ for id_, row in self.labels.items() if row["role"] == role)

    def cluster(self, name: int) -> list[Row]:
        return [row for row in self.clusters if row["cluster_id"] == name]

    def names(self) -> list[int]:
        """The clusters of several core points, the largest first."""
        cores = [self.labels[id_]["cluster_id"] for id_ in self.ids("core")]
        return sorted(
            {name for name in cores if cores.count(name) > 2}, key=lambda name: (-cores.count(name), name)
        )

    def count_degrees_anew(self) -> None:
        for row in (*self.clusters, *self.outliers):
            row["degree"] = 1 + sum(row["id"] in (pair["left_id"], pair["right_id"]) for pair in self.pairs)

    def say_noise_anew(self) -> None:
        for id_, row in self.scores.items():
            row["is_noise"] = self.labels[id_]["role"] == "noise"

    def rank_anew(self) -> None:
        def far(row: Row) -> tuple[float, float, int]:
            lof, k_distance = (math.inf if row[name] is None else row[name] for name in ("lof", "k_distance"))
            return -lof, -k_distance, row["id"]

        for rank, row in enumerate(sorted(self.outliers, key=far), start=1):
            row["rank"] = rank


def a_pair_dropped(tables: Tables) -> None:
    del tables.pairs[7]


def a_pair_dropped_with_degrees_to_fit(tables: Tables) -> None:
    """A pair of two noise points, so that no label but the degrees tells of it."""
    noise = set(tables.ids("noise"))
    at = next(
        at for at, row in enumerate(tables.pairs) if row["left_id"] in noise and row["right_id"] in noise
    )
    del tables.pairs[at]
    tables.count_degrees_anew()


def a_pair_doubled(tables: Tables) -> None:
    tables.pairs.append(dict(tables.pairs[7]))


def a_pair_doubled_in_place_of_another(tables: Tables) -> None:
    """So that the number of rows stays."""
    tables.pairs[7] = dict(tables.pairs[8])


def a_pair_in_the_wrong_order(tables: Tables) -> None:
    row = tables.pairs[7]
    row["left_id"], row["right_id"] = row["right_id"], row["left_id"]


def a_pair_with_itself(tables: Tables) -> None:
    tables.pairs[7]["right_id"] = tables.pairs[7]["left_id"]


def a_pair_too_far(tables: Tables) -> None:
    left, right = next(
        (left, right)
        for left in tables.near
        for right in tables.near
        if left < right not in tables.near[left]
    )
    tables.pairs.append(tables.pairs[0] | {"left_id": left, "right_id": right, "distance": 2.5})
    tables.count_degrees_anew()


def a_distance_beyond_eps(tables: Tables) -> None:
    tables.pairs[7]["distance"] = math.nextafter(3.0, 4.0)


def a_distance_off_by_one_bit(tables: Tables) -> None:
    row = next(row for row in tables.pairs if row["distance"] == 1.0)
    row["distance"] = math.nextafter(1.0, 2.0)


def two_clusters_merged(tables: Tables) -> None:
    one, other = sorted(tables.names()[:2])
    for row in tables.cluster(other):
        row["cluster_id"] = one


def a_cluster_merged_with_a_core_point_alone(tables: Tables) -> None:
    cores = set(tables.ids("core"))
    alone = next(id_ for id_ in sorted(cores)[::-1] if not cores.intersection(tables.near[id_]))
    for row in tables.cluster(alone):
        row["cluster_id"] = min(name for name in tables.names())


def a_cluster_split(tables: Tables) -> None:
    """Its core points with larger ids than one of them are another cluster of that name."""
    name = tables.names()[0]
    cores = [row for row in tables.cluster(name) if row["role"] == "core"]
    second = sorted(row["id"] for row in cores)[1]
    for row in cores:
        row["cluster_id"] = min(max(row["id"], name), second) if row["id"] >= second else name


def a_cluster_named_by_another_core_point(tables: Tables) -> None:
    rows = tables.cluster(tables.names()[0])
    new = sorted(row["id"] for row in rows if row["role"] == "core")[1]
    for row in rows:
        row["cluster_id"] = new


def a_cluster_named_by_a_number_of_its_own(tables: Tables) -> None:
    for row in tables.cluster(tables.names()[0]):
        row["cluster_id"] = 1_000_000


def two_clusters_with_each_others_names(tables: Tables) -> None:
    one, other = tables.names()[:2]
    rows = tables.cluster(one), tables.cluster(other)
    for row in rows[0]:
        row["cluster_id"] = other
    for row in rows[1]:
        row["cluster_id"] = one


def a_core_point_called_border(tables: Tables) -> None:
    id_ = next(id_ for id_ in tables.ids("core") if tables.labels[id_]["cluster_id"] != id_)
    tables.labels[id_]["role"] = "border"


def a_border_point_called_core(tables: Tables) -> None:
    tables.labels[tables.ids("border")[0]]["role"] = "core"


def a_border_point_in_a_cluster_without_a_core_point_near(tables: Tables) -> None:
    id_ = tables.ids("border")[0]
    near = {tables.labels[other]["cluster_id"] for other in tables.near[id_]}
    tables.labels[id_]["cluster_id"] = next(name for name in tables.names() if name not in near)


def a_border_point_in_the_cluster_of_a_farther_core_point(tables: Tables) -> None:
    cores = set(tables.ids("core"))
    for id_ in tables.ids("border"):
        own = tables.labels[id_]["cluster_id"]
        others = {tables.labels[each]["cluster_id"] for each in cores.intersection(tables.near[id_])} - {own}
        if others:
            tables.labels[id_]["cluster_id"] = min(others)
            return
    raise AssertionError("no border point is between two clusters")


def a_border_point_called_noise(tables: Tables) -> None:
    tables.labels[tables.ids("border")[0]].update(role="noise", cluster_id=-1)
    tables.say_noise_anew()


def noise_called_border(tables: Tables) -> None:
    tables.labels[tables.ids("noise")[0]].update(role="border", cluster_id=tables.names()[0])
    tables.say_noise_anew()


def noise_in_a_cluster(tables: Tables) -> None:
    tables.labels[tables.ids("noise")[0]]["cluster_id"] = tables.names()[0]


def a_degree_off_in_both_tables(tables: Tables) -> None:
    for of in (tables.labels, tables.scores):
        of[tables.ids("noise")[0]]["degree"] += 1


def a_label_missing(tables: Tables) -> None:
    tables.clusters.remove(tables.labels[tables.ids("noise")[0]])


def a_label_twice(tables: Tables) -> None:
    tables.clusters.append(dict(tables.labels[tables.ids("noise")[0]]))


def a_label_of_no_point(tables: Tables) -> None:
    tables.clusters.append(tables.labels[tables.ids("noise")[0]] | {"id": 5000, "degree": 1})


def a_score_missing(tables: Tables) -> None:
    del tables.outliers[-1]


def a_score_twice(tables: Tables) -> None:
    tables.outliers.append(tables.outliers[-1] | {"rank": len(tables.outliers) + 1})


def a_score_of_no_point(tables: Tables) -> None:
    tables.outliers[-1]["id"] = 5000


def a_degree_of_a_score_off(tables: Tables) -> None:
    tables.outliers[7]["degree"] += 1


def noise_of_a_score_off(tables: Tables) -> None:
    tables.outliers[7]["is_noise"] = not tables.outliers[7]["is_noise"]


def two_ranks_swapped(tables: Tables) -> None:
    one, other = tables.outliers[7:9]
    one["rank"], other["rank"] = other["rank"], one["rank"]


def ranks_of_as_far_points_swapped(tables: Tables) -> None:
    """The same factor and k-distance, so that the ids decide."""
    one, other = next(
        (one, other)
        for one, other in zip(tables.outliers, tables.outliers[1:], strict=False)
        if (one["lof"], one["k_distance"]) == (other["lof"], other["k_distance"])
    )
    one["rank"], other["rank"] = other["rank"], one["rank"]


def a_rank_twice(tables: Tables) -> None:
    tables.outliers[7]["rank"] = tables.outliers[8]["rank"]


def ranks_from_zero(tables: Tables) -> None:
    for row in tables.outliers:
        row["rank"] -= 1


def a_lof_off_by_much(tables: Tables) -> None:
    tables.outliers[50]["lof"] *= 2


def a_lof_off_by_one_bit(tables: Tables) -> None:
    row = tables.outliers[50]
    row["lof"] = math.nextafter(row["lof"], math.inf)
    tables.rank_anew()


def a_lof_off_with_ranks_to_fit(tables: Tables) -> None:
    tables.outliers[50]["lof"] *= 2
    tables.rank_anew()


def a_lof_null(tables: Tables) -> None:
    tables.outliers[0]["lof"] = None
    tables.rank_anew()


def a_lof_nan(tables: Tables) -> None:
    tables.outliers[0]["lof"] = math.nan


def k_distance_of(tables: Tables, is_within: bool) -> Row:
    """A score of a point whose k-th neighbour is within eps, or is not; of rank 50 or more."""
    return next(row for row in tables.outliers[50:] if (row["degree"] > 3) == is_within and row["k_distance"])


def a_k_distance_off_by_one_bit_within_eps(tables: Tables) -> None:
    row = k_distance_of(tables, is_within=True)
    row["k_distance"] = math.nextafter(row["k_distance"], 0.0)
    tables.rank_anew()


def a_k_distance_off_by_one_bit_beyond_eps(tables: Tables) -> None:
    row = k_distance_of(tables, is_within=False)
    row["k_distance"] = math.nextafter(row["k_distance"], math.inf)
    tables.rank_anew()


def a_k_distance_beyond_eps_within(tables: Tables) -> None:
    k_distance_of(tables, is_within=False)["k_distance"] = 2.0
    tables.rank_anew()


def a_k_distance_null(tables: Tables) -> None:
    tables.outliers[0]["k_distance"] = None


def all_scores_null(tables: Tables) -> None:
    for row in tables.outliers:
        row["lof"] = row["k_distance"] = None
    tables.rank_anew()


@dataclass(frozen=True)
class Seen:
    """Who sees a change: the rules of the gate that do not hold, and what ``verify`` says (a pattern).

    Without a rule, the gate lets the change pass: only ``verify`` sees it.
    """

    rules: tuple[str, ...]
    said: str
    request: Request = ONE_POINT


POINT = r"point \d+: "
MUTATIONS: dict[Change, Seen] = {
    a_pair_dropped: Seen(
        ("degree_is_the_number_of_pairs",), POINT + r"degree \d+ is stored, its pairs make \d+"
    ),
    a_pair_dropped_with_degrees_to_fit: Seen((), r"pair \(\d+, \d+\) at .* is missing", ALL_POINTS),
    a_pair_doubled: Seen(
        ("degree_is_the_number_of_pairs", "rows differ in left_id, right_id"),
        r"pair \(\d+, \d+\) is stored 2 times",
    ),
    a_pair_doubled_in_place_of_another: Seen(
        ("degree_is_the_number_of_pairs", "rows differ in left_id, right_id"),
        r"pair \(\d+, \d+\) is stored 2 times",
    ),
    a_pair_in_the_wrong_order: Seen(
        ("left_is_below_right",), r".*1 pair where left_id is not below right_id"
    ),
    a_pair_with_itself: Seen(
        ("left_is_below_right", "degree_is_the_number_of_pairs"),
        r".*1 pair where left_id is not below right_id",
    ),
    a_pair_too_far: Seen((), r"pair \(\d+, \d+\) is stored at 2.5, its distance is"),
    a_distance_beyond_eps: Seen((), r".*1 pair where the distance is not from 0 to eps 3.0"),
    a_distance_off_by_one_bit: Seen(
        (), r"pair \(\d+, \d+\) is stored at 1.0000000000000002, its distance is 1.0"
    ),
    two_clusters_merged: Seen((), r"cluster \d+ is 2 clusters: no chain of core points connects \d+ and \d+"),
    a_cluster_merged_with_a_core_point_alone: Seen(
        (), POINT + r"it is core in cluster \d+, but no other core point is within eps"
    ),
    a_cluster_split: Seen((), r"pair \(\d+, \d+\): both are core points, but in the clusters \d+ and \d+"),
    a_cluster_named_by_another_core_point: Seen((), POINT + r"core point in cluster \d+, a larger id"),
    a_cluster_named_by_a_number_of_its_own: Seen(
        ("a_cluster_is_named_by_a_core_point_of_its_own",),
        POINT + "cluster 1000000 has no core point of that id",
    ),
    two_clusters_with_each_others_names: Seen(
        ("a_cluster_is_named_by_a_core_point_of_its_own",),
        POINT + r"cluster \d+ has no core point of that id",
    ),
    a_core_point_called_border: Seen(
        ("core_points_have_more_pairs_than_others",), POINT + r"role border is stored, its degree is \d+"
    ),
    a_border_point_called_core: Seen(
        ("core_points_have_more_pairs_than_others",), POINT + r"role core is stored, its degree is \d+"
    ),
    a_border_point_in_a_cluster_without_a_core_point_near: Seen(
        (), POINT + r"cluster \d+ is stored, its nearest core point \d+ is in \d+"
    ),
    a_border_point_in_the_cluster_of_a_farther_core_point: Seen(
        (), POINT + r"cluster \d+ is stored, its nearest core point \d+ is in \d+"
    ),
    a_border_point_called_noise: Seen((), POINT + r"it is noise, but core point \d+ is within eps"),
    noise_called_border: Seen((), POINT + "it is border, but no core point is within eps"),
    noise_in_a_cluster: Seen(("noise_is_in_no_cluster",), POINT + r"role noise in cluster \d+"),
    a_degree_off_in_both_tables: Seen(
        ("degree_is_the_number_of_pairs",), POINT + r"degree \d+ is stored, its pairs make \d+"
    ),
    a_label_missing: Seen(
        ("every_point_has_a_label", "flows_end_in_all_points"), POINT + "it has no row in clusters"
    ),
    a_label_twice: Seen(
        ("rows differ in id", "flows_end_in_all_points"), POINT + "clusters has it more than once"
    ),
    a_label_of_no_point: Seen(
        ("every_label_is_of_a_point", "flows_end_in_all_points"),
        "point 5000: it is in pairs or clusters, but not in points",
    ),
    a_score_missing: Seen(("every_point_has_a_score",), POINT + "it has no row in outliers"),
    a_score_twice: Seen(("rows differ in id",), r"outliers has 2 rows of id \d+"),
    a_score_of_no_point: Seen(
        ("every_score_is_of_a_point", "every_point_has_a_score"),
        "point 5000: it is in outliers, but not in points",
    ),
    a_degree_of_a_score_off: Seen(
        ("noise_is_that_of_clusters",), POINT + r"outliers has degree \d+, clusters has \d+"
    ),
    noise_of_a_score_off: Seen(
        ("noise_is_that_of_clusters",), POINT + "outliers says .* whether it is noise"
    ),
    two_ranks_swapped: Seen((), r"points \d+ and \d+ have the ranks 8 and 9, but"),
    ranks_of_as_far_points_swapped: Seen((), r"points \d+ and \d+ have the ranks \d+ and \d+, but"),
    a_rank_twice: Seen(("ranks_are_one_to_n",), "outliers has 2 rows of rank 9"),
    ranks_from_zero: Seen(
        ("rank is at least 1", "ranks_are_one_to_n"), POINT + "rank 0 is stored, ranks are 1 to 700"
    ),
    a_lof_off_by_much: Seen((), r"points \d+ and \d+ have the ranks 50 and 51, but"),
    a_lof_off_by_one_bit: Seen((), POINT + "lof .* is stored, it is", ALL_POINTS),
    a_lof_off_with_ranks_to_fit: Seen((), POINT + "lof .* is stored, it is", ALL_POINTS),
    a_lof_null: Seen((), POINT + "lof is null, though k_distance is known"),
    a_lof_nan: Seen(("lof is at least 0",), POINT + "a score is NaN"),
    a_k_distance_off_by_one_bit_within_eps: Seen((), POINT + "k_distance .* is stored, of its pairs"),
    a_k_distance_off_by_one_bit_beyond_eps: Seen((), POINT + "k_distance .* is stored, it is", ALL_POINTS),
    a_k_distance_beyond_eps_within: Seen((), POINT + r"k_distance is 2.0 of degree \d, eps is 3.0 and k 3"),
    a_k_distance_null: Seen(
        ("all_k_distances_are_known_or_none",), POINT + "k_distance is null, k is 3 and there are 700 points"
    ),
    all_scores_null: Seen((), POINT + "k_distance is null, k is 3 and there are 700 points"),
}
"""Every way, with who sees it."""
