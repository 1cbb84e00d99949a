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
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.join.arrays import NO_ROW, Rows
from epsjoin.local.progressive.kinds import JoinKind
from epsjoin.local.progressive.merging import merge
from epsjoin.local.progressive.partners import Partners
from epsjoin.local.progressive.rows import HAS_MORE, IS_RIGHT, NO_RUN, Keys, Met, SweepRows, concat
from epsjoin.local.progressive.running import (
    OF_SOME_ROWS,
    KnownRun,
    MergeProgress,
    OrderCheck,
    RunCount,
    RunningEstimate,
    RunPairs,
    combinations,
    from_runs,
    key_edges,
)
from epsjoin.local.progressive.sizes import Sizes
from epsjoin.local.progressive.sources import Source
from epsjoin.local.progressive.spill import SortedRun, Spill
from epsjoin.local.progressive.sweep_areas import SweepArea
from epsjoin.local.sweep.pairs import Pairs

How = Literal["inner", "semi", "anti", "left", "right", "outer"]
Traversal = Literal["last", "eager", "idle"]
TRAVERSALS = ("last", "eager", "idle")
RUNS, MERGES = "runs", "merges"
"""Phases: runs are read, runs are merged."""

_MAX_SAMPLE_ROWS, _SAMPLE_ROWS_PER_PART = 20_000, 200
"""Rows on which parts are planned, in all and for each part."""
_MAX_ROWS_BEFORE = 2000
"""Rows of both tables from which the pairs are estimated before they are read."""
_UNKNOWN_RUNS = 16
"""How many runs are expected of tables whose size nobody knows."""
_PAUSE = 0.005
"""Seconds to wait for an input that has nothing."""
_MARKS = (10, 50, 90)
"""Percentages of the last merge at which the estimate goes to the counters."""


