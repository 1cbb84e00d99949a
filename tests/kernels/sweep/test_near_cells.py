"""Cells around a few rows: no row within eps of one is left out, most others are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.sweep.near_cells import find_near, mark_cells
from epsjoin.local.plan.projection import choose_projection, simple_projection
from oracles import examples
from oracles import join as twin
from tests.kernels.sweep.test_window import SEEDS, turned
from tests.kernels.sweeps import NORMS


@examples(100)
@given(
    st.sampled_from(twin.KINDS),
    st.sampled_from(sorted(NORMS)),
    st.integers(0, 50),
    st.integers(1, 12),
    st.booleans(),
    SEEDS,
)
def test_find_near__leaves_out_no_row_within_eps(kind, metric, n, d, rotate, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    norm = NORMS[metric][0]
    is_turned = rotate and metric == "euclidean"
    projection = turned(points, norm, 1, seed) if is_turned else simple_projection(points, norm)
    marked = n // 4
    cells = mark_cells(points[:marked], projection, eps * (1 + 1e-12))
    rows = np.random.default_rng(seed).permutation(np.arange(marked, n))
    found = find_near(cells, points, rows)
    assert found.tolist() == [row for row in rows.tolist() if row in set(found.tolist())], "in their order"
    pairs = twin.brute_force(points, eps, metric)
    near = {right for left, right in pairs if left < marked <= right}
    assert near <= set(found.tolist())


def test_find_near__leaves_out_most_rows_that_are_far():
    random = np.random.default_rng(2)
    points, eps = random.random((20_000, 4)), 0.02
    projection = choose_projection(points, len(points), eps, NORMS["euclidean"][0]).projection
    cells = mark_cells(points[:20], projection, eps)
    found = find_near(cells, points, np.arange(20, len(points)))
    # 20 cubes of 3 cells a side hold half a per cent of all rows; as many again share a mark with one
    assert 0 < len(found) < len(points) / 40
