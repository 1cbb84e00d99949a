"""The Parquet files of a table, and how they are read; :mod:`epsjoin.lake.targets` writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from epsjoin.errors import TableError, UnfitTableError, remedy_of_unreadable, to_one_line
from epsjoin.lake.arrow import retype
from epsjoin.lake.phases import phase, timed
from epsjoin.lake.uris import filesystem_of
from epsjoin.pipeline import run_again

_MAX_FOOTERS_AT_ONCE = 16
"""Maximum number of footers that are read at a time, mostly waiting for the storage."""

MAX_AT_ONCE_BYTES = 16 << 20
"""Maximum size of the columns of a row group that are read at once. The memory of a larger piece goes back to
the system, which prepares new pages for the next."""


@dataclass(frozen=True)
class File:
    """One Parquet file of a table, as the Delta log describes it.

    Parameters
    ----------
    table : name of the table.
    path : path below the table's folder.
    size : size in bytes.
    rows : number of rows.
    partition : values of the partition columns, by name.
    point_bytes : bytes of a value of the column ``point``, where all have as many; 0 where it is not known.
    chain : that of the data set, which decides which job writes the table.
    """

    table: str
    path: str
    size: int
    rows: int
    partition: Mapping[str, str]
    point_bytes: int = 0
    chain: str = "join"


def read_file(location: str, file: File, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Read columns of one file.

    Parameters
    ----------
    location : URI of the table's folder.
    file : the file.
    schema : all columns of the table, with the partition columns, and with optional ones that came into the
        contract after the file was written: these are null.
    columns : names of the columns to return; None: all of them.

    Raises
    ------
    TableError
        The file is missing or broken, or its footer does not fit the log or the columns.
    """
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    with _open_checked(location, file, schema, is_whole=True) as parquet:
        with phase("read"):
            table = parquet.read([name for name in wanted.names if name not in file.partition])
        _check_rows(location, file, table.num_rows)
    return _with_columns(table, file, wanted)


def columns_of(location: str, file: File) -> pa.Schema:
    """Read which columns a file has, those of the partition left out.

    Raises
    ------
    TableError
        See :func:`read_file`.
    """
    with _open_checked(location, file, pa.schema([])) as parquet:
        return parquet.schema_arrow


def _with_columns(rows: pa.Table, file: File, columns: pa.Schema) -> pa.Table:
    """Select columns; a partition column has the value of the file, one that the file lacks is null.

    All of them may be null: an older file may have nulls where the contract requires a value by now.
    """
    found = dict(zip(rows.column_names, rows.columns, strict=True))
    for column in columns:
        if column.name in file.partition:
            value = pa.scalar(file.partition[column.name]).cast(column.type)
            found[column.name] = pa.repeat(value, rows.num_rows)
        elif column.name not in found:
            found[column.name] = pa.nulls(rows.num_rows, column.type)
    return pa.Table.from_arrays([found[column.name] for column in columns], schema=as_read(columns))


def as_read(columns: pa.Schema) -> pa.Schema:
    """Types of columns of rows that are read: each may be null, whatever its contract says by now."""
    return pa.schema([column.with_nullable(True) for column in columns])