class Found(NamedTuple):
    """A batch of a progressive join.

    Parameters
    ----------
    pairs : pairs, each of which comes once and is never taken back; of a semi or an anti join
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
        self._sources, self._options, self._spill, self._counters = sources, options, spill, counters
        self._two = len(sources) == 2
        self._whole = kind  # keys the rows of a run in memory
        self._cut: JoinKind | None = None  # keys the rows that are written
        self._is_fitted = False
        self._lowest: float | None = None
        self._runs: list[SortedRun] = []
        self._known: dict[str, KnownRun] = {}
        self._read_rows = [0, 0]
        self._ended = [False] * len(sources)
        self._partners = (Partners(), Partners())
        self._order = OrderCheck()
        self._edges: Keys = np.empty(0)
        self._sampled = RunPairs(0, 0.0, 0.0)
        self._pairs = 0
        self._start = time.perf_counter()
        self.estimate = RunningEstimate(None)
        self.merged = 0.0  # fraction of the rows of the last merge that have been swept
        for name in _COUNTS:
            counters.setdefault(name, 0)
        self._this_run = RunCount((0, 0))

    @property
    def n_runs(self) -> int:
        """Sorted runs that wait to be merged."""
        return len(self._runs)

    @property
    def is_random(self) -> bool:
        """Whether nothing speaks against a random order of the rows, see :class:`OrderCheck`."""
        return self._order.is_random

    # ------------------------------------------------------------------------------------------ how

    @property
    def _gives_rows(self) -> bool:
        return self._options.how in ("semi", "anti")

    @property
    def _marks(self) -> tuple[bool, bool]:
        """Whether rows of the left and of the right table are marked when they have a partner."""
        how = self._options.how
        return how in ("semi", "anti", "left", "outer"), how in ("right", "outer")

    def _has_partner(self, rows: SweepRows) -> Bools:
        is_right = rows.is_right
        found = np.zeros(rows.n, np.bool_)
        for side, marks in enumerate(self._marks):
            if marks:
                of_side = is_right == bool(side)
                found[of_side] = self._partners[side].have(rows.number[of_side])
        return found

    def _leave(self, rows: SweepRows) -> SweepRows:
        """Of a semi or an anti join: left rows without a partner so far, and all right ones.

        Of one table all rows stay: each may be another's only partner.
        """
        return rows.take(~self._has_partner(rows)) if self._gives_rows and self._two else rows

    def _lonely(self, rows: SweepRows | None, phase: str) -> Iterator[Found]:
        """Rows that have met everything and have no partner."""
        if rows is None or not rows.n or self._options.how in ("inner", "semi"):
            return
        wanted = ((rows.flags & HAS_MORE) == 0) & ~self._has_partner(rows)
        is_right = rows.is_right
        for side, marks in enumerate(self._marks):
            ids = rows.ids[wanted & (is_right == bool(side))]
            if marks and len(ids):
                nobody, far = np.full(len(ids), NO_ROW), np.full(len(ids), np.nan)
                if self._gives_rows:
                    yield self._found(Rows(ids), phase)
                else:
                    yield self._found(Pairs(nobody, ids, far) if side else Pairs(ids, nobody, far), phase)

    def _found(self, pairs: Pairs | Rows, phase: str) -> Found:
        return Found(pairs, phase, self.estimate)

    def _give(self, met: Met, phase: str) -> Iterator[Found]:
        """Count pairs, mark the rows that have found a partner, and give what is asked for."""
        rows, first, second, distance = met
        if self._lowest is not None:
            near = distance <= self._lowest
            first, second, distance = first[near], second[near], distance[near]
        if not len(first):
            return
        counters = self._counters
        if not self._pairs:
            counters["first_pair_seconds"] = time.perf_counter() - self._start
            counters["first_pair_rows"] = counters["rows"]
        self._pairs += len(first)
        counters[f"pairs_in_{phase}"] += len(first)
        marked = rows.ids[:0]
        marks_left, marks_right = self._marks
        if marks_left:
            left = first if self._two else np.concatenate((first, second))
            if self._options.how == "semi":
                marked = self._fresh_ids(rows, left)
            else:
                self._partners[0].mark(rows.number[left])
        if marks_right:
            self._partners[1].mark(rows.number[second])
        if self._options.how == "semi":
            if len(marked):
                yield self._found(Rows(marked), phase)
        elif self._options.how != "anti":
            left_ids, right_ids = rows.ids[first], rows.ids[second]
            if not self._two:
                left_ids, right_ids = np.minimum(left_ids, right_ids), np.maximum(left_ids, right_ids)
            yield self._found(Pairs(left_ids, right_ids, distance), phase)

    def _fresh_ids(self, rows: SweepRows, places: Ints) -> Ints:
        """Ids of the rows that get their first partner."""
        numbers = rows.number[places]
        fresh = self._partners[0].mark(numbers)
        order = np.argsort(numbers, kind="stable")
        return rows.ids[places[order[np.searchsorted(numbers[order], fresh)]]]

    # ---------------------------------------------------------------------------------------- phase 1

    def run(self) -> Iterator[Found]:
        """Join: phase 1, then phase 2."""
        self._resume()
        if not self._runs:
            self._estimate_before()
        raw: SweepRows | None = None
        while not all(self._ended) or raw is not None:
            sizes = self._options.sizes
            goal = sizes.run_rows
            if not self._runs:
                goal = next((n for n in sizes.first_rows if raw is None or n > raw.n), goal)
            room = goal - (0 if raw is None else raw.n)
            new, is_idle = self._read(max(1, room))
            if new is not None:
                new, without_key = self._leave_out(new)
                yield from self._lonely(without_key, RUNS)
                raw = new if raw is None else concat([raw.of_run(0), new])
                yield from self._join_run(raw)
                raw = self._leave(raw)
            if is_idle:
                yield from self._merge_while_idle()
            if all(self._ended) and not self._runs:
                self._finish_estimate()
                yield from self._lonely(raw, RUNS)
                return
            if raw is not None and (raw.n >= sizes.run_rows or all(self._ended)):
                self._write_run(raw)
                raw = None
                yield from self._merge_eagerly()
        while self._runs:
            yield from self._merge_some()

    def _read(self, most: int) -> tuple[SweepRows | None, bool]:
        """Read rows of both tables, in the ratio of their sizes if known; and whether one had nothing."""
        goes_on = [side for side, ended in enumerate(self._ended) if not ended]
        sizes = [self._sources[side].n_rows for side in goes_on]
        known = all(n is not None for n in sizes) and sum(n or 0 for n in sizes) > 0
        found: list[SweepRows] = []
        is_idle = False
        with self._timed("reading"):
            for side, n in zip(goes_on, sizes, strict=True):
                fraction = (n or 0) / sum(n or 0 for n in sizes) if known else 1.0 / len(goes_on)
                room = max(1, round(most * fraction))
                while room > 0:
                    chunk = self._sources[side].read(room)
                    if chunk is None:
                        self._ended[side] = True
                        break
                    if not len(chunk.values):
                        is_idle = True
                        break
                    rows = self._check(side, chunk.values, chunk.ids)
                    found.append(rows)
                    room -= rows.n
                if self._read_rows[side] == self._sources[side].n_rows:
                    self._ended[side] = True
        if not found:
            return None, is_idle
        self._counters["rows"] += sum(rows.n for rows in found)
        if (
            len({rows.values.dtype for rows in found}) > 1
            or len({rows.values.shape[1] for rows in found}) > 1
        ):
            kinds = " and ".join(f"{rows.values.shape[1]} columns of {rows.values.dtype}" for rows in found)
            raise ArgumentError(f"the rows of both tables must be of one kind, not {kinds}")
        if not self._is_fitted:
            self._whole = self._whole.fit(np.concatenate([rows.values for rows in found]))
            if not self._two:
                self._whole.check_one_table()
            self._is_fitted = True
        return concat(found), is_idle

    def _check(self, side: int, values: Any, ids: Ints | None) -> SweepRows:
        rows = self._rows(side, self._read_rows[side], values, ids)
        self._read_rows[side] += rows.n
        return rows

    def _rows(self, side: int, first: int, values: Any, ids: Ints | None) -> SweepRows:
        """Checked rows of a table, numbered from ``first`` on."""
        name = ("left", "right")[side] if self._two else "points"
        checked = self._whole.check(name, values)
        n = len(checked)
        number = np.arange(first, first + n)
        flags = np.full(n, IS_RIGHT if side else 0, np.uint8)
        none = np.empty(0, np.int64)
        run = np.full(n, NO_RUN, np.int32)
        return SweepRows(none, number if ids is None else ids, number, flags, checked, none, run)

    def _leave_out(self, rows: SweepRows) -> tuple[SweepRows, SweepRows | None]:
        """Rows with a key, and, where somebody asks for them, those without, which join with nothing."""
        if self._options.how in ("inner", "semi"):
            return rows, None
        has_key = np.zeros(rows.n, np.bool_)
        has_key[self._whole.keyed(rows.values, rows.ids).row] = True
        return (rows, None) if has_key.all() else (rows.take(has_key), rows.take(~has_key))

    def _key(self, kind: JoinKind, raw: SweepRows) -> SweepRows:
        """Rows of a kind, sorted by key."""
        with self._timed("sorting"):
            row, key, mark = kind.keyed(raw.values, raw.ids)
            if (key[1:] < key[:-1]).any():
                order = np.argsort(key, kind="stable")
                row, key, mark = row[order], key[order], mark[order] if len(mark) else mark
            is_all = len(row) == raw.n and bool((row == np.arange(raw.n)).all())
            rows = (raw if is_all else raw.take(row))._replace(key=key, mark=mark)
            if len(row) > raw.n:
                last = np.empty(raw.n, np.int64)
                last[row] = np.arange(len(row))  # the last of several wins
                flags = rows.flags | HAS_MORE
                flags[last[row]] &= ~HAS_MORE
                rows = rows._replace(flags=flags)
        return rows

    def _join_run(self, raw: SweepRows) -> Iterator[Found]:
        rows = self._key(self._whole, raw)
        area = self._whole.new_area(self._counters, self._two)
        self._largest(rows.n)
        for met in self._timed_each("joining", area.query(rows)):
            if not self._gives_rows:
                self._this_run.add(met, self._two)
            yield from self._give(met, RUNS)
        self._estimate_runs()

    def _write_run(self, raw: SweepRows) -> None:
        if self._cut is None:
            self._plan(raw)
        kind = self._cut_kind
        rows = self._key(kind, raw)
        with self._timed("sorting"):
            once = (rows.flags & HAS_MORE) == 0
            self._order.add(rows.key[once], rows.values[once])
            self._counters["replicas"] += rows.n
            writer = self._spill.new_run(0)
            self._write(writer, rows)
            n_right = int(np.count_nonzero(raw.flags & IS_RIGHT))
            n_rows = (raw.n - n_right, n_right)
            of_pairs = None if self._whole is kind else kind.pair_keys
            known = self._this_run.close(n_rows, self._two, raw, of_pairs, self._edges)
            run = writer.finish(n_rows, int(known.pairs.pairs), known.at_key.tolist())
        self._known[run.name] = known
        self._runs.append(run)
        self._counters["runs"] += 1
        self._this_run = RunCount((self._read_rows[0], self._read_rows[1]))
        self._save()
        self._estimate_runs()

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
        n_rows = [source.n_rows for source in self._sources]
        expected = _UNKNOWN_RUNS * raw.n if None in n_rows else sum(n or 0 for n in n_rows)
        expected = max(expected, sum(self._read_rows))
        n_parts = -(-expected // self._options.sizes.part_rows)
        most = min(_MAX_SAMPLE_ROWS, max(2000, _SAMPLE_ROWS_PER_PART * n_parts))
        drawn = [source.sample(most // len(self._sources)) for source in self._sources]
        if any(sample is None for sample in drawn):
            at = np.sort(np.random.default_rng(0).permutation(raw.n)[:most])
            values, ids = raw.values[at], raw.ids[at]
        else:
            checked = [self._whole.check("left", sample) for sample in drawn if sample is not None]
            values = np.concatenate(checked)
            ids = np.arange(len(values))
        with self._timed("sorting"):
            self._cut = self._whole.cut(values, ids, expected, self._options.sizes.part_rows)
            self._edges = key_edges(np.sort(self._cut.keyed(values, ids).key))

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
            if not ready or (all(self._ended) and len(self._runs) <= most):
                return
            taken = [run for run in self._runs if run.level == ready[0]][:most]
            yield from self._merge(taken, is_last=False)

    def _merge_while_idle(self) -> Iterator[Found]:
        if self._options.traversal != "idle" or len(self._runs) < 2 or all(self._ended):
            time.sleep(_PAUSE)
            return
        taken = sorted(self._runs, key=lambda run: (run.level, run.name))[: self._options.sizes.fan_in]
        yield from self._merge(taken, is_last=False)

    def _merge(self, runs: list[SortedRun], *, is_last: bool) -> Iterator[Found]:
        """Merge runs: give the pairs of different ones, write what they become, except in the last merge."""
        kind, sizes = self._cut_kind, self._options.sizes
        area = kind.new_area(self._counters, self._two)
        self._area = area
        progress = MergeProgress([self._known[run.name] for run in runs], self._edges)
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
                self._estimate_merge(runs, progress, is_last)
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
        rest = [run for run in self._runs if run not in runs]
        self._counters["passes"] = max(self._counters["passes"], 1 + max(run.level for run in runs))
        if writer is None:
            self._runs = rest
            self._finish_estimate()
        else:
            of_both = (sum(run.rows[0] for run in runs), sum(run.rows[1] for run in runs))
            known = progress.merged(of_both, self._two)
            merged = writer.finish(of_both, int(known.pairs.pairs), known.at_key.tolist())
            self._known[merged.name] = known
            self._runs = [*rest, merged]
        self._save()
        self._spill.keep_only(self._runs)

    # --------------------------------------------------------------------------------------- estimate

    @property
    def _everything(self) -> float | None:
        """Combinations of all rows; None where nobody knows how many rows there are."""
        n_rows: list[float] = []
        for side, source in enumerate(self._sources):
            n = self._read_rows[side] if self._ended[side] else source.n_rows
            if n is None:
                return None
            n_rows.append(max(n, self._read_rows[side]))
        return combinations((n_rows[0], n_rows[-1]), self._two)

    def _estimate_before(self) -> None:
        """Estimate by a sample of the tables, where one can be drawn: the first run begins with few rows."""
        everything = self._everything
        if not everything or self._gives_rows:
            return
        most = min(_MAX_ROWS_BEFORE, self._options.sizes.run_rows // 2) // len(self._sources)
        drawn = [source.sample(max(1, most)) for source in self._sources]
        try:
            tables = [self._rows(side, 0, rows, None) for side, rows in enumerate(drawn) if rows is not None]
        except ArgumentError:  # reading says so, too, and which row it is
            return
        if len(tables) < len(drawn) or len({(t.values.dtype, t.values.shape[1]) for t in tables}) > 1:
            return
        kind = self._whole.fit(np.concatenate([table.values for table in tables]))
        count = RunCount((0, 0))
        for met in kind.new_area({}, self._two).query(self._key(kind, concat(tables))):
            count.add(met, self._two)
        n_rows = (tables[0].n, tables[1].n if self._two else 0)
        self._sampled = count.so_far(n_rows, self._two)
        fraction = sum(n_rows) / sum(source.n_rows or 0 for source in self._sources)
        self.estimate = from_runs([self._sampled], everything, fraction, True)
        if not all(source.has_even_sample for source in self._sources):
            self.estimate = RunningEstimate(self.estimate.pairs, note=OF_SOME_ROWS)

    def _estimate_runs(self) -> None:
        everything = self._everything
        if everything is None or self._gives_rows:
            return
        runs = [self._known[run.name].pairs for run in self._runs]
        read = (self._read_rows[0], self._read_rows[1])
        this = self._this_run.so_far(read, self._two)
        total = sum(source.n_rows or 0 for source in self._sources) or sum(read)
        everything_read = min(1.0, sum(read) / max(1, total))
        if this.combinations:
            runs.append(this)
        is_less = sum(run.combinations for run in runs) < self._sampled.combinations
        if is_less and self._order.is_random and not all(self._ended):
            return  # the sample knows more
        self.estimate = from_runs(runs, everything, everything_read, self._order.is_random)

    def _estimate_merge(self, runs: list[SortedRun], progress: MergeProgress, is_last: bool) -> None:
        everything = self._everything
        if everything is None or self._gives_rows:
            return
        rest, half = progress.rest()
        if np.isnan(rest):
            return
        here = progress.known_pairs + rest
        others = [self._known[run.name].pairs for run in self._runs if run not in runs]
        note = ""
        if not is_last:
            n_left, n_right = (sum(run.rows[side] for run in runs) for side in (0, 1))
            met = combinations((n_left, n_right), self._two) + sum(run.combinations for run in others)
            scale = everything / met
            here = (here + sum(run.pairs for run in others)) * scale
            half = None if half is None else half * scale
            if not self._order.is_random:
                half, note = None, "interval in the last merge"
        known = float(self._pairs)
        low = None if half is None else max(known, here - half)
        self.estimate = RunningEstimate(
            max(here, known), low, None if half is None else max(known, here + half), note
        )

    def _finish_estimate(self) -> None:
        if not self._gives_rows:
            pairs = float(self._pairs + self._before)
            self.estimate = RunningEstimate(pairs, pairs, pairs)
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
        self._lowest = float(eps)

    _area: SweepArea | None = None
    _before = 0
    """Pairs that a process before this one has given."""

    def _fingerprint(self) -> str:
        kind = self._whole
        named = getattr(kind, "__dataclass_fields__", None) or {}
        values = {name: repr(getattr(kind, name)) for name in named if name != "fitted"}
        how, _, sizes, has_numbers = self._options
        tables = [(source.columns, source.n_rows, source.seed) for source in self._sources]
        return repr((type(kind).__qualname__, values, how, sizes, has_numbers, tables))

    def _save(self) -> None:
        self._spill.write_manifest(
            self._runs,
            made_for=self._made_for,
            read_rows=self._read_rows,
            state=self._cut_kind.state(),
            is_whole=self._cut is self._whole,
            edges=_packed(self._edges),
            order=[[_packed(edges) for edges in self._order.edges], self._order.counts],
            known=[[*self._known[run.name].pairs] for run in self._runs],
            partners=[side.packed.tobytes().hex() for side in self._partners],
            pairs=self._pairs + self._before,
            lowest=self._lowest,
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
        self._edges = _unpacked(found["edges"])
        self._order = OrderCheck([_unpacked(edges) for edges in found["order"][0]], found["order"][1])
        self._known = {
            run.name: KnownRun(RunPairs(*pairs), np.array(run.at_key))
            for run, pairs in zip(self._runs, found["known"], strict=True)
        }
        self._partners = tuple(  # type: ignore[assignment]
            Partners(np.frombuffer(bytes.fromhex(packed), np.uint8)) for packed in found["partners"]
        )
        self._before = found["pairs"]
        if found["lowest"] is not None:
            self.lower_eps(found["lowest"])
        for name, value in found["counters"].items():
            self._counters[name] = value
        for side, source in enumerate(self._sources):
            self._skip(side, source, found["read_rows"][side])
        self._this_run = RunCount((self._read_rows[0], self._read_rows[1]))
        self._estimate_runs()

    def _skip(self, side: int, source: Source, n: int) -> None:
        while self._read_rows[side] < n:
            chunk = source.read(n - self._read_rows[side])
            if chunk is None:
                raise ArgumentError(
                    f"spill is of a join that had read {n:,} rows, and the input has fewer now"
                )
            self._read_rows[side] += len(chunk.values)

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


def _packed(keys: Keys) -> list[str]:
    """Keys as JSON can hold them."""
    return [keys.dtype.str, keys.tobytes().hex()]


def _unpacked(packed: list[str]) -> Keys:
    return np.frombuffer(bytes.fromhex(packed[1]), packed[0])


_COUNTS = (
    *("rows", "replicas", "runs", "merges", "passes", "bytes_written", "bytes_read", "candidates"),
    *("distance_computations", "pairs_in_runs", "pairs_in_merges", "largest_area"),
    *(f"seconds_{what}" for what in ("reading", "sorting", "joining", "merging")),
)
