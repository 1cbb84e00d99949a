"""The one expectation of pairs: a count, a power law beyond; what it refuses, and the eps that it names."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy.spatial import cKDTree

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.epsilon.bracket import bracket_eps
from epsjoin.local.epsilon.estimate import estimate
from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.epsilon.limits import Expectation
from epsjoin.local.join.arrays import self_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.expectation import sample_pairs
from tests import open_sets
from tests.local.join.many_dimensions import features

EUCLIDEAN = get_metric("euclidean")
TRUE_PAIRS = {0.15: 929_220_814, 0.5: 3.29e9, 1.5: 1.032e10}
"""Pairs of skin within eps, as scipy's trees count them."""


def expectation(sample, n_rows, metric="euclidean"):
    return Expectation(sample, n_rows, get_metric(metric), 0, len(sample))


@pytest.fixture(scope="module")
def skin():
    points = open_sets.read("skin")
    return Expectation(points, len(points), EUCLIDEAN, 0, 20_000)


@pytest.fixture(scope="module")
def skin_fit(skin):
    return fit_epsilon(skin.points)


@pytest.mark.parametrize("eps", [0.15, *(pytest.param(eps, marks=pytest.mark.long) for eps in (0.5, 1.5))])
def test_expectation__beyond_the_fitted_range_is_near_the_truth(skin, skin_fit, eps):
    expected = skin.at(eps)
    assert expected.pairs == pytest.approx(TRUE_PAIRS[eps], rel=0.05)
    assert expected.low < TRUE_PAIRS[eps] < expected.high
    fit = skin_fit
    assert fit.curve.radius[-1] < eps
    assert (
        fit.expect(eps)
        == expected
        == Expectation(skin.points, skin.n_rows, EUCLIDEAN, 0, 20_000, fit).at(eps)
    )
    assert estimate(skin.points, eps).pairs == expected.pairs
    assert fit.expected_pairs(fit.eps_for(pairs=expected.pairs)) == pytest.approx(expected.pairs, rel=2e-3)
    with pytest.raises(BudgetError, match=re.escape(f"about {expected.pairs:.3g} are expected")):
        self_join(skin.points, eps, max_pairs=1000)


def test_refusal__never_is_one_of_what_fits(skin):
    assert skin.refuse_too_many(0.15, 1_000_000_000).pairs < 1e9
    in_doubt = int(skin.at(0.15).pairs * 0.99)
    assert skin.refuse_too_many(0.15, in_doubt).pairs > in_doubt


@pytest.mark.parametrize(("eps", "max_pairs"), [(0.5, 10**9), (1.5, 10**8)])
def test_refusal__has_the_number_and_an_eps_that_is_accepted(skin, eps, max_pairs):
    with pytest.raises(BudgetError, match=re.escape(f"{max_pairs:,} are allowed (max_pairs)")) as refused:
        skin.refuse_too_many(eps, max_pairs, "m")
    said = re.search(
        r"eps ([0-9.]+) m would give about (\S+) pairs .* is about ([0-9.]+) m$", str(refused.value)
    )
    assert float(said[1]) == eps
    if eps in TRUE_PAIRS:
        assert float(said[2]) == pytest.approx(TRUE_PAIRS[eps], rel=0.05)
    fits = float(said[3])
    assert skin.refuse_too_many(fits, max_pairs).pairs <= max_pairs
    assert skin.at(1.01 * fits).pairs > max_pairs, "the largest"


def test_refusal__by_the_law_alone_is_by_its_number():
    sample = np.random.default_rng(5).random((10_000, 2))
    eps = (4.0 / (10**9 * math.pi)) ** 0.5
    many = expectation(sample, 10**9)
    assert many.at(eps).low == 0.0
    assert many.refuse_too_many(eps, 4 * 10**9).pairs == pytest.approx(2e9, rel=0.5)
    with pytest.raises(
        BudgetError, match=r"by the power law.* the largest eps that fits is about 2\."
    ) as refused:
        many.refuse_too_many(eps, 10**9)
    assert many.refuse_too_many(float(str(refused.value).split()[-1]), 10**9).pairs <= 10**9


def test_refusal__says_that_no_eps_fits_where_equal_points_are_too_many():
    equal = expectation(np.zeros((4000, 2)), 4000)
    with pytest.raises(BudgetError) as refused:
        equal.refuse_too_many(1.0, 10**6)
    assert "eps 1 would give about 8e+06 pairs (7.99e+06 to 8e+06), 1,000,000 are" in str(refused.value)
    assert str(refused.value).endswith(
        "no eps fits: about 7,998,000 pairs are of equal points, or nearly equal ones"
    )


def test_refusal__names_the_last_eps_before_a_jump():
    """On a lattice all distances up to 1 are 1."""
    lattice = expectation(
        np.stack(np.meshgrid(np.arange(40.0), np.arange(40.0)), axis=-1).reshape(-1, 2), 1600
    )
    with pytest.raises(BudgetError, match=r"is about 0\.999"):
        lattice.refuse_too_many(1.0, 1000)
    with pytest.raises(BudgetError, match=r"is about 1\.41"):
        lattice.refuse_too_many(3.0, 4000)


@pytest.mark.parametrize("eps", [1e-320, 1e300])
def test_expectation__refuses_an_eps_that_no_join_takes(eps):
    with pytest.raises(ArgumentError, match="too small or too large"):
        expectation(np.zeros((10, 2)), 10).at(eps)


