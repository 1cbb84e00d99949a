"""Choosing eps from the fractal dimension of the points.

1. :func:`choose_r_max`: the largest radius, and the rows, for which the sample's join stays small.
2. :func:`pair_count_curve`: pairs within r for r on a grid, from one join at the largest radius.
3. :func:`fit_power_law`: the straight part of the curve on log-log scales; its slope is the exponent P.
4. :class:`EpsilonFit`: eps for a wished number of neighbours, of pairs, or a quantile of k-distances.

:func:`fit_epsilon` is all four. The sample must be a uniform one: then the exponent is that of the whole set,
and pairs grow by n (n - 1) / (m (m - 1)) from m sampled rows to n. Steps 2 and 3 are in ``power_law.py``.

References
----------
Seed 003, section 3.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.columns import FloatColumn, IntColumn, check_count
from epsjoin.local.join import iter_self_join
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.outliers import nearest_within
from epsjoin.local.power_law import (
    BY_HAND,
    SATURATED,
    Curve,
    PowerLawFit,
    all_pairs,
    fit_power_law,
    pair_count_curve,
)

__all__ = [
    "Curve",
    "EpsilonFit",
    "PowerLawFit",
    "choose_r_max",
    "fit_epsilon",
    "fit_power_law",
    "pair_count_curve",
]

_DISTANCES = 32  # different ones wished on the curve
_FEWEST_DRAWS, _MOST_DRAWS = 20_000, 2_000_000
_WANTED_HITS = 400  # draws within the radius: its share of all pairs is then known to a twentieth


def choose_r_max(
    points: npt.NDArray[np.float64], metric: Metric, target_pairs: int = 2_000_000, seed: int = 0
) -> tuple[float, int]:
    """Choose the largest radius and the rows for which a join has about ``target_pairs`` pairs.

    Parameters
    ----------
    points : (m, d) float64, a sample in random order; not modified.
    metric : what :func:`epsjoin.local.metric.get_metric` returned.
    target_pairs : pairs of different points wished within the radius; twice as many are borne, at least 1.
    seed : of the pairs whose distances are looked at.

    Returns
    -------
    tuple[float, int]
        The radius, and how many of the rows (from the first on) to join. Not all of them where equal points
        or ties would make too many pairs: any share of a uniform sample is one, its exponent the same.

    Raises
    ------
    ArgumentError
        Fewer than two points, or no two different ones were met; a point for which the metric is not defined.

    Notes
    -----
    The radius is a quantile of the distances of random pairs, never beyond a fifth of them, as there the
    power law ends; on a lattice it is large enough for 32 different distances, if that fifth has so many.
    O(draws x d), 20,000 to 2 million draws; small samples are looked at in full.
    """
    metric.check(points)
    m = len(points)
    if m < 2:
        raise ArgumentError(f"a power law needs at least two points, not {m}; {BY_HAND}")
    left, right = _random_pairs(m, target_pairs, seed)
    distance = paired_distances(metric.decision(math.inf), points, left, right)
    different = np.sort(distance[distance > 0])
    if not different.size:
        raise ArgumentError(f"no two different points were met among {m} sampled; {BY_HAND}")
    rows = _affordable(m, 1 - different.size / distance.size, target_pairs)
    share = min(2 * SATURATED, target_pairs / all_pairs(rows) * distance.size / different.size)
    r_max = float(different[math.ceil(share * different.size) - 1])
    lattice = np.unique(different[: math.ceil(2 * SATURATED * different.size)])[:_DISTANCES]
    r_max = max(r_max, float(lattice[-1]))
    return r_max, _affordable(rows, float((distance <= r_max).mean()), 2 * target_pairs)


@dataclass(frozen=True)
class EpsilonFit:
    """What a sample says about eps; made by :func:`fit_epsilon`.

    Parameters
    ----------
    n_rows : rows of the whole set.
    n_sample : rows whose pairs were counted.
    curve : pairs of the sample by distance.
    power_law : fitted to the curve.
    k_distances : (max_k, n_sample) float64, row k - 1: the sampled points' distances to their k-th nearest
        neighbour in the sample, rising, infinite where beyond the curve's last radius.
    """

    n_rows: int
    n_sample: int
    curve: Curve
    power_law: PowerLawFit
    k_distances: FloatColumn

    @property
    def exponent(self) -> float:
        """The pair-count exponent P."""
        return self.power_law.exponent

    def expected_pairs(self, eps: float) -> float:
        """Pairs of the whole set within eps.

        Within the measured radii the curve is interpolated on log-log scales; below and above, the power law
        continues it. Above the last radius this is too many, as the law ends where the data does.

        Raises
        ------
        ArgumentError
            eps is not above 0.
        """
        if not 0 < eps < math.inf:
            raise ArgumentError(f"eps must be a finite number above 0, not {eps!r}")
        x, measured = math.log(eps), np.log(self.curve.radius)
        y = float(np.interp(x, measured, np.log(self.curve.different_pairs)))
        y += self.exponent * (min(0.0, x - measured[0]) + max(0.0, x - measured[-1]))
        different = math.exp(min(y, math.log(all_pairs(self.n_sample))))
        return self._scale() * min(self.curve.equal_pairs + different, all_pairs(self.n_sample))

    def eps_for(
        self,
        *,
        neighbours: float | None = None,
        pairs: float | None = None,
        k_distance_quantile: float | None = None,
        k: int | None = None,
    ) -> float:
        """Choose eps, rounded to 6 significant digits so that it can be typed.

        Exactly one of ``neighbours``, ``pairs`` and ``k_distance_quantile`` (with ``k``) must be given.

        Parameters
        ----------
        neighbours : wished on average per point of the whole set, the point itself not counted.
        pairs : wished in the whole set.
        k_distance_quantile : share of the points, between 0 and 1, whose k-th neighbour should be within eps.
        k : rank of that neighbour, 1 the nearest; at most ``max_k`` of the fit.

        Raises
        ------
        ArgumentError
            Not exactly one wish; a wish that no eps fulfils: fewer pairs than equal points make, more than
            there are, a k-distance of 0; a k-distance beyond the measured radii.

        Notes
        -----
        The k-distance: sampled rows are thinned by f = (m - 1) / (n - 1), so a ball with k neighbours in the
        sample has k / f in the whole set, and by the power law the one with k is smaller by ``f ** (1 / P)``.
        The same rank k is taken in the sample, not the rank k f: the number of neighbours in a ball scatters
        by its own square root, so the quantiles of k-distances keep their shape only at the same rank. It
        takes the law to hold up to the sample's k-distances; near a border, which cuts these larger balls
        off, the result is too large.
        """
        wishes = {"neighbours": neighbours, "pairs": pairs, "k_distance_quantile": k_distance_quantile}
        given = {name: wish for name, wish in wishes.items() if wish is not None}
        if len(given) != 1:
            raise ArgumentError(f"give exactly one of {', '.join(wishes)}, not {', '.join(given) or 'none'}")
        (name, wish), *_ = given.items()
        if (name == "k_distance_quantile") != (k is not None):
            raise ArgumentError("k_distance_quantile and k belong together")
        if not 0 < wish < (1 if k is not None else math.inf):
            raise ArgumentError(
                f"{name} must be above 0 and below {'1' if k is not None else 'infinity'}, not {wish!r}"
            )
        if k is not None:
            eps = self._k_distance(wish, check_count("k", k))
        else:
            eps = self._eps_for_pairs(wish if name == "pairs" else wish * self.n_rows / 2)
        if not 0 < eps < math.inf:
            raise ArgumentError(
                f"the power law with exponent {self.exponent:.3g} leads to eps = {eps}; {BY_HAND}"
            )
        return float(f"{eps:.6g}")

    def _scale(self) -> float:
        return all_pairs(self.n_rows) / all_pairs(self.n_sample)

    def _eps_for_pairs(self, pairs: float) -> float:
        if pairs > all_pairs(self.n_rows):
            raise ArgumentError(
                f"{pairs:.6g} pairs are wished, {self.n_rows} points have {all_pairs(self.n_rows)}"
            )
        radius, different = self.curve.radius, self.curve.different_pairs
        wished = pairs / self._scale() - self.curve.equal_pairs
        if wished <= 0:
            raise ArgumentError(
                f"{self._scale() * self.curve.equal_pairs:.6g} pairs are of equal points, whatever eps is: "
                f"{pairs:.6g} pairs ({2 * pairs / self.n_rows:.6g} neighbours) are too few"
            )
        for end, is_outside in ((0, wished <= different[0]), (-1, wished > different[-1])):
            if is_outside:
                way = math.log(wished / different[end]) / self.exponent
                return float(radius[end] * np.exp(way))
        above = int(np.searchsorted(different, wished))
        ends = [above - 1, above]  # the last radius with fewer pairs, the first with as many
        return float(np.exp(np.interp(math.log(wished), np.log(different[ends]), np.log(radius[ends]))))

    def _k_distance(self, quantile: float, k: int) -> float:
        if k > len(self.k_distances):
            raise ArgumentError(f"k must be at most {len(self.k_distances)} (max_k of the fit), not {k}")
        place = max(0, math.ceil(quantile * self.n_sample) - 1)
        in_sample = float(self.k_distances[k - 1, place])
        if in_sample == 0:
            raise ArgumentError(
                f"a share of {quantile:g} of the points, or more, has {k} equal points: the k-distance is 0"
            )
        if in_sample == math.inf:
            raise ArgumentError(
                f"a share of less than {quantile:g} of the sampled points has {k} neighbours "
                f"within {self.curve.radius[-1]:.6g}, the largest radius measured: lower either, or {BY_HAND}"
            )
        thinning = (self.n_sample - 1) / (self.n_rows - 1)
        return float(in_sample * np.exp(math.log(thinning) / self.exponent))


def fit_epsilon(
    points: npt.ArrayLike,
    metric: str | Metric = "euclidean",
    sample_rows: int = 20_000,
    seed: int = 0,
    n_rows: int | None = None,
    max_k: int = 64,
) -> EpsilonFit:
    """Fit the power law of pair counts, from which eps follows.

    Parameters
    ----------
    points : (n, d) floats or integers, the whole set or a uniform sample of it; not modified.
    metric : a name for :func:`epsjoin.local.metric.get_metric`, or what it returned.
    sample_rows : rows to look at, at most; fewer are taken where equal points make too many pairs.
    seed : of every random choice: the same points and seed give the same fit.
    n_rows : rows of the whole set where ``points`` is a sample; by default the number of points.
    max_k : largest rank for ``eps_for(k_distance_quantile=..., k=...)``.

    Raises
    ------
    ArgumentError
        Wrong shapes or arguments, a value that is NaN or infinite; too few points, or too few different ones,
        for a power law: the message says so, and to give eps by hand.

    Notes
    -----
    One join of the sample with some 2 million pairs: a second or two, about 250 MB.

    Examples
    --------
    >>> square = np.random.default_rng(1).random((5000, 2))
    >>> fit = fit_epsilon(square)
    >>> round(fit.exponent, 1), round(fit.eps_for(neighbours=10), 2)
    (2.0, 0.03)
    """
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    values = np.asarray(points)
    if values.ndim != 2 or values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise ArgumentError(
            f"points must be finite numbers of shape (n, d), not {values.dtype} of shape {values.shape}"
        )
    sample_rows, max_k = check_count("sample_rows", sample_rows, 2), check_count("max_k", max_k)
    n_rows = len(values) if n_rows is None else check_count("n_rows", n_rows, len(values))
    # In random order, so that any first rows are a uniform sample as well.
    order = np.random.default_rng(seed).permutation(len(values))[:sample_rows]
    sample = np.ascontiguousarray(values[order], dtype=np.float64)
    r_max, rows = choose_r_max(sample, chosen, seed=seed)
    sample = sample[:rows]
    batches = list(iter_self_join(sample, r_max, chosen, seed=seed))
    if not batches:
        raise ArgumentError(f"{rows} sampled points have no pair within {r_max:.6g}; {BY_HAND}")
    curve = pair_count_curve(batches, rows, r_max, seed=seed)
    fit = fit_power_law(curve, rows)
    left, right, distance = (np.concatenate(column) for column in zip(*batches, strict=True))
    return EpsilonFit(n_rows, rows, curve, fit, _ranked(left, right, distance, rows, max_k))


def _random_pairs(m: int, target_pairs: int, seed: int) -> tuple[IntColumn, IntColumn]:
    """Rows of random pairs of two rows; all pairs where they are few."""
    draws = min(max(_FEWEST_DRAWS, math.ceil(_WANTED_HITS * all_pairs(m) / target_pairs)), _MOST_DRAWS)
    if all_pairs(m) <= draws:
        left, right = np.triu_indices(m, 1)
        return left, right
    random = np.random.default_rng(seed)
    left = random.integers(0, m, draws)
    return left, (left + random.integers(1, m, draws)) % m


def _affordable(m: int, share: float, pairs: int) -> int:
    """Rows, at most m, of which this share of all pairs is not more than ``pairs``."""
    if share * all_pairs(m) <= pairs:
        return m
    return max(2, math.isqrt(int(2 * pairs / share)))


def _ranked(left: IntColumn, right: IntColumn, distance: FloatColumn, n_rows: int, max_k: int) -> FloatColumn:
    """Row k - 1: the distances of all rows to their k-th neighbour, rising, infinite where unknown."""
    nearest = nearest_within(left, right, distance, max_k)
    k_distances = np.full((max_k, n_rows), np.inf)
    first = np.searchsorted(nearest.id, nearest.id)
    k_distances[np.arange(nearest.id.size) - first, nearest.id] = nearest.distance
    k_distances.sort(axis=1)
    return k_distances
