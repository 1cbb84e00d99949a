"""Bounds on the memory that a source file may take when it is read: lines, fields, names, expansion."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterable
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from epsjoin.errors import DataRefusedError

MAX_LINE = 16 << 20
"""Maximum number of bytes in a line, and of characters in a record; both are held in memory.

A file without line ends has no records, and an unclosed quote must not swallow the rest of one.
"""

MAX_NAMES = 1 << 20
"""Maximum number of characters in the names of a file's columns together; all are kept, shown and stored."""

MAX_EXPANSION = 500
"""Maximum decompression ratio of a gzip or Parquet file, beyond the first ``FREE_EXPANSION`` bytes.

Text has a ratio of 3 to 20, a decompression bomb one of 1000.
"""

FREE_EXPANSION = 256 << 20
"""Number of decompressed bytes to which ``MAX_EXPANSION`` does not apply."""

BUFFER = 1 << 20
"""Number of bytes that are read from a file at once."""

PIECE = 1 << 15
"""Number of decompressed bytes that are checked at once; a longer line is measured exactly."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What a file of lines may begin with; it is no part of the first line."""


def open_lines(stream: IO[bytes], name: str) -> IO[bytes]:
    """Open a file of lines: decompressed if its name ends in .gz, within ``MAX_LINE`` and ``MAX_EXPANSION``.

    Parameters
    ----------
    stream : the stored bytes; read forward only. A ``CountedStream`` is used as it is.
    name : the file's name.

    Raises
    ------
    DataRefusedError
        While it is read: ``MAX_LINE`` or ``MAX_EXPANSION`` is exceeded.
    """
    # a raw stream and GzipFile return lines slowly, a BufferedReader over them returns them fast
    stored = stream if isinstance(stream, CountedStream) else CountedStream(stream)
    opened: Any = io.BufferedReader(stored, BUFFER)
    if name.endswith(".gz"):
        opened = gzip.GzipFile(fileobj=opened)
    bounded = _BoundedStream(opened, name, stored if name.endswith(".gz") else None)
    return cast("IO[bytes]", io.BufferedReader(bounded, BUFFER))


def check_expansion(name: str, size: int, decoded: int) -> None:
    """Refuse a Parquet file of ``size`` bytes that has ``decoded`` bytes or more when it is decoded.

    Raises
    ------
    DataRefusedError
        ``MAX_EXPANSION`` is exceeded.
    """
    if decoded > FREE_EXPANSION + MAX_EXPANSION * size:
        raise DataRefusedError(
            f"{name}: {size:,} bytes become {decoded:,} or more, over {MAX_EXPANSION} times as many; "
            "if the file is right, split it into smaller ones"
        )


class CountedStream(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.n_bytes = 0

    def readable(self) -> bool:
        """True: a raw stream must say so."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the stream, as far as bytes are left, and return their number."""
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.n_bytes += len(data)
        return data


class LimitedStream(CountedStream):
    """The next ``n`` bytes of a stream."""

    def __init__(self, stream: IO[bytes], n: int) -> None:
        super().__init__(stream)
        self._n = n

    def _read(self, size: int) -> bytes:
        return super()._read(min(size, self._n - self.n_bytes))


class DigestedStream(CountedStream):
    """A stream that also computes the SHA-256 of the bytes read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream)
        self.sha256 = hashlib.sha256()

    def read_rest(self) -> None:
        """Read to the end, so that count and digest are those of the whole file.

        It works after :meth:`close`, too: a reader over this stream closes it when it is freed.
        """
        while self._read(BUFFER):
            pass

    def _read(self, size: int) -> bytes:
        data = super()._read(size)
        self.sha256.update(data)
        return data


class _BoundedStream(CountedStream):
    """A stream whose lines and whose expansion are bounded.

    Parameters
    ----------
    stream, name : the file's bytes, decompressed, and its name.
    stored : the stream of its compressed bytes; None if the file is not compressed.

    Raises
    ------
    DataRefusedError
        While it is read: ``MAX_LINE`` or ``MAX_EXPANSION`` is exceeded.
    """

    def __init__(self, stream: IO[bytes], name: str, stored: CountedStream | None) -> None:
        super().__init__(stream)
        self._name = name
        self._stored = stored
        self._line = 0
        self._piece = memoryview(b"")

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what is left of the last piece, or from the next one.

        Pieces are of one size, so that whoever reads, in whatever portions, meets a fault at the same byte.
        """
        if not self._piece:
            self._piece = memoryview(self._checked(self._read(PIECE)))
        taken = self._piece[: len(buffer)]
        buffer[: len(taken)] = taken
        self._piece = self._piece[len(taken) :]
        return len(taken)

    def _checked(self, data: bytes) -> bytes:
        n = len(data)
        ends = [each for each in (data.find(b"\n"), data.find(b"\r")) if each >= 0]
        if self._line + (min(ends) if ends else n) > MAX_LINE:
            raise DataRefusedError(
                f"{self._name}: a line is longer than {MAX_LINE:,} bytes, near byte {self.n_bytes:,}; "
                "every record must begin in a line of its own"
            )
        self._line = n - 1 - max(data.rfind(b"\n"), data.rfind(b"\r")) if ends else self._line + n
        if self._stored and self.n_bytes > FREE_EXPANSION + MAX_EXPANSION * self._stored.n_bytes:
            raise DataRefusedError(
                f"{self._name}: {self._stored.n_bytes:,} bytes became {self.n_bytes:,}, over {MAX_EXPANSION} "
                "times as many; if the file is right, store it uncompressed"
            )
        return data


def parquet_bytes(footer: pq.FileMetaData, schema: pa.Schema, columns: Iterable[str]) -> int:
    """The size in bytes of some columns of a Parquet file when they are decoded, estimated from its footer.

    A run of equal values takes a few bytes in the file, however long it is; therefore every value is counted,
    with at least 8 bytes. A text that a dictionary holds once is counted once.
    """
    widths = dict.fromkeys(columns, 8)
    for name in widths:
        kind = schema.field(name).type
        if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind):
            widths[name] = max(8, kind.byte_width)
    total = 0
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for place in range(row_group.num_columns):
            chunk = row_group.column(place)
            width = widths.get(chunk.path_in_schema.partition(".")[0], 0)
            total += max(chunk.num_values * width, chunk.total_uncompressed_size) if width else 0
    return total
