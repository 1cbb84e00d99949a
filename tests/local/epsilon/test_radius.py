"""The largest radius of a fit: enough pairs for a power law, few enough to join."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.epsilon.radius import choose_r_max, choose_r_max_between
from epsjoin.local.join.arrays import self_join
from epsjoin.local.metric import get_metric
from oracles import INTERPRETED
from oracles import fractal as twin
from tests.local.epsilon.samples import about, random, size


@pytest.mark.parametrize("copies", [0.5, 0.9, 0.99])
def test_heavy_duplicates__leave_a_join_that_stays_small(copies):
    points = twin.cube(5_000, 2, random())
    points[: int(copies * 5_000)] = 0.5
    random().shuffle(points)
    r_max, rows = choose_r_max(points, get_metric("euclidean"), 20_000)
    found = len(self_join(points[:rows], r_max).left)
    assert found < 60_000
    assert rows < 500


def test_choose_r_max__takes_many_distances_of_a_lattice_and_fewer_rows():
    points = random().integers(0, 1000, (5_000, 1)).astype(float)
    r_max, rows = choose_r_max(points, get_metric("euclidean"), 20_000)
    assert r_max == 32.0
    assert rows < 2000
    assert len(self_join(points[:rows], r_max).left) < 60_000


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("power", [-900, 600, 990])
def test_choose_r_max__does_not_depend_on_the_unit(power):
    points = twin.cube(2_000, 8, random()) * 2.0 ** -np.arange(8)[::-1]  # the last axes are the widest
    for metric in map(get_metric, ("chebyshev", "manhattan")):
        r_max, rows = choose_r_max(points, metric, 20_000)
        assert choose_r_max(points * 2.0**power, metric, 20_000) == (r_max * 2.0**power, rows)
        of_tables = choose_r_max_between(points[:900], points[900:], metric, 20_000)
        scaled = choose_r_max_between(points[:900] * 2.0**power, points[900:] * 2.0**power, metric, 20_000)
        assert scaled == (of_tables[0] * 2.0**power, of_tables[1])


def test_heavy_duplicates__still_have_the_exponent_of_the_rest():
    points = twin.cube(size(4400), 2, random())
    points[: size(2200)] = 2.0  # off the square, so that nothing else is near
    fit = fit_epsilon(points)
    # Half of 4400 make more than two million equal pairs, half of a quarter do not.
    assert (fit.n_sample < len(points)) == (not INTERPRETED)
    assert fit.exponent == about(2.0, 0.06)


@pytest.mark.parametrize("d", [1, 2, 5, 8])
def test_choose_r_max__finds_about_the_pairs_wished(d):
    points = twin.cube(800, d, random())
    r_max, rows = choose_r_max(points, get_metric("chebyshev"), 10_000)
    assert rows == 800
    assert len(self_join(points, r_max, "chebyshev").left) == pytest.approx(10_000, rel=0.2)


@pytest.mark.parametrize(
    ("d", "rows_within"), [(2, (20_000, 20_000)), (8, (10_954, 17_000)), (16, (10_954, 12_000))]
)
def test_choose_r_max__takes_fewer_rows_where_a_join_would_compare_nearly_all(d, rows_within):
    # All pairs of 10,954 rows are 60 million; the neighbours of a row stay about 200.
    points = twin.cube(20_000, d, random())
    r_max, rows = choose_r_max(points, get_metric("euclidean"))
    assert rows_within[0] <= rows <= rows_within[1]
    few = np.linalg.norm(points[:100, None] - points[None, :rows], axis=2) <= r_max
    assert few.sum() / 100 - 1 == pytest.approx(200, rel=0.3)