def stream_file(
    location: str,
    file: File,
    columns: pa.Schema,
    batch_rows: int,
    piece: tuple[int, int] = (0, 1),
    whole: pa.Schema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read columns of one file batch by batch, in bounded memory.

    Parameters
    ----------
    location : URI of the table's folder.
    file : the file.
    columns : columns in the file, with their types.
    batch_rows : maximum number of rows in a batch.
    piece : number of the piece to read, and number of pieces: each has an equal share of the row groups, in
        their order, so that a piece of a file with few row groups may be empty.
    whole : all columns of the table, if ``columns`` may name optional ones that came into the contract after
        the file was written: these are null.

    Raises
    ------
    TableError
        See :func:`read_file`.
    """
    with _open_checked(location, file, whole or columns, is_whole=whole is not None) as parquet:
        present = _names_in(parquet, columns)
        number, of = piece
        groups = range(parquet.num_row_groups * number // of, parquet.num_row_groups * (number + 1) // of)
        missing = sum(_rows_of_groups(parquet)[groups.start : groups.stop])
        for rows in timed(_read_groups(parquet, groups, present, batch_rows), "read"):
            missing -= rows.num_rows
            yield from _with_columns(rows, file, columns).to_batches(batch_rows)
        if missing:
            raise ValueError(f"its row groups gave {-missing:+,} rows other than its footer says")


def as_written(location: str, file: File, columns: pa.Schema) -> pa.Schema:
    """The columns in the types that they have in a file, which another contract may have written.

    Raises
    ------
    TableError
        See :func:`read_file`.
    """
    then = {field.name: field.type for field in columns_of(location, file)}
    return pa.schema([column.with_type(then.get(column.name, column.type)) for column in columns])


def stream_as_now(
    location: str,
    file: File,
    columns: pa.Schema,
    batch_rows: int,
    whole: pa.Schema,
    piece: tuple[int, int] = (0, 1),
) -> Iterator[pa.RecordBatch]:
    """Read as :func:`stream_file` does, a file in which columns may have other types; see :func:`retype`."""
    written = as_written(location, file, whole)
    then = pa.schema([written.field(name) for name in columns.names])
    for batch in stream_file(location, file, then, batch_rows, piece, written):
        yield retype(batch, columns)


def read_first(location: str, file: File, columns: pa.Schema, n: int) -> pa.RecordBatch:
    """Read columns of the first n rows of a file that has any.

    Raises
    ------
    TableError
        See :func:`read_file`.
    """
    with _open_checked(location, file, columns) as parquet:
        return next(parquet.iter_batches(n, columns=columns.names, use_threads=False))


def _read_groups(
    parquet: pq.ParquetFile, groups: range, names: list[str], batch_rows: int
) -> Iterator[pa.Table]:
    """Read row groups one by one, and in batches those with more than ``MAX_AT_ONCE_BYTES``.

    A small row group is read at once: batch by batch, a column of bytes takes a quarter more time.
    """
    for group in groups:
        if _bytes_of_group(parquet, group, names) <= MAX_AT_ONCE_BYTES:
            yield parquet.read_row_group(group, columns=names, use_threads=False)
        else:
            for batch in parquet.iter_batches(
                batch_rows, row_groups=[group], columns=names, use_threads=False
            ):
                yield pa.Table.from_batches([batch])


def _bytes_of_group(parquet: pq.ParquetFile, group: int, names: Sequence[str]) -> int:
    """Bytes of some columns of a row group in memory, or little less.

    A number has the same width whatever it takes in the file, where numbers may be packed.
    """
    of_group, wanted = parquet.metadata.row_group(group), set(names)
    n_bytes = 0
    for chunk in map(of_group.column, range(of_group.num_columns)):
        path = chunk.path_in_schema  # of a nested column "name.list.element"
        if path in wanted or path.partition(".")[0] in wanted:
            n_bytes += max(chunk.total_uncompressed_size, 8 * chunk.num_values)
    return n_bytes


def check_footers(location: str, files: Sequence[File], columns: pa.Schema) -> None:
    """Check the footers of files that Spark's own scan will read: it would take a broken one at its word.

    Parameters
    ----------
    columns : all columns of the table but its partition columns.

    Raises
    ------
    TableError
        See :func:`read_file`.
    """

    def check(file: File) -> None:
        with _open_checked(location, file, columns, is_whole=True):
            pass

    with ThreadPoolExecutor(_MAX_FOOTERS_AT_ONCE) as pool:
        list(pool.map(check, files))


class _OtherColumnsError(Exception):
    """A file lacks a column: it was written by another contract, or a bit of its footer is wrong."""


@contextmanager
def _open_checked(
    location: str, file: File, columns: pa.Schema, *, is_whole: bool = False
) -> Iterator[pq.ParquetFile]:
    """Open a file whose footer must fit the log and the columns; errors of reading it become TableErrors.

    Pages have checksums, footers have none. With one wrong bit in its footer, a file may still be readable,
    but with other names or types of columns, or with fewer rows.

    Parameters
    ----------
    is_whole : whether ``columns`` are all columns of the table; then a file that has no others may lack
        optional ones, as they came into the contract after it was written.
    """
    filesystem, root = filesystem_of(location)
    with _translate_read_errors(location, file), filesystem.open_input_file(f"{root}/{file.path}") as handle:
        with phase("read"):
            parquet = pq.ParquetFile(handle, page_checksum_verification=True)
        found = parquet.schema_arrow
        names, kinds = set(found.names), set(zip(found.names, found.types, strict=True))
        inner = [column for column in columns if column.name not in file.partition]
        is_older = is_whole and names < {column.name for column in inner}
        for column in inner:
            may_lack = is_older and column.nullable and column.name not in names
            if not may_lack and (column.name, column.type) not in kinds:
                raise _OtherColumnsError(f"it has no column {column.name} of type {column.type}")
        _check_rows(location, file, parquet.metadata.num_rows)
        _check_rows(location, file, sum(_rows_of_groups(parquet)))
        yield parquet


def _names_in(parquet: pq.ParquetFile, columns: pa.Schema) -> list[str]:
    """Names of those of the columns that a file has."""
    found = set(parquet.schema_arrow.names)
    return [name for name in columns.names if name in found]


def _rows_of_groups(parquet: pq.ParquetFile) -> list[int]:
    return [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]


@contextmanager
def _translate_read_errors(location: str, file: File) -> Iterator[None]:
    """Turn any error while a file is read into a TableError: for broken bytes pyarrow raises many kinds."""
    try:
        yield
    except TableError:
        raise
    except _OtherColumnsError as error:
        message = explain_unreadable(file.table, f"{location}/{file.path}", str(error), error, file.chain)
        of_run = f" for run {file.partition['run']}" if "run" in file.partition else ""
        raise UnfitTableError(
            f"{message}{of_run}, or have the contract call its columns what it called them then"
        ) from error
    except Exception as error:
        why = "the file is gone" if isinstance(error, FileNotFoundError) else to_one_line(error)
        raise TableError(
            explain_unreadable(file.table, f"{location}/{file.path}", why, error, file.chain)
        ) from error


def explain_unreadable(table: str, path: str, why: str, error: Exception | str, chain: str = "join") -> str:
    """Return the message about a file that cannot be read: the table, the file, why, and what to do."""
    remedy = remedy_of_unreadable(error, run_again(table, chain))
    return f"{table}: {path} cannot be read ({why}); {remedy}"


def _check_rows(location: str, file: File, rows: int) -> None:
    if rows != file.rows:
        raise TableError(
            f"{file.table}: {location}/{file.path} has {rows:,} rows, its table's log says {file.rows:,}; "
            f"{run_again(file.table, file.chain)}"
        )


def take_rows(
    location: str,
    file: File,
    columns: pa.Schema,
    rows: NDArray[np.int64],
    whole: pa.Schema | None = None,
    batch_rows: int = 1 << 16,
) -> pa.Table:
    """Read some rows of one file: only the row groups that hold them, one at a time.

    Parameters
    ----------
    location, file, columns, whole, batch_rows : see :func:`stream_file`.
    rows : ascending numbers of rows in the file; the first row has number 0.

    Raises
    ------
    TableError
        See :func:`read_file`.
    """
    with _open_checked(location, file, whole or columns, is_whole=whole is not None) as parquet:
        present = _names_in(parquet, columns)
        begins = np.concatenate(([0], np.cumsum(_rows_of_groups(parquet), dtype=np.int64)))
        group = np.searchsorted(begins, rows, "right") - 1
        taken = []
        for i in np.unique(group).tolist():
            begin = begins[i]
            for piece in _read_groups(parquet, range(i, i + 1), present, batch_rows):
                end = begin + piece.num_rows
                taken.append(piece.take(rows[(begin <= rows) & (rows < end)] - begin))
                begin = end
        found = pa.concat_tables(taken or [parquet.schema_arrow.empty_table().select(present)])
        return _with_columns(found, file, columns)


def take_where(
    location: str,
    files: Sequence[File],
    whole: pa.Schema,
    by: Sequence[str],
    is_wanted: Callable[[pa.RecordBatch], NDArray[np.bool_]],
    names: Sequence[str],
    batch_rows: int,
) -> pa.Table:
    """Take the rows that are wanted: columns besides ``by`` are read only of row groups that have such rows.

    Parameters
    ----------
    location : URI of the table's folder.
    files : the files.
    whole : all columns of the table.
    by : names of the columns that decide.
    is_wanted : tells for each row of a batch of them whether it is taken.
    names : names of the columns to return.
    batch_rows : maximum number of rows in a batch.

    Raises
    ------
    TableError
        See :func:`read_file`.
    """
    deciding, taken = (as_read(pa.schema([whole.field(name) for name in some])) for some in (by, names))
    found = [taken.empty_table()]
    for file in files:
        places, begin = [], 0
        for batch in stream_file(location, file, deciding, batch_rows, whole=whole):
            places.append(begin + np.flatnonzero(is_wanted(batch)))
            begin += batch.num_rows
        rows = np.concatenate(places) if places else np.empty(0, np.int64)
        if rows.size:
            found.append(take_rows(location, file, taken, rows, whole, batch_rows))
    return pa.concat_tables(found)
