"""Streams of source files: every stored byte is counted and digested once."""

from __future__ import annotations

import gzip
import hashlib
import io

import pytest

from epsjoin.source.bounds import BUFFER, DigestedStream, open_lines


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
