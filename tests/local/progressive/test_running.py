"""Estimates while a join runs: formulas by hand, and on many seeds how often the interval holds the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from benchmarks.progressive import coverage, estimates
from epsjoin.local.progressive.kinds.similarity import Similarity
from epsjoin.local.progressive.running import (
    NOT_RANDOM,
    OrderCheck,
    RunPairs,
    chi_square_tail,
    from_merge,
    from_runs,
    student,
    variance_of_some,
)
from epsjoin.progressive.join import progressive_join


def test_from_runs__scales_pairs_by_combinations_that_have_met():
    runs = [RunPairs(10, 100.0, 4.0), RunPairs(14, 100.0, 5.0)]
    estimate = from_runs(runs, 10_000.0, 0.0, True)
    assert estimate.pairs == 24 * 50
    assert estimate.high - estimate.pairs == pytest.approx(1.959964 * math.sqrt(9.0 + 24) * 50)
    assert from_runs(runs, 10_000.0, 0.0, False) == (1200.0, None, None, NOT_RANDOM)
    assert from_runs([], 10_000.0, 0.0, True).pairs is None


def test_from_runs__of_five_takes_their_differences():
    pairs = [800, 1000, 1200, 900, 1100]
    estimate = from_runs([RunPairs(z, 100.0, 1e9) for z in pairs], 2000.0, 0.25, True)
    assert estimate.pairs == 20_000.0
    half = scipy.stats.t.ppf(0.975, 4) * np.std(pairs, ddof=1) / math.sqrt(5) * 20
    assert estimate.high - estimate.pairs == pytest.approx(half, rel=1e-3)


def test_from_merge__is_c_above_over_below_and_nothing_at_the_end():
    z, w = np.array([10.0, 12.0, 8.0]), np.array([5.0, 6.0, 4.0])
    rest, half = from_merge(z, w, 60.0, np.array([40.0, 40.0, 40.0]))
    assert rest == 60.0
    assert half > 0.0
    assert from_merge(z, z, 120.0, np.array([80.0, 80.0, 80.0]))[0] == 0.0
    assert math.isnan(from_merge(z, np.zeros(3), 0.0, np.zeros(3))[0])


def test_from_merge__of_nothing_found_is_no_certainty():
    z, w = np.array([10.0, 12.0, 8.0]), np.array([1.0, 1.0, 1.0])
    rest, half = from_merge(z, w, 0.0, np.zeros(3))
    assert rest == 0.0
    assert half > 9.0  # by 27 more pairs of the runs: one for three is as likely as not


@pytest.mark.parametrize("sizes", [[100] * 6, [300, *[30] * 10]], ids=["equal parts", "a large part"])
def test_variance_of_some__is_that_of_many_random_divisions(sizes):
    random = np.random.default_rng(5)
    weight = np.where(random.random(600) < 0.1, 0.5, 0.05)  # a tenth of the rows has most neighbours
    is_pair = np.triu(random.random((600, 600)) < np.outer(weight, weight), 1)
    is_pair |= is_pair.T
    ends = np.cumsum(sizes)
    counts, expected = [], []
    for _ in range(400):
        parts = np.split(random.permutation(600), ends[:-1])
        runs = []
        for part in parts:
            degree = is_pair[np.ix_(part, part)].sum(axis=1)
            runs.append(RunPairs(degree.sum() / 2, math.comb(len(part), 2), len(part) * degree.var(ddof=1)))
        counts.append(sum(run.pairs for run in runs))
        met = [run.combinations for run in runs]
        expected.append(variance_of_some(counts[-1], runs, met, math.comb(600, 2)))
    assert np.mean(expected) == pytest.approx(np.var(counts), rel=0.2)


def test_estimate__of_merges_before_the_last_one_holds_the_truth(monkeypatch):
    """What is sorted and merged by then is a part of the rows, which tells of all of them with an error."""
    monkeypatch.setattr("epsjoin.local.progressive.sizes.BUFFER_BYTES", 4000)
    holds = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        points = np.concatenate((random.normal(0.0, 0.02, (500, 2)), random.random((900, 2))))
        table = random.permutation(points)
        latest = {}  # of each merge
        with progressive_join(table, on=Similarity(0.008), memory=60_000) as found:
            for batch in found:
                if batch.phase == "merges":
                    latest[found.counters["merges"]] = batch.estimate
        true = found.estimate.pairs
        del latest[max(latest)]
        holds += [each.low <= true <= each.high for each in latest.values() if each.low is not None]
    assert len(holds) >= 50
    assert np.mean(holds) >= 0.93


def test_tails__are_those_of_scipy():
    for freedom in (1, 15, 60, 285):
        for level in (0.5, 1e-2, 1e-3):
            statistic = scipy.stats.chi2.isf(level, freedom)
            assert chi_square_tail(statistic, freedom) == pytest.approx(level, rel=0.2)
    assert student(4) == pytest.approx(scipy.stats.t.ppf(0.975, 4), abs=1e-3)
    assert chi_square_tail(0.0, 3) == 1.0


def test_order_check__sees_rows_in_order_of_the_key_or_of_a_column():
    random = np.random.default_rng(0).random((4000, 3))
    by_column = random[np.argsort(random[:, 1])]
    by_key = random[np.argsort(random[:, 0])]
    for values, is_random in ((random, True), (by_key, False), (by_column, False)):
        check = OrderCheck()
        for run in values.reshape(10, 400, 3):
            check.add(run[:, 0], run)
        assert check.is_random == is_random
        again = OrderCheck(check.edges, check.counts)  # what a manifest keeps
        assert again.is_random == is_random
        assert again.counts == check.counts


def test_estimate__of_rows_by_cluster_holds_in_the_merge_only():
    done = [estimates(seed, by_cluster=True, n=1000) for seed in range(3)]
    for one in done:
        assert not one.is_random[2]
        assert one.estimates["run", 5].note == NOT_RANDOM
        half = one.estimates["merge", 50]
        assert half.low is not None
        assert abs(half.pairs - one.pairs) < 0.25 * one.pairs


@pytest.mark.long
def test_estimate__holds_the_truth_in_both_orders():
    for by_cluster in (False, True):
        done = [estimates(seed, by_cluster=by_cluster) for seed in range(200)]
        for percent in (50, 90):
            assert coverage(done, ("merge", percent))[2] >= 0.93
        if by_cluster:
            assert not any(one.is_random[5] for one in done)
        else:
            assert sum(not one.is_random[19] for one in done) <= 2
            for run in (1, 5, 10):
                assert coverage(done, ("run", run))[2] >= 0.93
            assert coverage(done, ("merge", 10))[2] >= 0.93
