"""The real sets under tests/data, and what joins of them give: counted by scikit-learn and SciPy."""

from __future__ import annotations

import csv
import functools
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).parents[1] / "data"
EXPECTED: dict[str, dict[str, Any]] = json.loads((DATA / "expected.json").read_text())


def read(name: str) -> NDArray[np.float64]:
    """The points of a set of expected.json, the caller's own to change."""
    return _read(name).copy()


@functools.cache
def _read(name: str) -> NDArray[np.float64]:
    if name == "landmarks":
        return _numbers("landmarks/tiger_arealm_points.csv.gz")
    if name == "landmarks_la":
        points = read("landmarks")
        inside = (points >= [-119.0, 33.6]) & (points <= [-117.5, 34.9])
        return points[inside.all(axis=1)]
    if name == "zcta510":
        return _numbers("boxes/tiger_zcta510_mbr.csv.gz")
    if name == "digits":
        return _numbers("vectors/sklearn_digits_64d.csv.gz", header=False)[:, :-1]
    if name == "skin":
        return _numbers("vectors/adbench_33_skin.csv.gz")[:, 1:-1]
    file = {
        "pendigits": "28_pendigits",
        "optdigits": "26_optdigits",
        "waveform": "41_Waveform",
    }[name]
    values = _numbers(f"vectors/adbench_{file}.csv.gz")[:, 1:-1]
    low, extent = values.min(axis=0), np.ptp(values, axis=0)
    return (values - low) / np.where(extent > 0.0, extent, 1.0)


def navaids() -> NDArray[np.float64]:
    """Latitude and longitude of the latest snapshot's navaids, in degrees."""
    with gzip.open(DATA / "navaids" / "2023-06-04.csv.gz", "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return np.array([[float(row["latitude_deg"]), float(row["longitude_deg"])] for row in rows])


def _numbers(name: str, *, header: bool = True) -> NDArray[np.float64]:
    return np.loadtxt(DATA / name, delimiter=",", skiprows=int(header))