@pytest.mark.parametrize(("d", "volume", "n_rows"), [(2, math.pi, 10**7), (3, 4.0 / 3.0 * math.pi, 10**10)])
def test_expectation__follows_the_power_law_where_the_sample_holds_few_pairs(d, volume, n_rows):
    # four neighbours of each among very many, of which the sample has ten thousand
    eps = (4.0 / (n_rows * volume)) ** (1.0 / d)
    sample = np.random.default_rng(1).random((10_000, d))
    assert len(cKDTree(sample).query_pairs(eps)) < 30
    expected = expectation(sample, n_rows).at(eps)
    assert 0.5 < expected.pairs / (2 * n_rows) < 2.0
    assert expected.low <= expected.pairs <= expected.high
    fit = fit_epsilon(sample, n_rows=n_rows)
    assert fit.eps_for(pairs=expected.pairs) == pytest.approx(eps, rel=1e-5)


def test_expectation__of_clusters_that_a_sample_hardly_sees_is_within_a_factor_of_two():
    random = np.random.default_rng(2)
    centres = random.random((50, 6))
    points = centres[random.integers(0, 50, 200_000)] + random.normal(0.0, 0.02, (200_000, 6))
    sample = points[:10_000]
    assert len(cKDTree(sample).query_pairs(0.004)) < 30
    pairs = 60  # (cKDTree(points).count_neighbors(cKDTree(points), 0.004) - 200_000) / 2
    assert 0.5 < expectation(sample, 200_000).at(0.004).pairs / pairs < 2.0


def test_expectation__by_the_law_is_not_what_the_count_rules_out():
    """Points at least 1 apart: the law knows nothing of that, the sample has no pair below."""
    sample = np.random.default_rng(3).permutation(100_000)[:10_000, None].astype(float)
    expected = expectation(sample, 100_000).at(0.9)
    assert expected.sample_pairs == expected.low == 0
    assert expected.pairs == expected.high
    assert expected.high == pytest.approx(300, rel=0.01), (
        "three pairs of the sample may just have been missed"
    )


def test_expectation__without_a_power_law_is_the_count():
    assert expectation(np.zeros((5, 2)), 10**9).at(1.0).pairs == pytest.approx(10**18 / 2, rel=1e-6)
    two_poles = expectation(np.array([[0.0, 0.0], [0.0, 90.0]]), 10**9, "haversine").at(1.0)
    assert two_poles.pairs == two_poles.low == 0.0


def test_expectation__bears_distances_whose_power_is_no_float():
    sample = np.random.default_rng(3).uniform(0.0, 1e6, (2000, 2))
    minkowski = get_metric("minkowski", 100)
    assert minkowski.decision(1500.0).bound == math.inf
    assert Expectation(sample, 100_000, minkowski, 0, 2000).at(1.0).pairs >= 0.0


@pytest.mark.parametrize("guess", [1e-6, 0.3, 1.0, 40.0])
@pytest.mark.parametrize("target", [2.0, 9.0, 1000.0])
def test_bracket_eps__finds_where_a_number_of_pairs_passes_the_target(guess, target):
    tried = []

    def cubes(eps):
        tried.append(eps)
        return eps**3

    low, high = bracket_eps(cubes, target, guess)
    assert 0.998 * target <= low**3 <= target <= high**3 * 1.002
    assert len(tried) < 40


@pytest.mark.parametrize("guess", [0.5, 1.0, 77.0])
def test_bracket_eps__ends_on_both_sides_of_a_jump(guess):
    low, high = bracket_eps(lambda eps: 100.0 if eps >= 2.0 else 1.0, 50.0, guess)
    assert low < 2.0 <= high <= low * 1.0002


def test_bracket_eps__says_that_every_eps_has_more():
    with pytest.raises(ArgumentError, match="about 7 pairs are of equal points"):
        bracket_eps(lambda _: 7.0, 6.0, 1.0)


@pytest.mark.parametrize("is_self", [True, False])
def test_expectation__of_embeddings_multiplies_no_sample_again_for_a_smaller_eps(monkeypatch, is_self):
    rows = features(1400, 64).astype(np.float64)
    right = {} if is_self else {"right": rows[700:], "right_rows": 10**5}
    multiplied = []
    sweep = sample_pairs.sweep_products
    monkeypatch.setattr(sample_pairs, "sweep_products", lambda *of: multiplied.append(1) or sweep(*of))

    def fresh():
        return Expectation(rows[:700], 10**6, get_metric("cosine"), 0, 700, **right)

    held, every = fresh(), [0.2, 0.12, 0.15, 0.1]
    once = [held.at(eps) for eps in every]
    assert len(multiplied) == 1
    assert once == [fresh().at(eps) for eps in every], "as counted anew"
    assert once[0].sample_pairs > once[2].sample_pairs > once[1].sample_pairs > once[3].sample_pairs > 30
    assert held.at(0.25).pairs > once[0].pairs
    assert held.at(0.22) == fresh().at(0.22)
    message = held.what_fits(once[1].pairs, 0.2)
    assert float(message.rsplit(" ", 1)[1]) == pytest.approx(0.12, rel=0.01)
    assert len(multiplied) == 1 + 4 + 1 + 1, "each fresh one, and the larger eps"
