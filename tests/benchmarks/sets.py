"""The points: seeded generators, and the real sets of tests/data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from open_sets import numbers, scaled

Points = NDArray[np.float64]

_BELOW_ONE = 0.999999
_CHUNK = 20_000


def uniform(n: int, d: int, skipped: int = 0) -> Points:
    """``skipped``: numbers left to other sets, so that no two share theirs."""
    source = np.random.PCG64(0)
    source.advance(skipped)
    return np.random.Generator(source).random((n, d))


def cad(n: int, d: int = 16, noise: float = 1e-3, seed: int = 1, *, by_cluster: bool = False) -> Points:
    """Smooth functions of a position in 200 clusters of space, and noise: few dimensions that look many."""
    random = np.random.default_rng(seed)
    centres = random.random((200, 3))
    scales = random.uniform(0.02, 0.12, 200)
    cluster = random.choice(200, n, p=random.dirichlet(np.full(200, 0.7)))
    if by_cluster:
        cluster.sort()
    position = centres[cluster] + random.normal(size=(n, 3)) * scales[cluster, None]
    frequencies, phases = random.normal(size=(3, 48)) * 2.0, random.uniform(0.0, 2.0 * np.pi, 48)
    energy = random.normal(size=(48, d)) / np.sqrt(48.0) * np.exp(-np.arange(d) / 8.0)
    x = np.sin(position @ frequencies + phases) @ energy + random.normal(size=(n, d)) * noise
    low, high = x.min(axis=0), x.max(axis=0)
    scaled: Points = (x - low) / (high - low).max() * _BELOW_ONE
    return scaled


def first_of_cad(n: int, largest: int) -> Points:
    """The first rows of the largest set: made at that size, they would lie on another surface."""
    return cad(largest)[:n].copy()


def skewed(n: int, eps: float) -> Points:
    """The surface of ``cad``, 30 % of its points thrown evenly into one ball of radius 3 eps."""
    points = cad(n)
    random = np.random.default_rng(4)
    thrown = random.choice(n, n * 3 // 10, replace=False)
    direction = random.normal(size=(len(thrown), points.shape[1]))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    radius = 3.0 * eps * random.random((len(thrown), 1)) ** (1.0 / points.shape[1])
    points[thrown] = points[thrown[0]] + direction * radius
    return points


def groups(n: int, d: int) -> Points:
    """Points around fifty others."""
    random = np.random.default_rng(6)
    centres = random.random((50, d))
    return centres[random.integers(50, size=n)] + random.normal(0.0, 0.05, (n, d))


def heavy_tails(n: int, d: int) -> Points:
    """Numbers of a Pareto distribution without a mean: most points lie near one corner."""
    return np.random.default_rng(5).pareto(1.0, (n, d))


def histograms(n: int, d: int = 64) -> Points:
    """Mixtures of five histograms, counted on 20,000 pixels each."""
    random = np.random.default_rng(2)
    archetypes = random.dirichlet(np.full(d, 0.3), size=5)
    expected = random.dirichlet(np.full(5, 0.8), size=n) @ archetypes
    x = np.empty((n, d))
    for start in range(0, n, _CHUNK):
        counts = random.gamma(expected[start : start + _CHUNK] * 20_000 + 1e-9)
        x[start : start + _CHUNK] = counts / counts.sum(axis=1, keepdims=True)
    x *= _BELOW_ONE / x.max()
    return x


def subspace(n: int, d: int) -> Points:
    """A cube of three dimensions (at d = 2 a square), turned at random, and noise of 0.001 on every axis."""
    random = np.random.default_rng(3)
    k = min(3, d)
    turn = np.linalg.qr(random.normal(size=(d, k)))[0]
    x: Points = random.random((n, k)) @ turn.T + random.normal(size=(n, d)) * 1e-3
    return x


def skin() -> Points:
    return numbers("skin")


def landsat() -> Points:
    return scaled(numbers("landsat"))


class Set(NamedTuple):
    """Points and the threshold they are joined at.

    Parameters
    ----------
    name : for tables and ``--only``.
    what : in a few words.
    make : gives the (n, d) points, the same every time; can be pickled.
    eps : in the metric's unit; ``None``: chosen so that a point has five neighbours on average.
    metric : "euclidean" or "haversine".
    rounds : unless said otherwise; fewer where a round is long.
    """

    name: str
    what: str
    make: Callable[[], Points]
    eps: float | None
    metric: str = "euclidean"
    rounds: int = 5


SETS = (
    Set("uni2", "uniform", partial(uniform, 1_000_000, 2), 0.00127),
    Set("uni8", "uniform", partial(uniform, 200_000, 8, 2_000_000), 0.222),
    Set("uni24", "uniform", partial(uniform, 20_000, 24, 5_000_000), 1.13, rounds=3),
    Set("groups", "around 50 points", partial(groups, 8_000, 6), 0.08),
    Set("cad16", "a surface and noise", partial(cad, 200_000), 0.0083),
    Set("cad16L", "a surface and noise", partial(cad, 1_300_000), 0.00558, rounds=3),
    Set("hist64", "histograms", partial(histograms, 100_000), 0.0432),
    Set("landmarks", "landmarks of the US (TIGER)", partial(numbers, "landmarks"), 0.0123457),
    Set("skin", "colours of skin, with many equal rows", skin, 0.0100003),
    Set("pendigits", "pen-written digits", partial(numbers, "pendigits"), 0.302),
    Set("landsat", "satellite pixels", landsat, 0.268),
    Set("digits", "images of digits", partial(numbers, "digits"), 20.0003),
    Set("dense", "uniform, many neighbours", partial(uniform, 10_000, 2, 4_000_000), 0.2),
    Set("tails", "heavy tails, many neighbours", partial(heavy_tails, 100_000, 4), 0.67),
    Set("cities", "cities of the world (GeoNames), km", partial(numbers, "cities"), 5.0007, "haversine"),
    Set("navaids", "radio navigation aids, km", partial(numbers, "navaids"), 52.5, "haversine"),
)
SKEWED = Set("skewed", "cad16 with a hot ball", partial(skewed, 200_000, 0.0083), 0.0083)
BY_NAME = {one.name: one for one in SETS}

GROWTH_ROWS = tuple(
    Set(f"{n:,}", "the surface of cad16", partial(first_of_cad, n, 2_000_000), None, rounds=3)
    for n in (20_000, 63_000, 200_000, 630_000, 2_000_000)
)
GROWTH_DIMENSIONS = tuple(
    Set(f"{d}", "a cube and noise", partial(subspace, 100_000, d), None, rounds=3)
    for d in (2, 4, 8, 16, 32, 64, 128)
)
