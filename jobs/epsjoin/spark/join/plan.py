"""Plans of joins: of a run, and of frames; each sees a sample, and may refuse the join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.console import counted, in_unit, say
from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.lake.sample import Sample
from epsjoin.local.arguments import as_array
from epsjoin.local.coordinates import check_dimensions
from epsjoin.local.epsilon.limits import Expectation
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.block_planner import choose_products, plan_products, plan_run_in_blocks
from epsjoin.local.plan.blocks import BlockPlan
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.expectation.expected_parts import expect_parts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.sizes import cuts_of
from epsjoin.local.plan.two_tables import SampledSides
from epsjoin.local.product.blas import one_thread
from epsjoin.local.scale import scale_metric
from epsjoin.local.sweep.threads import in_ranges
from epsjoin.params import RunParams
from epsjoin.spark.job.job import Job
from epsjoin.spark.points.points import Points, right_seed

_MIN_SAMPLE_ROWS = 1_000
"""Minimum number of rows that are sampled of either frame."""

_MIN_PART_SECONDS = 0.05
"""Minimum seconds of work in a part of frames: planning a part and starting its task takes time, too, even in
a running session."""

_MAX_THREADS = 2
"""Number of threads that plan, while no task runs; more would wait for one another's Python."""


def expectation(job: Job, points: Points, sample: Floats | None = None) -> Expectation:
    """Make the one expectation of a run's pairs: ``fit_epsilon`` has the same.

    Parameters
    ----------
    sample : drawn with the run's seed, of at least ``sample_rows`` rows. It begins with the smaller sample,
        which would otherwise need a pass over all points.
    """
    params = job.params
    if sample is None:
        _, sample = points.sample(params.sample_rows, params.seed)
    few, metric = sample[: params.sample_rows], get_metric(job.lake.source.point_metric)
    return Expectation(few, points.n, metric, params.seed, params.sample_rows)


class RunPlan(NamedTuple):
    """The plan of a run's join, and the number of points that it was made from."""

    plan: JoinPlan | BlockPlan
    sample_rows: int


def plan_run(job: Job, points: Points, eps: float) -> RunPlan:
    """Plan the join of a run's points on a sample of them, and refuse it if it would be too large.

    In many dimensions it goes by pairs of blocks if that costs less than sweeps, unless a number of parts or
    regular cuts are asked for. The number of parts follows from the number of points, never from the cluster:
    a re-run elsewhere makes the same plan, except for the last bits of the axes of blocks, which depend on
    the processor.

    Raises
    ------
    BudgetError
        More pairs are expected than ``max_pairs``, or no cuts within the budgets make parts small enough.
    """
    source, params = job.lake.source, job.params
    cuts = cuts_of(params, points.n, len(source.axes))
    ids, sample = points.sample(cuts.sample_rows, params.seed)
    expected = expectation(job, points, sample).refuse_too_many(eps, params.max_pairs, source.unit)
    metric = get_metric(source.point_metric)
    plan: JoinPlan | BlockPlan | None = None
    if params.cuts == "planned" and params.n_parts is None:
        plan = plan_run_in_blocks([sample], [points.n], eps, metric, params, expected.pairs)
    if plan is None:
        ranges = in_ranges(_MAX_THREADS, are_long=True)
        cut = plan_join(sample, ids, points.n, eps, metric, cuts, expected.pairs, ranges=ranges)
        plan = replace(cut, parts=expect_parts(cut, sample, ids, points.n))
    say(
        f"replicate: eps {in_unit(eps, source.unit)}, {_describe_parts(plan)}; expected: "
        f"{counted(plan.expected_stored_rows, 'row')}, {counted(plan.expected_pairs, 'pair')}"
    )
    return RunPlan(plan, len(sample))


