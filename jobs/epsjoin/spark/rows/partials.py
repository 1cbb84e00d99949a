"""Partial results of a task's batches, merged before they leave the task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def combine_partials(
    partials: Iterable[Arrays], merge: Callable[[Sequence[Arrays]], Arrays], max_rows: int = 1 << 22
) -> Iterator[Arrays]:
    """Merge the partial results of a task's batches: it returns rows of its points instead of its pairs.

    Parameters
    ----------
    partials : a tuple of arrays of equal length for each batch.
    merge : makes one such tuple of several.
    max_rows : maximum number of rows to hold. Merged rows that are still more are yielded, and merging begins
        anew.
    """
    held: list[Arrays] = []
    rows = 0
    for each in partials:
        held.append(each)
        rows += len(each[0])
        if rows > max_rows:
            held = [merge(held)]
            rows = len(held[0][0])
            if rows > max_rows:
                yield held.pop()
                rows = 0
    if held:
        yield held[0] if len(held) == 1 else merge(held)
