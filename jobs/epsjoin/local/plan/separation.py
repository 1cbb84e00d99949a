"""How many pairs a few axes must let through, whichever they are: whether looking for such axes is in vain.

Of two rows x and y that are compared, let M be the mean of ``(x - y)(x - y)'``. On m orthonormal axes their
mean square difference is at most the sum of the m largest eigenvalues of M, so by Cauchy and Schwarz at most
``sqrt(m tr M²)``; and ``tr M²`` is the mean square of the product of two such differences, which a sample
tells without an eigenvalue. By Markov's inequality at most the fraction F / D² of pairs is farther apart than
D, where F is their mean square: 1 - F / D² is let through.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats


class Separation(NamedTuple):
    """Mean squares of the differences of rows, in units of the square of the reach.

    Parameters
    ----------
    on_coordinates : (d,) float64, of the 1, 2, ... coordinates that differ most, together.
    trace : of M².
    of_lengths : of the lengths of the rows; about as much tells the rest of a filter row.
    """

    on_coordinates: Floats
    trace: float
    of_lengths: float

    def passing(self, m: int, *, are_turned: bool) -> float:
        """Approximately the least fraction of pairs that m axes and the length of the rest let through.

        Parameters
        ----------
        m : number of axes, at most d.
        are_turned : whether they may be any orthonormal axes; otherwise they are coordinates.
        """
        on_axes = float(self.on_coordinates[m - 1])
        if are_turned:
            on_axes = min(math.sqrt(m * self.trace), float(self.on_coordinates[-1]))
        square = on_axes + self.of_lengths
        return 1.0 - square if square < 1.0 else 0.0  # nothing is known of rows that overflow


def separate(left: Floats, right: Floats, reach: float) -> Separation:
    """Tell from samples how far apart rows are.

    Parameters
    ----------
    left, right : (m, d) and (l, d) float64, independent samples of the rows that are compared, embedded;
        none empty, not modified.
    reach : the largest difference of rows within eps.

    Notes
    -----
    O(m d + m² d / 4): a fraction of a product of the samples.
    """
    n = min(len(left), len(right))
    with np.errstate(over="ignore", invalid="ignore"):
        x, y = left[:n] / reach, right[:n] / reach
        differences = x - y
        on_each = np.square(differences).mean(axis=0)
        middle = n // 2
        products = differences[:middle] @ differences[middle:].T
        trace = float(np.square(products).mean()) if middle else math.inf
        of_lengths = np.square(np.linalg.norm(x, axis=1) - np.linalg.norm(y, axis=1)).mean()
        return Separation(np.cumsum(np.sort(on_each)[::-1]), trace, float(of_lengths))
