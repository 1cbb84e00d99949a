"""What a join of two streams answers: what is final, or how a result that may still change has changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.bestmatch.batch import FOR_LEFT, FOR_RIGHT, BestPairs, with_lonely
from epsjoin.local.bestmatch.best import By, best_of
from epsjoin.local.bestmatch.candidates import Candidates
from epsjoin.local.bestmatch.orders import Order, OwnOrder
from epsjoin.local.bestmatch.waiting import AXIS, Side, StreamPairs, StreamRows, no_rows
from epsjoin.local.sweep.sweeping import Counters, add_counts


class Changes(NamedTuple):
    """What has been added to a result that may still change, and what has been removed from it.

    Parameters
    ----------
    new : what belongs to the result now, and did not before.
    retracted : what belonged to it before, and does not any more.

    Examples
    --------
    >>> from epsjoin import BestmatchStream
    >>> stream = BestmatchStream(eps=[5.0], how="inner")
    >>> _ = stream.push_left([[0.0]])
    >>> stream.push_right([[2.0]]).new.values.tolist()
    [[2.0]]
    >>> changes = stream.push_left([[1.0]])
    >>> changes.new.values.tolist(), changes.retracted.values.tolist()
    ([[1.0]], [[2.0]])
    """

    new: BestPairs
    retracted: BestPairs


@dataclass
class Work:
    """What all answers need: the criteria, for whom best matches are wanted, and where work is counted."""

    orders: Sequence[Order]
    how: str
    counters: Counters

    @property
    def sides(self) -> list[tuple[By, int]]:
        """The sides whose best matches are asked for, each with its bit of ``best_for``."""
        asked: dict[str, list[tuple[By, int]]] = {
            "left": [("left", FOR_LEFT)],
            "right": [("right", FOR_RIGHT)],
            "outer": [("left", FOR_LEFT), ("right", FOR_RIGHT)],
            "inner": [("all", FOR_LEFT | FOR_RIGHT)],
        }
        return asked[self.how]

    @property
    def keeps(self) -> tuple[bool, bool]:
        """Whether left and right rows without a partner belong to the result."""
        return self.how in ("left", "outer"), self.how in ("right", "outer")

    def is_best(self, candidates: Candidates) -> Bools:
        """Mark what is best among some candidates; the others cannot be best among more candidates either."""
        marks = [best_of(candidates, by, counters=self.counters) for by, _ in self.sides]
        return np.asarray(np.logical_or.reduce(marks))

    def judge(self, pairs: StreamPairs, new: int) -> StreamPairs:
        """Mark what is best, after new pairs have come at the end."""
        if new:
            for by, mark in self.sides:
                pairs = pairs.judge(by, mark, new, self.orders, self.counters)
        return pairs

    def columns(self, pairs: StreamPairs, lonely_left: Ints, lonely_right: Ints) -> BestPairs:
        """Pairs in the order in which their rows came, and after them the ids of rows without a partner."""
        pairs = pairs.take(np.lexsort((pairs.right, pairs.left)))
        values = np.full((len(pairs.left), len(self.orders)), math.nan)
        has_number = [not isinstance(order, OwnOrder) for order in self.orders]
        values[:, has_number] = pairs.values
        found = BestPairs(pairs.left_id, pairs.right_id, values, pairs.best_for)
        return with_lonely(found, lonely_left, lonely_right)


def _lonely(rows: StreamRows, matched: Ints) -> Bools:
    return ~np.isin(rows.numbers, matched)


@dataclass
class Final:
    """Pairs and unmatched rows that no later row can change; for left, right and outer.

    Parameters
    ----------
    work : what is asked.
    eps : that of column 0.
    pairs : those that are best so far, and not final.
    """

    work: Work
    eps: float
    pairs: StreamPairs

    def take(self, found: StreamPairs, left: Side, right: Side) -> BestPairs:
        """Take new pairs and the sides as they are now; return what has become final."""
        done = self._release(found, left, right)
        add_counts(self.work.counters, emitted_before_end=len(done.left))
        return done

    def _release(self, found: StreamPairs, left: Side, right: Side) -> BestPairs:
        pairs = self.work.judge(self.pairs.add(found), len(found.left))
        is_final = np.ones(len(pairs.left), np.bool_)
        lonely = [np.empty(0, np.int64)] * 2
        asked = self.work.keeps
        sides = ((left, right, pairs.left, pairs.left_points), (right, left, pairs.right, pairs.right_points))
        for place, (side, other, numbers, points) in enumerate(sides):
            if asked[place]:
                is_final &= other.is_beyond(points, self.eps)
                is_done = other.is_beyond(side.rows.points, self.eps) & _lonely(side.rows, numbers)
                lonely[place] = side.rows.ids[is_done]
        is_best = pairs.best_for > 0
        self.pairs = pairs.take(is_best & ~is_final)
        done = pairs.take(is_best & is_final)
        add_counts(
            self.work.counters,
            best=len(done.left),
            unmatched_left=len(lonely[0]),
            unmatched_right=len(lonely[1]),
        )
        return self.work.columns(done, *lonely)

    def n_waiting(self, left: Side, right: Side) -> int:
        """Number of pairs so far that are not final when the sides are these."""
        is_final = np.ones(len(self.pairs.left), np.bool_)
        asked = self.work.keeps
        for is_asked, other, points in zip(
            asked, (right, left), (self.pairs.left_points, self.pairs.right_points), strict=True
        ):
            if is_asked:
                is_final &= other.is_beyond(points, self.eps)
        return int(np.count_nonzero(~is_final))

    def end(self, left: Side, right: Side) -> BestPairs:
        """Return the rest, after both streams have ended."""
        return self._release(self.pairs.take(np.empty(0, np.int64)), left, right)

    def key(self, side: Side, other: Side) -> float:  # noqa: ARG002  # as of Recent
        """The least key that rows of this side may still meet: the watermark of the other side."""
        return other.mark.at


@dataclass
class Standing:
    """The pairs that no pair at all dominates so far; for inner.

    Parameters
    ----------
    work : what is asked.
    pairs : the result so far.
    """

    work: Work
    pairs: StreamPairs

    def take(self, found: StreamPairs, left: Side, right: Side) -> Changes:  # noqa: ARG002  # as the other answers
        """Take new pairs; return how the result has changed."""
        before = self.pairs
        pairs = self.work.judge(before.add(found), len(found.left))
        is_best = pairs.best_for > 0
        is_new = np.arange(len(is_best)) >= len(before.left)
        self.pairs = pairs.take(is_best)
        nobody = np.empty(0, np.int64)
        new, gone = pairs.take(is_best & is_new), before.take(~is_best[: len(before.left)])
        return Changes(self.work.columns(new, nobody, nobody), self.work.columns(gone, nobody, nobody))

    def n_waiting(self, left: Side, right: Side) -> int:  # noqa: ARG002  # as the other answers
        """See :meth:`Final.n_waiting`."""
        return len(self.pairs.left)

    def end(self, left: Side, right: Side) -> BestPairs:  # noqa: ARG002  # as the other answers
        """Return the whole result."""
        add_counts(self.work.counters, best=len(self.pairs.left))
        nobody = np.empty(0, np.int64)
        return self.work.columns(self.pairs, nobody, nobody)

    def key(self, side: Side, other: Side) -> float:  # noqa: ARG002  # as the other answers
        """See :meth:`Final.key`."""
        return other.mark.at


class _Result(NamedTuple):
    """The best pairs as of one moment, and the living rows without a partner."""

    pairs: StreamPairs
    left: StreamRows
    right: StreamRows


@dataclass
class Recent:
    """The best matches, of any kind, among the rows up to a certain age, as of the latest row.

    Parameters
    ----------
    work : what is asked.
    max_age : largest age, in the unit of column 0.
    pairs : living pairs, but for those that will never be best again.
    """

    work: Work
    max_age: float
    pairs: StreamPairs

    def __post_init__(self) -> None:
        """Begin without a result."""
        nobody = no_rows(self.pairs.left_points.shape[1])
        self._result = _Result(self.pairs, nobody, nobody)

    def take(self, found: StreamPairs, left: Side, right: Side) -> Changes:
        """Take new pairs and the sides as they are now; return how the result has changed."""
        pairs = self.pairs.add(found)
        times = np.minimum(pairs.left_points[:, AXIS], pairs.right_points[:, AXIS])
        pairs = pairs.take(self.key(left, right) - times <= self.max_age)
        self.pairs = pairs.take(self._may_return(pairs))
        best = self.work.judge(
            self.pairs._replace(best_for=np.zeros(len(self.pairs.left), np.uint8)), len(self.pairs.left)
        )
        lonely = [
            side.rows.take(is_asked & side.area.stays(self.key(side, other)) & _lonely(side.rows, numbers))
            for is_asked, side, other, numbers in zip(
                self.work.keeps, (left, right), (right, left), (pairs.left, pairs.right), strict=True
            )
        ]
        before, self._result = self._result, _Result(best.take(best.best_for > 0), *lonely)
        return Changes(self._without(self._result, before), self._without(before, self._result))

    def n_waiting(self, left: Side, right: Side) -> int:
        """See :meth:`Final.n_waiting`: pairs that are young enough."""
        times = np.minimum(self.pairs.left_points[:, AXIS], self.pairs.right_points[:, AXIS])
        return int(np.count_nonzero(self.key(left, right) - times <= self.max_age))

    def end(self, left: Side, right: Side) -> BestPairs:
        """Return the whole result."""
        self.take(self.pairs.take(np.empty(0, np.int64)), left, right)
        pairs, lonely_left, lonely_right = self._result
        add_counts(
            self.work.counters,
            best=len(pairs.left),
            unmatched_left=len(lonely_left.ids),
            unmatched_right=len(lonely_right.ids),
        )
        return self.work.columns(pairs, lonely_left.ids, lonely_right.ids)

    def key(self, side: Side, other: Side) -> float:
        """See :meth:`Final.key`: rows live until they are too old, as of the latest one."""
        return max(side.mark.highest, other.mark.highest)

    def _may_return(self, pairs: StreamPairs) -> Bools:
        """Which pairs may be best now or later: no pair that lives as long dominates them.

        Of pairs that are equal in all criteria the youngest stands for the others, since equal pairs do not
        dominate one another.
        """
        keep = np.zeros(len(pairs.left), np.bool_)
        if any(isinstance(order, OwnOrder) for order in self.work.orders):
            return ~keep  # which pairs are equal is not known
        age = -np.minimum(pairs.left_points[:, AXIS], pairs.right_points[:, AXIS])
        for by, _ in self.work.sides:
            key = {"left": pairs.left, "right": pairs.right, "all": np.zeros(len(keep), np.int64)}[by]
            at = np.lexsort((age, *pairs.values.T, key))
            ordered = np.column_stack((key, pairs.values))[at]
            is_first = np.ones(len(at), np.bool_)
            is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
            first = at[is_first]
            youngest = pairs.take(first)._replace(values=np.column_stack((pairs.values, age))[first])
            is_best = youngest.best(by, self.work.orders, self.work.counters)
            keep[at] |= is_best[np.cumsum(is_first) - 1]
        return keep

    def _without(self, result: _Result, other: _Result) -> BestPairs:
        """What one result has and the other has not."""
        is_in_both = np.isin(_keys(result.pairs), _keys(other.pairs))
        lonely = [
            rows.ids[_lonely(rows, others.numbers)]
            for rows, others in zip(result[1:], other[1:], strict=True)
        ]
        return self.work.columns(result.pairs.take(~is_in_both), *lonely)


def _keys(pairs: StreamPairs) -> NDArray[np.void]:
    """What identifies a pair of a result: its rows, and for whom it is best."""
    keys = np.empty(len(pairs.left), [("left", np.int64), ("right", np.int64), ("best_for", np.uint8)])
    keys["left"], keys["right"], keys["best_for"] = pairs.left, pairs.right, pairs.best_for
    return keys
