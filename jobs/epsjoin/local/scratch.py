"""Large arrays of one process in files without a name, whose pages the system may take and read again."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from epsjoin.errors import EpsjoinError

_REMEDY = "make room there, or set SPARK_LOCAL_DIRS to a folder on another disk"


def scratch_root() -> Path:
    """The folder for files without a name: the first of Spark's local folders, or the system's."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir())


class MakeArray(Protocol):
    """Make an array of zeros: ``numpy.zeros``, or :class:`ScratchFiles`."""

    def __call__(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        """Make an array of this shape."""


class ScratchFiles:
    """Makes arrays of zeros in files that have no name: they are gone with the process, however it ends.

    The first arrays may be in memory instead, as far as there is room. Arrays that are written in no order
    should be made first, since pages of a file that change again and again are written to disk again and
    again. The room of an array is reserved when it is made, so that a full disk is an error then, not a
    signal later.

    Parameters
    ----------
    folder : where the files lie.
    n_bytes : bytes of all arrays that will be made.
    in_memory : bytes of arrays that are made in memory; an array that does not fit any more is in a file.

    Raises
    ------
    EpsjoinError
        The disk has no room for these bytes; the message says what to do.
    """

    def __init__(self, folder: Path, n_bytes: int, in_memory: int = 0) -> None:
        self.folder, self.room = folder, in_memory
        free = shutil.disk_usage(folder).free
        if n_bytes > free:
            raise EpsjoinError(
                f"arrays in files need {n_bytes:,} bytes in {folder}, where {free:,} are free; {_REMEDY}"
            )

    def __call__(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        """Make an array, which is written to its file and read from it as the system sees fit."""
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if n_bytes <= self.room:
            self.room -= n_bytes
            return np.zeros(shape, dtype)
        try:
            with tempfile.TemporaryFile(dir=self.folder) as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, n_bytes)
                return np.asarray(np.memmap(file, dtype, "w+", shape=shape))
        except OSError as error:
            raise EpsjoinError(f"{self.folder} cannot be written ({error}); {_REMEDY}") from error
