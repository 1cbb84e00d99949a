"""Points with ids as functions on frames and steps take them, their samples, and the table ``points``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from epsjoin.errors import DataRefusedError
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.sample import Sample
from epsjoin.lake.schemas import parse_ddl
from epsjoin.spark.job.job import Job
from epsjoin.spark.points.hashes import bound_hashes, first_hashed, hash_ids
from epsjoin.spark.points.reading import Reading, commonest_length, in_one_chunk
from epsjoin.spark.rows import scan
from epsjoin.spark.rows.rows import FrameRows, Rows, StoredRows
from epsjoin.spark.rows.stored import in_table
from epsjoin.spark.tasks.arrow import Scan

STORED = "id long, point binary"
"""The columns of the table ``points`` that joins read."""

BATCH_BYTES, MAX_BATCH_ROWS = 4 << 20, 1 << 17
"""Maximum size of a batch of stored points, in bytes of coordinates and in rows."""


@dataclass(frozen=True)
class Points:
    """Points with ids.

    Parameters
    ----------
    make_frame : returns :attr:`frame`; not called if only the files are needed, since Spark takes some
        hundredths of a second to make one.
    reading : how a task turns batches of the frame into arrays.
    n : number of rows.
    n_partitions : number of partitions of a caller's frame.
    files : the same columns read from files by the tasks themselves, if the points are stored in a table.
    """

    make_frame: Callable[[], DataFrame]
    reading: Reading
    n: int
    n_partitions: int = 0
    files: StoredRows | None = None

    @property
    def frame(self) -> DataFrame:
        """The column ``id`` (long), then the coordinates.

        One column of binary or of arrays of numbers, or one column of numbers per dimension. Numbers are
        doubles, longs or large decimals, in arrays also floats.
        """
        return self.make_frame()

    @property
    def n_splits(self) -> int:
        """Number of tasks that read the points, as far as it is known; of stored ones by the session."""
        return self.n_partitions if self.files is None else len(self.files.splits())

    @property
    def rows(self) -> Rows:
        """The columns of the frame, read in the fastest way."""
        return self.files or FrameRows(self.frame)

    def ids(self) -> FrameRows:
        """The ids of the points, in the column ``id``."""
        return FrameRows(self.frame.select("id"))

    @property
    def coordinate_bytes(self) -> int:
        """Bytes of a coordinate, as it is read: 4 for whole points in float32, otherwise 8."""
        kind = self.frame.schema[1].dataType
        return 4 if isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.FloatType) else 8

    def of_dimensions(self, dimensions: int) -> Points:
        """A copy that requires ``dimensions`` coordinates per point."""
        return replace(self, reading=self.reading.of_dimensions(dimensions))

    def sample(self, rows: int, seed: int) -> Sample:
        """Draw the ``rows`` points with the smallest hashed ids, in the order of the hash.

        The sample is uniform, and the same under every partitioning and row order, which
        ``DataFrame.sample`` is not.

        Returns
        -------
        ids (m,) int64 and points (m, d) float64, m = min(n, rows).

        Raises
        ------
        DataRefusedError
            See :meth:`Reading.arrays`; no row of the sample holds a point; or the frame's number of rows has
            changed.
        """
        if self.files is not None:
            return draw_sample(self.files.scan, self.reading, self.n, rows, seed)
        order = F.xxhash64(F.lit(seed), F.col("id"))
        some = self.frame.withColumn("_order", order)
        bound = bound_hashes(rows, self.n)
        if bound is not None:
            some = some.where(F.col("_order") < F.lit(bound))
        few = some.toArrow()  # little more than twice the rows of the sample, so it is sorted here
        if bound is None:
            refuse_changed(self.n, few.num_rows)
        first = pc.sort_indices(few, [("_order", "ascending"), ("id", "ascending")])[:rows]
        taken = few.drop_columns("_order").take(first)
        reading = self.reading
        if reading.dimensions is None:
            whole = in_one_chunk(taken.column(1))
            reading = reading.of_dimensions(commonest_length(whole, reading.names[0]))
        return reading.arrays(taken)


def draw_sample(scan: Scan, reading: Reading, n: int, rows: int, seed: int) -> Sample:
    """Draw the sample of :meth:`Points.sample` from stored points, without a query.

    Parameters
    ----------
    scan, reading, n : of the points.
    """
    bound = bound_hashes(rows, n)

    def draw(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if bound is not None:
                batch = batch.filter(pa.array(hash_ids(seed, batch["id"].to_numpy()) < bound))
            yield batch.select(["id", "point"])

    drawn = in_table(scan(["id", "point"], draw), parse_ddl(STORED))
    return reading.arrays(drawn.take(first_hashed(drawn["id"].to_numpy(), rows, seed)))


def right_seed(seed: int) -> int:
    """The seed of the right sample of two frames, whose left one has ``seed``.

    With one seed for both, rows with the same ids would be drawn. In two versions of one table these are the
    same points, and there would seem to be far more pairs than there are.
    """
    return ~seed


def refuse_changed(counted: int, read: float) -> None:
    """Refuse a frame that had another number of rows when it was read again.

    Raises
    ------
    DataRefusedError
        The number of rows read differs from the number counted at first.
    """
    if read != counted:
        raise DataRefusedError(
            f"there were {counted:,} rows when they were counted, {read:,.0f} when they were read; "
            "persist the frame, or write it to a table first"
        )


def stored_points(job: Job) -> Points:
    """Take the points from the run's slice of the table ``points``.

    Raises
    ------
    TableError
        The run has no slice.
    """
    where = Slice("points", job.run)
    files = stored_files(job, where)

    def make_frame() -> DataFrame:
        return scan.read(job.spark, job.lake, where).select("id", "point")

    return Points(make_frame, stored_reading(job.lake), files.n, files=files)


def stored_files(job: Job, where: Slice) -> StoredRows:
    """Take the columns ``STORED`` of a slice of ``points``, for tasks that read the files in small batches.

    Raises
    ------
    TableError
        There is no slice, or it has another fingerprint.
    """
    batch_rows = max(1, min(MAX_BATCH_ROWS, BATCH_BYTES // (8 * len(job.lake.source.axes))))
    return replace(StoredRows.of(job, where, STORED), batch_rows=batch_rows)


def stored_reading(lake: Lake) -> Reading:
    """How the columns ``STORED`` of the table ``points`` are read."""
    return Reading(lake.source.axes, len(lake.source.axes), is_checked=True)
