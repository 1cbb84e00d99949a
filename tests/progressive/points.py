"""Points of a square, and the files that hold them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N, EPS = 20_000, 0.006
POINTS = np.random.default_rng(0).random((N, 2))
STORED = 8 * 2 + 8 + 4 + 8 + 1
"""Bytes of a row of points: coordinates, id, part, mask, flags."""


def parquet(folder: Path, points=POINTS, ids=None) -> Path:
    path = folder / "points.parquet"
    columns = {"x": points[:, 0], "y": points[:, 1]} | ({} if ids is None else {"name": ids})
    pq.write_table(pa.table(columns), path, row_group_size=3000)
    return path


def left_by_a_kill(spill: Path) -> Path:
    """The folder as it would be if the process of the join died now."""
    return shutil.copytree(spill, spill.with_name("of a killed join"))
