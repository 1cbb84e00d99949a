"""Choose the coordinates of a window sweep on a sample, and estimate what the sweep will cost.

1. :func:`order_axes`: axes by what they separate: on the first one the fewest pairs of the sample are within
   eps, and each next one leaves the fewest of the pairs that all before it leave.
2. For the raw axes and, with Euclid's norm, the principal axes: the filter's size and the grid's dimensions
   with the least estimated cost. Candidates and survivors are counted on the sample, pairs of it standing for
   ``(n / m)**2`` pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.distances import NOTHING_IS_WITHIN
from epsjoin.kernels.pairs.batch import DISTANCES, PairBatch
from epsjoin.kernels.plan.separation import separating_axes, window_lengths
from epsjoin.kernels.projection import SQUARES, Projection, axes_by_variance, filter_size, project
from epsjoin.kernels.ranges import Ranges, in_each, in_one_range
from epsjoin.kernels.sorting import argsort
from epsjoin.kernels.sweep.survivors import WAITING
from epsjoin.kernels.sweep.vectors import BLOCK
from epsjoin.kernels.sweep.window import is_done, new_state, window_rows, window_sweep
from epsjoin.kernels.sweep.window_keys import SELF_MEETINGS, sort_keys, window_candidates
from epsjoin.local.plan.costs import (
    FILTER_NS_PER_BLOCK,
    FILTER_NS_PER_COORDINATE,
    FILTER_NS_PER_SURVIVOR,
    FILTER_NS_PER_VISIT,
    NS_PER_TERM,
)
from epsjoin.local.product.blas import one_thread

_MAX_GRID = 6
"""Maximum number of grid coordinates."""
_MIN_TRIED_ROWS, _MAX_TRIED_ROWS = 1024, 4096
"""Minimum and maximum number of rows of a sample on which coordinates are tried."""
_FEW_TRIED_ROWS = 512
"""Number of rows of a sample by which a simple filter is judged if most pairs are candidates."""
_ROWS_PER_TRIED_ROW = 100
"""Number of rows of the join for each row on which coordinates are tried: trying costs little then."""
_MAX_TRIED_PAIRS = 20_000
"""Maximum number of pairs by which axes are ordered."""
_MIN_ROWS = 24_000
"""Number of rows from which on coordinates are tried: fewer are mostly joined sooner than planned."""
_MIN_COSTLY_ROWS = 2000
"""Minimum number of rows for which coordinates are tried if the simple ones cost ``_COSTLY_NANOSECONDS``."""
_NOTABLE_NANOSECONDS = 2e6
"""Estimated nanoseconds of a sweep of few rows from which on principal axes are tried, in one way."""
_COSTLY_NANOSECONDS = 5e7
"""Estimated nanoseconds of a sweep of few rows that trying, some ten milliseconds, is worth."""
_ROWS_PER_OUTLIER = 512
"""Number of rows of which one may lie outside of the range at either end of an axis."""
_MAX_TRIED_AXES = 64
"""Maximum number of axes that are tried, by falling variance."""
MAX_ROTATED_DIMENSIONS = 256
"""Maximum number of dimensions that are rotated: beyond, finding principal axes costs more than a join."""


class Choice(NamedTuple):
    """A projection and the estimates it was chosen by.

    Parameters
    ----------
    projection : the coordinates.
    candidates : pairs of all rows that the sweep will filter.
    nanoseconds : estimated cost of sorting, copying and sweeping all rows; only ratios mean something.
    survivors : pairs of all rows that will pass the filter; for few rows, all candidates.
    """

    projection: Projection
    candidates: float
    nanoseconds: float
    survivors: float


def simple_projection(embedded: Floats, norm: int, n_grid: int = 1) -> Projection:
    """Axes by falling variance: for few rows, for which choosing would cost more than it saves.

    Parameters
    ----------
    embedded : (n, e) float64; not modified.
    norm, n_grid : see :class:`epsjoin.kernels.projection.Projection`; fewer grid axes where e is less.
    """
    e = embedded.shape[1]
    size = filter_size(e)
    axes = axes_by_variance(embedded)[:size]
    return Projection(norm, axes, np.empty((0, e)), *_range(embedded), min(n_grid, len(axes) - 1), size)


class _Trial(NamedTuple):
    """Rows on which coordinates are tried.

    Parameters
    ----------
    rows : (m, e) float64.
    n_rows : rows of the sweep, of which these are a sample.
    eps : threshold in embedded coordinates.
    is_right : (m,) bool, of two tables: the rows of the right one.
    """

    rows: Floats
    n_rows: int
    eps: float
    is_right: Bools | None

    @property
    def scale(self) -> float:
        """Rows of the sweep for each of these."""
        return self.n_rows / len(self.rows) if len(self.rows) else 0.0

    def first(self, n: int) -> _Trial:
        """A trial of the first n of these rows."""
        is_right = None if self.is_right is None else self.is_right[:n]
        return self._replace(rows=self.rows[:n], is_right=is_right)


def choose_projection(
    sample: Floats,
    n_rows: int,
    eps: float,
    norm: int,
    is_right: Bools | None = None,
    is_quick: bool = False,
    ranges: Ranges = in_one_range,
) -> Choice:
    """Choose coordinates, filter and grid for a sweep over ``n_rows`` rows of which this is a sample.

    Parameters
    ----------
    sample : (m, e) float64, embedded, a uniform sample in any order; not modified.
    n_rows : rows to sweep, at least m.
    eps : threshold in embedded coordinates.
    norm : see :class:`epsjoin.kernels.projection.Projection`.
    is_right : (m,) bool, of two tables: the rows of the right one, which are compared with the others only.
        By default all rows are compared with one another.
    is_quick : whether the simple axes and the principal ones are tried once each, as for few rows, and no
        more.
    ranges : how a range of the kinds of axes is tried.

    Returns
    -------
    Choice
        The same for the same arguments.

    Notes
    -----
    It takes milliseconds, in many dimensions some tens of them: 1024 to 4096 rows of the sample are tried.
    """
    rows = draw_tried_rows(len(sample), n_rows)
    tried_rows = sample if len(rows) == len(sample) else sample[rows]
    trial = _Trial(tried_rows, n_rows, eps, None if is_right is None else is_right[rows])
    simple = simple_projection(tried_rows, norm)
    if n_rows < _MIN_COSTLY_ROWS or len(tried_rows) < 2:
        return _cost(trial, simple)
    may_rotate = norm == SQUARES and 2 < sample.shape[1] <= MAX_ROTATED_DIMENSIONS
    if n_rows < _MIN_ROWS or is_quick:
        choice = _with_few_survivors(trial, _cost(trial, simple))
        if choice.nanoseconds > _NOTABLE_NANOSECONDS and may_rotate:
            basis = _principal_axes(_clipped(tried_rows, simple))[: simple.n_filter]
            principal = simple._replace(axes=simple.axes[:0], basis=basis, n_grid=2)
            choice = min(choice, _with_few_survivors(trial, _cost(trial, principal)), key=_nanoseconds)
        if choice.nanoseconds < _COSTLY_NANOSECONDS or is_quick:
            return choice
    kinds = (_try_axes, _try_principal_axes) if may_rotate else (_try_axes,)
    return min(in_each(ranges, kinds, lambda one: one(trial, simple)), key=_nanoseconds)


def _try_axes(trial: _Trial, simple: Projection) -> Choice:
    axes = order_axes(trial.rows, trial.eps, simple.n_filter)
    return _best_grid(trial, simple._replace(axes=axes))


@one_thread()
def _try_principal_axes(trial: _Trial, simple: Projection) -> Choice:
    centred = _clipped(trial.rows, simple)
    basis = _principal_axes(centred)
    best = order_axes(centred @ basis.T, trial.eps, simple.n_filter)
    basis = np.ascontiguousarray(basis[best])
    return _best_grid(trial, simple._replace(axes=simple.axes[:0], basis=basis))


def _nanoseconds(choice: Choice) -> float:
    return choice.nanoseconds


def draw_tried_rows(n_sample: int, n_rows: int) -> Ints:
    """Draw the rows of a sample on which coordinates are tried, ascending; all where these are few."""
    size = min(max(n_rows // _ROWS_PER_TRIED_ROW, _MIN_TRIED_ROWS), _MAX_TRIED_ROWS)
    if n_sample <= size:
        return np.arange(n_sample)
    return np.sort(np.random.default_rng(0).choice(n_sample, size, replace=False))


def order_axes(embedded: Floats, eps: float, count: int) -> Ints:
    """Order the axes by how well they separate points, the best first.

    Parameters
    ----------
    embedded : (m, e) float64, a sample; not modified.
    eps : threshold.
    count : number of axes.

    Returns
    -------
    (min(count, e),) int64. Where nothing is left to separate, by falling variance.

    Notes
    -----
    O(e m log m + pairs x e x count); these are pairs within eps on the first axis, evenly thinned.
    """
    by_variance = axes_by_variance(embedded)
    count = min(count, embedded.shape[1])
    tried = by_variance[:_MAX_TRIED_AXES]
    columns = np.ascontiguousarray(embedded.T[tried])
    lengths = [window_lengths(ascending, eps) for ascending in np.sort(columns)]
    totals = [int(each.sum()) for each in lengths]
    best = int(np.argmin(totals))
    chosen = tried[best : best + 1]
    if totals[best]:
        picked = np.linspace(0, totals[best] - 1, min(totals[best], _MAX_TRIED_PAIRS)).astype(np.int64)
        rows = columns.T[argsort(columns[best])]
        chosen = tried[separating_axes(rows, lengths[best], picked, eps, best, count)]
    return np.concatenate((chosen, by_variance[~np.isin(by_variance, chosen)]))[:count]


def row_candidates(embedded: Floats, is_carried: Bools, eps: float, projection: Projection) -> Ints:
    """Candidates of each row in a sweep over these rows; (n,) int64, a pair counted at one of its rows.

    Parameters
    ----------
    embedded : (n, e) float64; is_carried : (n,) bool, rows that are not compared with each other.
    eps : threshold in embedded coordinates.
    projection : coordinates of the sweep.
    """
    coordinates, _ = project(embedded, projection, projection.n_grid + 1, eps)
    group = is_carried.astype(np.int8)
    keys = sort_keys(coordinates, projection.n_grid, group, SELF_MEETINGS, projection.norm)
    candidates = np.empty(len(embedded), np.int64)
    candidates[keys.row] = window_candidates(keys)[0]
    return candidates


def principal_axes(embedded: Floats) -> Floats:
    """Orthonormal axes by falling variance of a sample with its outliers moved in, as rows; (e, e) float64.

    None, (0, e), in one dimension and beyond ``MAX_ROTATED_DIMENSIONS``. ``embedded`` (m, e) is not modified.
    """
    m, e = embedded.shape
    if m < 2 or not 1 < e <= MAX_ROTATED_DIMENSIONS:
        return np.empty((0, e))
    return _principal_axes(_clipped(embedded, simple_projection(embedded, SQUARES)))


def _clipped(embedded: Floats, projection: Projection) -> Floats:
    with np.errstate(over="ignore"):
        centred = embedded - projection.centre
        return np.minimum(np.maximum(centred, projection.low, out=centred), projection.high, out=centred)


@one_thread()  # several threads wait for one another longer than products of a few rows take
def _principal_axes(centred: Floats) -> Floats:
    """Orthonormal axes by falling variance, as rows; (e, e) float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = centred.T @ centred
    if not np.isfinite(covariance).all():
        return np.eye(centred.shape[1])
    return np.ascontiguousarray(np.linalg.eigh(covariance)[1].T[::-1])


