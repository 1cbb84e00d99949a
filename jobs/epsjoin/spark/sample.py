"""A sample of points that depends on the points and the seed alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.spark.arrow import to_matrix


def sample_points(
    points: DataFrame, n_points: int, n_sample: int, seed: int, dimensions: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The ``n_sample`` points whose hashed id is smallest, in the order of the hash.

    Uniform, and the same under every partitioning and row order, which ``DataFrame.sample`` is not.

    Parameters
    ----------
    points : frame with ``id`` and ``point``.
    n_points : its rows.

    Returns
    -------
    ids (m,) int64 and points (m, d) float64, m = min(n_points, n_sample).
    """
    order = F.xxhash64(F.lit(seed), F.col("id"))
    rows = points.select("id", "point", order.alias("_order"))
    share = (2 * n_sample + 1000) / max(1, n_points)
    if (
        share < 1
    ):  # sort little more than the sample; fewer rows than that below the bound is out of the question
        rows = rows.where(F.col("_order") < F.lit(int(-(2**63) + share * 2**64)))
    taken = rows.orderBy("_order", "id").limit(n_sample).select("id", "point").toArrow()
    return taken["id"].to_numpy(), to_matrix(taken["point"].combine_chunks(), dimensions)
