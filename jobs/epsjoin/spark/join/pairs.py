"""The columns of the table pairs, for tasks that write and read them."""

from __future__ import annotations

import pyarrow as pa

from epsjoin.local.sweep.pairs import Pairs

PAIRS = "left_id long, right_id long, distance double"
"""Columns of pairs, as DDL."""


def to_batch(pairs: Pairs) -> pa.RecordBatch:
    """Pairs of ids as rows with the columns ``PAIRS``."""
    return pa.record_batch({"left_id": pairs.left, "right_id": pairs.right, "distance": pairs.distance})
