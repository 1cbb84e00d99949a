"""Best matches of two streams: a row is answered as soon as no better partner can come.

The window algorithm of the papers (MatWin), with a watermark for each stream in place of the windows' common
bounds. Of every row it keeps what may still find a partner, and of every pair what may still be best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, Literal, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.arguments import as_array, as_number, check_choice, check_count, check_lengths, int_column
from epsjoin.local.bestmatch import watermarks
from epsjoin.local.bestmatch.answers import Changes, Final, Recent, Standing, Work
from epsjoin.local.bestmatch.batch import BestPairs
from epsjoin.local.bestmatch.candidates import Candidates
from epsjoin.local.bestmatch.orders import Order
from epsjoin.local.bestmatch.rows import check_kinds, check_rows, kind_of
from epsjoin.local.bestmatch.stream_criteria import Criteria
from epsjoin.local.bestmatch.waiting import Side, StreamArea, StreamPairs, StreamRows, no_pairs
from epsjoin.local.bestmatch.watermarks import Punctuated, Sorted, Watermark
from epsjoin.local.sweep.sweeping import Counters, add_counts, check_counters
from epsjoin.params import MATCH_HOW

LATE = ("refuse", "count")
"""What is done with a row below its stream's watermark."""

_SORTED = Sorted()

Answer = TypeVar("Answer", BestPairs, Changes)


