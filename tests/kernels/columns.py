"""Lists of rows as columns for kernels, in tests."""

from __future__ import annotations

import numpy as np


def columns(edges):
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def pair_columns(pairs):
    left, right, distance = ([row[i] for row in pairs] for i in range(3))
    return np.array(left, np.int64), np.array(right, np.int64), np.array(distance, np.float64)
