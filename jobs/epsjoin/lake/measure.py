"""Measure rows by their table's contract, batch by batch: columns, types, missing values, and conditions.

The numbers are those of :func:`epsjoin.contracts.expected.expected_of`, by the same names. Conditions are
ranges and values of columns, and rules that rows break one by one; queries of other rules are not asked here.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.contracts.conditions import columns_of, evaluate, parse
from epsjoin.contracts.expected import COLUMNS, missing_words, type_words
from epsjoin.contracts.odcs import Column
from epsjoin.contracts.row_rules import column_conditions, rule_conditions
from epsjoin.contracts.tables import TableContract
from epsjoin.errors import to_one_line
from epsjoin.lake.schemas import ARROW_TYPES

MAX_EXAMPLES = 3
"""Maximum number of values that are shown as examples of what breaks an expectation."""


class Measured(NamedTuple):
    """How much breaks an expectation.

    Parameters
    ----------
    number : rows, or columns; infinity where it could not be counted. Of a query: what it returns.
    examples : the least values that break it; none where values are missing.
    words : what was found, where it is not a number of rows.
    """

    number: float
    examples: tuple[Any, ...] = ()
    words: str = ""

    def __str__(self) -> str:
        """What was found, in a few words; empty where nothing was."""
        if self.words or not self.number:
            return self.words
        such_as = f", such as {', '.join(map(str, self.examples))}" if self.examples else ""
        return f"{self.number:,.0f} rows{such_as}"


def measure_schema(found: pa.Schema, contract: TableContract) -> dict[str, Measured]:
    """Compare the columns of rows and their types with the contract's."""
    kinds = dict(zip(found.names, found.types, strict=True))
    differ = kinds.keys() ^ {column.name for column in contract.columns}
    measured = {COLUMNS: Measured(len(differ), words=str(sorted(kinds)) if differ else "")}
    names = {arrow: name for name, arrow in ARROW_TYPES.items()}
    for column in contract.columns:
        kind = kinds.get(column.name)
        fits = kind == ARROW_TYPES[column.type]
        words = _no_column(column) if kind is None else names.get(kind, str(kind))
        measured[type_words(column)] = Measured(0) if fits else Measured(1, words=words)
    return measured


def measure_rows(rows: pa.Table, contract: TableContract) -> dict[str, Measured]:
    """Count the rows with missing values, and those that break a condition of the contract."""
    measured: dict[str, Measured] = {}
    found = dict(zip(rows.column_names, rows.columns, strict=True))
    for column in contract.columns:
        conditions = list(column_conditions(column))
        if column.name not in found:
            words = [missing_words(column)] if column.required else []
            words += [each for each, _ in conditions]
            measured |= dict.fromkeys(words, Measured(math.inf, words=_no_column(column)))
            continue
        if column.required:
            measured[missing_words(column)] = Measured(found[column.name].null_count)
        for each, broken in conditions:
            measured[each] = _count(broken, found, column.name)
    for name, broken in rule_conditions(contract).items():
        gone = sorted(columns_of(parse(broken)) - found.keys())
        no_column = Measured(math.inf, words=f"there is no column {', '.join(gone)}")
        measured[name] = no_column if gone else _count(broken, found)
    return measured


def _count(broken: str, columns: Mapping[str, pa.ChunkedArray], shown: str | None = None) -> Measured:
    """Count the rows for which a condition is true; a missing value breaks none.

    Parameters
    ----------
    columns : of the rows, by name.
    shown : the column whose values are examples.
    """
    try:
        found = evaluate(parse(broken), columns.__getitem__)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:  # a column of another type
        return Measured(math.inf, words=to_one_line(error))
    number = pc.sum(found).as_py() or 0
    return Measured(number, _least(columns[shown].filter(found).to_pylist()) if number and shown else ())


def _least(values: Iterable[Any]) -> tuple[Any, ...]:
    """The least values, NaN last, which are the same in whatever order and parts rows are measured."""
    return tuple(heapq.nsmallest(MAX_EXAMPLES, values, key=lambda value: (value != value, value)))


def _no_column(column: Column) -> str:
    return f"there is no column {column.name}"


def add_measured(parts: Iterable[Mapping[str, Measured]]) -> dict[str, Measured]:
    """Add up what was measured of parts of the same rows."""
    total: dict[str, Measured] = {}
    for part in parts:
        for name, more in part.items():
            until = total.get(name, Measured(0))
            examples = _least(until.examples + more.examples)
            total[name] = Measured(until.number + more.number, examples, until.words or more.words)
    return total
