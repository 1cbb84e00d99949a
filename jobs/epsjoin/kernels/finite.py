"""Whether numbers are finite."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Points


@njit
def are_finite(values: Points) -> bool:
    """Whether no value is NaN or infinite; ``values``: (n, d) in C order. O(n d), no memory."""
    flat, n_others = values.reshape(-1), 0
    for i in range(flat.size):  # to the end, as a loop that may stop early takes values one by one
        n_others += not abs(flat[i]) < np.inf
    return n_others == 0
