"""A power law for each region: sets may have different dimensions in different places."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import FloatColumn, IntColumn, check_count, check_points, int_column
from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.metric import Metric, get_metric

_FEWEST_IN_REGION = 100  # rows: fewer hardly make a power law, as its start alone takes 30 pairs


class LocalExponents(NamedTuple):
    """Exponents by region; made by :func:`local_exponents`. All but ``region`` are of shape (n_regions,).

    Parameters
    ----------
    region : (n,) int64, region of each point, from 0 on.
    rows : int64, points in each region.
    exponent, interval_low, interval_high, r_squared, range_low, range_high : float64, see
        :class:`PowerLawFit`; NaN where a region's points follow no power law.
    eps : float64, gives the wished neighbours within the region; NaN where there is none.
    """

    region: IntColumn
    rows: IntColumn
    exponent: FloatColumn
    interval_low: FloatColumn
    interval_high: FloatColumn
    r_squared: FloatColumn
    range_low: FloatColumn
    range_high: FloatColumn
    eps: FloatColumn


def local_exponents(
    points: npt.ArrayLike,
    n_regions: int = 8,
    labels: npt.ArrayLike | None = None,
    neighbours: float = 10.0,
    metric: str | Metric = "euclidean",
    sample_rows: int = 3_000,
    seed: int = 0,
) -> LocalExponents:
    """Fit a power law to each region of the points: sets may have different dimensions in different places.

    Parameters
    ----------
    points : (n, d) floats or integers, finite; not modified.
    n_regions : regions to divide the points into: the region with the most points is cut at the median of its
        widest axis, until there are so many, or all have fewer than 200 points. Equal values stay together.
    labels : (n,) integers instead: points of one label are a region, regions by rising label. ``n_regions``
        does not count then.
    neighbours : wished on average per point within its region, for ``eps``.
    metric : as for :func:`fit_epsilon`. The axes that are cut are those of the given coordinates.
    sample_rows : of each region, at most.
    seed : of every random choice.

    Returns
    -------
    LocalExponents
        The region of each point, and a row for each region.

    Raises
    ------
    ArgumentError
        Wrong shapes or arguments, a value that is NaN or infinite; labels not one per point.

    Notes
    -----
    Each region is fitted on its own, by :func:`fit_epsilon`: pairs across its borders are not seen, which
    lowers the exponent as any border does. O(n log n_regions d), and a fit of ``sample_rows`` rows each.

    References
    ----------
    Dittrich's dissertation, section 6.2, which proposes disjoint parts with an exponent each and an index as
    their hierarchy; here it is a kd-tree.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> line, square = random.random((2000, 2)) * [1, 0], random.random((2000, 2)) + [2, 0]
    >>> local_exponents(np.concatenate((line, square)), n_regions=2).exponent.round(1)
    array([1., 2.])
    """
    values = check_points("points", points)
    if isinstance(neighbours, (bool, str)) or not 0 < neighbours < math.inf:
        raise ArgumentError(f"neighbours must be above 0 and below infinity, not {neighbours!r}")
    sample_rows, seed = check_count("sample_rows", sample_rows, 2), check_count("seed", seed, 0)
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    chosen.check(values)
    if labels is None:
        region = _median_cuts(values, check_count("n_regions", n_regions))
    else:
        column = int_column("labels", labels)
        if column.size != len(values):
            raise ArgumentError(f"labels must be one per point, {len(values)}, not {column.size}")
        region = np.unique(column, return_inverse=True)[1].astype(np.int64)
    order = np.argsort(region, kind="stable")
    rows = np.bincount(region)
    table = np.full((7, rows.size), np.nan)
    for place, members in enumerate(np.split(order, np.cumsum(rows)[:-1]) if rows.size else []):
        try:
            fit = fit_epsilon(values[members], chosen, sample_rows, seed)
            law = fit.power_law
            table[:6, place] = (
                law.exponent,
                law.interval_low,
                law.interval_high,
                law.r_squared,
                law.range_low,
                law.range_high,
            )
            table[6, place] = fit.eps_for(neighbours=neighbours)
        except ArgumentError:  # no power law here, or fewer neighbours than equal points make
            continue
    return LocalExponents(region, rows, *table)


def _median_cuts(values: FloatColumn, n_regions: int) -> IntColumn:
    """Region of each row, by cuts of the largest region at the median of its widest axis."""
    regions = [np.arange(len(values))]
    whole: list[IntColumn] = []  # regions that no cut divides
    while regions and len(regions) + len(whole) < n_regions:
        rows = regions.pop(max(range(len(regions)), key=lambda place: regions[place].size))
        if rows.size < 2 * _FEWEST_IN_REGION:
            regions.append(rows)
            break
        inside = values[rows]
        axis = int(np.argmax(np.ptp(inside, axis=0)))
        is_low = inside[:, axis] <= np.partition(inside[:, axis], rows.size // 2 - 1)[rows.size // 2 - 1]
        if is_low.all():
            whole.append(rows)
        else:
            regions += [rows[is_low], rows[~is_low]]
    region = np.empty(len(values), dtype=np.int64)
    # Numbered by their first rows, so that the order of cuts does not show.
    for number, rows in enumerate(
        sorted((each for each in regions + whole if each.size), key=lambda r: r[0])
    ):
        region[rows] = number
    return region
