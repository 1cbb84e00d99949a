"""What the joins must find."""

from __future__ import annotations

import pytest

from epsjoin import self_join
from tests.progressive.points import EPS, POINTS


@pytest.fixture(scope="session")
def expected():
    pairs = self_join(POINTS, EPS)
    return sorted(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
