"""What a search for the k nearest points is told, and what it returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.progress import ProgressArgument
from epsjoin.local.scratch import MakeArray
from epsjoin.local.sweep.sweeping import Counters


class KNearest(NamedTuple):
    """The k nearest points of every query, in the order of the queries; made by :func:`knn_join`.

    Parameters
    ----------
    neighbour : (q, k) int64, row numbers of the points, the nearest first; of points at the same distance the
        smallest row first.
    distance : (q, k) float64, in the metric's unit.
    """

    neighbour: Ints
    distance: Floats


class SearchOptions(NamedTuple):
    """How a search runs and reports: see :func:`epsjoin.knn_join`."""

    n_jobs: int
    progress: ProgressArgument
    counters: Counters
    make: MakeArray = np.zeros
    """Makes the arrays that have a row for each point."""
