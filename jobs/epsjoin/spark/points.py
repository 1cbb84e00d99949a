"""Points of a DataFrame, in whatever form its columns hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyspark.errors import PySparkException
from pyspark.ml.functions import vector_to_array
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.lake.lake import Slice
from epsjoin.lake.sample import Sample
from epsjoin.local.join.scale import scale_points
from epsjoin.local.metric import Metric
from epsjoin.spark import scan
from epsjoin.spark.job import Job
from epsjoin.spark.reading import Reading, commonest_length, in_one_chunk
from epsjoin.spark.rows import FrameRows, Rows, StoredRows

BATCH_BYTES, MAX_BATCH_ROWS = 16 << 20, 1 << 17
"""Of stored points, that a task holds at once."""


@dataclass(frozen=True)
class Points:
    """Identified points.

    Parameters
    ----------
    frame : the columns ``id`` (long), then the coordinates: one column of binary or of arrays of numbers, or
        one column of numbers per dimension; numbers are doubles, or longs.
    reading : how a task reads them.
    n : rows.
    n_splits : tasks that read them, as far as is known.
    files : the columns of the frame as tasks read them themselves, where they are a table's.
    """

    frame: DataFrame
    reading: Reading
    n: int
    n_splits: int
    files: StoredRows | None = None

    @property
    def rows(self) -> Rows:
        """The columns of the frame, read in the quickest way."""
        return self.files or FrameRows(self.frame)

    def ids(self) -> FrameRows:
        """The ids of the points: (id)."""
        return FrameRows(self.frame.select("id"))

    def of_dimensions(self, dimensions: int) -> Points:
        """The same points; one that has not so many coordinates is refused."""
        return replace(self, reading=self.reading.of_dimensions(dimensions))

    def scaled(self, eps: float | ArrayLike, weights: ArrayLike | None, metric: Metric) -> Points:
        """The same points with eps per dimension and weights brought into their coordinates."""
        if np.ndim(eps) == 0 and weights is None:
            return self

        def scale(points: NDArray[np.float64]) -> NDArray[np.float64]:
            return scale_points(points, eps, weights, metric)[0]

        return replace(self, reading=replace(self.reading, scale=scale))

    def sample(self, rows: int, seed: int) -> Sample:
        """The ``rows`` points whose hashed id is smallest, in the order of the hash.

        Uniform, and the same under every partitioning and row order, which ``DataFrame.sample`` is not.

        Returns
        -------
        ids (m,) int64 and points (m, d) float64, m = min(n, rows).

        Raises
        ------
        DataRefusedError
            See :meth:`Reading.arrays`; there are rows, but none with a point.
        """
        order = F.xxhash64(F.lit(seed), F.col("id"))
        ordered = self.frame.withColumn("_order", order)
        # sort little more than the sample; fewer rows than that below the bound is out of the question
        share = (2 * rows + 1000) / max(1, self.n)
        if share < 1:
            ordered = ordered.where(F.col("_order") < F.lit(int(-(2**63) + share * 2**64)))
        taken = ordered.orderBy("_order", "id").limit(rows).drop("_order").toArrow()
        reading = self.reading
        if reading.dimensions is None:
            whole = in_one_chunk(taken.column(1))
            reading = reading.of_dimensions(commonest_length(whole, reading.names[0]))
        return reading.arrays(taken)


def refuse_changed(counted: int, read: float) -> None:
    """Refuse frames that did not give the same rows again.

    Raises
    ------
    DataRefusedError
        More or fewer were read than were counted at first.
    """
    if read != counted:
        raise DataRefusedError(
            f"there were {counted:,} rows when they were counted, {read:,.0f} when they were read; "
            "persist the frame, or write it to a table first"
        )


def points_of(frame: DataFrame, columns: str | Sequence[str], id_: str) -> Points:
    """Points of a frame.

    Parameters
    ----------
    frame : any frame of a classic session; it should give the same rows whenever it is read.
    columns : names of the coordinate columns, numbers, in order; or the name of one column that holds a whole
        point: an array of numbers, a vector of Spark ML, or binary (float64, little-endian, one after the
        other).
    id_ : name of a column of whole numbers that tells rows apart; this is not checked.

    Returns
    -------
    Points
        How many dimensions whole points have a sample will show.

    Raises
    ------
    ArgumentError
        A column does not exist or has another type; the frame is Spark Connect's.
    """
    _refuse_connect(frame)
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise ArgumentError("columns must name one coordinate column at least")
    types = {name: _type_of(frame, name) for name in (id_, *names)}
    if not isinstance(types[id_], (T.LongType, T.IntegerType, T.ShortType, T.ByteType)):
        raise ArgumentError(
            f"the id column {id_!r} must hold whole numbers, not {types[id_].simpleString()}; give rows such "
            "a column, for example F.xxhash64 of the key"
        )
    whole = _whole_point(F.col(names[0]), types[names[0]]) if len(names) == 1 else None
    if whole is None:
        for name in names:
            if not isinstance(types[name], T.NumericType):
                raise ArgumentError(
                    f"the column {name!r} must hold numbers, not {types[name].simpleString()}; one column "
                    "may hold whole points, as arrays, vectors or binary"
                )
        coordinates = [_numbers(name, types[name]).alias(f"x{i}") for i, name in enumerate(names)]
        rows = frame.select(F.col(id_).cast("long").alias("id"), *coordinates)
        return Points(rows, Reading(tuple(names), len(names)), *_counted(rows))
    rows = frame.select(F.col(id_).cast("long").alias("id"), whole.alias("point"))
    return Points(rows, Reading((names[0],), None), *_counted(rows))


def _counted(rows: DataFrame) -> tuple[int, int]:
    """Rows of a frame, and its partitions."""
    partitions = rows.select(F.spark_partition_id().alias("number"))
    found = partitions.agg(F.count("*").alias("n"), F.max("number").alias("last")).collect()[0]
    return found["n"], 1 + (found["last"] or 0)


def stored_points(job: Job) -> Points:
    """The job's slice of the table ``points``.

    Raises
    ------
    TableError
        The run has no slice.
    """
    lake = job.lake
    frame = scan.read(job.spark, lake, Slice("points", job.run)).select("id", "point")
    dimensions = len(lake.source.coordinates)
    reading = Reading(lake.source.coordinates, dimensions, is_checked=True)
    files = StoredRows.of(job, Slice("points", job.run), "id long, point binary")
    batch_rows = max(1, min(MAX_BATCH_ROWS, BATCH_BYTES // (8 * dimensions)))
    files = replace(files, batch_rows=batch_rows)
    return Points(frame, reading, files.n, len(files.splits()), files)


def _refuse_connect(frame: DataFrame) -> None:
    if not hasattr(frame, "_jdf"):  # what only a classic frame has
        raise ArgumentError(
            "a frame of a classic Spark session is needed, not of Spark Connect or of another library: core "
            "points are shared through the session's context, which Connect does not have"
        )


def _type_of(frame: DataFrame, name: str) -> T.DataType:
    try:
        return frame.select(F.col(name)).schema[0].dataType
    except PySparkException as error:
        known = ", ".join(frame.columns)
        raise ArgumentError(f"the frame has no column {name!r}; it has {known}") from error


def _numbers(name: str, kind: T.DataType) -> Column:
    """The column as doubles, longs as they are: a task looks whether a double holds them."""
    return F.col(name) if isinstance(kind, T.LongType) else F.col(name).cast("double")


def _whole_point(column: Column, kind: T.DataType) -> Column | None:
    """A column that holds a whole point, as binary or as an array of numbers; None: it holds a number."""
    if isinstance(kind, T.BinaryType):
        return column
    if isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.NumericType):
        return column if isinstance(kind.elementType, T.LongType) else column.cast("array<double>")
    if isinstance(kind, T.UserDefinedType) and type(kind).__name__ == "VectorUDT":
        return vector_to_array(column)
    return None
