"""Rows that went under one key and came under another, matched as the nearest to one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.local.bestmatch.batch import FOR_LEFT, FOR_RIGHT, BestPairs, bestmatch_join
from epsjoin.local.bestmatch.orders import Closest, Own
from epsjoin.source.values import DECIMAL

Near = float | Mapping[str | tuple[str, str], float]
"""One distance of all coordinates, or criteria with an eps each."""

_NUMBER = rf"^\s*{DECIMAL}\s*$"


def match_by_nearness(old: pa.Table, new: pa.Table, near: Near, names: Sequence[str]) -> tuple[Ints, Floats]:
    """Match rows that are the best match of one another, and have no other one.

    Parameters
    ----------
    old, new : the rows that went and that came.
    near : largest Euclidean distance; or criteria, see :func:`epsjoin.snapshot_diff`.
    names : the coordinates for one distance. Rows without a number in a column of numbers are passed over.

    Returns
    -------
    (n, 2) row numbers, by those in ``new``, and the distance of each pair; of several criteria the sum of
    their distances in units of their eps.

    Raises
    ------
    ArgumentError
        A coordinate, or a column of a place, is not of numbers, or no criterion is of numbers.
    """
    criteria = _read_criteria((old, new), near, names)
    numbers = [name for each in criteria if not each.is_text for name in each.columns]
    mine, theirs = _to_points(old, numbers), _to_points(new, numbers)
    orders: list[Closest | Own] = []
    for columns, eps, metric, is_text in criteria:
        if is_text:
            texts = _trigrams(old, columns, mine[0]), _trigrams(new, columns, theirs[0])
            orders.append(Own(partial(_compare_texts, texts, eps)))
        else:
            orders.append(Closest([numbers.index(name) for name in columns], eps, metric))
    # the last column is the row, by which the function of texts finds them
    left, right = (np.column_stack([points, np.arange(len(points))]) for _, points in (mine, theirs))
    # of equally near ones the first; but which of several criteria counts more, nobody knows
    best = bestmatch_join(left, right, how="outer", orders=orders, take="all" if len(orders) > 1 else "one")
    is_match = _is_only_one(best, np.asarray(np.isfinite(best.values).all(axis=1)))
    values = best.values[is_match]
    if len(criteria) > 1:
        values = values / np.array([each.eps or 1.0 for each in criteria])
    pairs = np.column_stack([mine[0][best.left[is_match]], theirs[0][best.right[is_match]]])
    order = np.argsort(pairs[:, 1])
    return pairs[order], values.sum(axis=1)[order]


def _is_only_one(best: BestPairs, is_within: Bools) -> Bools:
    """Mark the pairs that are the only best match of both of their rows."""
    is_only = is_within.copy()
    for rows, bit in ((best.left, FOR_LEFT), (best.right, FOR_RIGHT)):
        is_best = is_within & (best.best_for & bit > 0)
        is_only &= is_best
        is_only[is_only] = np.bincount(rows[is_best])[rows[is_only]] == 1
    return is_only


def check_criteria(near: Near, known: Sequence[str]) -> None:
    """Refuse criteria of other columns than those that are compared; their values are not looked at."""
    if not isinstance(near, Mapping):
        return
    for key in near:
        if not isinstance(key, (str, tuple)):
            raise ArgumentError(f"near: {key!r} is no name of a column, nor a pair of names")
        for name in (key,) if isinstance(key, str) else key:
            if name not in known:
                raise ArgumentError(f"near: {name!r} is no column that both snapshots have, besides the key")


class _Criterion(NamedTuple):
    columns: tuple[str, ...]
    eps: float
    metric: str | None
    is_text: bool


def _read_criteria(tables: tuple[pa.Table, pa.Table], near: Near, names: Sequence[str]) -> list[_Criterion]:
    """Tell criteria of numbers, of places and of texts from one another."""
    if not isinstance(near, Mapping):
        for name in names:
            if not all(_may_be_numbers(table[name]) for table in tables):
                raise ArgumentError(f"near needs columns of numbers; not all values of {name} are numbers")
        return [_Criterion(tuple(names), near, "euclidean", False)]
    found = []
    for key, eps in near.items():
        columns = (key,) if isinstance(key, str) else tuple(key)
        is_text = not all(_is_number_column(table[name]) for table in tables for name in columns)
        if is_text and len(columns) > 1:
            raise ArgumentError(f"near: {' and '.join(columns)} are no place, as not all values are numbers")
        found.append(_Criterion(columns, eps, "haversine" if len(columns) > 1 else None, is_text))
    if all(each.is_text for each in found):
        raise ArgumentError(
            "near needs a column of numbers or a place: by texts alone all would be compared with all"
        )
    return found


def _trigrams(table: pa.Table, columns: Sequence[str], rows: Ints) -> list[frozenset[str]]:
    """The trigrams of the texts of some rows, without regard to case; a missing text has none."""
    texts = table[columns[0]].take(pa.array(rows)).cast(pa.string()).to_pylist()
    padded = [f"  {text} ".casefold() if text else "" for text in texts]
    return [frozenset(text[i : i + 3] for i in range(len(text) - 2)) for text in padded]


def _compare_texts(
    texts: tuple[Sequence[frozenset[str]], Sequence[frozenset[str]]], eps: float, left: Floats, right: Floats
) -> Floats:
    """The fraction of trigrams that two texts do not share.

    Beyond eps it is infinite: such a pair dominates none within eps, and is no match in the end.
    """
    apart = np.empty(len(left))
    for i, (x, y) in enumerate(zip(left[:, -1].astype(int), right[:, -1].astype(int), strict=True)):
        mine, theirs = texts[0][x], texts[1][y]
        apart[i] = 1.0 - len(mine & theirs) / max(1, len(mine | theirs))
    apart[apart > eps] = np.inf
    return apart


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


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values themselves, where a column has their numbers in a dictionary or another type of texts."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_text = pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type)
    return column.cast(pa.string()) if is_text else column


def _is_number_column(column: pa.ChunkedArray) -> bool:
    column = _plain(column)
    if pa.types.is_string(column.type):
        texts = column.drop_null()
        return bool(len(texts)) and bool(pc.all(pc.match_substring_regex(texts, _NUMBER)).as_py())
    kind = column.type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _may_be_numbers(column: pa.ChunkedArray) -> bool:
    """Whether every value is a number or missing."""
    return column.null_count == len(column) or _is_number_column(column)


def _to_points(table: pa.Table, names: Sequence[str]) -> tuple[Ints, Floats]:
    """The rows that have all coordinates, and these."""
    columns = [
        pc.utf8_trim_whitespace(c) if pa.types.is_string(c.type) else c
        for c in (_plain(table[name]) for name in names)
    ]
    # whole numbers beyond 2**53 are rounded: near is a distance, not equality
    points = np.column_stack([c.cast(pa.float64(), safe=False).to_numpy() for c in columns])
    rows = np.flatnonzero(np.isfinite(points).all(axis=1))
    return rows, points[rows]
