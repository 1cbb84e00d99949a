"""The public functions on DataFrames, for people with a Spark session of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from numpy.typing import ArrayLike
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from epsjoin.errors import ArgumentError
from epsjoin.lake import transactions
from epsjoin.local.arguments import check_choice, check_count
from epsjoin.local.coordinates import check_dimensions
from epsjoin.local.join.arrays import HOW
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.one_sided import planned
from epsjoin.local.scale import check_weights, weigh_metric
from epsjoin.spark.cluster.from_pairs import cluster_pairs, refuse_noise_id
from epsjoin.spark.join.frames import (
    MAX_PAIRS,
    as_limit,
    begin_table,
    join_by_files,
    join_by_shuffle,
    join_planned,
    join_points,
    target_at,
)
from epsjoin.spark.join.plan import check_cuts, plan_frames, plan_pairs
from epsjoin.spark.join.replicate import MAX_FILES, n_files
from epsjoin.spark.join.semi import Sides, keep_rows
from epsjoin.spark.neighbours.rank import rank_points
from epsjoin.spark.neighbours.ranked import Scoring
from epsjoin.spark.neighbours.search import search_nearest
from epsjoin.spark.points.columns import points_of, points_of_both
from epsjoin.spark.points.points import refuse_changed
from epsjoin.spark.rows.persist import materialize, persist_until
from epsjoin.spark.rows.rows import to_frame, to_ipc_rows


def dbscan(
    frame: DataFrame,
    *,
    eps: float | ArrayLike,
    min_pts: int,
    columns: str | Sequence[str],
    id: str = "id",
    metric: str | Metric = "euclidean",
    weights: ArrayLike | None = None,
    cuts: Cuts | None = None,
    max_pairs: int = MAX_PAIRS,
) -> DataFrame:
    """Find density clusters (DBSCAN) among the rows of a frame.

    Parameters
    ----------
    frame, eps, columns, id, metric, weights, cuts, max_pairs : see
        :func:`epsjoin.spark.frames.similarity_join`.
    min_pts : number of points within eps, the point itself included, that make a point core; at least 1.

    Returns
    -------
    DataFrame
        One row for each row of ``frame``: ``id`` (long); ``cluster_id`` (long: the smallest core id of the
        cluster, -1 for noise); ``role`` ("core", "border", "noise"); ``degree`` (long: number of points
        within eps, the point itself included). A border point belongs to the cluster of its nearest core
        point, of several to that of the smallest id. The rows are the same under every partitioning. The
        frame is persisted: call ``unpersist()`` on it when you no longer need it.

    Raises
    ------
    ArgumentError, BudgetError, DataRefusedError
        See :func:`epsjoin.spark.frames.similarity_join`. Also ArgumentError if min_pts is below 1 or an id is
        -1, which stands for noise.

    Notes
    -----
    Everything is computed at the call. The join runs once; until the clusters are computed, Spark persists
    its pairs in memory and on disk, as Arrow IPC streams of many pairs each. Files of 16 bytes a point, from
    which Spark would make lost rows again, stay in the session's folder until the session ends.
    """
    check_count("min_pts", min_pts)
    max_pairs = _check_join(cuts, max_pairs)
    chosen = get_metric(metric)
    points = points_of(frame, columns, id, chosen)
    refuse_noise_id(points)
    pairs = to_ipc_rows(join_points(points, eps, chosen, weights, cuts, max_pairs))
    with ExitStack() as done:
        persist_until(pairs.frame, done)
        return materialize(to_frame(cluster_pairs(points.ids(), points.n, pairs, min_pts, done)))


def outliers(
    frame: DataFrame,
    *,
    eps: float,
    min_pts: int,
    columns: str | Sequence[str],
    k: int | None = None,
    id: str = "id",
    metric: str | Metric = "euclidean",
    cuts: Cuts | None = None,
    max_pairs: int = MAX_PAIRS,
) -> DataFrame:
    """Score and rank every row of a frame by how far out it lies.

    Parameters
    ----------
    frame, eps, columns, id, metric, cuts, max_pairs : see :func:`epsjoin.spark.frames.similarity_join`.
    min_pts : number of points within eps, the point itself included, that make a point core.
    k : number of neighbours that the local outlier factor uses; by default ``min_pts - 1``, at least 1.

    Returns
    -------
    DataFrame
        One row for each row of ``frame``, the furthest out first: ``id``, ``rank`` (from 1: the largest LOF
        first, then the largest k-distance, then the smallest id), ``lof`` and ``k_distance`` (those of
        :func:`epsjoin.lof` for the rows in the order of their ids, which also orders neighbours at the same
        distance; they do not depend on eps, and are null if there are no k other rows), ``degree``,
        ``is_noise``, ``dimensions`` (the coordinates that deviate most, with their robust z-score; null
        beyond the first 10,000 ranks). The frame is persisted: call ``unpersist()`` on it when you no longer
        need it.

    Raises
    ------
    ArgumentError, BudgetError, DataRefusedError
        See :func:`epsjoin.spark.frames.dbscan`. Also ArgumentError if k is below 1.

    Notes
    -----
    Everything is computed at the call. The clusters are found first, as by
    :func:`epsjoin.spark.frames.dbscan`.
    """
    check_count("min_pts", min_pts)
    n_neighbours = max(1, min_pts - 1) if k is None else check_count("k", k)
    max_pairs = _check_join(cuts, max_pairs)
    chosen = get_metric(metric)
    threshold = chosen.check_eps(eps)
    points = points_of(frame, columns, id, chosen)
    refuse_noise_id(points)
    pairs = to_ipc_rows(join_points(points, eps, chosen, None, cuts, max_pairs))
    with ExitStack() as done:
        persist_until(pairs.frame, done)
        clusters = cluster_pairs(points.ids(), points.n, pairs, min_pts, done)
        _, sample = points.sample(Cuts().sample_rows, Cuts().seed)
        dimensions, names = sample.shape[1], points.reading.names
        if len(names) != dimensions:
            names = tuple(f"{names[0]}[{i}]" for i in range(dimensions))
        scoring = Scoring(threshold, chosen, n_neighbours, names)
        ranked = rank_points(points.of_dimensions(dimensions), sample, clusters, pairs, scoring, done)
        return materialize(to_frame(ranked).orderBy("rank"))


def knn_join(
    left: DataFrame,
    right: DataFrame | None,
    k: int,
    *,
    columns: str | Sequence[str],
    id: str = "id",
    metric: str | Metric = "euclidean",
    weights: ArrayLike | None = None,
    right_columns: str | Sequence[str] | None = None,
    right_id: str | None = None,
) -> DataFrame:
    """Find the k nearest rows of ``right`` for every row of ``left``.

    Parameters
    ----------
    left, right : frames of a classic session that have the same rows whenever they are read. With None as
        ``right``, the neighbours are other rows of ``left``: a row is not its own neighbour, but others equal
        to it are.
    k : number of neighbours, 1 to the number of rows that can be neighbours.
    columns, id, metric, weights, right_columns, right_id : see
        :func:`epsjoin.spark.frames.similarity_join`.

    Returns
    -------
    DataFrame
        k rows for each row of ``left``, in no particular order: ``left_id`` and ``right_id`` (long),
        ``distance`` (double) and ``nth`` (int, 1 for the nearest). Of rows at the same distance the smallest
        ``right_id`` comes first. The rows are the same under every partitioning. The frame is persisted: call
        ``unpersist()`` on it when you no longer need it.

    Raises
    ------
    ArgumentError
        An argument or column is wrong, k is larger than the number of rows that can be neighbours, a frame
        belongs to Spark Connect, or, with None as ``right``, rows with one id are neighbours.
    DataRefusedError
        A point of the sample has another number of dimensions than most, a coordinate that is null or not
        finite, or one for which the metric is not defined. For other rows this fails a task, and Spark's
        error contains our sentence. Or a frame had another number of rows when it was read again.

    See Also
    --------
    epsjoin.knn_join : the same on arrays.

    Notes
    -----
    Everything is computed at the call: both frames are counted, ``right`` is sampled, and its rows go through
    two shuffles. For each row of ``left``, the neighbours are searched in its own cell of space, then in
    those that are nearer than the k-th neighbour found there. In many dimensions that are all alike, these
    are most cells.
    """
    check_count("k", k)
    chosen = get_metric(metric)
    queries, others = points_of_both(left, right, columns, id, right_columns, right_id, chosen)
    points = queries if others is None else others
    n_others = points.n - (right is None)
    if not queries.n:
        n_others = max(k, n_others)  # there are no queries
    if k > n_others:
        raise ArgumentError(f"k must be at most the number of other rows, {max(0, n_others)}, not {k}")
    _, sample = points.sample(Cuts().sample_rows, Cuts().seed)
    if queries.reading.dimensions is not None:
        check_dimensions(left=queries.reading.dimensions, right=sample.shape[1])
    queries, points = (each.of_dimensions(sample.shape[1]) for each in (queries, points))
    # a frame without rows has any number of dimensions
    given = check_weights(chosen, sample.shape[1], weights) if len(sample) else None
    if given is not None:
        chosen = weigh_metric(chosen, sample, given)
    read = Observation()
    if right is not None:
        observed = points.frame.observe(read, F.count("*").alias("n"))
        points = replace(points, make_frame=lambda: observed)
    near = search_nearest(None if right is None else queries, points, sample, k, chosen)
    found = near.withColumnsRenamed({"id": "left_id", "neighbour": "right_id"})

    of_itself = Observation()
    if right is None:
        is_itself = F.col("left_id") == F.col("right_id")
        found = found.observe(of_itself, F.count_if(is_itself).alias("n"))

    def check(n: int) -> None:
        refuse_changed(queries.n, n / k)
        if right is not None and queries.n:  # without queries, Spark may not have read it
            refuse_changed(points.n, read.get["n"])
        if right is None and n and of_itself.get["n"]:
            raise ArgumentError(
                f"in the column {id!r} an id comes twice, so that a row would be its own neighbour; every "
                "row needs one of its own"
            )

    return materialize(found, check)


def similarity_join(
    left: DataFrame,
    right: DataFrame | None = None,
    *,
    eps: float | ArrayLike,
    columns: str | Sequence[str],
    id: str = "id",
    metric: str | Metric = "euclidean",
    how: str = "inner",
    right_columns: str | Sequence[str] | None = None,
    right_id: str | None = None,
    weights: ArrayLike | None = None,
    cuts: Cuts | None = None,
    max_pairs: int = MAX_PAIRS,
    to: str | None = None,
    increments: float | None = None,
) -> DataFrame:
    """Find every pair of rows within eps, of one frame with itself or of two frames.

    Parameters
    ----------
    left, right : frames of a classic session that have the same rows whenever they are read. Without
        ``right``, ``left`` is joined with itself.
    eps : threshold in the metric's unit, finite and above 0. A pair belongs to the result if its distance, as
        it is reported, is at most eps. Or (d,) one per dimension; see :func:`epsjoin.self_join`.
    columns : the coordinates: names of columns of numbers, or the name of one column that holds whole points
        (an array of numbers, a vector of Spark ML, binary of little-endian float64). Distances are
        computed in float64; arrays of floats travel as they are.
    id : name of a column of whole numbers, which must be distinct. This is not checked, but a table that
        grows (``increments``) stays incomplete where two rows of its first pairs have one id.
    metric : a name for :func:`epsjoin.get_metric`, or a metric that it returned (minkowski).
    how : "inner" for the pairs; "left", "right" or "outer" also for the rows without a partner, with nulls;
        "semi" or "anti" for the rows of ``left``, with all their columns, that have a partner, or have none.
        Without ``right`` only "inner", "semi" and "anti" are possible; the partners are then other rows.
    right_columns, right_id : names of the columns in ``right``; by default the same as in ``left``.
    weights : (d,) numbers of at least 0, the weights of the dimensions; see :func:`epsjoin.self_join`.
    cuts : how to cut the join into parts. By default planned cuts into eight parts; into more if these would
        not fit into a Python worker of 1 GB, into fewer if each would have hardly any work.
    max_pairs : the join is refused if more pairs are expected, and stops if more are found in one part. With
        ``to`` it also stops as soon as the parts that are done leave no doubt that there will be more. It
        does not limit "semi" and "anti", which make no pairs; their ``cuts`` are always planned ones.
    to : folder of a Delta table, as a URI or an absolute path; only with ``how = "inner"``. The join then
        runs at the call, and the tasks write the pairs to this table themselves, which is faster than Spark's
        own writer. The whole content of the table is replaced in one transaction; a table with other columns
        than those of pairs is refused.
    increments : seconds; only with ``to``. The first pairs, at most 10,000, of some rows of the plan's
        sample, are in the table before a part is joined. The pairs of finished parts are added each time this
        number of seconds has passed, as a version of the table, while other parts are joined. The table's
        property ``epsjoin.complete`` is "false" until all pairs are in it. By default there is one
        transaction, when all parts are done.

    Returns
    -------
    DataFrame
        ``left_id``, ``right_id`` (long) and ``distance`` (double), in no particular order; for one frame
        ``left_id < right_id``. The frame is lazy: each use of it runs the join again, unless it is persisted.
        With ``to``: the pairs as read from the table.

    Raises
    ------
    ArgumentError
        An argument or column is wrong, or a frame belongs to Spark Connect.
    BudgetError
        More than ``max_pairs`` pairs are expected; for one frame the message has the largest eps that is
        allowed. With ``to``, also if more were found, or are certain to come; then the message has that eps
        for two frames, too.
    DataRefusedError
        A column of whole points holds none; or a point of the sample has another number of dimensions than
        most, a coordinate that is null or not finite, or one for which the metric is not defined. With ``to``
        and one frame, also if the frame had another number of rows when it was read again. With
        ``increments``, also if the parts do not find each of the first pairs once: ids are not distinct, or
        rows were different when they were read again.
    TableError
        ``to`` holds a table with other columns or with partitions, or cannot be read or written. It stays as
        it was.

    Notes
    -----
    Some refusals are known only while tasks run. They fail a task, and Spark's error contains our sentence: a
    point outside of the sample is not valid (with its id), a part has more than ``max_pairs`` pairs, or a
    frame has more or fewer rows than were counted.

    The call counts the rows and draws a sample of them for the plan; if the plan has very many parts, a
    larger sample follows. Between points and pairs there is one shuffle, which moves each point and its
    replicas: some 1.1 to 3 rows per point. A task holds one part; see :class:`epsjoin.Cuts`.

    From 32 dimensions on, euclidean and cosine, without weights and cuts, go through products of blocks of
    rows where that is expected to cost less: the same pairs and distances. A pair of blocks is a task, and
    the shuffle moves each point to all tasks of its block; :func:`epsjoin.spark.estimate` says what that
    costs. More than 10,000 tasks are refused. "semi" and "anti" are swept.

    "semi" and "anti" send each row of ``left`` to one part, and the rows of ``right`` to all parts where they
    may be partners; the part knows all about its left rows. If 8 bytes for each row of ``left`` are within
    ``spark.sql.autoBroadcastJoinThreshold``, the ids that the parts find are broadcast, and these rows do not
    move. If not, each row of ``left`` travels whole with its point, through the one shuffle; but rows with a
    column of a type that Python cannot give back, such as vectors, are shuffled once more.

    With ``to``, the replicas of one frame are not shuffled but written to a folder below the table's, unless
    they would be more than 10,000 files. This folder is deleted at the end. If that fails, or if the process
    is killed, its files belong to no table, and Delta's VACUUM of the table deletes them. The same holds for
    files of pairs that were written but not yet in a version when the process was killed.

    With ``increments``, the first version replaces what was in the table, and later ones add to it: a reader
    of its versions (``spark.readStream``) that begins with the first gets each pair once. A join that fails
    or is killed leaves the table incomplete, with the pairs that it had; the same call replaces them. If two
    joins add to the same table at the same time, one is refused (TableError).

    ``similarity_join(df, eps=0.5, columns=["x", "y"])`` returns every pair of rows of ``df``.
    ``similarity_join(a, b, eps=5.0, columns=["lat", "lon"], metric="haversine", how="anti")`` returns the
    rows of ``a`` that are more than 5 km from all of ``b``.
    """
    chosen = get_metric(metric)
    check_choice("how", how, HOW)
    max_pairs = _check_join(cuts, max_pairs)
    if right is None and how not in ("inner", "semi", "anti"):
        raise ArgumentError(
            f"how = {how!r} needs two frames; a frame with itself has how = 'inner', 'semi' or 'anti'"
        )
    if to is not None and how != "inner":
        raise ArgumentError(
            f"to = {to!r} is for how = 'inner', not {how!r}; write the frame that is returned"
        )
    if increments is not None:
        if to is None:
            raise ArgumentError(f"increments = {increments!r} is for a table that grows: give to, too")
        if not (isinstance(increments, int | float) and 0 <= increments < math.inf):
            raise ArgumentError(f"increments must be a number of seconds of at least 0, not {increments!r}")
    into = None if to is None else target_at(to)
    if into is not None:
        transactions.check_replaceable(into)
    points, others = points_of_both(left, right, columns, id, right_columns, right_id, chosen)
    if how in ("semi", "anti"):
        one_sided = plan_frames(points, others, eps, chosen, weights, cuts and planned(cuts), math.inf)
        return keep_rows(left, columns, id, Sides(points, others), one_sided, how)
    found = plan_pairs(points, others, eps, chosen, weights, cuts, max_pairs)
    plan = found.plan
    if into is not None:
        table = begin_table(found, into, increments)
        if others is None and isinstance(plan, JoinPlan) and n_files(points, plan) <= MAX_FILES:
            return join_by_files(points, plan, table, max_pairs)
        return join_by_shuffle(points, others, plan, table, max_pairs)
    rows = to_frame(join_planned(points, others, plan, max_pairs))
    for side, ids in (("left", points), ("right", others)):
        if ids is not None and how in (side, "outer"):
            named, given = f"{side}_id", F.col("id")
            whole = rows.join(ids.frame.select("id"), F.col(named) == given, "full")
            # an id without a pair comes from the frame; a row without a partner has none on the other side
            rows = whole.withColumn(named, F.coalesce(given, named)).drop("id")
    return rows


def _check_join(cuts: Cuts | None, max_pairs: float) -> int:
    """Check the arguments of every join, before rows are counted; return ``max_pairs``."""
    check_cuts(cuts)
    return as_limit("max_pairs", max_pairs)
