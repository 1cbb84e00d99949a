"""Bounds on the memory that a source file may take when it is read: lines, fields, names, expansion."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterable, Mapping
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

PIECE = 1 << 20
"""Number of decompressed bytes that are read and checked at once, at most ``MAX_LINE``.

A longer line is measured exactly.
"""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What a file of lines may begin with; it is no part of the first line."""

_UNPACK = "unpack it, or compress it by gzip and let its name end in .gz"

_SIGNATURES = {
    b"\x1f\x8b\x08": "is compressed by gzip: its name must end in .gz",
    **{b"BZh%d1AY&SY" % level: f"is compressed by bzip2: {_UNPACK}" for level in range(1, 10)},
    b"\xfd7zXZ\x00": f"is compressed by xz: {_UNPACK}",
    b"\x28\xb5\x2f\xfd": f"is compressed by zstd: {_UNPACK}",
    b"\x04\x22\x4d\x18": f"is compressed by lz4: {_UNPACK}",
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive: store what is in it as CSV or JSON lines",
    b"ARROW1\x00\x00": "is an Arrow or Feather file: store its table as Parquet or CSV",
    b"Obj\x01": "is an Avro file: store its records as JSON lines or Parquet",
    b"PK\x03\x04": "is a zip archive or a workbook: store what is in it as CSV or JSON lines",
    b"PAR1\x15": "is a Parquet file: its name must end in .parquet, its format in the contract be parquet",
}
"""How files begin that are no text, and what to do about each."""


def open_lines(stream: IO[bytes], name: str) -> IO[bytes]:
    """Open a file of lines: decompressed if its name ends in .gz, within ``MAX_LINE`` and ``MAX_EXPANSION``.

    Parameters
    ----------
    stream : the stored bytes; read forward only. A ``CountedStream`` is used as it is.
    name : the file's name.

    Raises
    ------
    DataRefusedError
        While it is read: ``MAX_LINE`` or ``MAX_EXPANSION`` is exceeded, or it is no text.
    """
    # a raw stream returns lines slowly, a BufferedReader over it returns them fast
    return cast("IO[bytes]", io.BufferedReader(open_pieces(stream, name), BUFFER))


def open_pieces(stream: IO[bytes], name: str) -> PieceStream:
    """As :func:`open_lines`, for callers that take pieces of the file as they come: one copy less."""
    stored = stream if isinstance(stream, CountedStream) else CountedStream(stream)
    if not name.endswith(".gz"):
        return PieceStream(stored, name)
    opened: Any = gzip.GzipFile(fileobj=io.BufferedReader(stored, BUFFER))
    return PieceStream(opened, name, stored)


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

    def read(self, size: int = -1) -> bytes:
        """The next bytes, as many as are asked for or left; all that are left if ``size`` is negative."""
        return self._read(size) if size >= 0 else self.readall()

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


class PieceStream(io.RawIOBase):
    """A file of lines, decompressed, in pieces whose lines and whose expansion are bounded.

    Pieces are of one size, so that whoever reads, in whatever portions, meets a fault at the same byte.

    Parameters
    ----------
    stream, name : the file's bytes, decompressed, and its name.
    stored : the stream of its compressed bytes; None if the file is not compressed.

    Raises
    ------
    DataRefusedError
        While it is read: ``MAX_LINE`` or ``MAX_EXPANSION`` is exceeded, or it is no text.
    """

    def __init__(
        self, stream: IO[bytes] | CountedStream, name: str, stored: CountedStream | None = None
    ) -> None:
        self._stream = stream
        self._name = name
        self._stored = stored
        self._n_bytes = 0
        self._line = 0
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """True: a raw stream must say so."""
        return True

    def take(self) -> bytes:
        """The next piece, ``PIECE`` bytes or what is left of the file; nothing at its end."""
        data = self._stream.read(PIECE)
        while data and len(data) < PIECE and (more := self._stream.read(PIECE - len(data))):
            data += more
        if not self._n_bytes:
            self._check_is_text(data)
        self._n_bytes += len(data)
        self._check(data)
        return data

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what is left of the last piece, or from the next one."""
        if not self._rest:
            self._rest = memoryview(self.take())
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)

    def _check_is_text(self, begin: bytes) -> None:
        for signature, words in _SIGNATURES.items():
            if begin.startswith(signature):
                raise DataRefusedError(f"{self._name}: the file {words}")

    def _check(self, data: bytes) -> None:
        n = len(data)
        ends = [each for each in (data.find(b"\n"), data.find(b"\r")) if each >= 0]
        if self._line + (min(ends) if ends else n) > MAX_LINE:
            raise DataRefusedError(
                f"{self._name}: a line is longer than {MAX_LINE:,} bytes, near byte {self._n_bytes:,}; "
                "every record must begin in a line of its own"
            )
        self._line = n - 1 - max(data.rfind(b"\n"), data.rfind(b"\r")) if ends else self._line + n
        if self._stored and self._n_bytes > FREE_EXPANSION + MAX_EXPANSION * self._stored.n_bytes:
            raise DataRefusedError(
                f"{self._name}: {self._stored.n_bytes:,} bytes became {self._n_bytes:,}, over "
                f"{MAX_EXPANSION} times as many; if the file is right, store it uncompressed"
            )


def list_leaves(footer: pq.FileMetaData, schema: pa.Schema, columns: Iterable[str]) -> dict[int, str]:
    """Find what is read of a Parquet file for some columns.

    Returns
    -------
    Numbers of leaves, which are columns without others within them, and the name of the column of each.

    Notes
    -----
    The path of a leaf has dots, and so may a name: for the column ``a.b`` pyarrow also reads what a column
    ``a`` has within it under ``b``.
    """
    wanted, found = set(columns), dict[int, str]()
    tops = (field.name for field in schema for _ in range(_count_leaves(field.type)))
    for place, top in zip(range(footer.num_columns), tops, strict=True):
        within = footer.schema.column(place).path[len(top) + 1 :].split(".")
        if wanted & {".".join([top, *within[:depth]]) for depth in range(len(within) + 1)}:
            found[place] = top
    return found


def _count_leaves(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _count_leaves(kind.storage_type)
    if not pa.types.is_nested(kind):
        return 1
    return sum(_count_leaves(kind.field(place).type) for place in range(kind.num_fields))


def parquet_bytes(footer: pq.FileMetaData, schema: pa.Schema, leaves: Mapping[int, str]) -> int:
    """The size in bytes of some leaves of a Parquet file when they are decoded, estimated from its footer.

    A run of equal values takes a few bytes in the file, however long it is; therefore every value is counted,
    with at least 8 bytes. A text that a dictionary holds once is counted once.
    """
    widths = dict.fromkeys(leaves, 8)
    for place, name in leaves.items():
        kind = schema.field(name).type
        if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind):
            widths[place] = max(8, kind.byte_width)
    total = 0
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for place, width in widths.items():
            chunk = row_group.column(place)
            total += max(chunk.num_values * width, chunk.total_uncompressed_size)
    return total
