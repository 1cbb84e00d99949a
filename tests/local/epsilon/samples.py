"""Samples and numbers that the tests of this folder share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from epsjoin.local.epsilon.fit import fit_epsilon
from oracles import INTERPRETED
from oracles import fractal as twin

SEEDS = st.integers(0, 10**6)
# Kernels that are not compiled take fewer rows: pairs are quadratic, errors grow with the root alone.
SLACK = 2.5 if INTERPRETED else 1.0


def random():
    return np.random.default_rng(11)


def size(n):
    return n // 4 if INTERPRETED else n


def about(value, rel):
    return pytest.approx(value, rel=rel * SLACK)


def coverage(estimates, pairs):
    """Share of intervals that hold the pairs; median width and mean estimate, in shares of the pairs."""
    inside = [expected.pairs_low <= pairs <= expected.pairs_high for expected in estimates]
    widths = [expected.pairs_high - expected.pairs_low for expected in estimates]
    return np.mean(inside), np.median(widths) / pairs, np.mean([each.pairs for each in estimates]) / pairs


FIT = fit_epsilon(twin.cube(500, 2, random()), n_rows=10_000)
