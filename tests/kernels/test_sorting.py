"""Radix sorts against NumPy's, on what their digits, keys and few moves could break."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from epsjoin.kernels import sorting
from epsjoin.kernels.sorting import FEW, argsort, order_keys, run_starts, sort_numbers

LARGEST = 2**63 - 1
N = FEW + 500


def make(name: str, n: int = N) -> NDArray[np.generic]:
    random = np.random.default_rng(0)
    few_high = random.permutation(np.concatenate([random.integers(0, 9, n - 2), [LARGEST, -LARGEST - 1]]))
    return {
        "ids": random.integers(0, 3 * n, n),
        "far apart": random.integers(-(2**63), LARGEST, n, endpoint=True),
        "many tie in the highest bits": few_high,
        "a fifth ties in the highest bits": np.where(random.random(n) < 0.2, few_high, few_high * 2**40),
        "rising": np.arange(n) - 17,
        "falling": np.arange(n)[::-1].copy(),
        "one number": np.full(n, -5),
        "one bit": random.integers(0, 2, n) - 1,
        "words": random.integers(0, 2**64, n, dtype=np.uint64),
        "numbers of 32 bits": random.integers(0, 2**32, n, dtype=np.uint32),
        "close together": 5.0 + 1e-9 * random.random(n),
        "of both signs": random.standard_normal(n),
        "rounded": np.round(random.standard_normal(n), 1) * random.choice([-1.0, 1.0], n),
        "not finite": random.choice([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, 5e-324, -5e-324], n),
    }[name]


INTEGERS = [
    *("ids", "far apart", "many tie in the highest bits", "a fifth ties in the highest bits"),
    *("rising", "falling", "one number", "one bit", "words", "numbers of 32 bits"),
]
FLOATS = ["close together", "of both signs", "rounded", "not finite"]


@pytest.mark.parametrize("n", [0, 1, FEW - 1, FEW, N])
@pytest.mark.parametrize("name", INTEGERS)
def test_sort_numbers__is_numpys(name: str, n: int) -> None:
    numbers = make(name)[:n].copy()
    expected = np.sort(numbers)
    sort_numbers(numbers)
    np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize("n", [0, 1, FEW - 1, FEW, N])
@pytest.mark.parametrize("name", [name for name in INTEGERS if "32" not in name] + FLOATS)
def test_argsort__is_numpys_stable_one_and_leaves_the_values(name: str, n: int) -> None:
    values = make(name)[:n].copy()
    before = values.tobytes()
    order = argsort(values)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    assert values.tobytes() == before


def test_argsort__takes_a_column_of_a_matrix() -> None:
    values = np.random.default_rng(0).random((N, 3))
    np.testing.assert_array_equal(argsort(values[:, 1]), np.argsort(values[:, 1], kind="stable"))


@pytest.mark.parametrize("n", [5, N])
def test_lexsort__is_numpys(n: int) -> None:
    random = np.random.default_rng(0)
    words = make("words", n).astype(np.uint64) % 2**63 * 2
    columns = [random.integers(-3, 3, n), random.random(n).round(1), words % 4, random.random(n) < 0.5]
    columns += [random.integers(-2, 3, n).astype(np.int8), random.integers(0, 3, n).astype(np.uint32)]
    for first in range(len(columns)):
        some = columns[first:]
        np.testing.assert_array_equal(sorting.lexsort(some), np.lexsort(some))


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint8, "datetime64[s]"])
def test_argsort__of_other_types_is_numpys(kind) -> None:
    values = np.random.default_rng(0).integers(0, 200, N).astype(kind)
    np.testing.assert_array_equal(argsort(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("n", [3, N])
def test_order_keys__sorts_them_too(n: int) -> None:
    keys = make("words")[:n].astype(np.uint64) % 97
    before = keys.copy()
    order = order_keys(keys)
    np.testing.assert_array_equal(order, np.argsort(before, kind="stable"))
    np.testing.assert_array_equal(keys, before[order])


@given(
    st.integers(0, 62),
    st.integers(0, 2**62),
    arrays(np.int64, 40, elements=st.integers(-(2**63), LARGEST)),
)
def test_sort_numbers__with_last_bits_that_rise_looks_at_the_others(bits, begin, few) -> None:
    """The number of a row is in the last bits; also where these of the least are larger than of others."""
    some = np.random.default_rng(0).choice(few, N)
    last = (begin + np.arange(N)) % 2**bits if bits else np.zeros(N, np.int64)
    last.sort()
    numbers = some >> bits << bits | last
    expected = np.sort(numbers)
    sort_numbers(numbers, bits)
    np.testing.assert_array_equal(numbers, expected)


def test_rows__have_64_bits_where_32_do_not_hold_them() -> None:
    keys = make("words").astype(np.uint64)
    expected = np.argsort(keys, kind="stable")
    rows = np.arange(N, dtype=np.int64)
    sorting._sort(keys, False, 0, rows, np.empty_like(rows))
    np.testing.assert_array_equal(rows, expected)


def test_run_starts__are_those_of_unique_values() -> None:
    rising = np.sort(make("one bit", 50))
    np.testing.assert_array_equal(run_starts(rising), np.unique(rising, return_index=True)[1])
    assert run_starts(rising[:0]).tolist() == []
