"""Best matches of two Parquet files larger than memory, page by page; a page is a row group.

A first reading of both files gives the box of each page, and so which pages must meet. Then pages are loaded
as the schedule says. Of the pairs of two pages that meet, those stay that are best for one of their rows so
far; when a page has met all its partners, what is best for its rows is final.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError, BudgetError, DataRefusedError, needing_extra
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.bestmatch.batch import FOR_LEFT, FOR_RIGHT, HOW, TAKE, BestPairs
from epsjoin.local.bestmatch.best import By, best_of
from epsjoin.local.bestmatch.candidates import Candidates, within_blocks
from epsjoin.local.bestmatch.orders import Closest, Order, Own, orders_of
from epsjoin.local.bestmatch.pages import (
    MIN_BUFFERS,
    DropRight,
    LoadLeft,
    LoadRight,
    Meet,
    PageBoxes,
    box_pages,
    find_partners,
    schedule,
)
from epsjoin.local.bestmatch.take import one_of
from epsjoin.local.join.arrays import NO_ROW
from epsjoin.local.sweep.sweeping import Counters, add_counts, check_counters, check_n_jobs

with needing_extra("epsjoin.bestmatch_files"):
    import pyarrow as pa
    import pyarrow.parquet as pq

How = Literal["inner", "left", "right", "outer"]

FOR_PAGES, FOR_OPEN, FOR_MEETING = 1 / 4, 1 / 8, 1 / 2
"""Parts of the memory: for pages, for pairs of pages that must still meet others, for two pages that meet."""
CANDIDATE_BYTES, VALUE_BYTES = 150, 40
"""Memory for a candidate and for each of its values, with all copies on the way."""
SIDES: tuple[By, By] = ("left", "right")


def bestmatch_files(
    left: str | Path,
    right: str | Path,
    eps: float | ArrayLike | None = None,
    how: How = "left",
    *,
    columns: Sequence[str],
    right_columns: Sequence[str] | None = None,
    orders: Sequence[Order] | None = None,
    take: Literal["all", "one"] = "all",
    memory_mb: float = 256,
    n_jobs: int | None = 1,
    counters: Counters | None = None,
) -> BestPairs:
    """Find the best matches of two Parquet files that may be larger than memory.

    Parameters
    ----------
    left, right, eps, how, columns, right_columns, orders, take, memory_mb, n_jobs, counters : see
        :func:`iter_bestmatch_files`.

    Returns
    -------
    BestPairs
        What :func:`epsjoin.bestmatch_join` returns of the same rows, which are numbered through each file. It
        comes on top of ``memory_mb``.

    Raises
    ------
    ArgumentError, DataRefusedError, BudgetError
        As :func:`iter_bestmatch_files` does.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from epsjoin import bestmatch_files
    >>> folder = tempfile.mkdtemp()
    >>> shots, fixes = f"{folder}/shots.parquet", f"{folder}/fixes.parquet"
    >>> pq.write_table(pa.table({"t": [0.0, 60.0], "x": [1.0, 1.0]}), shots)
    >>> pq.write_table(pa.table({"t": [3.0, 1.0, 9.0], "x": [1.5, 2.0, 1.0]}), fixes, row_group_size=2)
    >>> best = bestmatch_files(shots, fixes, eps=[5.0, 3.0], columns=["t", "x"])
    >>> best.left.tolist(), best.right.tolist()
    ([0, 0, 1], [0, 1, -1])
    """
    batches = iter_bestmatch_files(
        left,
        right,
        eps,
        how,
        columns=columns,
        right_columns=right_columns,
        orders=orders,
        take=take,
        memory_mb=memory_mb,
        n_jobs=n_jobs,
        counters=counters,
    )
    n = len(orders_of(eps, orders, len(columns)))
    no_rows = np.empty(0, np.int64)
    found = [BestPairs(no_rows, no_rows, np.empty((0, n)), np.empty(0, np.uint8)), *batches]
    lefts, rights = (np.concatenate(rows) for rows in zip(*(batch[:2] for batch in found), strict=True))
    has_none = (lefts == NO_ROW).astype(np.int8) * 2 + (rights == NO_ROW)
    at = np.lexsort((rights, lefts, has_none))
    values, best_for = (np.concatenate([batch[i] for batch in found])[at] for i in (2, 3))
    return BestPairs(lefts[at], rights[at], values, best_for.astype(np.uint8))


def iter_bestmatch_files(
    left: str | Path,
    right: str | Path,
    eps: float | ArrayLike | None = None,
    how: How = "left",
    *,
    columns: Sequence[str],
    right_columns: Sequence[str] | None = None,
    orders: Sequence[Order] | None = None,
    take: Literal["all", "one"] = "all",
    memory_mb: float = 256,
    n_jobs: int | None = 1,
    counters: Counters | None = None,
) -> Iterator[BestPairs]:
    """Find the best matches of two Parquet files batch by batch, in bounded memory.

    Parameters
    ----------
    left, right : paths of Parquet files, whose row groups are pages. Where rows that are near in space are
        near in the file, as in one sorted by time, few pages must meet; the result is the same in any order.
    eps, how, orders, take, n_jobs : see :func:`epsjoin.bestmatch_join`; of the orders, ``Closest`` and
        ``Own``. Columns count in the order of ``columns``.
    columns : names of the columns of numbers that the criteria are about.
    right_columns : their names in the right file; by default the same.
    memory_mb : memory in 2^20 bytes: half of it for two pages that meet, a quarter for pages, an eighth each
        for pairs of pages that must still meet others and for what is being read. 16 come on top, which a
        join of any size takes, and a batch.
    counters : dictionary to whose entries are added: ``pages`` (of both files), ``page_pairs`` (that met),
        ``pages_loaded``, ``candidates``, ``within``, ``comparisons``; ``peak_pages`` and ``peak_open_bytes``
        (of pairs of pages that must still meet others) keep their maximum.

    Yields
    ------
    BestPairs
        Final pairs, and rows without a partner, as soon as all pages are read that can change them. Each
        comes in one batch; batches come in no order.

    Raises
    ------
    ArgumentError
        An argument is wrong: no such file, column or ``how``; or memory does not hold two pages. Raised by
        the call, not by the first batch.
    DataRefusedError
        A file cannot be read, or a value is missing, NaN or infinite; the message names the row.
    BudgetError
        The pairs of pages that must still meet others do not fit into their part of the memory.

    See Also
    --------
    bestmatch_files : all at once, in order.

    Notes
    -----
    Each file is read once for the boxes of its pages, and then as the schedule says: see
    :func:`epsjoin.local.bestmatch.pages.schedule`. With "left" and "right", the pages of that side are
    finished one after another; with "outer", pages of both sides stay open longer.

    References
    ----------
    Kemper and Stegmaier: Evaluating bestmatch-joins on streaming data, report MIP-0204, University of Passau,
    2002, section 3.3.

    Examples
    --------
    >>> batches = iter_bestmatch_files("nowhere.parquet", "there.parquet", eps=1.0, columns=["t"])
    Traceback (most recent call last):
    epsjoin.errors.ArgumentError: nowhere.parquet is no file
    """
    if how not in HOW:
        raise ArgumentError(f"how must be one of {', '.join(HOW)}, not {how!r}")
    if take not in TAKE:
        raise ArgumentError(f"take must be one of {', '.join(TAKE)}, not {take!r}")
    if not memory_mb > 0:
        raise ArgumentError(f"memory_mb must be above 0, not {memory_mb!r}")
    theirs = columns if right_columns is None else right_columns
    if not columns or len(theirs) != len(columns):
        raise ArgumentError(
            "columns and right_columns must name as many columns, one at least, "
            f"not {len(columns)} and {len(theirs)}"
        )
    criteria = orders_of(eps, orders, len(columns))
    for order in criteria:
        if not isinstance(order, (Closest, Own)):
            raise ArgumentError(f"of files, orders must be Closest or Own, not {type(order).__name__}")
    options = _Options(
        how, criteria, take, int(memory_mb * 2**20), check_n_jobs(n_jobs), check_counters(counters)
    )
    return _Paged((_File(left, columns), _File(right, theirs)), options).run()


class _Options(NamedTuple):
    how: How
    orders: tuple[Order, ...]
    take: str
    memory: int
    n_jobs: int
    counters: Counters


class _File:
    """A Parquet file of points, by pages.

    Parameters
    ----------
    path : the file.
    columns : names of the columns that are the coordinates.
    """

    def __init__(self, path: str | Path, columns: Sequence[str]) -> None:
        self.path, self._columns = Path(path), list(columns)
        if not self.path.is_file():
            raise ArgumentError(f"{path} is no file")
        try:
            self._file = pq.ParquetFile(self.path)
        except (OSError, pa.ArrowException) as error:
            raise DataRefusedError(f"{path}: cannot be read: {error}") from error
        schema, metadata = self._file.schema_arrow, self._file.metadata
        for name in self._columns:
            if name not in schema.names:
                raise ArgumentError(f"{path} has no column {name!r}; it has {', '.join(schema.names)}")
            kind = schema.field(name).type
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                raise ArgumentError(f"{path}: column {name!r} must be of numbers, not {kind}")
        rows = np.array([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)], np.int64)
        self._groups = np.flatnonzero(rows)
        self.rows = rows[self._groups]
        self.starts = np.cumsum(self.rows) - self.rows

    @property
    def page_bytes(self) -> int:
        """Memory that the largest page takes."""
        return int(self.rows.max(initial=0)) * len(self._columns) * 8

    def read(self, page: int) -> Floats:
        """The points of a page. Columns are read one by one, so that one at a time is held twice."""
        points = np.empty((self.rows[page], len(self._columns)))
        for i, name in enumerate(self._columns):
            try:
                column = self._file.read_row_group(int(self._groups[page]), [name]).column(0)
                points[:, i] = column.cast(pa.float64()).to_numpy()  # without a value: NaN
            except (OSError, pa.ArrowException) as error:
                raise DataRefusedError(f"{self.path}: column {name!r} cannot be read: {error}") from error
            is_bad = ~np.isfinite(points[:, i])
            if is_bad.any():
                row = int(self.starts[page]) + int(is_bad.argmax())
                raise DataRefusedError(f"{self.path}: row {row:,} has no finite number in column {name!r}")
        return points

    def boxes(self, orders: Sequence[Order]) -> PageBoxes:
        """The box of each page, in the columns in which pages must meet."""
        none = np.empty((0, len(_thresholds(orders))))
        lower, upper = [none], [none]
        for page, start in enumerate(self.starts.tolist()):
            try:
                box = box_pages(_embed(self.read(page), orders), np.zeros(1, np.int64))
            except ArgumentError as error:
                raise DataRefusedError(f"{self.path}: in the page from row {start:,} on, {error}") from error
            lower, upper = [*lower, box.lower], [*upper, box.upper]
        return PageBoxes(np.concatenate(lower), np.concatenate(upper))

    def pages_of(self, rows: Ints) -> Ints:
        """The page of each row."""
        return np.searchsorted(self.starts, rows, "right") - 1


def _bounded(orders: Sequence[Order]) -> list[Closest]:
    return [order for order in orders if isinstance(order, Closest) and order.eps < math.inf]


def _embed(points: Floats, orders: Sequence[Order]) -> Floats:
    """Columns such that rows within eps in every criterion are within the thresholds in every column."""
    columns = [np.empty((len(points), 0))]
    for order in _bounded(orders):
        mine = np.ascontiguousarray(points[:, list(order.numbers)])
        columns.append(mine if order.measure is None or order.eps == 0 else order.measure.embed(mine))
    return np.concatenate(columns, axis=1)


def _thresholds(orders: Sequence[Order]) -> Floats:
    """The thresholds of these columns."""
    eps = list[float]()
    for order in _bounded(orders):
        if order.measure is None or order.eps == 0:
            eps += [order.eps] * len(order.numbers)
        else:
            n = order.measure.dimensions(len(order.numbers))
            eps += [order.measure.embedded_eps(order.eps)] * n
    return np.array(eps)


class _Paged:
    """The search: it loads pages as the schedule says, and has them meet.

    Parameters
    ----------
    files : the left and the right one.
    options : what is asked for.
    """

    def __init__(self, files: tuple[_File, _File], options: _Options) -> None:
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
        partners = find_partners(boxes[first], boxes[second], _thresholds(options.orders))
        met = np.concatenate([np.empty(0, np.int64), *partners])
        n_partners = [np.empty(0, np.int64)] * 2
        n_partners[first] = np.array([len(found) for found in partners], np.int64)
        n_partners[second] = np.bincount(met, minlength=len(self._files[second].rows))
        add_counts(counters, pages=sum(map(len, n_partners)), page_pairs=len(met))
        best = _Best(self._files, n_partners, options)
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


class _Best:
    """What is best so far for the rows of open pages, those that must still meet others.

    Parameters
    ----------
    files : the left and the right one.
    n_partners : for each side (n,) number of pages that each of its pages must meet.
    options : what is asked for.
    """

    def __init__(self, files: tuple[_File, _File], n_partners: Sequence[Ints], options: _Options) -> None:
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
        """Finish the search, when all pages are."""
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
        n, lefts, rights = len(found), *lonely
        at = np.lexsort((found.right, found.left))
        add_counts(self._options.counters, best=n, unmatched_left=len(lefts), unmatched_right=len(rights))
        values = np.full((n + len(lefts) + len(rights), found.values.shape[1]), math.nan)
        values[:n] = found.values[at]
        return BestPairs(
            np.concatenate([found.left[at], lefts, np.full(len(rights), NO_ROW)]),
            np.concatenate([found.right[at], np.full(len(lefts), NO_ROW), rights]),
            values,
            np.concatenate([best_for[at], np.zeros(len(values) - n)]).astype(np.uint8),
        )

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
