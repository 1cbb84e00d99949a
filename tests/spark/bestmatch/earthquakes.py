"""The two catalogues of earthquakes as tables of seconds since 1900, latitude, longitude and magnitude."""

from __future__ import annotations

import csv
import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import epsjoin

_DATA = Path(__file__).resolve().parents[2] / "data" / "earthquakes"
_BEGIN = datetime(1900, 1, 1, tzinfo=UTC)
COLUMNS = ["time", "lat", "lon", "magnitude"]
ORDERS = [
    epsjoin.Closest(0, eps=30.0003),
    epsjoin.Closest((1, 2), eps=100.003, metric="haversine"),
    epsjoin.Closest(3, eps=1.0003),
]


class Catalogues(NamedTuple):
    """Rows of both with the columns ``COLUMNS``, and which left ones were taken over from the right."""

    left: NDArray[np.float64]
    right: NDArray[np.float64]
    is_copied: NDArray[np.bool_]


def expected() -> dict[str, Any]:
    return dict(json.loads((_DATA / "expected.json").read_text(encoding="utf-8")))


def _read(name: str) -> list[dict[str, str]]:
    with gzip.open(_DATA / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _seconds(text: str, pattern: str) -> float:
    return (datetime.strptime(text, pattern).replace(tzinfo=UTC) - _BEGIN).total_seconds()


def read_catalogues() -> Catalogues:
    usgs = [
        row
        for row in _read("usgs_1965_2016")
        if row["Type"] == "Earthquake" and re.fullmatch(r"\d\d/\d\d/\d{4}", row["Date"])
    ]
    left = [
        (
            _seconds(f"{row['Date']} {row['Time']}", "%m/%d/%Y %H:%M:%S"),
            *map(float, (row["Latitude"], row["Longitude"], row["Magnitude"])),
        )
        for row in usgs
    ]
    right = [
        (
            _seconds(row["date"], "%Y-%m-%dT%H:%M:%S.%f"),
            *map(float, (row["lat"], row["lon"], row["mw"])),
        )
        for row in _read("iscgem_1900_2012")
    ]
    return Catalogues(np.array(left), np.array(right), np.array([row["Source"] == "ISCGEM" for row in usgs]))
