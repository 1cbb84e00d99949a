"""Two catalogues of earthquakes as seconds, latitudes, longitudes and magnitudes, and their best matches."""

from __future__ import annotations

import csv
import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epsjoin import Closest
from epsjoin.kernels.arrays import Bools, Floats

_DATA = Path(__file__).parent / "data" / "earthquakes"
EXPECTED: dict[str, Any] = json.loads((_DATA / "expected.json").read_text(encoding="utf-8"))
COLUMNS = ["time", "lat", "lon", "magnitude"]
ORDERS = [Closest(0, eps=30.0003), Closest((1, 2), eps=100.003, metric="haversine"), Closest(3, eps=1.0003)]


class Catalogues(NamedTuple):
    """Rows with the columns ``COLUMNS``.

    Parameters
    ----------
    left : the earthquakes of the USGS whose time is readable.
    right : all events of ISC-GEM.
    is_copied : which of the left ones were taken over from the right.
    """

    left: Floats
    right: Floats
    is_copied: Bools


def read_catalogues(since: int) -> Catalogues:
    """Both, in seconds since the beginning of a year; which year it is changes no match."""
    begin = datetime(since, 1, 1, tzinfo=UTC)

    def table(rows: list[dict[str, str]], times: list[str], form: str, *columns: str) -> Floats:
        moments = (datetime.strptime(time, form).replace(tzinfo=UTC) for time in times)
        seconds = [(moment - begin).total_seconds() for moment in moments]
        return np.column_stack((seconds, [[float(row[column]) for column in columns] for row in rows]))

    usgs = [
        row
        for row in _rows("usgs_1965_2016")
        if row["Type"] == "Earthquake" and re.fullmatch(r"\d\d/\d\d/\d{4}", row["Date"])
    ]
    times = [f"{row['Date']} {row['Time']}" for row in usgs]
    left = table(usgs, times, "%m/%d/%Y %H:%M:%S", "Latitude", "Longitude", "Magnitude")
    iscgem = _rows("iscgem_1900_2012")
    right = table(iscgem, [row["date"] for row in iscgem], "%Y-%m-%dT%H:%M:%S.%f", "lat", "lon", "mw")
    return Catalogues(left, right, np.array([row["Source"] == "ISCGEM" for row in usgs]))


def _rows(name: str) -> list[dict[str, str]]:
    with gzip.open(_DATA / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
