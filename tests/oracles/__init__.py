"""Slow twins: what the fast code must equal, written as the definition says; they import nothing from it."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""Whether kernels run as plain Python."""


def examples(count: int) -> settings:
    """Settings of a property test: the same examples on every run, fewer of them for uncompiled kernels."""
    return settings(
        max_examples=max(5, count // 8) if INTERPRETED else count,
        deadline=None,
        derandomize=True,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
