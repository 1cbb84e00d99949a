"""How the rows of a progressive join are keyed: those of a run in memory, and those on disk.

The condition is fitted once, before a row is joined, and the parts by which runs are written are planned
once, before the first is. Between the phases, the rows of each part and of all parts are known, which a plan
could only expect, and a plan that turns out bad is replaced: section 6.2 of Dittrich's dissertation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from epsjoin.kernels.arrays import Floats
from epsjoin.local.progressive.kinds.kind import CutKind, JoinCondition, SweepKind
from epsjoin.local.progressive.rows import HAS_MORE, Keys, SweepRows, concat
from epsjoin.local.progressive.sizes import Sizes
from epsjoin.local.progressive.sorted_runs import SortedRun
from epsjoin.local.progressive.spill import Spill
from epsjoin.local.progressive.tables import Tables

_MAX_SAMPLE_ROWS, _SAMPLE_ROWS_PER_PART = 20_000, 200
"""Rows on which parts are planned, in all and for each part."""
_UNKNOWN_RUNS = 16
"""How many runs are expected of tables of unknown size."""
_REPLAN_PASSES = 3
"""How often another plan reads or writes all rows: once for a sample, once to read them, once to write."""


class Plans:
    """The condition of a join, and what it becomes.

    Parameters
    ----------
    on : what the rows are joined on.
    tables : what is joined.
    sizes : how memory is divided.
    """

    def __init__(self, on: JoinCondition, tables: Tables, sizes: Sizes) -> None:
        self.on = on
        self._tables, self._sizes = tables, sizes
        self._whole: SweepKind | None = None
        self.cut: CutKind | None = None
        self.is_made = False  # whether runs can be written

    @property
    def is_fitted(self) -> bool:
        """Whether rows in memory can be keyed."""
        return self._whole is not None

    @property
    def whole(self) -> SweepKind:
        """Keys the rows of a run in memory."""
        if self._whole is None:
            raise ValueError("the condition is not fitted yet")
        return self._whole

    @property
    def written(self) -> SweepKind:
        """Keys the rows that are written."""
        return self.whole if self.cut is None else self.cut

    @property
    def _expected_rows(self) -> int:
        """Rows of all tables, as far as they are known."""
        sizes = [source.n_rows for source in self._tables.sources]
        known = [n for n in sizes if n is not None]
        expected = sum(known) if len(known) == len(sizes) else _UNKNOWN_RUNS * self._sizes.run_rows
        return max(expected, sum(self._tables.read_rows))

    def fit(self, sample: SweepRows) -> None:
        """Fit the condition to a sample of all rows, or to the first ones.

        Raises
        ------
        ArgumentError
            One table cannot be joined with itself on this condition.
        """
        if not self._tables.two:
            self.on.check_one_table()
        self._whole = self.on.fit(sample.values, self._expected_rows)

    def make(self, raw: SweepRows) -> Keys:
        """Plan parts, on a sample of the tables if one can be drawn, otherwise on a run.

        Returns
        -------
        (m,) keys of the sample, ascending.
        """
        n_parts = -(-self._expected_rows // self._sizes.part_rows)
        most = min(_MAX_SAMPLE_ROWS, max(2000, _SAMPLE_ROWS_PER_PART * n_parts))
        drawn = self._tables.sample(self.on, most)
        if drawn is None:
            at = np.sort(np.random.default_rng(0).permutation(raw.n)[:most])
            sample = raw.take(at)
        else:
            sample = concat(drawn)
            sample = sample._replace(ids=np.arange(sample.n))
        self.is_made = True
        return self._cut(sample)

    def _cut(self, sample: SweepRows) -> Keys:
        self.cut = self.whole.cut(sample.values, sample.ids, self._expected_rows, self._sizes.part_rows)
        return np.sort(self.written.keyed(sample.values, sample.ids).key)

    def remake(self, spill: Spill, runs: list[SortedRun]) -> Keys | None:
        """Plan other parts if a merge of these runs by the present ones reads so much again that it pays.

        Returns
        -------
        (m,) keys of the sample, ascending; None if the parts stay.
        """
        before = self.cut
        if before is None or any(run.level for run in runs):
            return None
        total = sum(page.rows for run in runs for page in run.pages)
        again = rows_read_again(_rows_of_parts(runs), self._sizes.run_rows)
        if again <= _REPLAN_PASSES * total:
            return None
        sample = self._draw(spill, runs)
        keys = self._cut(sample)
        counts = np.unique(keys, return_counts=True)[1].astype(np.float64)
        parts = counts * self._expected_rows / sample.n
        if again <= _REPLAN_PASSES * total + rows_read_again(parts, self._sizes.run_rows):
            self.cut = before
            return None
        return keys

    def _draw(self, spill: Spill, runs: list[SortedRun]) -> SweepRows:
        """Rows of all runs, each point once, as likely as any other."""
        n_rows = sum(sum(run.rows) for run in runs)
        fraction = min(1.0, min(_MAX_SAMPLE_ROWS, self._sizes.run_rows // 2) / n_rows)
        random = np.random.default_rng(0)
        drawn = []
        for run in runs:
            for page in run.pages:
                rows = spill.read(run, page)
                drawn.append(rows.take((random.random(rows.n) < fraction) & (rows.flags & HAS_MORE == 0)))
        return concat(drawn)

    def lower(self, eps: float) -> None:
        """Lower the threshold of what is decided from now on.

        Raises
        ------
        ArgumentError
            The condition has no threshold, or a lower one.
        """
        self.on = self.on.lowered(eps)
        self._whole = None if self._whole is None else self._whole.lowered(eps)
        self.cut = None if self.cut is None else self.cut.lowered(eps)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue with what an earlier process has fitted and planned."""
        self._whole, self.cut = self.on.restored(state)
        self.is_made = True


def _rows_of_parts(runs: Iterable[SortedRun]) -> Floats:
    """Rows of each part, in all runs together."""
    keys = [page.key for run in runs for page in run.pages]
    rows = [page.rows for run in runs for page in run.pages]
    part = np.unique(np.array(keys, np.int64), return_inverse=True)[1]
    return np.asarray(np.bincount(part, rows), np.float64)


def rows_read_again(rows: Floats, block_rows: int) -> float:
    """Rows that a merge reads once more, since parts that are larger than a block meet block by block.

    Parameters
    ----------
    rows : (k,) of each part.
    block_rows : that are in memory at once.

    Notes
    -----
    Each of b blocks is followed by all later rows of its part: r (b - 1) / 2 of a part of r rows.
    """
    blocks = np.ceil(rows / block_rows)
    return float((rows * (np.maximum(blocks, 1.0) - 1.0) / 2.0).sum())


def points_of(spill: Spill, run: SortedRun) -> SweepRows:
    """The rows of a run that no merge has seen, each point once: they fit into memory, as they did before."""
    pages = (spill.read(run, page) for page in run.pages)
    return concat([rows.take(rows.flags & HAS_MORE == 0) for rows in pages])
