"""The k nearest of many queries in many dimensions, by products of blocks of filter rows.

1. The products of a block of queries with all points, block by block. The points whose products are best are
   the pool of a query.
2. The distances of the k best of a pool, by the metric's formula: the farthest bounds the distance to the
   k-th nearest of all. What else of the pool may be within that bound (:mod:`epsjoin.local.product.rows`) is
   decided, too.
3. Where even the worst of a pool may be, points outside it may be as well: as where many are equally far. The
   products of these queries are made once more, and let through what may be within the bound; each list that
   is full lowers it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats, Floats32, Ints, Points
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.join.product import ProductRows
from epsjoin.kernels.neighbours.heaps import NearestLists, sort_nearest
from epsjoin.kernels.neighbours.product import decide_best, decide_pools, keep_survivors, pool_products
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.tree import make_lists
from epsjoin.local.product.blas import one_thread
from epsjoin.local.product.rows import FilteredTable, FilterSpace, filter_table, thresholds
from epsjoin.local.progress import Progress, ProgressArgument
from epsjoin.local.sweep.threads import in_order

BLOCK_ROWS = 512
"""Number of points of a block."""
QUERY_ROWS = 1024
"""Number of queries of a block: a product takes 2 MiB, which a core's cache holds."""
_MIN_QUERY_ROWS, _BLOCKS_PER_THREAD = 128, 4
"""Minimum number of queries of a block, and number of smaller blocks, so that threads have work."""
_MIN_OTHERS, _MAX_OTHERS, _ROOM = 6, 256, 1.5
"""Minimum and maximum entries of a pool beside the k best; room, as a multiple of what is expected."""


class ProductSearch(NamedTuple):
    """A search of the k nearest by products.

    Parameters
    ----------
    queries, points : filter rows; the names of queries are the rows of their lists.
    itself, lists : see :func:`epsjoin.local.neighbours.search.fill_lists`; the lists of the queries are
    empty.
    space, metric : of the filter rows.
    decision : the metric's, with an infinite bound.
    room : entries of a pool, at least k.
    """

    queries: FilteredTable
    points: FilteredTable
    itself: Ints
    lists: NearestLists
    space: FilterSpace
    metric: Metric
    decision: Decision
    room: int

    def run(self, n_jobs: int, progress: ProgressArgument) -> int:
        """Fill the lists; returns how many products were let through."""
        n = len(self.queries.rows.points)
        step = min(QUERY_ROWS, max(_MIN_QUERY_ROWS, -(-n // (_BLOCKS_PER_THREAD * n_jobs))))
        begins = range(0, n, step)
        survivors = 0
        blocks = in_order((self._block(begin, min(begin + step, n)) for begin in begins), n_jobs)
        with closing(blocks), Progress(progress, "k nearest") as shown:
            for number, found in enumerate(blocks):
                survivors += found
                shown.show((number + 1) / len(begins))
        return survivors

    def _block(self, begin: int, end: int) -> Iterator[int]:
        with one_thread():
            survivors = self._search(begin, end)
        yield survivors

    def _search(self, begin: int, end: int) -> int:
        """Find the k nearest of a block of queries; returns how many products were let through."""
        rows, points, n = self.queries.rows, self.points.rows, end - begin
        pools = make_lists(n, self.room, np.empty)
        for column, products in self._products(self.queries.filter[begin:end]):
            pool_products(products, rows, begin, points, column, self.itself, pools)
        sort_nearest(np.arange(n + 1) * self.room, pools.ids.reshape(-1), pools.distances.reshape(-1))
        bounds, is_open = np.empty(n), np.empty(n, np.bool_)
        decide_best(rows, begin, points, pools, self.decision, bounds, self.lists)
        limits = thresholds(rows.half[begin:end], self.space, self.metric, bounds)
        others = len(points.points) - (self.itself[rows.names[begin:end]] >= 0)
        of = self.decision, bounds, self.lists, is_open
        survivors = int(decide_pools(rows, begin, points, pools, limits, others, *of))
        again = np.flatnonzero(is_open)
        if len(again):
            survivors += self._search_again(begin + again, bounds[again])
        return survivors

    def _search_again(self, of: Ints, bounds: Floats) -> int:
        """Search for the k nearest of a few queries, given by their places, within bounds."""
        points, rows = self.points.rows, _take(self.queries.rows, of)
        self.lists.sizes[rows.names] = 0
        survivors = 0
        for column, products in self._products(self.queries.filter[of]):
            limits = thresholds(rows.half, self.space, self.metric, bounds)
            to = self.itself, self.decision, bounds, self.lists
            survivors += int(keep_survivors(products, rows, 0, points, column, limits, *to))
        return survivors

    def _products(self, queries: Floats32) -> Iterator[tuple[int, Floats32]]:
        """The products of a few queries with each block of points, and the first of it; one buffer."""
        buffer = np.empty(len(queries) * BLOCK_ROWS, np.float32)
        for column in range(0, len(self.points.rows.points), BLOCK_ROWS):
            points = self.points.filter[column : column + BLOCK_ROWS]
            products = buffer[: len(queries) * len(points)].reshape(len(queries), len(points))
            np.matmul(queries, points.T, out=products)
            yield column, products


def _take(rows: ProductRows, places: Ints) -> ProductRows:
    """Some rows of a table; coordinates are copied."""
    norms = rows.inverse_norm[places] if len(rows.inverse_norm) else rows.inverse_norm
    of = rows.points[places], rows.names[places], norms
    return ProductRows(*of, rows.half[places], rows.threshold[places])


def search_by_product(
    queries: Points,
    points: Points,
    rows: Ints,
    itself: Ints,
    lists: NearestLists,
    space: FilterSpace,
    metric: Metric,
    survivors: float = 0.0,
) -> ProductSearch:
    """Make the filter rows of a search.

    Parameters
    ----------
    queries, points, itself, lists, metric : see :func:`epsjoin.local.neighbours.search.fill_lists`.
    rows : (r,) int64, the queries to search for.
    space : how points become filter rows.
    survivors : number of points that products are expected to let through for a query.
    """
    lists.sizes[rows] = 0
    everything = np.inf
    every_row = np.arange(len(points))
    with one_thread():
        others = filter_table(points, every_row, metric, space, everything)
        if queries is points and np.array_equal(rows, every_row):
            asked = others
        else:
            asked = filter_table(queries[rows], rows, metric, space, everything)
    k = lists.ids.shape[1]
    beside = min(_MAX_OTHERS, max(_MIN_OTHERS, int(_ROOM * survivors) - k))
    room = max(k, min(k + beside, len(points) - 1))
    return ProductSearch(asked, others, itself, lists, space, metric, metric.decision(everything), room)
