"""What separates the fields of a CSV file whose header does not have the columns that it should."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

from epsjoin.contracts.sources import DELIMITERS
from epsjoin.errors import ArgumentError

CANDIDATES = (",", ";", "\t", "|")
"""Delimiters that are looked for where nobody has said which one a file has."""


class Header(NamedTuple):
    """The header of a CSV file.

    Parameters
    ----------
    text : its lines.
    delimiter : what it has been split by.
    """

    text: str
    delimiter: str

    def remedy(self, missing: Sequence[str] = ()) -> str:
        """Say what seems to separate the fields, if it is not the delimiter, or that it is none; else empty.

        Parameters
        ----------
        missing : names of columns that were not found, at least one of which the other delimiter must yield;
            if none is given, it must yield two columns.
        """
        if self.text.lower().startswith("sep="):
            return "; its first line is for spreadsheets alone: delete it"
        found = {other: self._split_by(other) for other in CANDIDATES if other != self.delimiter}
        n_found = {
            other: sum(name in names for name in missing) if missing else len(names) - 1
            for other, names in found.items()
        }
        best = max(found, key=n_found.__getitem__)
        if n_found[best] < 1:
            return ""
        said = "tabs" if best == "\t" else repr(best)
        return f"; its fields seem to be separated by {said}, and the delimiter is {describe(self.delimiter)}"

    def _split_by(self, delimiter: str) -> list[str]:
        """The names by another delimiter; none where the header is not CSV by it."""
        try:
            return next(csv.reader(io.StringIO(self.text, newline=""), delimiter=delimiter, strict=True), [])
        except csv.Error:
            return []


def check_delimiter(delimiter: str | None) -> None:
    """Refuse a delimiter that a caller of the library gave, if it is not among those allowed.

    Raises
    ------
    ArgumentError
        It is none of :data:`epsjoin.contracts.sources.DELIMITERS`.
    """
    if delimiter is not None and delimiter not in DELIMITERS:
        known = ", ".join(map(repr, DELIMITERS))
        raise ArgumentError(f"delimiter must be one of {known}, not {delimiter!r}")


def parse_delimiter(text: str | None) -> str | None:
    """The delimiter that a person gave to a command; ``None`` if none was given.

    Raises
    ------
    ArgumentError
        It is none of :data:`epsjoin.contracts.sources.DELIMITERS`.
    """
    delimiter = "\t" if text == "tab" else text
    if delimiter is not None and delimiter not in DELIMITERS:
        known = ", ".join("tab" if each == "\t" else repr(each) for each in DELIMITERS)
        raise ArgumentError(f"--delimiter must be one of {known}, not {text!r}")
    return delimiter


def describe(delimiter: str) -> str:
    """The delimiter as it is shown to people."""
    return "a tab" if delimiter == "\t" else repr(delimiter)
