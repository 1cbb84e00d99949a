"""Slices of tables on the driver: their files and counts from the log, the small ones as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from numpy.typing import NDArray

from epsjoin.contracts.times import interval_of
from epsjoin.errors import MissingSliceError, UnfitTableError
from epsjoin.lake.delta_log import LogFiles, log_files, open_log
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File, as_read, read_file, stream_as_now, stream_file, take_where
from epsjoin.lake.phases import phase
from epsjoin.lake.targets import target_of
from epsjoin.lake.transactions import commit, rows_committed
from epsjoin.pipeline import run_again, writer_of

_BATCH_ROWS = 1 << 16

_PARTITION = "partition."
"""Prefix of the partition columns in what a log says of a file."""

Counters = dict[str, dict[str, float]]
"""Job to counter to value."""


def write_slice(lake: Lake, where: Slice, rows: pa.Table) -> None:
    """Replace a slice by rows that the driver holds."""
    write_slices(lake, {where: rows})


def write_slices(lake: Lake, replaced: Mapping[Slice, pa.Table]) -> None:
    """Replace slices of one table, which :func:`commit` takes together, by rows that the driver holds."""
    files = {}
    for where, rows in replaced.items():
        inner = rows.drop_columns([name for name in where.partition if name in rows.column_names])
        written = target_of(lake, where).write([inner])
        files[where] = [written] if written else []
    commit(lake, files)


def table_of(lake: Lake, table: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Make an Arrow table, with the types of the table's contract, of rows without the column ``run``."""
    schema = lake.schema(table)
    return pa.Table.from_pylist(
        [dict(row) for row in rows], pa.schema([c for c in schema if c.name != "run"])
    )


class _Look(NamedTuple):
    """A table's log, and what it says of the files by run; without a log, none."""

    log: DeltaTable | None
    by_run: dict[str, list[dict[str, Any]]]
    committed: dict[str, int | None]
    """The number of rows that :func:`rows_committed` gave for a slice, as soon as it was asked for."""


_MAX_LOOKS = 32
"""Logs that are kept; a data set has some twenty tables."""

_looks: dict[str, tuple[LogFiles, _Look]] = {}
"""What the logs that were looked at last say, by the table's location, each with the files that it had."""


def as_now(lake: Lake) -> Lake:
    """The lake whose logs are read once: each table is as it was when it was first looked at.

    Whoever asks for the slices of many runs would otherwise read each log once for every run. Commits look at
    the logs themselves.
    """
    return replace(lake, logs={})


def _look(lake: Lake, table: str) -> _Look:
    if lake.logs is not None and table in lake.logs:
        looked: _Look = lake.logs[table]
        return looked
    with phase("read"):
        found = _look_now(lake.location(table))
    if lake.logs is not None:
        lake.logs[table] = found
    return found


def _look_now(location: str) -> _Look:
    """Look at a log as it is now; it is read again where its files are others than at the last look."""
    files = log_files(location)  # before the log is read: what comes in between is seen at the next look
    if location in _looks and _looks[location][0] == files:
        return _looks[location][1]
    log = open_log(location)
    by_run: dict[str, list[dict[str, Any]]] = {}
    for action in [] if log is None else pa.table(log.get_add_actions(flatten=True)).to_pylist():
        by_run.setdefault(str(action[f"{_PARTITION}run"]), []).append(action)
    found = _Look(log, dict(sorted(by_run.items())), {})
    _looks.pop(location, None)  # the one looked at last shall be the last
    _looks[location] = files, found
    while len(_looks) > _MAX_LOOKS:
        _looks.pop(next(iter(_looks)))
    return found


def _committed(look: _Look, where: Slice) -> int | None:
    slice_of = str(where.partition)
    if look.log is not None and slice_of not in look.committed:
        look.committed[slice_of] = rows_committed(look.log, where.partition)
    return look.committed.get(slice_of)


def files_of(lake: Lake, where: Slice) -> list[File]:
    """List the files of a slice, ordered by path.

    Raises
    ------
    UnfitTableError
        The run has no slice in this table: the job that writes it has not run. Or its files have another
        fingerprint: what they were made from has changed since. Or another program has added or removed
        files, or the log does not say how many rows they have.
    """
    return log_and_files(lake, where)[1]


