"""Ranges of runs as a view of the slices: since when a record holds, and until when.

A run's slices are stored whole, and stay so: ranges are made when somebody asks for them. They follow from
the slices that are in the lake, whatever the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError, TableError, UnfitTableError
from epsjoin.lake import parquet, slices
from epsjoin.lake.arrow import are_same
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.pipeline import writer_of
from epsjoin.vocabulary import NOISE

KEYS = {"points": ("id",), "pairs": ("left_id", "right_id"), "clusters": ("id",)}
"""The tables with a history, and the columns that tell which rows of two runs are of one record."""

RANGE = ("from_run", "to_run")
"""Columns of a range: its first run, and the first run at which it holds no more; null if it still holds."""

_BATCH_ROWS = 1 << 16


class View(NamedTuple):
    """What the history of a table has for every run.

    Parameters
    ----------
    table : name of the table.
    key : columns that tell which rows are of one record.
    columns : all columns with their types, those of the key first. Of clusters it has the ``name`` that stays
        from run to run, not the cluster_id.
    runs : the runs that have a slice, oldest first.
    """

    table: str
    key: tuple[str, ...]
    columns: pa.Schema
    runs: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the ranges: those of the rows, ``from_run`` and ``to_run``."""
        first, end = RANGE
        return pa.schema([*self.columns, pa.field(first, pa.string(), False), pa.field(end, pa.string())])


def open_view(lake: Lake, table: str) -> View:
    """Find what the history of a table is made of.

    Raises
    ------
    ArgumentError
        The table has no history, or the source has a column called as one of a range.
    TableError
        The table has no slice.
    """
    if table not in KEYS:
        raise ArgumentError(f"table must be one of {', '.join(KEYS)}, not {table}")
    columns = [column for column in lake.schema(table) if column.name != "run"]
    if table == "clusters":
        columns = [c.with_name("name") if c.name == "cluster_id" else c for c in columns]
    taken = [column.name for column in columns if column.name in RANGE]
    if taken:
        raise ArgumentError(
            f"{lake.source.name} has a column {taken[0]}, which a history calls the runs of a range; "
            "give it another name in the contract"
        )
    runs = slices.list_runs(lake, table)
    if not runs:
        raise UnfitTableError(
            f"{table} has no slice; run {writer_of(table, lake.source.chain)} for a run first"
        )
    return View(table, KEYS[table], parquet.as_read(pa.schema(columns)), tuple(runs))


def read_ranges(lake: Lake, view: View, of: int | None = None) -> Iterator[pa.Table]:
    """Read the maximal ranges: a table of those that end at each run, at last one of those that still hold.

    Values are the same if they are equal, or both null, or both NaN.

    Parameters
    ----------
    of : an id: only the rows that have it, pairs at either end. By default all rows.

    Raises
    ------
    TableError
        A slice was made from other tables than the run has now, or cannot be read.

    Notes
    -----
    In memory are the rows of two runs, however many there are. Each table's log is read once.
    """
    lake = slices.as_now(lake)
    before, begun = view.columns.empty_table(), np.empty(0, np.int64)
    for number, run in enumerate(view.runs):
        now = read_rows(lake, view, run, of)
        since = np.full(now.num_rows, number)
        old, new = _match(before, now, view.key)
        kept = zip(before.take(old).columns, now.take(new).columns, strict=True)
        is_same = np.logical_and.reduce([are_same(*columns) for columns in kept])
        since[new[is_same]] = begun[old[is_same]]
        has_ended = np.ones(before.num_rows, np.bool_)
        has_ended[old[is_same]] = False
        yield _with_range(before.filter(pa.array(has_ended)), view, begun[has_ended], run)
        before, begun = now, since
    yield _with_range(before, view, begun, None)


def read_rows(lake: Lake, view: View, run: str, of: int | None = None) -> pa.Table:
    """Read the rows of a run; see :func:`read_ranges`."""
    inputs = Fingerprints(lake, run)
    where = inputs.slice(view.table)
    stored = lake.schema(view.table)
    columns = pa.schema([column for column in stored if column.name != "run"])
    batches = (
        batch
        for file in slices.files_of(lake, where)
        for batch in parquet.stream_as_now(lake.location(view.table), file, columns, _BATCH_ROWS, stored)
    )
    chosen = batches if of is None else (_with_id(batch, view.key, of) for batch in batches)
    rows = pa.Table.from_batches(chosen, parquet.as_read(columns))
    if view.table == "clusters":
        names = slices.read_slice(lake, inputs.slice("cluster_names"), ["cluster_id", "name"])
        rows = rows.set_column(
            rows.column_names.index("cluster_id"), "name", name_clusters(rows["cluster_id"], names, where)
        )
    return rows.select(view.columns.names).cast(view.columns)


def name_clusters(cluster_ids: pa.ChunkedArray, names: pa.Table, where: Slice) -> pa.ChunkedArray:
    """Replace cluster ids by the names of the clusters; noise stays noise.

    Raises
    ------
    TableError
        A cluster has no name.
    """
    found = names["name"].take(pc.index_in(cluster_ids, names["cluster_id"].combine_chunks()))
    is_noise = pc.equal(cluster_ids, NOISE)
    if pc.any(pc.and_(found.is_null(), pc.invert(is_noise))).as_py():
        raise TableError(f"{where} has clusters that cluster_names does not have; run compare again")
    return pc.if_else(is_noise, NOISE, found)


def _with_id(batch: pa.RecordBatch, key: Sequence[str], wanted: int) -> pa.RecordBatch:
    is_wanted = np.zeros(batch.num_rows, np.bool_)
    for name in key:
        is_wanted |= batch[name].to_numpy() == wanted
    return batch.filter(pa.array(is_wanted))


def _match(
    before: pa.Table, now: pa.Table, key: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the rows with one key, in both tables."""
    keyed = [
        rows.select(key).append_column(name, pa.array(np.arange(rows.num_rows)))
        for name, rows in (("_before", before), ("_now", now))
    ]
    found = keyed[0].join(keyed[1], list(key), join_type="inner")
    return found["_before"].to_numpy(), found["_now"].to_numpy()


def _with_range(rows: pa.Table, view: View, begun: NDArray[np.int64], end: str | None) -> pa.Table:
    first = pa.array(np.array(view.runs, object)[begun], pa.string())
    last = pa.array([end] * rows.num_rows, pa.string())
    return pa.Table.from_arrays([*rows.columns, first, last], schema=view.schema)
