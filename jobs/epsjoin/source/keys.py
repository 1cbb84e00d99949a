"""Ids of keys and digests of rows, by which records are told apart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from epsjoin.contracts.odcs import SourceContract
from epsjoin.source.values import refusal


def key_id(source: SourceContract, values: Sequence[Any]) -> int | str:
    """The id of a record, from the source's key columns, or the reason why it has none.

    A single integer key is the id itself. Any other key is hashed column by column, each value with its type
    and length, so that the keys ``1|11`` and ``11|1`` differ. The hash has 64 bits: among n keys, n^2 / 2^65
    pairs are expected to share an id; ``ingest`` finds them and stops.
    """
    names = [column.name for column in source.columns]
    keys = [values[names.index(name)] for name in source.key]
    for name, value in zip(source.key, keys, strict=True):
        if value is None:
            return refusal(f"{name}: missing key")
    if len(keys) == 1 and isinstance(keys[0], int) and not isinstance(keys[0], bool):
        return keys[0] if keys[0] != -1 else refusal(f"{source.key[0]}: -1 is kept for noise", -1)
    digest = hashlib.blake2b(digest_size=8)
    for value in keys:
        encoded = value.isoformat() if isinstance(value, (date, datetime)) else str(value)
        field = f"{type(value).__name__}:{len(encoded.encode())}:".encode() + encoded.encode()
        digest.update(field)
    return int.from_bytes(digest.digest(), "little", signed=True)


def digest_of(values: Sequence[Any]) -> bytes:
    """A 128-bit digest of a row's values in the contract's columns; equal values have equal digests."""
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()
