"""Rows that went under one key and came under another: matched by their content, or by nearness."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.differ.columns import Compared, structs
from epsjoin.differ.snapshots import conform
from epsjoin.digests import UNKEYED, digest_table
from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.join.arrays import join

_NUMBER = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"


def separate_rekeyed(
    compared: Compared,
    deleted: pa.Table,
    inserted: pa.Table,
    near: float | None,
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
            names = near_columns or choose_coordinates(rest, schema.names)
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


def match_by_nearness(old: pa.Table, new: pa.Table, eps: float, names: Sequence[str]) -> tuple[Ints, Floats]:
    """Match rows that are the nearest to one another, within eps.

    Parameters
    ----------
    old, new : the rows that went and that came.
    eps : largest distance, Euclidean.
    names : the columns that are coordinates; rows without a number in one of them are passed over.

    Returns
    -------
    (n, 2) row numbers, by those in ``new``, and the distance of each pair.
    """
    points = [_to_points(table, names) for table in (old, new)]
    pairs = join(points[0][1], points[1][1], eps)
    mine, theirs = points[0][0][pairs.left], points[1][0][pairs.right]
    # the nearest of each; of equally near ones the first
    best_of_old = _first_of(mine, np.lexsort((theirs, pairs.distance, mine)))
    best_of_new = _first_of(theirs, np.lexsort((mine, pairs.distance, theirs)))
    mutual = np.intersect1d(best_of_old, best_of_new)
    mutual = mutual[np.argsort(theirs[mutual])]
    return np.column_stack([mine[mutual], theirs[mutual]]), pairs.distance[mutual]


def _first_of(rows: Ints, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Of the pairs of each row the first in this order, which is sorted by row."""
    ordered = rows[order]
    is_first = np.r_[True, ordered[1:] != ordered[:-1]][: len(order)]
    return np.asarray(order[is_first])


def choose_coordinates(tables: Sequence[pa.Table], names: Sequence[str]) -> list[str]:
    """The columns that hold nothing but numbers.

    Raises
    ------
    ArgumentError
        There is none.
    """
    found = [name for name in names if all(_is_number_column(table[name]) for table in tables)]
    if not found:
        raise ArgumentError(f"near needs columns of numbers; none of {', '.join(names)} is one")
    return found


def _is_number_column(column: pa.ChunkedArray) -> bool:
    if pa.types.is_string(column.type):
        texts = column.drop_null()
        return bool(len(texts)) and bool(pc.all(pc.match_substring_regex(texts, _NUMBER)).as_py())
    return bool(pa.types.is_integer(column.type) or pa.types.is_floating(column.type))


def _to_points(table: pa.Table, names: Sequence[str]) -> tuple[Ints, Floats]:
    """The rows that have all coordinates, and these."""
    columns = [
        pc.utf8_trim_whitespace(c) if pa.types.is_string(c.type) else c for c in map(table.column, names)
    ]
    points = np.column_stack([c.cast(pa.float64()).to_numpy() for c in columns])
    rows = np.flatnonzero(np.isfinite(points).all(axis=1))
    return rows, points[rows]
