"""How a table is stored: every Delta read, write and commit goes through this file, and nobody else knows.

Rows go around the JVM. A task writes Parquet files into the table's folder with pyarrow and returns a few
facts about each; the driver commits them to the Delta log in one transaction that replaces the run's slice.
Files of failed or speculative attempts are never committed, so they are in no table.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from epsjoin.contract import SourceContract, TableContract, load_table
from epsjoin.errors import ArgumentError, TableError

ARROW_TYPES = {
    "string": pa.string(),
    "long": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
POINT_TABLES = ("points", "replicas")
"""Tables of coordinates: they hardly compress, so their files are written without trying."""


@dataclass(frozen=True)
class Lake:
    """Where the tables of one data set lie.

    Parameters
    ----------
    uri : folder of all data sets, as a URI (file, s3a, hdfs, ...).
    contracts : folder of the contracts.
    source : the data set's own contract.
    """

    uri: str
    contracts: Path
    source: SourceContract

    def location(self, table: str) -> str:
        """URI of a table's folder."""
        return f"{self.uri.rstrip('/')}/{self.source.name}/{table}"

    def contract(self, table: str) -> TableContract:
        """Contract of a table."""
        return load_table(self.contracts, table, self.source)

    def schema(self, table: str) -> pa.Schema:
        """Arrow schema of a table, as its contract has it."""
        return pa.schema(
            [
                pa.field(column.name, ARROW_TYPES[column.type], nullable=not column.required)
                for column in self.contract(table).columns
            ]
        )


def lake_uri(text: str) -> str:
    """A lake's URI from what a person typed: a URI, or an absolute path.

    Raises
    ------
    ArgumentError
        A relative path: its meaning would depend on the folder that a job was started in. A file URI with
        a host, which is what ``file://lake`` means.
    """
    if "://" in text:
        if text.startswith("file:") and urlsplit(text).netloc not in ("", "localhost"):
            raise ArgumentError(f"--lake: a file URI has three slashes, file:///..., not {text!r}")
        return text
    if not text.startswith("/"):
        raise ArgumentError(
            f"--lake must be a URI (file:///..., s3a://...) or an absolute path, not {text!r}"
        )
    return Path(text).as_uri()


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


FEW_FILES = 1000
"""So many files Spark is given by name; it would list more of them by a job of its own."""


@dataclass(frozen=True)
class Target:
    """A table's slice that tasks write into; small, and pickled to every task."""

    table: str
    location: str
    schema: pa.Schema
    partitioned: tuple[str, ...]
    run: str
    stamp: str = ""

    def write(self, batches: Iterable[pa.RecordBatch | pa.Table], **partition: object) -> File | None:
        """Write batches (without the partition columns) to one new file; nothing if they have no row.

        The name is random: a retried task must not write over a file that another attempt has committed.

        Raises
        ------
        TableError
            A batch does not match the table's contract: a column missing, of another type, or null.
        """
        values = {"run": self.run, **{name: str(value) for name, value in partition.items()}}
        folder = "/".join(f"{name}={values[name]}" for name in self.partitioned)
        path = f"{folder}/{self.new_name()}"
        filesystem, root = filesystem_of(self.location)
        inner = pa.schema([column for column in self.schema if column.name not in self.partitioned])
        writer: pq.ParquetWriter | None = None
        rows = 0
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if writer is None:
                filesystem.create_dir(f"{root}/{folder}", recursive=True)
                compression = "none" if self.table in POINT_TABLES else "zstd"
                writer = pq.ParquetWriter(
                    f"{root}/{path}",
                    inner,
                    filesystem=filesystem,
                    use_dictionary=False,
                    compression=compression,
                )
            writer.write_table(self._conform(batch, inner))
            rows += batch.num_rows
        if writer is None:
            return None
        writer.close()
        size = filesystem.get_file_info(f"{root}/{path}").size
        return File(self.table, path, size, rows, values)

    def new_name(self) -> str:
        """A file name that nobody else has; it begins with the stamp."""
        return f"{self.stamp}{uuid.uuid4().hex}.parquet"

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


def target(lake: Lake, table: str, run: str, stamp: str = "") -> Target:
    """The slice of ``table`` that ``run`` replaces; with a stamp, its files say what they were made from."""
    return Target(
        table, lake.location(table), lake.schema(table), lake.contract(table).partitioned, run, stamp
    )


