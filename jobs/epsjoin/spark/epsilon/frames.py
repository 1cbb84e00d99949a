"""The public functions that say, before a join of DataFrames, which eps to take and what it will yield."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import ArrayLike
from pyspark.sql import DataFrame

from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import check_count
from epsjoin.local.epsilon.epsilon_fit import EpsilonFit
from epsjoin.local.epsilon.estimate import Estimate
from epsjoin.local.epsilon.estimate import estimate as estimate_points
from epsjoin.local.epsilon.fit import fit_epsilon as fit_points
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.blocks import BlockPlan
from epsjoin.local.plan.cuts import Cuts
from epsjoin.spark.join.plan import check_cuts, draw_samples, plan_block_join
from epsjoin.spark.points.columns import points_of_both
from epsjoin.spark.points.points import right_seed


def fit_epsilon(
    frame: DataFrame,
    *,
    columns: str | Sequence[str],
    id: str = "id",
    metric: str | Metric = "euclidean",
    weights: ArrayLike | None = None,
    sample_rows: int = 20_000,
    seed: int = 0,
    max_k: int = 64,
    right: DataFrame | None = None,
    right_columns: str | Sequence[str] | None = None,
    right_id: str | None = None,
) -> EpsilonFit:
    """Fit the power law of pair counts to a sample of a frame, or of two, in order to choose eps.

    Parameters
    ----------
    frame, columns, id, metric : see :func:`epsjoin.spark.frames.similarity_join`.
    weights, sample_rows, seed, max_k : see :func:`epsjoin.fit_epsilon`. If there are two frames,
        ``sample_rows`` rows of each are drawn.
    right : the right frame of a join of two: then the pairs between both frames are fitted. By default those
        of the rows of ``frame`` with one another.
    right_columns, right_id : names of the columns in ``right``; by default the same as in ``frame``.

    Returns
    -------
    EpsilonFit
        The fit, whose numbers refer to all rows of the frames: ``expected_pairs(eps)``,
        ``eps_for(neighbours=...)``, ``eps_for(pairs=...)`` and others.

    Raises
    ------
    ArgumentError
        An argument or column is wrong, the points follow no power law, or one of two frames has no rows.
    DataRefusedError
        A coordinate of a sample is null or not finite.

    See Also
    --------
    epsjoin.fit_epsilon : the same on arrays.

    Notes
    -----
    The rows of each frame are counted and sampled; the driver joins the samples.

    ``fit_epsilon(a, columns=["x", "y"], right=b).eps_for(pairs=1e6)`` returns the eps for a million pairs
    between ``a`` and ``b``.
    """
    chosen = get_metric(metric)
    points, others = points_of_both(frame, right, columns, id, right_columns, right_id, chosen)
    if others is not None and not (points.n and others.n):
        raise ArgumentError(
            f"a power law needs rows in both frames, not {points.n} and {others.n}; choose eps by hand"
        )
    _, sample = points.sample(check_count("sample_rows", sample_rows), check_count("seed", seed, 0))
    if others is None:
        return fit_points(sample, chosen, sample_rows, seed, points.n, max_k, weights=weights)
    _, right_sample = others.sample(sample_rows, right_seed(seed))
    of_left = sample, chosen, sample_rows, seed, points.n, max_k
    return fit_points(*of_left, weights=weights, right=right_sample, right_rows=others.n)


def estimate(
    frame: DataFrame,
    *,
    eps: float | ArrayLike,
    columns: str | Sequence[str],
    id: str = "id",
    metric: str | Metric = "euclidean",
    weights: ArrayLike | None = None,
    cuts: Cuts | None = None,
    right: DataFrame | None = None,
    right_columns: str | Sequence[str] | None = None,
    right_id: str | None = None,
) -> Estimate:
    """Estimate, from a sample, the result and the cost of a join of a frame with itself, or of two frames.

    Parameters
    ----------
    frame, eps, columns, id, metric, weights, cuts : see :func:`epsjoin.spark.frames.similarity_join`. If
        there are two frames, ``cuts.sample_rows`` rows are sampled from both together.
    right : the right frame of a join of two. By default ``frame`` is joined with itself.
    right_columns, right_id : names of the columns in ``right``; by default the same as in ``frame``.

    Returns
    -------
    Estimate
        The estimate for all rows, with the cuts that the join would use; see :class:`epsjoin.Estimate`. A
        frame without rows has no pairs.

    Raises
    ------
    ArgumentError, DataRefusedError
        See :func:`epsjoin.spark.frames.similarity_join`.

    See Also
    --------
    epsjoin.estimate : the same on arrays.

    Notes
    -----
    The rows of each frame are counted and sampled; the driver joins the samples.

    ``estimate(a, eps=0.5, columns=["x", "y"], right=b).pairs`` is the expected number of rows of
    ``similarity_join(a, b, eps=0.5, columns=["x", "y"])``.
    """
    chosen = get_metric(metric)
    check_cuts(cuts)
    points, others = points_of_both(frame, right, columns, id, right_columns, right_id, chosen)
    settings, samples, n_rows = draw_samples(points, others, cuts, eps, weights)
    blocks = None
    if cuts is None and weights is None:
        width = max(each.coordinate_bytes for each in (points, others or points))
        blocks = plan_block_join(samples, n_rows, width, eps, chosen, settings, math.inf)
    expected = estimate_points(
        samples[0][1],
        eps,
        chosen,
        weights=weights,
        n_rows=points.n,
        cuts=settings if blocks is None else None,
        seed=settings.seed,
        right=None if others is None else samples[1][1],
        right_rows=None if others is None else others.n,
    )
    return expected if blocks is None else _by_blocks(expected, blocks)


def _by_blocks(expected: Estimate, plan: BlockPlan) -> Estimate:
    """Say what a join by pairs of blocks costs."""
    rows = plan.expected_rows
    return replace(
        expected,
        rows=rows,
        candidates=float(plan.products.sum()),
        row_bytes=rows * plan.row_bytes,
        tasks=plan.n_parts,
        task_bytes=float(plan.parts.rows.max(initial=0.0)) * plan.row_bytes,
        sent_bytes=rows * plan.sent_bytes,
        seconds=plan.expected_seconds,
    )
