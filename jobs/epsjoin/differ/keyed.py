"""The rows of two snapshots by their keys, each once: entries for the methods of ``local/differ``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from epsjoin.differ.columns import Compared
from epsjoin.differ.found import Found
from epsjoin.differ.in_step import compare_in_step
from epsjoin.differ.keys import refuse_doubles, refuse_missing
from epsjoin.differ.snapshots import Snapshot, conform
from epsjoin.digests import UNKEYED, check_types, digest_table
from epsjoin.errors import ArgumentError
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import Entries, to_entries
from epsjoin.local.differ.methods import differ


def find_difference(
    sides: tuple[Snapshot, Snapshot], compared: Compared, method: str, digest_bits: int, disk: Disk
) -> Found:
    """Run the method; a key that comes twice ends it.

    Raises
    ------
    ArgumentError
        A column has a type whose values cannot be compared.
    DataRefusedError
        A record has no key, or a key comes twice.
    """
    try:
        check_types(compared.schema)
    except TypeError as error:
        raise ArgumentError(f"{sides[0].label}: {error}") from error
    if method == "auto" and compared.key:
        return compare_in_step(sides, compared, digest_bits, disk)
    files = [_KeyedFile(side, compared, digest_bits) for side in sides]
    try:
        found = differ(method, files[0], files[1], disk, has_key=bool(compared.key))
    except ValueError:  # a double, which the method has met in entries and cannot name
        _refuse_doubles(files)
        raise
    _refuse_doubles(files)  # it may have met none, as both were in the same row of another one
    return Found.of(found)


def _refuse_doubles(files: Sequence[_KeyedFile]) -> None:
    for file in files:
        file.refuse_doubles()


class _KeyedFile:
    """The entries of a snapshot, whose keys are kept, to be iterated once."""

    def __init__(self, snapshot: Snapshot, compared: Compared, digest_bits: int) -> None:
        self._snapshot, self._compared, self._bits = snapshot, compared, digest_bits
        self._keys: list[Any] = []
        self._rest = self._read()

    def __iter__(self) -> Iterator[Entries]:
        return self._rest

    def _read(self) -> Iterator[Entries]:
        first, label, schema = 0, self._snapshot.label, self._compared.schema
        for batch in self._snapshot.batches():
            rows = conform(batch, schema, label)
            refuse_missing(rows, self._compared.key, first, label)
            keys, digests = (
                digest_table(rows.select(names), UNKEYED) if names else np.zeros((len(rows), 2), np.uint64)
                for names in (self._compared.key, self._compared.rest)
            )
            if self._compared.key:
                self._keys.append(keys)
            yield to_entries(keys, digests, first, self._bits)
            first += len(batch)

    def refuse_doubles(self) -> None:
        """Read what is left, and refuse a key that comes twice."""
        for _ in self._rest:
            pass
        if self._keys:
            key = pa.schema([self._compared.schema.field(name) for name in self._compared.key])
            refuse_doubles(self._snapshot, key, self._keys)
