"""A tree of boxes over points, and the search for the k nearest points of queries, in threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import BY_AXIS, EUCLIDEAN
from epsjoin.kernels.ids import GOLDEN, are_row_numbers
from epsjoin.kernels.neighbours.boxes import BoxTree
from epsjoin.kernels.neighbours.grow import fill_inner, grow_below, move_rows, order_by_leaf
from epsjoin.kernels.neighbours.heaps import NearestLists
from epsjoin.kernels.neighbours.knn import find_surplus
from epsjoin.kernels.neighbours.own import search_own
from epsjoin.kernels.neighbours.plane import search_plane
from epsjoin.kernels.neighbours.tree import MAX_IN_ORDER, search_tree
from epsjoin.kernels.sorting import order_keys, run_starts
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.lent import LentPoints, by_row
from epsjoin.local.scratch import MakeArray
from epsjoin.local.sweep.threads import in_any_order

_QUERIES_AT_ONCE = 4096
"""Number of queries that a thread searches for before it takes the next ones."""

_MIN_SHARED = 5
"""In the plane, queries share boxes from this number of neighbours on: with fewer, it costs what it saves."""
_MIN_SHARED_NEIGHBOURS = 1 << 12
"""And only if points times neighbours exceed this: in a small tree a query looks at few boxes anyway."""
_POINTS_PER_QUERY = 2
"""And only up to this number of points per query: with more, the bounds from other queries are too wide."""

_MAX_OWN_IN_PLANE = 12
"""Number of neighbours up to which points of the plane go down by leaves: with more, sharing costs less."""

LEAF_POINTS = 32
"""Maximum number of points of a leaf: they are compared side by side."""

_COPIED_POINTS = 1 << 12
"""Maximum number of points that are copied while a tree grows: so many stay in a core's cache."""


