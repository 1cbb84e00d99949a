"""What the first records of a file hold, by the functions with which ingest reads and types them.

A type is guessed for a column if every value that is there can be converted to it, so that a contract with
this type takes the file. Nothing is guessed from how another program would read a value.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from itertools import count, islice
from pathlib import Path
from typing import Any

from epsjoin.contracts.names import COLUMN_NAME
from epsjoin.contracts.odcs import Column
from epsjoin.contracts.source_columns import RESERVED, is_plain
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source.records import FORMATS, Record, key_id, open_records
from epsjoin.source.untyped import FoundColumns, other_separator
from epsjoin.source.values import Underflow, from_text

MAX_ROWS = 100_000
"""Maximum number of records that are looked at; a file may have more."""

MAX_CHARACTERS = 64 << 20
"""Maximum number of characters in the records that are looked at, after decompression."""

MARKERS = frozenset(
    ("NA", "N/A", "n/a", "#N/A", "NULL", "Null", "null", "None", "none", "NaN", "nan", "\\N", "-", "?")
)
"""Texts that often stand for a missing number."""

MAX_ODD = 0.01
"""Largest fraction of the values of a column of numbers that may be something else: bad rows."""

_LIST_OF_NUMBERS = re.compile(r"\[\s*[-+]?[.\d]+[eE\d+-]*[,\s]")
"""Matches the beginning of a text that is a list whose first item is a number."""

_TYPES = ("integer", "number", "boolean", "date", "timestamp")
"""Types other than string, each before those that it is a special case of."""

_FORMS = ("dd.MM.yyyy", "MM/dd/yyyy", "dd/MM/yyyy", "yyyy/MM/dd", "dd-MM-yyyy", "MM-dd-yyyy", "yyyy.MM.dd")
"""Forms of dates that are looked for; which of two with the same signs it is, a day after the 12th tells."""

_NUMERIC = ("integer", "number")
"""Kinds of values that are finite numbers."""

_COUNTED = ("integer", "string", "marker", "date")
"""Kinds of values of which it is known how many are distinct."""


_ANY = SourceContract(name="draft", path="", format="", columns=(), coordinates=())
"""A contract that says nothing yet."""


@dataclass
class Guess:
    """What a column holds.

    Parameters
    ----------
    name : its name in the file.
    given : its name in a contract; the same, where a contract can have it.
    type : the type of its values, in the words of a contract.
    n_missing : records without a value, or with a text that stands for none.
    markers : the texts that stand for no value.
    n_odd, odd : number of values that are of another type, and one of them.
    minimum, maximum : of a column of numbers.
    n_again : of integers or texts: number of values that an earlier record has, too.
    is_unique : whether it has a value in every record, and no value twice.
    unusable : why it cannot be a column of a contract; empty if it can.
    n_items : of a column of lists of numbers: the length that they have; else 0.
    is_text_of_lists : whether its texts look like lists of numbers.
    forms : of texts that are dates, though not as ISO 8601 writes them: the forms that all of them have.
        Where that is one form, the type is date; where several are possible, string.
    """

    name: str
    given: str = ""
    type: str = "string"
    n_missing: int = 0
    n_odd: int = 0
    odd: str = ""
    markers: tuple[str, ...] = ()
    minimum: float = math.inf
    maximum: float = -math.inf
    n_again: int = 0
    is_unique: bool = False
    unusable: str = ""
    n_items: int = 0
    is_text_of_lists: bool = False
    forms: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileGuess:
    """What a file holds.

    Parameters
    ----------
    columns : its columns, in its order.
    n_records : records that were looked at.
    separated : what seems to separate its fields, if it is no comma; see :func:`other_separator`.
    """

    columns: tuple[Guess, ...]
    n_records: int
    separated: str = ""


@dataclass
class _Values:
    """The values of one column, by what they could be."""

    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    markers: set[str] = field(default_factory=set)
    distinct: set[Any] = field(default_factory=set)
    lengths: Counter[int] = field(default_factory=Counter)
    forms: tuple[str, ...] = _FORMS
    minimum: float = math.inf
    maximum: float = -math.inf
    n_missing: int = 0


def guess_file(file: Path, format_: str) -> FileGuess:
    """Look at the first records of a file.

    Parameters
    ----------
    file, format_ : the file, and its format in the words of a contract.

    Raises
    ------
    DataRefusedError
        The file cannot be read, exceeds a bound, has no record or no header.
    """
    source = replace(_ANY, format=format_)
    try:
        return _look(file, source)
    except (OSError, EOFError, zlib.error) as error:
        raise DataRefusedError(f"{file}: cannot be read: {error}") from error


def _look(file: Path, source: SourceContract) -> FileGuess:
    names = _names_of(file, source)
    once = [name for name in dict.fromkeys(names) if names.count(name) == 1]
    columns = tuple(Column(name, "string") for name in once)
    seen = {name: _Values() for name in once}
    classify = _classify_text if source.format == "csv" else _classify_value
    n_records = 0
    separated = other_separator(names) if source.format == "csv" else ""
    for fields in islice(_fields(file, replace(source, columns=columns), separated), MAX_ROWS):
        n_records += 1
        for name, value in zip(once, fields, strict=True):
            _add(seen[name], value, classify)
    is_text = source.format == "csv"
    guesses = {name: _conclude(name, values, n_records, is_text) for name, values in seen.items()}
    for name in set(names) - set(once):
        guesses[name] = Guess(name, unusable="its name occurs more than once")
    taken = set(RESERVED)
    for guess in sorted((guesses[name] for name in dict.fromkeys(names)), key=lambda each: each.n_items > 0):
        guess.unusable = guess.unusable or _name_fault(guess.name)
        if not guess.unusable:
            guess.given = _give_name(guess, taken)
            taken.update(_names_of_column(guess.given, guess.n_items))
    return FileGuess(tuple(guesses[name] for name in dict.fromkeys(names)), n_records, separated)


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
        raise DataRefusedError(f"{file}: it has no record{refused}{separated}")


def _add(values: _Values, value: Any, classify: Callable[[Any], tuple[str, Any]]) -> None:
    if value is None or (isinstance(value, str) and not value.strip()):
        values.n_missing += 1
        # blanks are a value of a text; whether this is one is not known yet
        if value:
            values.kinds["blank"] += 1
        return
    kind, typed = classify(value)
    if kind == "string" and isinstance(value, str) and value.strip() in MARKERS:
        kind, typed = "marker", value.strip()
    if kind in ("marker", "nan"):
        values.markers.add(typed)
    values.kinds[kind] += 1
    values.examples.setdefault(kind, str(value)[:40])
    if kind in _NUMERIC:
        values.minimum, values.maximum = min(values.minimum, typed), max(values.maximum, typed)
    if kind in _COUNTED:
        values.distinct.add(typed)
    if kind == "list":
        values.lengths[typed] += 1
    if kind == "string" and values.forms:
        values.forms = tuple(form for form in values.forms if _is_date(str(value), form))


def _classify_text(text: str) -> tuple[str, Any]:
    """The first of the types that a text of CSV is a value of, and the value."""
    first = text.lstrip()[:1]
    for kind in _TYPES if first.isascii() and (first.isdigit() or first in "+-.tTfF") else ():
        with suppress(ValueError, OverflowError):
            value = from_text(Column("", kind), text)
            if kind != "number" or math.isfinite(value):
                return kind, value
    return "string", text


def _classify_value(value: Any) -> tuple[str, Any]:
    """The first of the types that a value of JSON or Parquet is one of, and the value; ``other``: of none.

    Of a list of numbers it is the length.
    """
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return "integer", value
    if isinstance(value, Underflow):
        return "too close to 0", value
    if isinstance(value, (int, float, Decimal)):
        with suppress(OverflowError):
            if math.isfinite(value):
                return "number", float(value)
        return ("nan", "nan") if value != value else ("not finite", value)
    if isinstance(value, datetime):
        return "timestamp", value
    if isinstance(value, date):
        return "date", value
    if isinstance(value, time):
        return "time", value
    if isinstance(value, str):
        kind = _classify_text(value)[0] if value[:1].isdigit() else "string"
        return (kind, value) if kind in ("date", "timestamp") else ("string", value)
    if isinstance(value, list) and value and all(_classify_value(each)[0] in _NUMERIC for each in value):
        return "list", len(value)
    return "other", None


def _is_date(text: str, form: str) -> bool:
    try:
        from_text(Column("", "date", form=form), text)
    except ValueError:
        return False
    return True


def _conclude(name: str, values: _Values, n_records: int, is_text: bool) -> Guess:
    """The type that the values have together; in a file of texts any value may be a text."""
    kinds = values.kinds
    n_none = kinds["marker"] + kinds["nan"]
    n_values = sum(kinds.values()) - n_none - kinds["blank"]
    n_numbers = kinds["integer"] + kinds["number"]
    guess = Guess(name, n_missing=values.n_missing)
    if kinds["list"]:
        return _conclude_lists(guess, values, n_values)
    if kinds["other"]:
        example = values.examples["other"]
        unusable = f"a contract knows no type for its values, such as {example!r}"
        return replace(guess, unusable=unusable)
    for kind, n in (
        ("integer", kinds["integer"]),
        ("number", n_numbers),
        ("boolean", kinds["boolean"]),
        ("date", kinds["date"]),
        ("timestamp", kinds["date"] + kinds["timestamp"]),
        ("time", kinds["time"]),
    ):
        is_nan = kind == "number" and kinds["nan"] > 0 == n_values  # and nothing else
        least = (1 - MAX_ODD) * n_values if kind in ("integer", "number") else n_values
        if is_nan or (n and n >= least):
            if kind == "integer" and kinds["number"]:
                continue
            guess.type = kind
            guess.n_odd = n_values - n
            of_type = ("integer", "number", "date", kind, "marker", "nan", "blank")
            guess.odd = next((text for k, text in values.examples.items() if k not in of_type), "")
            guess.n_missing += n_none
            guess.markers = tuple(sorted(values.markers))
            break
    else:
        mixed = [k for k in kinds if k not in ("string", "date", "timestamp", "marker", "blank")]
        if mixed and not is_text:
            guess.unusable = "its values are of several types"
        guess.n_missing -= kinds["blank"]
        if kinds["string"] == n_values > 0:
            guess.forms = values.forms
        if len(guess.forms) == 1:
            guess.type = "date"
            guess.n_missing += kinds["blank"] + n_none
            guess.markers = tuple(sorted(values.markers))
        guess.is_text_of_lists = bool(_LIST_OF_NUMBERS.match(values.examples.get("string", "")))
    guess.minimum, guess.maximum = values.minimum, values.maximum
    counted = sum(kinds[kind] for kind in _COUNTED if kind != "marker" or not guess.markers)
    guess.n_again = counted - len(values.distinct.difference(guess.markers))
    guess.is_unique = len(values.distinct) == n_records and not guess.n_missing and not guess.n_odd
    return guess


def _conclude_lists(guess: Guess, values: _Values, n_values: int) -> Guess:
    """What a column with lists of numbers is: they must be of one length, but for a few."""
    (n_items, n), *others = values.lengths.most_common(2)
    if n < (1 - MAX_ODD) * n_values:
        rest = f"others of {others[0][0]}" if others else "other values"
        return replace(
            guess,
            unusable=f"{n:,} of its {n_values:,} values are lists of {n_items} numbers, and {rest}; all must "
            f"be as long, but for {MAX_ODD:.0%}",
        )
    odd = next((text for kind, text in values.examples.items() if kind != "list"), "")
    odd = odd or (f"a list of {others[0][0]}" if others else "")
    return replace(guess, type="array", n_items=n_items, n_odd=n_values - n, odd=odd)


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
