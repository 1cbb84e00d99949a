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


def cache_folder(kernels: Path, base: Path) -> Path | None:
    """Name the folder of compiled kernels that belongs to exactly these sources.

    Parameters
    ----------
    kernels : folder of the sources, with its subfolders.
    base : folder in which the folders of compiled kernels lie; made where there is none.

    Returns
    -------
    Path | None
        None where ``base`` cannot be written.

    Notes
    -----
    numba's own cache checks the file of a function, not those of the functions that it calls: after a
    change in one file it would run old code from another.
    """
    digest = hashlib.sha256()
    for source in sorted(kernels.rglob("*.py")):
        digest.update(f"{source.relative_to(kernels)}\0".encode() + source.read_bytes())
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return base / f"kernels-{digest.hexdigest()[:16]}" if os.access(base, os.W_OK) else None


_KERNELS = Path(__file__).parent
# NUMBA_CACHE_DIR says where the folders lie.
_FOLDER = cache_folder(_KERNELS, Path(config.CACHE_DIR or _KERNELS / "__pycache__"))
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
    """Make a view that cannot be written, for an array that a kernel only reads.

    numba compiles a kernel once for such views and once more for arrays that can be written. Columns of Arrow
    are of the first kind, so what tasks share with other callers asks for it: an executor compiles nothing.
    """
    view = array.view()
    view.flags.writeable = False
    return view
