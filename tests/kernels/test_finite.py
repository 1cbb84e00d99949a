"""Whether numbers are finite: each that is not is seen, wherever it stands."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.finite import are_finite


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("other", [np.nan, np.inf, -np.inf])
def test_are_finite__sees_the_only_value_that_is_not(dtype, other):
    largest = np.finfo(dtype).max
    values = np.array([largest, -largest, 0.0, 1e-40] * 9, dtype).reshape(-1, 2)
    assert are_finite(values)
    assert are_finite(read_only(values))
    for row, column in np.ndindex(values.shape):
        held = values[row, column]
        values[row, column] = other
        assert not are_finite(values)
        values[row, column] = held


def test_are_finite__of_no_values():
    assert are_finite(np.empty((0, 3)))
