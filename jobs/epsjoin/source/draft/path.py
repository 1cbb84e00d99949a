"""Where a drafted contract finds its snapshots, and how often they come, by the dates of the files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from epsjoin.contracts.snapshot_names import ISO, SnapshotName
from epsjoin.contracts.times import INTERVALS
from epsjoin.paths import PROJECT

_DATES = (
    re.compile(r"\d{4}(-)\d{2}-\d{2}"),
    re.compile(r"(?<!\d)(?:19|20)\d{2}([-_. ]?)\d{2}\1\d{2}(?!\d)"),  # another number is no year
)
"""What is taken for the date of a snapshot, first in a file's name, then in its folder's, if it is one."""


def snapshots_of(file: Path) -> tuple[str, str, str]:
    """Return the path in the contract, the interval, and why that one."""
    whole = file.resolve()
    found = _dated_part(whole)
    if found is None:
        return (
            _path_in_contract(whole),
            "day",
            "day; there is no date in the file's name, so every run takes it",
        )
    dated, name = found
    days = sorted(day for other in dated.parent.iterdir() if (day := name.date_in(other.name)) is not None)
    standing = "{date}" if name.form == ISO else f"{{date:{name.form}}}"
    path = f"{_path_in_contract(dated.parent)}/{name.before}{standing}{name.after}"
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
    """A name for the data set of which a file is a snapshot, made from the file's name."""
    found = _dated_part(file)
    words = f"{found[1].before}{found[1].after}" if found and found[0] == file else file.name
    words = re.sub(r"[^a-z0-9]+", "_", words.split(".")[0].lower()).strip("_")
    return words if re.match(r"[a-z]", words) else f"set_{words}".strip("_")


def _dated_part(whole: Path) -> tuple[Path, SnapshotName] | None:
    """The file or its folder, whichever has a date in its name, and how that is made; None: neither has."""
    for pattern in _DATES:
        for dated in (whole, whole.parent):
            for name in _names(dated.name, pattern):
                if name.date_in(dated.name) is not None:
                    return dated, name
    return None


def _names(text: str, pattern: re.Pattern[str]) -> Iterator[SnapshotName]:
    for found in pattern.finditer(text):
        yield SnapshotName(text[: found.start()], found[1].join(("yyyy", "MM", "dd")), text[found.end() :])


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
