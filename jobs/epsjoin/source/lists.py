"""Lists in the columns of files: to a contract each number of a list is a column of its own.

A list that has another length, or a null in it, cannot be split, whatever is asked of its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.contracts.odcs import Column
from epsjoin.contracts.sources import SourceContract
from epsjoin.source.reasons import refusal
from epsjoin.source.values import is_missing


class Splitter:
    """Splits records of named values into one field for each column of a contract.

    Parameters
    ----------
    source : the contract.

    Attributes
    ----------
    names : names of the columns of the files, each once, in the contract's order.
    """

    def __init__(self, source: SourceContract) -> None:
        self._source = source
        self._places = [(column.in_file, column.item) for column in source.columns]
        self.names = list(dict.fromkeys(name for name, _ in self._places))
        self._lists = list_columns(source.columns)

    def split(self, values: Mapping[str, Any]) -> tuple[list[Any] | None, str | None]:
        """Split a record.

        Parameters
        ----------
        values : by the names of the files' columns; one that is not there is ``None``.

        Returns
        -------
        The fields, or the reason why there are none; the other one is ``None``. Where a list is missing, so
        is the field of each of its columns.
        """
        lists: dict[str, list[Any]] = {}
        for name, of_list in self._lists.items():
            value: Any = values.get(name)
            n = len(of_list)
            is_there = not is_missing(self._source, of_list[0], value)
            if is_there and (fault := _fault_of(value, n)) is not None:
                return None, refusal(f"{name}: not a list of {n} numbers", fault)
            lists[name] = value if is_there else [None] * n
        return [values.get(name) if item is None else lists[name][item] for name, item in self._places], None


def list_columns(columns: Iterable[Column]) -> dict[str, list[Column]]:
    """By the names of the files' columns that hold lists: the columns of the numbers of each."""
    found: dict[str, list[Column]] = {}
    for column in columns:
        if column.item is not None:
            found.setdefault(column.in_file, []).append(column)
    return found


def _fault_of(value: Any, n: int) -> str | None:
    """Say in which way a value is no list of ``n`` values; ``None`` if it is one."""
    if not isinstance(value, list):
        return str(value)
    if len(value) != n:
        return f"it has {len(value)}"
    return f"null in place {value.index(None) + 1}" if None in value else None


def spread(values: pa.Array, n: int) -> tuple[list[pa.Array], NDArray[np.bool_]]:
    """Split an array of lists into arrays of their numbers.

    Parameters
    ----------
    values : (m,) lists of numbers, of one type.
    n : length that they should have.

    Returns
    -------
    tuple
        ``n`` arrays, (m,) each, null where a list is missing or odd; (m,) bool, which lists are odd: of
        another length, or with a null in them.
    """
    is_there = pc.is_valid(values).to_numpy(zero_copy_only=False)
    is_whole = pc.fill_null(pc.equal(pc.list_value_length(values), n), False).to_numpy(zero_copy_only=False)
    flat = (values if is_whole.all() else values.filter(pa.array(is_whole))).flatten()
    if flat.null_count:
        has_null = flat.is_null().to_numpy(zero_copy_only=False).reshape(-1, n).any(axis=1)
        is_whole = is_whole.copy()
        is_whole[is_whole] = ~has_null
        flat = values.filter(pa.array(is_whole)).flatten()
    numbers = flat.to_numpy(zero_copy_only=False).reshape(-1, n)
    spread_out = np.zeros((n, len(values)), numbers.dtype)
    spread_out[:, is_whole] = numbers.T
    mask = None if is_whole.all() else ~is_whole
    return [pa.array(each, flat.type, mask=mask) for each in spread_out], is_there & ~is_whole


def is_list_of_numbers(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists that :func:`spread` takes."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return False
    return bool(pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))


def spread_columns(
    columns: Sequence[Column], found: Mapping[str, pa.Array], n_rows: int
) -> tuple[dict[str, pa.Array], NDArray[np.bool_]]:
    """Find the values of a contract's columns in those of a file.

    Parameters
    ----------
    columns : the contract's columns.
    found : (n_rows,) values by the names of the file's columns. Columns that are not there have none.

    Returns
    -------
    tuple
        Values by the names of the contract's columns; (n_rows,) bool, rows in which a list is odd. What is
        no list of numbers stands in each of its columns.
    """
    odd = np.zeros(n_rows, np.bool_)
    lists: dict[str, list[pa.Array]] = {}
    for name, of_list in list_columns(columns).items():
        if name in found and is_list_of_numbers(found[name].type):
            lists[name], odd_lists = spread(found[name], len(of_list))
            odd |= odd_lists
    values = {}
    for column in columns:
        if column.in_file in lists and column.item is not None:
            values[column.name] = lists[column.in_file][column.item]
        elif column.in_file in found:
            values[column.name] = found[column.in_file]
    return values, odd
