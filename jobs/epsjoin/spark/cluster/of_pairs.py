"""Clusters of pairs that a caller has, on DataFrames, from whatever join they come."""

from __future__ import annotations

from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.local.arguments import check_count
from epsjoin.spark.cluster.from_pairs import cluster_pairs
from epsjoin.spark.points.columns import column_of_ids, type_of
from epsjoin.spark.rows.persist import materialize, persist_until
from epsjoin.spark.rows.rows import FrameRows, to_frame


def dbscan_pairs(
    pairs: DataFrame,
    frame: DataFrame,
    *,
    min_pts: int,
    id: str = "id",
    left_id: str = "left_id",
    right_id: str = "right_id",
    distance: str | None = "distance",
) -> DataFrame:
    """Find the density clusters (DBSCAN) of records of which all pairs of neighbours are known.

    What a neighbour is, the caller decides: strings or documents within some edits, records within eps in
    space and in time, pairs that a model has confirmed.

    Parameters
    ----------
    pairs : any frame of a classic session with the columns ``left_id``, ``right_id`` and ``distance``, each
        pair once and with its smaller id on the left, as the joins return them.
    frame : any frame with the id of every record, of those without a neighbour, too. Its other columns are
        not read.
    min_pts : minimum number of neighbours, the record itself included, that makes it a core point; at least
        1. With 2, clusters are the connected components of the pairs.
    id : name of the column of ``frame`` that holds ids: whole numbers, distinct for each row.
    left_id, right_id : names of the columns of ``pairs`` that hold ids.
    distance : name of a column of ``pairs`` that holds numbers of at least 0. None: all pairs are equally
        far.

    Returns
    -------
    DataFrame
        One row for each row of ``frame``, as :func:`epsjoin.spark.frames.dbscan` returns them: ``id``,
        ``cluster_id``, ``role`` and ``degree``. A border point belongs to the cluster of its nearest core
        point, of several to that of the smallest id. The frame is persisted: call ``unpersist()`` on it when
        you no longer need it.

    Raises
    ------
    ArgumentError
        A column is missing or has a wrong type; min_pts is below 1; an id comes twice in ``frame``, or is -1,
        which stands for noise.
    DataRefusedError
        A value is null; a distance is negative or NaN; the left id of a pair is not below its right one; a
        pair comes twice.
    TableError
        The pairs name an id that is not in ``frame``.

    See Also
    --------
    epsjoin.dbscan_pairs : the same on arrays.
    dbscan : the same of points, by a metric.

    Notes
    -----
    Everything is computed at the call. Spark persists the pairs meanwhile, in memory and on disk. One shuffle
    of them shows whether a pair comes twice. The notes of :func:`epsjoin.spark.frames.dbscan` say how the
    clusters are computed.
    """
    check_count("min_pts", min_pts)
    ids = frame.select(column_of_ids(frame, id))
    ends = [column_of_ids(pairs, left_id).alias("left_id"), column_of_ids(pairs, right_id).alias("right_id")]
    far = F.lit(0.0)
    if distance is not None:
        kind = type_of(pairs, distance)
        if not isinstance(kind, T.NumericType):
            raise ArgumentError(f"the column {distance!r} must hold numbers, not {kind.simpleString()}")
        far = F.col(distance).cast("double")
    with ExitStack() as done:
        known = persist_until(ids, done)
        if known.where(F.col("id").isNull()).limit(1).count():
            raise DataRefusedError(f"the id of a row is null in the column {id!r}")
        held = persist_until(pairs.select(*ends, far.alias("distance")), done)
        _check(held)
        found = cluster_pairs(FrameRows(known), known.count(), FrameRows(held), min_pts, done)
        return materialize(to_frame(found))


def _check(pairs: DataFrame) -> None:
    """Refuse pairs that no join would give."""
    left, right, distance = (F.col(name) for name in ("left_id", "right_id", "distance"))
    wrong = {
        "has a value that is null": left.isNull() | right.isNull() | distance.isNull(),
        "must have the smaller id on the left, and no record twice": left >= right,
        "must have a distance of at least 0": (distance < 0.0) | F.isnan(distance),
    }
    for says, is_wrong in wrong.items():
        for row in pairs.where(is_wrong).limit(1).collect():
            raise DataRefusedError(f"a pair {says}: ({row['left_id']}, {row['right_id']}, {row['distance']})")
    counted = pairs.groupBy("left_id", "right_id").count()
    for row in counted.where(F.col("count") > 1).limit(1).collect():
        raise DataRefusedError(f"the pair ({row['left_id']}, {row['right_id']}) comes {row['count']} times")
