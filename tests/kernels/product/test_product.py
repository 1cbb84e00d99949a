"""What a product lets through, lane by lane, and four distances at once, each as if it were alone."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from epsjoin.kernels.distances import COSINE, EUCLIDEAN, decide, make_decision
from epsjoin.kernels.product.product import LANES, measure_four, survivors_among


@numba.njit
def _survivors(products, place, half, lane, threshold):
    return survivors_among(products, place, half, lane, threshold)


def test_survivors_among__has_a_bit_for_each_product_that_reaches_the_threshold():
    random = np.random.default_rng(1)
    products = random.integers(-3, 4, 400).astype(np.float32)  # many at the threshold
    half = random.integers(0, 3, 2 * LANES).astype(np.float32)
    half[-5:] = np.inf  # the padding
    for place, lane, threshold in [(0, 0, 0.0), (131, LANES, -1.0), (7, LANES, -4.0), (336, 0, 9.0)]:
        rests = products[place : place + LANES] - half[lane : lane + LANES]
        bits = _survivors(products, place, half, lane, np.float32(threshold))
        assert [bool(bits >> i & 1) for i in range(LANES)] == (rests >= threshold).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", [EUCLIDEAN, COSINE])
def test_measure_four__has_the_bits_of_each_distance_alone(metric, dtype):
    rows = (np.random.default_rng(2).standard_normal((90, 67)) * 1e3).astype(dtype)
    wide, decision = rows.astype(np.float64), make_decision(metric, 0.0, np.inf)
    for x in range(0, 40, 5):
        others = (x, 41 + x, 45, 89)  # itself, too
        alone = [decide(decision, wide, x, wide, y) for y in others]
        assert list(measure_four(rows, x, rows, others, metric)) == alone
