"""The pairs of the last batches: what a new batch brings, and what is left of those before."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.arguments import check_count, check_points, index_distinct, int_column
from epsjoin.local.join.arrays import join, self_join
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.sweep.pairs import Pairs, collect, concatenate
from epsjoin.local.sweep.sweeping import Counters


class _Batch(NamedTuple):
    """A batch, with all pairs of the window whose older row, or both, are in it.

    Parameters
    ----------
    points : (n, d) float64.
    ids : (n,) int64.
    pairs : parts of those pairs, one for each batch that came since.
    """

    points: Floats
    ids: Ints
    pairs: list[Pairs]


class JoinWindow:
    """Every pair of rows within eps in the last batches, kept as batches come and leave.

    Parameters
    ----------
    eps : maximum distance of a pair, in the metric's unit; above 0.
    n_batches : how many batches the window holds, at least 1. A push beyond that lets the oldest leave, and
        its pairs with it.
    metric : see :func:`epsjoin.self_join`.
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
    (EDBT 2004), section 4, count joins among what needs the whole window, since they keep no pairs. Each pair
    lies with the batch of its older row, so a batch that leaves takes its pairs with it in constant time.

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
        eps: float,
        n_batches: int,
        metric: str | Metric = "euclidean",
        *,
        n_jobs: int | None = 1,
        max_pairs: int | None = None,
        counters: Counters | None = None,
    ) -> None:
        self._options = JoinOptions.of(metric, n_jobs, max_pairs, False, counters)
        self._eps = self._options.metric.check_eps(eps)
        self._n_batches = check_count("n_batches", n_batches, 1)
        self._batches: deque[_Batch] = deque()

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
        is_full = len(self._batches) == self._n_batches
        staying = list(self._batches)[1:] if is_full else list(self._batches)
        widths = {batch.points.shape[1] for batch in staying if len(batch.points)}
        if len(new) and widths - {new.shape[1]}:
            raise ArgumentError(
                f"points must have as many columns as those of the window, {min(widths)}, not {new.shape[1]}"
            )
        index_distinct(np.concatenate([new_ids, *(batch.ids for batch in staying)]))
        held = sum(len(part.left) for batch in staying for part in batch.pairs)
        with_old = self._join_window(new, new_ids, staying, held)
        found = sum(len(part.left) for part in with_old)
        limit = self._left_of_limit(held + found)
        within = self_join(new, self._eps, ids=new_ids, max_pairs=limit, **self._how())
        if is_full:
            self._batches.popleft()
        for batch, part in zip(staying, with_old, strict=True):
            batch.pairs.append(part)
        self._batches.append(_Batch(new.copy(), new_ids.copy(), [within]))  # callers fill theirs again
        return collect(iter([*with_old, within]))

    def pairs(self) -> Pairs:
        """Return all pairs of the window, by ids, ``left < right``, sorted."""
        return collect(part for batch in self._batches for part in batch.pairs)

    def _join_window(self, new: Floats, new_ids: Ints, staying: list[_Batch], held: int) -> list[Pairs]:
        """Join the new rows with those that stay; return the pairs by the batch of the older row."""
        if not staying:
            return []
        starts = np.cumsum([0, *(len(batch.ids) for batch in staying)])
        old_ids = np.concatenate([batch.ids for batch in staying])
        filled = [batch.points for batch in staying if len(batch.points)]
        found = concatenate([])
        if len(new) and filled:
            limit = self._left_of_limit(held)
            found = join(new, np.concatenate(filled), self._eps, max_pairs=limit, **self._how())
        order = np.argsort(found.right, kind="stable")
        bounds = np.searchsorted(found.right[order], starts)
        by_batch = []
        for begin, end in pairwise(bounds):
            rows = order[begin:end]
            one, other = new_ids[found.left[rows]], old_ids[found.right[rows]]
            by_batch.append(Pairs(np.minimum(one, other), np.maximum(one, other), found.distance[rows]))
        return by_batch

    def _how(self) -> dict[str, Any]:
        return {
            "metric": self._options.metric,
            "n_jobs": self._options.n_jobs,
            "counters": self._options.counters,
        }

    def _left_of_limit(self, held: int) -> int | None:
        """Return how many pairs may still come: at least 0, for what a window holds has passed this limit."""
        return None if self._options.max_pairs is None else self._options.max_pairs - held
