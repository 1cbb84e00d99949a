"""The order in which a merge brings the rows of several sorted runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from epsjoin.local.progressive.rows import SweepRows, concat
from epsjoin.local.progressive.sorted_runs import Page, SortedRun
from epsjoin.local.progressive.spill import Spill


class Block(NamedTuple):
    """Rows to sweep next.

    Parameters
    ----------
    key : the first key of the rows.
    read : reads them; each row has the place of its run among the runs as ``run``.
    is_again : whether the rows come once more, only to be compared with those that the area holds.
    is_alone : whether the area first drops all that it holds.
    """

    key: Any
    read: Callable[[], SweepRows]
    is_again: bool = False
    is_alone: bool = False


def merge(spill: Spill, runs: list[SortedRun], by_key: bool, block_rows: int) -> Iterator[Block]:
    """Bring the rows of all runs by ascending keys.

    Parameters
    ----------
    spill : has the runs.
    by_key : whether all rows of a key come as one block.
    block_rows : maximum number of rows of such a block; the rows of a longer key come in several blocks.
    """
    return _by_key(spill, runs, block_rows) if by_key else _by_pages(spill, runs)


def _by_pages(spill: Spill, runs: list[SortedRun]) -> Iterator[Block]:
    """A page of each run in memory: rows up to the least last key of those that go on are next."""
    waiting = [iter(run.pages) for run in runs]
    left: list[SweepRows | None] = [None] * len(runs)

    def fill(number: int) -> None:
        page = next(waiting[number], None)
        left[number] = None if page is None else spill.read(runs[number], page).of_run(number)

    for number in range(len(runs)):
        fill(number)
    while True:
        held = [rows for rows in left if rows is not None]
        if not held:
            return
        bound = min(rows.key[-1] for rows in held)
        ready = []
        for number, rows in enumerate(left):
            if rows is None:
                continue
            end = int(np.searchsorted(rows.key, bound, "right"))
            ready.append(rows.take(slice(0, end)))
            if end == rows.n:
                fill(number)
            else:
                left[number] = rows.take(slice(end, None))
        block = concat(ready)
        block = block.take(np.lexsort((block.flags & 1, block.key)))
        yield Block(block.key[0], lambda block=block: block)  # type: ignore[misc]  # a default has no type here


def _by_key(spill: Spill, runs: list[SortedRun], block_rows: int) -> Iterator[Block]:
    """All pages of a key, if they fit; else as many as fit, and the others again, one after the other."""
    pages: dict[int, list[tuple[int, Page]]] = {}
    for number, run in enumerate(runs):
        for page in run.pages:
            assert page.key is not None  # noqa: S101  # runs of a kind with keys were asked for
            pages.setdefault(page.key, []).append((number, page))

    def reading(wanted: list[tuple[int, Page]]) -> Callable[[], SweepRows]:
        return lambda: concat([spill.read(runs[number], page).of_run(number) for number, page in wanted])

    for key in sorted(pages):
        todo = pages[key]
        is_alone = False
        while todo:
            taken = 1
            while taken < len(todo) and sum(page.rows for _, page in todo[: taken + 1]) <= block_rows:
                taken += 1
            now, todo = todo[:taken], todo[taken:]
            yield Block(key, reading(now), is_alone=is_alone)
            is_alone = True
            for other in todo:
                yield Block(key, reading([other]), is_again=True)
