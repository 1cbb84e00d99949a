"""Rows of the tables that are checked, read by tasks: ids and coordinates of points, or only some rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.lake import parquet
from epsjoin.lake.arrow import to_matrix
from epsjoin.lake.parquet import File
from epsjoin.lake.schemas import parse_ddl
from epsjoin.local.verify.brute_force import Ids, Points
from epsjoin.spark.checks.faults import BATCH_ROWS, read_files, to_batch
from epsjoin.spark.job.job import Job
from epsjoin.spark.points.points import STORED


def read_some(job: Job, table: str, ids: Ids, columns: str) -> tuple[pa.Table, list[str]]:
    """Read the rows with some ids, by rising id, and say which files cannot be read.

    Parameters
    ----------
    ids : ascending and distinct.
    columns : the columns to read, with their types; ``id`` is one of them.
    """
    location, fields, schema = job.lake.location(table), parse_ddl(columns), f"{columns}, fault string"
    shared = job.spark.sparkContext.broadcast(ids)

    def read(file: File) -> Iterator[pa.RecordBatch]:
        for batch in parquet.stream_file(location, file, fields, BATCH_ROWS):
            wanted = batch.filter(pa.array(is_in(batch.column("id").to_numpy(), shared.value)))
            yield to_batch(schema, **{name: wanted.column(name) for name in fields.names})

    rows = read_files(job, table, read, schema)
    return rows.filter(pc.is_valid(rows["id"])).sort_by("id"), rows["fault"].drop_null().to_pylist()


def stream_points(location: str, file: File, dimensions: int) -> Iterator[tuple[Ids, Points]]:
    """Read ids and coordinates of a file of ``points``, at most ``BATCH_ROWS`` at a time."""
    for batch in parquet.stream_file(location, file, parse_ddl(STORED), BATCH_ROWS):
        yield batch.column("id").to_numpy(), to_matrix(batch.column("point"), dimensions)


def is_in(values: Ids, rising: Ids) -> NDArray[np.bool_]:
    """Which values are among others, which are sorted and distinct."""
    if not len(rising):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(rising, values), len(rising) - 1)
    return np.asarray(rising[at] == values)
