"""The rows of two snapshots by their keys, each once: entries for the methods of ``local/differ``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from epsjoin.differ.columns import Compared
from epsjoin.differ.snapshots import Snapshot, conform
from epsjoin.digests import UNKEYED, digest_table
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.kernels.differ import find_double
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import Difference, Entries, to_entries
from epsjoin.local.differ.methods import differ


def find_difference(
    sides: tuple[Snapshot, Snapshot], compared: Compared, method: str, digest_bits: int, disk: Disk
) -> Difference:
    """Run the method; a key that comes twice ends it.

    Raises
    ------
    DataRefusedError
        A record has no key, or a key comes twice.
    """
    files = [_KeyedFile(side, compared, digest_bits) for side in sides]
    try:
        found = differ(method, files[0], files[1], disk, has_key=bool(compared.key))
    except ValueError:  # a double, which the method has met in entries and cannot name
        _refuse_doubles(files)
        raise
    _refuse_doubles(files)  # it may have met none, as both were in the same row of another one
    return found


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
            for name in self._compared.key:
                if rows[name].null_count:
                    row = first + rows[name].is_null().to_pylist().index(True)
                    raise DataRefusedError(f"{label}: record {row + 1:,} has no {name}, which is its key")
            try:
                keys, digests = (
                    digest_table(rows.select(names), UNKEYED)
                    if names
                    else np.zeros((len(rows), 2), np.uint64)
                    for names in (self._compared.key, self._compared.rest)
                )
            except TypeError as error:
                raise ArgumentError(f"{label}: {error}") from error
            if self._compared.key:
                self._keys.append(keys)
            yield to_entries(keys, digests, first, self._bits)
            first += len(batch)

    def refuse_doubles(self) -> None:
        """Read what is left, and refuse a key that comes twice."""
        for _ in self._rest:
            pass
        if not self._keys:
            return
        double = find_double(np.concatenate(self._keys))
        if double is None:
            return
        key = pa.schema([self._compared.schema.field(name) for name in self._compared.key])
        value = self._snapshot.take(np.array(double[1:]), key).to_pylist()[0]
        named = ", ".join(f"{name} {text!r}" for name, text in value.items())
        raise DataRefusedError(
            f"{self._snapshot.label}: records {double[0] + 1:,} and {double[1] + 1:,} have one key, {named}; "
            "name more key columns, or none to compare whole rows"
        )
