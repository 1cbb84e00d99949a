"""One thread for BLAS: code that multiplies blocks of matrices in its own threads needs no others.

NumPy's products run in as many threads as there are processors, unless its BLAS was told otherwise. The
library of NumPy's wheels is OpenBLAS, which is told by a function; where there is none of its functions,
products keep the threads that they have (``OPENBLAS_NUM_THREADS``, ``MKL_NUM_THREADS`` and their like set
these).
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class _Threads(NamedTuple):
    """The functions of a BLAS that return and set the number of its threads."""

    get: Callable[[], int]
    set: Callable[[int], object]


@functools.cache
def _threads() -> _Threads | None:
    """Find the functions of the BLAS that NumPy is linked with: a lookup in its module looks there, too."""
    module = sys.modules.get("numpy._core._multiarray_umath")
    path = getattr(module, "__file__", None)
    if path is None:
        return None
    library = ctypes.CDLL(path)
    for prefix in ("scipy_", ""):
        for suffix in ("64_", ""):
            get = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
            set_to = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
            if get is not None and set_to is not None:
                return _Threads(get, set_to)
    return None


class _Users:
    """How many threads of this process multiply now, and how many threads BLAS had before the first did."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.threads_before = 1


_USERS = _Users()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread for each of its callers; the last that leaves sets what it had before.

    Notes
    -----
    The number holds for the whole process: meanwhile, products of other threads run in one thread, too. It
    takes some microseconds.
    """
    threads = _threads()
    if threads is None:
        yield
        return
    with _USERS.lock:
        if _USERS.count == 0:
            _USERS.threads_before = threads.get()
            threads.set(1)
        _USERS.count += 1
    try:
        yield
    finally:
        with _USERS.lock:
            _USERS.count -= 1
            if _USERS.count == 0:
                threads.set(_USERS.threads_before)
