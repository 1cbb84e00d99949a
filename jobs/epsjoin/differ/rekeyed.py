"""Rows that went under one key and came under another: separated from those that really went and came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from epsjoin.differ.columns import Compared, structs
from epsjoin.differ.nearness import Near, choose_coordinates, match_by_nearness
from epsjoin.differ.snapshots import conform
from epsjoin.digests import UNKEYED, digest_table
from epsjoin.kernels.arrays import Ints


def separate_rekeyed(
    compared: Compared,
    deleted: pa.Table,
    inserted: pa.Table,
    near: Near | None,
    near_columns: Sequence[str] | None,
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Separate the rows that got another key from those that went and came.

    Returns
    -------
    The rows that went, those that came, and those with another key.
    """
    schema = pa.schema([field for field in compared.schema if field.name not in compared.key])
    contents = [_conformed(table, schema) for table in (deleted, inserted)]
    pairs = match_by_content(*contents) if compared.key else np.empty((0, 2), np.int64)
    distances: list[float | None] = [None] * len(pairs)
    if near is not None:
        left = [_others(len(table), rows) for table, rows in zip(contents, pairs.T, strict=True)]
        if all(map(len, left)):
            rest = [table.take(pa.array(rows)) for table, rows in zip(contents, left, strict=True)]
            is_one = not isinstance(near, Mapping)
            names = near_columns or (choose_coordinates(rest, schema.names) if is_one else ())
            nearest, apart = match_by_nearness(rest[0], rest[1], near, names)
            pairs = np.concatenate([pairs, np.column_stack([left[0][nearest[:, 0]], left[1][nearest[:, 1]]])])
            distances += apart.tolist()
    structs_of = [
        structs(table.take(pa.array(rows))) for table, rows in zip((deleted, inserted), pairs.T, strict=True)
    ]
    rekeyed = pa.table(
        {"before": structs_of[0], "now": structs_of[1], "distance": pa.array(distances, pa.float64())}
    )
    deleted, inserted = (
        table.take(pa.array(_others(len(table), rows)))
        for table, rows in zip((deleted, inserted), pairs.T, strict=True)
    )
    return deleted, inserted, rekeyed


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([conform(batch, schema, "") for batch in table.to_batches()], schema)


def _others(n: int, rows: Ints) -> Ints:
    """All row numbers below n but these."""
    is_left = np.ones(n, bool)
    is_left[rows] = False
    return np.flatnonzero(is_left)


def match_by_content(old: pa.Table, new: pa.Table) -> Ints:
    """Match rows of equal content, which nobody else among those that went or came has.

    Parameters
    ----------
    old, new : the rows that went and that came, without their keys.

    Returns
    -------
    (n, 2) row numbers, by those in ``new``.
    """
    if not old.num_columns:
        return np.empty((0, 2), np.int64)
    digests = np.concatenate([digest_table(table, UNKEYED) for table in (old, new)])
    _, content = np.unique(digests, axis=0, return_inverse=True)
    content = content.reshape(-1)
    went, came = content[: len(old)], content[len(old) :]
    n = int(content.max(initial=-1)) + 1
    is_single = (np.bincount(went, minlength=n) == 1) & (np.bincount(came, minlength=n) == 1)
    row = np.empty(n, np.int64)
    row[went] = np.arange(len(went))
    rows = np.flatnonzero(is_single[came])
    return np.column_stack([row[came[rows]], rows])
