"""Read slices of tables as frames, with Spark's own scan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from epsjoin.errors import TableError
from epsjoin.lake import slices
from epsjoin.lake.delta_log import open_log
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File, check_footers
from epsjoin.lake.schemas import to_ddl
from epsjoin.lake.targets import Target
from epsjoin.lake.transactions import state_of_slices
from epsjoin.lake.uris import uri_for

MAX_NAMED_FILES = 1000
"""Maximum number of files that Spark reads by name; to list more of them it would start a job of its own."""


def read(spark: SparkSession, lake: Lake, where: Slice) -> DataFrame:
    """Read a slice with Spark's own scan.

    A few files are read by their names, because Delta's reading of its log costs a small job half of its CPU
    time. Many files, and tables with other partition columns than ``run``, are read through Delta.

    Raises
    ------
    TableError
        The run has no slice in this table, or one with another fingerprint.
    """
    log, files = slices.log_and_files(lake, where)
    location, schema = lake.location(where.table), lake.schema(where.table)
    if len(files) > MAX_NAMED_FILES or lake.contract(where.table).partitioned != ("run",):
        rows = _read_by_log(spark, location, log.version())
        for name, value in where.partition.items():
            rows = rows.where(F.col(name) == value)
        return rows
    inner = pa.schema([column for column in schema if column.name != "run"])
    check_footers(location, files, inner)
    rows = _read_by_name(spark, location, files, inner)
    return rows.withColumn("run", F.lit(where.run)).select(*schema.names)


def read_replaced(spark: SparkSession, into: Target, files: Sequence[File]) -> DataFrame:
    """Read a table that was just replaced by these files, with Spark's own scan.

    Raises
    ------
    TableError
        There are more than ``MAX_NAMED_FILES`` files, and another job has changed the table since.
    """
    if len(files) <= MAX_NAMED_FILES:
        return _read_by_name(spark, into.location, files, into.schema)
    log = open_log(into.location)
    if log is None or state_of_slices(log, [])[1] != sorted(file.path for file in files):
        raise TableError(f"another job has changed {into.location} meanwhile")
    return _read_by_log(spark, into.location, log.version())


def _read_by_name(spark: SparkSession, location: str, files: Iterable[File], schema: pa.Schema) -> DataFrame:
    # Spark interprets a path as a pattern
    folder = re.sub(r"([\[\]{}*?\\])", r"\\\1", uri_for("spark", location))
    return spark.read.schema(to_ddl(schema)).parquet(*(f"{folder}/{file.path}" for file in files))


def _read_by_log(spark: SparkSession, location: str, version: int) -> DataFrame:
    return spark.read.format("delta").option("versionAsOf", version).load(uri_for("spark", location))
