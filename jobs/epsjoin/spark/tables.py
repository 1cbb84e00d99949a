"""How a table is stored: every Delta read, write and commit goes through this file, and nobody else knows.

Rows go around the JVM. A task writes Parquet files into the table's folder with pyarrow and returns a few
facts about each; the driver commits them to the Delta log in one transaction that replaces the run's slice.
Files of failed or speculative attempts are never committed, so they are in no table.
"""

from __future__ import annotations

import itertools
import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from epsjoin.constraints import OURS, Constraint, Values, constraints_of
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
Library = Literal["spark", "pyarrow", "deltalake"]
POINT_TABLES = ("points", "replicas")
"""Tables of coordinates: they hardly compress, so their files are written without trying."""

ROW_GROUP_BYTES = 16 << 20
"""A row group is written when it holds so many bytes; until then a task keeps them."""

_NAMES = itertools.count()

MOST_TRIES = 20
"""To set a table's constraints, where each time another job was faster."""

_CHECK = "delta.constraints."


@dataclass(frozen=True)
class Lake:
    """Where the tables of one data set lie.

    Parameters
    ----------
    uri : folder of all data sets, as a URI (file, s3a, hdfs, ...).
    contracts : folder of the contracts.
    source : the data set's own contract.
    versions : of a table, the version that a commit to it must follow; what is not named follows the newest.
    """

    uri: str
    contracts: Path
    source: SourceContract
    versions: Mapping[str, int] = field(default_factory=dict)

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

    def checks(self, table: str) -> dict[str, str]:
        """What the table's Delta log says of every row, by name."""
        constraints = constraints_of(self.contract(table))
        return {each.name: each.check for each in constraints if each.is_for_delta}


def lake_uri(text: str, argument: str = "--lake") -> str:
    """A folder's URI from what a person typed as ``argument``: a URI, or an absolute path.

    Raises
    ------
    ArgumentError
        A relative path: its meaning would depend on the folder that a job was started in. A file URI with
        a host, which is what ``file://lake`` means.
    """
    if "://" in text:
        if text.startswith("file:") and urlsplit(text).netloc not in ("", "localhost"):
            raise ArgumentError(f"{argument}: a file URI has three slashes, file:///..., not {text!r}")
        return text
    if not text.startswith("/"):
        raise ArgumentError(
            f"{argument} must be a URI (file:///..., s3a://...) or an absolute path, not {text!r}"
        )
    return Path(text).as_uri()


def begin(lake: Lake, job: str) -> Lake:
    """The lake for a job that begins: of two jobs that make one slice at once, the first to commit wins.

    The tables that the job writes are looked at now. Its commits fail when somebody else has changed their
    slices since, instead of putting older rows over newer ones.

    Raises
    ------
    TableError
        The log of a table cannot be written, or the table holds rows that break its contract as it is now.
    """
    versions = {}
    for table, writer in WRITERS.items():
        # a job of several stages is called by each: quality_input, quality_results
        if writer in (job, "any job") or job.startswith(f"{writer}_"):
            log = _open(lake.location(table))
            if log is None:  # it will begin with an empty version, and one more for its constraints
                versions[table] = min(1, len(lake.checks(table)))
            else:
                with _writing(table, lake.location(table)):
                    versions[table] = _constrain(log, table, lake.checks(table)).version()
    return replace(lake, versions=versions)


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
    constraints: tuple[Constraint, ...] = ()
    compression: str = "zstd"

    def write(self, batches: Iterable[pa.RecordBatch | pa.Table], **partition: object) -> File | None:
        """Write batches (without the partition columns) to one new file; nothing if they have no row.

        The name ends at random: a retried task must not write over a file that another attempt has committed.

        Its pages bear checksums: a changed byte in an uncompressed page would be just another number.

        Raises
        ------
        TableError
            A batch does not match the table's contract: a column missing, of another type, or null, or a row
            that breaks a constraint. Or the file cannot be written, because the disk is full, for one.
        """
        values = {"run": self.run, **{name: str(value) for name, value in partition.items()}}
        folder = "".join(f"{name}={values[name]}/" for name in self.partitioned)
        path = f"{folder}{self.new_name()}"
        filesystem, root = filesystem_of(self.location)
        inner = pa.schema([column for column in self.schema if column.name not in self.partitioned])
        place = f"{self.location}/{path}"
        writer: pq.ParquetWriter | None = None
        rows = 0
        for group in _row_groups(self._conform(batch, inner) for batch in batches if batch.num_rows):
            self._check(group, values)
            with _writing(self.table, place):
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
        with _writing(self.table, place):
            writer.close()
            size = filesystem.get_file_info(f"{root}/{path}").size
        return File(self.table, path, size, rows, values)

    def new_name(self) -> str:
        """A file name that nobody else has: the stamp, then the task's number, then what rises in a task.

        Files of equal size are read in the order of their names, which is the same when a job runs again.
        """
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        return f"{self.stamp}{task:06d}-{next(_NAMES):08d}-{uuid.uuid4().hex}.parquet"

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


