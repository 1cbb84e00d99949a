"""The keys of a snapshot: each record must have one, and each may come once."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pyarrow as pa

from epsjoin.differ.columns import Compared, to_rows
from epsjoin.differ.snapshots import Snapshot, conform
from epsjoin.digests import UNKEYED, digest_table, to_fields
from epsjoin.errors import DataRefusedError
from epsjoin.kernels.arrays import Words
from epsjoin.kernels.differ import find_double
from epsjoin.kernels.fields import Field, cut_fields, order_rows

NOTHING: Words = np.empty((0, 2), np.uint64)
"""The digests of no keys."""


class SeenKeys:
    """What must be known of the keys so far to see one that comes twice.

    Keys that rise from row to row, in whatever order of values, come once each, so only the last is kept.
    From the first batch on in which they do not rise, each is kept as a digest of 16 bytes, and in the end
    the earlier ones are read once more.
    """

    def __init__(self, snapshot: Snapshot, compared: Compared) -> None:
        self._snapshot = snapshot
        self._schema = pa.schema([compared.schema.field(name) for name in compared.key])
        self._last: list[Field] | None = None
        self._n_rising = 0
        self._digests: list[Words] = []

    def add(self, rows: pa.RecordBatch, first: int) -> Words:
        """Take note of the keys of rows that come next.

        Parameters
        ----------
        rows : the next batch of the snapshot, in the types in which it is compared.
        first : number of rows before them.

        Returns
        -------
        (n, 2) uint64: the digests of the keys, (0, 2) where none were made.

        Raises
        ------
        DataRefusedError
            A record has no key; the message names it.
        """
        refuse_missing(rows, self._schema.names, first, self._snapshot.label)
        if not self._digests and self._rise(rows):
            self._n_rising += 1
            return NOTHING
        self._digests.append(self._digest(rows))
        return self._digests[-1]

    def _rise(self, rows: pa.RecordBatch) -> bool:
        if not len(rows):
            return True
        fields, n = to_fields(rows.select(self._schema.names), has_nulls=False), len(rows)
        signs = [order_rows(n - 1, cut_fields(fields, slice(n - 1)), cut_fields(fields, slice(1, n)))]
        if self._last is not None:
            signs.append(order_rows(1, self._last, cut_fields(fields, slice(1))))
        self._last = cut_fields(fields, slice(n - 1, n))
        return all((each < 0).all() for each in signs)

    def _digest(self, rows: pa.RecordBatch) -> Words:
        return digest_table(rows.select(self._schema.names), UNKEYED)

    def refuse_doubles(self) -> None:
        """Refuse a key that came twice, when all rows have come.

        Raises
        ------
        DataRefusedError
            The message names both records.
        """
        if not self._digests:
            return
        risen = islice(self._snapshot.batches(), self._n_rising)
        earlier = [self._digest(conform(batch, self._schema, self._snapshot.label)) for batch in risen]
        refuse_doubles(self._snapshot, self._schema, [*earlier, *self._digests])


def refuse_missing(rows: pa.RecordBatch, key: list[str], first: int, label: str) -> None:
    """Refuse a record without a key; ``first`` rows come before these."""
    for name in key:
        if rows[name].null_count:
            row = first + rows[name].is_null().to_pylist().index(True)
            raise DataRefusedError(f"{label}: record {row + 1:,} has no {name}, which is its key")


def refuse_doubles(snapshot: Snapshot, key: pa.Schema, digests: list[Words]) -> None:
    """Refuse a key that comes twice.

    Parameters
    ----------
    snapshot, key : whose keys they are, and their columns.
    digests : of the keys of all rows, in their order.
    """
    double = find_double(np.concatenate([NOTHING, *digests]))
    if double is None:
        return
    value = to_rows(snapshot.take(np.array(double[1:]), key))[0]
    named = ", ".join(f"{name} {text!r}" for name, text in value.items())
    raise DataRefusedError(
        f"{snapshot.label}: records {double[0] + 1:,} and {double[1] + 1:,} have one key, {named}; "
        "name more key columns, or none to compare whole rows"
    )
