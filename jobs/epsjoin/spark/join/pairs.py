"""Columns and batches of pairs, for the tasks that write and read them.

The slice of the table that a job reads is :mod:`epsjoin.spark.join.stored_pairs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from epsjoin.errors import BudgetError, DataRefusedError
from epsjoin.local.join.first_pairs import LeftOut
from epsjoin.local.sweep.pairs import Pairs

PAIRS = "left_id long, right_id long, distance double"
"""Columns of pairs, as DDL."""
BATCH_PAIRS = 1 << 18
"""Number of pairs at which a task passes a batch of them on."""
LEFT_OUT = "pairs_left_out"
"""Counter of the pairs that tasks have left out, since they were first pairs."""


def to_batch(pairs: Pairs) -> pa.RecordBatch:
    """Pairs of ids as rows with the columns ``PAIRS``."""
    return pa.record_batch({"left_id": pairs.left, "right_id": pairs.right, "distance": pairs.distance})


def check_limit(found: int, max_pairs: int, eps: float, where: str) -> None:
    """Raise BudgetError if a task alone has found more pairs than the join may have."""
    if found > max_pairs:
        what = f"more than {max_pairs:,} pairs (max_pairs) lie within eps {eps:g}"
        raise BudgetError(f"{what} in {where} alone")


def leave_out(
    first: Pairs | None, batches: Iterable[pa.RecordBatch], counters: dict[str, float]
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of batches without the first pairs, and count these as ``LEFT_OUT``.

    Parameters
    ----------
    first : None: there are none, and nothing is counted.
    batches : with the columns ``PAIRS``.
    """
    if first is None or not len(first.left):
        yield from batches
        return
    left_out = LeftOut(first)
    counters[LEFT_OUT] = 0
    for batch in batches:
        found = Pairs(*(batch.column(name).to_numpy() for name in ("left_id", "right_id", "distance")))
        others = left_out.of(found)
        counters[LEFT_OUT] += len(found.left) - len(others.left)
        yield batch if others is found else to_batch(others)


def check_left_out(first: Pairs | None, counters: dict[str, float]) -> None:
    """Check that the parts have found each of the first pairs once.

    Parameters
    ----------
    first : see :func:`leave_out`.
    counters : those of all tasks, added up.

    Raises
    ------
    DataRefusedError
        Ids are not distinct, so that several pairs of rows have the same ids and were left out for one; or
        the rows were different when they were read again.
    """
    given, found = 0 if first is None else len(first.left), counters.get(LEFT_OUT, 0)
    if found != given:
        raise DataRefusedError(
            f"{given:,} pairs were in the table first, but the parts found {found:,.0f} pairs with the same "
            "ids: two rows have one id, or the rows were others when they were read again; give each row an "
            "id of its own, and persist the frame or write it to a table first"
        )
