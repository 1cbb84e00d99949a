"""The real sets under tests/data, and what joins of them give: counted by scikit-learn and SciPy."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).parent / "data"
EXPECTED: dict[str, dict[str, Any]] = json.loads((DATA / "expected.json").read_text())

_SETS = {
    "landmarks": ("landmarks/tiger_arealm_points", range(2)),  # longitude, latitude
    "cities": ("cities/geonames_cities1000", range(2)),  # latitude, longitude
    "navaids": ("navaids/2023-06-04", range(6, 8)),  # latitude, longitude
    "zcta510": ("boxes/tiger_zcta510_mbr", range(4)),  # lower corner, upper corner
    "primaryroads": ("boxes/tiger_primaryroads_mbr", range(4)),
    "digits": ("vectors/sklearn_digits_64d", range(64)),
    "landsat": ("vectors/adbench_19_landsat", range(1, 37)),
    "magic": ("vectors/adbench_22_magic.gamma", range(1, 11)),
    "optdigits": ("vectors/adbench_26_optdigits", range(1, 65)),
    "pendigits": ("vectors/adbench_28_pendigits", range(1, 17)),
    "skin": ("vectors/adbench_33_skin", range(1, 4)),
    "waveform": ("vectors/adbench_41_Waveform", range(1, 22)),
}
"""Of each set its file, and the columns that are coordinates."""
_SCALED = ("pendigits", "optdigits", "waveform")


def read(name: str) -> NDArray[np.float64]:
    """The points of a set of expected.json, the caller's own to change."""
    if name == "landmarks_la":
        points = numbers("landmarks")
        inside = (points >= [-119.0, 33.6]) & (points <= [-117.5, 34.9])
        return points[inside.all(axis=1)]
    return scaled(numbers(name)) if name in _SCALED else numbers(name)


def numbers(name: str) -> NDArray[np.float64]:
    """The coordinates of a set as its file has them, the caller's own to change."""
    return _numbers(name).copy()


def scaled(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column from 0 to 1; one that is constant from 0 to 0."""
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    return (points - low) / np.where(extent > 0.0, extent, 1.0)


@functools.cache
def _numbers(name: str) -> NDArray[np.float64]:
    file, columns = _SETS[name]
    return np.loadtxt(
        DATA / f"{file}.csv.gz",
        delimiter=",",
        skiprows=0 if name == "digits" else 1,  # names of columns
        usecols=columns,
        quotechar='"',
        comments=None,
        encoding="utf-8",
    )
