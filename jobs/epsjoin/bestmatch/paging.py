"""The search for best matches page by page: it loads pages as the schedule says, and has them meet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from epsjoin.bestmatch.open_pages import OpenPages, Options
from epsjoin.bestmatch.parquet import PagedFile, thresholds
from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.bestmatch.batch import BestPairs
from epsjoin.local.bestmatch.candidates import Candidates, within_blocks
from epsjoin.local.bestmatch.pages import (
    MIN_BUFFERS,
    DropRight,
    LoadLeft,
    LoadRight,
    Meet,
    find_partners,
    schedule,
)
from epsjoin.local.sweep.sweeping import add_counts

FOR_PAGES, FOR_MEETING = 1 / 4, 1 / 2
"""Parts of the memory: for pages, and for two pages that meet."""
CANDIDATE_BYTES, VALUE_BYTES = 150, 40
"""Memory for a candidate and for each of its values, with all copies on the way."""


class PagedSearch:
    """The search for the best matches of two files.

    Parameters
    ----------
    files : the left and the right one.
    options : what is asked for.
    """

    def __init__(self, files: tuple[PagedFile, PagedFile], options: Options) -> None:
        self._files, self._options = files, options
        page_bytes = max(1, *(file.page_bytes for file in files))
        self._buffers = int(options.memory * FOR_PAGES) // page_bytes
        if self._buffers < MIN_BUFFERS:
            rows = max(file.rows.max(initial=0) for file in files)
            needed = MIN_BUFFERS * page_bytes / FOR_PAGES / 2**20
            raise ArgumentError(
                f"memory_mb = {options.memory / 2**20:g} is too little for row groups of {rows:,} rows; two "
                f"of them must fit into a quarter: {needed:.3g} are needed, or smaller row groups"
            )

    def run(self) -> Iterator[BestPairs]:
        """Find the boxes of all pages, then load them as the schedule says."""
        options, counters = self._options, self._options.counters
        boxes = [file.boxes(options.orders) for file in self._files]
        # the pages of the side whose rows are asked for are finished one after another
        first, second = (1, 0) if options.how == "right" else (0, 1)
        partners = find_partners(boxes[first], boxes[second], thresholds(options.orders, options.n_columns))
        met = np.concatenate([np.empty(0, np.int64), *partners])
        n_partners = [np.empty(0, np.int64)] * 2
        n_partners[first] = np.array([len(found) for found in partners], np.int64)
        n_partners[second] = np.bincount(met, minlength=len(self._files[second].rows))
        add_counts(counters, pages=sum(map(len, n_partners)), page_pairs=len(met))
        best = OpenPages(self._files, n_partners, options)
        yield from best.finish_lonely()
        held: tuple[dict[int, Floats], dict[int, Floats]] = {}, {}
        for step in schedule(partners, self._buffers):
            match step:
                case LoadLeft(page):
                    held[first].clear()
                    self._load(held, first, page)
                case LoadRight(page):
                    self._load(held, second, page)
                case DropRight(page):
                    del held[second][page]
                case Meet(mine, theirs):
                    pages = (mine, theirs) if first == 0 else (theirs, mine)
                    yield from best.take(pages, self._meet(held[0][pages[0]], held[1][pages[1]]))
        yield from best.finish()

    def _load(self, held: tuple[dict[int, Floats], dict[int, Floats]], side: int, page: int) -> None:
        held[side][page] = self._files[side].read(page)
        counters = self._options.counters
        add_counts(counters, pages_loaded=1)
        counters["peak_pages"] = max(counters.get("peak_pages", 0), sum(map(len, held)))

    def _meet(self, left: Floats, right: Floats) -> Iterator[Candidates]:
        orders, counters = self._options.orders, self._options.counters
        most = int(self._options.memory * FOR_MEETING) // (CANDIDATE_BYTES + VALUE_BYTES * len(orders))
        return within_blocks(
            left, right, orders, n_jobs=self._options.n_jobs, counters=counters, block_pairs=max(1, most // 4)
        )
