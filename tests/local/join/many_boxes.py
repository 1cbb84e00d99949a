"""Boxes of many kinds, and their joins by brute force."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import strategies as st

from epsjoin.local.join import objects as join_objects
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.tree import box_tree

SEEDS = st.integers(0, 10**6)
METRICS = {"euclidean": 0.0, "manhattan": 0.0, "chebyshev": 0.0, "minkowski": 3.0}


@contextlib.contextmanager
def many_cuts():
    """Rows cost nothing and few are swept together, so that few rows have many leaves and groups too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_tree, "_MIN_ROWS", 2)
        patch.setattr(join_objects, "BOX_NS_PER_ROW", 0.01)
        patch.setattr(join_objects, "_MAX_ROWS_AT_ONCE", 16)
        yield


def the_metric(name, p):
    return get_metric(name, p) if name == "minkowski" else name


def assert_are(pairs, expected):
    assert list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == sorted(expected)
    wanted = [expected[pair] for pair in sorted(expected)]
    np.testing.assert_allclose(pairs.distance, wanted, rtol=1e-14, atol=0.0)
    assert (pairs.left.dtype, pairs.right.dtype, pairs.distance.dtype) == (np.int64, np.int64, np.float64)
