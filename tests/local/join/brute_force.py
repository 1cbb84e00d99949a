"""Joins of arrays by brute force, and the comparison with them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from epsjoin.local.join.arrays import self_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from oracles import join as twin

SEEDS = st.integers(0, 10**6)


def found_pairs(pairs):
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


def as_metric(name):
    return get_metric("minkowski", 3.0) if name == "minkowski" else name


CUT_FIELDS = ("n_parts", "k", "msl", "replication_budget", "sample_rows", "seed")


def join_by(points, eps, metric="euclidean", cuts=None, **options):
    """The self join in one part, or cut as the options say."""
    fields = {name: options.pop(name) for name in CUT_FIELDS if name in options}
    if cuts is not None or fields:
        options["cuts"] = Cuts(cuts or "planned", **fields)
    return self_join(points, eps, metric, **options)


def assert_is_brute_force(points, eps, metric="euclidean", p=0.0, **options):
    expected = twin.brute_force(points, eps, metric, p)
    if metric == "minkowski":
        metric = get_metric("minkowski", p)
    pairs = join_by(points, eps, metric, **options)
    assert found_pairs(pairs) == sorted(expected)
    wanted = [expected[pair] for pair in sorted(expected)]
    np.testing.assert_allclose(pairs.distance, wanted, rtol=1e-12, atol=0.0)
