"""Contracts of sources: what a data set's files hold, where they are, and how its runs are made.

A source's contract is ``data_contracts/<data set>.odcs.yaml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any

from epsjoin.contracts.matches import Match
from epsjoin.contracts.odcs import Column
from epsjoin.contracts.times import interval_of
from epsjoin.contracts.trees import AXES, MAX_NODES, METRIC, ROLE

if TYPE_CHECKING:
    from epsjoin.contracts.conditions import Filter

FORMATS = ("csv", "json", "parquet")
COMMA = ","
DELIMITERS = (COMMA, ";", "|", "\t", "^", "~", "#", "$")
"""What may stand between two fields of a CSV file: nothing that numbers, dates and times are written with."""

ROLES = ("payload", "coordinate", "latitude", "longitude", ROLE)
MAX_DEGREES = {"latitude": 90.0, "longitude": 180.0}
"""Largest absolute value of a coordinate in degrees, by its role."""

METRICS = ("euclidean", "manhattan", "chebyshev", "cosine", "haversine", METRIC)

CUSTOM: Mapping[str, Any] = {
    "interval": "day",
    "metric": "euclidean",
    "unit": "",
    "where": "",
    "missing_values": [],
    "delimiter": COMMA,
    "max_quarantine_share": 0.0,
    "guard": {},
    "defaults": {},
    "match": None,
    "window_runs": 12,
}
"""The customProperties of a source's contract, each with its default."""

OF_COLUMNS: Mapping[str, Any] = {
    "role": "payload",
    "decimals": None,
    "windowed": False,
    "max_nodes": MAX_NODES,
}
"""The customProperties of its columns, each with its default."""

GUARD: Mapping[str, float | None] = {
    "lost": 0.05,
    "new": 0.5,
    "updated": 0.5,
    "moved": 0.2,
    "keys": 0.5,
    "scale": 0.9,
    "shift": 0.9,
    "sign": 0.9,
    "swapped": 0.5,
    "format": 0.05,
    "left_out": 0.01,
}
"""The guard's limits, which a contract may replace one by one; see :mod:`epsjoin.local.guard.judge`."""


@cache
def _to_filter(condition: str, types: tuple[tuple[str, str], ...]) -> Filter:
    """Make a filter, which tries its condition, once: each block of a file asks for it."""
    from epsjoin.contracts.conditions import Filter  # its parser takes 18 MB of memory

    return Filter(condition, types)


@dataclass(frozen=True)
class SourceContract:
    """What a data set's files hold and how its runs are made.

    Parameters
    ----------
    path : place of the snapshots, relative to the project or a URI. With ``{date}`` in it there is one
        snapshot per date (a file, or a folder of files); without, the same files belong to every run.
    format : csv, json (one object per line) or parquet; ``.gz`` at the end of a name means gzip.
    interval : how long a run lasts; run 2023-06-01 of a monthly data set takes the last snapshot
        dated 2023-06-01 to 2023-06-30.
    columns : all columns that are read, in the contract's order.
    key : names of the key columns, in key order; empty: the position of a record in its files is its key.
    coordinates : names of the coordinate columns, in order.
    latitude, longitude : names of the coordinates that are a position on a map; empty if there are none.
    metric : name of the metric; ``unit`` is that of its distances.
    max_quarantine_share : largest fraction of bad rows, among those that are not left out, with which a run
        is not refused.
    defaults : the data set's own defaults of ``RunParams``.
    where : SQL on the columns; a record for which it is not true is left out. Empty: none is. ``{begin}`` and
        ``{end}`` in it are the first day of a run's interval and the first day after it, see :meth:`of_run`.
    optional : names of the coordinates with ``required: false``; a record without one of them is left out.
    guard : by the names of its checks, the limits of what the guard lets in; ``None``: anything.
    missing : texts that stand for a missing value in columns that are not texts; ``nan`` also for a NaN.
    match : how its records are matched with those of another data set; ``None``: they are not.
    windowed : names of the columns whose values are counted in each run, to be compared over the last runs.
    window_runs : number of those runs, with the run itself.
    is_of_interval : whether ``where`` speaks of the run's interval, so that a run may have no record.
    tree : name of the column of documents that are compared as trees; empty: points have coordinates.
    delimiter : what stands between two fields of CSV, one of :data:`DELIMITERS`.
    """

    name: str
    path: str
    format: str
    columns: tuple[Column, ...]
    coordinates: tuple[str, ...]
    key: tuple[str, ...] = ()
    title: str = ""
    interval: str = "day"
    latitude: str = ""
    longitude: str = ""
    metric: str = "euclidean"
    unit: str = ""
    max_quarantine_share: float = 0.0
    defaults: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""
    optional: tuple[str, ...] = ()
    guard: Mapping[str, float | None] = field(default_factory=lambda: dict(GUARD))
    missing: tuple[str, ...] = ()
    match: Match | None = None
    windowed: tuple[str, ...] = ()
    window_runs: int = 12
    is_of_interval: bool = False
    tree: str = ""
    delimiter: str = COMMA

    def of_run(self, run: str) -> SourceContract:
        """The contract as it holds for one run: its condition speaks of the run's interval."""
        begin, end = interval_of(self.interval, date.fromisoformat(run))
        where = self.where.replace("{begin}", begin.isoformat()).replace("{end}", end.isoformat())
        return replace(self, where=where, is_of_interval=where != self.where)

    def column(self, name: str) -> Column:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def chain(self) -> str:
        """The chain of jobs that its runs go through, one of :data:`epsjoin.pipeline.CHAINS`."""
        return "match" if self.match is not None else "trees" if self.tree else "join"

    @property
    def numbered_by(self) -> str:
        """What the number of a record in its file counts: ``row`` or ``line``."""
        return "row" if self.format == "parquet" else "line"

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the numbers of a point: its coordinates, or of a tree the bins of its histograms."""
        return AXES if self.tree else self.coordinates

    @property
    def point_metric(self) -> str:
        """Name of the metric of the points: that of the data set, or of trees the one that bounds it."""
        return "manhattan" if self.tree else self.metric

    @property
    def condition(self) -> str:
        """SQL that is true for the records that are taken: ``where``, and no optional coordinate is missing.

        Empty if every record is taken.
        """
        # of a list the first number tells whether it is there
        present = [f"`{name}` IS NOT NULL" for name in self.optional if not self.column(name).item]
        if not self.where:
            return " AND ".join(present)
        end = "\n)" if "--" in self.where else ")"  # it may end in a comment
        return " AND ".join([*present, f"({self.where}{end}"]) if present else self.where

    @property
    def filter(self) -> Filter | None:
        """What decides which records are taken; ``None`` if every record is."""
        types = tuple((column.name, column.type) for column in self.columns)
        return _to_filter(self.condition, types) if self.condition else None
