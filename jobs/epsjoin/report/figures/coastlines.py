"""The outlines of land for a geographic map: Natural Earth, 1:110 million, see ``coastlines/README.md``."""

from __future__ import annotations

import importlib.resources
import json
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MIN_DEGREES = 8.0
"""Minimum side of a map with coastlines: on smaller ones these, some ten kilometres off, would mislead."""

Corner = tuple[float, float]
"""Longitude and latitude; west of 180° W the longitude is below -180."""

Line = NDArray[np.float64]
"""(n, 2) float64, longitudes and latitudes."""


def find_coastlines(low: Corner, high: Corner) -> list[Line]:
    """Find the outlines of land within a map, and what of them reaches over its border.

    Parameters
    ----------
    low, high : lower left and upper right corner of the map; longitudes from -540 to 180.

    Returns
    -------
    Lines without a jump at 180°; none if a side of the map is below ``MIN_DEGREES``.
    """
    if min(high[0] - low[0], high[1] - low[1]) < MIN_DEGREES:
        return []
    file = importlib.resources.files("epsjoin.report") / "coastlines" / "land_110m.json"
    found = []
    for outline in json.loads(file.read_text(encoding="utf-8")):
        line = _unroll(np.array(outline))
        # a line may reach over 180° itself
        for turn in (-720, -360, 0, 360):
            found += _cut(line + np.array((turn, 0)), low, high)
    return found


def _unroll(line: Line) -> Line:
    """Go on beyond 180° where a line jumps to the other side."""
    steps = np.diff(line[:, 0])
    turns = np.concatenate([[0], np.cumsum(np.round(steps / 360))])
    return np.column_stack([line[:, 0] - 360 * turns, line[:, 1]])


def _cut(line: Line, low: Corner, high: Corner) -> list[Line]:
    """Cut out the pieces whose steps touch the map; what runs along 180° is a cut of the data, no coast."""
    first, second = line[:-1], line[1:]
    is_near = (np.maximum(first, second) >= low).all(axis=1) & (np.minimum(first, second) <= high).all(axis=1)
    is_cut = (np.abs(first[:, 0] % 360 - 180) < 0.02) & (np.abs(second[:, 0] % 360 - 180) < 0.02)
    is_drawn = np.concatenate([[False], is_near & ~is_cut, [False]])
    ends = np.flatnonzero(is_drawn[1:] != is_drawn[:-1])
    return [line[begin : end + 1] for begin, end in list(pairwise(ends))[::2]]
