"""The sets of the benchmarks: the same every time, read whole, with the pairs that are known."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from benchmarks.contenders import (
    epsjoin_pairs,
)
from benchmarks.sets import BY_NAME, cad, first_of_cad, histograms, subspace, uniform


def test_sets__are_the_same_every_time_and_share_no_numbers():
    for make in (
        partial(cad, 300),
        partial(histograms, 300),
        partial(subspace, 300, 5),
        partial(uniform, 300, 3),
    ):
        one = make()
        assert np.array_equal(one, make())
        assert np.isfinite(one).all()
    assert np.array_equal(uniform(100, 2, 40), uniform(120, 2)[20:])
    assert np.array_equal(first_of_cad(50, 300), cad(300)[:50])


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("landmarks", (121_960, 2)),
        ("pendigits", (6_870, 16)),
        ("landsat", (6_435, 36)),
        ("digits", (1_797, 64)),
        ("cities", (144_563, 2)),
    ],
)
def test_sets__real_ones_are_read_whole(name, shape):
    assert BY_NAME[name].make().shape == shape


def test_sets__have_the_pairs_that_are_known():
    """Computed with scikit-learn and SciPy, see tests/data/expected.json."""
    for name, pairs in (("pendigits", 59_888), ("landsat", 131_497), ("digits", 6_122)):
        chosen = BY_NAME[name]
        assert epsjoin_pairs(chosen.make(), chosen.eps) == pairs
