"""What a progressive join yields for the pairs that it finds: pairs, or rows with or without a partner."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.join.arrays import NO_ROW, Rows
from epsjoin.local.progressive.partners import Partners
from epsjoin.local.progressive.rows import HAS_MORE, Met, SweepRows
from epsjoin.local.progressive.running import RunningEstimate
from epsjoin.local.sweep.pairs import Pairs

How = Literal["inner", "semi", "anti", "left", "right", "outer"]


class Found(NamedTuple):
    """A batch of a progressive join.

    Parameters
    ----------
    pairs : pairs, each of which comes once and is never taken back; for a semi or anti join
        :class:`epsjoin.Rows`.
    phase : "runs" while the tables are read, "merges" afterwards.
    estimate : how many pairs there will be; see :class:`epsjoin.RunningEstimate`.

    Examples
    --------
    >>> from epsjoin import Equi, progressive_join
    >>> with progressive_join([1, 2], [2, 3], Equi()) as found:
    ...     [(batch.pairs.left.tolist(), batch.phase) for batch in found]
    [([1], 'runs')]
    """

    pairs: Pairs | Rows
    phase: str
    estimate: RunningEstimate


class Results:
    """The pairs and rows that a join has given, and the rows that have a partner so far.

    Parameters
    ----------
    how : as of :func:`epsjoin.progressive_join`.
    two_tables : whether a left table joins a right one.
    counters : the caller's.
    """

    def __init__(self, how: How, two_tables: bool, counters: dict[str, Any]) -> None:
        self._how, self._two, self._counters = how, two_tables, counters
        self._partners = (Partners(), Partners())
        self._start = time.perf_counter()
        self.lowest: float | None = None  # a threshold that was lowered since the join began
        self.pairs = 0
        self.before = 0  # pairs that an earlier process has yielded
        self.lonely_side: int | None = (
            None  # of the batch that was given last, 0 or 1 if its rows have no partner
        )

    @property
    def gives_rows(self) -> bool:
        """Whether rows are given, not pairs."""
        return self._how in ("semi", "anti")

    @property
    def gives_lonely(self) -> bool:
        """Whether rows without a partner are given."""
        return self._how not in ("inner", "semi")

    @property
    def _marks(self) -> tuple[bool, bool]:
        """Whether rows of the left and of the right table are marked when they have a partner."""
        how = self._how
        return how in ("semi", "anti", "left", "outer"), how in ("right", "outer")

    def _has_partner(self, rows: SweepRows) -> Bools:
        is_right = rows.is_right
        found = np.zeros(rows.n, np.bool_)
        for side, marks in enumerate(self._marks):
            if marks:
                of_side = is_right == bool(side)
                found[of_side] = self._partners[side].have(rows.number[of_side])
        return found

    def lack_partner(self, rows: SweepRows) -> Bools:
        """Which rows a semi or an anti join asks for that have no partner so far."""
        lonely = ~self._has_partner(rows)
        return lonely & ~rows.is_right if self._two else lonely

    def leave(self, rows: SweepRows) -> SweepRows:
        """The rows that a semi or anti join still needs: left ones without a partner, and all right ones.

        In one table all rows stay, since each may be the only partner of another.
        """
        return rows.take(~self._has_partner(rows)) if self.gives_rows and self._two else rows

    def lonely(self, rows: SweepRows | None) -> Iterator[Pairs | Rows]:
        """Rows that have met everything and have no partner."""
        if rows is None or not rows.n or not self.gives_lonely:
            return
        wanted = ((rows.flags & HAS_MORE) == 0) & ~self._has_partner(rows)
        is_right = rows.is_right
        for side, marks in enumerate(self._marks):
            ids = rows.ids[wanted & (is_right == bool(side))]
            if marks and len(ids):
                nobody, far = np.full(len(ids), NO_ROW), np.full(len(ids), np.nan)
                self.lonely_side = side
                if self.gives_rows:
                    yield Rows(ids)
                else:
                    yield Pairs(nobody, ids, far) if side else Pairs(ids, nobody, far)
                self.lonely_side = None

    def give(self, met: Met, phase: str) -> Iterator[Pairs | Rows]:
        """Count pairs, mark the rows that have found a partner, and give what is asked for."""
        rows, first, second, distance = met
        if self.lowest is not None:
            near = distance <= self.lowest
            first, second, distance = first[near], second[near], distance[near]
        if not len(first):
            return
        counters = self._counters
        if not self.pairs:
            counters["first_pair_seconds"] = time.perf_counter() - self._start
            counters["first_pair_rows"] = counters["rows"]
        self.pairs += len(first)
        counters[f"pairs_in_{phase}"] += len(first)
        marked = rows.ids[:0]
        marks_left, marks_right = self._marks
        if marks_left:
            left = first if self._two else np.concatenate((first, second))
            if self._how == "semi":
                marked = self._fresh_ids(rows, left)
            else:
                self._partners[0].mark(rows.number[left])
        if marks_right:
            self._partners[1].mark(rows.number[second])
        if self._how == "semi":
            if len(marked):
                yield Rows(marked)
        elif self._how != "anti":
            left_ids, right_ids = rows.ids[first], rows.ids[second]
            if not self._two:
                left_ids, right_ids = np.minimum(left_ids, right_ids), np.maximum(left_ids, right_ids)
            yield Pairs(left_ids, right_ids, distance)

    def _fresh_ids(self, rows: SweepRows, places: Ints) -> Ints:
        """Ids of the rows that get their first partner."""
        numbers = rows.number[places]
        fresh = self._partners[0].mark(numbers)
        order = np.argsort(numbers, kind="stable")
        return rows.ids[places[order[np.searchsorted(numbers[order], fresh)]]]

    def saved_partners(self) -> list[str]:
        """The rows that have a partner so far, as JSON can hold them."""
        return [side.packed.tobytes().hex() for side in self._partners]

    def restore_partners(self, saved: list[str]) -> None:
        """Continue with the rows that have found a partner in an earlier process."""
        left, right = (Partners(np.frombuffer(bytes.fromhex(packed), np.uint8)) for packed in saved)
        self._partners = left, right

    def saved(self) -> dict[str, Any]:
        """What :meth:`restore` needs, as JSON can hold it."""
        return {
            "partners": self.saved_partners(),
            "pairs": self.pairs + self.before,
            "lowest": self.lowest,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from what an earlier process has yielded; the driver sets its lowered threshold."""
        self.restore_partners(saved["partners"])
        self.before = saved["pairs"]