def log_and_files(lake: Lake, where: Slice) -> tuple[DeltaTable, list[File]]:
    """Return the present log of the table, shared by all, and the slice's files; see :func:`files_of`."""
    look = _look(lake, where.table)
    found = []
    for action in look.by_run.get(where.run, ()):
        values = {
            name.removeprefix(_PARTITION): str(value)
            for name, value in action.items()
            if name.startswith(_PARTITION)
        }
        if where.partition.items() <= values.items():
            path, size, rows = (
                unquote(action["path"]),
                action["size_bytes"],
                _count_rows_of_file(lake, where.table, action),
            )
            found.append(
                File(where.table, path, size, rows, values, 8 * len(lake.source.axes), lake.source.chain)
            )
    writer = writer_of(where.table, lake.source.chain)
    if look.log is None or not found:
        raise MissingSliceError(
            f"{where.table} has no slice of run {where.run}{_remedy(lake, where, writer)}"
        )
    if not all(file.path.rpartition("/")[2].startswith(where.fingerprint) for file in found):
        raise UnfitTableError(f"{where} was made from other tables than these; run {writer} again")
    rows, committed = sum(file.rows for file in found), _committed(look, where)
    if committed not in (None, rows):
        raise UnfitTableError(
            f"{where} has {rows:,} rows, {writer} wrote {committed:,}: another program has changed it; "
            f"run {writer} again"
        )
    return look.log, sorted(found, key=lambda file: file.path)


def _remedy(lake: Lake, where: Slice, writer: str) -> str:
    """What to do about a slice that is missing: no job writes one of a date that begins no interval."""
    try:
        begin = first_day(lake, where.run)
    except (ValueError, OverflowError):  # no date of a run; one that a person gives is refused before
        begin = where.run
    if begin == where.run:
        return f"; run {writer} for it first"
    runs = list_runs(lake, where.table)
    near = [run for run in runs if run < where.run][-1:] + [run for run in runs if run > where.run][:1]
    told = f"nearest to it {'are runs' if len(near) > 1 else 'is run'} {' and '.join(near)}"
    told = told if near else f"run {writer} for {begin} first"
    return f", which is not the first day of a {lake.source.interval}; {told}"


def first_day(lake: Lake, run: str) -> str:
    """The first day of the interval that a date is in, by which the data set's runs are named.

    Weeks begin with the weekday on which those of the runs in the lake do.
    """
    interval, day = lake.source.interval, date.fromisoformat(run)
    begin, _ = interval_of(interval, day)
    runs = list_runs(lake, "snapshots") if interval == "week" else []
    if runs:
        begin -= timedelta((day - date.fromisoformat(runs[0])).days % 7)
    return begin.isoformat()


def _count_rows_of_file(lake: Lake, table: str, action: Mapping[str, Any]) -> int:
    """Return the number of rows of a file by its entry in the log, from which some programs leave it out."""
    if action["num_records"] is None:
        raise UnfitTableError(
            f"{table}: its Delta log does not say how many rows {unquote(action['path'])} has, as after a "
            "checkpoint without statistics (delta.checkpoint.writeStatsAsJson must not be false); "
            f"{run_again(table, lake.source.chain)}"
        )
    return int(action["num_records"])


def count_rows_by_run(lake: Lake, table: str) -> dict[str, int]:
    """Count the rows of every run's slice by the log alone, oldest run first; empty if there is no table."""
    by_run = _look(lake, table).by_run
    return {
        run: sum(_count_rows_of_file(lake, table, action) for action in actions)
        for run, actions in by_run.items()
    }


def list_runs(lake: Lake, table: str) -> list[str]:
    """List the runs that have a slice in this table, oldest first, by the log alone."""
    return list(_look(lake, table).by_run)


def count_rows(lake: Lake, where: Slice) -> int:
    """Count the rows of a slice by the log alone."""
    return sum(file.rows for file in files_of(lake, where))


