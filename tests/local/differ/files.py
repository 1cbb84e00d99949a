"""Small files of entries for tests: rows of a key and a value, digested by SipHash in plain Python."""

from __future__ import annotations

import numpy as np

from epsjoin.local.differ.entries import Difference, to_entries
from oracles.siphash import siphash_128

Row = tuple[int, int]


def words(values):
    data = b"".join(siphash_128(repr(value).encode(), bytes(16)) for value in values)
    return np.frombuffer(data, "<u8").reshape(-1, 2)


def entries_of(rows, batch=3, digest_bits=128):
    """Batches of entries, as a reader yields them."""
    for first in range(0, len(rows), batch):
        part = rows[first : first + batch]
        yield to_entries(
            words([key for key, _ in part]), words([rest for _, rest in part]), first, digest_bits
        )


def keys_of(found: Difference, old, new):
    """The keys of each kind, as the oracle has them."""
    return {
        "deleted": {old[i][0] for i in found.deleted.tolist()},
        "inserted": {new[i][0] for i in found.inserted.tolist()},
        "updated": {new[i][0] for i in found.updated[:, 1].tolist()},
        "same": {new[i][0] for i in found.same[:, 1].tolist()},
    }
