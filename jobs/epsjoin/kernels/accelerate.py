"""The one switch for compiling kernels: every kernel is decorated with :func:`njit` from here."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A", bound=NDArray[np.generic])

config: Any = numba.config


def _cache_folder() -> Path | None:
    """A folder for compiled kernels that belongs to exactly these sources; ``None`` where none can be kept.

    numba's own cache looks at the file of a function, not at those of the functions that it calls: after a
    change in one file it would run old code from another. ``NUMBA_CACHE_DIR`` says where the folders lie.
    """
    kernels = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(kernels.rglob("*.py")):
        digest.update(f"{source.relative_to(kernels)}\0".encode() + source.read_bytes())
    base = Path(config.CACHE_DIR or kernels / "__pycache__")
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return base / f"kernels-{digest.hexdigest()[:16]}" if os.access(base, os.W_OK) else None


_FOLDER = _cache_folder()
if _FOLDER is not None:
    config.CACHE_DIR = str(_FOLDER)


def njit(function: F) -> F:
    """Compile ``function`` with numba, cached on disk, without the GIL.

    No ``fastmath``: it may reorder sums, and a pair at exactly eps must not depend on that.
    ``NUMBA_DISABLE_JIT=1`` runs the same functions as plain Python, for bounds checks and coverage.
    """
    return cast("F", numba.njit(cache=_FOLDER is not None, nogil=True)(function))


def njit_filter(function: F) -> F:
    """As :func:`njit`, but a multiplication and an addition may become one rounding (FMA).

    For filters only, whose slack covers either rounding: never for what decides or what is reported.
    """
    fast = numba.njit(cache=_FOLDER is not None, nogil=True, fastmath={"contract"})
    return cast("F", fast(function))


def read_only(array: A) -> A:
    """Give a view that cannot be written, for what a kernel only reads.

    numba compiles a kernel once for such views and once more for arrays that can be written. Columns of Arrow
    are of the first kind, so what tasks share with other callers asks for it: an executor compiles nothing.
    """
    view = array.view()
    view.flags.writeable = False
    return view
