"""The estimate of a progressive join from its first rows to its last: by a sample, by runs, by a merge.

The formulas are in :mod:`epsjoin.local.progressive.running`, the counts in
:mod:`epsjoin.local.progressive.known`; here is what a join keeps for them, and which of
them holds when.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from epsjoin.local.plan.expectation.expected import NORMAL_95
from epsjoin.local.progressive.kinds.kind import SweepKind
from epsjoin.local.progressive.known import KnownRun, MergeProgress, RunCount
from epsjoin.local.progressive.rows import Keys, SweepRows, concat
from epsjoin.local.progressive.running import (
    OF_SOME_ROWS,
    OrderCheck,
    RunningEstimate,
    RunPairs,
    combinations,
    from_runs,
    variance_of_some,
)
from epsjoin.local.progressive.sorted_runs import SortedRun
from epsjoin.local.progressive.tables import Tables, sorted_by_key


class Estimates:
    """The estimate of a join that is running, and what is known of its runs.

    Parameters
    ----------
    tables : what is joined.
    gives_rows : whether rows are given, not pairs: then there is no estimate.
    """

    def __init__(self, tables: Tables, gives_rows: bool) -> None:
        self._tables, self._gives_rows = tables, gives_rows
        self._sampled = RunPairs(0, 0.0, 0.0)
        self.known: dict[str, KnownRun] = {}
        self.order = OrderCheck()
        self.edges: Keys = np.empty(0)
        self.this_run = RunCount((0, 0))
        self.now = RunningEstimate(None)

    def begin_run(self) -> None:
        """Begin to count anew: the rows that are read from now on belong to another run."""
        self.this_run = RunCount((self._tables.read_rows[0], self._tables.read_rows[1]))

    def before(self, kind: SweepKind, samples: list[SweepRows]) -> None:
        """Estimate by a sample of each table, before they are read."""
        tables, two = self._tables, self._tables.two
        everything = tables.everything
        if not everything or self._gives_rows:
            return
        count = RunCount((0, 0))
        for met in kind.new_area({}, two).query(sorted_by_key(kind, concat(samples))):
            count.add(met, two)
        n_rows = (samples[0].n, samples[1].n if two else 0)
        self._sampled = count.so_far(n_rows, two)
        fraction = sum(n_rows) / sum(source.n_rows or 0 for source in tables.sources)
        self.now = from_runs([self._sampled], everything, fraction, True)
        if not all(source.has_even_sample for source in tables.sources):
            self.now = RunningEstimate(self.now.pairs, note=OF_SOME_ROWS)

    def by_runs(self, runs: list[SortedRun]) -> None:
        """Estimate by the pairs of the runs and of the rows that have been read since."""
        tables = self._tables
        everything = tables.everything
        if everything is None or self._gives_rows:
            return
        found = [self.known[run.name].pairs for run in runs]
        read = (tables.read_rows[0], tables.read_rows[1])
        this = self.this_run.so_far(read, tables.two)
        total = sum(source.n_rows or 0 for source in tables.sources) or sum(read)
        everything_read = min(1.0, sum(read) / max(1, total))
        if this.combinations:
            found.append(this)
        is_less = sum(run.combinations for run in found) < self._sampled.combinations
        if is_less and self.order.is_random and not tables.all_ended:
            return  # the sample knows more
        self.now = from_runs(found, everything, everything_read, self.order.is_random)

    def by_merge(
        self,
        runs: list[SortedRun],
        others: list[SortedRun],
        progress: MergeProgress,
        is_last: bool,
        pairs: int,
    ) -> None:
        """Estimate by a merge of runs, beside the other runs, in a join that has given so many pairs."""
        everything = self._tables.everything
        if everything is None or self._gives_rows:
            return
        rest, half = progress.rest()
        if np.isnan(rest):
            return
        here = progress.known_pairs + rest
        note = ""
        if not is_last:
            of_others = [self.known[run.name].pairs for run in others]
            n_left, n_right = (sum(run.rows[side] for run in runs) for side in (0, 1))
            met = [combinations((n_left, n_right), self._tables.two), *(r.combinations for r in of_others)]
            scale = everything / sum(met)
            here += sum(run.pairs for run in of_others)
            if half is not None:  # what these runs have, and what they tell of the others
                of_runs = [*(self.known[run.name].pairs for run in runs), *of_others]
                variance = variance_of_some(here, of_runs, met, everything)
                half = scale * math.sqrt(half**2 + NORMAL_95**2 * variance)
            here *= scale
            if not self.order.is_random:
                half, note = None, "interval in the last merge"
        known = float(pairs)
        low = None if half is None else max(known, here - half)
        self.now = RunningEstimate(
            max(here, known), low, None if half is None else max(known, here + half), note
        )

    def finish(self, pairs: int) -> None:
        """All pairs are known."""
        if not self._gives_rows:
            self.now = RunningEstimate(float(pairs), float(pairs), float(pairs))

    def saved(self, runs: list[SortedRun]) -> dict[str, Any]:
        """What :meth:`restore` needs, as JSON can hold it."""
        return {
            "edges": _packed(self.edges),
            "order": [[_packed(edges) for edges in self.order.edges], self.order.counts],
            "known": [[*self.known[run.name].pairs] for run in runs],
            "some": [self.known[run.name].some.tolist() for run in runs],
        }

    def restore(self, saved: dict[str, Any], runs: list[SortedRun]) -> None:
        """Continue with what an earlier process knew of its runs."""
        self.edges = _unpacked(saved["edges"])
        self.order = OrderCheck([_unpacked(edges) for edges in saved["order"][0]], saved["order"][1])
        self.known = {
            run.name: KnownRun(
                RunPairs(*pairs), np.array(run.at_key), np.array(some, np.int64).reshape(-1, 2)
            )
            for run, pairs, some in zip(runs, saved["known"], saved["some"], strict=True)
        }


def _packed(keys: Keys) -> list[str]:
    """Keys as JSON can hold them."""
    return [keys.dtype.str, keys.tobytes().hex()]


def _unpacked(packed: list[str]) -> Keys:
    return np.frombuffer(bytes.fromhex(packed[1]), packed[0])
