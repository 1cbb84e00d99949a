"""Pairs that are written by rank against one comparison sort."""

import numpy as np
import pytest

from epsjoin.kernels.pairs.ranks import write_sorted
from epsjoin.kernels.pairs.sort_pairs import FEW

_SIZES = (0, 1, 2, 7, 8, 9, 16, 17, FEW - 1, FEW, FEW + 1, 0, 3, 100, 0)


@pytest.mark.parametrize("with_distance", [True, False])
@pytest.mark.parametrize(("kind", "into"), [(np.int32, np.int64), (np.int32, np.int32), (np.int64, np.int64)])
def test_write_sorted__sorts_by_both_rows_and_keeps_equal_pairs_of_few_in_order(kind, into, with_distance):
    random = np.random.default_rng(0)
    left, ends = np.repeat(np.arange(len(_SIZES)), _SIZES), np.cumsum(_SIZES)
    rows = [random.permutation(k) if k > FEW else random.integers(0, 60, k) for k in _SIZES]  # some twice
    right = (2**31 - 1 - np.concatenate(rows)).astype(kind)
    distance = np.arange(len(left)) + 0.5 if with_distance else np.empty(0)
    order = np.lexsort((right, left))
    expected = (
        left[order].tolist(),
        right[order].tolist(),
        (distance[order] if with_distance else distance).tolist(),
    )
    to_left, to_right = np.full(len(left), -1, into), np.full(len(left), -1, into)
    to_distance = np.full(len(distance), -1.0)
    write_sorted(ends, right, distance, 3, to_left, to_right, to_distance)
    assert ((to_left - 3).tolist(), to_right.tolist(), to_distance.tolist()) == expected


@pytest.mark.parametrize("few", [[3], [3, 5], [5, 3], [5, 5]])
def test_write_sorted__puts_one_pair_or_two_of_a_row_in_order(few):
    right, ends = np.array([7, *few, 1], np.int32), np.cumsum([1, len(few), 1])
    order = [0, *1 + np.argsort(few, kind="stable"), len(few) + 1]
    distance, without = np.arange(len(right)) + 0.5, np.empty(0)
    for kept in (distance, without):
        to_left, to_right = np.full((2, len(right)), -1, np.int64)
        to_distance = np.full(len(kept), -1.0)
        write_sorted(ends, right, kept, 0, to_left, to_right, to_distance)
        assert to_left.tolist() == [0, *[1] * len(few), 2]
        assert to_right.tolist() == right[order].tolist()
        assert to_distance.tolist() == (kept[order].tolist() if len(kept) else [])
