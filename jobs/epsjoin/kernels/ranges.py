"""Work on ranges of rows that do not depend on one another: whoever has threads may give each a range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Ranges = Callable[[int, Callable[[int, int, int], Any]], list[Any]]
"""Calls a function with the number, begin and end of each of some ranges that together are all of n rows, and
returns what it returned, in the order of the ranges. For the same n the ranges are the same."""


def in_one_range(n: int, work: Callable[[int, int, int], Any]) -> list[Any]:
    """Call a function with all of n rows as one range, in this thread."""
    return [work(0, 0, n)]


def in_each(ranges: Ranges, items: Sequence[T], work: Callable[[T], R]) -> list[R]:
    """Call a function with each of some items, range by range, and return all results in their order."""
    found = ranges(len(items), lambda _, begin, end: [work(item) for item in items[begin:end]])
    return list(chain.from_iterable(found))
