"""What every sweep fills: room for pairs, and its counters."""

from __future__ import annotations

from typing import NamedTuple

from epsjoin.kernels.arrays import Floats, Ints

CANDIDATES, DISTANCES, LARGEST_STACK, PAIRS = range(4)
"""Places of the counters of a sweep."""


class PairBatch(NamedTuple):
    """Room for pairs: ``left``, ``right`` (c,) int64 indices of rows, ``distance`` (c,) float64."""

    left: Ints
    right: Ints
    distance: Floats
