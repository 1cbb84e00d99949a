"""The k nearest of many queries in many dimensions, by products of blocks of filter rows.

1. The products of a block of queries with some of the points tell which of these are near; the distance to
   the k-th of them bounds that to the k-th nearest of all.
2. Products with all points, block by block, let through what may be within that bound
   (:mod:`epsjoin.local.product.rows`); the metric's formula decides, and each list that is full lowers
   its query's bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats, Floats32, Ints, Points
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.neighbours.heaps import NearestLists
from epsjoin.kernels.neighbours.product import bound_distances, keep_survivors
from epsjoin.local.metric import Metric
from epsjoin.local.product.blas import one_thread
from epsjoin.local.product.rows import FilteredTable, FilterSpace, filter_table, thresholds
from epsjoin.local.progress import Progress, ProgressArgument
from epsjoin.local.sweep.threads import in_order

BLOCK_ROWS = 512
"""Number of rows of a block, of queries and of points."""
FIRST_POINTS = 1024
"""Number of points among which the first k are looked for."""


class ProductSearch(NamedTuple):
    """A search of the k nearest by products.

    Parameters
    ----------
    queries, points : filter rows; the names of queries are the rows of their lists.
    itself, lists : see :func:`epsjoin.local.neighbours.search.fill_lists`; the lists of the queries are
    empty.
    space, metric : of the filter rows.
    decision : the metric's, with an infinite bound.
    """

    queries: FilteredTable
    points: FilteredTable
    itself: Ints
    lists: NearestLists
    space: FilterSpace
    metric: Metric
    decision: Decision

    def run(self, n_jobs: int, progress: ProgressArgument) -> int:
        """Fill the lists; returns how many products were let through."""
        begins = range(0, len(self.queries.rows.points), BLOCK_ROWS)
        survivors = 0
        blocks = in_order((self._block(begin) for begin in begins), n_jobs)
        with closing(blocks), Progress(progress, "k nearest") as shown:
            for number, found in enumerate(blocks):
                survivors += found
                shown.show((number + 1) / len(begins))
        return survivors

    def _block(self, begin: int) -> Iterator[int]:
        rows, points = self.queries.rows, self.points.rows
        end = min(begin + BLOCK_ROWS, len(rows.points))
        buffer = np.empty(BLOCK_ROWS * max(BLOCK_ROWS, FIRST_POINTS), np.float32)
        with one_thread():
            bounds = self._first_bounds(begin, end, buffer)
            survivors = 0
            for column in range(0, len(points.points), BLOCK_ROWS):
                products = self._multiply(
                    begin, end, self.points.filter[column : column + BLOCK_ROWS], buffer
                )
                limits = thresholds(rows.half[begin:end], self.space, self.metric, bounds)
                of = self.itself, self.decision, bounds, self.lists
                survivors += keep_survivors(products, rows, begin, points, column, limits, *of)
        yield survivors

    def _first_bounds(self, begin: int, end: int, buffer: Floats32) -> Floats:
        rows, points, k = self.queries.rows, self.points.rows, self.lists.ids.shape[1]
        bounds = np.full(end - begin, np.inf)
        n = len(points.points)
        if k < min(n, FIRST_POINTS):
            first = (
                np.arange(n) if n <= FIRST_POINTS else np.linspace(0, n - 1, FIRST_POINTS).astype(np.int64)
            )
            products = self._multiply(begin, end, self.points.filter[first], buffer)
            products -= points.half[first]
            near = first[np.argpartition(products, len(first) - k - 1, axis=1)[:, -k - 1 :]]
            bound_distances(rows, begin, points, near, self.itself, k, self.decision, bounds)
        return bounds

    def _multiply(self, begin: int, end: int, others: Floats32, buffer: Floats32) -> Floats32:
        products = buffer[: (end - begin) * len(others)].reshape(end - begin, len(others))
        return np.matmul(self.queries.filter[begin:end], others.T, out=products)


def search_by_product(
    queries: Points,
    points: Points,
    rows: Ints,
    itself: Ints,
    lists: NearestLists,
    space: FilterSpace,
    metric: Metric,
) -> ProductSearch:
    """Make the filter rows of a search.

    Parameters
    ----------
    queries, points, itself, lists, metric : see :func:`epsjoin.local.neighbours.search.fill_lists`.
    rows : (r,) int64, the queries to search for.
    space : how points become filter rows.
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
    return ProductSearch(asked, others, itself, lists, space, metric, metric.decision(everything))
