"""Parquet files of a table: written and read by whoever holds the rows, not in any log yet."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from epsjoin.contracts.row_rules import Constraint, Values, constraints_of
from epsjoin.errors import TableError
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.uris import filesystem_of
from epsjoin.pipeline import writer_of

POINT_TABLES = ("points", "replicas")
"""Tables of coordinates: they hardly compress, so their files are written without trying."""

ROW_GROUP_BYTES = 16 << 20
"""A row group is written when it holds so many bytes; until then a task keeps them."""

_NAMES = itertools.count()


@dataclass(frozen=True)
class File:
    """One Parquet file of a table: what the log knows of it.

    Parameters
    ----------
    table : name of the table.
    path : below the table's folder.
    size : bytes.
    rows : rows in it.
    partition : values of the partition columns.
    """

    table: str
    path: str
    size: int
    rows: int
    partition: Mapping[str, str]


@dataclass(frozen=True)
class Target:
    """A table's slice that tasks write into; small, and pickled to every task."""

    table: str
    location: str
    schema: pa.Schema
    partitioned: tuple[str, ...]
    partition: Mapping[str, str]
    fingerprint: str = ""
    constraints: tuple[Constraint, ...] = ()
    compression: str = "zstd"

    def write(
        self, batches: Iterable[pa.RecordBatch | pa.Table], *, task: int = 0, **partition: object
    ) -> File | None:
        """Write batches (without the partition columns) to one new file; nothing if they have no row.

        The name ends at random: a retried task must not write over a file that another attempt has committed.

        Its pages bear checksums: a changed byte in an uncompressed page would be just another number.

        Raises
        ------
        TableError
            A batch does not match the table's contract: a column missing, of another type, or null, or a row
            that breaks a constraint. Or the file cannot be written, because the disk is full, for one.
        """
        values = {**self.partition, **{name: str(value) for name, value in partition.items()}}
        folder = "".join(f"{name}={values[name]}/" for name in self.partitioned)
        path = f"{folder}{self.new_name(task)}"
        filesystem, root = filesystem_of(self.location)
        inner = pa.schema([column for column in self.schema if column.name not in self.partitioned])
        place = f"{self.location}/{path}"
        writer: pq.ParquetWriter | None = None
        rows = 0
        for group in _row_groups(self._conform(batch, inner) for batch in batches if batch.num_rows):
            self._check(group, values)
            with writing(self.table, place):
                if writer is None:
                    filesystem.create_dir(f"{root}/{folder}", recursive=True)
                    writer = pq.ParquetWriter(
                        f"{root}/{path}",
                        inner,
                        filesystem=filesystem,
                        use_dictionary=False,
                        compression=self.compression,
                        write_page_checksum=True,
                    )
                writer.write_table(group)
            rows += group.num_rows
        if writer is None:
            return None
        with writing(self.table, place):
            writer.close()
            size = filesystem.get_file_info(f"{root}/{path}").size
        return File(self.table, path, size, rows, values)

    def new_name(self, task: int) -> str:
        """A file name that nobody else has: fingerprint, number of the task, a number that rises in a task.

        Files of equal size are read in the order of their names, which is the same when a job runs again.
        """
        return f"{self.fingerprint}{task:06d}-{next(_NAMES):08d}-{uuid.uuid4().hex}.parquet"

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


