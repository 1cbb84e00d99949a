"""What waits in a join of two streams: rows that may find a partner, and pairs that may be best."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from epsjoin.errors import DataRefusedError
from epsjoin.kernels.arrays import Bools, Bytes, Floats, Ints
from epsjoin.local.bestmatch.best import By, best_of
from epsjoin.local.bestmatch.candidates import Candidates, preferences_of, within
from epsjoin.local.bestmatch.orders import Closest, Order, Own
from epsjoin.local.bestmatch.watermarks import Watermark
from epsjoin.local.sweep.sweeping import Counters

AXIS = 0
"""The column by which both streams are ordered."""


def no_rows(d: int) -> StreamRows:
    """No rows of d columns."""
    return StreamRows(np.empty((0, d)), np.empty(0, np.int64), np.empty(0, np.int64))


def no_pairs(d: int, orders: Sequence[Order]) -> StreamPairs:
    """No pairs of rows of d columns."""
    numbers, points = np.empty(0, np.int64), np.empty((0, d))
    values = np.empty((0, sum(isinstance(order, (Closest, Own)) for order in orders)))
    return StreamPairs(numbers, numbers, numbers, numbers, points, points, values, np.empty(0, np.uint8))


class StreamRows(NamedTuple):
    """Rows of one stream: columns, ids, and numbers in the order in which they came."""

    points: Floats
    ids: Ints
    numbers: Ints

    def take(self, rows: Bools | Ints) -> StreamRows:
        """Return some of the rows."""
        return StreamRows._make(column[rows] for column in self)

    def add(self, others: StreamRows) -> StreamRows:
        """Return these rows and others after them."""
        return StreamRows._make(np.concatenate(both) for both in zip(self, others, strict=True))


class StreamPairs(NamedTuple):
    """Pairs: numbers, ids and columns of both rows, values of the criteria, for whom a pair is best."""

    left: Ints
    right: Ints
    left_id: Ints
    right_id: Ints
    left_points: Floats
    right_points: Floats
    values: Floats
    best_for: Bytes

    def take(self, rows: Bools | Ints) -> StreamPairs:
        """Return some of the pairs."""
        return StreamPairs._make(column[rows] for column in self)

    def add(self, others: StreamPairs) -> StreamPairs:
        """Return these pairs and others after them."""
        return StreamPairs._make(
            np.concatenate(cast(tuple[Floats, Floats], both)) for both in zip(self, others, strict=True)
        )

    def best(self, by: By, orders: Sequence[Order], counters: Counters) -> Bools:
        """Mark the pairs that no other pair of the same row, or none at all, dominates."""
        each = np.arange(len(self.left))
        asked = preferences_of(self.left_points, self.right_points, orders, each, each)
        candidates = Candidates(
            self.left, self.right, self.values, np.empty((len(each), 0), np.uint64), asked
        )
        return best_of(candidates, by, counters=counters)

    def judge(self, by: By, mark: int, new: int, orders: Sequence[Order], counters: Counters) -> StreamPairs:
        """Set a bit of ``best_for`` where a pair is best, in rows that have one of the last, new pairs."""
        keys = {"left": self.left, "right": self.right, "all": np.zeros(len(self.left), np.int64)}[by]
        is_touched = np.isin(keys, keys[len(keys) - new :])
        touched = self.take(is_touched)
        best_for = self.best_for.copy()
        is_best = touched.best(by, orders, counters)
        best_for[is_touched] = (touched.best_for & ~np.uint8(mark)) | (np.uint8(mark) * is_best)
        return self._replace(best_for=best_for)


class StreamArea:
    """The sweep area of one stream: its rows that may still be near a later row of the other stream.

    It has the protocol of :class:`epsjoin.local.sweep.area.SweepArea`; keys are values of the first column.

    Parameters
    ----------
    d : columns of a row.
    orders : the criteria.
    reach : how far a key may be above a row that it can still meet.
    is_left : whether it holds the left stream's rows.
    max_candidates : maximum number of candidates of one query.
    counters : work is added to them.
    """

    def __init__(
        self,
        d: int,
        orders: Sequence[Order],
        reach: float,
        is_left: bool,
        max_candidates: int,
        counters: Counters,
    ) -> None:
        self.rows = no_rows(d)
        self._orders, self._reach, self._is_left = orders, reach, is_left
        self._max_candidates, self._counters = max_candidates, counters

    @property
    def size(self) -> int:
        """Rows that it holds."""
        return len(self.rows.ids)

    def stays(self, key: float) -> Bools:
        """Which rows a row of this key or a later one can still meet, as pairs are decided."""
        with np.errstate(over="ignore"):
            return np.asarray(key - self.rows.points[:, AXIS] <= self._reach)

    def expire(self, key: float | None) -> StreamRows:
        """Drop and return the rows that no row with this key or a later one can meet; for None all rows."""
        stays = np.zeros(self.size, np.bool_) if key is None else self.stays(key)
        dropped, self.rows = self.rows.take(~stays), self.rows.take(stays)
        return dropped

    def insert(self, rows: StreamRows) -> None:
        """Hold these rows, in any order."""
        self.rows = self.rows.add(rows)

    def query(self, rows: StreamRows) -> Iterator[tuple[StreamRows, StreamRows, Candidates]]:
        """Find the pairs within all eps of other rows, those of the other stream, and the rows it holds."""
        left, right = (self.rows, rows) if self._is_left else (rows, self.rows)
        if len(left.ids) and len(right.ids):
            most, counted = self._max_candidates, self._counters
            found = within(left.points, right.points, self._orders, max_candidates=most, counters=counted)
            yield left, right, found


@dataclass(frozen=True)
class Side:
    """One of the two streams: how far it has come, and its rows that may still find a partner."""

    name: str
    mark: Watermark
    area: StreamArea
    came: int = 0

    @property
    def rows(self) -> StreamRows:
        """Its rows that may still find a partner."""
        return self.area.rows

    def is_beyond(self, points: Floats, eps: float) -> Bools:
        """Which rows of the other side are within eps of no later row of this one, as pairs are decided."""
        with np.errstate(over="ignore"):
            return np.asarray(self.mark.at - points[:, AXIS] > eps)

    def take(self, points: Floats, ids: Ints, late: str) -> tuple[StreamRows, int, Side]:
        """Return the rows that are not late, the number of those that are, and the side after them."""
        values = points[:, AXIS]
        before, mark = self.mark.observe(values)
        is_late = values < before
        if late == "refuse" and is_late.any():
            self._refuse(int(is_late.argmax()), values, before, ids)
        numbers = self.came + np.arange(len(points))
        arrived = StreamRows(points, ids, numbers).take(~is_late)
        return arrived, int(is_late.sum()), replace(self, mark=mark, came=self.came + len(points))

    def _refuse(self, row: int, values: Floats, before: Floats, ids: Ints) -> None:
        value, mark = float(values[row]), float(before[row])
        if value < self.mark.punctuated:
            said = math.nextafter(self.mark.punctuated, -math.inf)
            remedy = f"it was said that no {self.name} row at or below {said!r} comes"
        else:
            needed = self.mark.observe(values[: row + 1])[1].disorder
            held = f"Within({needed!r}) would have for all {self.name} rows so far"
            remedy = f"{self.mark.order!r} has not held, {held}"
        raise DataRefusedError(
            f"{self.name} row {row} of this push (id {ids[row]}) is late: column {AXIS} is {value!r}, "
            f"{mark - value!r} below the watermark {mark!r}; {remedy}. Nothing of this push was taken; "
            'late="count" leaves such rows out and counts them'
        )
