"""Targets: the slices of tables for which tasks write Parquet files, before a commit takes these in."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from epsjoin.contracts.conditions import Values
from epsjoin.contracts.row_rules import Constraint, constraints_of
from epsjoin.errors import TableError, to_one_line
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File
from epsjoin.lake.phases import phase
from epsjoin.lake.uris import filesystem_of
from epsjoin.pipeline import run_again

UNCOMPRESSED = ("points", "replicas", "digests")
"""Tables whose files are not compressed: coordinates hardly become smaller, digests not at all."""

ROW_GROUP_BYTES = 16 << 20
"""Minimum size of a row group in bytes; until then a task holds the rows in memory."""

_CLOSE = 1 << 32
"""Difference of whole numbers from which they are not packed: each would take more than half of its bytes."""
_TRIED_ROWS, _MIN_SAVED_FRACTION = 1 << 13, 0.125
"""Number of values with which a codec is tried; fraction by which it must make them smaller."""

_OURS = re.compile(r"_delta_log|scratch-[0-9a-f]{32}|([0-9a-f]{16}-)?[0-9]{6}-[0-9]{8}-[0-9a-f]{32}\.parquet")
"""Names of what is in a table's folder."""

_NUMBERS = itertools.count()
"""Numbers of the files that this process has written, so that names rise."""