class PointTree(NamedTuple):
    """A tree of boxes over points that have names.

    Parameters
    ----------
    boxes : the tree.
    names : (n,) int64, the names of its points, in the order of its leaves.
    metric : the metric of the distances.
    first_equal : for each point that was given, -1, or for a surplus one the first point equal to it; None
        where the tree has all points. See :func:`find_surplus_rows`.
    """

    boxes: BoxTree
    names: Ints
    metric: Metric
    first_equal: Ints | None = None

    @classmethod
    def grow(
        cls,
        points: Floats | LentPoints,
        names: Ints,
        most: int,
        metric: Metric,
        n_jobs: int = 1,
        make: MakeArray = np.zeros,
    ) -> PointTree:
        """Grow the tree of points.

        Parameters
        ----------
        points : (n, d) float64, at least one, for which the metric is defined; not modified. If they are
            lent, the tree takes their memory, unless the metric embeds them or leaves are full of equal ones.
        names : (n,) int64, ascending, what searches call the points.
        most : number of equal points that a query may need. If leaves are full of equal points, only those
            with the smallest names stay; all others are equally far from everything.
        metric : the metric of the distances.
        n_jobs : number of threads. The tree is the same for any number.
        make : makes the arrays that have rows of coordinates.

        Notes
        -----
        O(n log n). The tree takes the bytes of the points if they are not lent, 16 for each, and for boxes a
        quarter of the embedded points' bytes at most.
        """
        boxes, first_equal = grow_boxes(points, metric, n_jobs, make), None
        if _has_leaf_of_equal(boxes):
            del boxes
            rows = by_row(points)
            first_equal = find_surplus_rows(rows, most)
            kept = np.flatnonzero(first_equal < 0)
            few = np.take(rows, kept, axis=0, out=make((len(kept), rows.shape[1])))
            boxes, names = grow_boxes(few, metric, n_jobs, make), names[kept]
        in_order = boxes.order if are_row_numbers(names) else read_only(names[boxes.order])
        return cls(widen(boxes, metric), in_order, metric, first_equal)

    def search(
        self,
        queries: Floats,
        itself: Ints,
        rows: Ints,
        lists: NearestLists,
        n_jobs: int = 1,
        show: Callable[[float], None] | None = None,
    ) -> int:
        """Put the points into the lists of some queries, where they are among the nearest.

        Parameters
        ----------
        queries : (q, d) float64.
        itself : (q,) int64, the name that a query must not find.
        rows : the queries to search for; those that follow one another should be near one another.
        lists : of all queries; modified. They may have entries of other points. Of equally far points, the
            smallest names stay.
        n_jobs : number of threads.
        show : called with the fraction of the queries that is done.

        Returns
        -------
        int
            The number of points that were compared.
        """
        itself = read_only(itself)
        decision, norm = self.metric.decision(math.inf), self.metric.norm
        is_shared = self._is_shared(rows, lists)

        def work(some: Ints) -> int:
            mine = read_only(queries[some])
            of = itself, read_only(some), lists
            if is_shared:
                return search_plane(decision, self.boxes, self.names, mine, *of)
            embedded = read_only(self.metric.embed(mine))
            return search_tree(decision, norm, self.boxes, self.names, mine, embedded, *of)

        return _count_in_batches(work, rows, n_jobs, show)

    def search_own(
        self,
        points: Floats | None,
        rows: Ints,
        lists: NearestLists,
        n_jobs: int = 1,
        show: Callable[[float], None] | None = None,
    ) -> int:
        """Find the k nearest other points of some of the tree's points, whose names are their rows.

        Parameters
        ----------
        points : all points; None where the tree leaves none out.
        rows : the points to search for, each once, in any order.
        lists : of all points; those of ``rows`` are filled anew.
        n_jobs, show : see :meth:`search`.

        Returns
        -------
        int
            The number of points that were compared.
        """
        is_asked = np.zeros(len(lists.sizes), np.bool_)
        is_asked[rows] = True
        positions = np.flatnonzero(is_asked[self.names])
        compared = 0
        if points is not None and len(positions) < len(rows):
            is_asked[self.names] = False
            rest = np.flatnonzero(is_asked)
            lists.sizes[rest] = 0
            compared = self.search(points, np.arange(len(points)), rest, lists, n_jobs)

        def work(some: Ints) -> int:
            return search_own(self.boxes, self.names, read_only(some), lists)

        return compared + _count_in_batches(work, positions, n_jobs, show)

    def _is_shared(self, rows: Ints, lists: NearestLists) -> bool:
        """Whether queries that lie together share the boxes that they look at, because that costs less."""
        n, k = len(self.names), lists.ids.shape[1]
        return (
            self.metric.decision(math.inf).metric == EUCLIDEAN
            and self.boxes.places.shape[1] == 2
            and _MIN_SHARED <= k <= MAX_IN_ORDER
            and k < n <= _POINTS_PER_QUERY * len(rows)
            and n * k > _MIN_SHARED_NEIGHBOURS
            and not lists.sizes[rows].any()
        )


def has_own_search(metric: Metric, d: int, k: int) -> bool:
    """Whether :meth:`PointTree.search_own` finds k neighbours, and :meth:`PointTree.search` costs no less."""
    most = _MAX_OWN_IN_PLANE if d == 2 else MAX_IN_ORDER
    return metric.decision(math.inf).metric == EUCLIDEAN and k <= most


def _count_in_batches(
    work: Callable[[Ints], int], queries: Ints, n_jobs: int, show: Callable[[float], None] | None
) -> int:
    """Add up the results of a few queries at a time, in threads."""
    begins = range(0, len(queries), _QUERIES_AT_ONCE)
    n_done = 0

    def count(_: int) -> None:
        nonlocal n_done
        n_done += 1
        if show:
            show(n_done / len(begins))

    return sum(
        in_any_order(begins, lambda begin: work(queries[begin : begin + _QUERIES_AT_ONCE]), n_jobs, count)
    )


