"""Which joins are swept row by row, and how many candidates such a sweep is expected to look at."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Floats
from epsjoin.kernels.projection import Projection
from epsjoin.kernels.sweep.directory import bin_shift
from epsjoin.kernels.sweep.row_windows import MAX_DIMENSIONS, MAX_ROWS, NARROW, is_fine, sort_rows
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.projection import choose_projection, draw_tried_rows, order_axes, simple_projection
from epsjoin.local.plan.two_tables import SampledSides

_EUCLIDEAN = get_metric("euclidean")


def is_row_by_row(metric: Metric, n_dimensions: int, n_rows: int) -> bool:
    """Whether a join without cuts that sorts its pairs is swept row by row.

    Parameters
    ----------
    metric : as it is after weights and an eps per dimension.
    n_dimensions, n_rows : of the points of all tables.
    """
    return metric == _EUCLIDEAN and n_dimensions <= MAX_DIMENSIONS and n_rows <= MAX_ROWS


def choose_coordinates(points: Floats, n_rows: int, eps: float, norm: int) -> Projection:
    """Choose the coordinates of a sweep row by row: in two dimensions one is swept, the other is the grid.

    Parameters
    ----------
    points : (m, d) float64, the rows, or a uniform sample of them; not modified.
    n_rows, eps, norm : see :func:`epsjoin.local.plan.projection.choose_projection`, which chooses in three
        dimensions.
    """
    if points.shape[1] > 2:
        return choose_projection(points, n_rows, eps, norm).projection
    tried = points[draw_tried_rows(len(points), n_rows)]
    return simple_projection(tried, norm)._replace(axes=order_axes(tried, eps, points.shape[1]))


def expect_candidates(
    sample: Floats, n_rows: int, eps: float, norm: int, sides: SampledSides | None
) -> float:
    """Expect the candidates of a sweep row by row; of one table, each pair counts once.

    Parameters
    ----------
    sample : (m, d) float64, of two tables the rows of the left one first; not modified.
    n_rows : rows of all tables, at least m: they decide how wide the bins of the directory are.
    eps : threshold.
    norm : see :func:`choose_coordinates`.
    sides : of which table each row of the sample is; None: one table.

    Notes
    -----
    O(m log m). The sample also tells whether the candidates of a window are those of whole bins.
    """
    m = len(sample)
    projection = choose_coordinates(sample, n_rows, eps, norm)
    rows = sort_rows(sample, eps, projection, None if sides is None else sides.is_right)
    place, shift = rows.keys.place, bin_shift(rows.highest, n_rows)
    most_in_bins = NARROW * m / max(1, n_rows) if is_fine(rows.steps, shift) else 0
    candidates = 0
    for step in rows.steps.tolist():
        goal = place[: rows.n_queries] + step
        low, high = goal - rows.keys.window, goal + rows.keys.window
        first, last = low >> shift << shift, ((high >> shift) + 1) << shift
        in_window = np.searchsorted(place, high, side="right") - np.searchsorted(place, low)
        in_bins = np.searchsorted(place, last) - np.searchsorted(place, first)
        candidates += int(np.where(in_bins <= most_in_bins, in_bins, in_window).sum())
    if sides is not None:
        return candidates * sides.pair_weight
    return (candidates - m) / 2 * n_rows * max(0.0, n_rows - 1.0) / max(1.0, m * (m - 1.0))
