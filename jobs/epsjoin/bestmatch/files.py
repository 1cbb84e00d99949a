"""Best matches of two Parquet files larger than memory, page by page; a page is a row group.

A first reading of both files gives the box of each page, and so which pages must meet. Then pages are loaded
as the schedule says. When two pages meet, those of their pairs stay that are the best so far for one of their
rows; when a page has met all its partners, what is best for its rows is final.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.bestmatch.open_pages import Options
from epsjoin.bestmatch.paging import PagedSearch
from epsjoin.bestmatch.parquet import PagedFile
from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import check_choice
from epsjoin.local.bestmatch.batch import BestPairs
from epsjoin.local.bestmatch.best import How
from epsjoin.local.bestmatch.orders import Closest, Order, Own, orders_of
from epsjoin.local.join.arrays import NO_ROW
from epsjoin.local.sweep.sweeping import Counters, check_counters, check_n_jobs
from epsjoin.params import MATCH_HOW, MATCH_TAKE


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
        What :func:`epsjoin.bestmatch_join` returns for the same rows, which are numbered through each file.
        Its memory comes on top of ``memory_mb``.

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
    eps, how, orders, take, n_jobs : see :func:`epsjoin.bestmatch_join`; of the orders only ``Closest`` and
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
    check_choice("how", how, MATCH_HOW)
    check_choice("take", take, MATCH_TAKE)
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
    options = Options(
        how=how,
        orders=criteria,
        take=take,
        memory=int(memory_mb * 2**20),
        n_jobs=check_n_jobs(n_jobs),
        n_columns=len(columns),
        counters=check_counters(counters),
    )
    return PagedSearch((PagedFile(left, columns), PagedFile(right, theirs)), options).run()
