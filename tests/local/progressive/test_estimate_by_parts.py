"""The running estimate of a join in parts: replayed in many orders, on parts that were joined one by one."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from benchmarks.sets import BY_NAME, cad, skewed
from epsjoin import get_metric, self_join
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.join.parts import join_part
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.expectation.expected_parts import expect_parts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.spread import replicate
from epsjoin.local.plan.two_tables import SampledSides
from epsjoin.local.progressive.estimate_by_parts import (
    PartsAhead,
    count_radii,
    estimate_parts,
    fraction_done,
    largest_fitting_eps,
    look_ahead,
    seconds_left,
)

EUCLIDEAN = get_metric("euclidean")


class Joined(NamedTuple):
    """A set that was joined part by part."""

    points: Floats
    plan: JoinPlan
    rows: Floats
    candidates: Floats
    distances: list[Floats]
    ends: list[Ints]

    @property
    def found(self) -> Floats:
        return np.array([float(len(of_part)) for of_part in self.distances])

    @property
    def ahead(self) -> PartsAhead:
        return look_ahead(self.plan.parts, self.rows, self.plan.expected_pairs, self.plan.n_parts)


def join_by_parts(points: Floats, eps: float, cuts: Cuts, sample: Ints | None = None) -> Joined:
    n = len(points)
    sample = cuts.sample(n) if sample is None else sample
    plan = plan_join(points[sample], sample, n, eps, EUCLIDEAN, cuts)
    plan = replace(plan, parts=expect_parts(plan, points[sample], sample, n))
    replicas = replicate(points, np.arange(n), plan)
    bounds = np.searchsorted(replicas.part, np.arange(plan.n_parts + 1))
    rows, candidates = np.diff(bounds).astype(float), np.zeros(plan.n_parts)
    distances, ends = [], []
    for part in range(plan.n_parts):
        here = slice(bounds[part], bounds[part + 1])
        row, counters = replicas.row[here], dict[str, int]()
        pairs = list(join_part(points[row], row, replicas.key[here], part, plan, counters=counters))
        distances.append(np.concatenate([np.empty(0), *(batch.distance for batch in pairs)]))
        of_batches = [np.stack((batch.left, batch.right), axis=1) for batch in pairs]
        ends.append(np.concatenate([np.empty((0, 2), np.int64), *of_batches]))
        candidates[part] = counters["candidates"]
    return Joined(points, plan, rows, candidates, distances, ends)


@pytest.fixture(scope="module")
def surface() -> Joined:
    """Sixty thousand points of the surface of ``cad16L``, in 64 parts, planned on a twelfth of them."""
    return join_by_parts(cad(60_000), 0.015, Cuts(n_parts=64, sample_rows=5000))


def replay(joined: Joined, share: float, within: float) -> tuple[int, int]:
    """In how many of 100 orders the interval holds the truth, and the estimate is so near to it."""
    found, expected = joined.found, joined.ahead.pairs
    truth, held, near = found.sum(), 0, 0
    for seed in range(100):
        is_done = np.zeros(len(found), np.bool_)
        is_done[np.random.default_rng(seed).permutation(len(found))[: math.ceil(len(found) * share)]] = True
        estimate = estimate_parts(expected, found, is_done)
        assert estimate.pairs is not None
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low >= found[is_done].sum()
        held += estimate.low <= truth <= estimate.high
        near += abs(estimate.pairs - truth) <= within * truth
    return held, near


ORDERS = ((0.1, 0.2), (0.25, 0.2), (0.5, 0.1), (0.75, 0.1), (0.95, 0.05))
"""The fraction of the parts that is done at least, and how near the estimate then is."""


@pytest.mark.parametrize(("share", "within"), ORDERS)
def test_estimate_parts__holds_the_truth_in_random_orders(
    surface: Joined, share: float, within: float
) -> None:
    assert surface.plan.n_parts == 64
    held, near = replay(surface, share, within)
    assert held >= 95
    assert near >= 90


@pytest.mark.long
def test_estimate_parts__holds_the_truth_of_a_large_set_in_random_orders() -> None:
    """1.3 million points and 3,203,044 pairs, planned on 20,000 points: 11 pairs of them for each part."""
    large = BY_NAME["cad16L"]
    assert large.eps is not None
    joined = join_by_parts(large.make(), large.eps, Cuts(n_parts=64))
    assert joined.found.sum() == 3_203_044
    for share, within in ORDERS:
        held, near = replay(joined, share, within)
        print(f"{share:.0%} of 64 parts: held {held}, within {within:.0%} {near}")
        assert held >= 95
        assert near >= 90


def test_estimate_parts__is_hardly_ever_sure_of_more_pairs_than_there_are(surface: Joined) -> None:
    """A join that fits must not be ended, at any of its 64 moments."""
    found, expected = surface.found, surface.ahead.pairs
    wrong = 0
    for seed in range(100):
        is_done, above = np.zeros(len(found), np.bool_), False
        for part in np.random.default_rng(seed).permutation(len(found)):
            is_done[part] = True
            low = estimate_parts(expected, found, is_done).low
            above |= low is not None and low > found.sum()
        wrong += above
    assert wrong <= 3


def test_estimate_parts__is_the_plans_word_then_the_ratio_then_exact() -> None:
    expected, found = np.array([10.0, 20.0, 30.0, 40.0]), np.array([20.0, 40.0, 60.0, 80.0])
    none, all_done = np.zeros(4, np.bool_), np.ones(4, np.bool_)
    assert estimate_parts(expected, found, none).pairs == 100.0
    one = estimate_parts(expected, found, np.array([True, False, False, False]))
    assert one.pairs == pytest.approx(20.0 + 90.0 * (20.0 + 50.0) / (10.0 + 50.0))
    assert one.low is None
    two = estimate_parts(expected, found, np.array([True, True, False, False]))
    assert two.pairs == pytest.approx(60.0 + 70.0 * (60.0 + 50.0) / (30.0 + 50.0))
    assert two.low is not None
    assert two.high is not None
    assert two.low >= 60.0
    assert two.high > 200.0
    assert estimate_parts(expected, found, all_done) == (200.0, 200.0, 200.0, "")


@pytest.mark.parametrize("n_cores", [1, 2, 4])
def test_seconds_left__are_known_from_half_time(surface: Joined, n_cores: int) -> None:
    """The largest parts begin first, on a simulated clock; a second is a million units of counted work."""
    takes = (500.0 * surface.rows + 1.5 * surface.candidates + 60.0 * surface.found) / 1e6
    order = np.argsort(-surface.rows, kind="stable")
    work = surface.ahead.work[order]
    begin, end, free = np.zeros(64), np.zeros(64), [0.0] * n_cores
    for place, part in enumerate(order):
        begin[place] = heapq.heappop(free)
        end[place] = begin[place] + takes[part]
        heapq.heappush(free, end[place])
    whole = end.max()
    for share in (0.5, 0.6, 0.7, 0.8):
        now = share * whole
        is_done = end <= now
        left = seconds_left(work, is_done, (begin <= now) & ~is_done, now)
        assert left == pytest.approx(whole - now, rel=0.25)
        assert fraction_done(work, is_done) == pytest.approx(share, abs=0.1)
    assert seconds_left(work, np.zeros(64, np.bool_), np.ones(64, np.bool_), 5.0) is None
    assert seconds_left(work, np.ones(64, np.bool_), np.zeros(64, np.bool_), 5.0) == 0.0


def test_join__of_equal_rows_that_the_sample_misses_ends_before_a_quarter_of_its_parts() -> None:
    """A hot ball and a thousand equal rows with 499,500 pairs, of which the sample has two."""
    eps = 0.03
    points, random = skewed(20_000, eps), np.random.default_rng(9)
    equal = random.choice(len(points), 1000, replace=False)
    points[equal] = points[7]
    others = np.setdiff1d(random.permutation(len(points))[:1500], equal[2:])
    joined = join_by_parts(points, eps, Cuts(n_parts=32), np.sort(others))
    found, expected = joined.found, joined.ahead.pairs
    max_pairs = 499_500 + int(found.sum() - 499_500) // 2
    assert joined.plan.expected_pairs < max_pairs
    is_done = np.zeros(len(found), np.bool_)
    for part in np.argsort(-joined.rows, kind="stable"):  # as tasks begin
        is_done[part] = True
        low = estimate_parts(expected, found, is_done).low
        if low is not None and low > max_pairs:
            break
    assert is_done.mean() < 0.25
    by_radius = np.array([count_radii(joined.distances[part], eps) for part in np.flatnonzero(is_done)])
    fitting = largest_fitting_eps(by_radius, expected[is_done], expected[~is_done].sum(), eps, max_pairs)
    assert fitting is not None
    assert 0.5 * max_pairs < len(self_join(points, fitting).left) <= max_pairs


def test_look_ahead__corrects_the_plan_by_rows_and_falls_back_on_them(surface: Joined) -> None:
    parts = surface.plan.parts
    assert parts is not None
    assert parts.pairs.sum() == pytest.approx(surface.plan.expected_pairs, rel=1e-4)
    as_planned = look_ahead(parts, None, 0.0, 64)
    np.testing.assert_array_equal(as_planned.pairs, parts.pairs)
    twice = look_ahead(parts, 2.0 * parts.rows, 0.0, 64)
    np.testing.assert_allclose(twice.pairs, 4.0 * parts.pairs)
    np.testing.assert_allclose(twice.work, 2.0 * parts.seconds)
    by_rows = look_ahead(None, np.array([1.0, 3.0]), 100.0, 2)
    np.testing.assert_allclose(by_rows.pairs, [25.0, 75.0])
    np.testing.assert_allclose(look_ahead(None, None, 100.0, 2).pairs, [50.0, 50.0])


def test_expect_parts__counts_the_samples_own_pairs_by_part() -> None:
    """Where the sample is everything, what is expected is what is found, and one pair more in each."""
    points = cad(3000)
    joined = join_by_parts(points, 0.05, Cuts(n_parts=6, sample_rows=3000))
    parts, found = joined.plan.parts, joined.found
    assert parts is not None
    np.testing.assert_array_equal(parts.rows, joined.rows)
    np.testing.assert_allclose(parts.pairs, found.sum() * (found + 1) / (found + 1).sum(), rtol=1e-5)
    ids, is_right = np.arange(3000), np.arange(3000) >= 1000
    between = expect_parts(joined.plan, points, ids, 3000, SampledSides(is_right, (1000, 2000)))
    assert between is not None
    crossing = np.array([float(np.count_nonzero((mine < 1000).sum(axis=1) == 1)) for mine in joined.ends])
    assert 0 < crossing.sum() < found.sum()
    np.testing.assert_allclose(between.pairs, found.sum() * (crossing + 1) / (crossing + 1).sum(), rtol=1e-5)
    assert expect_parts(joined.plan, points[:0], ids[:0], 3000) is None
    text = joined.plan.to_json()
    assert JoinPlan.from_json(text).to_json() == text
    assert JoinPlan.from_json(replace(joined.plan, parts=None).to_json()).parts is None


def test_largest_fitting_eps__is_the_largest_that_fits() -> None:
    eps, distances = 2.0, 2.0 * np.random.default_rng(1).random((4, 2500)) ** (1 / 3)
    by_radius, expected = np.array([count_radii(mine, eps) for mine in distances]), np.full(4, 1250.0)
    np.testing.assert_array_equal(by_radius.sum(axis=1), 2500)
    fitting = largest_fitting_eps(by_radius, expected, 0.0, eps, 5000)
    assert fitting is not None
    assert 4700 <= np.count_nonzero(distances <= fitting) <= 5000
    with_rest = largest_fitting_eps(by_radius, expected, 5000.0, eps, 5000)
    assert with_rest is not None
    assert 1850 <= np.count_nonzero(distances <= with_rest) <= 2000, "four parts add a half to the rest"
    equal = count_radii(np.zeros(300), eps)[None]
    assert largest_fitting_eps(equal, np.ones(1), 0.0, eps, 299) is None
    two_equal = count_radii(np.array([2.0, 2.0, 1e-9, 1e-9]), eps)[None]
    assert largest_fitting_eps(two_equal, np.ones(1), 0.0, eps, 2) == pytest.approx(2.0, rel=0.02)
    assert largest_fitting_eps(np.empty((0, by_radius.shape[1])), np.empty(0), 9.0, eps, 8) is None
