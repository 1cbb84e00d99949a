"""Two texts side by side, line by line: what differs, and a little around it."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

CONTEXT = 2
"""Number of equal lines that are shown before and after lines that differ."""

MAX_ROWS = 60
"""Maximum number of rows."""

MAX_LINE = 200
"""Maximum number of characters of a line."""


class Row(NamedTuple):
    """A row of two columns.

    Parameters
    ----------
    left, right : the lines; ``None`` where a side has none.
    differs : whether the lines are not the same.
    """

    left: str | None
    right: str | None
    differs: bool


LEFT_OUT = Row("…", "…", False)
"""Stands for lines that are not shown."""


def lay_beside(left: str, right: str) -> list[Row]:
    """Lay two texts side by side; equal lines that are far from a difference are left out."""
    a, b = (text.splitlines() for text in (left, right))
    rows: list[Row] = []
    for what, i, i_end, j, j_end in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if what == "equal":
            rows += _around(a[i:i_end], is_first=i == 0, is_last=i_end == len(a))
            continue
        both = zip_longest(a[i:i_end], b[j:j_end])
        rows += [Row(_cut(one), _cut(other), True) for one, other in both]
    return rows if len(rows) <= MAX_ROWS else [*rows[:MAX_ROWS], LEFT_OUT]


def _around(lines: list[str], is_first: bool, is_last: bool) -> list[Row]:
    """Keep of a stretch of equal lines those next to a difference."""
    rows = [Row(_cut(line), _cut(line), False) for line in lines]
    head, tail = (0 if is_first else CONTEXT), (0 if is_last else CONTEXT)
    if len(rows) <= head + tail + 1:
        return rows
    return [*rows[:head], LEFT_OUT, *rows[len(rows) - tail :]]


def _cut(line: str | None) -> str | None:
    return line if line is None or len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"
