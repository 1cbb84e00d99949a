"""A checked join by products of blocks of rows, in many dimensions."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from epsjoin.kernels.arrays import Ints, Points
from epsjoin.local.join.array_join import limited
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.plan.expectation.expected import expected_pairs_of_tables
from epsjoin.local.product.rows import FilterSpace
from epsjoin.local.product.sweep import NamedRows, sweep_products
from epsjoin.local.progress import Progress
from epsjoin.local.sweep.pairs import Pairs, collect


@dataclass(frozen=True)
class ProductJoin:
    """A checked join by products; see :mod:`epsjoin.local.join.by_product`.

    Parameters
    ----------
    left, right : the tables' points, as they came; a self join has no right one.
    ids : (n,) int64, the ids that pairs of a self join consist of; the left row numbers else.
    metric, eps : Euclid or cosine, and its threshold.
    options : all other options.
    space : the filter rows.
    """

    left: Points
    right: Points | None
    ids: Ints
    metric: Metric
    eps: float
    options: JoinOptions
    space: FilterSpace

    @property
    def n_left(self) -> int:
        """Rows of the left table, or of the only one."""
        return len(self.left)

    @property
    def n_right(self) -> int:
        """Rows of the right table."""
        return 0 if self.right is None else len(self.right)

    def batches(self, name: str) -> Generator[Pairs, None, None]:
        """Find all pairs, batch by batch: see :meth:`epsjoin.local.join.array_join.ArrayJoin.batches`."""
        with Progress(self.options.progress, name) as progress:
            yield from limited(self._join(progress), self.options, self.eps, self._expected_pairs)

    def pairs(self, name: str) -> Pairs:
        """Find all pairs of row numbers, sorted by (left, right): see :meth:`batches`."""
        n_right = self.n_left if self.right is None else self.n_right
        return collect(self.batches(name), (self.n_left, n_right), n_jobs=self.options.n_jobs)

    def _join(self, progress: Progress) -> Generator[Pairs, None, None]:
        left = NamedRows(self.left, self.ids)
        right = None if self.right is None else NamedRows(self.right, np.arange(len(self.right)))
        of = self.space, self.metric, self.eps
        return sweep_products(left, right, *of, self.options.for_sweep(), progress.show)

    def _expected_pairs(self) -> float:
        return expected_pairs_of_tables(self.left, self.right, self.eps, self.metric)
