"""Parts and masks for joins by other systems: a group join in NumPy finds each pair once."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import Cuts, self_join
from epsjoin.errors import ArgumentError
from epsjoin.local.plan.blocking import Parts, parts
from oracles import examples
from oracles import join as twin
from tests import open_sets


def group_join(cut: Parts, points: np.ndarray, eps: float) -> list[tuple[int, int]]:
    """What ``a.part = b.part and a.row < b.row and a.mask & b.mask = 0 and distance <= eps`` finds."""
    found = [np.empty((0, 2), np.int64)]
    bounds = np.flatnonzero(np.r_[True, cut.part[1:] != cut.part[:-1], True])
    for begin, end in pairwise(bounds):
        row, mask = cut.row[begin:end], cut.mask[begin:end]
        first = points[row, 0]
        for at in range(0, len(row), 256):
            here = slice(at, at + 256)
            near = np.abs(first[here, None] - first) <= 1.001 * eps
            i, j = np.nonzero(near & (mask[here, None] & mask == 0) & (row[here, None] < row))
            a, b = row[i + at], row[j]
            square = np.zeros(len(a))
            for axis in points.T:
                square += (axis[a] - axis[b]) ** 2
            is_pair = np.sqrt(square) <= eps
            found.append(np.stack((a[is_pair], b[is_pair]), 1))
    return sorted(map(tuple, np.concatenate(found).tolist()))


@pytest.mark.parametrize(
    ("name", "n_parts"), [pytest.param("landmarks", 150, marks=pytest.mark.long), ("pendigits", 12)]
)
def test_parts__joined_by_group_and_mask_are_the_pairs_of_real_sets(name: str, n_parts: int) -> None:
    points, join = open_sets.read(name), open_sets.EXPECTED[name]["joins"][0]
    cut = parts(points, join["eps"], Cuts(n_parts=n_parts))
    assert cut.part[-1] > 10
    assert len(cut.row) > len(points)
    found = group_join(cut, points, join["eps"])
    assert len(found) == join["self_pairs_i_lt_j"]
    pairs = self_join(points, join["eps"])
    assert found == list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


@examples(100)
@given(
    st.sampled_from(twin.KINDS),
    st.integers(0, 60),
    st.integers(1, 4),
    st.sampled_from([1, 2, 9]),
    st.integers(0, 10**6),
)
def test_parts__joined_by_group_and_mask_are_brute_force(
    kind: str, n: int, d: int, n_parts: int, seed: int
) -> None:
    points, eps = twin.awkward_points(kind, n, d, seed)
    cut = parts(points, eps, Cuts(n_parts=n_parts, replication_budget=math.inf, sample_rows=40))
    assert group_join(cut, points, eps) == sorted(twin.brute_force(points, eps))
    assert np.bincount(cut.row[cut.owns], minlength=n).tolist() == [1] * n
    assert [column.dtype for column in cut] == [np.int64, np.int32, np.int64]
    assert (np.lexsort((cut.row, cut.part)) == np.arange(len(cut.row))).all()


def test_parts__of_scaled_dimensions_are_those_of_scaled_points() -> None:
    points, eps = np.random.default_rng(4).random((400, 2)) * [1.0, 64.0], [0.125, 4.0]
    cut = parts(points, eps, Cuts(n_parts=5), "chebyshev")
    found = 0
    for part in range(cut.part[-1] + 1):
        rows, mask = cut.row[cut.part == part], cut.mask[cut.part == part]
        near = (np.abs(points[rows, None] - points[None, rows]) <= eps).all(axis=2)
        found += int((near & (mask[:, None] & mask == 0) & (rows[:, None] < rows)).sum())
    assert cut.part[-1] > 0
    assert found == len(twin.scaled_pairs(points, eps, None, "chebyshev"))


@pytest.mark.parametrize(
    ("points", "cuts", "metric", "message"),
    [
        ([[0.0]], Cuts("regular"), "euclidean", "cuts must be planned, not regular: only planned cuts have"),
        ([[0.0]], None, "euclidean", r"cuts must be epsjoin.Cuts\(...\), not None"),
        ([[math.nan]], Cuts(), "euclidean", "points must be finite; row 0, column 0 is nan"),
        ([[1.0, 0.0], [0.0, 0.0]], Cuts(), "cosine", "points: cosine needs .*; row 1 breaks this"),
    ],
)
def test_parts__say_what_is_wrong(points, cuts, metric, message) -> None:
    with pytest.raises(ArgumentError, match=message):
        parts(points, 1.0, cuts, metric)