class BestmatchStream(Generic[Answer]):
    """Best matches of two streams that are ordered, or nearly, by column 0.

    Rows are pushed as they come, in any number and from either side first. Each call returns what has become
    final since the last one: together the result of :func:`bestmatch_join` of all rows, nothing twice.

    Parameters
    ----------
    eps : as for :func:`bestmatch_join`; that of column 0 must be finite: it bounds how long a row waits.
    how : "left", the default, "right" or "outer" as for :func:`bestmatch_join`: an answer is a
        :class:`BestPairs`, and final. "inner": no pair is final before the end, since any later one may
        dominate it. An answer is :class:`Changes` then, and :meth:`finish` returns the whole result.
    orders : as for :func:`bestmatch_join`; one of them must be a ``Closest`` of column 0 alone, with a finite
        eps. ``Subset`` holds the marks of two whole tables and so has no place in a stream; an ``OwnOrder``
        may compare marks that are columns.
    left_order, right_order : what each stream promises of its order: :class:`Sorted` (the default),
        :class:`Within`, :class:`ReadAhead` or :class:`Punctuated`.
    late : what is done with a row below its stream's watermark, against the promise: "refuse", the default,
        or "count", which leaves it out.
    max_age : a number, or a timedelta64. Column 0 is a time then, and no criterion: ``eps`` has one threshold
        for each other column. The result is that of the rows whose time is at most ``max_age`` before the
        latest one of both streams, as it is after each call; an answer is :class:`Changes`.
    max_candidates : maximum number of candidates of the rows of one push, and of pairs that wait at once;
        10**7 by default, of some 300 bytes each.
    counters : dictionary to whose entries the work is added: ``candidates``, ``within``, ``comparisons``,
        ``best``, ``unmatched_left`` and ``unmatched_right`` as by :func:`bestmatch_join`; ``late_left`` and
        ``late_right``; ``emitted_before_end``, the rows of the result that came before :meth:`finish`;
        ``peak_rows`` and ``peak_pairs``, the most rows and pairs that waited at once.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; no criterion bounds column 0.

    See Also
    --------
    bestmatch_join : the best matches of two tables.

    Notes
    -----
    A left row is final when the right watermark is more than eps above it, by the same subtraction that
    decides about pairs. Memory holds the rows of both streams within eps and the lateness of the watermarks,
    and one push. A stream that is silent promises nothing: the other one's rows wait, and memory grows, until
    its watermark moves, by a row or by :meth:`punctuate_left` or :meth:`punctuate_right`.

    References
    ----------
    Kemper and Stegmaier: Evaluating bestmatch-joins on streaming data, report MIP-0204, University of Passau,
    2002, algorithm 2 and section 3.4; where this differs, see ``docs/notes-on-papers.md``.

    Examples
    --------
    >>> stream = BestmatchStream(eps=[5.0, 3.0])
    >>> stream.push_left([[0.0, 20.0], [100.0, 20.0]]).left.tolist()
    []
    >>> stream.push_right([[1.0, 21.0], [2.0, 22.0]]).left.tolist()
    []
    >>> done = stream.push_right([[60.0, 20.0]])
    >>> done.left.tolist(), done.right.tolist(), done.values.tolist()
    ([0], [0], [[1.0, 1.0]])
    >>> done = stream.finish()
    >>> done.left.tolist(), done.right.tolist()
    ([1], [-1])
    """

    @overload
    def __init__(
        self: BestmatchStream[BestPairs],
        eps: float | ArrayLike | None = ...,
        how: Literal["left", "right", "outer"] = ...,
        *,
        orders: Sequence[Order] | None = ...,
        left_order: watermarks.Order = ...,
        right_order: watermarks.Order = ...,
        late: Literal["refuse", "count"] = ...,
        max_age: None = ...,
        max_candidates: int = ...,
        counters: Counters | None = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: BestmatchStream[Changes],
        eps: float | ArrayLike | None = ...,
        how: Literal["inner"] = ...,
        *,
        orders: Sequence[Order] | None = ...,
        left_order: watermarks.Order = ...,
        right_order: watermarks.Order = ...,
        late: Literal["refuse", "count"] = ...,
        max_age: None = ...,
        max_candidates: int = ...,
        counters: Counters | None = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: BestmatchStream[Changes],
        eps: float | ArrayLike | None = ...,
        how: Literal["inner", "left", "right", "outer"] = ...,
        *,
        orders: Sequence[Order] | None = ...,
        left_order: watermarks.Order = ...,
        right_order: watermarks.Order = ...,
        late: Literal["refuse", "count"] = ...,
        max_age: float | np.timedelta64,
        max_candidates: int = ...,
        counters: Counters | None = ...,
    ) -> None: ...

    def __init__(
        self,
        eps: float | ArrayLike | None = None,
        how: Literal["inner", "left", "right", "outer"] = "left",
        *,
        orders: Sequence[Order] | None = None,
        left_order: watermarks.Order = _SORTED,
        right_order: watermarks.Order = _SORTED,
        late: Literal["refuse", "count"] = "refuse",
        max_age: float | np.timedelta64 | None = None,
        max_candidates: int = 10**7,
        counters: Counters | None = None,
    ) -> None:
        check_choice("how", how, MATCH_HOW)
        check_choice("late", late, LATE)
        for name, order in (("left_order", left_order), ("right_order", right_order)):
            if not isinstance(order, (Sorted, watermarks.Within, watermarks.ReadAhead, Punctuated)):
                raise ArgumentError(f"{name} must be Sorted, Within, ReadAhead or Punctuated, not {order!r}")
        self._late, self._counters = late, check_counters(counters)
        self._max_candidates = check_count("max_candidates", max_candidates)
        self._criteria = Criteria(eps, orders, max_age)
        self._how: str = how
        self._is_finished = self._has_begun = False
        self._kind: str | None = None
        marks = Watermark(left_order), Watermark(right_order)
        self._begin(self._criteria.least_columns(), *marks)  # they are checked before any row comes

    def push_left(self, rows: ArrayLike, ids: ArrayLike | None = None) -> Answer:
        """Take the next rows of the left stream.

        Parameters
        ----------
        rows : (n, d) array as for :func:`bestmatch_join`, in the order in which the rows came; n may be 0.
            The rows of both streams are all numbers, all times, or all durations.
        ids : (n,) integers that name the rows in the answers; by default the rows of each stream are numbered
            as they come. They should be distinct, which is not checked. For ids of another type leave them
            out: ``names[done.left]``.

        Returns
        -------
        BestPairs
            What has become final, sorted by the order in which the left and the right rows came; rows without
            a partner last. With ``how="inner"``, :class:`Changes`.

        Raises
        ------
        ArgumentError
            The rows have another number of columns than before, or are times where others were numbers, or a
            value is NaN or infinite; the stream is finished.
        DataRefusedError
            A row is late, and such rows are refused. Nothing of the push was taken then: it may come again,
            without the row.
        BudgetError
            There are more than ``max_candidates`` candidates or waiting pairs. Nothing of the push was taken:
            it may come again in smaller ones.
        """
        self._left, found = self._arrive("left", rows, ids)
        return self._answer(found)

    def push_right(self, rows: ArrayLike, ids: ArrayLike | None = None) -> Answer:
        """Take the next rows of the right stream; see :meth:`push_left`."""
        self._right, found = self._arrive("right", rows, ids)
        return self._answer(found)

    def punctuate_left(self, value: float | np.datetime64 | np.timedelta64) -> Answer:
        """Take the promise that no later left row is at or below a value; infinity ends the left stream.

        Parameters
        ----------
        value : any number, or a time where rows are times; one below the watermark says nothing new.

        Returns
        -------
        BestPairs
            As :meth:`push_left`.

        Raises
        ------
        ArgumentError
            The value is not a number or a time; the stream is finished.
        """
        self._left = replace(self._left, mark=self._left.mark.punctuate(self._check_value(value)))
        return self._answer(no_pairs(self._d, self._orders))

    def punctuate_right(self, value: float | np.datetime64 | np.timedelta64) -> Answer:
        """Take the promise that no later right row is at or below a value; see :meth:`punctuate_left`."""
        self._right = replace(self._right, mark=self._right.mark.punctuate(self._check_value(value)))
        return self._answer(no_pairs(self._d, self._orders))

    def finish(self) -> BestPairs:
        """End both streams.

        Returns
        -------
        BestPairs
            All that was not final before; the whole result if the answers were :class:`Changes`.

        Raises
        ------
        ArgumentError
            The stream is finished already.
        """
        self._check_open()
        self._is_finished = True
        self._left, self._right = (
            replace(side, mark=side.mark.punctuate(math.inf)) for side in (self._left, self._right)
        )
        return self._answers.end(self._left, self._right)

    def _begin(self, d: int, left: Watermark, right: Watermark) -> None:
        """Check the criteria for rows of d columns, and begin without rows."""
        self._orders, reach = self._criteria.of_columns(d)
        self._d = d
        self._left, self._right = (
            Side(
                name, mark, StreamArea(d, self._orders, reach, is_left, self._max_candidates, self._counters)
            )
            for name, mark, is_left in (("left", left, True), ("right", right, False))
        )
        work, nothing = Work(self._orders, self._how, self._counters), no_pairs(d, self._orders)
        self._answers: Final | Standing | Recent
        if self._criteria.max_age is not None:
            self._answers = Recent(work, reach, nothing)
        elif self._how == "inner":
            self._answers = Standing(work, nothing)
        else:
            self._answers = Final(work, reach, nothing)

    def _check_open(self) -> None:
        if self._is_finished:
            raise ArgumentError("the stream is finished; make another one for other rows")

    def _check_value(self, value: object) -> float:
        self._check_open()
        if isinstance(value, (np.datetime64, np.timedelta64)):
            rows = np.array([[value]])
            check_kinds("a punctuation", kind_of(rows), "the rows before", self._kind)
            try:
                number = float(check_rows("a punctuation", rows)[0, 0])
            except ArgumentError:
                raise ArgumentError(
                    f"a punctuation must be a time that float64 holds in seconds, not {value!r}"
                ) from None
            self._kind = self._kind or kind_of(rows)  # rows of numbers have no time
            return number
        number = as_number(value)
        if math.isnan(number):
            raise ArgumentError(f"a punctuation must be a number or a time, not {value!r}")
        return number

    def _arrive(self, name: str, rows: ArrayLike, ids: ArrayLike | None) -> tuple[Side, StreamPairs]:
        """Check the next rows of a side; return the side with them, and the pairs that they make."""
        self._check_open()
        array = as_array(f"{name} rows", rows)
        points, kind = check_rows(f"{name} rows", array), kind_of(array)
        check_kinds(f"{name} rows", kind, "the rows before", self._kind)
        self._criteria.check_kind(kind)
        if not self._has_begun:
            self._begin(points.shape[1], self._left.mark, self._right.mark)
        if points.shape[1] != self._d:
            raise ArgumentError(
                f"{name} rows must have {self._d} columns as those before, not {points.shape[1]}"
            )
        side, other = (self._left, self._right) if name == "left" else (self._right, self._left)
        names = side.came + np.arange(len(points)) if ids is None else int_column("ids", ids)
        check_lengths(rows=points, ids=names)
        arrived, late, after = side.take(points, names, self._late)
        found = no_pairs(self._d, self._orders)
        for met in other.area.query(arrived):
            found = found.add(self._pairs_of(*met))
        left, right = (after, other) if name == "left" else (other, after)
        self._check_room(self._answers.n_waiting(left, right) + len(found.left))
        add_counts(self._counters, **{f"late_{name}": late})
        after.area.insert(arrived)
        self._kind = self._kind or kind
        self._has_begun = True  # a push that is refused does not fix the number of columns
        return after, found

    def _check_room(self, n_waiting: int) -> None:
        """Refuse a push after which more pairs would wait than may."""
        if n_waiting > self._max_candidates:
            raise BudgetError(
                f"{n_waiting:,} pairs would wait, more than max_candidates = {self._max_candidates:,}, as "
                "where many rows are equal; take one of equal rows, a smaller eps, or allow more. Nothing of "
                "this push was taken"
            )

    def _pairs_of(self, left: StreamRows, right: StreamRows, found: Candidates) -> StreamPairs:
        """The pairs among some left and some right rows that may be best."""
        if not isinstance(self._answers, Recent):  # with max_age what is dominated may come back
            found = found.take(self._answers.work.is_best(found))
        x, y = found.left, found.right
        return StreamPairs(
            *(left.numbers[x], right.numbers[y], left.ids[x], right.ids[y], left.points[x], right.points[y]),
            found.values,
            np.zeros(len(found), np.uint8),
        )

    def _answer(self, found: StreamPairs) -> Answer:
        """Take new pairs, return what follows from them and from the watermarks, and drop what is done."""
        left, right = self._left, self._right
        self._peak("peak_rows", left.area.size + right.area.size)
        self._peak("peak_pairs", len(self._answers.pairs.left) + len(found.left))
        answer = self._answers.take(found, left, right)
        left.area.expire(self._answers.key(left, right))
        right.area.expire(self._answers.key(right, left))
        return cast(Answer, answer)

    def _peak(self, name: str, count: int) -> None:
        self._counters[name] = max(self._counters.get(name, 0), count)
