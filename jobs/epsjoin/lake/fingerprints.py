"""Which tables belong together: the names of a table's files begin with a fingerprint of its inputs.

A job killed between two commits, a step run again without those after it, or two runs at once cannot mix
tables unnoticed: whoever reads files with another fingerprint stops and says which job to run again.
``pipeline.py`` declares what each table is made from.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from epsjoin.contracts.times import run_before
from epsjoin.errors import MissingSliceError, UnfitTableError
from epsjoin.lake import refusals, slices
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File, read_first
from epsjoin.pipeline import TABLES, Input, run_again, tables_up_to

_FINGERPRINT = re.compile("[0-9a-f]{16}-")

_LOOKED_AT = 1000
"""Number of points whose coordinates are compared with their columns."""


def new_fingerprint() -> str:
    """A fingerprint that nobody else has, for the tables of one pass of a job whose input is outside."""
    return f"{uuid.uuid4().hex[:16]}-"


class Fingerprints:
    """The fingerprints of a run's tables, as the lake is when each is first needed.

    All fingerprints that one object returns belong to one state of the inputs. Take all that are needed
    before any table is read: then readers notice what is replaced in between.

    Parameters
    ----------
    lake : the tables.
    run : logical date of the run.
    is_made_now : whether a job works on the run. Then its points must have the coordinates of the contract as
        it is now, and its plan the metric: names of files do not tell by which contract they were made.
    """

    def __init__(self, lake: Lake, run: str, *, is_made_now: bool = False) -> None:
        self._lake = lake
        self._run = run
        self._is_made_now = is_made_now
        self._found: dict[str, str] = {}
        self._files: dict[str, list[File]] = {}
        self._rows: dict[str, dict[str, Any]] = {}
        self._values: dict[tuple[str, str], Any] = {}
        self._before: list[Fingerprints] | None = None

    @classmethod
    def of_all(cls, lake: Lake) -> list[Fingerprints]:
        """Those of all runs whose clusters fit their points and their plan, oldest first."""
        found: list[Fingerprints] = []
        for run in slices.list_runs(lake, "clusters"):
            one = cls(lake, run)
            if one.has("clusters"):
                one._before = found[-1:]
                found.append(one)
        return found

    @property
    def lake(self) -> Lake:
        """The tables."""
        return self._lake

    @property
    def run(self) -> str:
        """Logical date of the run."""
        return self._run

    @property
    def before(self) -> Fingerprints | None:
        """Those of the run before, the latest earlier one whose clusters fit; None for the first run."""
        if self._before is None:
            self._before = []
            earlier = [run for run in slices.list_runs(self._lake, "clusters") if run < self._run]
            for run in reversed(earlier):
                one = Fingerprints(self._lake, run)
                if one.has("clusters"):
                    self._before = [one]
                    break
        return self._before[0] if self._before else None

    def has(self, table: str) -> bool:
        """Whether the run has a slice of this table that was made from what the lake has now."""
        try:
            slices.files_of(self._lake, self.slice(table))
        except UnfitTableError:
            return False
        return True

    def slice(self, table: str, **new: Sequence[File] | str) -> Slice:
        """The run's slice of a table, with the fingerprint of what it must have been made from.

        Parameters
        ----------
        table : name of a table.
        new : by the names of inputs that are not committed yet: their files, or the text of their column.

        Raises
        ------
        UnfitTableError
            An input has no slice, or the inputs do not belong together.
        """
        if new:
            return Slice(table, self._run, fingerprint=self._digest(table, new))
        if table not in self._found:
            kind = TABLES[table].fingerprint
            if kind == "inputs":
                self._found[table] = self._digest(table, {})
            else:
                self._found[table] = self._of_pass(table) if kind == "pass" else ""
        return Slice(table, self._run, fingerprint=self._found[table])

    def slices(self, tables: Iterable[str] | None = None) -> dict[str, Slice]:
        """The run's slices of these tables, by default of the chain to clusters, by name; see :meth:`slice`.

        Of several tables that do not fit the error names the first.
        """
        found: dict[str, Slice] = {}
        for table in tables or tables_up_to("results", self._lake.source.chain):
            try:
                found[table] = self.slice(table)
            except UnfitTableError:
                for where in found.values():
                    slices.files_of(self._lake, where)
                raise
        return found

    def row(self, table: str) -> dict[str, Any]:
        """The only row of a table, which agrees with the row that ``pipeline.py`` names.

        Raises
        ------
        UnfitTableError
            There is no such row, its table was made from other inputs, or the rows do not agree.
        """
        if table not in self._rows:
            row = slices.read_row(self._lake, self.slice(table))
            self._check_agreement(table, row)
            metric = self._lake.source.point_metric
            if self._is_made_now and row.get("metric", metric) not in (metric, None):
                raise UnfitTableError(
                    f"{table} of run {self._run} has the metric {row['metric']}, the contract {metric}; "
                    f"{run_again(table, self._lake.source.chain)}"
                )
            self._rows[table] = row
        return self._rows[table]

    def value(self, table: str, column: str) -> Any:
        """A value of the only row of a table; see :meth:`row`, but columns that are not needed are not read.

        A plan may hold the ids of millions of points, which only jobs need.
        """
        if self._is_made_now or table in self._rows:
            return self.row(table)[column]
        if (table, column) not in self._values:
            agrees = TABLES[table].agrees
            names = {column, agrees[1]} if agrees else {column}
            row = slices.read_row(self._lake, self.slice(table), sorted(names))
            self._check_agreement(table, row)
            self._values[table, column] = row[column]
        return self._values[table, column]

    def _check_agreement(self, table: str, row: dict[str, Any]) -> None:
        agrees = TABLES[table].agrees
        if agrees is None:
            return
        other, column = agrees
        expected = self.row(other)[column]
        if row[column] != expected:
            raise UnfitTableError(
                f"{table} of run {self._run} has {column} {row[column]}, {other} {expected}; "
                f"{run_again(table, self._lake.source.chain)}"
            )

    def _digest(self, table: str, new: dict[str, Sequence[File] | str]) -> str:
        section = TABLES[table].section
        texts = repr(getattr(self._lake.source, section)) if section else ""
        files: list[File] = []
        for source in TABLES[table].made_from:
            value = new.get(source.table)
            if value is None:
                if source.is_before:
                    value = self._state_before(source, table)
                elif source.is_partner or source.is_previous:
                    value = self._state_around(source)
                else:
                    value = self._state_of(source)
            if isinstance(value, str):
                texts += value
            else:
                files += value
        digest = hashlib.blake2b(texts.encode(), digest_size=8)
        for file in files:
            digest.update(file.path.encode())
        return f"{digest.hexdigest()}-"

    def _state_of(self, source: Input) -> Sequence[File] | str:
        if source.by == "fingerprint":
            return self.slice(source.table).fingerprint
        if source.by != "files":
            return str(self.value(source.table, source.by))
        if source.table not in self._files:
            self._files[source.table] = slices.files_of(self._lake, self.slice(source.table))
        return self._files[source.table]

    def _state_before(self, source: Input, table: str) -> Sequence[File] | str:
        before = self.before
        if before is None:
            return []
        if source.table == table:
            return slices.files_of(self._lake, Slice(table, before.run))
        return before._state_of(source)

    def _state_around(self, source: Input) -> Sequence[File]:
        """The files of a slice of the partner, or of the interval before, which may not be there."""
        lake, run = self._lake, self._run
        match = lake.source.match
        if source.is_previous and (match is None or match.order is None):
            return []
        if source.is_previous:
            run = run_before(lake.source.interval, date.fromisoformat(run)).isoformat()
        of = Slice(source.table, run)
        if source.is_partner:
            lake = lake.partner()
        try:
            return slices.files_of(lake, of)
        except MissingSliceError as error:
            if source.is_previous:
                return []
            why = refusals.read(lake, run)
            raise MissingSliceError(
                f"{lake.source.name}: "
                + (f"the snapshot of run {run} was refused: {why}" if why else str(error))
            ) from error

    def _of_pass(self, table: str) -> str:
        """The fingerprint of the last pass of a job; points that an older version has stored bear none.

        Where some files bear one, all of them must: :func:`slices.files_of` refuses the others.
        """
        last = [name for name, other in TABLES.items() if other.written_by == TABLES[table].written_by][-1]
        files = slices.files_of(self._lake, Slice(last, self._run))
        found = (_FINGERPRINT.match(file.path.rpartition("/")[2]) for file in files)
        if self._is_made_now and table == "points":
            self._check_coordinates(files)
        return max(match[0] if match else "" for match in found)

    def _check_coordinates(self, files: Sequence[File]) -> None:
        """Refuse points that have other coordinates than the contract, by the first ones."""
        names, schema = self._lake.source.coordinates, self._lake.schema("points")
        filled = [file for file in files if file.rows]
        if self._lake.source.tree or not filled:
            return
        columns = pa.schema([schema.field(name) for name in (*names, "point")])
        first = read_first(self._lake.location("points"), filled[0], columns, _LOOKED_AT)
        wanted = np.column_stack([first[name].cast("double").to_numpy(False) for name in names])
        found = np.frombuffer(b"".join(first["point"].to_pylist()), "<f8")
        if not np.array_equal(found, wanted.reshape(-1)):
            raise UnfitTableError(
                f"points of run {self._run} has other coordinates than {', '.join(names)}, those of the "
                f"contract as it is now; {run_again('points', self._lake.source.chain)}"
            )
