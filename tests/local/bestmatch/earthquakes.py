"""Two catalogues of earthquakes as tables of seconds, latitude, longitude and magnitude."""

from __future__ import annotations

import csv
import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from epsjoin import Closest
from epsjoin.kernels.arrays import Bools, Floats

DATA = Path(__file__).parents[2] / "data" / "earthquakes"
EXPECTED: dict[str, Any] = json.loads((DATA / "expected.json").read_text())
ORDERS = [Closest(0, eps=30.0003), Closest((1, 2), eps=100.003, metric="haversine"), Closest(3, eps=1.0003)]


def _rows(name: str) -> list[dict[str, str]]:
    with gzip.open(DATA / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _seconds(text: str, form: str) -> float:
    return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()


def read_usgs() -> tuple[Floats, Bools]:
    """The earthquakes of the USGS whose time is readable, and which of them it took from ISC-GEM."""
    rows = [
        row
        for row in _rows("usgs_1965_2016")
        if row["Type"] == "Earthquake" and re.fullmatch(r"\d\d/\d\d/\d{4}", row["Date"])
    ]
    columns = ("Latitude", "Longitude", "Magnitude")
    times = [_seconds(f"{row['Date']} {row['Time']}", "%m/%d/%Y %H:%M:%S") for row in rows]
    values = [[time, *(float(row[c]) for c in columns)] for time, row in zip(times, rows, strict=True)]
    return np.array(values), np.array([row["Source"] == "ISCGEM" for row in rows])


def read_iscgem() -> Floats:
    """All events of ISC-GEM."""
    columns = ("lat", "lon", "mw")
    return np.array(
        [
            [_seconds(row["date"], "%Y-%m-%dT%H:%M:%S.%f"), *(float(row[c]) for c in columns)]
            for row in _rows("iscgem_1900_2012")
        ]
    )
