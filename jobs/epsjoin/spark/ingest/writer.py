"""What a task of ingest writes: points with their digests, and refused records with their reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from epsjoin.contracts.sources import SourceContract
from epsjoin.contracts.trees import TREE
from epsjoin.lake.arrow import to_binary
from epsjoin.lake.targets import Target
from epsjoin.source.values import kind_of
from epsjoin.spark.digests import digest_points
from epsjoin.spark.ingest.facts import KindCount, RowCounts, to_dict
from epsjoin.spark.tasks.reports import TaskReport

BATCH_ROWS = 50_000
"""Number of refused records at which they are written or passed on."""

BATCH_CHARACTERS = 64 << 20
"""Number of characters in refused records at which they are written or passed on, too."""

FILE_ROWS = 1_000_000
"""Number of points held in memory at which a file is written."""

FILE_BYTES = 256 << 20
"""Number of bytes of points held in memory at which a file is written, too."""


class Targets(NamedTuple):
    """Where the tasks of a pass write; small, for it is sent to them."""

    points: Target
    digests: Target
    quarantine: Target


@dataclass
class Writer:
    """What one task writes: points with their digests, and refused records with their reasons.

    Parameters
    ----------
    source : the contract.
    into : where to write.
    report : takes the files, the numbers of rows by file and the kinds of reasons.
    """

    source: SourceContract
    into: Targets
    report: TaskReport = field(default_factory=TaskReport)
    _kept: list[pa.Table] = field(default_factory=list)
    _kept_rows: int = 0
    _kept_bytes: int = 0
    _refused: list[dict[str, Any]] = field(default_factory=list)
    _n_kept: Counter[str] = field(default_factory=Counter)
    _n_refused: Counter[str] = field(default_factory=Counter)
    _kinds: Counter[str] = field(default_factory=Counter)

    def keep(self, name: str, ids: pa.Array | pa.ChunkedArray, values: pa.Table) -> None:
        """Write records of a file as points."""
        points = _make_points(self.source, self.into.points, ids, values)
        self._kept.append(points)
        self._n_kept[name] += len(values)
        self._kept_rows += len(points)
        self._kept_bytes += points.nbytes
        if self._kept_rows >= FILE_ROWS or self._kept_bytes >= FILE_BYTES:
            self._write_points()

    def refuse(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write rows of quarantine; a row without line is about its file, not about a record."""
        self._refused += rows
        for row in rows:
            if row["line"] is not None:
                self._n_refused[row["source"]] += 1
                self._kinds[kind_of(row["reason"])] += 1
        n_characters = sum(len(row["raw"]) for row in self._refused)
        if len(self._refused) >= BATCH_ROWS or n_characters >= BATCH_CHARACTERS:
            self._write_refused()

    def close(self) -> TaskReport:
        """Write what is held, and return the report."""
        self._write_points()
        self._write_refused()
        for name in sorted({*self._n_kept, *self._n_refused}):
            self.report.facts.append(to_dict(RowCounts(name, self._n_kept[name], self._n_refused[name])))
        self.report.facts += [to_dict(KindCount(kind, rows)) for kind, rows in self._kinds.items()]
        return self.report

    def _write_points(self) -> None:
        self.report.write(self.into.points, self._kept)
        if self.source.key:
            digests = (digest_points(self.source, points["id"], points) for points in self._kept)
            self.report.write(self.into.digests, digests)
        self._kept, self._kept_rows, self._kept_bytes = [], 0, 0

    def _write_refused(self) -> None:
        schema = pa.schema([column for column in self.into.quarantine.schema if column.name != "run"])
        self.report.write(self.into.quarantine, [pa.Table.from_pylist(self._refused, schema)])
        self._refused = []


def _make_points(
    source: SourceContract, points: Target, ids: pa.Array | pa.ChunkedArray, values: pa.Table
) -> pa.Table:
    columns = {name: values[name] for name in (column.name for column in source.columns)}
    columns["id"] = ids
    if source.tree:
        from epsjoin.local.trees.points import to_points  # with kernels that only documents need

        packed, matrix = to_points(values[source.tree].to_pylist())
        columns[TREE] = pa.array(packed, pa.binary())
    else:
        matrix = np.empty((len(values), len(source.coordinates)))
        for place, name in enumerate(source.coordinates):
            matrix[:, place] = values[name].to_numpy()
    columns["point"] = to_binary(matrix.astype("<f8", copy=False))
    return pa.table({name: columns[name] for name in points.schema.names if name != "run"})
