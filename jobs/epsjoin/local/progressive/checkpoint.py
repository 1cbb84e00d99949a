"""What a later process needs to continue a join that was stopped, and how it continues."""

from __future__ import annotations

from typing import Any

from epsjoin.errors import ArgumentError
from epsjoin.local.progressive.estimates import Estimates
from epsjoin.local.progressive.options import Options
from epsjoin.local.progressive.plans import Plans
from epsjoin.local.progressive.results import Results
from epsjoin.local.progressive.sorted_runs import SortedRun
from epsjoin.local.progressive.spill import Spill
from epsjoin.local.progressive.tables import Tables
from epsjoin.local.progressive.work import Work


class Checkpoint:
    """The state of a join in the manifest of its folder.

    Parameters
    ----------
    tables, options, plans, estimates, results, work : the parts of the join, before it begins.
    spill : its folder.
    """

    def __init__(
        self,
        spill: Spill,
        tables: Tables,
        options: Options,
        plans: Plans,
        estimates: Estimates,
        results: Results,
        work: Work,
    ) -> None:
        self._spill, self._tables, self._plans = spill, tables, plans
        self._estimates, self._results, self._work = estimates, results, work
        self._written_rows = [0, 0]  # for each table, up to the last row that is in a run
        self._made_for = _fingerprint(tables, options, plans)  # before eps is lowered
        self._has_begun = False

    def mark_written(self) -> None:
        """Take note that every row that has been read is in a run now."""
        self._written_rows = list(self._tables.read_rows)

    def save(self, runs: list[SortedRun]) -> None:
        """Name the runs from which a later process can continue, and delete the files of others.

        If runs are merged while an input is idle, rows may have been read that are in no run yet. They would
        be missing, so the folder stays as it was until they are written.
        """
        if self._spill.is_kept and self._tables.read_rows != self._written_rows:
            return
        self._spill.write_manifest(
            runs,
            made_for=self._made_for,
            read_rows=self._tables.read_rows,
            checksums=self._tables.checksums,
            state=self._plans.written.state(),
            **self._estimates.saved(runs),
            **self._results.saved(),
            partners_of=self._read_so_far(),
            counters=self._work.saved(),
        )
        self._spill.keep_only(runs)

    def save_lowest(self, lowest: float) -> None:
        """Note how far eps was lowered, and what cannot be found out later; nothing before the join begins.

        A later process does not meet the earlier pairs again, and a row that has a partner is not alone,
        however far away the partner is. As long as rows are not in a run yet, only this note can say whether
        the later process reads the same rows.
        """
        if not self._has_begun:
            return
        more: dict[str, Any] = {}
        if self._results.gives_lonely and self._spill.is_kept:
            more = {"partners": self._results.saved_partners(), "partners_of": self._read_so_far()}
        self._spill.write_lowest(self._made_for, lowest, **more)

    def resume(self) -> tuple[list[SortedRun], float | None]:
        """Continue from what an earlier process has finished.

        Returns
        -------
        Its runs, and the threshold to which eps was lowered, here or there; None if it was not.

        Raises
        ------
        ArgumentError
            The folder is that of another join, or a table has other rows than that process had read.
        """
        found = self._spill.read_manifest()
        if found is not None and found["made_for"] != self._made_for:
            raise ArgumentError(
                "spill holds the runs of another join; give it the same arguments, or another folder"
            )
        self._has_begun = True
        runs: list[SortedRun] = []
        if found is not None and "state" in found:  # otherwise it only says how far eps was lowered
            runs = self._take_over(found)
        if found is not None and "partners_of" in found:
            self._results.restore_partners(found["partners"])
            for side in range(len(self._tables.sources)):
                self._tables.expect(side, *found["partners_of"][side])
        noted = None if found is None else found["lowest"]
        lowest = [each for each in (noted, self._results.lowest) if each is not None]
        return runs, min(lowest, default=None)

    def _take_over(self, found: dict[str, Any]) -> list[SortedRun]:
        """Continue from the runs of a manifest."""
        self._spill.take_over(found)
        runs: list[SortedRun] = found["runs"]
        self._plans.restore(found["state"])
        self._estimates.restore(found, runs)
        self._results.restore(found)
        self._work.restore(found["counters"])
        for side in range(len(self._tables.sources)):
            self._tables.skip(self._plans.on, side, found["read_rows"][side], found["checksums"][side])
        self.mark_written()
        self._estimates.begin_run()
        self._estimates.by_runs(runs)
        return runs

    def _read_so_far(self) -> list[tuple[int, list[int]]]:
        """How many rows of each table were read, here or by an earlier process, and their checksums."""
        here = zip(self._tables.read_rows, self._tables.checksums, strict=True)
        return [before or now for before, now in zip(self._tables.expected, here, strict=True)]


def _fingerprint(tables: Tables, options: Options, plans: Plans) -> str:
    """What distinguishes a join from others: its condition, its options and its tables."""
    on = plans.on
    values = on.__getstate__()  # in slots, too
    how, _, sizes, has_numbers, _ = options
    described = [(source.columns, source.n_rows, source.seed) for source in tables.sources]
    return repr((type(on).__qualname__, values, how, sizes, has_numbers, described))
