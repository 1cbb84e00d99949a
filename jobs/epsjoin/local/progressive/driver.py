"""The progressive merge join: any kind of join, in bounded memory, the first pairs at once.

*Phase 1* reads both tables a run at a time, joins each run in memory and writes it sorted. *Phase 2* merges
the runs and finds the pairs of different runs. All pairs come once, whatever the memory and the order of the
rows and of the merges. This is chapter 4 of Dittrich's dissertation. The kind of join gives keys and decides,
and nothing here depends on which kind it is (section 5.3.5: every sort-based join has its progressive merge
join).
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from epsjoin.local.progressive.checkpoint import Checkpoint
from epsjoin.local.progressive.equal_rows import find_equal_rows
from epsjoin.local.progressive.estimates import Estimates
from epsjoin.local.progressive.kinds.kind import JoinCondition, SweepKind
from epsjoin.local.progressive.kinds.sweep_areas import KindArea
from epsjoin.local.progressive.known import KnownRun, MergeProgress, key_edges
from epsjoin.local.progressive.merging import merge
from epsjoin.local.progressive.options import Options
from epsjoin.local.progressive.plans import Plans, points_of
from epsjoin.local.progressive.results import Found, Results
from epsjoin.local.progressive.rows import HAS_MORE, IS_NULL, IS_RIGHT, Met, SweepRows, concat
from epsjoin.local.progressive.running import RunningEstimate
from epsjoin.local.progressive.sorted_runs import SortedRun
from epsjoin.local.progressive.sources import PAUSE, Source
from epsjoin.local.progressive.spill import RunWriter, Spill
from epsjoin.local.progressive.tables import Tables, leave_out, of_one_kind, sorted_by_key
from epsjoin.local.progressive.traversal import lowest_runs, runs_of_full_level, runs_of_next_merge
from epsjoin.local.progressive.work import Work

RUNS, MERGES = "runs", "merges"
"""Phases: runs are read, runs are merged."""

_MAX_ROWS_BEFORE = 2000
"""Maximum number of rows of both tables from which pairs are estimated before the tables are read."""
_MARKS = (10, 50, 90)
"""Percentages of the last merge at which the estimate goes to the counters."""


class Driver:
    """A progressive merge join that is running.

    Parameters
    ----------
    sources : the table, or the left and the right one.
    on : what the rows are joined on.
    options : how.
    spill : where sorted runs go.
    counters : the caller's.
    """

    def __init__(
        self,
        sources: list[Source],
        on: JoinCondition,
        options: Options,
        spill: Spill,
        counters: dict[str, Any],
    ) -> None:
        self._tables = Tables(sources, spill.is_kept)
        self._two = self._tables.two
        self._options, self._spill, self._work = options, spill, Work(counters)
        self._results = Results(options.how, self._two, counters)
        self._estimates = Estimates(self._tables, self._results.gives_rows)
        self._plans = Plans(on, self._tables, options.sizes)
        self._checkpoint = Checkpoint(
            spill, self._tables, options, self._plans, self._estimates, self._results, self._work
        )
        self._goals = options.sizes.first_rows  # rows after which the first run is joined
        self._runs: list[SortedRun] = []
        self._area: KindArea | None = None  # of the merge that is under way
        self.merged = 0.0  # fraction of the rows of the last merge that have been swept

    @property
    def estimate(self) -> RunningEstimate:
        """How many pairs there will be."""
        return self._estimates.now

    @property
    def gives_rows(self) -> bool:
        """Whether batches have rows, not pairs."""
        return self._results.gives_rows

    @property
    def lonely_side(self) -> int | None:
        """What the last batch has: 0 left rows without a partner, 1 right ones, None pairs."""
        return self._results.lonely_side

    @property
    def n_runs(self) -> int:
        """Sorted runs that wait to be merged."""
        return len(self._runs)

    @property
    def is_random(self) -> bool:
        """Whether there is no evidence against a random order of the rows."""
        return self._estimates.order.is_random

    def _give(self, met: Met, phase: str) -> Iterator[Found]:
        for pairs in self._results.give(met, phase):
            yield Found(pairs, phase, self.estimate)

    def _lonely(self, rows: SweepRows | None, phase: str) -> Iterator[Found]:
        for pairs in self._results.lonely(rows):
            yield Found(pairs, phase, self.estimate)

    def _leave(self, rows: SweepRows) -> SweepRows:
        """The rows that are still needed; a benchmark of older sort-merge joins replaces this method."""
        return self._results.leave(rows)

    # ---------------------------------------------------------------------------------------- phase 1

    def run(self) -> Generator[Found, None, None]:
        """Join: phase 1, then phase 2."""
        self._runs, lowest = self._checkpoint.resume()
        if lowest is not None:
            self.lower_eps(lowest)
        if not self._runs:
            self._look_ahead()
        yield from self._read_runs()
        self._replan()
        while self._runs:
            yield from self._merge_some()

    def _look_ahead(self) -> None:
        """Fit the condition to a sample, and estimate by it, if one can be drawn."""
        sizes, asked = self._options.sizes, self._options.first_pairs
        sample = self._tables.sample(self._plans.on, min(_MAX_ROWS_BEFORE, sizes.run_rows // 2))
        if sample is None:
            return
        self._plans.fit(concat(sample))
        self._estimates.before(self._plans.whole, sample)
        if asked is not None and self.estimate.pairs:
            n_rows = sum(source.n_rows or 0 for source in self._tables.sources)
            self._goals = sizes.goals_for(asked, n_rows, self.estimate.pairs)

    def _read_runs(self) -> Iterator[Found]:
        """Phase 1: read the tables run by run, join each run, and write it."""
        raw: SweepRows | None = None
        while not self._tables.all_ended or raw is not None:
            sizes = self._options.sizes
            goal = sizes.run_rows
            if not self._runs:
                goal = next((n for n in self._goals if raw is None or n > raw.n), goal)
            room = goal - (0 if raw is None else raw.n)
            new, is_idle = self._read(max(1, room))
            if new is not None:
                if self._results.gives_lonely:
                    new, without_key = leave_out(self._plans.whole, new)
                    yield from self._lonely(without_key, RUNS)
                raw = yield from self._thin(new if raw is None else concat([raw.of_run(0), new]))
                yield from self._join_run(raw)
                raw = self._leave(raw)
            if is_idle:
                yield from self._merge_while_idle()
            if self._tables.all_ended and not self._runs:
                self._finish_estimate()
                yield from self._lonely(raw, RUNS)
                return
            if raw is not None and (raw.n >= sizes.run_rows or self._tables.all_ended):
                self._write_run(raw)
                raw = None
                yield from self._merge_eagerly()

    def _read(self, most: int) -> tuple[SweepRows | None, bool]:
        """Rows of both tables, to which the condition is fitted if it is not; and whether one had nothing."""
        with self._work.timed("reading"):
            found, is_idle = self._tables.read(most, self._plans.on)
        if not found:
            return None, is_idle
        self._work.add("rows", sum(rows.n for rows in found))
        rows = of_one_kind(found)
        if not self._plans.is_fitted:
            self._plans.fit(rows)
        return rows, is_idle

    def _key(self, kind: SweepKind, raw: SweepRows) -> SweepRows:
        with self._work.timed("sorting"):
            return sorted_by_key(kind, raw)

    def _thin(self, raw: SweepRows) -> Generator[Found, None, SweepRows]:
        """In a semi or anti join, let one of equal rows stand for all, since all have the same partners.

        In one table equal rows are partners of one another, so nothing more is asked about them; in two
        tables this is done for right rows, about which nothing is asked.
        """
        of_kind = vars(type(self._plans.on))  # and not of its base class: it may decide otherwise
        if not (self._results.gives_rows and of_kind.get("joins_equals", False)):
            return raw
        may_go = (raw.flags & IS_NULL) == 0
        if raw.values.dtype.kind == "f":
            may_go &= ~np.isnan(raw.values).any(axis=1)
        if self._two:
            may_go &= raw.is_right
        first, later = find_equal_rows(raw.values, may_go)
        if not self._two:
            yield from self._give(Met(raw, first, later, np.zeros(len(first))), RUNS)
        stays = np.ones(raw.n, np.bool_)
        stays[later] = False
        return raw.take(stays)

    def _join_run(self, raw: SweepRows) -> Iterator[Found]:
        rows = self._key(self._plans.whole, raw)
        area = self._new_area(self._plans.whole)
        self._work.reach("largest_area", rows.n)
        for met in self._meet(area, rows, "joining"):
            if not self._results.gives_rows:
                self._estimates.this_run.add(met, self._two)
            yield from self._give(met, RUNS)
        self._estimates.by_runs(self._runs)

    def _new_area(self, kind: SweepKind) -> KindArea:
        if self._results.gives_rows:
            return kind.new_partner_area(self._work.counters, self._two, self._results.lack_partner)
        return kind.new_area(self._work.counters, self._two)

    def _meet(self, area: KindArea, rows: SweepRows, what: str) -> Iterator[Met]:
        """Pairs that an area finds for rows, the time of which counts as ``what``."""
        return self._work.timed_each(what, area.query(rows))

    def _write_run(self, raw: SweepRows) -> None:
        if not self._plans.is_made:
            with self._work.timed("sorting"):
                self._estimates.edges = key_edges(self._plans.make(raw))
        rows = self._key(self._plans.written, raw)
        with self._work.timed("sorting"):
            once = (rows.flags & HAS_MORE) == 0
            self._estimates.order.add(rows.key[once], rows.values[once])
            self._work.add("replicas", rows.n)
            n_right = int(np.count_nonzero(raw.flags & IS_RIGHT))
            n_rows = (raw.n - n_right, n_right)
            cut = self._plans.cut
            pair_keys = None if cut is None else cut.pair_keys
            known = self._estimates.this_run.close(n_rows, self._two, raw, pair_keys, self._estimates.edges)
            self._runs.append(self._write_sorted(rows, n_rows, known))
        self._work.add("runs")
        self._checkpoint.mark_written()
        self._estimates.begin_run()
        self._checkpoint.save(self._runs)
        self._estimates.by_runs(self._runs)

    def _write_sorted(self, rows: SweepRows, n_rows: tuple[int, int], known: KnownRun) -> SortedRun:
        """Write a run that no merge has seen."""
        writer = self._spill.new_run(0)
        self._write(writer, rows)
        return self._finish_run(writer, n_rows, known)

    def _finish_run(self, writer: RunWriter, n_rows: tuple[int, int], known: KnownRun) -> SortedRun:
        run = writer.finish(n_rows, int(known.pairs.pairs), known.at_key.tolist())
        self._estimates.known[run.name] = known
        return run

    def _write(self, writer: RunWriter, rows: SweepRows) -> None:
        by_key, sizes = self._plans.cut is not None, self._options.sizes
        page = max(sizes.page_rows, sizes.part_rows) if by_key else sizes.page_rows
        writer.write(rows, self._options.has_numbers, page, by_key)

    def _replan(self) -> None:
        """Write all runs again by another plan, where that reads and writes less than the merge would."""
        keys = self._plans.remake(self._spill, self._runs)
        cut = self._plans.cut
        if keys is None or cut is None:
            return
        self._estimates.edges = key_edges(keys)
        runs = []
        for run in self._runs:
            raw = points_of(self._spill, run)
            known = self._estimates.known[run.name].by_other_keys(
                raw, self._two, cut.pair_keys, self._estimates.edges
            )
            rows = self._key(cut, raw)
            with self._work.timed("sorting"):
                runs.append(self._write_sorted(rows, run.rows, known))
        self._runs = runs
        self._work.add("replans")
        self._checkpoint.save(self._runs)

    # ---------------------------------------------------------------------------------------- phase 2

    def _merge_some(self) -> Iterator[Found]:
        """Merge runs once all are written; the last merge takes all that are left."""
        taken = runs_of_next_merge(self._runs, self._options.sizes.fan_in)
        yield from self._merge(taken, is_last=len(taken) == len(self._runs))

    def _merge_eagerly(self) -> Iterator[Found]:
        """Merge as many runs of one level as a merge takes, as soon as there are so many."""
        most = self._options.sizes.fan_in
        while self._options.traversal == "eager" and not (self._tables.all_ended and len(self._runs) <= most):
            taken = runs_of_full_level(self._runs, most)
            if taken is None:
                return
            yield from self._merge(taken, is_last=False)

    def _merge_while_idle(self) -> Iterator[Found]:
        if self._options.traversal != "idle" or len(self._runs) < 2 or self._tables.all_ended:
            time.sleep(PAUSE)
            return
        yield from self._merge(lowest_runs(self._runs, self._options.sizes.fan_in), is_last=False)

    def _merge(self, runs: list[SortedRun], *, is_last: bool) -> Iterator[Found]:
        """Merge runs: yield the pairs of different runs, and write the result, except in the last merge."""
        level = max(run.level for run in runs)
        progress = MergeProgress([self._estimates.known[run.name] for run in runs], self._estimates.edges)
        writer = None if is_last else self._spill.new_run(1 + level)
        try:
            yield from self._sweep(runs, progress, writer)
        except BaseException:
            if writer is not None:
                writer.abandon()
            raise
        self._work.add("merges")
        self._work.reach("passes", 1 + level)
        self._runs = self._others(runs)
        if writer is None:
            self._finish_estimate()
        else:
            n_rows = (sum(run.rows[0] for run in runs), sum(run.rows[1] for run in runs))
            self._runs.append(self._finish_run(writer, n_rows, progress.merged(n_rows, self._two)))
        self._checkpoint.save(self._runs)

    def _others(self, runs: list[SortedRun]) -> list[SortedRun]:
        return [run for run in self._runs if run not in runs]

    def _sweep(
        self, runs: list[SortedRun], progress: MergeProgress, writer: RunWriter | None
    ) -> Iterator[Found]:
        """Sweep the rows of runs by their keys; they are written, except in the last merge."""
        is_last, others, sizes = writer is None, self._others(runs), self._options.sizes
        area = self._area = self._new_area(self._plans.written)
        n_rows, swept = sum(page.rows for run in runs for page in run.pages), 0
        for block in merge(self._spill, runs, self._plans.cut is not None, sizes.run_rows):
            dropped = area.expire(None if block.is_alone else block.key)
            if is_last:
                yield from self._lonely(dropped, MERGES)
                self.merged = swept / n_rows
                self._mark_estimate(100.0 * self.merged)
            with self._work.timed("merging"):
                rows = self._leave(block.read())
            if not block.is_again:
                swept += rows.n
            progress.reach(block.key)
            self._estimates.by_merge(runs, others, progress, is_last, self._results.pairs)
            self._work.reach("largest_area", area.size + rows.n)
            if not rows.n:
                continue
            for met in self._meet(area, rows, "merging"):
                progress.add(met)
                yield from self._give(met, MERGES)
            if not block.is_again:
                rows = self._leave(rows)
                area.insert(rows)
                if writer is not None:
                    self._write(writer, rows)
        if is_last:
            yield from self._lonely(area.expire(None), MERGES)

    def _finish_estimate(self) -> None:
        self._estimates.finish(self._results.pairs + self._results.before)
        self._mark_estimate(100.0)

    def _mark_estimate(self, percent: float) -> None:
        for mark in _MARKS:
            if percent >= mark:
                self._work.counters.setdefault(f"estimate_at_{mark}", self.estimate.pairs)

    # ----------------------------------------------------------------------------------------- steering

    def lower_eps(self, eps: float) -> None:
        """Lower the threshold of all pairs that are still to come, also in a later process."""
        self._plans.lower(eps)
        if self._area is not None:
            self._area.kind = self._plans.written
        self._results.lowest = float(eps)
        self._checkpoint.save_lowest(self._results.lowest)
