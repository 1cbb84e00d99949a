"""Slow twins: what the fast code must equal, written as the definition says; they import nothing from it."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""Whether kernels run as plain Python."""
ALL_EXAMPLES = os.environ.get("EPSJOIN_EXAMPLES") == "all"
"""Whether property tests try all their examples, as in ``make test-long``; else the first quarter."""


def examples(count: int, least: int = 25) -> settings:
    """Settings of a property test: the same examples on every run, fewer of them for uncompiled kernels.

    Parameters
    ----------
    count : examples of ``make test-long``.
    least : examples of ``make test`` where a quarter of them would be fewer.
    """
    few = max(5, count // 8) if INTERPRETED else max(least, count // 4)
    return settings(
        max_examples=count if ALL_EXAMPLES else min(few, count),
        deadline=None,
        derandomize=True,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )


def seeds(first: int, count: int) -> pytest.MarkDecorator:
    """The seeds of a test, as ``seeds``: the first ones, and all others up to ``count`` as a long test."""
    others = pytest.param(range(first, count), marks=pytest.mark.long)
    return pytest.mark.parametrize("seeds", [range(first), others], ids=["first", "others"])
