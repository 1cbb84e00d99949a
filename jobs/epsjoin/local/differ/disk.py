"""Files of entries outside memory, and the counts of the blocks that pass between the two."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from epsjoin.errors import EpsjoinError
from epsjoin.local.differ.entries import ENTRY, Entries, cast, entry_type

BLOCK_BYTES = 16 << 10
"""Default length of a block, that of the paper."""


class Disk:
    """A folder for files of entries, which counts what is read and written.

    Parameters
    ----------
    memory_bytes : what the entries in memory may take; at least a row always fits.
    row_bytes : length of a row of the two files, for methods that carry whole rows.
    block_bytes : length of a block.

    Attributes
    ----------
    blocks_read, blocks_written : blocks of the two files and of all others, by bytes: the last block of a
        file counts by what is in it, as in the paper's formulas.
    """

    def __init__(self, memory_bytes: int, row_bytes: int = 0, block_bytes: int = BLOCK_BYTES) -> None:
        self.memory_bytes = memory_bytes
        self.full, self.compressed = entry_type(row_bytes), ENTRY
        self.row_bytes = max(row_bytes, ENTRY.itemsize)
        self.block_bytes = block_bytes
        self.fetched = 0
        self._read = self._written = 0
        self._n_files = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def blocks_read(self) -> int:
        """Blocks that were read, and one for each row that was fetched by its place."""
        return math.ceil(self._read / self.block_bytes) + self.fetched

    @property
    def blocks_written(self) -> int:
        """Blocks that were written."""
        return math.ceil(self._written / self.block_bytes)

    def scan(self, rows: Iterable[Entries]) -> Iterator[Entries]:
        """Pass on the rows of one of the two files, and count that they are read."""
        for part in rows:
            self._read += len(part) * self.row_bytes
            yield part

    def file(self, dtype: np.dtype[Any]) -> File:
        """Make an empty file."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="epsjoin-diff-")
        self._n_files += 1
        return File(self, Path(self._folder.name, str(self._n_files)), dtype)

    def close(self) -> None:
        """Delete all files; the counts stay."""
        if self._folder is not None:
            self._folder.cleanup()

    def room(self, dtype: np.dtype[Any]) -> int:
        """The number of entries that fit into memory, at least 1."""
        return max(1, self.memory_bytes // dtype.itemsize)

    def count(self, *, read: int = 0, written: int = 0) -> None:
        """Count bytes that pass between a file and memory."""
        self._read += read
        self._written += written


class File:
    """A file of entries, which is written once, from front to back, and read from front to back."""

    def __init__(self, disk: Disk, path: Path, dtype: np.dtype[Any]) -> None:
        self._disk, self._path, self.dtype = disk, path, dtype
        self.rows = 0

    @property
    def n_bytes(self) -> int:
        """Its length."""
        return self.rows * self.dtype.itemsize

    def append(self, entries: Entries) -> None:
        """Write entries at its end."""
        try:
            with self._path.open("ab") as file:  # an error of tofile would not say that the disk is full
                file.write(np.ascontiguousarray(cast(entries, self.dtype)).view(np.uint8).data)
        except OSError as error:
            raise EpsjoinError(
                f"the rows that memory does not hold cannot be written to {self._path.parent} "
                f"({error.strerror}); make room there, set TMPDIR to a folder on another disk, or allow more "
                "memory"
            ) from error
        self.rows += len(entries)
        self._disk.count(written=len(entries) * self.dtype.itemsize)

    def read(self, rows: int) -> Iterator[Entries]:
        """Its entries, ``rows`` at a time."""
        for first in range(0, self.rows, rows):
            offset, count = first * self.dtype.itemsize, min(rows, self.rows - first)
            self._disk.count(read=count * self.dtype.itemsize)
            yield np.fromfile(self._path, self.dtype, count, offset=offset)

    def read_all(self) -> Entries:
        """All its entries at once."""
        return next(self.read(max(1, self.rows)), np.empty(0, self.dtype))
