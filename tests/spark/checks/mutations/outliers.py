"""Ways in which ``outliers`` may be wrong."""

from __future__ import annotations

import math

from tests.spark.checks.mutations.tables import ALL_POINTS, POINT, Change, Row, Seen, Tables


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


OUTLIERS: dict[Change, Seen] = {
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
