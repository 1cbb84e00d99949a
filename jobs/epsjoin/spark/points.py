"""Points of a DataFrame, in whatever form its columns hold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from pyspark.errors import PySparkException
from pyspark.ml.functions import vector_to_array
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.lake.arrow import to_matrix
from epsjoin.lake.sample import Sample
from epsjoin.local.join.scale import scale_points
from epsjoin.local.metric import Metric
from epsjoin.source.values import EXACT
from epsjoin.spark import scan
from epsjoin.spark.job import Job
from epsjoin.spark.rows import FrameRows, Rows, StoredRows

Scale = Callable[[NDArray[np.float64]], NDArray[np.float64]]
BATCH_BYTES, MOST_BATCH_ROWS = 16 << 20, 1 << 17
"""Of stored points, that a task holds at once."""


@dataclass(frozen=True)
class Reading:
    """How a task gets arrays from batches of points; small, and pickled to every task.

    Parameters
    ----------
    names : the coordinate columns, as the caller calls them.
    dimensions : coordinates of a point; None: not known yet, a sample will show it.
    scale : applied to every (n, d) array of coordinates; None: they are taken as they are.
    is_checked : one column of binary, known to hold finite coordinates.
    """

    names: tuple[str, ...]
    dimensions: int | None
    scale: Scale | None = None
    is_checked: bool = False

    def of_dimensions(self, dimensions: int) -> Reading:
        """The same of points that must have so many coordinates."""
        return replace(self, dimensions=dimensions)

    def arrays(self, batch: pa.RecordBatch | pa.Table) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Ids (n,) and coordinates (n, d) of the rows of :attr:`Points.frame`.

        Raises
        ------
        DataRefusedError
            A null, a value that is NaN or infinite, a whole number beyond 2**53, a point of
            another number of dimensions.
        """
        if self.dimensions is None:
            raise ValueError("tasks must know the dimensions of points, or each would go by its own")
        if batch.column(0).null_count:
            raise DataRefusedError("a point's id is null; give every row an id, or leave such rows out")
        ids = batch.column(0).to_numpy()
        columns = batch.columns[1:]
        if self.is_checked:
            points = to_matrix(columns[0], self.dimensions)
        else:
            points = np.empty((len(ids), self.dimensions))
            for place, (name, column) in enumerate(zip(self.names, columns, strict=True)):
                _fill(points, place, name, _in_one_chunk(column), ids)
            _refuse_odd(points, ids, self.names)
        return ids, points if self.scale is None else self.scale(points)


@dataclass(frozen=True)
class Points:
    """Identified points.

    Parameters
    ----------
    frame : the columns ``id`` (long), then the coordinates: one column of binary or of arrays of numbers, or
        one column of numbers per dimension; numbers are doubles, or longs.
    reading : how a task reads them.
    n : rows.
    n_shares : tasks that read them, as far as is known.
    files : the columns of the frame as tasks read them themselves, where they are a table's.
    """

    frame: DataFrame
    reading: Reading
    n: int
    n_shares: int
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
            whole = _in_one_chunk(taken.column(1))
            reading = reading.of_dimensions(_commonest_length(whole, reading.names[0]))
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
    frame = scan.read(job.spark, lake, "points", job.run).select("id", "point")
    dimensions = len(lake.source.coordinates)
    reading = Reading(lake.source.coordinates, dimensions, is_checked=True)
    files = StoredRows.of(job, "points", "id long, point binary")
    batch_rows = max(1, min(MOST_BATCH_ROWS, BATCH_BYTES // (8 * dimensions)))
    files = replace(files, batch_rows=batch_rows)
    return Points(frame, reading, files.n, len(files.shares()), files)


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


def _fill(
    points: NDArray[np.float64], place: int, name: str, column: pa.Array, ids: NDArray[np.int64]
) -> None:
    """Write a column of a batch into the array of its points."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataRefusedError(f"the column {name!r} is null where the id is {ids[row]}")
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        points[:, place] = _as_doubles(column.to_numpy(), name, ids)
        return
    d = points.shape[1]
    lengths = _lengths(column).to_numpy()
    values = None if _is_binary(column.type) else column.flatten()
    other = np.flatnonzero(lengths != d)
    if len(other):
        raise DataRefusedError(
            f"the point with the id {ids[other[0]]} has {lengths[other[0]]:g} dimensions in {name!r}, "
            f"another has {d}"
        )
    if values is None:
        points[:] = to_matrix(column, d)
        return
    if values.null_count:
        row = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0]) // d
        raise DataRefusedError(f"a coordinate in {name!r} is null where the id is {ids[row]}")
    points[:] = _as_doubles(values.to_numpy(), name, ids).reshape(-1, d)


def _lengths(column: pa.Array) -> pa.Array:
    """Coordinates of the points in a column of whole ones; null where there is none."""
    if _is_binary(column.type):
        return pc.divide(pc.cast(pc.binary_length(column), pa.float64()), 8.0)
    return column.value_lengths()


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _in_one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _commonest_length(column: pa.Array, name: str) -> int:
    """Coordinates that most points of a column have, of equally many the most."""
    if not len(column):
        return 1  # whatever: there is no point
    lengths, counts = np.unique(_lengths(column).drop_null().to_numpy(), return_counts=True)
    is_point = (lengths > 0) & (lengths == np.floor(lengths))
    if not is_point.any():
        raise DataRefusedError(
            f"the column {name!r} holds no point in the {len(column):,} rows looked at; give arrays of "
            "numbers, vectors, or binary of 8 bytes for each coordinate"
        )
    return int(lengths[is_point][counts[is_point] == counts[is_point].max()].max())


def _as_doubles(values: NDArray[Any], name: str, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Numbers of rows, one or more each; whole ones must be the same as doubles."""
    if values.dtype == np.int64:
        odd = np.flatnonzero((values < EXACT[0]) | (values > EXACT[-1]))
        if len(odd):
            row = odd[0] // (len(values) // len(ids))
            raise DataRefusedError(
                f"{name!r} is {values[odd[0]]} where the id is {ids[row]}; beyond 2**53 float64 does "
                "not tell whole numbers apart, and joins compute in it"
            )
    return values.astype(np.float64, copy=False)


def _refuse_odd(points: NDArray[np.float64], ids: NDArray[np.int64], names: Sequence[str]) -> None:
    if np.isfinite(points).all():
        return
    row, axis = (int(each[0]) for each in np.nonzero(~np.isfinite(points)))
    where = f"{names[axis]!r}" if len(names) > 1 else f"coordinate {axis + 1} of {names[0]!r}"
    raise DataRefusedError(f"{where} is {points[row, axis]:g} where the id is {ids[row]}; it must be finite")
