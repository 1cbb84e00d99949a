"""Who works in a folder: one join at a time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from epsjoin.errors import ArgumentError

if sys.platform != "win32":
    import fcntl


class FolderLock:
    """Lets one join work in a folder; the system ends it with its process, however that ends.

    Windows has no such locks: there nobody is kept out.

    Parameters
    ----------
    path : of a file in the folder, which is made.

    Raises
    ------
    ArgumentError
        Another join has the folder.
    """

    def __init__(self, path: Path) -> None:
        while True:
            self._file = path.open("wb")
            if sys.platform != "win32":
                try:
                    fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self._file.close()
                    raise ArgumentError(
                        f"another join that has not been closed works in {path.parent}; close it, or give "
                        "another folder as spill"
                    ) from None
            if path.exists() and os.path.samestat(path.stat(), os.fstat(self._file.fileno())):
                return
            self._file.close()  # its owner has deleted the file since it was opened

    def release(self) -> None:
        """Let others in."""
        self._file.close()