def read_slice(lake: Lake, where: Slice, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a slice, or some of its columns, into the memory of the driver."""
    schema, location = lake.schema(where.table), lake.location(where.table)
    return pa.concat_tables([read_file(location, file, schema, columns) for file in files_of(lake, where)])


def stream_slice(lake: Lake, where: Slice, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read some columns of a slice batch by batch, in bounded memory."""
    whole, location = lake.schema(where.table), lake.location(where.table)
    wanted = as_read(pa.schema([whole.field(name) for name in columns]))
    for file in files_of(lake, where):
        yield from stream_file(location, file, wanted, _BATCH_ROWS, whole=whole)


def take_from_slice(
    lake: Lake,
    where: Slice,
    by: Sequence[str],
    is_wanted: Callable[[pa.RecordBatch], NDArray[np.bool_]],
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Read the rows of a slice that are wanted, in no order, in memory bounded by what they take.

    Parameters
    ----------
    by, is_wanted : see :func:`epsjoin.lake.parquet.take_where`.
    columns : names of the columns to return; ``None``: all of them.
    """
    whole, location = lake.schema(where.table), lake.location(where.table)
    names = whole.names if columns is None else columns
    return take_where(location, files_of(lake, where), whole, by, is_wanted, names, _BATCH_ROWS)


def read_as_now(lake: Lake, where: Slice, columns: Sequence[str]) -> pa.Table:
    """Read some columns of a slice that an earlier contract may have given other types."""
    whole, location = lake.schema(where.table), lake.location(where.table)
    wanted = as_read(pa.schema([whole.field(name) for name in columns]))
    files = files_of(lake, where)
    rows = (batch for file in files for batch in stream_as_now(location, file, wanted, _BATCH_ROWS, whole))
    return pa.Table.from_batches(rows, wanted)


def read_runs(lake: Lake, table: str, runs: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Read some columns of several runs' slices; a run that has none adds no row.

    Whether the slices belong to other tables is not checked: see :func:`files_of`.
    """
    by_run, schema = _look(lake, table).by_run, lake.schema(table)
    rows = [as_read(pa.schema([schema.field(name) for name in columns])).empty_table()]
    for run in runs:
        for action in by_run.get(run, ()):
            path, n = unquote(action["path"]), _count_rows_of_file(lake, table, action)
            file = File(table, path, action["size_bytes"], n, {"run": run}, chain=lake.source.chain)
            rows.append(read_file(lake.location(table), file, schema, columns))
    return pa.concat_tables(rows)


def read_row(lake: Lake, where: Slice, columns: Sequence[str] | None = None) -> dict[str, Any]:
    """Read a slice that has exactly one row, or some of its columns.

    Raises
    ------
    UnfitTableError
        There is no such slice, it has another fingerprint, or it does not have one row.
    """
    rows = read_slice(lake, where, columns).to_pylist()
    if len(rows) != 1:
        raise UnfitTableError(
            f"{where.table} has {len(rows)} rows for run {where.run}, not one; "
            f"{run_again(where.table, lake.source.chain)}"
        )
    return dict(rows[0])


def list_runs_before(lake: Lake, run: str) -> list[str]:
    """List the runs with an earlier date whose points are in the lake now, the latest last.

    Notes
    -----
    Read from the log of ``points`` alone. A run that is filled in later is missing from lists made before it.
    """
    return [other for other in count_rows_by_run(lake, "points") if other < run]


def read_counters(lake: Lake, run: str) -> Counters:
    """Read what the jobs of a run counted; empty if none has stored any."""
    counters: Counters = {}
    with suppress(MissingSliceError):
        for row in read_slice(lake, Slice("job_metrics", run)).to_pylist():
            counters.setdefault(row["job"], {})[row["counter"]] = row["value"]
    return counters


def counters_written(lake: Lake, run: str) -> dict[str, int]:
    """When each job of a run stored what it counted, in milliseconds since 1970 by its driver's clock."""
    written: dict[str, int] = {}
    for action in _look(lake, "job_metrics").by_run.get(run, ()):
        job = str(action[f"{_PARTITION}job"])
        written[job] = max(action["modification_time"], written.get(job, 0))
    return written


def write_counters(lake: Lake, run: str, job: str, counters: Mapping[str, float]) -> None:
    """Replace what a job of a run counted.

    Raises
    ------
    EpsjoinError
        See :func:`write_slice`.
    """
    rows = [{"job": job, "counter": each, "value": float(value)} for each, value in sorted(counters.items())]
    where = Slice("job_metrics", run, also=(("job", job),))
    write_slice(lake, where, table_of(lake, "job_metrics", rows))


def read_quality(lake: Lake, run: str) -> list[dict[str, Any]]:
    """Read what the gates found, ordered by table and expectation; empty if the run has passed no gate."""
    with suppress(MissingSliceError):
        rows = read_slice(lake, Slice("quality", run)).drop_columns(["run"])
        ordered = rows.sort_by([("table", "ascending"), ("expectation", "ascending")])
        return list(ordered.to_pylist())
    return []
