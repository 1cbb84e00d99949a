"""The k nearest of many queries in many dimensions, by products of blocks of filter rows.

1. The products of a block of queries with all points, block by block. The points whose products are best are
   the pool of a query.
2. The distances of the k best of a pool, by the metric's formula: the farthest of them bounds the distance to
   the k-th nearest of all. Other points of the pool that may be within that bound
   (:mod:`epsjoin.local.product.rows`) are decided, too.
3. If even the worst of a pool may be within the bound, points outside of the pool may be, too, as where many
   are equally far. The products of these queries are made once more, and all points that may be within the
   bound are decided; each list that is full lowers it.

Where most points search for one another, a product serves both: the pools of all points are made at once, by
the blocks on and above the diagonal.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats, Floats32, Ints, Points
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.neighbours.heaps import NearestLists, sort_nearest_in_rows
from epsjoin.kernels.neighbours.product import (
    decide_best,
    decide_pools,
    keep_survivors,
    pool_columns,
    pool_products,
)
from epsjoin.kernels.product.product import MIN_THRESHOLD, ProductRows
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.tree import make_lists
from epsjoin.local.product.blas import one_thread
from epsjoin.local.product.rows import FilteredTable, FilterSpace, filter_table, thresholds
from epsjoin.local.progress import Progress, ProgressArgument
from epsjoin.local.scratch import MakeArray
from epsjoin.local.sweep.threads import in_order

BLOCK_ROWS = 512
"""Number of points of a block."""
QUERY_ROWS = 1024
"""Number of queries of a block: a product takes 2 MiB, which a core's cache holds."""
_MIN_QUERY_ROWS, _BLOCKS_PER_THREAD = 128, 4
"""Minimum number of queries of a block; number of blocks for each thread, so that all threads have work."""
_MIN_OTHERS, _MAX_OTHERS, _ROOM = 6, 256, 1.5
"""Minimum and maximum entries of a pool beside the k best; room, as a multiple of what is expected."""
_ENTRY_BYTES = 16
"""Bytes of an entry of a pool."""
_POOLED = 0.95
"""Fraction of the work that is done when the pools of all points are made."""


class ProductWork(NamedTuple):
    """The work of a search: the products of two rows that it made, and how many of them it let through."""

    products: int
    survivors: int


