"""A small lake of the data set landmarks: random points of a square, in two files of several batches."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa

from epsjoin.contracts.load_source import load_source
from epsjoin.lake import targets, transactions
from epsjoin.lake.arrow import to_binary
from epsjoin.lake.lake import Lake, Slice
from epsjoin.paths import CONTRACTS


def square(n: int = 4000) -> np.ndarray:
    return np.random.default_rng(7).random((n, 2))


def small_lake(tmp_path: Path) -> Lake:
    """The landmarks' contract, 3,000 points of it in two files and several row groups."""
    contracts = tmp_path / "data_contracts"
    shutil.copytree(CONTRACTS, contracts)
    source = load_source(contracts, "landmarks")
    lake = Lake((tmp_path / "lake").as_uri(), contracts, source)
    points, ids = square(3000), np.arange(3000)
    into = targets.target_of(lake, Slice("points", "2023-01-01"))
    files = []
    for rows in np.array_split(ids, 2):
        groups = np.array_split(rows, 5)
        lon, lat = points.T
        files.append(
            into.write(
                pa.table({"id": g, "lon": lon[g], "lat": lat[g], "point": to_binary(points[g])})
                for g in groups
            )
        )
    transactions.commit(lake, {Slice("points", "2023-01-01"): [file for file in files if file is not None]})
    return lake
