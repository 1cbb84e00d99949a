"""What is best so far for the rows of pages that must still meet others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from epsjoin.bestmatch.parquet import PagedFile
from epsjoin.errors import BudgetError
from epsjoin.kernels.arrays import Ints
from epsjoin.local.bestmatch.batch import FOR_LEFT, FOR_RIGHT, BestPairs, with_lonely
from epsjoin.local.bestmatch.best import By, How, best_of
from epsjoin.local.bestmatch.candidates import Candidates
from epsjoin.local.bestmatch.orders import Order
from epsjoin.local.bestmatch.take import one_of
from epsjoin.local.sweep.sweeping import Counters, add_counts

FOR_OPEN = 1 / 8
"""Part of the memory for pairs of pages that must still meet others."""
SIDES: tuple[By, By] = ("left", "right")


class Options(NamedTuple):
    """What is asked for; see :func:`epsjoin.iter_bestmatch_files`."""

    how: How
    orders: tuple[Order, ...]
    take: str
    memory: int
    n_jobs: int
    n_columns: int
    counters: Counters


class OpenPages:
    """What is best so far for the rows of open pages, those that must still meet others.

    Parameters
    ----------
    files : the left and the right one.
    n_partners : for each side (n,) number of pages that each of its pages must meet.
    options : what is asked for.
    """

    def __init__(
        self, files: tuple[PagedFile, PagedFile], n_partners: Sequence[Ints], options: Options
    ) -> None:
        self._files, self._options, self._to_meet = files, options, n_partners
        self._asked = {"right": (1,), "outer": (0, 1)}.get(options.how, (0,))
        nothing = Candidates(
            *(np.empty(0, np.int64),) * 2, np.empty((0, len(options.orders))), np.empty((0, 0), np.uint64)
        )
        self._open: tuple[dict[int, Candidates], dict[int, Candidates]] = {}, {}
        # of finished pages, what the other side (outer), or all other pages (inner), may still change
        self._waiting = [nothing, nothing]
        self._nothing = nothing

    def take(self, pages: tuple[int, int], blocks: Iterator[Candidates]) -> Iterator[BestPairs]:
        """Take the pairs of two pages; yield what is final then."""
        starts = [int(file.starts[page]) for file, page in zip(self._files, pages, strict=True)]
        for block in blocks:
            found = replace(block, left=block.left + starts[0], right=block.right + starts[1])
            for side in self._asked:
                mine, page = self._open[side], pages[side]
                mine[page] = self._keep(_join(mine.get(page, self._nothing), found), SIDES[side])
            self._check_room()
        for side, page in enumerate(pages):
            self._to_meet[side][page] -= 1
            if not self._to_meet[side][page]:
                yield from self._finish_page(side, page)

    def finish_lonely(self) -> Iterator[BestPairs]:
        """Finish the pages that meet none."""
        for side in (0, 1):
            for page in np.flatnonzero(self._to_meet[side] == 0).tolist():
                yield from self._finish_page(side, page)

    def finish(self) -> Iterator[BestPairs]:
        """Finish the search, when all pages are finished."""
        if self._options.how == "inner":
            found = self._one(self._waiting[0], 0)
            yield self._in_order(
                found, np.full(len(found), FOR_LEFT | FOR_RIGHT), [np.empty(0, np.int64)] * 2
            )

    def _keep(self, found: Candidates, by: By) -> Candidates:
        options = self._options
        return found.take(best_of(found, by, n_jobs=options.n_jobs, counters=options.counters))

    def _one(self, found: Candidates, side: int) -> Candidates:
        if self._options.take == "all":
            return found
        found = found.take(np.lexsort((found.right, found.left)))
        everything = np.ones(len(found), np.bool_)
        return found.take(one_of(found, everything, SIDES[side], self._options.orders))

    def _finish_page(self, side: int, page: int) -> Iterator[BestPairs]:
        if side not in self._asked:
            return
        found = self._open[side].pop(page, self._nothing)
        if self._options.how == "inner":
            self._waiting[0] = self._keep(_join(self._waiting[0], found), "all")
            return
        file = self._files[side]
        rows = np.arange(file.starts[page], file.starts[page] + file.rows[page])
        lonely = [np.empty(0, np.int64)] * 2
        lonely[side] = np.setdiff1d(rows, (found.left, found.right)[side])
        found = self._one(found, side)
        if self._options.how == "outer":
            found, best_for = self._wait(found, side)
        else:
            best_for = np.full(len(found), (FOR_LEFT, FOR_RIGHT)[side])
        if len(found) or len(lonely[side]):
            yield self._in_order(found, best_for, lonely)

    def _wait(self, found: Candidates, side: int) -> tuple[Candidates, Ints]:
        """Have pairs wait until the pages of both rows are finished; return those whose pages are."""
        self._waiting[side] = _join(self._waiting[side], found)
        ready = list[Candidates]()
        for i, waiting in enumerate(self._waiting):
            is_ready = np.ones(len(waiting), np.bool_)
            for file, to_meet, rows in zip(
                self._files, self._to_meet, (waiting.left, waiting.right), strict=True
            ):
                is_ready &= to_meet[file.pages_of(rows)] == 0
            ready.append(waiting.take(is_ready))
            self._waiting[i] = waiting.take(~is_ready)
        both = _join(*ready)
        bits = np.repeat([FOR_LEFT, FOR_RIGHT], [len(part) for part in ready])
        at = np.lexsort((both.right, both.left))
        is_new = np.r_[True, (np.diff(both.left[at]) != 0) | (np.diff(both.right[at]) != 0)][: len(at)]
        best_for = np.bitwise_or.reduceat(bits[at], np.flatnonzero(is_new)) if len(at) else bits
        return both.take(at[is_new]), best_for

    def _in_order(self, found: Candidates, best_for: Ints, lonely: Sequence[Ints]) -> BestPairs:
        """A batch: pairs in order, then the rows without a partner."""
        lefts, rights = lonely
        at = np.lexsort((found.right, found.left))
        add_counts(
            self._options.counters, best=len(found), unmatched_left=len(lefts), unmatched_right=len(rights)
        )
        pairs = found.left[at], found.right[at], found.values[at], best_for[at].astype(np.uint8)
        return with_lonely(BestPairs(*pairs), lefts, rights)

    def _check_room(self) -> None:
        """Refuse to hold more pairs than their part of the memory does."""
        lists = (*self._waiting, *self._open[0].values(), *self._open[1].values())
        n_bytes = sum(part.left.nbytes + part.right.nbytes + part.values.nbytes for part in lists)
        counters, memory = self._options.counters, self._options.memory
        counters["peak_open_bytes"] = max(counters.get("peak_open_bytes", 0), n_bytes)
        if n_bytes > memory * FOR_OPEN:
            raise BudgetError(
                f"the pairs of pages that must still meet others take {n_bytes:,} bytes, more than an eighth "
                f"of memory_mb = {memory / 2**20:g}; give more memory, a smaller eps, or files in which near "
                "rows are near one another"
            )


def _join(some: Candidates, others: Candidates) -> Candidates:
    """Two lists as one."""
    if not len(some) or not len(others):
        return others if not len(some) else some
    return Candidates(
        np.concatenate((some.left, others.left)),
        np.concatenate((some.right, others.right)),
        np.concatenate((some.values, others.values)),
        np.concatenate((some.masks, others.masks)),
    )