def target(lake: Lake, table: str, run: str, stamp: str = "") -> Target:
    """The slice of ``table`` that ``run`` replaces; with a stamp, its files say what they were made from."""
    contract = lake.contract(table)
    return Target(
        table,
        lake.location(table),
        lake.schema(table),
        contract.partitioned,
        run,
        stamp,
        constraints_of(contract),
        "none" if table in POINT_TABLES else "zstd",
    )


def commit(lake: Lake, table: str, run: str, files: Sequence[File], /, stamp: str = "", **also: str) -> None:
    """Replace the run's slice by these files, in one transaction.

    A slice without rows gets one file without rows: an empty slice is a result, a missing one is an error.

    Parameters
    ----------
    also : further partition values that narrow the slice (job_metrics: the job).

    Raises
    ------
    TableError
        Somebody else changed this very slice meanwhile, or the log cannot be written; the table is as it
        was.

    Notes
    -----
    Delta sees a conflict where two commits remove the same files. Two that make a slice for the first time
    remove none, and both would stay: the slice's own transaction id, which no two commits may follow from
    one version, makes them conflict as well.
    """
    into = target(lake, table, run, stamp)
    files = [file for file in files if file.table == table]
    with _writing(table, into.location):
        log = open_or_create(lake, table)
        if table in lake.versions:
            log.load_as_version(lake.versions[table])
        _commit(log, into, files or [_empty_file(into, also)], {"run": run, **also})


def replace_table(into: Target, files: Sequence[File]) -> list[File]:
    """Make a table of these files outside of a lake, or replace all that is in it, in one transaction.

    Parameters
    ----------
    into : without partitions.
    files : written by it.

    Returns
    -------
    The table's files: these, or one without rows.

    Raises
    ------
    TableError
        There is a table of other columns, or partitioned; somebody else changes it just now; it cannot be
        written.
    """
    with _writing(into.table, into.location):
        log = _alike(_open(into.location) or _create(into.location, into.schema, (), into.table, ""), into)
        files = list(files) or [_empty_file(into, {})]
        _commit(log, into, files, {})
    return files


def refuse_other_columns(into: Target) -> None:
    """Look whether a table outside of a lake, where there is one, may be replaced.

    Raises
    ------
    TableError
        It has other columns, or is partitioned, or cannot be read.
    """
    with _writing(into.table, into.location):
        log = _open(into.location)
        if log is not None:
            _alike(log, into)


def _alike(log: DeltaTable, into: Target) -> DeltaTable:
    found = pa.schema(log.schema().to_arrow())
    if [(column.name, column.type) for column in found] != [(c.name, c.type) for c in into.schema]:
        raise TableError(f"{into.location} is a table of other columns ({', '.join(found.names)})")
    partitioned = log.metadata().partition_columns
    if partitioned:
        raise TableError(f"{into.location} is partitioned by {', '.join(partitioned)}; take another folder")
    return log


def _commit(log: DeltaTable, into: Target, files: Sequence[File], slice_: Mapping[str, str]) -> None:
    """Replace a slice that is still as it is in this version of the log."""
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
    begun = _state(log, slice_)
    for _ in range(MOST_TRIES):
        own = Transaction(
            "/".join(f"{name}={value}" for name, value in slice_.items()) or "all", log.version() + 1
        )
        try:
            log.create_write_transaction(
                actions,
                mode="overwrite",
                schema=Schema.from_arrow(into.schema),
                partition_by=list(into.partitioned),
                partition_filters=[(name, "=", value) for name, value in slice_.items()] or None,
                commit_properties=CommitProperties(app_transactions=[own]),
            )
            return
        except CommitFailedError as error:
            refusal = error
        log = DeltaTable(log.table_uri)
        # to Delta, who replaces a slice has read the whole table: it refuses what another slice's job removed
        if _state(log, slice_) != begun:
            break
    what = f"{into.table} of run {into.run}" if into.run else into.location
    writer = slice_.get("job", WRITERS.get(into.table, into.table))
    raise TableError(
        f"another job changed {what} while this one ran, so nothing was written to it "
        f"({_in_one_line(refusal)}); run {writer} again when that one has ended"
    ) from refusal


