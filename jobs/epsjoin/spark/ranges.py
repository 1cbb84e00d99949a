"""The history of a table as a frame: its ranges of runs, and the rows as of a date."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from epsjoin.contracts.load_source import load_source
from epsjoin.errors import UnfitTableError
from epsjoin.lake import parquet, schemas, slices, uris
from epsjoin.lake.arguments import parse_run
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.history import RANGE, View, open_view
from epsjoin.lake.lake import Lake
from epsjoin.paths import CONTRACTS
from epsjoin.spark.rows.rows import BATCH_ROWS
from epsjoin.spark.rows.splits import Split, plan_splits
from epsjoin.spark.tasks import tasks
from epsjoin.vocabulary import NOISE


def history(lake: str, dataset: str, table: str, *, contracts: str | Path | None = None) -> DataFrame:
    """Return the maximal ranges of runs in which the rows of a table hold.

    Parameters
    ----------
    lake : folder of all tables: a URI or an absolute path.
    dataset : name of the data set.
    table : ``points``, ``pairs`` or ``clusters``.
    contracts : folder of the contracts; by default that of the project.

    Returns
    -------
    DataFrame
        The columns of the table without ``run``, and ``from_run`` and ``to_run``: the row holds at the runs
        ``from_run <= run < to_run`` that are in the lake; ``to_run`` is null if it still holds. Of clusters
        it has the ``name``, which stays from run to run (-1 for noise), in place of ``cluster_id``. The frame
        is lazy, and read from the slices that are there at the call, in the active session.

    Raises
    ------
    ArgumentError
        The table has no history.
    TableError
        The table has no slice, or one that was made from other tables than its run has now.
    """
    opened = _open(lake, dataset, contracts)
    view = open_view(opened, table)
    position = F.array_position(F.array(*map(F.lit, view.runs)), F.col("run")).cast("int") - 1
    rows = _read_runs(opened, view, view.runs).withColumn("_n", position)
    order = Window.partitionBy(*map(_column, view.key)).orderBy("_n")
    content = F.struct(*map(_column, view.columns.names))
    follows = (F.lag("_n").over(order) == F.col("_n") - 1) & F.lag(content).over(order).eqNullSafe(content)
    begins = rows.withColumn("_begins", ~F.coalesce(follows, F.lit(False)))
    ends = begins.withColumn("_ends", F.coalesce(F.lead("_begins").over(order), F.lit(True)))
    # only the ends of ranges are left: after a row that begins a range and does not end it comes its end
    edges = ends.where("_begins OR _ends")
    last = F.when(F.col("_ends"), F.col("_n")).otherwise(F.lead("_n").over(order))
    runs = F.array(*map(F.lit, view.runs))
    return (
        edges.withColumn("_last", last)
        .where("_begins")
        .select(
            *map(_column, view.columns.names),
            F.col("run").alias(RANGE[0]),
            F.get(runs, F.col("_last") + 1).alias(RANGE[1]),
        )
    )


def as_of(lake: str, dataset: str, table: str, run: str, *, contracts: str | Path | None = None) -> DataFrame:
    """Return the rows of a table as of a date: those of the latest run that is not later.

    Parameters
    ----------
    lake, dataset, table, contracts : see :func:`epsjoin.spark.history`.
    run : the date, ISO; a run need not be of this date.

    Returns
    -------
    DataFrame
        The columns of :func:`epsjoin.spark.history` without the range; lazy.

    Raises
    ------
    ArgumentError, TableError
        See :func:`epsjoin.spark.history`; also if the lake has no run until then.
    """
    run = parse_run(run, "run")
    opened = _open(lake, dataset, contracts)
    view = open_view(opened, table)
    runs = [other for other in view.runs if other <= run]
    if not runs:
        raise UnfitTableError(f"{table} has no run until {run}; the first one is {view.runs[0]}")
    return _read_runs(opened, view, runs[-1:]).select(*map(_column, view.columns.names))


def _open(lake: str, dataset: str, contracts: str | Path | None) -> Lake:
    folder = CONTRACTS if contracts is None else Path(contracts)
    return Lake(uris.parse_lake_uri(lake, "lake"), folder, load_source(folder, dataset))


def _column(name: str) -> Column:
    """A column whose name may have characters that mean something in SQL."""
    return F.col(schemas.quoted(name))


def _read_runs(lake: Lake, view: View, runs: Sequence[str]) -> DataFrame:
    """The rows of some runs, with the column ``run``."""
    rows = _read_slices(lake, view.table, runs)
    if view.table != "clusters":
        return rows
    names = _read_slices(lake, "cluster_names", runs).select("run", "cluster_id", "name")
    named = rows.join(names, ["run", "cluster_id"], "left")
    is_noise = F.col("cluster_id") == NOISE
    why = "clusters has a cluster that cluster_names does not have; run compare again"
    lacking = F.raise_error(F.lit(why))
    name = F.when(is_noise, F.lit(NOISE)).otherwise(F.coalesce(F.col("name"), lacking.cast("long")))
    return named.withColumn("name", name)


def _read_slices(lake: Lake, table: str, runs: Sequence[str]) -> DataFrame:
    files = [file for run in runs for file in slices.files_of(lake, Fingerprints(lake, run).slice(table))]
    columns, location = lake.schema(table), lake.location(table)
    # a source's name may have characters that are not allowed in DDL
    ddl = schemas.to_ddl(pa.schema([(f"c{place}", kind) for place, kind in enumerate(columns.types)]))

    def read(split: Split) -> Iterator[pa.RecordBatch]:
        for file, number, of in split:
            for batch in parquet.stream_as_now(location, file, columns, BATCH_ROWS, columns, (number, of)):
                yield batch.rename_columns([f"c{place}" for place in range(len(columns))])

    spark = SparkSession.builder.getOrCreate()
    splits = plan_splits(files, columns, spark.sparkContext.defaultParallelism)
    return tasks.lazy_tasks(spark, splits, read, ddl).toDF(*columns.names)