def _describe_parts(plan: JoinPlan | BlockPlan) -> str:
    if isinstance(plan, BlockPlan):
        return f"{counted(plan.n_blocks, 'block')}, {counted(plan.n_parts, 'part')}: pairs of blocks"
    cuts = f"{plan.kind} cuts" if plan.rule is None else f"{plan.kind} cuts ({plan.rule})"
    return f"{cuts}, {counted(plan.n_parts, 'part')}"


def plan_frames(
    points: Points,
    others: Points | None,
    eps: float | ArrayLike,
    metric: Metric,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    max_pairs: float,
) -> JoinPlan:
    """Plan a join of frames in parts on a sample of both, and refuse it if it would be too large.

    Raises
    ------
    ArgumentError, BudgetError, DataRefusedError
        As :func:`similarity_join`.
    """
    chosen, samples, n_rows = draw_samples(points, others, cuts, eps, weights)
    return plan_samples(samples, n_rows, eps, metric, weights, chosen, max_pairs)


class PairsPlan(NamedTuple):
    """The plan of a join of frames, and what it was made from.

    Parameters
    ----------
    plan : of the join.
    samples : of each frame, in random order.
    n_rows : rows of each frame.
    """

    plan: JoinPlan | BlockPlan
    samples: list[Sample]
    n_rows: list[int]


def plan_pairs(
    points: Points,
    others: Points | None,
    eps: float | ArrayLike,
    metric: Metric,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    max_pairs: float,
) -> PairsPlan:
    """As :func:`plan_frames`; in many dimensions by pairs of blocks, if that costs less than sweeps."""
    chosen, samples, n_rows = draw_samples(points, others, cuts, eps, weights)
    if cuts is None and weights is None:
        width = max(each.coordinate_bytes for each in (points, others or points))
        blocks = plan_block_join(samples, n_rows, width, eps, metric, chosen, max_pairs)
        if blocks is not None:
            return PairsPlan(blocks, samples, n_rows)
    plan = plan_samples(samples, n_rows, eps, metric, weights, chosen, max_pairs)
    return PairsPlan(plan, samples, n_rows)


def plan_block_join(
    samples: Sequence[Sample],
    n_rows: Sequence[int],
    coordinate_bytes: int,
    eps: float | ArrayLike,
    metric: Metric,
    cuts: Cuts,
    max_pairs: float,
) -> BlockPlan | None:
    """Plan a join by pairs of blocks; None if the metric has no products, or a sweep costs less.

    Parameters
    ----------
    samples, n_rows : of one frame or of two, with their numbers of rows.
    coordinate_bytes : bytes of a coordinate in the shuffle.
    cuts : how the samples were drawn.

    Raises
    ------
    ArgumentError, BudgetError
        As :func:`similarity_join`. BudgetError also where there would be too many pairs of blocks.
    """
    if np.ndim(eps) > 0:
        return None
    threshold = metric.check_eps(eps)
    coordinates = [points for _, points in samples]
    chosen = choose_products(coordinates, n_rows, threshold, metric)
    if chosen is None:
        return None
    of_right = (None, 0) if len(samples) == 1 else (coordinates[1], n_rows[1])
    pairs = Expectation(coordinates[0], n_rows[0], metric, cuts.seed, cuts.sample_rows, None, *of_right)
    with one_thread():
        expected = pairs.refuse_too_many(threshold, max_pairs).pairs
    worker_bytes = RunParams().worker_memory_mb << 20
    return plan_products(chosen, threshold, metric, coordinate_bytes, worker_bytes, expected)