def _range(embedded: Floats) -> tuple[Floats, Floats, Floats]:
    """Centre of each axis, and where all but a few values lie around it; (e,) float64 each."""
    m, e = embedded.shape
    if m == 0:
        return np.zeros(e), np.zeros(e), np.zeros(e)
    few = m // _ROWS_PER_OUTLIER
    columns = embedded.T.copy()
    found = []
    for place in (few, m // 2, m - 1 - few):  # one by one: together they take five times as long
        columns.partition(place, axis=1)
        found.append(columns[:, place].copy())
    low, centre, high = found
    with np.errstate(over="ignore"):
        largest = np.finfo(np.float64).max
        return centre, np.maximum(low - centre, -largest), np.minimum(high - centre, largest)


def _best_grid(trial: _Trial, projection: Projection) -> Choice:
    """Try grids of 0, 1, 2, ... dimensions, until one costs clearly more than the best before it."""
    best = _cost(trial, projection._replace(n_grid=0))
    for n_grid in range(1, min(_MAX_GRID, projection.size - 1) + 1):
        option = _cost(trial, projection._replace(n_grid=n_grid))
        if option.nanoseconds > 2.0 * best.nanoseconds:
            break
        best = min(best, option, key=_nanoseconds)
    return _with_survivors(trial, best)


def _with_survivors(trial: _Trial, choice: Choice) -> Choice:
    """Add to the cost of a choice the cost of deciding what its filter lets through."""
    survivors = _survivors(trial, choice.projection) * trial.scale**2
    nanoseconds = choice.nanoseconds + FILTER_NS_PER_SURVIVOR * survivors
    return choice._replace(nanoseconds=nanoseconds, survivors=survivors)


def _with_few_survivors(trial: _Trial, choice: Choice) -> Choice:
    """As :func:`_with_survivors`, but of fewer rows where half of all pairs are candidates."""
    if choice.candidates > 0.25 * float(trial.n_rows) ** 2:
        trial = trial.first(_FEW_TRIED_ROWS)
    return _with_survivors(trial, choice)


def _survivors(trial: _Trial, projection: Projection) -> int:
    """Pairs of the sample that the filter lets through."""
    n = len(trial.rows)
    nothing = np.zeros(n, np.int64)
    rows = window_rows(trial.rows, trial.rows, nothing, nothing, trial.eps, projection, trial.is_right)
    counters = np.zeros(4, np.int64)
    room = WAITING + BLOCK
    batch = PairBatch(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
    state = new_state()
    while not is_done(state):
        window_sweep(state, rows, 0, n, NOTHING_IS_WITHIN, batch, counters)
    return int(counters[DISTANCES])


def _cost(trial: _Trial, projection: Projection) -> Choice:
    """Estimate a sweep: rows are sorted and copied, visited in each pass, candidates filtered in blocks."""
    n_rows, e = trial.n_rows, trial.rows.shape[1]
    coordinates, _ = project(trial.rows, projection, projection.n_grid + 1, trial.eps)
    group, meetings = np.empty(0, np.int8), ((0, 0),)
    if trial.is_right is not None:
        group, meetings = trial.is_right.astype(np.int8), ((0, 1),)
    keys = sort_keys(coordinates, projection.n_grid, group, meetings, projection.norm, n_rows)
    of_rows, of_passes = window_candidates(keys)
    candidates, visits = float(of_rows.sum()) * trial.scale**2, of_passes * trial.scale
    # a window that is not empty needs at least one block
    filled = visits * -np.expm1(-candidates / visits) if visits else 0.0
    terms = e if projection.is_rotated else 1
    nanoseconds = (
        n_rows
        * (projection.n_filter + projection.n_grid + 1)
        * (FILTER_NS_PER_COORDINATE + terms * NS_PER_TERM)
        + FILTER_NS_PER_VISIT * visits
        + FILTER_NS_PER_BLOCK[projection.n_filter] * (filled + candidates / BLOCK)
    )
    return Choice(projection, candidates, nanoseconds, candidates)