def _state(log: DeltaTable, slice_: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """What a commit to a slice builds on: the table's settings, and the slice's files."""
    files = pa.table(log.get_add_actions(flatten=True)).to_pylist()
    of_slice = {f"partition.{name}": value for name, value in slice_.items()}
    mine = (file for file in files if all(str(file[name]) == value for name, value in of_slice.items()))
    return log.metadata().configuration, sorted(file["path"] for file in mine)


@contextmanager
def _writing(table: str, place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TableError(
            f"{table}: {place} cannot be written ({_in_one_line(error)}); the table is as it was; "
            f"make room or mend what is wrong, then run {WRITERS.get(table, table)} again"
        ) from error


def _in_one_line(error: Exception) -> str:
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
    with _writing(into.table, location):
        filesystem.create_dir(root, recursive=True)
    try:
        yield Target(into.table, location, schema, partitioned, into.run, compression="none")
    finally:
        with suppress(OSError):
            filesystem.delete_dir(root)


def forget_files(into: Target, files: Iterable[File]) -> None:
    """Delete files that will not be committed; what cannot be deleted is in no table all the same."""
    filesystem, root = filesystem_of(into.location)
    for file in files:
        with suppress(OSError):
            filesystem.delete_file(f"{root}/{file.path}")


def _empty_file(into: Target, also: Mapping[str, str]) -> File:
    values = {name: {"run": into.run, **also}.get(name, "0") for name in into.partitioned}
    folder = "".join(f"{name}={value}/" for name, value in values.items())
    filesystem, root = filesystem_of(into.location)
    filesystem.create_dir(f"{root}/{folder}", recursive=True)
    path = f"{folder}{into.new_name()}"
    inner = pa.schema([column for column in into.schema if column.name not in into.partitioned])
    pq.write_table(inner.empty_table(), f"{root}/{path}", filesystem=filesystem)
    return File(into.table, path, filesystem.get_file_info(f"{root}/{path}").size, 0, values)


def write_slice(lake: Lake, table: str, run: str, rows: pa.Table, /, stamp: str = "", **also: str) -> None:
    """Replace the run's slice by a few rows that the driver holds."""
    written = target(lake, table, run, stamp).write(
        [rows.drop_columns([n for n in ("run", *also) if n in rows.column_names])], **also
    )
    commit(lake, table, run, [written] if written else [], stamp, **also)


def rows_of(lake: Lake, table: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows as an Arrow table of the contract's types, without the column ``run``."""
    schema = lake.schema(table)
    return pa.Table.from_pylist(
        [dict(row) for row in rows], pa.schema([c for c in schema if c.name != "run"])
    )


def open_or_create(lake: Lake, table: str) -> DeltaTable:
    """The table with its contract's constraints; made empty, with its columns, if it does not exist yet.

    Raises
    ------
    TableError
        It holds rows that break its contract as it is now.
    """
    location, contract = lake.location(table), lake.contract(table)
    log = _open(location) or _create(
        location, lake.schema(table), contract.partitioned, table, contract.description
    )
    return _constrain(log, table, lake.checks(table))


def _constrain(log: DeltaTable, table: str, checks: Mapping[str, str]) -> DeltaTable:
    """The table with these constraints in its log, and no others that came from a contract.

    A log that has them is only looked at. Of two jobs that set them at once one is refused, and looks
    again; a job that began before, under another contract, has its commit refused and is tried again.

    Notes
    -----
    deltalake takes no constraint when it makes a table: they come in a commit of their own, always before
    the first rows. When they change, it looks at all rows there are, once.
    """
    for _ in range(MOST_TRIES):
        known = log.metadata().configuration
        present = {name.removeprefix(_CHECK) for name in known if name.startswith(_CHECK)}
        wrong = sorted(name for name in present - checks.keys() if OURS.search(name))
        missing = {name: check for name, check in checks.items() if name not in present}
        if not wrong and not missing:
            return log
        try:
            for name in wrong:
                log.alter.drop_constraint(name)
            if missing:
                log.alter.add_constraint(missing)
        except CommitFailedError:  # another job does the same at this moment
            pass
        except DeltaError as error:
            raise TableError(
                f"{table}: rows of earlier runs break its contract as it is now ({_in_one_line(error)}); "
                f"run {WRITERS[table]} again for them, or use another lake"
            ) from error
        log = DeltaTable(log.table_uri)
    raise TableError(f"{table}: other jobs change its log all the time; run this one again")


def _open(location: str) -> DeltaTable | None:
    try:
        return DeltaTable(uri_for("deltalake", location))
    except TableNotFoundError:
        return None
    except DeltaError as error:
        why = _in_one_line(error).partition(": 0: ")[0]  # a trace of Rust's follows
        raise TableError(f"the Delta log of {location} cannot be read ({why})") from error


def _create(
    location: str, schema: pa.Schema, partitioned: Sequence[str], name: str, description: str
) -> DeltaTable:
    with suppress(CommitFailedError):  # another run made it at the same moment
        return DeltaTable.create(
            uri_for("deltalake", location),
            Schema.from_arrow(schema),
            mode="ignore",
            partition_by=list(partitioned),
            name=name,
            description=description,
            # deltalake cannot read tables with deletion vectors, and a slice is replaced as a whole anyway
            configuration={"delta.enableDeletionVectors": "false"},
            # tried again it would become version 1, and to all other commits the table would be another one
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    return DeltaTable(uri_for("deltalake", location))


def files_of(lake: Lake, table: str, run: str, stamp: str = "") -> list[File]:
    """The files of the run's slice, by path.

    Raises
    ------
    TableError
        The run has no slice in this table: the job that writes it has not run. Or its files bear another
        stamp: what they were made from has changed since.
    """
    return _slice_of(lake, table, run, stamp)[1]


def _slice_of(lake: Lake, table: str, run: str, stamp: str) -> tuple[int, list[File]]:
    """The table's version, and the files of the run's slice in it."""
    log = _open(lake.location(table))
    found = []
    if log is not None:
        partitioned = lake.contract(table).partitioned
        for action in pa.table(log.get_add_actions(flatten=True)).to_pylist():
            values = {name: str(action[f"partition.{name}"]) for name in partitioned}
            if values["run"] == run:
                found.append(
                    File(table, unquote(action["path"]), action["size_bytes"], action["num_records"], values)
                )
    if log is None or not found:
        raise TableError(f"{table} has no slice of run {run}; run {WRITERS[table]} for it first")
    if not all(file.path.rpartition("/")[2].startswith(stamp) for file in found):
        raise TableError(
            f"{table} of run {run} was made from other tables than these; run {WRITERS[table]} again"
        )
    return log.version(), sorted(found, key=lambda file: file.path)


def rows_by_run(lake: Lake, table: str) -> dict[str, int]:
    """Rows of every run's slice, oldest run first, from the log alone; empty where there is no table."""
    log = _open(lake.location(table))
    rows: dict[str, int] = {}
    for action in [] if log is None else pa.table(log.get_add_actions(flatten=True)).to_pylist():
        run = str(action["partition.run"])
        rows[run] = rows.get(run, 0) + action["num_records"]
    return dict(sorted(rows.items()))


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
    "quality": "quality",
    "job_metrics": "any job",
}
"""The job that writes each table."""


def runs_of(lake: Lake, table: str) -> list[str]:
    """The runs that have a slice in this table, from the log alone; the oldest first."""
    log = _open(lake.location(table))
    if log is None:
        return []
    return sorted({str(row["run"]) for row in log.partitions()})


def count(lake: Lake, table: str, run: str, stamp: str = "") -> int:
    """Rows of the run's slice, from the log alone."""
    return sum(file.rows for file in files_of(lake, table, run, stamp))


def read(spark: SparkSession, lake: Lake, table: str, run: str, stamp: str = "") -> DataFrame:
    """The run's slice, by Spark's own scan.

    A few files are read by their names: Delta's own look at the log costs a small job half of its CPU
    time. Many files, and tables with more partition columns than the run, go through Delta.

    Raises
    ------
    TableError
        The run has no slice in this table, or one with another stamp.
    """
    version, files = _slice_of(lake, table, run, stamp)
    location, schema = lake.location(table), lake.schema(table)
    if len(files) > FEW_FILES or lake.contract(table).partitioned != ("run",):
        return _read_by_log(spark, location, version).where(F.col("run") == run)
    inner = pa.schema([column for column in schema if column.name != "run"])
    rows = _read_by_name(spark, location, files, inner)
    return rows.withColumn("run", F.lit(run)).select(*schema.names)


def read_replaced(spark: SparkSession, into: Target, files: Sequence[File]) -> DataFrame:
    """What :func:`replace_table` has made of these files, by Spark's own scan.

    Raises
    ------
    TableError
        They are many, and somebody else has changed the table since.
    """
    if len(files) <= FEW_FILES:
        return _read_by_name(spark, into.location, files, into.schema)
    log = _open(into.location)
    if log is None or _state(log, {})[1] != sorted(file.path for file in files):
        raise TableError(f"another job has changed {into.location} meanwhile")
    return _read_by_log(spark, into.location, log.version())


def _read_by_name(spark: SparkSession, location: str, files: Iterable[File], schema: pa.Schema) -> DataFrame:
    # Spark takes a path for a pattern
    folder = re.sub(r"([\[\]{}*?\\])", r"\\\1", uri_for("spark", location))
    return spark.read.schema(ddl(schema)).parquet(*(f"{folder}/{file.path}" for file in files))


def _read_by_log(spark: SparkSession, location: str, version: int) -> DataFrame:
    return spark.read.format("delta").option("versionAsOf", version).load(uri_for("spark", location))


def uri_for(library: Library, uri: str) -> str:
    """A URI as each library takes it.

    Only S3 has two names: Hadoop's file system is s3a, pyarrow and deltalake know s3. And only Hadoop does
    not decode a path: to Spark, the ``%20`` of a URI are three letters.
    """
    parts = urlsplit(uri)
    if library == "spark":
        scheme = "s3a" if parts.scheme == "s3" else parts.scheme
        host = "" if scheme == "file" else parts.netloc
        return f"{scheme}://{host}{unquote(parts.path)}"
    return uri.replace("s3a://", "s3://", 1) if parts.scheme == "s3a" else uri


def arrow_schema(ddl: str) -> pa.Schema:
    """The Arrow columns of a schema as Spark writes it: names and types, with commas between."""
    columns = (column.split() for column in ddl.split(", "))
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns])


def ddl(columns: Iterable[pa.Field]) -> str:
    """Arrow columns as Spark writes a schema."""
    names = {arrow: name for name, arrow in ARROW_TYPES.items()}
    return ", ".join(f"`{column.name}` {names[column.type]}" for column in columns)


def read_small(
    lake: Lake, table: str, run: str, columns: Sequence[str] | None = None, stamp: str = ""
) -> pa.Table:
    """The run's slice, read by the driver itself: for tables of a few rows, or a few columns of more."""
    wanted = (
        lake.schema(table) if columns is None else pa.schema([lake.schema(table).field(c) for c in columns])
    )
    parts = [
        read_file(lake.location(table), file, [c for c in wanted.names if c not in file.partition], wanted)
        for file in files_of(lake, table, run, stamp)
    ]
    return pa.concat_tables(parts)


def read_row(lake: Lake, table: str, run: str, stamp: str = "") -> dict[str, Any]:
    """The only row of the run's slice.

    Raises
    ------
    TableError
        There is no slice, or one with another stamp or without a row.
    """
    rows = read_small(lake, table, run, stamp=stamp).to_pylist()
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
        why = "the file is gone" if isinstance(error, FileNotFoundError) else _in_one_line(error)
        raise TableError(_unreadable(file.table, f"{location}/{file.path}", why)) from error


def _unreadable(table: str, path: str, why: str) -> str:
    return f"{table}: {path} cannot be read ({why}); run {WRITERS.get(table, table)} again"


def _check_rows(location: str, file: File, rows: int) -> None:
    if rows != file.rows:
        raise TableError(
            f"{file.table}: {location}/{file.path} has {rows} rows, its table's log says {file.rows}; "
            f"run {WRITERS.get(file.table, file.table)} again"
        )


def unreadable_by_spark(text: str) -> str | None:
    """What a person should know of an error of Spark's own scan; nothing if it is another error."""
    found = re.search(r"(?:reading file|does not exist:) (.*?/([a-z_]+)/run=.*?\.parquet)", text)
    if found is None or found[2] not in WRITERS:
        return None
    return _unreadable(found[2], found[1], "missing or broken")


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


def filesystem_of(uri: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a URI and the path in it."""
    if urlsplit(uri).scheme == "file":
        return pafs.LocalFileSystem(), unquote(urlsplit(uri).path)
    filesystem, path = pafs.FileSystem.from_uri(uri_for("pyarrow", uri))
    return filesystem, path
