"""Records: pairs that are best in a part, and rows that have no partner there, on their way to the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.kernels.arrays import Bools, Bytes, Floats, Ints
from epsjoin.kernels.bestmatch.dominance import Masks
from epsjoin.local.bestmatch.candidates import Candidates, preferences_of
from epsjoin.local.bestmatch.orders import Order

_MATRICES = ("values", "masks", "left_rows", "right_rows")


class Records(NamedTuple):
    """Pairs and lonely rows of a part.

    Parameters
    ----------
    left, right : (k,) int64, ids; 0 where a lonely row has no partner.
    best_for : (k,) uint8, bits of the rows for which the pair is the best so far; 0 for lonely rows.
    pending : (k,) uint8, bits of the rows for which another part may have a better pair, or any pair.
    lonely : (k,) uint8: 0 for a pair, otherwise the bit of the row's side.
    values, masks : see :class:`epsjoin.local.bestmatch.candidates.Candidates`.
    left_rows, right_rows : (k, d) float64, the rows of the pair, if own orders need them; otherwise (k, 0).
    """

    left: Ints
    right: Ints
    best_for: Bytes
    pending: Bytes
    lonely: Bytes
    values: Floats
    masks: Masks
    left_rows: Floats
    right_rows: Floats

    def take(self, rows: Bools | Ints) -> Records:
        """Return some of the records."""
        return Records._make(column[rows] for column in self)

    def candidates(self, orders: Sequence[Order]) -> Candidates:
        """Return the records, all of them pairs, as candidates; their rows are numbered by rising id."""
        left, right = (np.unique(ids, return_inverse=True)[1].reshape(-1) for ids in self[:2])
        each = np.arange(len(left))
        prefer = preferences_of(self.left_rows, self.right_rows, orders, each, each)
        return Candidates(left, right, self.values, self.masks, prefer)

    def to_table(self) -> pa.Table:
        """Write the records as Arrow columns; :func:`read_records` reads them."""
        columns: dict[str, NDArray[Any]] = {}
        for name, column in self._asdict().items():
            if name in _MATRICES:
                columns |= {f"{name}_{i}": np.ascontiguousarray(column[:, i]) for i in range(column.shape[1])}
            else:
                columns[name] = column
        return pa.table(columns)


def read_records(batches: Sequence[pa.RecordBatch]) -> Records:
    """Read the records of some batches, at least one."""
    table = pa.Table.from_batches(batches)
    names = table.column_names

    def matrix(name: str) -> NDArray[Any]:
        columns = [table[each].to_numpy() for each in names if each.startswith(f"{name}_")]
        kind = np.uint64 if name == "masks" else np.float64
        return np.column_stack(columns) if columns else np.empty((len(table), 0), kind)

    columns = {name: matrix(name) for name in _MATRICES}
    return Records._make(
        columns[name] if name in columns else table[name].to_numpy() for name in Records._fields
    )


def concat_records(some: Sequence[Records]) -> Records:
    """Put records together."""
    return Records._make(np.concatenate(columns) for columns in zip(*some, strict=True))


def merge_equal(records: Records) -> Records:
    """Return the records in the order of their ids; a pair that several parts have found is one record."""
    order = np.lexsort((records.right, records.left, records.lonely))
    ordered = records.take(order)
    is_new = np.zeros(len(order), np.bool_)
    is_new[:1] = True
    for column in (ordered.left, ordered.right, ordered.lonely):
        is_new[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(is_new)
    if len(first) == len(order):
        return ordered
    bits = {name: np.bitwise_or.reduceat(getattr(ordered, name), first) for name in ("best_for", "pending")}
    return ordered.take(first)._replace(**bits)
