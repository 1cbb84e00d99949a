"""Slow twins: what the fast code must equal, written as the definition says; they import nothing from it."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""Whether kernels run as plain Python."""
ALL_EXAMPLES = os.environ.get("EPSJOIN_EXAMPLES") == "all"
"""Whether property tests try all their examples, as in ``make test-long``; else the first half."""


def examples(count: int) -> settings:
    """Settings of a property test: the same examples on every run, fewer of them for uncompiled kernels."""
    share = 8 if INTERPRETED else 1 if ALL_EXAMPLES else 2
    return settings(
        max_examples=max(5, count // share),
        deadline=None,
        derandomize=True,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
