"""Streams of source files: every stored byte is counted and digested once."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma

import pyarrow as pa
import pytest

from epsjoin.errors import DataRefusedError
from epsjoin.source import bounds
from epsjoin.source.bounds import BUFFER, DigestedStream, LimitedStream, open_lines, open_pieces


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("n_lines", [0, 1, 4])
def test_digested_stream__counts_what_open_lines_reads_and_what_it_leaves(name: str, n_lines: int) -> None:
    lines = [
        b"%d,%s\n" % (i, hashlib.sha256(b"%d" % i).hexdigest().encode()) for i in range(3 * BUFFER // 64)
    ]
    content = b"".join(lines)
    content = gzip.compress(content) if name.endswith(".gz") else content
    stored = DigestedStream(io.BytesIO(content))
    opened = open_lines(stored, name)
    assert [opened.readline() for _ in range(n_lines)] == lines[:n_lines]
    assert (0 < stored.n_bytes < len(content)) == (n_lines > 0), "it is read as far as it is needed"
    del opened  # which closes the stream below
    stored.read_rest()
    assert stored.n_bytes == len(content)
    assert stored.sha256.hexdigest() == hashlib.sha256(content).hexdigest()


class Dripping(io.BytesIO):
    """A file that gives at most seven bytes at a time, as some storages do."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(7 if size is None or size < 0 else min(size, 7))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_open_pieces__are_of_one_size_however_little_is_read_at_a_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "PIECE", 64)
    content = b"".join(b"%d\n" % i for i in range(500))
    pieces = open_pieces(Dripping(gzip.compress(content) if name.endswith(".gz") else content), name)
    found = list(iter(pieces.take, b""))
    assert b"".join(found) == content
    assert {len(piece) for piece in found[:-1]} == {64}
    assert pieces.take() == b"", "the end stays the end"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (bz2.compress(b"id,x\n1,0\n", 1), "compressed by bzip2: unpack it, or compress it by gzip"),
        (bz2.compress(b"id,x\n1,0\n"), "compressed by bzip2: unpack it, or compress it by gzip"),
        (lzma.compress(b"id,x\n1,0\n"), "compressed by xz: unpack it"),
        (pa.compress(b"id,x\n1,0\n", "zstd", asbytes=True), "compressed by zstd: unpack it"),
        (pa.compress(b"id,x\n1,0\n", "lz4", asbytes=True), "compressed by lz4: unpack it"),
        (b"7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive: store what is in it"),
        (b"ARROW1\0\0\xff\xff\xff\xff", "an Arrow or Feather file: store its table"),
        (b"Obj\x01\x04", "an Avro file: store its records"),
    ],
)
def test_open_lines__says_what_a_file_is_that_is_no_text(data: bytes, words: str) -> None:
    with pytest.raises(DataRefusedError, match=rf"^a\.csv: the file is {words}"):
        open_lines(io.BytesIO(data), "a.csv").readline()


def test_open_lines__takes_a_text_that_only_begins_as_a_packed_file_does() -> None:
    assert open_lines(io.BytesIO(b"BZh9,7z\n"), "a.csv").readline() == b"BZh9,7z\n"


def test_limited_stream__ends_where_it_is_told_to() -> None:
    stream = io.BytesIO(b"abcdefgh")
    limited = LimitedStream(stream, 5)
    assert (limited.read(2), limited.read(), limited.read(3)) == (b"ab", b"cde", b"")
    assert (limited.n_bytes, stream.tell()) == (5, 5)
