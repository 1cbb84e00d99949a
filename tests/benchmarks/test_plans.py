"""What ``make bench-plans`` compares."""

from __future__ import annotations

from benchmarks.plans import of, planned
from benchmarks.sets import BY_NAME
from epsjoin import estimate, self_join


def test_planned__sets_an_estimate_beside_the_join_that_it_is_of() -> None:
    """Of few dimensions pairs that are sorted are found row by row, and those of batches by windows."""
    landmarks = BY_NAME["landmarks"]
    points, eps = landmarks.make(), landmarks.eps
    assert eps is not None
    counters: dict[str, int] = {}
    self_join(points, eps, counters=counters)
    row, is_near = planned(landmarks, points, eps)
    assert row[3] == of(estimate(points, eps).candidates, counters["candidates"])
    assert is_near
