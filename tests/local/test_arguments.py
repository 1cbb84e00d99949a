"""Columns, numbers and counts as they come: what is taken, and what is refused in a sentence."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import epsjoin
from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import as_number, check_count, check_seed, int_column

_BEYOND = 10**400  # an integer that float64 cannot come near


def test_int_column__takes_no_bools_for_numbers():
    assert int_column("ids", []).dtype == np.int64
    with pytest.raises(
        ArgumentError, match="ids must be a one-dimensional array of int64, not 1-dimensional bool"
    ):
        int_column("ids", [False, True])
    with pytest.raises(ArgumentError, match="ids must be a one-dimensional array of int64"):
        epsjoin.self_join(np.eye(2), 1.0, ids=[False, True])


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (2, 2.0),
        (np.float32(0.5), 0.5),
        (Fraction(1, 2), 0.5),
        (Decimal("1.5"), 1.5),
        (np.array(3), 3.0),
        (_BEYOND, math.inf),
        (-_BEYOND, -math.inf),
    ],
)
def test_as_number__is_the_float_of_a_real_number(given, number):
    assert as_number(given) == number


@pytest.mark.parametrize(
    "given", [None, "1", True, np.True_, Decimal("sNaN"), 1j, np.complex128(1), [1.0], np.array([1.0])]
)
def test_as_number__is_nan_for_all_else(given):
    assert math.isnan(as_number(given))


@pytest.mark.parametrize(
    "call",
    [
        lambda: epsjoin.self_join(np.eye(3), _BEYOND),
        lambda: epsjoin.box_join((np.eye(3), np.eye(3)), eps=_BEYOND),
        lambda: epsjoin.lof(np.eye(3), k=1, added_distance=_BEYOND),
        lambda: epsjoin.db_outliers(np.eye(3), eps=1.0, share=np.complex128(0.5)),
        lambda: epsjoin.local_exponents(np.eye(3), neighbours=None),
        lambda: epsjoin.Cuts(replication_budget="2"),
        lambda: epsjoin.Within(_BEYOND),
    ],
)
def test_number__of_another_kind_is_refused_in_a_sentence(call):
    with pytest.raises(ArgumentError, match="must be|needs"):
        call()


@pytest.mark.parametrize(
    "value", [2**63, np.uint64(2**63), 10**30, 10**5000], ids=["2^63", "uint64", "10^30", "10^5000"]
)
def test_check_count__refuses_what_int64_does_not_hold(value):
    assert check_count("k", 2**63 - 1) == 2**63 - 1
    with pytest.raises(
        ArgumentError, match="k must be a whole number of at most 9,223,372,036,854,775,807, not"
    ):
        check_count("k", value)


def test_check_seed__takes_seeds_of_any_size():
    assert check_seed("seed", 10**30) == 10**30
    assert epsjoin.estimate(np.eye(9), 1.0, seed=2**100).pairs == 0
    with pytest.raises(ArgumentError, match="seed must be a whole number, at least 0, not -1"):
        check_seed("seed", -1)


_TREE = epsjoin.Trees.from_brackets(["{a}"])
_NO_TREES = epsjoin.Trees.from_brackets([])


@pytest.mark.parametrize("number", [10**30, 2**62])
@pytest.mark.parametrize(
    "call",
    [
        lambda k: epsjoin.knn_join(np.empty((0, 2)), np.eye(2), k),
        lambda k: epsjoin.Index(np.eye(2)).knn(np.empty((0, 2)), k),
        lambda k: epsjoin.tree_knn(_NO_TREES, _TREE, k),
        lambda k: epsjoin.tree_join(_TREE, 1, bins=(k, 2)),
        lambda k: epsjoin.string_join(["a", "b"], 1, bins=k),
    ],
)
def test_number_of_columns__that_no_array_has_is_refused_in_a_sentence(call, number):
    with pytest.raises(ArgumentError, match=r"([kn] must .* most 4,294,967,296|bins must .* most 65,536)"):
        call(number)
