"""A lock on a folder: only one process or thread works in it at a time."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import IO

from epsjoin.errors import ArgumentError

if sys.platform != "win32":
    import fcntl

_HAS_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF)
"""What the system says where files cannot be locked, as on some network drives, or only by writers."""


class FolderLock:
    """Lets one process, and one thread of it, work in a folder.

    The system ends the lock with its process, however that ends. Windows and some network drives have no such
    locks: there nobody is kept out.

    Parameters
    ----------
    path : of a file in the folder, which is made.
    taken : message of the error if somebody else works in the folder; None: wait until nobody does.

    Raises
    ------
    ArgumentError
        Somebody else works in the folder, and ``taken`` is given.
    """

    def __init__(self, path: Path, taken: str | None) -> None:
        while True:
            self._file = _open(path)
            if sys.platform != "win32":
                try:
                    fcntl.flock(self._file, fcntl.LOCK_EX | (0 if taken is None else fcntl.LOCK_NB))
                except BlockingIOError:
                    self._file.close()
                    raise ArgumentError(str(taken)) from None
                except OSError as error:
                    if error.errno not in _HAS_NO_LOCKS:
                        self._file.close()
                        raise
            if path.exists() and os.path.samestat(path.stat(), os.fstat(self._file.fileno())):
                return
            self._file.close()  # its owner has deleted the file since it was opened

    def release(self) -> None:
        """Let others in."""
        self._file.close()

    def __enter__(self) -> FolderLock:
        """Work in the folder until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let others in."""
        self.release()


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("wb")
    except PermissionError:
        if not path.exists():
            raise
        return path.open("rb")  # another user has made it, and everybody who may read it may lock it
