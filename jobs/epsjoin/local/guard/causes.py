"""A single cause that would explain why most records moved: a unit, an origin, a sign, a swap of columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats
from epsjoin.local.guard.seen import Values

MIN_MOVED = 100
"""Minimum number of moved records in which the guard looks for a common cause."""

SAME_CHANGE = 1e-3
"""Relative difference up to which two records changed alike."""

MAX_COMPARISONS = 1 << 26
"""Maximum number of comparisons of coordinates with one another."""

CAUSES = ("scale", "shift", "sign", "swapped")
"""The checks that look for a cause."""


class Cause(NamedTuple):
    """What may have happened to moved records.

    Parameters
    ----------
    n : number of the records that it explains, 0 if it explains none.
    of : number of records that were looked at.
    words : what it is.
    """

    n: int
    of: int
    words: str


def find_causes(moved: Values) -> dict[str, Cause]:
    """Look for each cause in the coordinates of moved records.

    Returns
    -------
    For each of ``CAUSES``, the coordinate, or the two, for which most records show it; nothing if too few
    records have moved.
    """
    dimensions = max(1, len(moved.names))
    n = min(len(moved.now), max(MIN_MOVED, MAX_COMPARISONS // dimensions**2))
    if n < MIN_MOVED:
        return {}
    moved = Values(moved.names, moved.before[:n], moved.now[:n])
    found = {**_find_changes(moved), "swapped": _find_swap(moved)}
    return {check: Cause(explained, n, words) for check, (explained, words) in found.items()}


def _find_changes(moved: Values) -> dict[str, tuple[int, str]]:
    """The ratio and the difference that most records have in one coordinate; a ratio of -1 is a sign."""
    best = {
        "scale": (0, "no coordinate has one ratio to what it was"),
        "shift": (0, "no coordinate has one difference to what it was"),
        "sign": (0, "no coordinate has the other sign"),
    }

    def take(check: str, n: int, words: str) -> None:
        if n > best[check][0]:  # of equally many the first coordinate
            best[check] = n, words

    for place, name in enumerate(moved.names):
        before, now = moved.before[:, place], moved.now[:, place]
        with np.errstate(over="ignore"):
            ratios, apart = now[before != 0] / before[before != 0], now - before
        has_sign = np.abs(ratios + 1) <= SAME_CHANGE
        take("sign", int(has_sign.sum()), f"{name} has the other sign")
        n, ratio = _most_common(ratios[~has_sign & (np.abs(ratios - 1) > SAME_CHANGE)])
        take("scale", n, f"{name} is {ratio:.4g} times what it was")
        n, most = _most_common(apart[apart != 0])
        take("shift", n, f"{name} is {abs(most):.4g} {'more' if most > 0 else 'less'} than it was")
    return best


def _most_common(changes: Floats) -> tuple[int, float]:
    """How many changes are about equal to the most common one, and the middle of these."""
    finite = np.sort(changes[np.isfinite(changes)])
    if not finite.size:
        return 0, 1.0
    reach = SAME_CHANGE * np.abs(finite)
    first, end = np.searchsorted(finite, finite - reach), np.searchsorted(finite, finite + reach, "right")
    most = int(np.argmax(end - first))
    return int(end[most] - first[most]), float(np.median(finite[first[most] : end[most]]))


def _find_swap(moved: Values) -> tuple[int, str]:
    before, now = moved.before, moved.now
    best = (0, "no two coordinates have changed places")
    for a in range(now.shape[1]):
        others = slice(a + 1, None)
        is_swapped = (now[:, others] == before[:, [a]]) & (now[:, [a]] == before[:, others])
        is_swapped &= now[:, [a]] != now[:, others]
        counts = is_swapped.sum(axis=0)
        if counts.size and counts.max() > best[0]:
            b = a + 1 + int(counts.argmax())
            best = int(counts.max()), f"{moved.names[a]} and {moved.names[b]} have changed places"
    return best
