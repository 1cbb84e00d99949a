"""What the first records of a file hold, by the functions with which ingest reads and types them."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

from epsjoin.contracts.names import COLUMN_NAME
from epsjoin.contracts.odcs import Column
from epsjoin.contracts.source_columns import RESERVED, is_plain
from epsjoin.contracts.sources import COMMA, SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source.delimiters import Header
from epsjoin.source.draft.guess_column import ColumnValues, Guess
from epsjoin.source.guess_delimiter import choose_delimiter
from epsjoin.source.reasons import remedy_of
from epsjoin.source.records import FORMATS, Record, key_id, open_records
from epsjoin.source.untyped import OTHER_ENCODING, FoundColumns

MAX_ROWS = 100_000
"""Maximum number of records that are looked at; a file may have more."""

MAX_CHARACTERS = 64 << 20
"""Maximum number of characters in the records that are looked at, after decompression."""

_ANY = SourceContract(name="draft", path="", format="", columns=(), coordinates=())
"""A contract that says nothing yet."""


@dataclass(frozen=True)
class FileGuess:
    """What a file holds.

    Parameters
    ----------
    columns : its columns, in its order.
    n_records : records that were looked at.
    delimiter : of CSV: what it was split by.
    separated : what seems to separate its fields instead; see
        :meth:`epsjoin.source.delimiters.Header.remedy`.
    """

    columns: tuple[Guess, ...]
    n_records: int
    delimiter: str = COMMA
    separated: str = ""


def guess_file(file: Path, format_: str, delimiter: str | None) -> FileGuess:
    """Look at the first records of a file.

    Parameters
    ----------
    file, format_ : the file, and its format in the words of a contract.
    delimiter : of CSV: what separates its fields; None: it is guessed.

    Raises
    ------
    ArgumentError
        The delimiter is none.
    DataRefusedError
        The file cannot be read, exceeds a bound, has no record or no header, or has another format.
    """
    try:
        found = choose_delimiter(file, format_, delimiter)
        return _look(file, replace(_ANY, format=format_, delimiter=found))
    except (OSError, EOFError, zlib.error) as error:
        raise DataRefusedError(f"{file}: cannot be read: {error}") from error


def _look(file: Path, source: SourceContract) -> FileGuess:
    names = _names_of(file, source)
    once = [name for name, n in Counter(names).items() if n == 1]
    columns = tuple(Column(name, "string") for name in once)
    is_text = source.format == "csv"
    seen = {name: ColumnValues(is_text) for name in once}
    n_records = 0
    # a header of several names was split as it should be
    header = Header(names[0], source.delimiter) if is_text and len(names) == 1 else None
    separated = header.remedy() if header else ""
    for fields in islice(_fields(file, replace(source, columns=columns), separated), MAX_ROWS):
        n_records += 1
        for name, value in zip(once, fields, strict=True):
            seen[name].add(value)
    guesses = {name: values.conclude(name, n_records) for name, values in seen.items()}
    for name in set(names) - set(once):
        guesses[name] = Guess(name, unusable="its name occurs more than once")
    in_order = tuple(guesses[name] for name in dict.fromkeys(names))
    _name_columns(in_order)
    return FileGuess(in_order, n_records, source.delimiter, separated)


def try_contract(file: Path, source: SourceContract) -> tuple[list[Record], bool]:
    """The first records of a file as a contract takes them, without their texts; whether it has more."""
    with file.open("rb") as stream:
        records = iter(open_records(stream, str(file), source))
        tried = [_judged(source, record) for record in islice(_bounded(records), MAX_ROWS)]
        return tried, next(records, None) is not None


def _judged(source: SourceContract, record: Record) -> Record:
    """A record without its texts; one whose key can be no id is bad, as ingest will say."""
    reason = record.reason
    if record.values is not None and source.key:
        id_ = key_id(source, record.values)
        reason = id_ if isinstance(id_, str) else reason
    return record._replace(raw="", values=None, reason=reason)


def _bounded(records: Any) -> Iterator[Any]:
    """Records of ``MAX_CHARACTERS`` together, and the one that exceeds them."""
    size = 0
    for record in records:
        yield record
        size += len(record.raw)
        if size > MAX_CHARACTERS:
            return


def _names_of(file: Path, source: SourceContract) -> list[str]:
    found = FoundColumns(str(file))
    read = FORMATS[source.format][0]
    with file.open("rb") as stream:
        records = read(stream, str(file), replace(source, columns=()), found)
        for _ in islice(_bounded(records), MAX_ROWS if source.format == "json" else 1):
            pass
    if source.format == "csv" and "\0" in "".join(found.names):
        raise DataRefusedError(f"{file}: the names of its columns have NULs; {OTHER_ENCODING}")
    if source.format == "csv" and found.names and all(map(_is_number, found.names)):
        raise DataRefusedError(
            f"{file}: its first line holds nothing but numbers ({', '.join(found.names[:5])}), so it is no "
            "header; put a line with the columns' names before it"
        )
    return found.names


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        float(text)
        return True
    return False


def _fields(file: Path, source: SourceContract, separated: str) -> Iterator[Sequence[Any]]:
    """The fields of the records that can be split into fields."""
    read = FORMATS[source.format][0]
    n_records, first = 0, ""
    with file.open("rb") as stream:
        for record in _bounded(read(stream, str(file), source, FoundColumns(str(file)))):
            first = first or record.problem or ""
            if record.fields is not None:
                n_records += 1
                yield record.fields
    if not n_records:
        refused = f"; the first one was refused: {first}" if first else ""
        raise DataRefusedError(f"{file}: it has no record{refused}{remedy_of(first)}{separated}")


def _name_columns(guesses: Iterable[Guess]) -> None:
    """Give the columns names in a contract; lists, each number of which takes one, come last."""
    taken = set(RESERVED)
    for guess in sorted(guesses, key=lambda each: each.n_items > 0):
        guess.unusable = guess.unusable or _name_fault(guess.name)
        if not guess.unusable:
            guess.given = _give_name(guess, taken)
            taken.update(_names_of_column(guess.given, guess.n_items))


def _name_fault(name: str) -> str:
    """Why a contract cannot say which column is meant; empty if it can."""
    if not name:
        return "it has no name"
    return "" if is_plain(name) else "its name has a sign that cannot be printed, or a quote after a colon"


def _give_name(guess: Guess, taken: set[str]) -> str:
    """The name of a column in a contract: its own, or one like it that a contract can have and none has."""
    if guess.name == "id" and guess.type == "integer" and guess.is_unique:
        return "id"
    plain = re.sub(r"[^A-Za-z0-9]+", "_", guess.name).strip("_")
    like = guess.name if COLUMN_NAME.fullmatch(guess.name) else plain if plain[:1].isalpha() else f"c_{plain}"
    names = (like if number == 1 else f"{like}_{number}" for number in count(1))
    return next(name for name in names if taken.isdisjoint(_names_of_column(name, guess.n_items)))


def _names_of_column(name: str, n_items: int) -> Iterator[str]:
    """The names that a column takes in a contract: its own, and of a list those of its numbers."""
    yield name.lower()
    yield from (f"{name}_{number + 1}".lower() for number in range(n_items))