def commit(lake: Lake, table: str, run: str, files: Sequence[File], stamp: str = "", **also: str) -> None:
    """Replace the run's slice by these files, in one transaction.

    A slice without rows gets one file without rows: an empty slice is a result, a missing one is an error.

    Parameters
    ----------
    also : further partition values that narrow the slice (job_metrics: the job).

    Raises
    ------
    CommitFailedError
        Somebody else changed this very slice meanwhile; nothing was changed here.
    """
    into = target(lake, table, run, stamp)
    files = [file for file in files if file.table == table]
    if not files:
        files = [_empty_file(into, also)]
    actions: list[AddAction | RemoveAction] = [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values={name: file.partition[name] for name in into.partitioned},
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": file.rows}),
        )
        for file in files
    ]
    open_or_create(lake, table).create_write_transaction(
        actions,
        mode="overwrite",
        schema=Schema.from_arrow(into.schema),
        partition_by=list(into.partitioned),
        partition_filters=[("run", "=", run), *((name, "=", value) for name, value in also.items())],
    )


def _empty_file(into: Target, also: Mapping[str, str]) -> File:
    values = {name: {"run": into.run, **also}.get(name, "0") for name in into.partitioned}
    folder = "/".join(f"{name}={value}" for name, value in values.items())
    filesystem, root = filesystem_of(into.location)
    filesystem.create_dir(f"{root}/{folder}", recursive=True)
    path = f"{folder}/{into.new_name()}"
    inner = pa.schema([column for column in into.schema if column.name not in into.partitioned])
    pq.write_table(inner.empty_table(), f"{root}/{path}", filesystem=filesystem)
    return File(into.table, path, filesystem.get_file_info(f"{root}/{path}").size, 0, values)


def write_slice(lake: Lake, table: str, run: str, rows: pa.Table, **also: str) -> None:
    """Replace the run's slice by a few rows that the driver holds."""
    written = target(lake, table, run).write(
        [rows.drop_columns([n for n in ("run", *also) if n in rows.column_names])], **also
    )
    commit(lake, table, run, [written] if written else [], **also)


