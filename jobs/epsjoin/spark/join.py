"""Similarity joins of DataFrames: a frame of points in, a frame of pairs out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.lake import delta_log, parquet, schemas, uris
from epsjoin.lake.parquet import Target
from epsjoin.lake.sample import Sample
from epsjoin.local.join.arrays import HOW, iter_join
from epsjoin.local.join.estimate import Estimate
from epsjoin.local.join.estimate import estimate as estimate_points
from epsjoin.local.join.scale import scale_points
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import plan_join
from epsjoin.params import RunParams
from epsjoin.spark import scan
from epsjoin.spark.fit_epsilon import what_fits
from epsjoin.spark.merge_join import PAIRS, join_files, join_frame, make_joiner
from epsjoin.spark.points import Points, points_of, refuse_changed
from epsjoin.spark.replicate import (
    MOST_FILES,
    REPLICAS,
    cuts_of,
    encode,
    n_files,
    replicate_frame,
)
from epsjoin.spark.rows import Rows, Written, to_frame, write_files

MAX_PAIRS = 1_000_000_000
_ENOUGH_PAIRS = 1_000_000  # of two samples: more would only take longer
_LEAST_SAMPLE = 1_000  # rows of either frame
_LEAST_PART_SECONDS = 0.05  # in a session that stands, to plan a part and start its task is not nothing


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
    into = None if to is None else _target(uris.lake_uri(to, "to").rstrip("/"))
    if into is not None:
        delta_log.refuse_other_columns(into)
    points = points_of(left, columns, id)
    if right is None:
        plan = plan_frames(points, None, eps, chosen, weights, cuts, max_pairs)
        points = points.scaled(eps, weights, chosen)
        if into is not None and n_files(points, plan) <= MOST_FILES:
            return _joined_by_files(points, plan, into, max_pairs)
        joined = join_frame(replicate_frame(points, plan), plan, points.n, max_pairs, raises=into is None)
        return (
            to_frame(joined) if into is None else _replace(into, write_files(into, joined), max_pairs, left)
        )
    others = points_of(right, right_columns or columns, right_id or id)
    plan = plan_frames(points, others, eps, chosen, weights, cuts, max_pairs)
    packets = replicate_frame(points.scaled(eps, weights, chosen), plan, is_right=False).union(
        replicate_frame(others.scaled(eps, weights, chosen), plan, is_right=True)
    )
    joined = join_frame(packets, plan, points.n + others.n, max_pairs, raises=into is None)
    if into is not None:
        return _replace(into, write_files(into, joined), max_pairs, left)
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
    wished, [(_, sample)] = _cuts_and_samples(points, None, cuts)
    return estimate_points(sample, eps, metric, weights=weights, n_rows=points.n, cuts=wished)


def join_points(
    points: Points,
    eps: float | ArrayLike,
    metric: Metric,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    max_pairs: int,
) -> Rows:
    """Join points with themselves; see :func:`similarity_join`."""
    plan = plan_frames(points, None, eps, metric, weights, cuts, max_pairs)
    packets = replicate_frame(points.scaled(eps, weights, metric), plan)
    return join_frame(packets, plan, points.n, max_pairs)


def _joined_by_files(points: Points, plan: JoinPlan, into: Target, max_pairs: int) -> DataFrame:
    """The pairs, read from the table that the tasks wrote them to; replicas go from task to task in files."""
    with parquet.scratch(into, schemas.arrow_schema(REPLICAS), "part") as replicas:
        encoded = encode(points, plan, replicas)
        refuse_changed(points.n, encoded.counters.get("points", 0))
        work = make_joiner(plan.to_json(), replicas.location, into, max_pairs)
        written = join_files(points.frame.sparkSession, encoded.files, work)
    return _replace(into, written, max_pairs, points.frame)


def _target(location: str) -> Target:
    return Target("similarity_join", location, schemas.arrow_schema(PAIRS), (), "")


def _replace(into: Target, written: Written, max_pairs: int, frame: DataFrame) -> DataFrame:
    """Make a table of what the tasks wrote, and read it in the session of the frame."""
    if written.rows > max_pairs:
        parquet.forget_files(into, written.files)
        raise BudgetError(
            f"{written.rows:,} pairs at least were found, {max_pairs:,} are allowed (max_pairs)"
        )
    return scan.read_replaced(frame.sparkSession, into, delta_log.replace_table(into, written.files))


def plan_frames(
    points: Points,
    others: Points | None,
    eps: float | ArrayLike,
    metric: Metric,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    max_pairs: int,
) -> JoinPlan:
    """Plan a join of frames on a sample of both, and refuse it where it would be too large.

    Raises
    ------
    ArgumentError, BudgetError, DataRefusedError
        As :func:`similarity_join`.
    """
    n = points.n + (0 if others is None else others.n)
    wished, samples = _cuts_and_samples(points, others, cuts)
    ids, raw = (np.concatenate(column) for column in zip(*samples, strict=True))
    sample, threshold = scale_points(raw, eps, weights, metric)
    plan = plan_join(sample, ids, n, threshold, metric, wished)
    if others is not None:
        of_left, of_right = np.split(sample, [len(samples[0][0])])
        scale = points.n * others.n / max(1, len(of_left) * len(of_right))
        plan = replace(plan, expected_pairs=_count(of_left, of_right, threshold, metric) * scale)
    if plan.expected_pairs > max_pairs:
        fits = "take a smaller eps, or allow more"
        if others is None:
            fits = what_fits(sample, metric, points.n, max_pairs, wished.seed)
        raise BudgetError(
            f"about {plan.expected_pairs:,.0f} pairs are expected within eps {threshold:g}, {max_pairs:,} "
            f"are allowed (max_pairs); {fits}"
        )
    return plan


def _cuts_and_samples(points: Points, others: Points | None, cuts: Cuts | None) -> tuple[Cuts, list[Sample]]:
    """The cuts, by default those of the jobs in fewer parts where work is little; a sample of each side."""
    n = points.n + (0 if others is None else others.n)
    drawn = cuts or cuts_of(RunParams(), n, 1)
    samples = _samples(points, others, drawn)
    dimensions = [coordinates.shape[1] for ids, coordinates in samples if len(ids)] or [1]
    if min(dimensions) != max(dimensions):
        raise ArgumentError(
            f"left and right must have the same dimensions, not {dimensions[0]} and {dimensions[1]}"
        )
    if cuts is None:
        wished = replace(cuts_of(RunParams(), n, dimensions[0]), least_part_seconds=_LEAST_PART_SECONDS)
        if wished.sample_rows > drawn.sample_rows:  # for very many parts
            samples = _samples(points, others, wished)
        drawn = wished
    return drawn, [(ids, coordinates.reshape(-1, dimensions[0])) for ids, coordinates in samples]


def _samples(points: Points, others: Points | None, cuts: Cuts) -> list[Sample]:
    rows = cuts.sample_rows
    if others is None:
        return [points.sample(rows, cuts.seed)]
    # of a side that is small beside the other, still enough to see its pairs
    least = min(_LEAST_SAMPLE, rows // 2)
    share = points.n / max(1, points.n + others.n)
    of_left = points.sample(min(max(round(rows * share), least), rows - least), cuts.seed)
    return [of_left, others.sample(rows - len(of_left[0]), cuts.seed)]


def _count(left: NDArray[np.float64], right: NDArray[np.float64], eps: float, metric: Metric) -> float:
    """Pairs of two samples; where they are many, of a share of the right one's rows, scaled."""
    looked = len(right)
    while True:
        found = 0
        for batch in iter_join(left, right[:looked], eps, metric):
            found += len(batch.left)
            if found > _ENOUGH_PAIRS and looked > 16:
                break
        else:
            return found * len(right) / looked if looked else 0.0
        looked = max(16, looked // 8)
