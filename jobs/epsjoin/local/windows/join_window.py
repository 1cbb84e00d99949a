"""The pairs of the last batches: those that a new batch brings, and those that are left of earlier ones."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.arguments import as_array, check_count, index_distinct, int_column
from epsjoin.local.coordinates import check_points
from epsjoin.local.join.arrays import join, self_join
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.scale import scale_metric
from epsjoin.local.sweep.pairs import Pairs, collect, concatenate
from epsjoin.local.sweep.sweeping import Counters

_MOST_ROOM = 8
"""Room for more than this many times the rows of a window, as after a large batch, is freed."""


class _Batch:
    """A batch of the window: how many rows it has, and the pairs whose older row, or both, are among them.

    Parameters
    ----------
    n_rows : number of its rows.
    within : pairs of its rows among themselves.
    """

    def __init__(self, n_rows: int, within: Pairs) -> None:
        self.n_rows, self.n_pairs, self.pairs = n_rows, 0, list[Pairs]()
        self.add(within)

    def add(self, pairs: Pairs) -> None:
        """Add pairs, one of whose rows is in a later batch."""
        if len(pairs.left):  # most batches have none with most later ones
            self.pairs.append(pairs)
            self.n_pairs += len(pairs.left)


class _Rows(NamedTuple):
    """Rows that follow one another: (n, d) float64 points, and (n,) int64 ids."""

    points: Floats
    ids: Ints


class _Buffer:
    """The rows of a window one after the other, in arrays with room at the end for more."""

    def __init__(self) -> None:
        self._room = _Rows(np.empty((0, 1)), np.empty(0, np.int64))
        self._begin = self._end = 0

    def rows(self, leaving: int) -> _Rows:
        """All rows but the first ones, as views."""
        kept = slice(self._begin + leaving, self._end)
        return _Rows(self._room.points[kept], self._room.ids[kept])

    def push(self, leaving: int, new: _Rows) -> None:
        """Drop the first rows and put copies of new ones after the last."""
        self._begin += leaving
        kept = self.rows(0)
        n = len(kept.ids) + len(new.ids)
        is_full = self._end + len(new.ids) > len(self._room.ids)
        if is_full or not len(kept.ids) or len(self._room.ids) > _MOST_ROOM * n:
            size = 2 * n  # so that each row is moved once on average
            columns = (kept if len(kept.ids) else new).points.shape[1]  # no rows may have any number of them
            self._room = _Rows(np.empty((size, columns)), np.empty(size, np.int64))
            self._begin = self._end = 0
            self._put(kept)
        self._put(new)

    def _put(self, rows: _Rows) -> None:
        if len(rows.ids):
            to = slice(self._end, self._end + len(rows.ids))
            self._room.points[to], self._room.ids[to] = rows.points, rows.ids
            self._end = to.stop


class JoinWindow:
    """Every pair of rows within eps in the last batches, kept as batches come and leave.

    Parameters
    ----------
    eps : maximum distance of a pair, in the metric's unit; above 0. Or (d,), one per dimension, such as
        metres and seconds; see :func:`epsjoin.self_join`.
    n_batches : how many batches the window holds, at least 1. A push beyond that lets the oldest leave, and
        its pairs with it.
    metric, weights : see :func:`epsjoin.self_join`.
    n_jobs : number of threads, see :func:`epsjoin.self_join`.
    max_pairs : maximum number of pairs that the window holds; None for no limit.
    counters : dictionary to whose entries the work of the joins is added.

    Raises
    ------
    ArgumentError
        An argument is out of its range.

    See Also
    --------
    update_join : the same between two whole snapshots, whose rows may move.
    BestmatchStream : only the best partner of each row.

    Notes
    -----
    A batch is joined with itself and with the window, never the window with itself: Golab, Garg and Özsu
    (EDBT 2004), section 3.2, count joins among what needs the whole window, since they keep no pairs. Each
    pair lies with the batch of its older row, so a batch that leaves takes its pairs along in constant time.

    Examples
    --------
    >>> window = JoinWindow(eps=1.0, n_batches=2)
    >>> window.push([[0.0], [5.0]], [10, 11])
    Pairs(left=array([], dtype=int64), right=array([], dtype=int64), distance=array([], dtype=float64))
    >>> window.push([[0.5]], [12])
    Pairs(left=array([10]), right=array([12]), distance=array([0.5]))
    >>> window.push([[5.5]], [13]).left  # rows 10 and 11 have left
    array([], dtype=int64)
    """

    def __init__(
        self,
        eps: float | npt.ArrayLike,
        n_batches: int,
        metric: str | Metric = "euclidean",
        *,
        weights: npt.ArrayLike | None = None,
        n_jobs: int | None = 1,
        max_pairs: int | None = None,
        counters: Counters | None = None,
    ) -> None:
        self._options = JoinOptions.of(metric, n_jobs, max_pairs, False, counters)
        self._eps, self._weights = _check_eps(self._options.metric, eps, weights)
        self._n_batches = check_count("n_batches", n_batches, 1)
        self._batches: deque[_Batch] = deque()
        self._rows, self._held = _Buffer(), 0

    def push(self, points: npt.ArrayLike, ids: npt.ArrayLike) -> Pairs:
        """Add a batch; the oldest leaves if the window was full.

        Parameters
        ----------
        points : (n, d) points, as for :func:`epsjoin.self_join`; n may be 0. Copied.
        ids : (n,) integers, distinct among all rows of the window; copied.

        Returns
        -------
        Pairs
            The pairs with a row of this batch, by ids, ``left < right``, sorted: within the batch, and with
            the rows of the window that have not left.

        Raises
        ------
        ArgumentError
            Points and ids do not fit one another, or the window; the window stays as it was.
        BudgetError
            The window would hold more than ``max_pairs`` pairs; it stays as it was.
        """
        new, new_ids = check_points("points", points), int_column("ids", ids)
        if len(new) != len(new_ids):
            raise ArgumentError(f"ids must be one for each of {len(new)} points, not {len(new_ids)}")
        leaving = self._batches[0] if len(self._batches) == self._n_batches else None
        n_leaving = 0 if leaving is None else leaving.n_rows
        staying = self._rows.rows(n_leaving)
        if len(new) and len(staying.ids) and staying.points.shape[1] != new.shape[1]:
            raise ArgumentError(
                "points must have as many columns as those of the window, "
                f"{staying.points.shape[1]}, not {new.shape[1]}"
            )
        index_distinct(np.concatenate((new_ids, staying.ids)))
        held = self._held - (0 if leaving is None else leaving.n_pairs)
        try:
            with_old = self._join_window(new, staying.points, held)
            limit = self._left_of_limit(held + len(with_old.left))
            within = concatenate([])
            if len(new):  # a batch without rows may have any number of columns
                within = self_join(new, self._eps, ids=new_ids, max_pairs=limit, **self._how())
        except BudgetError:  # it names what was left of the limit
            named = ", ".join(f"{each:g}" for each in np.atleast_1d(self._eps))
            most = f"more than max_pairs = {self._options.max_pairs} pairs within eps = {named}"
            raise BudgetError(f"the window would hold {most}; it stays as it was") from None
        older = self._part(with_old, new_ids, staying.ids, 0 if leaving is None else 1)
        found = collect(iter([*(part for _, part in older), within]))
        self._rows.push(n_leaving, _Rows(new, new_ids))  # nothing is refused from here on
        for batch, part in older:
            batch.add(part)
        if leaving is not None:
            self._batches.popleft()
        self._batches.append(_Batch(len(new), within))
        self._held = held + len(with_old.left) + len(within.left)
        return found

    def pairs(self) -> Pairs:
        """Return all pairs of the window, by ids, ``left < right``, sorted."""
        return collect(part for batch in self._batches for part in batch.pairs)

    def _part(self, found: Pairs, new_ids: Ints, old_ids: Ints, n_leaving: int) -> list[tuple[_Batch, Pairs]]:
        """Divide the pairs of new and old rows by the batches of the old ones, and name them by ids."""
        order, parts = np.argsort(found.right, kind="stable"), []
        batches = list(self._batches)[n_leaving:]
        ends = np.cumsum([batch.n_rows for batch in batches])
        bounds = [0, *np.searchsorted(found.right[order], ends).tolist()]
        for batch, (begin, end) in zip(batches, pairwise(bounds), strict=True):
            if begin < end:
                some = order[begin:end]
                one, other = new_ids[found.left[some]], old_ids[found.right[some]]
                named = Pairs(np.minimum(one, other), np.maximum(one, other), found.distance[some])
                parts.append((batch, named))
        return parts

    def _how(self) -> dict[str, Any]:
        return {
            "metric": self._options.metric,
            "weights": self._weights,
            "n_jobs": self._options.n_jobs,
            "counters": self._options.counters,
        }

    def _join_window(self, new: Floats, old: Floats, held: int) -> Pairs:
        """Find the pairs of new rows and those that stay."""
        if not (len(new) and len(old)):
            return concatenate([])
        found: Pairs = join(new, old, self._eps, max_pairs=self._left_of_limit(held), **self._how())
        return found

    def _left_of_limit(self, held: int) -> int | None:
        """Return how many pairs may still come: at least 0, for what a window holds has passed this limit."""
        return None if self._options.max_pairs is None else self._options.max_pairs - held


def _check_eps(
    metric: Metric, eps: float | npt.ArrayLike, weights: npt.ArrayLike | None
) -> tuple[float | Floats, Floats | None]:
    """Return copies of eps and weights, once they are those of some number of dimensions."""
    thresholds = as_array("eps", eps)
    if thresholds.ndim == 0 and weights is None:
        return metric.check_eps(eps), None
    given = None if weights is None else np.array(as_array("weights", weights))
    d = thresholds.size if given is None or thresholds.ndim else given.size
    scale_metric(metric, np.empty((0, d)), eps, given)
    return (metric.check_eps(eps) if thresholds.ndim == 0 else thresholds.astype(np.float64)), given
