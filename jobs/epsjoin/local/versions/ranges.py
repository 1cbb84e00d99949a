"""Ranges of runs: a history without branches, where each record has one range, ``begin <= run < end``.

Runs may come in any order, and come again: the ranges depend only on what the runs hold, see
:func:`apply_run`. Eras lay the ranges out so that a query for one run reads little else, see
:func:`find_eras`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.arguments import check_lengths

OPEN = int(np.iinfo(np.int64).max)
"""End of a range that still holds."""


class Ranges(NamedTuple):
    """Records with the runs at which they hold, by key, then by begin.

    The ranges of a key are disjoint, and maximal: where one ends and the next begins, their values differ.

    Parameters
    ----------
    keys : (n,) int64.
    values : (n,) int64; records with equal keys are the same where these are equal.
    begin, end : (n,) int64, runs; ``OPEN`` is the end of what still holds.
    """

    keys: Ints
    values: Ints
    begin: Ints
    end: Ints

    def at(self, run: int) -> Bools:
        """Tell which records hold at a run."""
        return np.asarray((self.begin <= run) & (run < self.end))


NO_RANGES = Ranges(*(np.empty(0, np.int64) for _ in Ranges._fields))
"""The ranges of a history without runs."""


def apply_run(ranges: Ranges, runs: Ints, run: int, keys: Ints, values: Ints) -> Ranges:
    """Add a run to a history, or replace it there.

    Parameters
    ----------
    ranges : the ranges of the runs so far.
    runs : those runs, in any order; ``run`` is among them if it is replaced.
    run : the run; at any date.
    keys, values : (m,) int64, the records of the run; the keys are distinct.

    Returns
    -------
    Ranges
        The ranges of all runs: the same in whatever order they were added.

    Notes
    -----
    No run lies between ``run`` and the next one, so all ranges that hold at ``run`` hold until there: this
    stretch is cut out of them, the records of the run are put in its place, and equal neighbours are merged.
    """
    check_lengths(keys=keys, values=values)
    until = int(min((other for other in runs.tolist() if other > run), default=OPEN))
    is_cut = ranges.at(run)
    before, after = is_cut & (ranges.begin < run), is_cut & (ranges.end > until)
    parts = [
        _select(ranges, ~is_cut),
        _select(ranges, before)._replace(end=np.full(int(before.sum()), run)),
        _select(ranges, after)._replace(begin=np.full(int(after.sum()), until)),
        Ranges(keys, values, np.full(len(keys), run), np.full(len(keys), until)),
    ]
    return _merge(Ranges(*(np.concatenate(columns) for columns in zip(*parts, strict=True))))


def _select(ranges: Ranges, chosen: Bools) -> Ranges:
    return Ranges(*(column[chosen] for column in ranges))


def _merge(ranges: Ranges) -> Ranges:
    """Sort the ranges, which are disjoint for each key, and merge equal ones that touch."""
    keys, values, begin, end = (column[np.lexsort((ranges.begin, ranges.keys))] for column in ranges)
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = (keys[1:] != keys[:-1]) | (values[1:] != values[:-1]) | (begin[1:] != end[:-1])
    is_last = np.append(is_first[1:], True)[: len(keys)]
    return Ranges(keys[is_first], values[is_first], begin[is_first], end[is_last])


def find_eras(ranges: Ranges, runs: Ints) -> Ints:
    """Find the runs at which new eras begin: there all that holds is copied, and stays together from then on.

    An era holds all records that hold at any of its runs. It ends before the run with which it would have
    more than twice as many records as hold at one of its runs.

    Parameters
    ----------
    ranges : the ranges of the runs.
    runs : all runs of the history, in any order.

    Returns
    -------
    Ints
        First runs of the eras, ascending.

    Notes
    -----
    *Read*: the records of one era, at most twice those that hold at the run.

    *Stored*: at most five records for each range. An era of first A records, with b more, d of which ended,
    is over when A + b exceeds twice the A - d that hold at the least: A < b + 2 d. The copy that begins the
    next one has at most A + b < 2 (b + d) records, and each range begins once and ends once.

    To begin a new era when the records that have ended outnumber those that hold, as in a page that is split
    by version, bounds only what a *later* run reads: in a table that grows, the first run would read all that
    came after it.
    """
    firsts: list[int] = []
    stored = least = 0
    for run in np.unique(runs).tolist():
        alive = int(ranges.at(run).sum())
        stored += int((ranges.begin == run).sum())
        least = min(least, alive)
        if not firsts or stored > 2 * least:
            firsts.append(run)
            stored = least = alive
    return np.array(firsts, np.int64)


class Layout(NamedTuple):
    """Which record lies in which era.

    Parameters
    ----------
    eras : (n,) int64, number of the era, from 0.
    rows : (n,) int64, index of the record in the ranges.
    """

    eras: Ints
    rows: Ints


def lay_out(ranges: Ranges, firsts: Ints) -> Layout:
    """Put each record into every era in which it holds; ranges are copied whole.

    Parameters
    ----------
    firsts : first runs of the eras; see :func:`find_eras`.
    """
    ends = np.append(firsts[1:], OPEN)
    found = [
        np.flatnonzero((ranges.begin < end) & (ranges.end > first))
        for first, end in zip(firsts, ends, strict=False)
    ]
    eras = np.repeat(np.arange(len(found)), [len(rows) for rows in found])
    return Layout(eras.astype(np.int64), np.concatenate([np.empty(0, np.int64), *found]))