def plan_samples(
    samples: Sequence[Sample],
    n_rows: Sequence[int],
    eps: float | ArrayLike,
    metric: Metric,
    weights: ArrayLike | None,
    cuts: Cuts,
    max_pairs: float,
    limit: str = "max_pairs",
) -> JoinPlan:
    """Plan a join as :func:`plan_frames`, of one set of points or two, by the samples and sizes of each.

    Parameters
    ----------
    limit : name of the argument that says how many pairs are allowed.
    """
    ids, sample = (np.concatenate(column) for column in zip(*samples, strict=True))
    metric, threshold = scale_metric(metric, sample, eps, weights)
    pairs = Expectation(samples[0][1], n_rows[0], metric, cuts.seed, cuts.sample_rows)
    if len(samples) == 2:
        pairs = replace(pairs, right=samples[1][1], right_rows=n_rows[1])
    expected = pairs.refuse_too_many(threshold, max_pairs, limit=limit, is_each=np.ndim(eps) > 0).pairs
    sides = None
    if len(samples) == 2:
        sides = SampledSides(np.arange(len(ids)) >= len(samples[0][0]), (n_rows[0], n_rows[1]))
    ranges = in_ranges(_MAX_THREADS, are_long=True)
    plan = plan_join(sample, ids, sum(n_rows), threshold, metric, cuts, expected, sides, ranges)
    return replace(plan, parts=expect_parts(plan, sample, ids, sum(n_rows), sides))


class Drawn(NamedTuple):
    """What a join of frames is planned on.

    Parameters
    ----------
    cuts : how to cut.
    samples : of each frame, in random order, with the same dimensions.
    n_rows : rows of each frame.
    """

    cuts: Cuts
    samples: list[Sample]
    n_rows: list[int]


def check_cuts(cuts: object) -> None:
    """Check the cuts that a caller gives, before rows are counted.

    Raises
    ------
    ArgumentError
        They are not cuts, or their seed is too large for Spark.
    """
    if not isinstance(cuts, Cuts | None):
        raise ArgumentError(f"cuts must be epsjoin.Cuts, not {cuts!r}")
    if cuts is not None and cuts.seed >= 2**63:
        raise ArgumentError(f"the seed of cuts must be below 2**63 on Spark, not {cuts.seed}")


def draw_samples(
    points: Points,
    others: Points | None,
    cuts: Cuts | None,
    eps: float | ArrayLike = 1.0,
    weights: ArrayLike | None = None,
) -> Drawn:
    """Choose the cuts, by default those of the jobs, with fewer parts for little work; sample each side.

    Parameters
    ----------
    eps, weights : of the join. If there is one per dimension, they alone say how many dimensions whole points
        have in a frame without rows.
    """
    n_rows = [points.n] if others is None else [points.n, others.n]
    n = sum(n_rows)
    drawn = cuts or cuts_of(RunParams(), n, 1)
    samples = _draw_samples_of(points, others, drawn)
    with_rows = [each for each in samples if len(each[0])] or samples[:1]
    dimensions = [coordinates.shape[1] for _, coordinates in with_rows]
    check_dimensions(**dict(zip(("left", "right"), dimensions, strict=False)))
    if not n and points.reading.dimensions is None and (others or points).reading.dimensions is None:
        told = [as_array("eps", eps).shape, () if weights is None else as_array("weights", weights).shape]
        dimensions = [*(shape[0] for shape in told if any(shape)), *dimensions]
    if cuts is None:
        fitted = replace(cuts_of(RunParams(), n, dimensions[0]), least_part_seconds=_MIN_PART_SECONDS)
        if fitted.sample_rows > drawn.sample_rows:  # for very many parts
            samples = _draw_samples_of(points, others, fitted)
        drawn = fitted
    shaped = [(ids, coordinates.reshape(-1, dimensions[0])) for ids, coordinates in samples]
    return Drawn(drawn, shaped, n_rows)


def _draw_samples_of(points: Points, others: Points | None, cuts: Cuts) -> list[Sample]:
    rows = cuts.sample_rows
    if others is None:
        return [points.sample(rows, cuts.seed)]
    # enough rows also of a side that is much smaller than the other, to see its pairs
    least = min(_MIN_SAMPLE_ROWS, rows // 2)
    fraction = points.n / max(1, points.n + others.n)
    of_left = points.sample(min(max(round(rows * fraction), least), rows - least), cuts.seed)
    return [of_left, others.sample(rows - len(of_left[0]), right_seed(cuts.seed))]
