"""Ways in which ``pairs`` may be wrong."""

from __future__ import annotations

import math

from tests.spark.checks.mutations.tables import ALL_POINTS, POINT, Change, Seen, Tables


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


PAIRS: dict[Change, Seen] = {
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
}
