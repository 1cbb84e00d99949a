"""Memory of large results, in pages of the usual size.

NumPy asks the system for huge pages for arrays of 4 MB and more. On a virtual machine whose host takes free
memory back, each new huge page comes from the host: then writing a result of 500 MB for the first time takes
a second, several times as long as the join. Pages of the usual size mostly come from those that other arrays
have freed.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGE_BYTES = 1 << 22
"""Number of bytes from which on NumPy asks for huge pages."""


def make_array(size: int, dtype: type[np.generic], *, is_written: bool = False) -> NDArray[Any]:
    """Make an array of this size; what it holds is undefined.

    Parameters
    ----------
    size, dtype : of the array.
    is_written : whether all of it will be written. Then all its pages are requested at once if the system can
        do that, which takes two thirds of the time of requesting them one by one.
    """
    n_bytes = size * np.dtype(dtype).itemsize
    if n_bytes < _LARGE_BYTES or not hasattr(mmap, "MAP_PRIVATE"):  # Windows has no such flags
        return np.empty(size, dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    if is_written:
        flags |= getattr(mmap, "MAP_POPULATE", 0)  # of Linux
    return np.frombuffer(mmap.mmap(-1, n_bytes, flags=flags), dtype)
