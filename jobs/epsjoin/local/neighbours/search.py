"""The exact k nearest neighbours of many points: by a tree of boxes, a scan, or joins, whichever costs least.

1. *Surplus* points are left out: of more than k equal points only the k with the smallest rows can be
   neighbours. As queries they find what one of them finds.
2. A few of the open queries are searched for in a tree of boxes over the points. That finishes them, and it
   shows how many points the tree compares with a query, and how the k-distances are distributed.
3. In many dimensions, by a metric for which products of matrices give distances, products with all points are
   one more way (:mod:`epsjoin.local.neighbours.by_product`); if a tree of few points shows that they cost
   less, they are taken before any other (:mod:`epsjoin.local.neighbours.product_choice`).
4. Where a join of all open queries would cost more than that, they are all searched for in the tree, or
   compared with all points if the tree can leave few of them out.
5. Otherwise a join (:mod:`epsjoin.local.neighbours.by_joins`) finds all points within an *eps* of the open
   queries: the largest one for which it stays small. A query whose k-th neighbour lies within eps is
   *finished*: all other points are farther. The others are in sparser regions; for them step 2 begins again.

References
----------
Dittrich's dissertation, section 3.5: a k-nearest-neighbour join "by an individually computed eps for each
point (or subspace)". Departure: not one eps per point, but one per round for all open queries, so that any
eps-join can be used; and none where a tree is cheaper.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import plain, read_only
from epsjoin.kernels.arrays import Floats, Ints, Points
from epsjoin.kernels.distances import BY_AXIS, Decision
from epsjoin.kernels.ids import are_row_numbers
from epsjoin.kernels.neighbours import knn
from epsjoin.kernels.neighbours.heaps import NearestLists, sort_nearest_in_rows
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.by_joins import Joins, is_worth_it
from epsjoin.local.neighbours.by_product import count_products, search_by_product
from epsjoin.local.neighbours.lent import LentPoints, by_row
from epsjoin.local.neighbours.nearest import KNearest, SearchOptions
from epsjoin.local.neighbours.product_choice import (
    SAMPLE_QUERIES,
    SCAN_FRACTION,
    may_be_cheaper,
    may_multiply,
    plan_before_tree,
    plan_if_cheaper,
    work_of,
)
from epsjoin.local.neighbours.tree import PointTree, has_own_search, make_lists, order_by_place
from epsjoin.local.plan.product import ProductPlan
from epsjoin.local.progress import Progress, ProgressArgument
from epsjoin.local.sweep.sweeping import add_counts

_FEW_ROWS, _FEW_COMPARISONS = 64, 100_000
"""Number of queries or points, and of comparisons, up to which each query is compared with each point: a tree
would take longer to grow."""
_MANY_DIMENSIONS, _FEW_OF_TWO_TABLES = 8, 1 << 18
"""The number of comparisons up to which this holds in so many dimensions, where boxes leave few points out;
but not for the neighbours of points among themselves, which a tree finds faster than those of other
queries."""

_SHORT_LIST = 8
"""Number of neighbours up to which so few comparisons are: longer lists change more often in a scan."""

_MAX_TERMS_AT_ONCE = 1 << 26
"""Maximum number of coordinates that a scan compares in one call: tenths of a second."""

_FEW_DIMENSIONS = 6
"""Number of dimensions up to which a tree leaves most points out: no sample has to show whether a scan costs
less."""

_SAMPLE_QUERIES = 192
"""Number of queries that show what the tree costs."""


def find_nearest(
    queries: Points, points: Points, itself: Ints, k: int, metric: Metric, options: SearchOptions
) -> KNearest:
    """Find the k nearest points of every query.

    Parameters
    ----------
    queries, points : (q, d) and (n, d), both float64 or both float32, for which the metric is defined; this
        is not checked. If the queries are all the points, the same array is given twice.
    itself : (q,) int64, the row of the point that a query must not find; -1 for none.
    k : number of neighbours of each query; there are as many to find.
    metric : the metric of the distances.
    options : how to run.

    Notes
    -----
    Memory: the tree (:meth:`epsjoin.local.neighbours.tree.PointTree.grow`); for each query 16 bytes for each
    neighbour and some 40; the join of a round. By products, filter rows instead of the tree, and of points
    among themselves at most as much again and as the points take; otherwise float32 becomes float64.
    """
    lists = make_lists(len(queries), k, options.make)
    fill_lists(queries, points, itself, np.arange(len(queries)), lists, metric, options)
    sort_nearest_in_rows(lists.ids, lists.distances)
    return KNearest(lists.ids, lists.distances)


def fill_lists(
    queries: Points | LentPoints,
    points: Points | LentPoints,
    itself: Ints,
    rows: Ints,
    lists: NearestLists,
    metric: Metric,
    options: SearchOptions,
) -> None:
    """Find the k nearest points of some of the queries; their lists become heaps, the farthest first.

    Parameters
    ----------
    queries, points, itself, metric, options : see :func:`find_nearest`. If the queries are all the points,
        these may be lent: then a tree may take their memory.
    rows : the queries to search for, each once.
    lists : of all queries, with room for k each. Those of ``rows`` are filled anew, the others stay.
    """
    both = by_row(queries), by_row(points)
    plan = plan_before_tree(*both, rows, itself, lists.ids.shape[1], metric)
    if plan is not None:
        fill_by_product(plan, *both, rows, itself, lists, metric, options)
        return
    del both  # a tree may move the points, so that they are held only once
    search = _Search(queries, points, itself, lists, metric, options)
    if _are_few(len(rows), search.shape, search.k, search.decision, queries is points):
        search.scan(rows)
    else:
        search.run(rows)


def fill_by_product(
    plan: ProductPlan,
    queries: Points,
    points: Points,
    rows: Ints,
    itself: Ints,
    lists: NearestLists,
    metric: Metric,
    options: SearchOptions,
) -> None:
    """Find the k nearest points of some of the queries by products, as :func:`fill_lists`."""
    of = queries, points, rows, itself, lists, plan.space, metric
    products = count_products(len(rows), len(points), is_own=queries is points)
    survivors = plan.survivors * len(points) / max(1.0, products)
    search = search_by_product(*of, survivors, options.make)
    work = search.run(options.n_jobs, options.progress)
    add_counts(options.counters, products=work.products, comparisons=work.survivors)


def _as_float64(points: Points | LentPoints) -> Floats | LentPoints:
    return points if isinstance(points, LentPoints) else np.asarray(points, np.float64)


class _Copies(NamedTuple):
    """Queries whose lists are those of others, and these others; (c,) int64 both."""

    rows: Ints
    of: Ints


def _are_few(n_queries: int, shape: tuple[int, int], k: int, decision: Decision, is_one: bool) -> bool:
    """Whether a scan is sooner than a tree: not for long lists, nor by a formula that is no sum over axes."""
    if n_queries <= _FEW_ROWS:
        return True
    n, d = shape
    most = _FEW_COMPARISONS if is_one or d < _MANY_DIMENSIONS else _FEW_OF_TWO_TABLES
    is_few = n <= _FEW_ROWS or (n_queries * n <= most and k <= _SHORT_LIST)
    return is_few and decision.metric in BY_AXIS


class _Search:
    """The k nearest found so far of all queries, and three ways to find more: a tree, a join and a scan.

    Parameters
    ----------
    queries, points, itself, lists, metric, options : see :func:`fill_lists`.
    """

    def __init__(
        self,
        queries: Points | LentPoints,
        points: Points | LentPoints,
        itself: Ints,
        lists: NearestLists,
        metric: Metric,
        options: SearchOptions,
    ) -> None:
        self.is_one, self.shape = queries is points, (points.shape[0], points.shape[1])
        self._points = _as_float64(points)
        self._queries = self._points if self.is_one else _as_float64(queries)
        self.itself, self.lists = itself, lists
        self.metric, self.options, self.k = metric, options, lists.ids.shape[1]
        self.decision = metric.decision(math.inf)

    @property
    def points(self) -> Floats:
        """All points by row; use only if needed, since a tree may have taken those that are lent."""
        return by_row(self._points)

    @property
    def queries(self) -> Floats:
        """All queries by row, as :attr:`points`."""
        return by_row(self._queries)

    @cached_property
    def is_own(self) -> bool:
        """Whether the queries are all the points, none of which finds itself."""
        return self.is_one and are_row_numbers(self.itself)

    @cached_property
    def has_own_search(self) -> bool:
        """Whether a tree searches for its own points by itself."""
        return self.is_own and has_own_search(self.metric, self.shape[1], self.k)

    @cached_property
    def random(self) -> np.random.Generator:
        """Draws samples."""
        return np.random.default_rng(0)

    @cached_property
    def joins(self) -> Joins:
        """The joins of the open queries."""
        of = self.queries, self.points, self.is_own, self.lists, self.metric, self.options
        return Joins(*of, self.random)

    def run(self, rows: Ints) -> None:
        """Find the k nearest of these queries."""
        n_jobs, *_, make = self.options
        names = self.itself if self.is_own else np.arange(self.shape[0])
        # other searches ask for the queries by row
        points = self._points if self.has_own_search else self.points
        tree = PointTree.grow(points, names, self.k + 1, self.metric, n_jobs, make)
        rows, copies = self.split_copies(tree, rows)
        rows, plan = self.plan_products(tree, self.order(tree, rows))
        if plan is None:
            self.search_or_join(tree, rows)
        else:
            del tree  # its memory is needed for filter rows
            of = self.itself, self.lists, self.metric, self.options
            fill_by_product(plan, self.queries, self.points, rows, *of)
        for column in self.lists:
            column[copies.rows] = column[copies.of]

    def search_or_join(self, tree: PointTree, rows: Ints) -> None:
        """Find the k nearest of these queries by the tree, by joins or by a scan."""
        (n, d), per_query = self.shape, 0.0
        if d <= _FEW_DIMENSIONS and not self.may_join(len(rows)):
            self.search(tree, rows, self.options.progress)
            return
        kept = np.sort(tree.names) if len(tree.names) < n else None
        while len(rows) > _SAMPLE_QUERIES:
            is_sampled = np.zeros(len(rows), np.bool_)
            is_sampled[self.random.choice(len(rows), _SAMPLE_QUERIES, replace=False)] = True
            sample, rows = rows[is_sampled], rows[~is_sampled]
            per_query = self.search(tree, sample, False) / _SAMPLE_QUERIES
            work = work_of(min(per_query, SCAN_FRACTION * n), d)
            if not is_worth_it(len(rows), 1.0, work, 0.0):
                break
            planned = self.joins.plan(sample, kept)
            if planned is None or not is_worth_it(len(rows), planned.finished, work, planned.work):
                break
            rows = self.joins.run(rows, planned.eps, kept)
        if per_query > SCAN_FRACTION * n:
            self.scan(rows)
        elif len(rows):
            self.search(tree, rows, self.options.progress)

    def may_join(self, n_queries: int) -> bool:
        """Whether a join costs less if the tree compares all points with each query."""
        most = work_of(SCAN_FRACTION * self.shape[0], self.shape[1])
        return is_worth_it(n_queries, 1.0, most, 0.0)

    def split_copies(self, tree: PointTree, rows: Ints) -> tuple[Ints, _Copies]:
        """Split off queries that find what others find: surplus points, except one of each value.

        The tree has none of them, so that no query finds itself there, and equal queries find the same.
        """
        if tree.first_equal is None or not self.is_one:
            return rows, _Copies(rows[:0], rows[:0])
        value = tree.first_equal[rows]
        _, first, number = np.unique(value, return_index=True, return_inverse=True)
        is_copy = (value >= 0) & (first[number] != np.arange(len(rows)))
        return rows[~is_copy], _Copies(rows[is_copy], rows[first[number[is_copy]]])

    def search(self, tree: PointTree, rows: Ints, progress: ProgressArgument) -> int:
        """Find the k nearest of these queries by the tree; return the number of points compared."""
        with Progress(progress, "k nearest") as shown:
            how = rows, self.lists, self.options.n_jobs, shown.show
            if self.has_own_search:
                compared = tree.search_own(None if tree.first_equal is None else self.points, *how)
            else:
                self.lists.sizes[rows] = 0
                compared = tree.search(self.queries, self.itself, *how)
        add_counts(self.options.counters, comparisons=compared)
        return compared

    def order(self, tree: PointTree, rows: Ints) -> Ints:
        """Order queries so that those that follow one another are near one another."""
        if not self.is_own:
            return rows[order_by_place(self.queries[rows], self.metric)]
        is_asked = np.zeros(self.shape[0], np.bool_)
        is_asked[rows] = True
        of_tree = tree.names[is_asked[tree.names]]
        if len(of_tree) == len(rows):
            return of_tree
        is_asked[of_tree] = False  # those of surplus points remain
        return np.concatenate([of_tree, np.flatnonzero(is_asked)])

    def scan(self, rows: Ints) -> None:
        """Find the k nearest of these queries by comparing them with all points."""
        step = max(_FEW_ROWS, _MAX_TERMS_AT_ONCE // math.prod(self.shape))  # each call copies all points once
        queries, points = read_only(self.queries), read_only(self.points)
        decision, lists = plain(self.decision), plain(self.lists)
        with Progress(self.options.progress, "k nearest") as shown:
            # an interrupt from the keyboard is noticed between two calls
            for begin in range(0, len(rows), step):
                some = rows[begin : begin + step]
                knn.scan_nearest(decision, queries, some, points, self.itself, lists)
                shown.show((begin + len(some)) / len(rows))
        add_counts(self.options.counters, comparisons=len(rows) * self.shape[0])

    def plan_products(self, tree: PointTree, rows: Ints) -> tuple[Ints, ProductPlan | None]:
        """Plan products of these queries and all points, if that costs least.

        The tree finds the k nearest of some queries first, which tells its work and what products would let
        through.

        Returns
        -------
        (r,) int64, the queries that are still open, and the plan, if there is one.
        """
        if not may_multiply(self.metric, self.shape, len(rows)):
            return rows, None
        is_sampled = np.zeros(len(rows), np.bool_)
        is_sampled[self.random.choice(len(rows), SAMPLE_QUERIES, replace=False)] = True
        sample, rows = rows[is_sampled], rows[~is_sampled]
        per_query = self.search(tree, sample, False) / len(sample)
        of = len(rows), self.k, per_query, self.metric
        if not may_be_cheaper(self.shape, *of, is_own=self.is_one):
            return rows, None
        return rows, plan_if_cheaper(self.queries, self.points, sample, self.lists.distances[sample, 0], *of)