class ProductSearch(NamedTuple):
    """A search of the k nearest by products.

    Parameters
    ----------
    queries, points : filter rows; the names of queries are the rows of their lists. One table if the queries
        are points.
    asked : (q,) int64, the places of the queries to search for.
    itself, lists : see :func:`epsjoin.local.neighbours.search.fill_lists`; the lists of the queries are
        empty.
    space, metric : of the filter rows.
    decision : the metric's, with an infinite bound.
    room : entries of a pool, at least k.
    make : makes arrays that have a row for each point.
    """

    queries: FilteredTable
    points: FilteredTable
    asked: Ints
    itself: Ints
    lists: NearestLists
    space: FilterSpace
    metric: Metric
    decision: Decision
    room: int
    make: MakeArray

    def run(self, n_jobs: int, progress: ProgressArgument) -> ProductWork:
        """Fill the lists."""
        n, n_points = len(self.asked), len(self.points.rows.points)
        step = min(QUERY_ROWS, max(_MIN_QUERY_ROWS, -(-n // (_BLOCKS_PER_THREAD * n_jobs))))
        begins = range(0, n, step)
        products = survivors = 0
        pools, pooled = None, 0.0
        with Progress(progress, "k nearest") as shown:
            if self._is_shared():
                pools, pooled = make_lists(n_points, self.room, self.make), _POOLED
                expected = count_products(n_points, n_points, is_own=True)
                with closing(in_order(self._pool_all(pools), n_jobs)) as made:
                    for some in made:
                        products += some
                        shown.show(pooled * products / expected)
            blocks = in_order((self._search(self.asked[at : at + step], pools) for at in begins), n_jobs)
            with closing(blocks):
                for number, work in enumerate(blocks):
                    products += work.products
                    survivors += work.survivors
                    shown.show(pooled + (1.0 - pooled) * (number + 1) / len(begins))
        return ProductWork(products, survivors)

    def _is_shared(self) -> bool:
        """Whether the pools of all points are made at once; they take no more than points and filter rows."""
        n, n_points = len(self.asked), len(self.points.rows.points)
        of_row = self.points.rows.points[:1].nbytes + self.points.filter[:1].nbytes
        is_less = count_products(n, n_points, is_own=self.queries is self.points) < n * n_points
        return is_less and _ENTRY_BYTES * self.room <= of_row

    def _pool_all(self, pools: NearestLists) -> Iterator[Iterator[int]]:
        """Make the pools of all points: a sweep for each block, which yields its number of products."""
        table, n = self.points.rows, len(self.points.rows.points)
        worst = np.full(len(self.points.filter), np.inf, np.float32)
        worst[:n] = MIN_THRESHOLD
        is_free = [threading.Lock() for _ in range(0, n, BLOCK_ROWS)]  # the pools of a block

        def sweep(begin: int) -> Iterator[int]:
            some = slice(begin, min(begin + BLOCK_ROWS, n))
            rows, own = _take(table, some), _pools_of(pools, some)
            with one_thread():
                for column, products in self._products(self.points.filter[some], begin):
                    with is_free[begin // BLOCK_ROWS]:
                        pool_products(products, rows, table, column, self.itself, own)
                    if column > begin:
                        with is_free[column // BLOCK_ROWS]:
                            pool_columns(products, table, begin, column, self.itself, worst, pools)
            yield len(rows.points) * (n - begin)

        return map(sweep, range(0, n, BLOCK_ROWS))

    def _search(self, places: Ints, pools: NearestLists | None) -> Iterator[ProductWork]:
        """Find the k nearest of a block of queries, whose pools may be made already."""
        points, rows, n = self.points.rows, _take(self.queries.rows, places), len(places)
        products = 0
        with one_thread():
            if pools is not None:
                pools = _pools_of(pools, places)
            else:
                pools = make_lists(n, self.room, np.empty)
                for column, some in self._products(self.queries.filter[places], 0):
                    pool_products(some, rows, points, column, self.itself, pools)
                products = n * len(points.points)
            sort_nearest_in_rows(pools.ids, pools.distances)
            bounds, is_open = np.empty(n), np.empty(n, np.bool_)
            decide_best(rows, points, pools, self.decision, bounds, self.lists)
            limits = thresholds(rows.half, self.space, self.metric, bounds)
            others = len(points.points) - (self.itself[rows.names] >= 0)
            of = self.decision, bounds, self.lists, is_open
            survivors = int(decide_pools(rows, points, pools, limits, others, *of))
            again = np.flatnonzero(is_open)
            if len(again):
                products += len(again) * len(points.points)
                survivors += self._search_again(places[again], bounds[again])
        yield ProductWork(products, survivors)

    def _search_again(self, places: Ints, bounds: Floats) -> int:
        """Search for the k nearest of a few queries within bounds; returns how many were let through."""
        points, rows = self.points.rows, _take(self.queries.rows, places)
        self.lists.sizes[rows.names] = 0
        survivors = 0
        for column, products in self._products(self.queries.filter[places], 0):
            limits = thresholds(rows.half, self.space, self.metric, bounds)
            to = self.itself, self.decision, bounds, self.lists
            survivors += int(keep_survivors(products, rows, points, column, limits, *to))
        return survivors

    def _products(self, queries: Floats32, first: int) -> Iterator[tuple[int, Floats32]]:
        """The products of a few queries with each block of points from one on, and its place; one buffer."""
        buffer = np.empty(len(queries) * BLOCK_ROWS, np.float32)
        for column in range(first, len(self.points.rows.points), BLOCK_ROWS):
            points = self.points.filter[column : column + BLOCK_ROWS]
            products = buffer[: len(queries) * len(points)].reshape(len(queries), len(points))
            np.matmul(queries, points.T, out=products)
            yield column, products


def count_products(n_queries: int, n_points: int, *, is_own: bool) -> float:
    """Count the products that a search needs: each serves both its points where most are queries.

    Parameters
    ----------
    n_queries, n_points : numbers of queries and points.
    is_own : whether the queries are points.
    """
    of_queries, of_pairs = float(n_queries) * n_points, n_points * (n_points + float(BLOCK_ROWS)) / 2.0
    return min(of_queries, of_pairs) if is_own else of_queries


def _take(rows: ProductRows, places: Ints | slice) -> ProductRows:
    """Some rows of a table; coordinates are copied, unless the rows are a slice."""
    norms = rows.inverse_norm[places] if len(rows.inverse_norm) else rows.inverse_norm
    of = rows.points[places], rows.names[places], norms
    return ProductRows(*of, rows.half[places], rows.threshold[places])


def _pools_of(pools: NearestLists, places: Ints | slice) -> NearestLists:
    """The pools of some rows; copies, unless the rows are a slice."""
    return NearestLists(pools.sizes[places], pools.ids[places], pools.distances[places])


def search_by_product(
    queries: Points,
    points: Points,
    rows: Ints,
    itself: Ints,
    lists: NearestLists,
    space: FilterSpace,
    metric: Metric,
    survivors: float = 0.0,
    make: MakeArray = np.zeros,
) -> ProductSearch:
    """Make the filter rows of a search.

    Parameters
    ----------
    queries, points, itself, lists, metric : see :func:`epsjoin.local.neighbours.search.fill_lists`.
    rows : (r,) int64, the queries to search for.
    space : how points become filter rows.
    survivors : number of points that products are expected to let through for a query.
    make : makes arrays that have a row for each point.
    """
    lists.sizes[rows] = 0
    everything = np.inf
    with one_thread():
        others = filter_table(points, np.arange(len(points)), metric, space, everything, make)
        of_queries, asked = others, rows
        if queries is not points:
            of_queries = filter_table(queries[rows], rows, metric, space, everything)
            asked = np.arange(len(rows))
    k = lists.ids.shape[1]
    beside = min(_MAX_OTHERS, max(_MIN_OTHERS, int(_ROOM * survivors) - k))
    room = max(k, min(k + beside, len(points) - 1))
    decision = metric.decision(everything)
    return ProductSearch(of_queries, others, asked, itself, lists, space, metric, decision, room, make)
