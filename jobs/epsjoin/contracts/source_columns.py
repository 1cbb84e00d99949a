"""What a source's contract may say of its columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from epsjoin.contracts.odcs import TYPES, Column
from epsjoin.contracts.times import pattern_of
from epsjoin.params import is_finite

TIMES = ("date", "time", "timestamp")
"""Types of dates and times."""

WINDOWED_TYPES = ("string", "integer", "boolean", "date")
"""Types of columns whose values can be counted: each value is one text, and is read back as it was."""

MAX_DECIMALS = 15
"""Largest number of decimals to which a column may be rounded; a float64 has no more that count."""

RESERVED = ("run", "id", "point")
"""Columns that ``points`` adds to those of its source; only a single integer key may be called ``id``."""

Refuse = Callable[[str], None]
"""Raises ContractError with a sentence, behind the name of the file."""


class Source(Protocol):
    """What is asked of the contract of a source."""

    @property
    def format(self) -> str:
        """Format of the files."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its columns."""

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the key columns."""

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates."""

    @property
    def tree(self) -> str:
        """Name of the column of documents."""

    @property
    def metric(self) -> str:
        """Name of the metric."""

    @property
    def unit(self) -> str:
        """Unit of distances."""

    @property
    def windowed(self) -> tuple[str, ...]:
        """Names of the columns whose values are counted."""

    @property
    def window_runs(self) -> int:
        """Number of runs that are compared."""

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Parameters of its runs."""

    def column(self, name: str) -> Column:
        """The column of that name."""


def check_columns(source: Source, refuse: Refuse) -> None:
    """Refuse a column that says what its type, its role or the table ``points`` cannot have."""
    _check_readable(source, refuse)
    _check_windowed(source, refuse)
    _check_types(source, refuse)
    _check_coordinates(source, refuse)


def _check_coordinates(source: Source, refuse: Refuse) -> None:
    """Refuse a coordinate that is no number, or a key; and limits of what is no number."""
    for name in source.coordinates:
        if source.column(name).type not in ("integer", "number"):
            refuse(f"coordinate {name} must be a number or an integer")
        if name in source.key:
            refuse(f"{name} cannot be key and coordinate at once")
    for column in source.columns:
        bounds = [bound for bound in (column.minimum, column.maximum) if bound is not None]
        if bounds and column.type not in ("integer", "number"):
            refuse(f"column {column.name}: minimum and maximum are for numbers, not for a {column.type}")
        if not all(map(is_finite, bounds)) or bounds != sorted(bounds):
            said = " and ".join(map(str, bounds))
            refuse(f"column {column.name}: minimum and maximum must be finite, and in that order, not {said}")
        over, under = (column.minimum or 0) >= 2**63, (column.maximum or 0) < -(2**63)
        if column.type == "integer" and (over or under):
            refuse(f"column {column.name}: no integer of 64 bits is within its minimum and maximum")


def _check_types(source: Source, refuse: Refuse) -> None:
    """Refuse a type that is not known, what is for another type, and names that are taken."""
    for column in source.columns:
        if column.type not in TYPES:
            refuse(f"column {column.name}: logicalType must be one of {', '.join(TYPES)}")
        if column.form and column.type != "date":
            refuse(f"column {column.name}: format is for a date, not for a {column.type}")
        try:
            _ = column.form and pattern_of(column.form)
        except ValueError as error:
            refuse(f"column {column.name}: {error}")
        is_integer_id = source.key == ("id",) and column.type == "integer"
        if column.name.lower() in RESERVED and not (column.name == "id" and is_integer_id):
            refuse(
                f"column {column.name}: the points table has a column of that name; give it another one, and "
                f"physicalName: {column.in_file}"
            )


def is_plain(in_file: str) -> bool:
    """Whether what a file calls a column can stand in the reasons why records are refused."""
    return in_file.isprintable() and not re.search(": ['\"]", in_file)


def _check_readable(source: Source, refuse: Refuse) -> None:
    """Refuse a column whose place in a file is not plain, or that cannot be rounded as it says."""
    seen: dict[str, str] = {}
    for column in source.columns:
        if column.item is not None and source.format == "csv":
            refuse(
                f"column {column.in_file}: csv has no lists; make a column of each number, or files of json "
                "or parquet"
            )
        if not is_plain(column.in_file):
            refuse(
                f"column {column.name}: physicalName {column.in_file!r} has a sign that cannot be printed, "
                "or a quote after a colon; rename it in the source"
            )
        other = seen.setdefault(column.in_file, column.name)
        if other != column.name and not column.item:  # the numbers of a list are in one column
            refuse(f"columns {other} and {column.name} are both column {column.in_file!r} of the files")
        decimals = column.decimals
        if decimals is None:
            continue
        if type(decimals) is not int or not 0 <= decimals <= MAX_DECIMALS:
            refuse(
                f"column {column.name}: decimals must be a whole number from 0 to {MAX_DECIMALS}, "
                f"not {decimals!r}"
            )
        if column.type != "number":
            refuse(f"column {column.name}: decimals are for a number, not for {column.type}")


def _check_windowed(source: Source, refuse: Refuse) -> None:
    """Refuse a column whose values are not categories, and a window of no earlier run."""
    for name in source.windowed:
        kind = source.column(name).type
        if kind not in WINDOWED_TYPES or name in source.coordinates:
            what = "a coordinate" if name in source.coordinates else f"a {kind}"
            refuse(f"column {name}: windowed is for {', '.join(WINDOWED_TYPES)}, not for {what}")
    if type(source.window_runs) is not int or source.window_runs < 2:
        refuse(f"window_runs must be a whole number, at least 2, not {source.window_runs!r}")
