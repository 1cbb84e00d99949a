"""How much the order of rows differs between two files, and what a digest may miss."""

from __future__ import annotations

import math

import numpy as np

from epsjoin.kernels.arrays import Ints


def distance(pairs: Ints, n_old: int, n_new: int) -> float:
    """The mean displacement of the rows in both files: 0 in the same order, 1 reversed, 2/3 shuffled.

    Parameters
    ----------
    pairs : (n, 2) places of these rows in the old and in the new file; those at one place may be left out.
    n_old, n_new : number of rows of the files.
    """
    largest = max(n_old, n_new)
    return float(np.abs(pairs[:, 0] - pairs[:, 1]).sum() / (largest**2 / 2)) if largest else 0.0


def waiting(pairs: Ints, n_old: int, n_new: int) -> int:
    """The largest number of rows that wait at once, on either side, if the files are read in step.

    With a place more, for the row of the old file that is read before the new one of the same step, that is
    the buffer which a window needs to miss none of these pairs. Rows without a partner, which wait until they
    are pushed out, are not counted.
    """
    most = 0
    for first, last in ((pairs[:, 0], pairs[:, 1]), (pairs[:, 1], pairs[:, 0])):
        waits = first < last
        if not waits.any():
            continue
        steps = np.zeros(max(n_old, n_new) + 1, np.int64)
        np.add.at(steps, first[waits], 1)
        np.subtract.at(steps, last[waits], 1)
        most = max(most, int(np.cumsum(steps).max()))
    return most


def missed_probability(n_changed: int, digest_bits: int) -> float:
    """The probability that at least one of the changed rows has the digest that it had before.

    Only changed rows can be missed: equal rows have equal digests.
    """
    return -math.expm1(n_changed * math.log1p(-(2.0**-digest_bits)))
