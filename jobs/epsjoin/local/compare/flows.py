"""Flows: how many records went from each cluster of one run to each cluster of the next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.ids import IdIndex, rows_of
from epsjoin.vocabulary import NOISE


class Flows(NamedTuple):
    """Numbers of records by where they were in one run and where they are in the next.

    Ordered by the clusters before, then by those now; records that were or are not there come last.

    Parameters
    ----------
    before : (f,) int64, the records' cluster in the earlier run, ``NOISE`` (-1) for noise and where they were
        not there.
    now : (f,) int64, their cluster in the later run, likewise.
    is_new : (f,) bool, whether they were not there in the earlier run.
    is_gone : (f,) bool, whether they are not there in the later run.
    members : (f,) int64, number of records, at least 1.
    cores : (f,) int64, how many of them are core points in the later run.
    """

    before: Ints
    now: Ints
    is_new: Bools
    is_gone: Bools
    members: Ints
    cores: Ints


def count_flows(index: IdIndex, before: Ints, ids: Ints, now: Ints, is_core: Bools) -> Flows:
    """Count the flows between two runs, or between the same part of both.

    Parameters
    ----------
    index : of the ids of the earlier run.
    before : (m,) int64, the cluster of each of them, ``NOISE`` for noise.
    ids, now, is_core : (n,), the records of the later run, each id once: id, cluster, whether it is core.

    Notes
    -----
    O((m + n) log (m + n)).
    """
    rows = rows_of(index, ids)
    is_there = rows >= 0
    is_gone = np.ones(before.size, np.bool_)
    is_gone[rows[is_there]] = False
    gone = before[is_gone]
    was = np.full(ids.size, NOISE)
    was[is_there] = before[rows[is_there]]
    return add_flows(
        [
            Flows(
                np.concatenate([was, gone]),
                np.concatenate([now, np.full(gone.size, NOISE)]),
                np.concatenate([~is_there, np.zeros(gone.size, np.bool_)]),
                np.concatenate([np.zeros(ids.size, np.bool_), np.ones(gone.size, np.bool_)]),
                np.ones(ids.size + gone.size, np.int64),
                np.concatenate([is_core.astype(np.int64), np.zeros(gone.size, np.int64)]),
            )
        ]
    )


def add_flows(parts: Iterable[Flows]) -> Flows:
    """Add up the flows of parts of the records."""
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    before, now, is_new, is_gone, members, cores = columns
    order = np.lexsort((now, is_gone, before, is_new))
    keys = [column[order] for column in (before, now, is_new, is_gone)]
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    first = np.flatnonzero(is_first)
    sums = [np.add.reduceat(column[order], first) if first.size else column for column in (members, cores)]
    return Flows(*(key[first] for key in keys), *sums)
