"""The clusters of points that changed a little, from their clusters before.

Clusters change by pairs that have gone, by new pairs, and by points that are no longer core or newly core. A
cluster is *hurt* if one of its core points is no longer core, or if a pair of two of its core points has
gone. The clusters now are the components of

1. the core points of each cluster that is not hurt, as one,
2. pairs that were there before, of two core points, in a hurt cluster or with an end that is newly core,
3. new pairs of two core points.

*Exact.* Pairs of core points connect nothing else: the ends of a pair that was there before and is not in 2
were both core before. So it lies in one cluster, which is not hurt, and 1 connects its ends. And 1 connects
nothing that the present pairs do not: a cluster that is not hurt still has all its core points, and all pairs
of two of them.

A *border* point of a cluster that is not hurt stays in it, unless one of its pairs is new, gone or of another
distance, or a neighbour is newly core: then it looks at its pairs again. So do the border points of hurt
clusters: which of its core points they were nearest to is not kept.

References
----------
Ester, Kriegel, Sander, Wimmer, Xu: Incremental clustering for mining in a data warehousing environment, VLDB
1998. Departures: all changes at once, not point by point, so that any number of creations, merges and splits
may come together; a cluster is looked at wherever it lost a pair of core points, not only where somebody is
core no more; border points are those of :func:`epsjoin.dbscan`, which depend on the points alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Ints, Ints8
from epsjoin.kernels.cluster.density import EndPairs, find_nearest_cores, number_clusters
from epsjoin.kernels.cluster.union_find import unite_all
from epsjoin.kernels.cluster.update import NEW, STAYED, compare_pairs, is_sorted
from epsjoin.kernels.ids import IdIndex, index_ids, rows_of
from epsjoin.local.arguments import check_count, int_column
from epsjoin.local.cluster.batches import Dbscan
from epsjoin.local.cluster.dbscan import check_dbscan
from epsjoin.local.sweep.pairs import Pairs, check_pair_columns
from epsjoin.local.sweep.sweeping import Counters, add_counts, check_counters
from epsjoin.vocabulary import NOISE


def update_clusters(
    clusters: Dbscan,
    pairs_before: Pairs,
    pairs_now: Pairs,
    ids_before: npt.ArrayLike,
    ids_now: npt.ArrayLike,
    min_pts: int,
    *,
    counters: Counters | None = None,
) -> Dbscan:
    """Find the density clusters of points from the earlier clusters and from the differences of their pairs.

    Parameters
    ----------
    clusters : the clusters before, what ``dbscan(before, eps, min_pts)`` or this function returned.
    pairs_before, pairs_now : the pairs before and now, with ids, of one eps and metric: what
        ``self_join(before, eps, ids=ids_before)`` and :func:`epsjoin.update_join` return.
    ids_before, ids_now : (n,) and (m,) integers, ascending, by which a point is known before and now: the
        points, and so the rows of the clusters, are in the order of their ids.
    min_pts : the same as before; see :func:`epsjoin.dbscan`.
    counters : dictionary to whose entries the work is added: ``dropped_pairs`` and ``new_pairs``,
        ``hurt_clusters`` that have lost a core point or a pair of two, ``united_pairs`` of core points that
        were looked at, ``borders`` that looked for their nearest core point again, and the ``border_pairs``
        they looked at.

    Returns
    -------
    Dbscan
        What ``dbscan(now, eps, min_pts)`` returns, in the order of ``ids_now``.

    Raises
    ------
    ArgumentError
        Ids do not ascend; the clusters are invalid, not one row per id, or not those of these pairs and this
        min_pts; pairs are not sorted, or name an id that is not given.

    See Also
    --------
    update_join : the pairs now from those before.
    dbscan : the clusters from the points alone.
    match_clusters : which earlier cluster a cluster continues.

    Notes
    -----
    O(n + m + pairs): all pairs are read to see what differs; few are looked at after that, unless large
    clusters are hurt. Computing the components of all pairs takes less time, so this function is not for
    speed: it tells which clusters a change has hurt, and is a second opinion.

    Examples
    --------
    >>> from epsjoin import dbscan, self_join
    >>> before, now = [[0.0], [1.0], [2.0], [3.0]], [[0.0], [1.0], [3.0]]
    >>> pairs = self_join(before, 1.0, ids=[4, 5, 6, 7]), self_join(now, 1.0, ids=[4, 5, 7])
    >>> update_clusters(dbscan(before, 1.0, 2), *pairs, [4, 5, 6, 7], [4, 5, 7], 2).labels.tolist()
    [0, 0, -1]
    """
    min_pts, counted = check_count("min_pts", min_pts), check_counters(counters)
    old_ids, new_ids = (
        _check_ids(f"ids_{at}", ids) for at, ids in (("before", ids_before), ("now", ids_now))
    )
    old, new = _check_sorted_pairs("pairs_before", pairs_before), _check_sorted_pairs("pairs_now", pairs_now)
    clusters = _check_clusters(clusters, old_ids, old, min_pts)
    left, right, change, dropped, was, stays, bereft = _compare(old, new, old_ids, new_ids)
    is_new = change == NEW
    label, was_core = np.append(clusters.labels, NOISE)[was], np.append(clusters.is_core, False)[was]
    degree = np.append(clusters.degree, 1)[was] - np.bincount(bereft, minlength=len(new_ids))
    degree += np.bincount(np.concatenate((left[is_new], right[is_new])), minlength=len(new_ids))
    is_core = degree >= min_pts
    is_gained = is_core & ~was_core
    is_hurt = _find_hurt(clusters, np.append(is_core, False)[stays], dropped)

    # 1: the core points of a cluster that is not hurt, as one; 2 and 3: the pairs that may unite more
    holds = (label != NOISE) & ~is_hurt[label]
    parent, first = np.arange(len(new_ids)), np.full(len(is_hurt), len(new_ids))
    cores = np.flatnonzero(holds & was_core)
    np.minimum.at(first, label[cores], cores)
    parent[cores] = first[label[cores]]
    meets_gained = is_gained[left] | is_gained[right]
    unites = is_core[left] & is_core[right] & (is_new | meets_gained | is_hurt[label[left]])
    unite_all(parent, left[unites], right[unites])

    # border points: those of clusters that are not hurt stay, unless something is near them that was not
    has_core = is_core[left] != is_core[right]
    is_other = has_core & ((change != STAYED) | meets_gained)
    looks = is_hurt[label]
    looks[np.concatenate((bereft, left[is_other], right[is_other]))] = True
    looks &= ~is_core
    home, near = np.full(len(new_ids), NOISE), np.full(len(new_ids), np.inf)
    rests = holds & ~is_core & ~looks
    home[rests] = first[label[rests]]
    asked = has_core & (looks[left] | looks[right])
    find_nearest_cores(EndPairs(left[asked], right[asked], new.distance[asked]), is_core, home, near)

    work = {
        "new_pairs": is_new,
        "hurt_clusters": is_hurt,
        "united_pairs": unites,
        "borders": looks,
        "border_pairs": asked,
    }
    n_dropped = len(dropped[0])
    add_counts(counted, dropped_pairs=n_dropped, **{name: int(which.sum()) for name, which in work.items()})
    return Dbscan(number_clusters(parent, is_core, home), is_core, degree)


class _Compared(NamedTuple):
    """Pairs now and before by the rows of their points.

    Parameters
    ----------
    left, right : rows now of the ends of the pairs now.
    change : of each, see :func:`epsjoin.kernels.cluster.update.compare_pairs`.
    dropped : left and right rows before of the pairs that have gone. was, stays : the row before of each
        point now, and the row now of each point before; -1 for none.
    bereft : rows now of the ends of dropped pairs, as often as each lost one.
    """

    left: Ints
    right: Ints
    change: Ints8
    dropped: tuple[Ints, Ints]
    was: Ints
    stays: Ints
    bereft: Ints


def _compare(old: Pairs, new: Pairs, old_ids: Ints, new_ids: Ints) -> _Compared:
    is_dropped = np.zeros(len(old.left), np.bool_)
    change = compare_pairs(*old, *new, is_dropped)
    at_before, at_now = index_ids(old_ids), index_ids(new_ids)
    was, stays = rows_of(at_before, new_ids), rows_of(at_now, old_ids)
    left, right = (_rows("pairs_now", at_now, ends) for ends in (new.left, new.right))
    gone = [_rows("pairs_before", at_before, ends[is_dropped]) for ends in (old.left, old.right)]
    _check_kept(new, (change != NEW) & ((was[left] < 0) | (was[right] < 0)))
    bereft = stays[np.concatenate(gone)]
    return _Compared(left, right, change, (gone[0], gone[1]), was, stays, bereft[bereft >= 0])


def _find_hurt(clusters: Dbscan, stays_core: Bools, dropped: tuple[Ints, Ints]) -> Bools:
    """Tell which clusters are hurt; the last place is that of noise, which never is.

    Parameters
    ----------
    stays_core : of each point before, whether it is core now.
    dropped : left and right rows before of the pairs that are there no more.
    """
    labels, is_core, _ = clusters
    is_hurt = np.zeros(labels.max(initial=NOISE) + 2, np.bool_)
    is_hurt[labels[is_core & ~stays_core]] = True
    left, right = dropped
    is_hurt[labels[left[is_core[left] & is_core[right]]]] = True
    return is_hurt


def _check_ids(name: str, ids: npt.ArrayLike) -> Ints:
    column = int_column(name, ids)
    if (column[1:] <= column[:-1]).any():
        at = int((column[1:] <= column[:-1]).argmax())
        raise ArgumentError(
            f"{name} must ascend, each once; {column[at]} is followed by {column[at + 1]}. Of border points "
            "as near to two core points the order decides"
        )
    return column


def _check_sorted_pairs(name: str, pairs: Pairs) -> Pairs:
    checked = check_pair_columns(name, pairs)
    if not is_sorted(checked.left, checked.right):
        raise ArgumentError(
            f"{name} must be sorted by (left, right), each pair once and its smaller id at the left, as "
            "self_join and update_join return them"
        )
    return checked


def _check_clusters(clusters: Dbscan, ids: Ints, pairs: Pairs, min_pts: int) -> Dbscan:
    """Return the clusters before as arrays, the degrees as int64."""
    checked = check_dbscan(clusters, are_numbers=True)
    if len(checked.labels) != len(ids):
        raise ArgumentError(
            f"clusters must have a row for each of ids_before, {len(ids)}, not {len(checked.labels)}"
        )
    if len(ids) and checked.degree.dtype.kind == "f":
        raise ArgumentError("clusters must be those of points without sample weights")
    degree = int_column("degree of clusters", checked.degree)
    if ((degree >= min_pts) != checked.is_core).any():
        raise ArgumentError(f"clusters must be of the same min_pts, {min_pts}")
    degrees = int(degree.sum()) - len(ids)
    if degrees != 2 * len(pairs.left):
        raise ArgumentError(
            f"clusters must be those of pairs_before, {len(pairs.left)}; their degrees are of {degrees / 2:g}"
        )
    return checked._replace(degree=degree)


def _check_kept(pairs: Pairs, is_unknown: Bools) -> None:
    if is_unknown.any():
        at = int(is_unknown.argmax())
        raise ArgumentError(
            f"pairs_before have ({pairs.left[at]}, {pairs.right[at]}), of which ids_before lack one"
        )


def _rows(name: str, index: IdIndex, ids: Ints) -> Ints:
    rows = rows_of(index, ids)
    if (rows < 0).any():
        at = int((rows < 0).argmax())
        raise ArgumentError(f"{name} have id {ids[at]}, which ids_{name[6:]} lack")
    return rows
