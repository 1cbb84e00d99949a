"""The functions on DataFrames, for people with a session of their own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from numpy.typing import ArrayLike
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.errors import ArgumentError
from epsjoin.lake import delta_log, uris
from epsjoin.local.arguments import check_count
from epsjoin.local.epsilon.fit import EpsilonFit
from epsjoin.local.epsilon.fit import fit_epsilon as fit_points
from epsjoin.local.join.arrays import HOW
from epsjoin.local.join.estimate import Estimate
from epsjoin.local.join.estimate import estimate as estimate_points
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.spark.cluster.from_pairs import cluster_pairs, refuse_noise_id
from epsjoin.spark.join.frames import MAX_PAIRS, join_by_files, join_points, replace_pairs, target_at
from epsjoin.spark.join.merge_join import join_frame
from epsjoin.spark.join.plan import draw_samples, plan_frames
from epsjoin.spark.join.replicate import MAX_FILES, n_files
from epsjoin.spark.join.shuffle import replicate_frame
from epsjoin.spark.neighbours.rank import rank_points
from epsjoin.spark.persist import materialize, persist_until
from epsjoin.spark.points import points_of
from epsjoin.spark.rows import to_frame, to_ipc_rows
from epsjoin.spark.write import write_files


def fit_epsilon(
    frame: DataFrame,
    *,
    columns: str | Sequence[str],
    id: str = "id",  # noqa: A002 - what people call it
    metric: str | Metric = "euclidean",
    sample_rows: int = 20_000,
    seed: int = 0,
    max_k: int = 64,
) -> EpsilonFit:
    """The power law of pair counts of a frame's rows, from a sample: for choosing eps.

    Parameters
    ----------
    frame, columns, id, metric : see :func:`epsjoin.spark.frames.similarity_join`.
    sample_rows, seed, max_k : see :func:`epsjoin.fit_epsilon`.

    Returns
    -------
    EpsilonFit
        Of all rows: ``expected_pairs(eps)``, ``eps_for(neighbours=...)``, ``eps_for(pairs=...)``, ...

    Raises
    ------
    ArgumentError
        A wrong argument or column; the points follow no power law.
    DataRefusedError
        A coordinate of the sample is null or not finite.
    """
    points = points_of(frame, columns, id)
    _, sample = points.sample(sample_rows, seed)
    return fit_points(sample, metric, sample_rows, seed, points.n, max_k)


def dbscan(
    frame: DataFrame,
    *,
    eps: float | ArrayLike,
    min_pts: int,
    columns: str | Sequence[str],
    id: str = "id",  # noqa: A002 - what people call it
    metric: str | Metric = "euclidean",
    weights: ArrayLike | None = None,
    cuts: Cuts | None = None,
    max_pairs: int = MAX_PAIRS,
) -> DataFrame:
    """Density clusters of the rows of a frame.

    Parameters
    ----------
    frame, eps, columns, id, metric, weights, cuts, max_pairs : see
        :func:`epsjoin.spark.frames.similarity_join`.
    min_pts : points within eps, the point itself included, that make a point core; at least 1.

    Returns
    -------
    DataFrame
        ``id`` (long), ``cluster_id`` (long: the smallest core id of the cluster, -1 for noise), ``role``
        ("core", "border", "noise"), ``degree`` (long: points within eps, the point itself included); a row
        for every row. A border point is in the cluster of its nearest core point, ties: the smallest id. The
        same under every partitioning. Persisted: call ``unpersist()`` on it when it is done with.

    Raises
    ------
    ArgumentError, BudgetError, DataRefusedError
        See :func:`epsjoin.spark.frames.similarity_join`; min_pts is below 1; an id is -1, which is noise.

    Notes
    -----
    All is computed at the call: the join once, its pairs kept by Spark in memory and on disk, in few rows of
    many pairs each, until the clusters are there.
    """
    check_count("min_pts", min_pts)
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    points = points_of(frame, columns, id)
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
    id: str = "id",  # noqa: A002 - what people call it
    metric: str | Metric = "euclidean",
    cuts: Cuts | None = None,
    max_pairs: int = MAX_PAIRS,
) -> DataFrame:
    """How far out every row of a frame is.

    Parameters
    ----------
    frame, eps, columns, id, metric, cuts, max_pairs : see :func:`epsjoin.spark.frames.similarity_join`.
    min_pts : points within eps, the point itself included, that make a point core.
    k : neighbours that the local outlier factor looks at; by default ``min_pts - 1``, at least 1.

    Returns
    -------
    DataFrame
        A row for every row, furthest out first: ``id``, ``rank`` (from 1), ``lof``, ``k_distance`` (each null
        where it needs neighbours beyond eps), ``k_distance_above`` (eps, where ``k_distance`` is null),
        ``degree``, ``is_noise``, ``dimensions`` (the coordinates that deviate most, with their robust
        z-score).
        Persisted: call ``unpersist()`` on it when it is done with.

    Raises
    ------
    ArgumentError, BudgetError, DataRefusedError
        See :func:`epsjoin.spark.frames.dbscan`; k is below 1.

    Notes
    -----
    All is computed at the call, as by :func:`epsjoin.spark.frames.dbscan`, whose clusters it needs.
    """
    check_count("min_pts", min_pts)
    n_neighbours = max(1, min_pts - 1) if k is None else check_count("k", k)
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    points = points_of(frame, columns, id)
    refuse_noise_id(points)
    pairs = to_ipc_rows(join_points(points, eps, chosen, None, cuts, max_pairs))
    with ExitStack() as done:
        persist_until(pairs.frame, done)
        clusters = cluster_pairs(points.ids(), points.n, pairs, min_pts, done)
        _, sample = points.sample(Cuts().sample_rows, Cuts().seed)
        dimensions, names = sample.shape[1], points.reading.names
        if len(names) != dimensions:
            names = tuple(f"{names[0]}[{i}]" for i in range(dimensions))
        ranked = rank_points(
            points.of_dimensions(dimensions),
            sample,
            clusters,
            pairs,
            chosen.check_eps(eps),
            n_neighbours,
            names,
            done,
        )
        return materialize(to_frame(ranked).orderBy("rank"))


def similarity_join(
    left: DataFrame,
    right: DataFrame | None = None,
    *,
    eps: float | ArrayLike,
    columns: str | Sequence[str],
    id: str = "id",  # noqa: A002 - what people call it
    metric: str | Metric = "euclidean",
    how: str = "inner",
    right_columns: str | Sequence[str] | None = None,
    right_id: str | None = None,
    weights: ArrayLike | None = None,
    cuts: Cuts | None = None,
    max_pairs: int = MAX_PAIRS,
    to: str | None = None,
) -> DataFrame:
    """Every pair of rows within eps, of one frame with itself or of two.

    Parameters
    ----------
    left, right : frames of a classic session that give the same rows whenever they are read; without
        ``right``, ``left`` is joined with itself.
    eps : threshold in the metric's unit, finite and above 0; a pair at exactly eps belongs to the result. Or
        (d,) one per dimension: coordinates are divided by it, and within means a distance of at most 1.
    columns : the coordinates: names of columns of numbers, or of one column that holds whole points (an array
        of numbers, a vector of Spark ML, binary of little-endian float64). Computed in float64.
    id : a column of whole numbers, another in every row (not checked).
    metric : a name for :func:`epsjoin.get_metric`, or what it returned (minkowski).
    how : "inner"; "left", "right", "outer": also the rows without a partner, with nulls; "semi", "anti": the
        rows of ``left``, with all their columns, that have a partner, or none. One frame has inner only.
    right_columns, right_id : where ``right`` calls them otherwise.
    weights : (d,) numbers, at least 0: each term of the metric's sum (or maximum) is multiplied by its own.
    cuts : how to cut the join into parts; by default planned cuts into eight parts, more where these would
        not fit a Python worker of 1 GB, fewer where they would have hardly any work.
    max_pairs : refuse to begin when more are expected, and to go on in a part when more appear.
    to : folder of a Delta table, a URI or an absolute path; only with ``how = "inner"``. The pairs are found
        at once, and the tasks write them there themselves, which is faster than what Spark writes. All that
        was in the table is replaced, in one transaction; columns other than those of pairs are refused.

    Returns
    -------
    DataFrame
        ``left_id``, ``right_id`` (long), ``distance`` (double); of one frame ``left_id < right_id``. In no
        particular order. Lazy: pairs are found when it is used, and found again when it is used again, unless
        it is persisted. With ``to``: what was written.

    Raises
    ------
    ArgumentError
        A wrong argument or column; a frame of Spark Connect.
    BudgetError
        More than ``max_pairs`` pairs are expected; of one frame the message has the largest eps that fits.
        With ``to``: so many were found, too.
    DataRefusedError
        A column of whole points holds none; a point of the sample has another number of dimensions than most,
        a coordinate that is null or not finite. With ``to``, of one frame: it gave another number of rows
        when it was read again.
    TableError
        ``to`` holds a table of other columns, or a partitioned one, or cannot be read or written; it is as it
        was.

    Notes
    -----
    What shows only when the tasks work fails one of them, and comes as Spark's error with our sentence in it:
    a coordinate of any other row that is null or not finite, with the row's id; more than ``max_pairs`` pairs
    in one part; frames that give more or fewer rows than were counted.

    At the call the rows are counted and a sample of them is drawn, for the plan; of very many parts a larger
    one after it. Between points and pairs lies one shuffle, which moves each point once and its replicas:
    some 1.1 to 3 rows per point. A task holds one part; :class:`epsjoin.Cuts` says how parts are made.

    With ``to``, replicas of one frame are not shuffled, unless they were more than 10,000 files, but written
    to a folder below the table's, which is deleted at the end. Where that was not possible, or the process
    was killed, they are in no table, and Delta's VACUUM of the table deletes them.

    ``similarity_join(df, eps=0.5, columns=["x", "y"])`` gives every pair of rows of ``df``;
    ``similarity_join(a, b, eps=5.0, columns=["lat", "lon"], metric="haversine", how="anti")`` gives the rows
    of ``a`` that are more than 5 km from all of ``b``.
    """
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    if how not in HOW:
        raise ArgumentError(f"how must be one of {', '.join(HOW)}, not {how!r}")
    if right is None and how != "inner":
        raise ArgumentError(f"how = {how!r} needs two frames; a frame with itself has how = 'inner' only")
    if to is not None and how != "inner":
        raise ArgumentError(
            f"to = {to!r} is for how = 'inner', not {how!r}; write the frame that is returned"
        )
    into = None if to is None else target_at(uris.parse_lake_uri(to, "to").rstrip("/"))
    if into is not None:
        delta_log.check_replaceable(into)
    points = points_of(left, columns, id)
    if right is None:
        plan = plan_frames(points, None, eps, chosen, weights, cuts, max_pairs)
        points = points.scaled(eps, weights, chosen)
        if into is not None and n_files(points, plan) <= MAX_FILES:
            return join_by_files(points, plan, into, max_pairs)
        joined = join_frame(replicate_frame(points, plan), plan, points.n, max_pairs, raises=into is None)
        return (
            to_frame(joined)
            if into is None
            else replace_pairs(into, write_files(into, joined), max_pairs, left)
        )
    others = points_of(right, right_columns or columns, right_id or id)
    plan = plan_frames(points, others, eps, chosen, weights, cuts, max_pairs)
    packets = replicate_frame(points.scaled(eps, weights, chosen), plan, is_right=False).union(
        replicate_frame(others.scaled(eps, weights, chosen), plan, is_right=True)
    )
    joined = join_frame(packets, plan, points.n + others.n, max_pairs, raises=into is None)
    if into is not None:
        return replace_pairs(into, write_files(into, joined), max_pairs, left)
    pairs = to_frame(joined)
    if how in ("semi", "anti"):
        partners = pairs.select(F.col("left_id").alias("_left_id"))
        return left.join(partners, left[id] == partners["_left_id"], f"left_{how}")
    missing = F.lit(None).cast("long")
    whole = pairs
    if how in ("left", "outer"):
        alone = points.frame.join(pairs.select(F.col("left_id").alias("id")), "id", "left_anti")
        whole = whole.union(alone.select("id", missing, F.lit(None).cast("double")))
    if how in ("right", "outer"):
        alone = others.frame.join(pairs.select(F.col("right_id").alias("id")), "id", "left_anti")
        whole = whole.union(alone.select(missing, "id", F.lit(None).cast("double")))
    return whole


def estimate(
    frame: DataFrame,
    *,
    eps: float | ArrayLike,
    columns: str | Sequence[str],
    id: str = "id",  # noqa: A002 - what people call it
    metric: str | Metric = "euclidean",
    weights: ArrayLike | None = None,
    cuts: Cuts | None = None,
) -> Estimate:
    """Say what :func:`similarity_join` of a frame with itself would give and cost, from a sample.

    Parameters
    ----------
    frame, eps, columns, id, metric, weights, cuts : see :func:`similarity_join`.

    Returns
    -------
    Estimate
        Of all rows, under the cuts that the join would take; see :class:`epsjoin.Estimate`.

    Raises
    ------
    ArgumentError, DataRefusedError
        See :func:`similarity_join`.
    """
    points = points_of(frame, columns, id)
    wished, [(_, sample)] = draw_samples(points, None, cuts)
    return estimate_points(sample, eps, metric, weights=weights, n_rows=points.n, cuts=wished)
