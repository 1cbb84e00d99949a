"""How contracts speak of time: the interval of a run, and how a date is written in a file."""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import cache

INTERVALS = ("day", "week", "month", "quarter", "year")

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_PARTS = {"yyyy": "(?P<year>[0-9]{4})", "MM": "(?P<month>[0-9]{2})", "dd": "(?P<day>[0-9]{2})"}


def interval_of(interval: str, day: date) -> tuple[date, date]:
    """First day of the interval that a day is in, and the first day after it; a week begins with the day."""
    if interval in ("day", "week"):
        return day, day + timedelta({"day": 1, "week": 7}[interval])
    n = _MONTHS[interval]
    months = day.year * 12 + day.month - 1
    months -= months % n
    (year, month), (next_year, next_month) = divmod(months, 12), divmod(months + n, 12)
    return date(year, month + 1, 1), date(next_year, next_month + 1, 1)


def run_before(interval: str, run: date) -> date:
    """The run of the interval that ends where that of a run begins."""
    return run - timedelta(7) if interval == "week" else interval_of(interval, run - timedelta(1))[0]


def run_after(interval: str, run: date) -> date:
    """The run of the interval that begins where that of a run ends."""
    return interval_of(interval, run)[1]


@cache
def pattern_of(form: str) -> re.Pattern[str]:
    """The pattern of a date that is written in a form such as ``MM/dd/yyyy``, with a group for each part.

    Raises
    ------
    ValueError
        The form has not each of yyyy, MM and dd once, or more than these and ``/``, ``-``, ``.``, ``_`` and
        blanks.
    """
    pieces = re.split("(yyyy|MM|dd)", form)
    if sorted(pieces[1::2]) != sorted(_PARTS) or re.fullmatch("[-/._ ]*", "".join(pieces[::2])) is None:
        raise ValueError(
            f"a form has yyyy, MM and dd once each, and /, -, ., _ or blanks between, not {form!r}"
        )
    return re.compile("".join(_PARTS.get(piece, re.escape(piece)) for piece in pieces))
