"""Buckets of ids: if there are more rows than the driver should hold, it takes one bucket at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.spark.points.hashes import hash_ids

MAX_ROWS = 1 << 23
"""Maximum number of rows, of some 16 to 32 bytes each, that one bucket should bring to the driver."""


class Bucket(NamedTuple):
    """One of ``of`` buckets; each id, or cluster id, belongs to one of them."""

    number: int
    of: int

    def holds(self, ids: Ints) -> Bools:
        """Tell which ids belong to this bucket."""
        if self.of == 1:
            return np.ones(len(ids), np.bool_)
        return np.asarray(hash_ids(0, ids) % self.of == self.number)


def plan_buckets(n_rows: int) -> list[Bucket]:
    """Plan as many buckets as these rows need, at least one."""
    of = max(1, -(-n_rows // MAX_ROWS))
    return [Bucket(number, of) for number in range(of)]
