"""The one switch for compiling kernels: every kernel is decorated with :func:`njit` from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def njit(function: F) -> F:
    """Compile ``function`` with numba, cached on disk, without the GIL.

    No ``fastmath``: it may reorder sums, and a pair at exactly eps must not depend on that.
    ``NUMBA_DISABLE_JIT=1`` runs the same functions as plain Python, for bounds checks and coverage.
    """
    return cast("F", numba.njit(cache=True, nogil=True)(function))
