"""DBSCAN of pairs that a caller has, from whatever join they come and by whatever other conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.sorting import lexsort
from epsjoin.local.arguments import check_count, check_lengths
from epsjoin.local.cluster.batches import Dbscan, cluster_rows
from epsjoin.local.cluster.dbscan import check_weights
from epsjoin.local.graph import are_sorted, as_rows, check_rows
from epsjoin.local.sweep.pairs import Pairs, RowPairs, check_pairs


def dbscan_pairs(
    pairs: Pairs | RowPairs | Iterable[Pairs],
    n: int,
    min_pts: int,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> Dbscan:
    """Find the density clusters of records of which all pairs of neighbours are known.

    What a neighbour is, the caller decides: records within eps in space and in time, strings within some
    edits, boxes that meet, pairs that a model has confirmed.

    Parameters
    ----------
    pairs : the pairs of row numbers, each once, ``left < right``, in any order; or batches of them, as
        :func:`epsjoin.iter_self_join` yields them. :class:`epsjoin.RowPairs` count as equally far.
    n : number of records.
    min_pts : minimum number of neighbours, the record itself included, that makes it a core point; at least
        1.
    sample_weight : (n,) numbers, see :func:`epsjoin.dbscan`.

    Returns
    -------
    Dbscan
        A label for each record. A border point has the label of its nearest core point; of several at the
        same distance, the label of that with the smallest row.

    Raises
    ------
    ArgumentError
        A row number is outside of the records, as ids may be; left is not below right; a pair comes twice in
        one batch; an argument has a wrong type, shape or value.

    See Also
    --------
    dbscan : the same of points, by a metric.

    Notes
    -----
    O(n + m) for pairs in the order in which joins return them; others are sorted first. Batches are released
    one after the other; it is not checked that no pair is in two of them. The memory is that of
    :func:`epsjoin.dbscan`.

    Examples
    --------
    >>> from epsjoin import Pairs, self_join
    >>> points, time = np.array([[0.0], [0.5], [1.0], [1.5]]), np.array([0.0, 5.0, 90.0, 95.0])
    >>> near = self_join(points, 1.0)  # in space; and in time:
    >>> is_soon = np.abs(time[near.left] - time[near.right]) <= 10.0
    >>> dbscan_pairs(Pairs(*(column[is_soon] for column in near)), 4, min_pts=2).labels.tolist()
    [0, 0, 1, 1]
    """
    check_count("min_pts", min_pts)
    n = check_count("n", n, 0)
    weight = None if sample_weight is None else check_weights(sample_weight, n)
    return cluster_rows(_checked(pairs, n), n, min_pts, weight)


def _checked(pairs: Pairs | RowPairs | Iterable[Pairs], n: int) -> Iterator[Pairs]:
    """Yield batches of pairs of rows, each pair once in its batch."""
    if isinstance(pairs, RowPairs):
        left, right = as_rows("left", pairs.left), as_rows("right", pairs.right)
        check_lengths(left=left, right=right)
        yield _check(Pairs(left.astype(np.int64), right.astype(np.int64), np.zeros(len(left))), n)
        return
    is_one = isinstance(pairs, Pairs) or not hasattr(pairs, "__iter__")  # what is no batch is refused below
    for batch in [pairs] if is_one else pairs:
        if not isinstance(batch, Pairs):
            raise ArgumentError(
                f"pairs must be Pairs, RowPairs or batches of Pairs, not {type(batch).__name__}"
            )
        yield _check(Pairs(*check_pairs(*batch)), n)


def _check(pairs: Pairs, n: int) -> Pairs:
    left, right = pairs.left, pairs.right
    check_rows("left", left, n)
    check_rows("right", right, n)
    is_wrong = left >= right
    if is_wrong.any():
        place = int(is_wrong.argmax())
        raise ArgumentError(f"pairs have left < right; entry {place} is ({left[place]}, {right[place]})")
    if not are_sorted(left, right):
        order = lexsort((right, left))
        first, second = left[order], right[order]
        is_twice = (first[1:] == first[:-1]) & (second[1:] == second[:-1])
        if is_twice.any():
            place = int(is_twice.argmax())
            raise ArgumentError(f"the pair ({first[place]}, {second[place]}) comes twice")
    return pairs
