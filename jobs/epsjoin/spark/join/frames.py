"""The join of frames, planned on samples: what the functions on DataFrames share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from pyspark.sql import DataFrame

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.lake import delta_log, parquet, schemas
from epsjoin.lake.parquet import Target
from epsjoin.lake.sample import Sample
from epsjoin.local.epsilon.limits import what_fits
from epsjoin.local.join.scale import scale_points
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.expected import count_sample_pairs
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.sizes import cuts_of
from epsjoin.params import RunParams
from epsjoin.spark import scan
from epsjoin.spark.join.merge_join import PAIRS, join_files, join_frame, make_joiner
from epsjoin.spark.join.replicas import REPLICAS
from epsjoin.spark.join.replicate import encode
from epsjoin.spark.join.shuffle import replicate_frame
from epsjoin.spark.points import Points, refuse_changed
from epsjoin.spark.rows import Rows
from epsjoin.spark.write import Written

MAX_PAIRS = 1_000_000_000
_MAX_COUNTED_PAIRS = 1_000_000
"""Maximum number of pairs that are counted between the samples of two frames: more only take longer."""
_LEAST_SAMPLE = 1_000  # rows of either frame
_LEAST_PART_SECONDS = 0.05  # in a session that stands, to plan a part and start its task is not nothing


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


def join_by_files(points: Points, plan: JoinPlan, into: Target, max_pairs: int) -> DataFrame:
    """The pairs, read from the table that the tasks wrote them to; replicas go from task to task in files."""
    with parquet.scratch(into, schemas.arrow_schema(REPLICAS), "part") as replicas:
        encoded = encode(points, plan, replicas)
        refuse_changed(points.n, encoded.counters.get("points", 0))
        work = make_joiner(plan.to_json(), replicas.location, into, max_pairs)
        written = join_files(points.frame.sparkSession, encoded.files, work)
    return replace_pairs(into, written, max_pairs, points.frame)


def target_at(location: str) -> Target:
    """The table of pairs in a folder, outside of a lake."""
    return Target("similarity_join", location, schemas.arrow_schema(PAIRS), (), {})


def replace_pairs(into: Target, written: Written, max_pairs: int, frame: DataFrame) -> DataFrame:
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
    wished, samples = draw_samples(points, others, cuts)
    ids, raw = (np.concatenate(column) for column in zip(*samples, strict=True))
    sample, threshold = scale_points(raw, eps, weights, metric)
    plan = plan_join(sample, ids, n, threshold, metric, wished)
    if others is not None:
        of_left, of_right = np.split(sample, [len(samples[0][0])])
        scale = points.n * others.n / max(1, len(of_left) * len(of_right))
        counted = count_sample_pairs(
            of_right, threshold, metric, left=of_left, max_pairs=_MAX_COUNTED_PAIRS, min_rows=16, divisor=8
        )
        pairs = counted.pairs * len(of_right) / counted.rows if counted.rows else 0.0
        plan = replace(plan, expected_pairs=pairs * scale)
    if plan.expected_pairs > max_pairs:
        fits = "take a smaller eps, or allow more"
        if others is None:
            fits = what_fits(sample, metric, points.n, max_pairs, wished.seed)
        raise BudgetError(
            f"about {plan.expected_pairs:,.0f} pairs are expected within eps {threshold:g}, {max_pairs:,} "
            f"are allowed (max_pairs); {fits}"
        )
    return plan


def draw_samples(points: Points, others: Points | None, cuts: Cuts | None) -> tuple[Cuts, list[Sample]]:
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
