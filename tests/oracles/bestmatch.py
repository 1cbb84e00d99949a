"""Best matches by their definition: for each row, each candidate is held against each other one.

Source: Kemper and Stegmaier, "Evaluating Bestmatch-Joins on Streaming Data" (2002), sections 2.1 to 2.3, with
the strict part of *dominates* on what a pair is worth, not on tuples. A criterion says what a pair is worth,
and whether one worth is at least as good as another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Pair = tuple[int, int]


class Criterion(NamedTuple):
    """One order of pairs: what a pair is worth, how two worths compare, and which worths are allowed.

    Parameters
    ----------
    worth : of a left row number and a right row number.
    at_least : whether the first worth is at least as good as the second.
    allowed : whether a pair of this worth is a candidate.
    number : what is reported of a worth.
    """

    worth: Callable[[int, int], Any]
    at_least: Callable[[Any, Any], bool]
    allowed: Callable[[Any], bool] = lambda _: True
    number: Callable[[Any], float] = float


def closest(distance: Callable[[int, int], float], eps: float) -> Criterion:
    """Smaller distances are better, at most eps apart."""
    return Criterion(distance, lambda x, y: x <= y, lambda x: x <= eps)


def own(value: Callable[[int, int], float]) -> Criterion:
    """Smaller values are better."""
    return Criterion(value, lambda x, y: x <= y)


def subset(left: Sequence[frozenset[int]], right: Sequence[frozenset[int]]) -> Criterion:
    """More common marks are better, in the sense of sets."""
    return Criterion(lambda i, j: left[i] & right[j], lambda x, y: y <= x, number=len)


def own_order(at_least_as_good: Callable[[Pair, Pair], bool]) -> Criterion:
    """An order of which nothing is known."""
    return Criterion(lambda i, j: (i, j), at_least_as_good, number=lambda _: math.nan)


class Best(NamedTuple):
    """What the operators return: sets of pairs, and the rows without a candidate."""

    within: dict[Pair, tuple[Any, ...]]
    for_left: set[Pair]
    for_right: set[Pair]
    inner: set[Pair]


def best_matches(n_left: int, n_right: int, criteria: Sequence[Criterion]) -> Best:
    """The candidates, and those that none of the same left row, right row, or none at all dominates."""
    within = {}
    for i in range(n_left):
        for j in range(n_right):
            worths = tuple(criterion.worth(i, j) for criterion in criteria)
            if all(c.allowed(worth) for c, worth in zip(criteria, worths, strict=True)):
                within[i, j] = worths

    def dominates(x: Pair, y: Pair) -> bool:
        pairs = list(zip(criteria, within[x], within[y], strict=True))
        is_as_good = all(c.at_least(a, b) for c, a, b in pairs)
        return is_as_good and not all(c.at_least(b, a) for c, a, b in pairs)

    def undominated(same: Callable[[Pair, Pair], bool]) -> set[Pair]:
        return {y for y in within if not any(same(x, y) and dominates(x, y) for x in within)}

    return Best(
        within,
        undominated(lambda x, y: x[0] == y[0]),
        undominated(lambda x, y: x[1] == y[1]),
        undominated(lambda _, __: True),
    )


def joined(best: Best, n_left: int, n_right: int, how: str) -> list[tuple[int, int, int]]:
    """The rows of the result as (left, right, best_for), in its order."""
    left = best.for_left if how in ("left", "outer") else best.inner if how == "inner" else set()
    right = best.for_right if how in ("right", "outer") else best.inner if how == "inner" else set()
    rows = [(i, j, ((i, j) in left) + 2 * ((i, j) in right)) for i, j in sorted(left | right)]
    if how in ("left", "outer"):
        rows += [(i, -1, 0) for i in range(n_left) if all(i != x for x, _ in best.within)]
    if how in ("right", "outer"):
        rows += [(-1, j, 0) for j in range(n_right) if all(j != y for _, y in best.within)]
    return rows
