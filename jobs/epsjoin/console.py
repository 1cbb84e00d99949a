"""Text that people read on a terminal or in a log."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

MAX_FIELDS = 20
"""Maximum number of columns of a row that are shown; a row with vectors has hundreds."""


def say(text: str) -> None:
    """Print a line about the progress of a job at once."""
    print(printable(text), flush=True)


def counted(number: float, one: str, many: str = "") -> str:
    """A counted noun: ``1 row``, ``1,020 rows``; its plural is given where it is not made by an s."""
    return f"{number:,.0f} {one if number == 1 else many or one + 's'}"


def percent(fraction: float | None, digits: int = 3) -> str:
    """Write a fraction as a percentage with so many significant digits, the tiniest too: ``0.0256%``."""
    if fraction is None:
        return ""
    text = f"{100 * fraction:.{digits}g}"
    return f"{Decimal(text):f}%" if "e" in text else f"{text}%"


def percents(fraction: float | None, limit: float | None) -> tuple[str, str]:
    """Write a fraction and its limit with as many digits as tell them apart, three if they are equal."""
    enough = (n for n in (3, 5, 8) if percent(fraction, n) != percent(limit, n))
    digits = 3 if fraction == limit else next(enough, 17)
    return percent(fraction, digits), percent(limit, digits)


def in_unit(value: float, unit: str) -> str:
    """A distance with its unit, if it has one: ``2.5 km``, ``0.02``."""
    return with_unit(f"{value:g}", unit)


def exactly_in_unit(value: float, unit: str) -> str:
    """A distance with all of its digits, so that two that differ look so: ``20 km``, ``0.5000000000001``."""
    return with_unit(repr(float(value)).removesuffix(".0"), unit)


def with_unit(number: str, unit: str) -> str:
    """A number as it is written, with its unit if it has one: ``2 edits``, but ``1 edit``.

    Other units are the source's own, as km, and stay as they are.
    """
    return f"{number} {'edit' if (number, unit) == ('1', 'edits') else unit}".rstrip()


def first_fields(told: Iterable[str]) -> str:
    """Put the texts of the first columns of a row into one, and say how many more columns it has."""
    texts = list(told)
    more = [f"and {len(texts) - MAX_FIELDS:,} more"] if len(texts) > MAX_FIELDS else []
    return ", ".join([*texts[:MAX_FIELDS], *more])


def printable(text: str) -> str:
    r"""Escape the characters of a text that cannot be printed, as ``\n`` or ``\x1b``.

    A text from data, such as a name, may hold a line end, which would forge a line of a log, or control
    sequences of a terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