def rows_of(lake: Lake, table: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows as an Arrow table of the contract's types, without the column ``run``."""
    schema = lake.schema(table)
    return pa.Table.from_pylist(
        [dict(row) for row in rows], pa.schema([c for c in schema if c.name != "run"])
    )


def open_or_create(lake: Lake, table: str) -> DeltaTable:
    """The table; made empty, with its contract's columns, if it does not exist yet."""
    location = lake.location(table)
    with suppress(TableNotFoundError):
        return DeltaTable(location)
    contract = lake.contract(table)
    with suppress(CommitFailedError):  # another run made it at the same moment
        return DeltaTable.create(
            location,
            Schema.from_arrow(lake.schema(table)),
            mode="ignore",
            partition_by=list(contract.partitioned),
            name=table,
            description=contract.description,
            # deltalake cannot read tables with deletion vectors, and a slice is replaced as a whole anyway
            configuration={"delta.enableDeletionVectors": "false"},
        )
    return DeltaTable(location)


def files_of(lake: Lake, table: str, run: str, stamp: str = "") -> list[File]:
    """The files of the run's slice, by path.

    Raises
    ------
    TableError
        The run has no slice in this table: the job that writes it has not run. Or its files bear another
        stamp: what they were made from has changed since.
    """
    location = lake.location(table)
    try:
        log = DeltaTable(location)
    except TableNotFoundError:
        log = None
    found = []
    if log is not None:
        partitioned = lake.contract(table).partitioned
        for action in pa.table(log.get_add_actions(flatten=True)).to_pylist():
            values = {name: str(action[f"partition.{name}"]) for name in partitioned}
            if values["run"] == run:
                found.append(
                    File(table, unquote(action["path"]), action["size_bytes"], action["num_records"], values)
                )
    if not found:
        raise TableError(f"{table} has no slice of run {run}; run {WRITERS[table]} for it first")
    if not all(file.path.rpartition("/")[2].startswith(stamp) for file in found):
        raise TableError(
            f"{table} of run {run} was made from other tables than these; run {WRITERS[table]} again"
        )
    return sorted(found, key=lambda file: file.path)


WRITERS = {
    "snapshots": "ingest",
    "quarantine": "ingest",
    "points": "ingest",
    "epsilon": "fit_epsilon",
    "epsilon_curve": "fit_epsilon",
    "join_plan": "replicate",
    "replicas": "replicate",
    "pairs": "merge_join",
    "clusters": "cluster",
    "outliers": "outliers",
    "job_metrics": "any job",
}
"""The job that writes each table."""


def count(lake: Lake, table: str, run: str) -> int:
    """Rows of the run's slice, from the log alone."""
    return sum(file.rows for file in files_of(lake, table, run))


def read(spark: SparkSession, lake: Lake, table: str, run: str) -> DataFrame:
    """The run's slice, by Spark's own scan.

    A few files are read by their names: Delta's own look at the log costs a small job half of its CPU
    time. Many files, and tables with more partition columns than the run, go through Delta.

    Raises
    ------
    TableError
        The run has no slice in this table.
    """
    files = files_of(lake, table, run)
    location = lake.location(table)
    if len(files) > FEW_FILES or lake.contract(table).partitioned != ("run",):
        return spark.read.format("delta").load(spark_path(location)).where(F.col("run") == run)
    names = lake.schema(table).names
    columns = spark.read.schema(ddl([c for c in lake.schema(table) if c.name != "run"]))
    rows = columns.parquet(*(f"{spark_path(location)}/{file.path}" for file in files))
    return rows.withColumn("run", F.lit(run)).select(*names)


def spark_path(uri: str) -> str:
    """A URI as Spark takes it: Hadoop does not decode the %20 of a file URI."""
    return f"file://{filesystem_of(uri)[1]}" if urlsplit(uri).scheme == "file" else uri


def ddl(columns: Iterable[pa.Field]) -> str:
    """Arrow columns as Spark writes a schema."""
    names = {arrow: name for name, arrow in ARROW_TYPES.items()}
    return ", ".join(f"`{column.name}` {names[column.type]}" for column in columns)


def read_small(lake: Lake, table: str, run: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The run's slice, read by the driver itself: for tables of a few rows, or a few columns of more."""
    wanted = (
        lake.schema(table) if columns is None else pa.schema([lake.schema(table).field(c) for c in columns])
    )
    parts = [
        read_file(lake.location(table), file, [c for c in wanted.names if c not in file.partition], wanted)
        for file in files_of(lake, table, run)
    ]
    return pa.concat_tables(parts)


def read_row(lake: Lake, table: str, run: str) -> dict[str, Any]:
    """The only row of the run's slice.

    Raises
    ------
    TableError
        There is no slice, or it was emptied by a job that did not come to its end.
    """
    rows = read_small(lake, table, run).to_pylist()
    if len(rows) != 1:
        raise TableError(f"{table} has {len(rows)} rows for run {run}, not one; run {WRITERS[table]} again")
    return dict(rows[0])


def read_file(location: str, file: File, columns: Sequence[str], schema: pa.Schema | None = None) -> pa.Table:
    """Columns of one file; with ``schema`` its partition columns are put back.

    Raises
    ------
    TableError
        The file is gone, broken, or does not hold the rows that the log says.
    """
    filesystem, root = filesystem_of(location)
    try:
        table = pq.read_table(
            f"{root}/{file.path}", columns=list(columns), filesystem=filesystem, partitioning=None
        )
    except (OSError, pa.ArrowInvalid) as error:
        raise TableError(
            f"{location}/{file.path} cannot be read ({error}); run {WRITERS[file.table]} again"
        ) from error
    if table.num_rows != file.rows:
        raise TableError(
            f"{location}/{file.path} has {table.num_rows} rows, its table's log says {file.rows}"
        )
    if schema is None:
        return table
    for name in schema.names:
        if name in file.partition:
            kind = schema.field(name).type
            value = pa.scalar(file.partition[name]).cast(kind)
            table = table.append_column(name, pa.repeat(value, table.num_rows))
    return table.select(schema.names).cast(schema)


def stream_file(
    location: str, file: File, columns: Sequence[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Columns of one file, batch by batch, in bounded memory."""
    filesystem, root = filesystem_of(location)
    try:
        with filesystem.open_input_file(f"{root}/{file.path}") as handle:
            yield from pq.ParquetFile(handle).iter_batches(batch_rows, columns=list(columns))
    except (OSError, pa.ArrowInvalid) as error:
        raise TableError(
            f"{location}/{file.path} cannot be read ({error}); run {WRITERS[file.table]} again"
        ) from error


def filesystem_of(uri: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a URI and the path in it."""
    if urlsplit(uri).scheme == "file":
        return pafs.LocalFileSystem(), unquote(urlsplit(uri).path)
    filesystem, path = pafs.FileSystem.from_uri(uri.replace("s3a://", "s3://", 1))
    return filesystem, path
