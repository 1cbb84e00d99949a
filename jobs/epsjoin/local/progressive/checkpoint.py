"""What a process after this one needs to go on with a join that was stopped, and how it goes on."""

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
    tables, options, plans, estimates, results, work : of the join, before it begins.
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
        self._written_rows = [0, 0]  # of each table, up to the last that is in a run
        self._made_for = _fingerprint(tables, options, plans)  # before eps is lowered
        self._has_begun = False

    def mark_written(self) -> None:
        """From now on every row that has been read is in a run."""
        self._written_rows = list(self._tables.read_rows)

    def save(self, runs: list[SortedRun]) -> None:
        """Name the runs from which a process after this one can go on, and delete the files of others.

        Rows that have been read and are in no run yet, while an idle input has runs merged, would be missing:
        until they are written the folder stays as it was.
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
        """Note how far eps was lowered, and what is not found out after that; nothing before the join begins.

        A process after this one meets the pairs that came before no more, and a row that has a partner is not
        alone, however far away that is. Rows may not be in a run yet: then nothing else says whether the
        other process reads the same.
        """
        if not self._has_begun:
            return
        more: dict[str, Any] = {}
        if self._results.gives_lonely and self._spill.is_kept:
            more = {"partners": self._results.saved_partners(), "partners_of": self._read_so_far()}
        self._spill.write_lowest(self._made_for, lowest, **more)

    def resume(self) -> tuple[list[SortedRun], float | None]:
        """Go on from what a process before has finished.

        Returns
        -------
        Its runs, and the threshold to which eps was lowered, here or there; None where it was not.

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
        if found is not None and "state" in found:  # otherwise it says no more than how far eps was lowered
            runs = self._take_over(found)
        if found is not None and "partners_of" in found:
            self._results.restore_partners(found["partners"])
            for side in range(len(self._tables.sources)):
                self._tables.expect(side, *found["partners_of"][side])
        noted = None if found is None else found["lowest"]
        lowest = [each for each in (noted, self._results.lowest) if each is not None]
        return runs, min(lowest, default=None)

    def _take_over(self, found: dict[str, Any]) -> list[SortedRun]:
        """Go on from the runs of a manifest."""
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
        """How many rows of each table were read, here or by a process before, and their checksums."""
        here = zip(self._tables.read_rows, self._tables.checksums, strict=True)
        return [before or now for before, now in zip(self._tables.expected, here, strict=True)]


def _fingerprint(tables: Tables, options: Options, plans: Plans) -> str:
    """What tells a join from others: what it is on, how, and of which tables."""
    on = plans.on
    values = on.__getstate__()  # in slots, too
    how, _, sizes, has_numbers, _ = options
    described = [(source.columns, source.n_rows, source.seed) for source in tables.sources]
    return repr((type(on).__qualname__, values, how, sizes, has_numbers, described))
