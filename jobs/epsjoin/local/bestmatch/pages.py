"""Pages of rows: which of them must meet, and in which order they are loaded.

A page is a stretch of rows that is read as a whole. Two pages must meet if their boxes are within ε. A
schedule says which page is loaded when, so that each such pair of pages meets once in memory, which never
holds more pages than there are buffers. Nothing here reads a file: :mod:`epsjoin.bestmatch.files` does.

References
----------
Kemper and Stegmaier: Evaluating bestmatch-joins on streaming data, report MIP-0204, University of Passau,
2002, section 3.3; both ways are from Böhm, Braunmüller, Krebs and Kriegel: Epsilon grid order, SIGMOD 2001.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints

MIN_BUFFERS = 2
"""Minimum number of buffers: a page of each side."""


class PageBoxes(NamedTuple):
    """The smallest box around the rows of each page.

    Parameters
    ----------
    lower, upper : (n, d).
    """

    lower: Floats
    upper: Floats


def box_pages(points: Floats, starts: Ints) -> PageBoxes:
    """The boxes of pages.

    Parameters
    ----------
    points : (n, d).
    starts : (k,) first row of each page, rising; the first is 0, and no page is empty.
    """
    return PageBoxes(np.minimum.reduceat(points, starts), np.maximum.reduceat(points, starts))


def find_partners(left: PageBoxes, right: PageBoxes, eps: Floats) -> list[Ints]:
    """For each left page the right pages that may hold a row within eps of one of its rows, rising.

    Parameters
    ----------
    left, right : boxes of the pages.
    eps : (d,) largest difference in each dimension.

    Notes
    -----
    A pair of rows is within eps if ``abs(x - y) <= eps``, in float64. Rounding never reverses the order of
    two differences: if the gap of the boxes is above eps, so is every difference.
    """
    return [np.flatnonzero(_are_within(lower, upper, right, eps)) for lower, upper in zip(*left, strict=True)]


def _are_within(lower: Floats, upper: Floats, boxes: PageBoxes, eps: Floats) -> Bools:
    gaps = np.maximum(lower - boxes.upper, boxes.lower - upper)
    return np.asarray((gaps <= eps).all(axis=1))


class LoadLeft(NamedTuple):
    """Load a left page, in place of the one before."""

    page: int


class LoadRight(NamedTuple):
    """Load a right page."""

    page: int


class DropRight(NamedTuple):
    """Free the buffer of a right page."""

    page: int


class Meet(NamedTuple):
    """Join the two pages, which are loaded."""

    left: int
    right: int


Step = LoadLeft | LoadRight | DropRight | Meet


def schedule(partners: Sequence[Ints], buffers: int) -> Iterator[Step]:
    """What to load and to join, by the cheaper of two ways.

    Parameters
    ----------
    partners : for each left page the right pages that it must meet; see :func:`find_partners`.
    buffers : number of pages that memory holds, one of them for the left side.

    Raises
    ------
    ArgumentError
        There are fewer than two buffers.

    Notes
    -----
    Which way loads fewer pages depends on the pages; the loads of both are counted from the partners, without
    reading a page. The paper always changes to the crabstep, which sometimes costs more.
    """
    if buffers < MIN_BUFFERS:
        raise ArgumentError(f"a schedule needs {MIN_BUFFERS} buffers, a page of each side, not {buffers}")
    ways = (gallop, crabstep)
    costs = [count_loads(way(partners, buffers)) for way in ways]
    return ways[int(np.argmin(costs))](partners, buffers)


def count_loads(steps: Iterable[Step]) -> int:
    """The number of pages that are loaded."""
    return sum(isinstance(step, LoadLeft | LoadRight) for step in steps)


def gallop(partners: Sequence[Ints], buffers: int) -> Iterator[Step]:
    """One left page after another, each with all its partners; the least recently used right page is dropped.

    Parameters
    ----------
    partners, buffers : see :func:`schedule`.
    """
    held = _Held(buffers - 1)
    for left, wanted in enumerate(partners):
        if len(wanted):
            yield LoadLeft(left)
        for right in wanted.tolist():
            yield from held.use(right)
            yield Meet(left, right)


def crabstep(partners: Sequence[Ints], buffers: int) -> Iterator[Step]:
    """As :func:`gallop`, but where a left page has more partners than fit, the first ones are kept.

    All left pages that must meet one of these come past them before they go.

    Parameters
    ----------
    partners, buffers : see :func:`schedule`.
    """
    held = _Held(buffers - 1)
    open_rights = [dict.fromkeys(wanted.tolist()) for wanted in partners]
    lefts = dict[int, list[int]]()
    for left, wanted in enumerate(open_rights):
        for right in wanted:
            lefts.setdefault(right, []).append(left)
    loaded = -1
    for first in range(len(partners)):
        while open_rights[first]:
            is_crab = len(open_rights[first]) > held.room
            kept = list(open_rights[first])[: held.room]
            passing = {left for right in kept for left in lefts[right] if left > first} if is_crab else ()
            for left in (first, *sorted(passing)):
                # those in memory first: what is loaded next must not push out what is kept
                mine = sorted((right for right in kept if right in open_rights[left]), key=held.is_not_held)
                if mine and loaded != left:
                    yield LoadLeft(left)
                    loaded = left
                for right in mine:
                    yield from held.use(right)
                    yield Meet(left, right)
                    del open_rights[left][right]


class _Held:
    """The right pages in memory.

    Parameters
    ----------
    room : number of pages that fit.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self._pages: dict[int, None] = {}  # the least recently used one comes first

    def is_not_held(self, page: int) -> bool:
        """Whether the page must be loaded."""
        return page not in self._pages

    def use(self, page: int) -> Iterator[Step]:
        """Have the page in memory."""
        if page in self._pages:
            del self._pages[page]
        else:
            if len(self._pages) == self.room:
                oldest = next(iter(self._pages))
                del self._pages[oldest]
                yield DropRight(oldest)
            yield LoadRight(page)
        self._pages[page] = None
