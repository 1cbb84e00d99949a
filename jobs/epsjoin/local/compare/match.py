"""Clusters of two labelings, or of many in a row, matched by the records that they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.ids import IdIndex, index_ids
from epsjoin.local.arguments import bool_column, check_lengths, index_distinct, int_column
from epsjoin.local.compare.events import Events
from epsjoin.local.compare.flows import Flows, count_flows
from epsjoin.local.compare.fold import name_run
from epsjoin.local.compare.names import NOBODY, Cores, Names
from epsjoin.vocabulary import NOISE

Labelled = Sequence[npt.ArrayLike]
"""A clustering of records: their ids and labels, and which of them are core points, if that is known."""


class Matched(NamedTuple):
    """The clusters of a run beside those of the run before; made by :func:`match_clusters`.

    Parameters
    ----------
    names : what the clusters are called, and where their records came from.
    flows : how many records went from each cluster before to each cluster now.
    events : what happened to the clusters.
    """

    names: Names
    flows: Flows
    events: Events


def match_clusters(before: Labelled, now: Labelled) -> Matched:
    """Find the clusters of an earlier clustering again in a later one.

    Clusters keep their names where most of their records stay together, whatever labels they get.

    Parameters
    ----------
    before : ``(ids, labels)`` or ``(ids, labels, is_core)`` of the earlier clustering. ids are (n,) whole
        numbers, each once, the same for a record in both; labels are (n,) whole numbers, ``NOISE`` (-1) for
        noise; is_core is (n,) bool, and by default all records of clusters count as core points.
    now : the same of the later one.

    Returns
    -------
    Matched
        Names of the clusters now, flows, events. The clusters before are named by the smallest id of their
        core points.

    Raises
    ------
    ArgumentError
        A clustering is not two or three columns of one length, an id comes twice, or a cluster has no core
        point.

    See Also
    --------
    name_clusters : the same for more than two.

    Notes
    -----
    Of a cluster, only the records that still exist count. The cluster that has more than half of them is its
    heir and takes its name. If several clusters have the same heir, the one that gave most records hands its
    name on (then the one with the older name, then with the smaller), and the others have *merged* into it. A
    new cluster is named by the smallest id of its core points that was never a name. A *piece* is at least a
    tenth of the remaining records, and at least 2, in another cluster than the heir.

    ========== ==========================================================================================
    event      when
    ========== ==========================================================================================
    born       the name is new, and the cluster has no piece of an earlier one
    split      the cluster left a piece to another one and has not dissolved; it ends if it has no heir
    split_off  the name is new, and the cluster has a piece of an earlier one
    merged     the heir bears another name
    dissolved  no heir, and half of what is left or more is noise, or there is no piece
    gone       nothing is left
    grown      the same name, and the size is larger by a tenth and by 2 records at least
    shrunk     the same name, and the size is smaller by as much
    ========== ==========================================================================================

    O(n log n) for n records in both clusterings together.

    Examples
    --------
    >>> before = [1, 2, 3, 4, 5, 6], [0, 0, 0, 7, 7, 7]
    >>> now = [1, 2, 3, 4, 5, 8, 9], [3, 3, 3, 3, 3, 1, 1]
    >>> found = match_clusters(before, now)
    >>> found.names.label.tolist(), found.names.name.tolist()
    ([1, 3], [8, 1])
    >>> for event, name, members in zip(found.events.event, found.events.name, found.events.members):
    ...     print(event, name, members)
    born 8 2
    merged 4 2
    grown 1 2
    """
    return _name_all([("before", before), ("now", now)])[1]


def name_clusters(runs: Iterable[Labelled]) -> list[Matched]:
    """Name the clusters of successive clusterings, so that a cluster keeps its name from one to the next.

    Parameters
    ----------
    runs : clusterings of the same kind of records, the earliest first, each as in :func:`match_clusters`.

    Returns
    -------
    list[Matched]
        Names, flows and events of each. For the first one all records are new, its clusters are named by the
        smallest id of their core points, and there are no events. A name that has ended never comes back.

    Raises
    ------
    ArgumentError
        See :func:`match_clusters`.

    Examples
    --------
    >>> found = name_clusters([([1, 2, 3], [0, 0, 0]), ([1, 2, 3], [-1, -1, -1]), ([1, 2, 3], [5, 5, 5])])
    >>> [each.names.name.tolist() for each in found]
    [[1], [], [2]]
    >>> [each.events.event.tolist() for each in found]
    [[], ['dissolved'], ['born']]
    """
    if not isinstance(runs, Iterable):
        raise ArgumentError(f"runs must be clusterings, one after another, not {type(runs).__name__}")
    return _name_all((f"run {number}", run) for number, run in enumerate(runs))


def _name_all(runs: Iterable[tuple[str, Labelled]]) -> list[Matched]:
    """Name the clusters of clusterings, which errors call by the names that come with them."""
    found: list[Matched] = []
    named, before = NOBODY, _NO_RECORDS
    for number, (name, run) in enumerate(runs):
        now = _check_run(name, run)
        ids = now.by_id.ids
        flows = count_flows(before.by_id, before.labels, ids, now.labels, now.is_core)
        cores = Cores.of(ids, now.labels, now.is_core)
        bare = np.setdiff1d(now.labels[now.labels != NOISE], cores.labels)
        if bare.size:
            raise ArgumentError(f"cluster {bare[0]} of {name} has no core point")
        named, events = name_run(named, flows, number, cores.smallest, cores.among)
        found.append(Matched(named.names, flows, events))
        before = now
    return found


class _Records(NamedTuple):
    """Ids, labels, and which are core points, in one order."""

    by_id: IdIndex
    labels: Ints
    is_core: Bools


_NO_RECORDS = _Records(index_ids(np.empty(0, np.int64)), np.empty(0, np.int64), np.empty(0, np.bool_))


def _check_run(name: str, run: Labelled) -> _Records:
    if isinstance(run, np.ndarray) or not isinstance(run, Sequence) or len(run) not in (2, 3):
        raise ArgumentError(
            f"{name} must be (ids, labels) or (ids, labels, is_core); where rows are the same records "
            "in all runs, ids are range(n)"
        )
    ids, labels = (
        int_column(f"{column} of {name}", values)
        for column, values in zip(("ids", "labels"), run, strict=False)
    )
    columns: dict[str, Ints | Bools] = {f"ids of {name}": ids, "labels": labels}
    is_core = np.ones(labels.size, np.bool_)
    if len(run) == 3:
        is_core = columns["is_core"] = bool_column(f"is_core of {name}", run[2])
    check_lengths(**columns)
    return _Records(index_distinct(ids, f"ids of {name}"), labels, is_core & (labels != NOISE))
