"""A power law for each region: sets may have different dimensions in different places."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.arguments import as_number, check_count, check_seed, int_column
from epsjoin.local.coordinates import check_points
from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.metric import Metric, get_metric

_MIN_REGION_ROWS = 100
"""Minimum number of rows of a region: fewer hardly make a power law, which begins at 30 pairs."""


class LocalExponents(NamedTuple):
    """Exponents by region; made by :func:`local_exponents`. All but ``region`` have the shape (n_regions,).

    Parameters
    ----------
    region : (n,) int64, number of the region of each point, from 0 on.
    rows : int64, number of points in each region.
    exponent, interval_low, interval_high, r_squared, range_low, range_high : float64, see
        :class:`epsjoin.local.epsilon.power_law.PowerLawFit`; NaN where the points of a region follow no
        power law.
    eps : float64, the eps for ``neighbours`` within the region; NaN where there is none.
    """

    region: Ints
    rows: Ints
    exponent: Floats
    interval_low: Floats
    interval_high: Floats
    r_squared: Floats
    range_low: Floats
    range_high: Floats
    eps: Floats


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
    points : (n, d) array of finite floats or integers; not modified.
    n_regions : number of regions, 8 by default. The region with the most points is cut at the median of its
        widest axis, until there are as many regions, or all have fewer than 200 points. Equal values stay
        together.
    labels : (n,) integers. The points of one label are a region, in the order of the labels; ``n_regions`` is
        then ignored. By default the regions are cut.
    neighbours : average number of neighbours of a point within its region for which ``eps`` is chosen, 10 by
        default.
    metric : as for :func:`fit_epsilon`. The axes that are cut are those of the original coordinates.
    sample_rows : maximum number of rows that are sampled in each region, 3,000 by default.
    seed : seed of every random choice, 0 by default.

    Returns
    -------
    LocalExponents
        The region of each point, and a row for each region.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a coordinate is NaN or infinite; there is not one label
        per point.

    See Also
    --------
    fit_epsilon : one exponent for the whole set; its result has exponents of single points, too.

    Notes
    -----
    Each region is fitted on its own, by :func:`fit_epsilon`. Pairs across its borders are not counted, which
    lowers the exponent as any border does. O(n log n_regions d), and a fit of ``sample_rows`` rows for each
    region.

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
    wanted = as_number(neighbours)
    if not 0 < wanted < math.inf:
        raise ArgumentError(f"neighbours must be above 0 and below infinity, not {neighbours!r}")
    sample_rows, seed = check_count("sample_rows", sample_rows, 2), check_seed("seed", seed)
    chosen = get_metric(metric)
    chosen.check(values, "points")
    if labels is None:
        region = _cut_at_medians(values, check_count("n_regions", n_regions))
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
            table[6, place] = fit.eps_for(neighbours=wanted)
        except ArgumentError:  # no power law here, or fewer neighbours than equal points make
            continue
    return LocalExponents(region, rows, *table)


def _cut_at_medians(values: Floats, n_regions: int) -> Ints:
    """Assign each row to a region, by cuts of the largest region at the median of its widest axis."""
    regions = [np.arange(len(values))]
    whole: list[Ints] = []  # regions that no cut divides
    while regions and len(regions) + len(whole) < n_regions:
        rows = regions.pop(max(range(len(regions)), key=lambda place: regions[place].size))
        if rows.size < 2 * _MIN_REGION_ROWS:
            regions.append(rows)
            break
        inside = values[rows]
        axis = int(np.argmax(inside.max(axis=0) / 2 - inside.min(axis=0) / 2))  # halves do not overflow
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
