"""The delimiter of a CSV file of which no contract says it."""

from __future__ import annotations

import zlib
from dataclasses import replace
from itertools import islice
from pathlib import Path

from epsjoin.contracts.sources import COMMA, SourceContract
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.source.csv_ import read_csv
from epsjoin.source.delimiters import CANDIDATES
from epsjoin.source.reasons import NOT_UTF_8
from epsjoin.source.untyped import FoundColumns

N_RECORDS = 100
"""Number of records that are looked at."""

MAX_CHARACTERS = 1 << 20
"""Maximum number of characters in them; the record that exceeds it is the last."""

_ANY = SourceContract("", "", "csv", (), ())


def choose_delimiter(file: Path, format_: str, given: str | None = None) -> str:
    """The delimiter of a file: the one that a person gave, else one that is certain, else the comma.

    A delimiter is certain if it splits the header into at least two fields and each of the first records into
    as many, and no other one, the comma included, splits the header and any of the records into equally many
    fields. In a file without records, only one delimiter may split the header.

    Parameters
    ----------
    file, format_ : the file, and its format in the words of a contract; only CSV has delimiters.
    given : what a person says, one of :data:`epsjoin.contracts.sources.DELIMITERS`.

    Raises
    ------
    ArgumentError
        One was given, and the file is no CSV.
    OSError
        The file cannot be opened.
    """
    if given is not None and format_ != "csv":
        raise ArgumentError(f"--delimiter is for CSV, not for {file}")
    if given is not None or format_ != "csv":
        return COMMA if given is None else given
    fits = {each: found for each in CANDIDATES if (found := _try(file, each)) is not None}
    could_be = [each for each, found in fits.items() if any(found) or not found]
    return could_be[0] if len(could_be) == 1 and all(fits[could_be[0]]) else COMMA


def _try(file: Path, delimiter: str) -> list[bool] | None:
    """Of each of the first records, whether it has as many fields as the header; ``None`` if that has one.

    By which delimiter a record is split has nothing to do with the encoding of its texts.
    """
    columns, fits, size = FoundColumns(str(file)), list[bool](), 0
    with file.open("rb") as stream:
        records = read_csv(stream, str(file), replace(_ANY, delimiter=delimiter), columns)
        try:
            for record in islice(records, N_RECORDS):
                fits.append(record.fields is not None or record.problem == NOT_UTF_8)
                size += len(record.raw)
                if size > MAX_CHARACTERS:
                    break
        except (DataRefusedError, OSError, EOFError, zlib.error):
            pass  # whoever reads the file next meets it, too, and says so in its place
    return fits if len(columns.names) > 1 else None
