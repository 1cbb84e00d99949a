"""The progressive merge join: any kind of join, in bounded memory, the first pairs at once.

*Phase 1* reads both tables a run at a time, joins each run in memory and writes it sorted. *Phase 2* merges
the runs and finds the pairs of different runs. All pairs come once, whatever memory, order of the rows and of
the merges. Dittrich's dissertation, chapter 4; the kind of join is asked for keys and decisions, and nothing
here depends on which it is (section 5.3.5: every sort-based join has its progressive merge join).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.local.progressive.estimates import Estimates
from epsjoin.local.progressive.kinds import JoinKind
from epsjoin.local.progressive.merging import merge
from epsjoin.local.progressive.results import Found, How, Results
from epsjoin.local.progressive.rows import HAS_MORE, IS_RIGHT, Met, SweepRows, concat
from epsjoin.local.progressive.running import MergeProgress, RunningEstimate, key_edges
from epsjoin.local.progressive.sizes import Sizes
from epsjoin.local.progressive.sources import Source
from epsjoin.local.progressive.spill import SortedRun, Spill
from epsjoin.local.progressive.sweep_areas import SweepArea
from epsjoin.local.progressive.tables import Tables, leave_out, of_one_kind, sorted_by_key

Traversal = Literal["last", "eager", "idle"]
TRAVERSALS = ("last", "eager", "idle")
RUNS, MERGES = "runs", "merges"
"""Phases: runs are read, runs are merged."""

_MAX_SAMPLE_ROWS, _SAMPLE_ROWS_PER_PART = 20_000, 200
"""Rows on which parts are planned, in all and for each part."""
_UNKNOWN_RUNS = 16
"""How many runs are expected of tables whose size nobody knows."""
_PAUSE = 0.005
"""Seconds to wait for an input that has nothing."""
_MARKS = (10, 50, 90)
"""Percentages of the last merge at which the estimate goes to the counters."""


class Options(NamedTuple):
    """How a progressive join runs.

    Parameters
    ----------
    how, traversal : as of :func:`epsjoin.progressive_join`.
    sizes : how memory is divided.
    has_numbers : whether ids are others than the row numbers.
    """

    how: How
    traversal: Traversal
    sizes: Sizes
    has_numbers: bool = False


class Driver:
    """A progressive merge join that is running.

    Parameters
    ----------
    sources : the table, or the left and the right one.
    kind : the kind of join.
    options : how.
    spill : where sorted runs go.
    counters : the caller's.
    """

    def __init__(
        self, sources: list[Source], kind: JoinKind, options: Options, spill: Spill, counters: dict[str, Any]
    ) -> None:
        self._tables = Tables(sources)
        self._two = self._tables.two
        self._options, self._spill, self._counters = options, spill, counters
        self._results = Results(options.how, self._two, counters)
        self._estimates = Estimates(self._tables, self._results.gives_rows)
        self._whole = kind  # keys the rows of a run in memory
        self._cut: JoinKind | None = None  # keys the rows that are written
        self._is_fitted = False
        self._runs: list[SortedRun] = []
        self._area: SweepArea | None = None  # of the merge that goes on
        self.merged = 0.0  # fraction of the rows of the last merge that have been swept
        for name in _COUNTS:
            counters.setdefault(name, 0)

    @property
    def estimate(self) -> RunningEstimate:
        """How many pairs there will be."""
        return self._estimates.now

    @property
    def n_runs(self) -> int:
        """Sorted runs that wait to be merged."""
        return len(self._runs)

    @property
    def is_random(self) -> bool:
        """Whether nothing speaks against a random order of the rows, see :class:`OrderCheck`."""
        return self._estimates.order.is_random

    def _give(self, met: Met, phase: str) -> Iterator[Found]:
        for pairs in self._results.give(met, phase):
            yield Found(pairs, phase, self.estimate)

    def _lonely(self, rows: SweepRows | None, phase: str) -> Iterator[Found]:
        for pairs in self._results.lonely(rows):
            yield Found(pairs, phase, self.estimate)

    def _leave(self, rows: SweepRows) -> SweepRows:
        """Rows that may still be asked for; a benchmark of older sort-merge joins puts its own here."""
        return self._results.leave(rows)

    # ---------------------------------------------------------------------------------------- phase 1

    def run(self) -> Iterator[Found]:
        """Join: phase 1, then phase 2."""
        self._resume()
        if not self._runs:
            self._estimates.before(self._whole, self._options.sizes.run_rows)
        raw: SweepRows | None = None
        while not self._tables.all_ended or raw is not None:
            sizes = self._options.sizes
            goal = sizes.run_rows
            if not self._runs:
                goal = next((n for n in sizes.first_rows if raw is None or n > raw.n), goal)
            room = goal - (0 if raw is None else raw.n)
            new, is_idle = self._read(max(1, room))
            if new is not None:
                if self._results.gives_lonely:
                    new, without_key = leave_out(self._whole, new)
                    yield from self._lonely(without_key, RUNS)
                raw = new if raw is None else concat([raw.of_run(0), new])
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
        while self._runs:
            yield from self._merge_some()

    def _read(self, most: int) -> tuple[SweepRows | None, bool]:
        """Rows of both tables, to which the kind of join is fitted once; and whether one had nothing."""
        with self._timed("reading"):
            found, is_idle = self._tables.read(most, self._whole)
        if not found:
            return None, is_idle
        self._counters["rows"] += sum(rows.n for rows in found)
        rows = of_one_kind(found)
        if not self._is_fitted:
            self._whole = self._whole.fit(rows.values)
            if not self._two:
                self._whole.check_one_table()
            self._is_fitted = True
        return rows, is_idle

    def _key(self, kind: JoinKind, raw: SweepRows) -> SweepRows:
        with self._timed("sorting"):
            return sorted_by_key(kind, raw)

    def _join_run(self, raw: SweepRows) -> Iterator[Found]:
        rows = self._key(self._whole, raw)
        area = self._whole.new_area(self._counters, self._two)
        self._largest(rows.n)
        for met in self._timed_each("joining", area.query(rows)):
            if not self._results.gives_rows:
                self._estimates.this_run.add(met, self._two)
            yield from self._give(met, RUNS)
        self._estimates.by_runs(self._runs)

    def _write_run(self, raw: SweepRows) -> None:
        if self._cut is None:
            self._plan(raw)
        kind = self._cut_kind
        rows = self._key(kind, raw)
        with self._timed("sorting"):
            once = (rows.flags & HAS_MORE) == 0
            self._estimates.order.add(rows.key[once], rows.values[once])
            self._counters["replicas"] += rows.n
            writer = self._spill.new_run(0)
            self._write(writer, rows)
            n_right = int(np.count_nonzero(raw.flags & IS_RIGHT))
            n_rows = (raw.n - n_right, n_right)
            of_pairs = None if self._whole is kind else kind.pair_keys
            known = self._estimates.this_run.close(n_rows, self._two, raw, of_pairs, self._estimates.edges)
            run = writer.finish(n_rows, int(known.pairs.pairs), known.at_key.tolist())
        self._estimates.known[run.name] = known
        self._runs.append(run)
        self._counters["runs"] += 1
        self._estimates.begin_run()
        self._save()
        self._estimates.by_runs(self._runs)

    @property
    def _cut_kind(self) -> JoinKind:
        if self._cut is None:
            raise ValueError("there is no plan yet")
        return self._cut

    def _write(self, writer: Any, rows: SweepRows) -> None:
        by_key, sizes = self._cut_kind.grouped, self._options.sizes
        page = max(sizes.page_rows, sizes.part_rows) if by_key else sizes.page_rows
        writer.write(rows, self._options.has_numbers, page, by_key)

    def _plan(self, raw: SweepRows) -> None:
        """Choose parts and bins of keys, on a sample of the tables where one can be drawn, else on a run."""
        n_rows = [source.n_rows for source in self._tables.sources]
        expected = _UNKNOWN_RUNS * raw.n if None in n_rows else sum(n or 0 for n in n_rows)
        expected = max(expected, sum(self._tables.read_rows))
        n_parts = -(-expected // self._options.sizes.part_rows)
        most = min(_MAX_SAMPLE_ROWS, max(2000, _SAMPLE_ROWS_PER_PART * n_parts))
        drawn = [source.sample(most // len(self._tables.sources)) for source in self._tables.sources]
        if any(sample is None for sample in drawn):
            at = np.sort(np.random.default_rng(0).permutation(raw.n)[:most])
            values, ids = raw.values[at], raw.ids[at]
        else:
            checked = [self._whole.check("left", sample) for sample in drawn if sample is not None]
            values = np.concatenate(checked)
            ids = np.arange(len(values))
        with self._timed("sorting"):
            self._cut = self._whole.cut(values, ids, expected, self._options.sizes.part_rows)
            self._estimates.edges = key_edges(np.sort(self._cut.keyed(values, ids).key))

    # ---------------------------------------------------------------------------------------- phase 2

    def _merge_some(self) -> Iterator[Found]:
        """Merge runs, so that the last merge has as many as it can: the least bytes are written."""
        n, most = len(self._runs), self._options.sizes.fan_in
        if n <= most:
            yield from self._merge(self._runs, is_last=True)
            return
        first = (n - 1) % (most - 1) + 1
        taken = sorted(self._runs, key=lambda run: (run.level, run.name))[: first if first > 1 else most]
        yield from self._merge(taken, is_last=False)

    def _merge_eagerly(self) -> Iterator[Found]:
        """Merge as many runs of one level as a merge takes, as soon as they stand."""
        if self._options.traversal != "eager":
            return
        most = self._options.sizes.fan_in
        while True:
            levels = [run.level for run in self._runs]
            ready = [level for level in sorted(set(levels)) if levels.count(level) >= most]
            if not ready or (self._tables.all_ended and len(self._runs) <= most):
                return
            taken = [run for run in self._runs if run.level == ready[0]][:most]
            yield from self._merge(taken, is_last=False)

    def _merge_while_idle(self) -> Iterator[Found]:
        if self._options.traversal != "idle" or len(self._runs) < 2 or self._tables.all_ended:
            time.sleep(_PAUSE)
            return
        taken = sorted(self._runs, key=lambda run: (run.level, run.name))[: self._options.sizes.fan_in]
        yield from self._merge(taken, is_last=False)

    def _merge(self, runs: list[SortedRun], *, is_last: bool) -> Iterator[Found]:
        """Merge runs: give the pairs of different ones, write what they become, except in the last merge."""
        kind, sizes = self._cut_kind, self._options.sizes
        others = [run for run in self._runs if run not in runs]
        area = kind.new_area(self._counters, self._two)
        self._area = area
        progress = MergeProgress([self._estimates.known[run.name] for run in runs], self._estimates.edges)
        writer = None if is_last else self._spill.new_run(1 + max(run.level for run in runs))
        n_rows = sum(page.rows for run in runs for page in run.pages)
        swept = 0
        try:
            for block in merge(self._spill, runs, kind.grouped, sizes.run_rows):
                dropped = area.expire(None if block.is_alone else block.key)
                if is_last:
                    yield from self._lonely(dropped, MERGES)
                    self.merged = swept / n_rows
                    self._mark_estimate(100.0 * self.merged)
                with self._timed("merging"):
                    rows = self._leave(block.read())
                if not block.is_again:
                    swept += rows.n
                progress.reach(block.key)
                self._estimates.by_merge(runs, others, progress, is_last, self._results.pairs)
                self._largest(area.size + rows.n)
                if not rows.n:
                    continue
                for met in self._timed_each("merging", area.query(rows)):
                    progress.add(met)
                    yield from self._give(met, MERGES)
                if not block.is_again:
                    rows = self._leave(rows)
                    area.insert(rows)
                    if writer is not None:
                        self._write(writer, rows)
            if is_last:
                yield from self._lonely(area.expire(None), MERGES)
        except BaseException:
            if writer is not None:
                writer.abandon()
            raise
        self._counters["merges"] += 1
        self._counters["passes"] = max(self._counters["passes"], 1 + max(run.level for run in runs))
        if writer is None:
            self._runs = others
            self._finish_estimate()
        else:
            of_both = (sum(run.rows[0] for run in runs), sum(run.rows[1] for run in runs))
            known = progress.merged(of_both, self._two)
            merged = writer.finish(of_both, int(known.pairs.pairs), known.at_key.tolist())
            self._estimates.known[merged.name] = known
            self._runs = [*others, merged]
        self._save()
        self._spill.keep_only(self._runs)

    def _finish_estimate(self) -> None:
        self._estimates.finish(self._results.pairs + self._results.before)
        self._mark_estimate(100.0)

    def _mark_estimate(self, percent: float) -> None:
        for mark in _MARKS:
            if percent >= mark:
                self._counters.setdefault(f"estimate_at_{mark}", self.estimate.pairs)

    # --------------------------------------------------------------------------------- steering, saving

    def lower_eps(self, eps: float) -> None:
        """Lower the threshold of all pairs that are still to come."""
        lowered = self._whole.lowered(eps)
        if self._cut is not None:
            self._cut = lowered if self._cut is self._whole else self._cut.lowered(eps)
        self._whole = lowered
        if self._area is not None:
            self._area.kind = self._cut_kind
        self._results.lowest = float(eps)

    def _fingerprint(self) -> str:
        kind = self._whole
        named = getattr(kind, "__dataclass_fields__", None) or {}
        values = {name: repr(getattr(kind, name)) for name in named if name != "fitted"}
        how, _, sizes, has_numbers = self._options
        tables = [(source.columns, source.n_rows, source.seed) for source in self._tables.sources]
        return repr((type(kind).__qualname__, values, how, sizes, has_numbers, tables))

    def _save(self) -> None:
        self._spill.write_manifest(
            self._runs,
            made_for=self._made_for,
            read_rows=self._tables.read_rows,
            state=self._cut_kind.state(),
            is_whole=self._cut is self._whole,
            **self._estimates.saved(self._runs),
            **self._results.saved(),
            counters={name: self._counters[name] for name in _COUNTS},
        )

    def _resume(self) -> None:
        """Go on from what a process before has finished."""
        self._made_for = self._fingerprint()
        found = self._spill.read_manifest()
        if found is None:
            return
        if found["made_for"] != self._made_for:
            raise ArgumentError(
                "spill holds the runs of another join; give it the same arguments, or another folder"
            )
        self._spill.take_over(found)
        self._runs = found["runs"]
        self._cut = self._whole.with_state(found["state"])
        if found["is_whole"]:
            self._whole, self._is_fitted = self._cut, True
        self._estimates.restore(found, self._runs)
        self._results.restore(found)
        if found["lowest"] is not None:
            self.lower_eps(found["lowest"])
        for name, value in found["counters"].items():
            self._counters[name] = value
        for side in range(len(self._tables.sources)):
            self._tables.skip(side, found["read_rows"][side])
        self._estimates.begin_run()
        self._estimates.by_runs(self._runs)

    def _largest(self, n: int) -> None:
        self._counters["largest_area"] = max(self._counters["largest_area"], n)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._counters[f"seconds_{what}"] += time.perf_counter() - start

    def _timed_each(self, what: str, found: Iterator[Met]) -> Iterator[Met]:
        while True:
            with self._timed(what):
                met = next(found, None)
            if met is None:
                return
            yield met


_COUNTS = (
    *("rows", "replicas", "runs", "merges", "passes", "bytes_written", "bytes_read", "candidates"),
    *("distance_computations", "pairs_in_runs", "pairs_in_merges", "largest_area"),
    *(f"seconds_{what}" for what in ("reading", "sorting", "joining", "merging")),
)