@dataclass(frozen=True)
class Target:
    """The slice of a table that tasks write files for; a small value that is pickled to every task.

    Parameters
    ----------
    table : name of the table.
    location : URI of the table's folder.
    schema : all columns, in the order of the contract.
    partitioned : names of the partition columns; they stand in the path of a file, not in the file.
    partition : values of the partition columns that all files of the slice share.
    fingerprint : what the names of the files begin with.
    constraints : the conditions that every row must satisfy.
    compression : the codec of the files' pages.
    chain : that of the data set, which decides which job writes the table.
    writer : random word in the names of all its files, which tells them from those of other runs.
    """

    table: str
    location: str
    schema: pa.Schema
    partitioned: tuple[str, ...]
    partition: Mapping[str, str]
    fingerprint: str = ""
    constraints: tuple[Constraint, ...] = ()
    compression: str = "zstd"
    chain: str = "join"
    writer: str = field(default_factory=lambda: uuid.uuid4().hex[:16], compare=False)

    def write(
        self, batches: Iterable[pa.RecordBatch | pa.Table], *, task: int = 0, **partition: object
    ) -> File | None:
        """Write batches to one new file, which belongs to no table before it is committed.

        The end of its name is random, so that a retried task never overwrites a file that another attempt has
        committed. Pages have checksums, so that readers detect a changed byte.

        Parameters
        ----------
        batches : rows without the partition columns.
        task : number of the Spark task, for the name of the file; 0 on the driver.
        partition : values of the partition columns that the slice leaves open.

        Returns
        -------
        File | None
            The file; None where the batches have no row.

        Raises
        ------
        TableError
            A batch does not match the table's contract: a column is missing, of another type, or null, or a
            row breaks a constraint. Or the file cannot be written, for example because the disk is full.
        """
        values = {**self.partition, **{name: str(value) for name, value in partition.items()}}
        folder = "".join(f"{name}={values[name]}/" for name in self.partitioned)
        path, inner = f"{folder}{self.new_name(task)}", self.inner_schema
        filesystem, root = filesystem_of(self.location)
        place = f"{self.location}/{path}"
        writer: pq.ParquetWriter | None = None
        rows = 0
        try:
            for group in _group_rows(self._conform(batch, inner) for batch in batches if batch.num_rows):
                self._check(group, values)
                with translate_write_errors(self.table, place, self.chain), phase("write"):
                    if writer is None:
                        filesystem.create_dir(f"{root}/{folder}", recursive=True)
                        encodings, codecs = self._encode(group)
                        writer = pq.ParquetWriter(
                            f"{root}/{path}",
                            inner,
                            filesystem=filesystem,
                            use_dictionary=False,
                            column_encoding=encodings,
                            compression=codecs,
                            write_page_checksum=True,
                        )
                    writer.write_table(group)
                rows += group.num_rows
            if writer is None:
                return None
            with translate_write_errors(self.table, place, self.chain), phase("write"):
                writer.close()
                size = filesystem.get_file_info(f"{root}/{path}").size
        except BaseException:
            if writer is not None:
                with suppress(OSError, pa.ArrowException):
                    writer.close()  # an object's upload would end whenever the writer is freed
                delete_files(self, [path])
            raise
        return File(self.table, path, size, rows, values)

    @property
    def inner_schema(self) -> pa.Schema:
        """The columns in the files: all but the partition columns."""
        return pa.schema([column for column in self.schema if column.name not in self.partitioned])

    def new_name(self, task: int) -> str:
        """Return a unique file name: fingerprint, number of the task, of the file, the writer, random end.

        Readers take files of equal size in the order of their names, which is therefore the same whenever a
        job runs again.
        """
        return (
            f"{self.fingerprint}{task:06d}-{next(_NUMBERS):08d}-{self.writer}{uuid.uuid4().hex[:16]}.parquet"
        )

    def _encode(self, first: pa.Table) -> tuple[dict[str, str], dict[str, str]]:
        """Choose by the first row group how each column is encoded, and the codec of its pages.

        Whole numbers that are close together are packed: they become as small as by a codec, and are read in
        a third of the time. Hashes are not. Numbers that the codec hardly makes smaller, like most distances,
        stay as they are.
        """
        encodings: dict[str, str] = {}
        codecs = dict.fromkeys(first.column_names, self.compression)
        for name, column in zip(first.column_names, first.columns, strict=True):
            if self.compression == "none":
                continue
            if pa.types.is_int64(column.type) and _are_close(column):
                encodings[name], codecs[name] = "DELTA_BINARY_PACKED", "none"
            elif pa.types.is_float64(column.type) and not _compresses(column, self.compression):
                codecs[name] = "none"
        return encodings, codecs

    def _conform(self, batch: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.Table:
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        if set(table.column_names) != set(schema.names):
            raise TableError(
                f"{self.table}: columns {table.column_names} where the contract has {schema.names}"
            )
        for column in schema:
            if not column.nullable and table[column.name].null_count:
                raise TableError(
                    f"{self.table}: {column.name} is null in a row; the contract requires a value"
                )
        try:
            return table.select(schema.names).cast(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise TableError(f"{self.table}: a column is not of its contract's type: {error}") from error

    def _check(self, rows: pa.Table, partition: Mapping[str, str]) -> None:
        def column(name: str) -> Values:
            if name in rows.column_names:
                return rows[name]
            return pa.scalar(partition[name]).cast(self.schema.field(name).type)

        for constraint in self.constraints:
            row = constraint.first_breach(column)
            if row is not None:
                of_row = {**partition, **rows.slice(row, 1).to_pylist()[0]}
                shown = ", ".join(f"{name} {of_row[name]!r}" for name in sorted(constraint.columns))
                raise TableError(
                    f"{self.table}: {constraint.words} does not hold in a row ({shown}); "
                    "the contract has it, so nothing was written"
                )


def _are_close(column: pa.ChunkedArray) -> bool:
    ends = pc.min_max(column)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is None or high - low < _CLOSE


def _compresses(column: pa.ChunkedArray, codec: str) -> bool:
    """Whether the first values of a column become smaller by ``_MIN_SAVED_FRACTION``."""
    values = np.asarray(column.slice(0, _TRIED_ROWS)).tobytes()
    return len(pa.compress(values, codec, asbytes=True)) <= (1 - _MIN_SAVED_FRACTION) * len(values)


def _group_rows(batches: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Combine batches into row groups: many small row groups are slow to read and compress badly."""
    held: list[pa.Table] = []
    held_bytes = 0
    for batch in batches:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes >= ROW_GROUP_BYTES:
            yield pa.concat_tables(held)
            held, held_bytes = [], 0
    if held:
        yield pa.concat_tables(held)


def target_of(lake: Lake, where: Slice) -> Target:
    """Return what tasks need to write files of a slice."""
    contract = lake.contract(where.table)
    return Target(
        where.table,
        lake.location(where.table),
        lake.schema(where.table),
        contract.partitioned,
        where.partition,
        where.fingerprint,
        constraints_of(contract),
        "none" if where.table in UNCOMPRESSED else "zstd",
        lake.source.chain,
    )


@contextmanager
def translate_write_errors(table: str, place: str, chain: str = "join") -> Iterator[None]:
    """Turn an error of the file system while a file or log is written into a TableError.

    Parameters
    ----------
    chain : that of the data set, see :class:`Target`.
    """
    try:
        yield
    except OSError as error:
        raise TableError(
            f"{place} cannot be written ({to_one_line(error)}); the table is as it was; "
            f"make room or mend what is wrong, then {run_again(table, chain)}"
        ) from error


@contextmanager
def scratch_folder(into: Target, schema: pa.Schema, *partitioned: str) -> Iterator[Target]:
    """Make a temporary folder below the table's for files that no log will name, and delete it at the end.

    Files remain where they cannot be deleted, where a task writes on after its job has failed, and where the
    process is killed. They belong to no table, and VACUUM removes them.

    Parameters
    ----------
    into : the table.
    schema : columns of the temporary files.
    partitioned : names of their partition columns.
    """
    location = f"{into.location}/scratch-{uuid.uuid4().hex}"
    filesystem, root = filesystem_of(location)
    with translate_write_errors(into.table, location, into.chain):
        filesystem.create_dir(root, recursive=True)
    try:
        yield Target(
            into.table, location, schema, partitioned, into.partition, compression="none", chain=into.chain
        )
    finally:
        with suppress(OSError):
            filesystem.delete_dir(root)


def find_strange(into: Target) -> str:
    """Find a file or folder in a target's folder that no table of ours has; empty if there is none.

    A process that was killed before a table's first commit leaves files and folders of names that are known.
    """
    filesystem, root = filesystem_of(into.location)
    found = filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True))
    names = sorted(info.base_name for info in found if not info.base_name.startswith("."))
    return next((name for name in names if not _OURS.fullmatch(name)), "")


def delete_files(into: Target, paths: Iterable[str]) -> None:
    """Delete files that no commit has added; one that cannot be deleted belongs to no table anyway."""
    filesystem, root = filesystem_of(into.location)
    for path in paths:
        with suppress(OSError):
            filesystem.delete_file(f"{root}/{path}")


@contextmanager
def deleted_on_error(*targets: Target, committed: Collection[str] = ()) -> Iterator[None]:
    """Delete what was written for these targets, if there is an error or an interrupt within.

    The files are found by their names, so that even those are deleted that no task could report, because it
    was ended while it wrote, or failed and was tried again.

    Parameters
    ----------
    targets : where tasks, or the driver, write within.
    committed : paths of files that stay; whoever commits within adds its own before the commit.
    """
    try:
        yield
    except BaseException:
        for into in targets:
            delete_files(into, set(_paths_of(into)).difference(committed))
        raise


def _paths_of(into: Target) -> Iterator[str]:
    """Find all files that were written for a target, below the folder that they share."""
    filesystem, root = filesystem_of(into.location)
    shared = itertools.takewhile(into.partition.__contains__, into.partitioned)
    folder = "".join(f"/{name}={into.partition[name]}" for name in shared)
    with suppress(OSError):
        where = pafs.FileSelector(root + folder, allow_not_found=True, recursive=True)
        for found in filesystem.get_file_info(where):
            if into.writer in found.base_name:
                yield found.path.removeprefix(f"{root}/")


def write_empty_file(into: Target) -> File:
    """Write a file without rows, for an empty slice: it is a result, where a missing slice is an error.

    Raises
    ------
    TableError
        It cannot be written.
    """
    values = {name: into.partition.get(name, "0") for name in into.partitioned}
    folder = "".join(f"{name}={value}/" for name, value in values.items())
    filesystem, root = filesystem_of(into.location)
    path = f"{folder}{into.new_name(0)}"
    try:
        with translate_write_errors(into.table, f"{into.location}/{path}", into.chain):
            filesystem.create_dir(f"{root}/{folder}", recursive=True)
            pq.write_table(into.inner_schema.empty_table(), f"{root}/{path}", filesystem=filesystem)
            size = filesystem.get_file_info(f"{root}/{path}").size
    except BaseException:
        delete_files(into, [path])
        raise
    return File(into.table, path, size, 0, values)
