"""Semi and anti joins of arrays: which rows have a partner, without making pairs."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Bools
from epsjoin.local.join.array_join import ArrayJoin
from epsjoin.local.join.few_rows import FewRows
from epsjoin.local.join.partners import find_partners
from epsjoin.local.join.product_join import ProductJoin
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.one_sided import hold, planned, reach
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.product.partners import mark_by_products
from epsjoin.local.progress import Progress


def mark_partners(join: ArrayJoin | ProductJoin) -> Bools:
    """Tell which left rows have a partner; of one table, which rows have another row within eps.

    Parameters
    ----------
    join : the checked join. Its ids are not read, nor is ``max_pairs``, since no pairs are made.

    Returns
    -------
    (n_left,) bool.
    """
    with Progress(join.options.progress, "join") as progress:
        if isinstance(join, ProductJoin):
            of = join.space, join.metric, join.eps, join.options.for_sweep()
            return mark_by_products(join.left, join.right, *of, progress.show)
        return _mark_by_sweep(join, progress)


def _mark_by_sweep(join: ArrayJoin, progress: Progress) -> Bools:
    marked = np.zeros(join.n_left, np.bool_)
    is_self = join.is_one
    if not join.n_left or not (is_self or join.n_right):
        return marked
    if join.cuts is not None:
        _mark_by_parts(join, planned(join.cuts), marked, progress)
        return marked
    of = join.points, join.n_left, is_self, join.eps, join.metric
    few_rows = FewRows.of(*of, of_left=True, both_ways=True)
    if few_rows is not None:
        marked, compared = few_rows.mark()
        few_rows.count_work(join.options.counters, compared, int(marked.sum()))
        return marked
    everything = join.points, np.arange(len(join.points)), join.is_right()
    sweep = join.eps, join.metric, join.options.for_sweep()
    found = find_partners(
        *everything, *sweep, is_self=is_self, projection=join.projection, show=progress.show
    )
    marked[found] = True
    return marked


def _mark_by_parts(join: ArrayJoin, cuts: Cuts, marked: Bools, progress: Progress) -> None:
    n, is_self = len(join.points), join.is_one
    ids, sample = np.arange(n), cuts.sample(n)
    plan = plan_join(join.points[sample], sample, n, join.eps, join.metric, cuts)
    first_right = 0 if is_self else join.n_left
    held = hold(join.points[: join.n_left], ids[: join.n_left], plan)
    reached = reach(join.points[first_right:], ids[first_right:], plan)
    parts = np.arange(plan.n_parts + 1)
    of_left, of_right = np.searchsorted(held.part, parts), np.searchsorted(reached.part, parts)
    sweep = join.eps, join.metric, join.options.for_sweep()
    for part in range(plan.n_parts):
        left = held.row[of_left[part] : of_left[part + 1]]
        right = first_right + reached.row[of_right[part] : of_right[part + 1]]
        both = np.concatenate((left, right))
        is_right = np.arange(len(both)) >= len(left)
        marked[find_partners(join.points[both], both, is_right, *sweep, is_self=is_self)] = True
        progress.show((of_left[part + 1] + of_right[part + 1]) / (len(held.row) + len(reached.row)))
