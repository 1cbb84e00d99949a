"""Where a drafted contract finds its snapshots, and how often they come, by the dates of the files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path

from epsjoin.contracts.times import INTERVALS
from epsjoin.paths import PROJECT

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LIKE_A_DATE = re.compile(r"(?<!\d)(\d{4})([-_. ]?)(\d{2})\2(\d{2})(?!\d)")


def snapshots_of(file: Path) -> tuple[str, str, str]:
    """Return the path in the contract, the interval, and why that one."""
    whole = file.resolve()
    leaf = _DATE.search(whole.name)
    dated, folder = (whole, whole.parent) if leaf else (whole.parent, whole.parent.parent)
    match = _DATE.search(dated.name)
    if match is None:
        return _path_in_contract(whole), "day", f"day; {_why_every_run_takes_it(whole)}"
    before, after = dated.name[: match.start()], dated.name[match.end() :]
    pattern = re.compile(re.escape(before) + f"({_DATE.pattern})" + re.escape(after))
    days = sorted(_dates(pattern.fullmatch(other.name) for other in folder.iterdir()))
    path = f"{_path_in_contract(folder)}/{before}{{date}}{after}"
    if len(days) < 2:
        return path, "day", "day; there is one snapshot only, so it could not be guessed"
    # the longest in which no snapshot is hidden by a later one
    for interval in reversed(INTERVALS):
        if len({_number_of(interval, day) for day in days}) == len(days):
            return (
                path,
                interval,
                f"{interval}, by the dates of {len(days)} snapshots, {days[0]} to {days[-1]}",
            )
    return path, "day", "day"


def name_of(file: Path) -> str:
    """A name for the data set of which a file is a snapshot, made of the file's."""
    words = re.sub(r"[^a-z0-9]+", "_", _DATE.sub("", file.name.split(".")[0]).lower()).strip("_")
    return words if re.match(r"[a-z]", words) else f"set_{words}".strip("_")


def _why_every_run_takes_it(whole: Path) -> str:
    for found in (*_LIKE_A_DATE.finditer(whole.name), *_LIKE_A_DATE.finditer(whole.parent.name)):
        year, _, month, day = found.groups()
        with suppress(ValueError):
            written = date(int(year), int(month), int(day))
            return (
                f"{found[0]} in its path must be written {written} to be the date of a snapshot; "
                "as it is, every run takes this file"
            )
    return "there is no date in the file's name, so every run takes it"


def _dates(matches: Iterable[re.Match[str] | None]) -> Iterator[date]:
    for match in matches:
        with suppress(ValueError):
            if match is not None:
                yield date.fromisoformat(match[1])


def _number_of(interval: str, day: date) -> int:
    """The number of the interval that a day is in."""
    months = day.year * 12 + day.month - 1
    return {
        "day": day.toordinal(),
        "week": (day.toordinal() - 1) // 7,
        "month": months,
        "quarter": months // 3,
        "year": day.year,
    }[interval]


def _path_in_contract(whole: Path) -> str:
    return str(whole.relative_to(PROJECT)) if PROJECT and whole.is_relative_to(PROJECT) else str(whole)
