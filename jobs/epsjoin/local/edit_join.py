"""What joins by edit distance have in common: equal records once, candidates by a join of points, a budget.

Records are trees or strings. Each has a point of counts, and one edit moves the point by a bounded Manhattan
distance: pairs of points within k times that are the candidates (ADR 53).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from epsjoin.errors import BudgetError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.arguments import check_count
from epsjoin.local.groups import Groups, equal_pairs, expand
from epsjoin.local.join.arrays import iter_join, iter_self_join
from epsjoin.local.sweep.pairs import Pairs, collect
from epsjoin.local.sweep.sweeping import Counters, add_counts, check_counters, check_n_jobs

MAX_PAIRS = 10**8
"""Default maximum number of pairs."""

Refine = Callable[[Iterator[Pairs]], Iterator[Pairs]]
"""From batches of candidates, whose distances mean nothing, to pairs of different records within k edits."""


class EditJoin(NamedTuple):
    """The checked arguments of a join by edit distance; made by :meth:`check`.

    Parameters
    ----------
    of : what is joined, in the plural, for messages.
    k : maximum number of edits, or cost of them.
    max_pairs : maximum number of pairs in the result.
    n_threads : number of threads.
    counters : the work is added to them.
    """

    of: str
    k: int
    max_pairs: int
    n_threads: int
    counters: Counters

    @classmethod
    def check(
        cls, of: str, k: int, max_pairs: int, n_jobs: int | None, counters: dict[str, int] | None
    ) -> EditJoin:
        """Check the arguments that both joins have in common.

        Raises
        ------
        ArgumentError
            An argument has a wrong type or value.
        """
        threads, counted = check_n_jobs(n_jobs), check_counters(counters)
        k = check_count("k", k, 0, math.inf)  # joins lower it to the largest possible distance
        return cls(of, k, check_count("max_pairs", max_pairs, 0), threads, counted)

    def refuse_more(self, n_pairs: int) -> None:
        """Refuse this number of pairs, if it is more than allowed.

        Raises
        ------
        BudgetError
            It is.
        """
        if n_pairs > self.max_pairs:
            raise BudgetError(
                f"there are at least {n_pairs:,} pairs, and max_pairs = {self.max_pairs:,}; a smaller k "
                f"gives fewer, and so does leaving out all but one of {self.of} that are equal"
            )

    def find(
        self,
        left: Groups,
        right: Groups | None,
        points: tuple[Floats, Floats],
        per_edit: int,
        refine: Refine,
        *,
        has_more_at_0: bool = False,
    ) -> Pairs:
        """Find all pairs within k edits, sorted by (left, right).

        Parameters
        ----------
        left, right : groups of equal records; ``right`` is None where one side is joined with itself.
        points : of the first record of each group, of both sides, whole numbers; the same array twice for one
            side.
        per_edit : by how much one edit moves a point at most, in Manhattan distance.
        refine : compares the candidates, which are numbers of groups.
        has_more_at_0 : whether records of different groups may be at distance 0.

        Raises
        ------
        BudgetError
            There are more than ``max_pairs`` pairs.
        """

        def batches() -> Iterator[Pairs]:
            equal = equal_pairs(left, right)
            n_pairs = len(equal.left)
            yield equal
            if self.k or has_more_at_0:
                eps = max(0.5, float(per_edit * self.k))  # 0.5: equal points, as these are whole numbers
                sizes, other_sizes = left.sizes, (right or left).sizes
                for found in refine(self._candidates(points, right is None, eps)):
                    n_pairs += int((sizes[found.left] * other_sizes[found.right]).sum())
                    self.refuse_more(n_pairs)
                    yield expand(left, right, found)
            add_counts(self.counters, pairs=n_pairs)

        return collect(batches(), (len(left.rows), len((right or left).rows)))

    def _candidates(self, points: tuple[Floats, Floats], is_one_side: bool, eps: float) -> Iterator[Pairs]:
        if is_one_side:
            return iter_self_join(points[0], eps, "manhattan", n_jobs=self.n_threads)
        return iter_join(*points, eps, "manhattan", n_jobs=self.n_threads)