def _row_groups(batches: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Batches brought together: a small row group costs as much as a large one, and compresses worse."""
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


def target(lake: Lake, where: Slice) -> Target:
    """The slice as tasks write it; the names of its files begin with the slice's fingerprint."""
    contract = lake.contract(where.table)
    return Target(
        where.table,
        lake.location(where.table),
        lake.schema(where.table),
        contract.partitioned,
        where.partition,
        where.fingerprint,
        constraints_of(contract),
        "none" if where.table in POINT_TABLES else "zstd",
    )


@contextmanager
def writing(table: str, place: str) -> Iterator[None]:
    """What the system says of a file or log that cannot be written becomes the table's error."""
    try:
        yield
    except OSError as error:
        raise TableError(
            f"{table}: {place} cannot be written ({in_one_line(error)}); the table is as it was; "
            f"make room or mend what is wrong, then run {writer_of(table)} again"
        ) from error


def in_one_line(error: Exception) -> str:
    """An error's text without the colours, arrows and advice of the libraries below."""
    lines = [re.sub(r"\x1b\[\d*m|↳", "", line).strip(" .") for line in str(error).splitlines()]
    return ": ".join(line for line in lines if line and not line.startswith("Help:"))


@contextmanager
def scratch(into: Target, schema: pa.Schema, *partitioned: str) -> Iterator[Target]:
    """A folder below the table's for files of other columns that no log names; deleted at the end.

    What cannot be deleted, or is written by a task that goes on after its job has failed, is in no table and
    stays until all files without a log's entry are vacuumed; so it is where the process was killed.
    """
    location = f"{into.location}/scratch-{uuid.uuid4().hex}"
    filesystem, root = filesystem_of(location)
    with writing(into.table, location):
        filesystem.create_dir(root, recursive=True)
    try:
        yield Target(into.table, location, schema, partitioned, into.partition, compression="none")
    finally:
        with suppress(OSError):
            filesystem.delete_dir(root)


def forget_files(into: Target, files: Iterable[File]) -> None:
    """Delete files that will not be committed; what cannot be deleted is in no table all the same."""
    filesystem, root = filesystem_of(into.location)
    for file in files:
        with suppress(OSError):
            filesystem.delete_file(f"{root}/{file.path}")


def write_empty_file(into: Target) -> File:
    """Write a file without rows: an empty slice is a result, a missing one is an error."""
    values = {name: into.partition.get(name, "0") for name in into.partitioned}
    folder = "".join(f"{name}={value}/" for name, value in values.items())
    filesystem, root = filesystem_of(into.location)
    filesystem.create_dir(f"{root}/{folder}", recursive=True)
    path = f"{folder}{into.new_name(0)}"
    inner = pa.schema([column for column in into.schema if column.name not in into.partitioned])
    pq.write_table(inner.empty_table(), f"{root}/{path}", filesystem=filesystem)
    return File(into.table, path, filesystem.get_file_info(f"{root}/{path}").size, 0, values)


def read_file(location: str, file: File, columns: Sequence[str], schema: pa.Schema | None = None) -> pa.Table:
    """Columns of one file; with ``schema`` its partition columns are put back.

    Raises
    ------
    TableError
        The file is gone, broken, or does not hold the rows that the log says.
    """
    filesystem, root = filesystem_of(location)
    with _reading(location, file):
        table = pq.read_table(
            f"{root}/{file.path}",
            columns=list(columns),
            filesystem=filesystem,
            partitioning=None,
            page_checksum_verification=True,
        )
    _check_rows(location, file, table.num_rows)
    if schema is None:
        return table
    for name in schema.names:
        if name in file.partition:
            kind = schema.field(name).type
            value = pa.scalar(file.partition[name]).cast(kind)
            table = table.append_column(name, pa.repeat(value, table.num_rows))
    return table.select(schema.names).cast(schema)


def stream_file(
    location: str, file: File, columns: Sequence[str], batch_rows: int, piece: tuple[int, int] = (0, 1)
) -> Iterator[pa.RecordBatch]:
    """Columns of one file, batch by batch, in bounded memory.

    Parameters
    ----------
    piece : which of how many: the row groups are dealt out in their order, so a piece may have none.

    Raises
    ------
    TableError
        As ``read_file``.
    """
    filesystem, root = filesystem_of(location)
    with _reading(location, file), filesystem.open_input_file(f"{root}/{file.path}") as handle:
        parquet = pq.ParquetFile(handle, page_checksum_verification=True)
        _check_rows(location, file, parquet.metadata.num_rows)
        number, of = piece
        groups = range(parquet.num_row_groups * number // of, parquet.num_row_groups * (number + 1) // of)
        yield from parquet.iter_batches(batch_rows, row_groups=list(groups), columns=list(columns))


@contextmanager
def _reading(location: str, file: File) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        why = "the file is gone" if isinstance(error, FileNotFoundError) else in_one_line(error)
        raise TableError(unreadable(file.table, f"{location}/{file.path}", why)) from error


def unreadable(table: str, path: str, why: str) -> str:
    """The sentence about a file that cannot be read, with the job that writes it anew."""
    return f"{table}: {path} cannot be read ({why}); run {writer_of(table)} again"


def _check_rows(location: str, file: File, rows: int) -> None:
    if rows != file.rows:
        raise TableError(
            f"{file.table}: {location}/{file.path} has {rows} rows, its table's log says {file.rows}; "
            f"run {writer_of(file.table)} again"
        )


def take_rows(location: str, file: File, columns: Sequence[str], rows: NDArray[np.int64]) -> pa.Table:
    """Some rows of one file: only the row groups that hold them are read, one at a time.

    Parameters
    ----------
    rows : rising numbers of rows in the file, 0 the first.

    Raises
    ------
    TableError
        The file is gone, broken, or has another number of rows.
    """
    filesystem, root = filesystem_of(location)
    with _reading(location, file), filesystem.open_input_file(f"{root}/{file.path}") as handle:
        parquet = pq.ParquetFile(handle, page_checksum_verification=True)
        _check_rows(location, file, parquet.metadata.num_rows)
        sizes = [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]
        begins = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        group = np.searchsorted(begins, rows, "right") - 1
        taken = [
            parquet.read_row_group(i, columns=list(columns)).take(rows[group == i] - begins[i])
            for i in np.unique(group)
        ]
        return pa.concat_tables(taken or [parquet.schema_arrow.empty_table().select(list(columns))])
