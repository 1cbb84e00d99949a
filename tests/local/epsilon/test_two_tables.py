"""Two tables: how many pairs there will be between them, and the power law of these pairs."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin import Cuts, estimate, fit_epsilon, join
from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.epsilon.limits import Expectation
from epsjoin.local.metric import get_metric
from oracles import join as twin
from tests import open_sets
from tests.local.epsilon.samples import coverage

SETS = ["landmarks", "pendigits", "digits"]
SAMPLES = 100


def halves(name: str) -> tuple[np.ndarray, np.ndarray, float, int]:
    points, expected = open_sets.read(name), open_sets.EXPECTED[name]["two_set_even_odd"]
    return points[::2], points[1::2], expected["eps"], expected["pairs"]


@pytest.mark.parametrize("name", SETS)
def test_estimate__of_two_tables_has_their_pairs_in_its_interval(name: str) -> None:
    even, odd, eps, pairs = halves(name)
    expected = estimate(even, eps, right=odd)
    assert expected.pairs_low <= pairs <= expected.pairs_high
    assert (expected.n_rows, expected.right_rows) == (len(even), len(odd))
    assert expected.neighbours == expected.pairs / len(even)
    if len(odd) <= 20_000:
        assert expected.pairs_low == pairs == expected.pairs_high, "all rows are counted"
    counters: dict[str, int] = {}
    join(even, odd, eps, counters=counters)
    assert counters["candidates"] / 2 <= expected.candidates <= 2 * counters["candidates"]
    assert expected.rows == counters["rows"]


@pytest.mark.parametrize(("name", "rows", "widest"), [("landmarks", 6000, 1.2), ("pendigits", 500, 0.6)])
def test_estimate__of_samples_of_two_tables_covers_their_pairs(name: str, rows: int, widest: float) -> None:
    even, odd, eps, pairs = halves(name)
    estimates = []
    for seed in range(SAMPLES):
        random = np.random.default_rng(seed)
        left, right = (each[random.choice(len(each), rows, replace=False)] for each in (even, odd))
        estimates.append(estimate(left, eps, right=right, n_rows=len(even), right_rows=len(odd)))
    inside, width, share = coverage(estimates, pairs)
    assert inside >= 0.9
    assert share == pytest.approx(1.0, abs=0.06)
    assert width < widest, "an interval that holds everything would say nothing"


def test_estimate__of_two_tables_in_parts_counts_replicas() -> None:
    random = np.random.default_rng(6)
    left, right, cuts = random.random((20_000, 2)), random.random((8000, 2)), Cuts(n_parts=16)
    expected = estimate(left, 0.02, right=right, cuts=cuts)
    counters: dict[str, int] = {}
    join(left, right, 0.02, cuts=cuts, counters=counters)
    assert expected.rows == pytest.approx(counters["rows"], rel=0.1)
    assert counters["candidates"] / 2 <= expected.candidates <= 2 * counters["candidates"]


@pytest.mark.parametrize("name", SETS)
def test_fit_epsilon__of_two_halves_has_the_exponent_of_the_set(name: str) -> None:
    points = open_sets.read(name)
    whole, between = fit_epsilon(points), fit_epsilon(points[::2], right=points[1::2])
    assert between.exponent == pytest.approx(whole.measured_law.exponent, rel=0.1)
    low = max(whole.measured_law.interval_low, between.power_law.interval_low)
    assert low <= min(whole.measured_law.interval_high, between.power_law.interval_high), "intervals meet"


@pytest.mark.parametrize("name", SETS)
def test_fit_epsilon__of_two_tables_chooses_eps_for_pairs_and_neighbours(name: str) -> None:
    even, odd, eps, pairs = halves(name)
    fit = fit_epsilon(even, right=odd)
    expected = fit.expect(eps)
    assert expected.low <= pairs <= expected.high
    for chosen in (fit.eps_for(pairs=pairs), fit.eps_for(neighbours=pairs / len(even))):
        assert len(join(even, odd, chosen).left) == pytest.approx(pairs, rel=0.25)
    with pytest.raises(
        ArgumentError, match=r"are too many: [\d,]+ and [\d,]+ points have [\d,]+; choose fewer"
    ):
        fit.eps_for(pairs=1e12)


def test_fit_epsilon__of_two_tables_knows_distances_to_the_nearest_right_rows() -> None:
    random = np.random.default_rng(2)
    left, right = random.random((900, 2)), random.random((1500, 2))
    eps = fit_epsilon(left, right=right).eps_for(k_distance_quantile=0.8, k=3)
    neighbours = np.bincount([i for i, _ in twin.between(left[:300], right, eps)], minlength=300)
    assert np.mean(neighbours >= 3) == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize("gap", [1.5, 100.0])
def test_fit_epsilon__of_tables_that_lie_apart_says_so_in_a_sentence(gap: float) -> None:
    random = np.random.default_rng(2)
    left, right = random.random((4000, 2)), random.random((4000, 2)) + np.array([gap, 0.0])
    with pytest.raises(ArgumentError, match="^the tables lie apart: the first pairs .* choose eps by hand$"):
        fit_epsilon(left, right=right)


def test_fit_epsilon__of_tables_that_touch_has_the_exponent_of_their_corner() -> None:
    random = np.random.default_rng(2)
    fit = fit_epsilon(random.random((6000, 1)), right=1.0 + random.random((6000, 1)))
    assert fit.exponent == pytest.approx(2.0, abs=0.15)


def test_expectation__of_two_tables_names_the_largest_eps() -> None:
    even, odd, eps, pairs = halves("landmarks")
    one = Expectation(even, len(even), get_metric("euclidean"), 0, 20_000, None, odd, len(odd))
    with pytest.raises(BudgetError, match="the largest eps that fits is about") as refused:
        one.refuse_too_many(10 * eps, pairs)
    fits = float(str(refused.value).split("about ")[-1])
    assert len(join(even, odd, fits).left) == pytest.approx(pairs, rel=0.3)
    assert 0 < fits < 10 * eps


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (np.zeros((3, 2)), np.zeros((3, 1)), "points and right must have the same dimensions, not 2 and 1"),
        (np.zeros((3, 2)), np.empty((0, 2)), "a power law needs points in both tables, not 3 and 0"),
        (np.zeros((3, 2)), np.zeros((4, 2)), "no two different points were met between 3 and 4 sampled"),
        (np.zeros((3, 1)), [[np.nan]], "right must be finite; row 0, column 0 is nan"),
    ],
)
def test_fit_epsilon__of_two_tables_says_what_is_wrong(left, right, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        fit_epsilon(left, right=right)


def test_estimate__of_two_tables_takes_few_points() -> None:
    assert estimate(np.zeros((3, 2)), 1.0, right=np.empty((0, 2))).pairs == 0.0
    assert estimate(np.zeros((3, 2)), 1.0, right=np.zeros((2, 2))).pairs == 6.0
    with pytest.raises(ArgumentError, match="points and right must have the same dimensions, not 2 and 1"):
        estimate(np.zeros((3, 2)), 1.0, right=np.zeros((3, 1)))


@pytest.mark.filterwarnings("error")
def test_fit_epsilon__of_one_left_row_warns_of_nothing_and_has_a_wide_interval() -> None:
    law = fit_epsilon([[0.5, 0.5]], right=np.random.default_rng(0).random((1500, 2))).power_law
    assert law.interval_low < 0.0
    assert law.exponent == pytest.approx(2.0, abs=0.3)
    assert law.interval_high > 5.0
