"""Pairs by their rows alone, for those who need no distances: a third of the memory."""

from __future__ import annotations

from numpy.typing import ArrayLike

from epsjoin.local.join.by_product import join_of_one, join_of_two
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.progress import ProgressArgument
from epsjoin.local.sweep.pairs import RowPairs, collect_rows
from epsjoin.local.sweep.sweeping import Counters


def row_pairs(
    points: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    right: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    n_jobs: int | None = 1,
    max_pairs: int | None = None,
    cuts: Cuts | None = None,
    progress: ProgressArgument = False,
    counters: Counters | None = None,
) -> RowPairs:
    """Find every pair of rows within eps, without distances, sorted by (left, right).

    Parameters
    ----------
    points, eps, metric, weights, n_jobs : see :func:`epsjoin.self_join`.
    max_pairs, cuts, progress, counters : see there, too.
    right : (m, d) a second table, for pairs of points and its points; by default pairs are of points alone.

    Returns
    -------
    RowPairs
        The rows of :func:`epsjoin.self_join`, or with ``right`` those of :func:`epsjoin.join`, as int32.

    Raises
    ------
    ArgumentError, BudgetError
        See :func:`epsjoin.self_join`.

    See Also
    --------
    degree : only how many pairs each row has.
    as_graph : the pairs as a sparse matrix.

    Notes
    -----
    The work is that of the join. The result takes 8 bytes for each pair, and 4 more while it is sorted;
    with distances these are 24 and 4.

    Examples
    --------
    >>> row_pairs([[0.0], [1.0], [5.0]], eps=1.0)
    RowPairs(left=array([0], dtype=int32), right=array([1], dtype=int32))
    """
    options = JoinOptions.of(metric, n_jobs, max_pairs, progress, counters)
    if right is None:
        checked = join_of_one(points, None, eps, weights, cuts, options)
        return collect_rows(checked.batches("self_join"), (checked.n_left, checked.n_left))
    checked = join_of_two(points, right, eps, weights, cuts, options)
    return collect_rows(checked.batches("join"), (checked.n_left, checked.n_right))
