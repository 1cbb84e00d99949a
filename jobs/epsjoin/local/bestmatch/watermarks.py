"""Watermarks: the value below which no row of a stream comes any more, by what is promised of its order.

An order says what one row, or the last few, promise of all later ones; the watermark is the highest of these
bounds so far. Orders are values that several streams may share; a watermark belongs to one stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.arguments import as_number, check_count


class Order(Protocol):
    """What a stream promises of its order."""

    @property
    def reach(self) -> int:
        """Number of consecutive rows, the newest included, that a bound is made from."""
        ...

    def bounds(self, values: Floats) -> Floats:
        """Give a lower bound of all rows after each of ``values[reach - 1:]``."""
        ...


@dataclass(frozen=True)
class Sorted:
    """A stream in ascending order; equal values may follow one another.

    Examples
    --------
    >>> Sorted().bounds(np.array([1.0, 4.0]))
    array([1., 4.])
    """

    reach = 1

    def bounds(self, values: Floats) -> Floats:
        """Each value: no later row lies below it."""
        return values


@dataclass(frozen=True)
class Within:
    """A stream in which no row comes more than ``c`` below one that came before it.

    Parameters
    ----------
    c : finite number of at least 0, in the unit of column 0. The bound is ``value - c`` in float64: if rows
        may be late by exactly a decimal number, pass a little more, as with eps.

    Raises
    ------
    ArgumentError
        ``c`` is not a finite number of at least 0.

    Examples
    --------
    >>> Within(1.5).bounds(np.array([1.0, 4.0]))
    array([-0.5,  2.5])
    """

    c: float
    reach = 1

    def __post_init__(self) -> None:
        """Refuse what is not a lateness."""
        c = as_number(self.c)
        if not 0 <= c < math.inf:
            raise ArgumentError(f"Within needs a finite c of at least 0, not {self.c!r}")
        object.__setattr__(self, "c", c)

    def bounds(self, values: Floats) -> Floats:
        """``c`` below each value."""
        with np.errstate(over="ignore"):
            return values - self.c


@dataclass(frozen=True)
class ReadAhead:
    """A stream in which no row comes after ``c`` consecutive rows that are all above it.

    Parameters
    ----------
    c : whole number of at least 1; with 1 the stream is sorted.

    Raises
    ------
    ArgumentError
        ``c`` is not a whole number of at least 1.

    Examples
    --------
    >>> ReadAhead(2).bounds(np.array([3.0, 1.0, 4.0, 5.0]))
    array([1., 1., 4.])
    """

    c: int

    def __post_init__(self) -> None:
        """Refuse what is not a number of rows."""
        object.__setattr__(self, "c", check_count("c of ReadAhead", self.c))

    @property
    def reach(self) -> int:
        """The number of rows read ahead."""
        return self.c

    def bounds(self, values: Floats) -> Floats:
        """The least of each ``c`` consecutive values."""
        return np.asarray(np.lib.stride_tricks.sliding_window_view(values, self.c).min(axis=1))


@dataclass(frozen=True)
class Punctuated:
    """A stream in any order, in which punctuations say up to which value no more rows come.

    Examples
    --------
    >>> Punctuated().bounds(np.array([1.0, 4.0]))
    array([-inf, -inf])
    """

    reach = 1

    def bounds(self, values: Floats) -> Floats:
        """Nothing: rows promise nothing."""
        return np.full(len(values), -math.inf)


@dataclass(frozen=True)
class Watermark:
    """How far one stream has come: no row below ``at`` is expected any more.

    Parameters
    ----------
    order : what the stream promises.
    at : the watermark; it never falls.
    punctuated : the bound that the punctuations alone give.
    highest : the largest value so far.
    disorder : the largest distance of a value below the highest before it: what ``Within`` had to allow.
    last : the last values, ``reach - 1`` at most, from which the next bound is made, too.
    """

    order: Order
    at: float = -math.inf
    punctuated: float = -math.inf
    highest: float = -math.inf
    disorder: float = 0.0
    last: Floats | None = None

    def observe(self, values: Floats) -> tuple[Floats, Watermark]:
        """Take the values of the next rows.

        Parameters
        ----------
        values : (n,) float64, finite, in the order in which the rows came; not modified. Rows that come too
            late are included.

        Returns
        -------
        before : (n,) the watermark as each row came. A row below it is late.
        after : the watermark after all of them.

        Notes
        -----
        O(n reach). The same for any division of a stream into calls.
        """
        if not len(values):
            return values, self
        reach = self.order.reach
        known = values if self.last is None else np.concatenate((self.last, values))
        # of the first rows, with fewer before them, nothing is known
        bounds = np.full(len(values), -math.inf)
        if len(known) >= reach:
            bounds[reach - 1 - len(known) :] = self.order.bounds(known)
        marks = np.maximum.accumulate(np.concatenate(([self.at], bounds)))
        highest = np.maximum.accumulate(np.concatenate(([self.highest], values)))
        gaps = _gap(highest[:-1], values)
        after = replace(
            self,
            at=float(marks[-1]),
            highest=float(highest[-1]),
            disorder=float(gaps.max(initial=self.disorder)),
            last=known[max(0, len(known) - reach + 1) :].copy(),
        )
        return marks[:-1], after

    def punctuate(self, value: float) -> Watermark:
        """Take the promise that no later row is at or below ``value``; ``inf`` ends the stream."""
        bound = math.nextafter(value, math.inf)
        return replace(self, at=max(self.at, bound), punctuated=max(self.punctuated, bound))


def _gap(highest: Floats, values: Floats) -> Floats:
    """The least c with ``highest - c <= value``, 0 where the value is not below.

    A rounded difference may be too small by one step.
    """
    with np.errstate(over="ignore"):
        gap = np.maximum(highest - values, 0.0)
        is_short = highest - gap > values
    gap[is_short] = np.nextafter(gap[is_short], math.inf)
    return gap