def count_leaves(n: int) -> int:
    """Number of leaves of the tree of n points: a power of two."""
    return 1 << max(0, (max(1, n) - 1) // LEAF_POINTS).bit_length()


def make_lists(n: int, k: int, make: MakeArray = np.zeros) -> NearestLists:
    """Make empty lists of n queries, for k neighbours each."""
    return NearestLists(np.zeros(n, np.int64), make((n, k), np.int64), make((n, k)))


def order_by_place(points: Floats, metric: Metric) -> Ints:
    """Order rows so that those that follow one another are near one another."""
    order = np.arange(len(points))
    n_leaves = count_leaves(len(points))
    order_by_leaf(read_only(metric.embed(points)), n_leaves, 0, n_leaves - 1, order, np.empty(len(points)))
    return order


def find_surplus_rows(points: Floats, most: int) -> Ints:
    """Find the surplus rows: those with at least ``most`` equal rows before them.

    No query finds a surplus row, because ``most`` rows before it are exactly as far, whatever the metric.

    Returns
    -------
    (n,) int64, for a surplus row the first row equal to it, for all others -1.
    """
    hashes = np.zeros(len(points), dtype=np.uint64)
    for column in points.T:
        hashes ^= (column + 0.0).view(np.uint64)  # -0.0 becomes 0.0, its equal
        hashes *= GOLDEN
        hashes ^= hashes >> np.uint64(32)
    order = order_keys(hashes)
    start = np.append(run_starts(hashes), len(points))
    return find_surplus(points, order, start, most)


def grow_boxes(
    points: Floats | LentPoints, metric: Metric, n_jobs: int = 1, make: MakeArray = np.zeros
) -> BoxTree:
    """Grow the tree of all points; parameters and cost are those of :meth:`PointTree.grow`."""
    given = by_row(points)
    embedded = metric.embed(given)
    is_one = embedded is given
    lent = points if is_one and isinstance(points, LentPoints) else None
    embedded, rows = read_only(embedded), read_only(given)
    n, n_leaves = len(given), count_leaves(len(given))
    values = np.empty(n)
    tree = BoxTree(
        np.arange(n),
        make(given.shape) if lent is None else given,
        *(make((2 * n_leaves - 1, embedded.shape[1])) for _ in range(2)),
    )
    is_by_axis = metric.decision(math.inf).metric in BY_AXIS
    # levels that one thread halves, then levels that each thread halves before it copies points
    levels = (n_jobs - 1).bit_length(), (max(1, n - 1) // _COPIED_POINTS).bit_length()
    few, many = (min(n_leaves, 1 << level) - 1 for level in (levels[0], max(levels)))
    order_by_leaf(embedded, n_leaves, 0, few, tree.order, values)

    def order(node: int) -> None:
        order_by_leaf(embedded, n_leaves, node, many, tree.order, values)

    def grow(node: int) -> None:
        n_below = (many + 1) // (few + 1)
        first = (node + 1) * n_below - 1
        for each in range(first, first + n_below):
            grow_below(embedded, rows, is_one, lent is not None, is_by_axis, each, tree, values)

    shares = range(few, 2 * few + 1)
    in_any_order(shares, order, n_jobs)
    if lent is not None:
        move_rows(given, tree.order)
        lent.move_into(tree)
    in_any_order(shares, grow, n_jobs)
    fill_inner(tree.low, tree.high, 0, many)
    return BoxTree(read_only(tree.order), read_only(tree.places), read_only(tree.low), read_only(tree.high))


def widen(tree: BoxTree, metric: Metric) -> BoxTree:
    """Make boxes larger by what the rounding of embedded coordinates may hide."""
    slack = metric.slack(np.maximum(np.abs(tree.low), np.abs(tree.high)))
    return (
        tree
        if slack is None
        else tree._replace(low=read_only(tree.low - slack), high=read_only(tree.high + slack))
    )


def _has_leaf_of_equal(tree: BoxTree) -> bool:
    """Whether all points of some leaf are equal, as where many points are."""
    n_leaves = (len(tree.low) + 1) // 2
    first = n_leaves - 1
    return n_leaves > 1 and bool((tree.low[first:] == tree.high[first:]).all(axis=1).any())
