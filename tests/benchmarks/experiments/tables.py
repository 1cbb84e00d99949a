"""The tables that chapter 4 joins, and the bytes of their rows."""

from __future__ import annotations

import numpy as np

from open_sets import numbers

from .. import sets
from .merges import PAGE_BYTES, Tables

EQUI_BYTES, BOX_BYTES = 8 + 8 + 8 + 1, 8 + 8 + 4 * 8 + 1
"""Bytes of a row on disk: key, id, values, flags."""
LANDMARKS_EPS, CAD_EPS = 0.0123457, 0.0083


def point_bytes(d: int) -> int:
    """Bytes of a row of points: part, id, coordinates, mask, flags."""
    return 4 + 8 + 8 * d + 8 + 1


def box_tables(n: int | None = None) -> Tables:
    """Boxes of ZIP code areas and of primary roads, in the order of the files."""
    return numbers("zcta510")[:n], numbers("primaryroads")[:n]


def shuffled(tables: Tables) -> Tables:
    """The rows of each table in random order."""
    random = np.random.default_rng(1)
    return random.permutation(tables[0]), random.permutation(tables[1])


def landmark_tables(n: int | None = None) -> Tables:
    """Every other landmark."""
    points = numbers("landmarks")[:n]
    return points[::2].copy(), points[1::2].copy()


def cad_tables(n: int = 200_000) -> Tables:
    """A surface in 16 dimensions, cluster by cluster, each row in one of two tables by a coin."""
    points = sets.cad(n, by_cluster=True)
    heads = np.random.default_rng(5).random(n) < 0.5
    return points[heads], points[~heads]


def input_pages(tables: Tables, row_bytes: int) -> float:
    """Pages of both inputs, without replicas."""
    return sum(map(len, tables)) * row_bytes / PAGE_BYTES
