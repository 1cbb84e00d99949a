"""Three sort-merge joins over the same runs, areas and files, and what each has given after so many pages."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.local.progressive.driver import Driver
from epsjoin.local.progressive.kinds.kind import JoinCondition
from epsjoin.local.progressive.kinds.sweep_areas import KindArea
from epsjoin.local.progressive.known import NO_PAIRS, KnownRun
from epsjoin.local.progressive.merging import merge
from epsjoin.local.progressive.options import Options
from epsjoin.local.progressive.results import Found
from epsjoin.local.progressive.rows import NO_RUN, Met, SweepRows
from epsjoin.local.progressive.running import RunningEstimate, RunPairs
from epsjoin.local.progressive.sizes import FIRST_FRACTIONS, Sizes
from epsjoin.local.progressive.sources import ArraySource
from epsjoin.local.progressive.spill import Spill

from .claims import Counts

PAGE_BYTES = 4096
POINTS_IN_PICTURE = 60
"""Bytes of a page of the text; an I/O reads or writes one. Reading the inputs does not count."""

Tables = tuple[NDArray[Any], NDArray[Any]]


class Step(NamedTuple):
    """A batch of pairs.

    Parameters
    ----------
    pages, seconds : read and written, and CPU seconds, until the batch came.
    pairs : all so far.
    phase : of the join.
    merged : fraction of the rows of the last merge that has been swept.
    estimate : of all pairs.
    """

    pages: float
    seconds: float
    pairs: int
    phase: str
    merged: float
    estimate: RunningEstimate


class Course(NamedTuple):
    """A join from its first batch to its last.

    Parameters
    ----------
    steps : its batches.
    pages, seconds : of all.
    counters : of the join.
    """

    steps: list[Step]
    pages: float
    seconds: float
    counters: dict[str, Any]

    @property
    def pairs(self) -> int:
        """All pairs."""
        return self.steps[-1].pairs if self.steps else 0

    def at(self, pairs: int) -> Step:
        """The batch with which there are so many pairs."""
        return next(step for step in self.steps if step.pairs >= pairs)

    def counts(self, what: str) -> Counts:
        """What of it is the same on every machine; bytes are those read and written."""
        of = self.counters
        names = "pairs, of them in runs, candidates, rows written, runs, bytes, bytes to the first pair"
        first = round(self.at(1).pages * PAGE_BYTES)
        return {
            f"{what}: {names}": [
                *(self.pairs, of["pairs_in_runs"], of["candidates"], of["replicas"], of["runs"]),
                *(round(self.pages * PAGE_BYTES), first),
            ]
        }

    def pairs_before(self, pages: float) -> int:
        """How many pairs had come before so many pages were read and written."""
        return max((step.pairs for step in self.steps if step.pages < pages), default=0)


class Semistrict(Driver):
    """Runs are sorted and written; the last merge joins (Negri, Pelagatti 1985)."""

    def _join_run(self, raw: SweepRows) -> Iterator[Found]:
        """No pair comes while runs are made."""
        del raw
        return iter(())

    def _leave(self, rows: SweepRows) -> SweepRows:
        """Rows of one run have not met yet."""
        return rows.of_run(NO_RUN)

    def _meet(self, area: KindArea, rows: SweepRows, what: str) -> Iterator[Met]:
        """Pairs count for one run or another in the progress of a merge, which nobody asks for here."""
        for met in super()._meet(area, rows, what):
            yield met._replace(rows=met.rows.of_run(0))


class Strict(Semistrict):
    """Both inputs are sorted and written as a whole before they are joined (Blasgen, Eswaran 1977)."""

    def _merge_some(self) -> Iterator[Found]:
        if len(self._runs) > 1:
            self._sort()
        yield from self._merge(self._runs, is_last=True)

    def _sort(self) -> None:
        writer = self._spill.new_run(1)
        for block in merge(
            self._spill, self._runs, self._plans.cut is not None, self._options.sizes.run_rows
        ):
            self._write(writer, block.read())
        nothing = KnownRun(RunPairs(0, 1.0, 0.0), np.zeros(len(self._estimates.edges) + 1), NO_PAIRS)
        run = writer.finish(
            (self._tables.read_rows[0], self._tables.read_rows[1]), 0, nothing.at_key.tolist()
        )
        self._estimates.known[run.name] = nothing
        self._runs = [run]
        self._spill.keep_only(self._runs)


WAYS = {"strict": Strict, "semistrict": Semistrict, "PMJ": Driver}


def sizes_of(tables: Tables, share: float, row_bytes: int) -> Sizes:
    """Sizes of a join whose memory holds this share of both tables; a merge takes all runs."""
    run_rows = round(sum(map(len, tables)) * share)
    first = tuple(max(2, int(run_rows * fraction)) for fraction in FIRST_FRACTIONS)
    return Sizes(run_rows, first, 1 << 10, max(1, PAGE_BYTES // row_bytes), max(1, run_rows // 4))


def follow(way: str, tables: Tables, on: JoinCondition, sizes: Sizes) -> Course:
    """Run a join and keep its course, but for the pairs."""
    counters: dict[str, Any] = {}
    spill = Spill(None, counters)
    sources = [ArraySource(table) for table in tables]
    start, pairs, steps = time.process_time(), 0, list[Step]()

    def pages() -> float:
        return float(counters["bytes_written"] + counters["bytes_read"]) / PAGE_BYTES

    try:
        driver = WAYS[way](sources, on, Options("inner", "last", sizes), spill, counters)
        for batch in driver.run():
            pairs += len(batch.pairs.left)
            used = time.process_time() - start
            steps.append(Step(pages(), used, pairs, batch.phase, driver.merged, batch.estimate))
        return Course(steps, pages(), time.process_time() - start, counters)
    finally:
        spill.close()


def thin(steps: Sequence[Step]) -> list[Step]:
    """So many of the steps as a picture shows, with the last."""
    every = max(1, len(steps) // POINTS_IN_PICTURE)
    return [*steps[::every], steps[-1]]
