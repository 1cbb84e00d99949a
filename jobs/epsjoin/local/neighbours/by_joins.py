"""The k nearest of many queries by joins: which eps to take, and what a join with it finds.

A join's eps is chosen from the k-distances of a sample of the queries. A heap per query keeps the k nearest
of what the join finds; the pairs themselves are not kept.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.neighbours import knn
from epsjoin.kernels.neighbours.heaps import NearestLists, keep_nearest_in_rows
from epsjoin.local.join.arrays import iter_join, iter_self_join
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.nearest import SearchOptions
from epsjoin.local.neighbours.product_choice import work_of
from epsjoin.local.scale import WeightedMetric
from epsjoin.local.sweep.sweeping import add_counts

_SAMPLE_POINTS, _JOINED_POINTS = 1 << 12, 1 << 14
"""Number of points with which an eps is chosen; number of points that are joined with the queries to see what
a join costs."""

# What a way costs, in units of work: a coordinate of a point that the tree compares with a query. The
# numbers are those of real and of made sets (ADR 18).
_WORK_PER_DISTANCE = 2
"""A join's work for each distance that it computes, in the same way: it reads points one by one."""
_QUERY_WORK, _ROUND_WORK = 1 << 13, 1 << 29
"""A join's other work for each query, and before the first one."""

_MAX_PAIRS_PER_NEIGHBOUR = 8
"""Maximum expected number of pairs of a round, per open query and requested neighbour."""

_FINISHED_FRACTIONS = (1, 15 / 16, 7 / 8, 3 / 4, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)
"""Fractions of the open queries that a round may finish; each stands for one eps to choose from."""

# Distances are rounded roots. So eps is a little larger than the k-distance that it has to reach, and a query
# whose k-th neighbour is within a rounding error of eps stays open.
_EPS_SLACK, _CERTAIN = 1 + 4e-12, 1 - 1e-12


class PlannedJoin(NamedTuple):
    """A join: its eps, the fraction of queries that it will finish, the work of its distances for each."""

    eps: float
    finished: float
    work: float


def is_worth_it(n_queries: int, finished: float, work: float, join_work: float) -> bool:
    """Whether a join costs less than other work for the queries that it will finish."""
    return n_queries * finished * work > _ROUND_WORK + n_queries * (_QUERY_WORK + join_work)


class Joins(NamedTuple):
    """The k nearest found so far of all queries, and joins that find more.

    Parameters
    ----------
    queries, points, lists, metric, options : see :func:`epsjoin.local.neighbours.search.fill_lists`.
    is_own : whether the queries are the points, and none finds itself.
    random : draws the points with which a join is planned.
    """

    queries: Floats
    points: Floats
    is_own: bool
    lists: NearestLists
    metric: Metric
    options: SearchOptions
    random: np.random.Generator

    def plan(self, sample: Ints, kept: Ints | None) -> PlannedJoin | None:
        """Choose the eps of a join; None where no number between 0 and infinity can be one.

        Parameters
        ----------
        sample : finished queries, a uniform sample of the queries that were open before.
        kept : the rows of the points that are not surplus; None: all.
        """
        k_distances = np.sort(self.lists.distances[sample, 0])
        places = [math.ceil(fraction * sample.size) - 1 for fraction in _FINISHED_FRACTIONS]
        radius = np.unique(k_distances[places]) * _EPS_SLACK
        radius = radius[[self._is_threshold(each) for each in radius]]
        if not radius.size:
            return None
        rows = np.arange(len(self.points)) if kept is None else kept
        queries, n = self.queries[sample], len(rows)
        rows = self.random.choice(rows, min(n, _JOINED_POINTS), replace=False)
        few, many = self.points[rows[:_SAMPLE_POINTS]], self.points[rows]
        counts = knn.count_within(self.metric.decision(math.inf), queries, few, radius)
        add_counts(self.options.counters, comparisons=len(queries) * len(few))
        per_query = counts * (n / len(few) / len(queries))
        finished = np.searchsorted(k_distances, radius, side="right") / len(queries)
        k = self.lists.ids.shape[1]
        is_small = per_query <= _MAX_PAIRS_PER_NEIGHBOUR * k
        best = int(np.flatnonzero(is_small)[-1]) if is_small.any() else int(np.argmin(per_query / finished))
        eps, work = float(radius[best]), {"distance_computations": 0}
        for _ in iter_join(queries, many, eps, **self._metric_of_joins(), counters=work):
            pass  # only its work counts
        decisions = work["distance_computations"] * (n / len(many) / len(queries))
        work_each = work_of(_WORK_PER_DISTANCE * decisions, self.points.shape[1])
        return PlannedJoin(eps, float(finished[best]), work_each)

    def run(self, rows: Ints, eps: float, kept: Ints | None) -> Ints:
        """Find the points within eps of these queries, keep the k nearest of each; return the open queries.

        Parameters
        ----------
        rows : the open queries.
        kept : see :meth:`plan`.
        """
        sizes, ids, distances = self.lists
        sizes[rows] = 0
        is_finished = np.ones(len(self.queries), dtype=np.bool_)
        is_finished[rows] = False
        n_jobs, progress, counters, _ = self.options
        how: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress, **self._metric_of_joins()}
        n_pairs = 0
        if self.is_own and kept is None and 2 * len(rows) > len(self.queries):
            # each pair comes once and serves both ends
            for left, right, distance in iter_self_join(self.points, eps, **how):
                self._keep(left, right, distance, is_finished)
                self._keep(right, left, distance, is_finished)
                n_pairs += left.size
        else:
            others = self.points if kept is None else self.points[kept]
            for left, right, distance in iter_join(self.queries[rows], others, eps, **how):
                found = rows[left], right if kept is None else kept[right], distance
                if self.is_own:
                    is_other = found[0] != found[1]
                    found = found[0][is_other], found[1][is_other], distance[is_other]
                self._keep(*found, is_finished)
                n_pairs += left.size
        add_counts(counters, rounds=1, pairs=n_pairs)
        # a list's farthest entry stands first
        is_finished[rows] = (sizes[rows] == ids.shape[1]) & (distances[rows, 0] <= eps * _CERTAIN)
        return rows[~is_finished[rows]]

    def _keep(self, query: Ints, point: Ints, distance: Floats, is_finished: Bools) -> None:
        entries = query, read_only(point), read_only(distance)
        keep_nearest_in_rows(entries, is_finished, self.lists)

    def _metric_of_joins(self) -> dict[str, Any]:
        """The metric as joins take it."""
        if isinstance(self.metric, WeightedMetric):
            return {"metric": self.metric.plain, "weights": self.metric.weights}
        return {"metric": self.metric}

    def _is_threshold(self, eps: float) -> bool:
        try:
            self.metric.check_eps(float(eps))
        except ArgumentError:
            return False
        return True
