"""The work of tasks for best matches: find what is best in a part, and what of that is best of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from epsjoin.errors import DataRefusedError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.bestmatch.dominance import Masks
from epsjoin.local.bestmatch.batch import FOR_LEFT, FOR_RIGHT
from epsjoin.local.bestmatch.best import By, How, best_of
from epsjoin.local.bestmatch.candidates import Candidates
from epsjoin.local.bestmatch.filter import filter_columns
from epsjoin.local.bestmatch.orders import Order, OwnOrder, Subset
from epsjoin.local.bestmatch.parts import best_of_all, best_of_part
from epsjoin.local.bestmatch.take import one_of
from epsjoin.local.join.parts import join_part
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.spark.bestmatch.records import Records, concat_records, merge_equal
from epsjoin.spark.join.pairs import BATCH_PAIRS
from epsjoin.spark.join.parts import SortedRows

BITS = {"left": FOR_LEFT, "right": FOR_RIGHT, "all": FOR_LEFT | FOR_RIGHT}
"""Bits of ``best_for``, for a pair that is best for its left row, for its right row, or of all."""
STAGES: Mapping[How, tuple[By, ...]] = {
    "left": ("left",),
    "right": ("right",),
    "outer": ("left", "right"),
    "inner": ("all",),
}
"""Stages in which the best of the parts are compared again, by ``how``."""


class _Side:
    """One table's rows of a part: distinct ids, ascending, and what came with each.

    Attributes
    ----------
    at : places of its rows among those of the part.
    ids : (n,) int64.
    number : (len(at),) int64, which of the ids each row has.
    given : (n, d) float64, the values as they came.
    masks : for each ``Subset`` (n, w) uint64.
    is_replicated : (n,) bool, whether the row is in other parts, too.
    """

    def __init__(self, rows: SortedRows, matching: Matching, plan: JoinPlan, name: str) -> None:
        self.at = np.flatnonzero(np.asarray(rows.is_right) == (name == "right"))
        self.ids, first, number = np.unique(rows.ids[self.at], return_index=True, return_inverse=True)
        self.number = number.reshape(-1)
        carried = rows.points[self.at[first]]
        # regular cuts send a row to one part several times, planned cuts never do
        is_other = (rows.points[self.at] != carried[self.number]).any(axis=1)
        if plan.kind == "planned":
            is_other |= first[self.number] != np.arange(len(self.at))
        if is_other.any():
            twice = self.ids[self.number[np.argmax(is_other)]]
            raise DataRefusedError(
                f"two rows of the {name} frame have the id {twice}; give each row an id of its own"
            )
        self.given = np.ascontiguousarray(carried[:, : matching.dimensions])
        self.masks = matching.masks_in(carried)
        self.is_replicated: Bools = carried[:, -1] > 0


@dataclass(frozen=True)
class Matching:
    """How rows are matched; small, since it is pickled to every task.

    Parameters
    ----------
    orders : checked criteria; those of marks have names of columns.
    dimensions : number of columns that the criteria number.
    n_words : number of columns of marks of each ``Subset``.
    how, take, max_candidates : see :func:`epsjoin.bestmatch_join`.
    """

    orders: tuple[Order, ...]
    dimensions: int
    n_words: tuple[int, ...]
    how: How
    take: str
    max_candidates: int

    @property
    def width(self) -> int:
        """Number of values that come with a row: those given, two for each word, whether it is replicated."""
        return self.dimensions + 2 * sum(self.n_words) + 1

    def search_columns(self, name: str, points: Floats) -> tuple[Floats, Floats]:
        """Compute the columns by which rows are sent to parts, and by how much partners differ at most."""
        columns, eps = filter_columns(name, points, self.orders)
        return (columns, eps) if len(eps) else (np.zeros((len(points), 1)), np.ones(1))

    def masks_in(self, carried: Floats) -> list[Masks]:
        """Put the words of marks together; float64 holds half a word exactly."""
        masks, at = [], self.dimensions
        for words in self.n_words:
            halves = carried[:, at : at + 2 * words].astype(np.uint64)
            masks.append(halves[:, ::2] << np.uint64(32) | halves[:, 1::2])
            at += 2 * words
        return masks

    def match(self, rows: SortedRows, part: int, plan: JoinPlan) -> Records:
        """Find the best pairs of a part, and its rows without any.

        Raises
        ------
        DataRefusedError
            Two rows of one table have the same id.
        BudgetError
            There are more than ``max_candidates`` candidates.
        """
        left, right = (_Side(rows, self, plan, name) for name in ("left", "right"))
        numbers = np.empty(len(rows.ids), np.int64)
        for side in (left, right):
            numbers[side.at] = side.number
        search, _ = self.search_columns("left", rows.points[:, : self.dimensions])
        of_left, of_right = iter(left.masks), iter(right.masks)
        orders = [
            replace(order, left_masks=next(of_left), right_masks=next(of_right))
            if isinstance(order, Subset)
            else order
            for order in self.orders
        ]

        def pairs() -> Iterator[tuple[Ints, Ints]]:
            found = join_part(search, numbers, rows.key, part, plan, BATCH_PAIRS, is_right=rows.is_right)
            for batch in found:
                yield batch.left, batch.right

        best = best_of_part(left.given, right.given, orders, self.how, pairs(), self.max_candidates)
        return self._to_records(best, left, right)

    def _to_records(self, best: tuple[Candidates, Bools, Bools], left: _Side, right: _Side) -> Records:
        """Turn what is best in a part into records; those that no other part can change are final."""
        found, for_left, for_right = best
        bits = np.zeros((2, len(found)), np.uint8)
        pending = np.zeros((2, len(found)), np.uint8)
        lonely = []
        has_own_order = any(isinstance(order, OwnOrder) for order in self.orders)
        sides = (("left", left, found.left, for_left), ("right", right, found.right, for_right))
        for place, (name, side, numbers, marks) in enumerate(sides):
            waits = marks & side.is_replicated[numbers]
            if self.how == "inner":
                waits = marks
            elif self.take == "one":
                marks = waits | one_of(found, marks & ~waits, name, self.orders)
            bits[place], pending[place] = BITS[name] * marks, BITS[name] * waits
            if self.how in (name, "outer"):
                alone = np.setdiff1d(np.arange(len(side.ids)), numbers[marks])
                lonely.append(self._lonely_records(name, side, alone, found, has_own_order))
        rows = (left.given[found.left], right.given[found.right])
        pairs = Records(
            left.ids[found.left],
            right.ids[found.right],
            bits[0] | bits[1],
            pending[0] | pending[1],
            np.zeros(len(found), np.uint8),
            found.values,
            found.masks,
            *(each if has_own_order else each[:, :0] for each in rows),
        )
        return concat_records([pairs.take(pairs.best_for > 0), *lonely])

    def _lonely_records(
        self, name: str, side: _Side, alone: Ints, found: Candidates, has_own_order: bool
    ) -> Records:
        n, ids = len(alone), {"left": np.zeros(len(alone), np.int64)}
        ids["right"] = ids["left"].copy()
        ids[name] = side.ids[alone]
        width = self.dimensions if has_own_order else 0
        return Records(
            ids["left"],
            ids["right"],
            np.zeros(n, np.uint8),
            (BITS[name] * side.is_replicated[alone]).astype(np.uint8),
            np.full(n, BITS[name], np.uint8),
            np.full((n, found.values.shape[1]), np.nan),
            np.zeros((n, found.masks.shape[1]), np.uint64),
            np.zeros((n, width)),
            np.zeros((n, width)),
        )

    def settle(self, records: Records, stage: By) -> Records:
        """Compare again what several parts have found best, of each row of a side or of all.

        Parameters
        ----------
        records : all that are pending for the rows of the stage.
        stage : "left", "right" or "all".
        """
        records, bit = merge_equal(records), BITS[stage]
        is_pair = records.lonely == 0
        pairs = np.flatnonzero(is_pair)
        candidates = records.take(pairs).candidates(self.orders)
        if stage == "all":
            best = best_of_all(candidates, self.max_candidates)
        else:
            best = best_of(candidates, stage, max_comparisons=self.max_candidates)
        if self.take == "one":
            best = one_of(candidates, best, "right" if stage == "right" else "left", self.orders)
        best_for = records.best_for.copy()
        best_for[pairs[~best]] &= ~np.uint8(bit)
        ids = records.right if stage == "right" else records.left
        stays = best_for > 0
        stays |= ~is_pair & ~np.isin(ids, ids[pairs])
        settled = records._replace(best_for=best_for, pending=records.pending & ~np.uint8(bit))
        return settled.take(stays)
