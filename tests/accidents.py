"""Accidents that happen to files of records: what a person, a script or a disk makes of a good snapshot."""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Snapshot:
    """A file of records.

    Parameters
    ----------
    header : names of the columns.
    rows : fields, one list per record.
    key : name of the key column, which holds whole numbers.
    coordinates : names of the coordinate columns.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    key: str
    coordinates: tuple[str, ...]

    def text(self) -> str:
        """The file."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
        return out.getvalue()

    def of(self, rows: Sequence[Sequence[str]]) -> Snapshot:
        """The same columns with other records."""
        return Snapshot(self.header, rows, self.key, self.coordinates)

    def with_values(self, column: str, new: Callable[[int, str], str]) -> Snapshot:
        """The values of a column replaced, by the number of the record and the value; none stays none."""
        at = self.header.index(column)
        return self.of(
            [
                [*row[:at], new(i, row[at]) if row[at] else "", *row[at + 1 :]]
                for i, row in enumerate(self.rows)
            ]
        )

    def values(self, column: str) -> list[str]:
        """The values of a column."""
        at = self.header.index(column)
        return [row[at] for row in self.rows]


@cache  # nobody changes its rows
def read_snapshot(file: Path, key: str, coordinates: tuple[str, ...]) -> Snapshot:
    """Read a CSV file, unpacked or not."""
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines)
    return Snapshot(header, rows, key, coordinates)


def _times(factor: float, first: int = 0) -> Callable[[Snapshot], Snapshot]:
    def change(snapshot: Snapshot) -> Snapshot:
        for name in snapshot.coordinates[first:]:
            snapshot = snapshot.with_values(name, lambda _, value: repr(float(value) * factor))
        return snapshot

    return change


def _swap(snapshot: Snapshot) -> Snapshot:
    a, b = snapshot.coordinates[:2]
    of_a, of_b = snapshot.values(a), snapshot.values(b)
    return snapshot.with_values(a, lambda i, _: of_b[i]).with_values(b, lambda i, _: of_a[i])


def _add_digits(snapshot: Snapshot) -> Snapshot:
    """As a program does that computes with degrees in float32, or in radians, and writes all digits."""
    rng = np.random.default_rng(3)
    for name in snapshot.coordinates:
        factors = (1 + rng.uniform(-1e-8, 1e-8, len(snapshot.rows))).tolist()
        snapshot = snapshot.with_values(name, lambda i, v, by=factors: repr(float(v) * by[i]))
    return snapshot


def _shift_a_column(snapshot: Snapshot) -> Snapshot:
    """As a spreadsheet does in which one column was not selected when a row was inserted."""
    name = snapshot.coordinates[-1]
    values = snapshot.values(name)
    return snapshot.with_values(name, lambda i, _: values[i - 1])


ACCIDENTS: dict[str, Callable[[Snapshot], str]] = {
    "half lost": lambda s: s.of(s.rows[::2]).text(),
    "tail cut": lambda s: s.of(s.rows[: len(s.rows) * 9 // 10]).text(),
    "header only": lambda s: s.of([]).text(),
    "0 bytes": lambda _: "",
    "a block doubled": lambda s: s.of([*s.rows, *s.rows[: len(s.rows) // 20]]).text(),
    "keys prefixed": lambda s: s.with_values(s.key, lambda _, key: f"77{key:0>9}").text(),
    "keys renumbered": lambda s: s.with_values(s.key, lambda i, _: str(i + 1)).text(),
    "coordinates swapped": lambda s: _swap(s).text(),
    "degrees to radians": lambda s: _times(math.pi / 180)(s).text(),
    "km to miles": lambda s: _times(0.621371, -1)(s).text(),
    "sign": lambda s: _times(-1.0, -1)(s).text(),
    "digits added": lambda s: _add_digits(s).text(),
    "a column shifted": lambda s: _shift_a_column(s).text(),
}
"""Text of a file by the name of what has happened to it. The fourteenth accident is a file of last year."""
