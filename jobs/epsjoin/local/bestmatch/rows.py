"""Rows of best matches as callers pass them: numbers, or times."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.arguments import as_array, as_number
from epsjoin.local.coordinates import check_points

_TICKS = {"ms": 3, "us": 6, "ns": 9}
"""The powers of ten by which NumPy's units of time divide a second, for those that do."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "D": 86_400, "W": 604_800}
"""Seconds of the other units; months and years have no number of them."""


def kind_of(values: NDArray[Any]) -> str | None:
    """Return what rows hold: "times", "durations" or "numbers"; None where there are none."""
    return {"M": "times", "m": "durations"}.get(values.dtype.kind, "numbers") if values.size else None


def check_kinds(name: str, kind: str | None, other: str, expected: str | None) -> None:
    """Check that rows are of the same kind as other rows, since a difference would mean nothing otherwise.

    Parameters
    ----------
    name, kind : the rows, for the message, and what they hold, as :func:`kind_of` says.
    other, expected : the other ones.

    Raises
    ------
    ArgumentError
        They are not.
    """
    if kind is not None and expected is not None and kind != expected:
        raise ArgumentError(f"{name} must hold {expected} as {other}, not {kind}")


def seconds_of(value: object) -> float:
    """Return a number, or a duration in seconds, rounded to float64; NaN for all else."""
    if not isinstance(value, np.timedelta64):
        return as_number(value)
    try:
        return float(value / np.timedelta64(1, "s"))
    except TypeError:  # of months and years, and without a unit
        return math.nan


def are_durations(values: object) -> bool:
    """Whether a threshold, or any of several, is a duration: it means nothing beside rows of numbers."""
    several = values if isinstance(values, (list, tuple)) else [values]
    return any(np.asarray(value).dtype.kind == "m" for value in several)


def check_rows(name: str, rows: ArrayLike) -> Floats:
    """Return rows as float64 in C order; times as seconds since 1970, durations as seconds.

    Parameters
    ----------
    name : name of the argument, for the messages.
    rows : (n, d) array of finite floats or integers, of datetime64, or of timedelta64; not modified.

    Raises
    ------
    ArgumentError
        As :func:`epsjoin.local.coordinates.check_points`; or a time is missing, or is not a number of seconds
        that float64 holds exactly.
    """
    array = as_array(name, rows)
    return check_points(
        name, _as_seconds(name, array) if array.ndim == 2 and array.dtype.kind in "mM" else rows
    )


def _as_seconds(name: str, times: NDArray[np.datetime64] | NDArray[np.timedelta64]) -> Floats:
    unit, count = np.datetime_data(times.dtype)
    if count != 1 or unit not in (*_TICKS, *_SECONDS):
        raise ArgumentError(f"{name} must be times in units from weeks to nanoseconds, not {times.dtype}")
    fives, seconds = 5 ** _TICKS.get(unit, 0), _SECONDS.get(unit, 1)
    ticks, is_missing = times.astype(np.int64), np.isnat(times)
    # a tick is 1 / (2**p * 5**p) s: what 5**p divides is a whole number of halves, quarters, ...
    is_exact = (ticks % fives == 0) & (np.abs(ticks // fives) <= 2**53 // seconds) & ~is_missing
    if not is_exact.all():
        row, column = np.argwhere(~is_exact)[0]
        why = "is missing" if is_missing[row, column] else "is no number of seconds that float64 holds"
        raise ArgumentError(
            f"{name}: the time in row {row}, column {column} {why}; leave such rows out, or pass numbers, as "
            "(times - start) / np.timedelta64(1, 'ms') with one start for both sides"
        )
    return np.asarray(ticks // fives * seconds / 2.0 ** _TICKS.get(unit, 0))
