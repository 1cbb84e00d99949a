"""Random samples of stored points, read without Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.lake import parquet, slices
from epsjoin.lake.arrow import to_matrix
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.schemas import parse_ddl

Sample = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Ids (m,) and coordinates (m, d)."""


def sample_stored(lake: Lake, run: str, n_sample: int, seed: int) -> Sample:
    """Read a uniform sample of ``n_sample`` points of a run.

    The log says how many rows each file has; the numbers of the rows are drawn, each set as likely as any
    other, and only the row groups that hold them are read.

    Returns
    -------
    ids (m,) int64, rising, and points (m, d) float64, m = min(rows, n_sample). The same for the same files
    and seed; files that were written anew may give others.

    Raises
    ------
    TableError
        ``points`` has no slice of this run, or a file is not as the log says.
    """
    files = slices.files_of(lake, Slice("points", run))
    ends = np.cumsum([file.rows for file in files])
    n_rows = int(ends[-1])
    chosen = np.random.default_rng(seed).choice(n_rows, min(n_sample, n_rows), replace=False)
    chosen.sort()
    rows = pa.concat_tables(
        [
            parquet.take_rows(
                lake.location("points"),
                file,
                parse_ddl("id long, point binary"),
                chosen[(chosen >= end - file.rows) & (chosen < end)] - (end - file.rows),
            )
            for file, end in zip(files, ends, strict=True)
        ]
    ).sort_by("id")
    points = to_matrix(rows["point"].combine_chunks(), len(lake.source.axes))
    return rows["id"].to_numpy(), points
