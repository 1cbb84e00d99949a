"""The pairs of a sample, held for smaller eps: the search for an eps counts them for many, one by one."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.sweep.pairs import Pairs


class HeldPairs:
    """The pairs within the largest eps so far for which all pairs were found; empty at first.

    Notes
    -----
    24 bytes a pair.
    """

    def __init__(self) -> None:
        self._eps = 0.0
        self._rows: tuple[Ints, Ints] = np.empty(0, np.int64), np.empty(0, np.int64)
        self._distance: Floats = np.empty(0)

    def count(self, eps: float, degree: Ints) -> int | None:
        """The number of pairs within eps, whose ends are added to ``degree``; None where it is not known."""
        if not eps <= self._eps:
            return None
        pairs = int(np.searchsorted(self._distance, eps, side="right"))
        for ends in self._rows:
            degree += np.bincount(ends[:pairs], minlength=len(degree))
        return pairs

    def hold(self, eps: float, found: list[Pairs]) -> None:
        """Hold all pairs within an eps, given in batches, instead of those of a smaller eps."""
        if eps <= self._eps or not found:
            return
        distance = np.concatenate([batch.distance for batch in found])
        order = np.argsort(distance, kind="stable")
        left, right = (np.concatenate([batch[side] for batch in found])[order] for side in range(2))
        self._eps, self._rows, self._distance = eps, (left, right), distance[order]
