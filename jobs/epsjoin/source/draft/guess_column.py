"""What a column holds, concluded from its values by the functions with which ingest types them.

A type is guessed if every value that is there can be converted to it, but for a few of a column of numbers
or lists, so that a contract with this type takes the file. Nothing is guessed from how another program would
read a value.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from epsjoin.contracts.odcs import LIST, Column
from epsjoin.source.values import Underflow, from_text

MARKERS = frozenset(
    ("NA", "N/A", "n/a", "#N/A", "NULL", "Null", "null", "None", "none", "NaN", "nan", "\\N", "-", "?")
)
"""Texts that often stand for a missing number."""

MAX_ODD = 0.01
"""Largest fraction of the values of a column of numbers that may be something else: bad rows."""

_LIST_OF_NUMBERS = re.compile(r"\[\s*[-+]?[.\d]+[eE\d+-]*[,\s]")
"""Matches the beginning of a text that is a list whose first item is a number."""

_WITH_COMMA = re.compile(r"[+-]?\d+(,\d+)+")
"""Matches a text that is a number, except for commas in it."""

_TYPES = ("integer", "number", "boolean", "date", "timestamp")
"""Types other than string, each before those that it is a special case of."""

_FORMS = ("dd.MM.yyyy", "MM/dd/yyyy", "dd/MM/yyyy", "yyyy/MM/dd", "dd-MM-yyyy", "MM-dd-yyyy", "yyyy.MM.dd")
"""Forms of dates that are looked for; which of two with the same signs it is, a day after the 12th tells."""

_LEADING_ZERO = re.compile(r"\s*0\d+\s*", re.ASCII)
"""Matches the text of a whole number that another text is, too, such as 007."""

_WHOLE = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)

_NUMERIC = ("integer", "number", "padded", "large")
"""Kinds of values that are finite numbers: whole ones are padded with zeros, or too large for 64 bits."""

_CODES = ("padded", "large")
"""Kinds of whole numbers that are kept by no type of numbers: codes, unless fractions are beside them."""

_COUNTED = ("integer", "string", "marker", "date", *_CODES)
"""Kinds of values of which it is known how many are distinct."""


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
    has_commas : whether its texts look like numbers with a decimal comma.
    code : of texts, a whole number among them that a number does not hold as it is written.
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
    has_commas: bool = False
    code: str = ""
    forms: tuple[str, ...] = ()


@dataclass
class ColumnValues:
    """The values of one column, by what they could be.

    Parameters
    ----------
    is_text : whether the file is one of texts, in which any value may be a text.
    """

    is_text: bool
    _kinds: Counter[str] = field(default_factory=Counter)
    _examples: dict[str, str] = field(default_factory=dict)
    _markers: set[str] = field(default_factory=set)
    _distinct: set[Any] = field(default_factory=set)
    _lengths: Counter[int] = field(default_factory=Counter)
    _forms: tuple[str, ...] = _FORMS
    _minimum: float = math.inf
    _maximum: float = -math.inf
    _n_missing: int = 0

    def add(self, value: Any) -> None:
        """Add a value, as the reader of the file's format yields it."""
        if value is None or (isinstance(value, str) and not value.strip()):
            self._n_missing += 1
            # blanks are a value of a text; whether this is one is not known yet
            if value:
                self._kinds["blank"] += 1
            return
        kind, typed = _classify_text(value) if self.is_text else _classify_value(value)
        if kind == "string" and isinstance(value, str) and value.strip() in MARKERS:
            kind, typed = "marker", value.strip()
        if kind in ("marker", "nan"):
            self._markers.add(typed)
        self._kinds[kind] += 1
        self._examples.setdefault(kind, str(value)[:40])
        if kind in _NUMERIC:
            self._minimum, self._maximum = min(self._minimum, typed), max(self._maximum, typed)
        if kind in _COUNTED:
            self._distinct.add(str(value) if kind in _CODES else typed)
        if kind == "list":
            self._lengths[typed] += 1
        if kind == "string" and self._forms:
            self._forms = tuple(form for form in self._forms if _is_date(str(value), form))

    def conclude(self, name: str, n_records: int) -> Guess:
        """The type that the values of the column of this name have together, in so many records."""
        kinds = self._kinds
        guess = Guess(name, n_missing=self._n_missing)
        if kinds["list"]:
            return self._conclude_lists(guess)
        if kinds["object"]:
            example = self._examples["object"]
            return replace(
                guess,
                unusable=f"its values are objects, such as {example!r}; coordinates in them must be columns "
                "of their own, and to compare them as documents takes a contract with metric: tree_edit "
                "(docs/source-contract.md#documents)",
            )
        if kinds["other"]:
            example = self._examples["other"]
            return replace(guess, unusable=f"a contract knows no type for its values, such as {example!r}")
        kind, n = self._type()
        if kind:
            guess = replace(guess, type=kind, n_odd=self._n_values - n, odd=self._odd_example(kind))
            self._count_markers(guess)
        else:
            self._conclude_texts(guess)
        guess.minimum, guess.maximum = self._minimum, self._maximum
        counted = sum(kinds[kind] for kind in _COUNTED if kind != "marker" or not guess.markers)
        guess.n_again = counted - len(self._distinct.difference(guess.markers))
        guess.is_unique = len(self._distinct) == n_records and not guess.n_missing and not guess.n_odd
        return guess

    @property
    def _n_none(self) -> int:
        return self._kinds["marker"] + self._kinds["nan"]

    @property
    def _n_values(self) -> int:
        return self._kinds.total() - self._n_none - self._kinds["blank"]

    def _type(self) -> tuple[str, int]:
        """The first type other than string that the values have, and how many do; empty if it is none."""
        kinds, n_values = self._kinds, self._n_values
        n_numbers = sum(kinds[kind] for kind in _NUMERIC)
        for kind, n in (
            ("integer", 0 if kinds["number"] or kinds["padded"] else kinds["integer"]),
            ("number", n_numbers if kinds["number"] else 0),
            ("boolean", kinds["boolean"]),
            ("date", kinds["date"]),
            ("timestamp", kinds["date"] + kinds["timestamp"]),
            ("time", kinds["time"]),
        ):
            is_nan = kind == "number" and kinds["nan"] > 0 == n_values  # and nothing else
            least = (1 - MAX_ODD) * n_values if kind in _NUMERIC else n_values
            if is_nan or (n and n >= least):
                return kind, n
        return "", 0

    def _odd_example(self, kind: str) -> str:
        """A value that is not of the kind, nor of a special case of it; empty if there is none."""
        of_type = ["integer", "number", "padded", "date", kind, "marker", "nan", "blank"]
        of_type += ["large"] if kind == "number" else []
        return next((text for k, text in self._examples.items() if k not in of_type), "")

    def _count_markers(self, guess: Guess) -> None:
        """Count the texts that stand for no value as missing."""
        guess.n_missing += self._n_none
        guess.markers = tuple(sorted(self._markers))

    def _conclude_texts(self, guess: Guess) -> None:
        """What a column of texts is: dates in one form, or texts, of which blanks are values."""
        kinds = self._kinds
        mixed = [k for k in kinds if k not in ("string", "date", "timestamp", "marker", "blank")]
        code = next((self._examples[kind] for kind in _CODES if kinds[kind]), "")
        if mixed and not self.is_text:
            guess.unusable = "its values are of several types"
            if set(kinds) <= {"integer", "large"}:
                guess.unusable = (
                    f"its whole numbers take more than 64 bits, such as {code}; store them as texts"
                )
            if (n := kinds["not finite"]) and set(kinds) <= {*_NUMERIC, "nan", "not finite"}:
                guess.unusable = (
                    f"{n:,} of its {self._n_values:,} values {'is' if n == 1 else 'are'} not finite, such as "
                    f"{self._examples['not finite']!r}; at most {MAX_ODD:.0%} may be"
                )
        elif set(kinds) <= {"integer", "marker", "blank", *_CODES}:
            guess.code = code.strip()
        if kinds["string"] == self._n_values > 0:
            guess.forms = self._forms
        if len(guess.forms) == 1:
            guess.type = "date"
            self._count_markers(guess)
        else:
            guess.n_missing -= kinds["blank"]
        example = self._examples.get("string", "")
        guess.is_text_of_lists = bool(_LIST_OF_NUMBERS.match(example))
        guess.has_commas = bool(_WITH_COMMA.fullmatch(example.strip()))

    def _conclude_lists(self, guess: Guess) -> Guess:
        """What a column with lists of numbers is: they must be of one length, but for a few."""
        (n_items, n), *others = self._lengths.most_common(2)
        n_values = self._n_values
        if n < (1 - MAX_ODD) * n_values:
            rest = f"others of {others[0][0]}" if others else "other values"
            return replace(
                guess,
                unusable=f"{n:,} of its {n_values:,} values are lists of {n_items} numbers, and {rest}; "
                f"all must be as long, but for {MAX_ODD:.0%}",
            )
        odd = next((text for kind, text in self._examples.items() if kind != "list"), "")
        odd = odd or (f"a list of {others[0][0]}" if others else "")
        return replace(guess, type=LIST, n_items=n_items, n_odd=n_values - n, odd=odd)


def _classify_text(text: str) -> tuple[str, Any]:
    """The first of the types that a text of CSV is a value of, and the value."""
    first = text.lstrip()[:1]
    for kind in _TYPES if first.isascii() and (first.isdigit() or first in "+-.tTfF") else ():
        with suppress(ValueError, OverflowError):
            value = from_text(Column("", kind), text)
            if kind == "integer" and _LEADING_ZERO.fullmatch(text):
                return "padded", value
            if kind == "number" and _WHOLE.fullmatch(text) and math.isfinite(value):
                return "large", value
            if kind != "number" or math.isfinite(value):
                return kind, value
    return "string", text


def _classify_value(value: Any) -> tuple[str, Any]:
    """The first of the types that a value of JSON or Parquet is one of, and the value; ``other``: of none.

    Of a list of numbers it is the length. ``object`` is a type in contracts of documents only.
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
                return ("large" if isinstance(value, int) else "number"), float(value)
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
    return ("object" if isinstance(value, dict) else "other"), None


def _is_date(text: str, form: str) -> bool:
    try:
        from_text(Column("", "date", form=form), text)
    except ValueError:
        return False
    return True
