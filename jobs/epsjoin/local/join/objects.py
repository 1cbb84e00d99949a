"""A join of checked objects: boxes, and points with an eps of their own (balls).

1. :func:`box_table` and :func:`ball_table` check the objects and compute where their partners may be.
2. :func:`join_objects` puts a cube around each object, grows a tree of cuts on a sample of the cubes, and
   copies each object into every leaf that its cube meets.
3. Each leaf is swept; a pair is reported by one leaf only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.pairs.batch import PairBatch
from epsjoin.kernels.plan.cubes import Cubes, assign_cubes, count_rows, make_cubes, separating_axes
from epsjoin.kernels.sweep.box_sweep import Objects, SweepOrder, box_sweep, gather_rows, sweep_order
from epsjoin.kernels.sweep.stack_sweep import is_done, new_state
from epsjoin.local.arguments import as_array, as_number, check_count
from epsjoin.local.coordinates import check_dimensions, check_points
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.plan.costs import BOX_NS_PER_CANDIDATE, BOX_NS_PER_ROW
from epsjoin.local.plan.tree.box_tree import grow_box_tree
from epsjoin.local.plan.tree.cut_tree import prune_tree
from epsjoin.local.progress import Progress
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import add_counts
from epsjoin.local.sweep.threads import in_order

_MAX_ROWS_AT_ONCE = 1 << 16
"""Maximum number of rows of the leaves that are swept together."""


class ObjectTable(NamedTuple):
    """Checked objects, and where their partners may be.

    Parameters
    ----------
    objects : the objects in original coordinates.
    begin, end : (n, e) float64, the two corners of each object's box in embedded coordinates.
    reach : (n,) float64. Two objects within their threshold are at most the sum of their reaches apart on
        each embedded axis.
    """

    objects: Objects
    begin: Floats
    end: Floats
    reach: Floats


class CutOptions(NamedTuple):
    """Checked options of the tree of cuts; made by :meth:`of`.

    Parameters
    ----------
    replication_budget : maximum average number of rows per object in all leaves together, at least 1.
    sample_rows : number of objects on which the tree is grown.
    """

    replication_budget: float
    sample_rows: int

    @classmethod
    def of(cls, replication_budget: float, sample_rows: int) -> CutOptions:
        """Check the arguments as callers pass them.

        Raises
        ------
        ArgumentError
            An argument has a wrong type or is out of its range.
        """
        budget = as_number(replication_budget)
        if not 1.0 <= budget < math.inf:
            raise ArgumentError(
                "replication_budget must be a finite number of rows per object, at least 1, "
                f"not {replication_budget!r}"
            )
        return cls(budget, check_count("sample_rows", sample_rows))


def check_box_eps(eps: Any, metric: Metric) -> float:
    """Return the eps of a join of boxes as a float: as :meth:`Metric.check_eps`, but 0 is allowed.

    Raises
    ------
    ArgumentError
        eps is not such a number, or the metric has no distance of boxes.
    """
    if metric.is_on_sphere:
        raise ArgumentError(
            f"metric must be euclidean, manhattan, chebyshev or minkowski for boxes, not {metric.name}"
        )
    number = as_number(eps)
    if not number >= 0:
        raise ArgumentError(f"eps must be a finite number of at least 0, not {eps!r}")
    return metric.check_eps(number) if number > 0 else 0.0


def box_table(name: str, boxes: tuple[ArrayLike, ArrayLike], eps: float, metric: Metric) -> ObjectTable:
    """Check boxes that are joined with one eps for all.

    Raises
    ------
    ArgumentError
        The boxes are not two arrays of points, or a lower side is above the upper one.
    """
    if not isinstance(boxes, (tuple, list)) or len(boxes) != 2:
        raise ArgumentError(f"{name} must be Boxes(lower, upper) or a pair of such arrays, not {type(boxes)}")
    lower = check_points(f"{name}.lower", boxes[0])
    upper = check_points(f"{name}.upper", boxes[1])
    if lower.shape != upper.shape:
        raise ArgumentError(
            f"{name}.lower and {name}.upper must have one shape, not {lower.shape} and {upper.shape}"
        )
    wrong = lower > upper
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        raise ArgumentError(
            f"{name}.lower must not be above {name}.upper; in row {row}, column {column} "
            f"{lower[row, column]} is above {upper[row, column]}"
        )
    n = len(lower)
    return ObjectTable(
        Objects(lower, upper, np.full(n, eps)), lower, upper, np.full(n, metric.embedded_eps(eps / 2.0))
    )


def ball_table(name: str, eps_name: str, points: ArrayLike, eps: ArrayLike, metric: Metric) -> ObjectTable:
    """Check points with an eps of their own.

    Raises
    ------
    ArgumentError
        The points are not valid, or an eps is negative, not finite, or cannot be decided by the metric.
    """
    values = check_points(name, points)
    of_each = as_array(eps_name, eps)
    if of_each.shape != (len(values),) or (of_each.size and of_each.dtype.kind not in "fiu"):
        raise ArgumentError(
            f"{eps_name} must be one number per row, {len(values)}, not {of_each.dtype} {of_each.shape}"
        )
    of_each = np.ascontiguousarray(of_each, np.float64)
    wrong = ~(np.isfinite(of_each) & (of_each >= 0.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ArgumentError(f"{eps_name} must be finite and at least 0; row {row} is {of_each[row]}")
    _check_sizes(eps_name, of_each, metric)
    metric.check(values, name)
    embedded = metric.embed(values)
    reach = np.array([metric.embedded_eps(e / 2.0) for e in of_each.tolist()], np.float64)
    return ObjectTable(Objects(values, values, of_each), embedded, embedded, reach)


def _check_sizes(name: str, of_each: Floats, metric: Metric) -> None:
    """Refuse an eps that the metric cannot decide; with a partner of eps 0 the threshold is half of it."""
    positive = np.flatnonzero(of_each)
    if len(positive) == 0:
        return
    smallest = int(positive[np.argmin(of_each[positive])])
    largest = int(np.argmax(of_each))
    for row, threshold in ((smallest, of_each[smallest] / 2.0), (largest, of_each[largest])):
        try:
            metric.check_eps(threshold)
        except ArgumentError as error:
            raise ArgumentError(
                f"{name}: row {row} is {of_each[row]}, too small or too large for exact "
                f"{metric.name} decisions"
            ) from error


def join_objects(
    first: ObjectTable, second: ObjectTable | None, threshold: str, options: JoinOptions, growth: CutOptions
) -> Iterator[Pairs]:
    """Join checked tables: cut and order the objects at once, sweep them while the batches are consumed.

    Parameters
    ----------
    first, second : the tables; a self join has no second one.
    threshold : how near pairs are, as the end of the message that refuses too many.
    options, growth : how to join, and how to grow the tree of cuts.

    Raises
    ------
    ArgumentError
        The tables differ in the number of dimensions.
    BudgetError
        Before the batch with which there are more than ``max_pairs`` pairs.
    """
    n_left = 0
    tables = [first]
    if second is not None:
        check_dimensions(left=first.objects.lower.shape[1], right=second.objects.lower.shape[1])
        n_left = len(first.reach)
        tables.append(second)
    objects = Objects(*(_stacked(column) for column in zip(*(t.objects for t in tables), strict=True)))
    n = len(objects.eps)
    begin = _stacked([t.begin for t in tables])
    end = _stacked([t.end for t in tables])
    reach = _stacked([t.reach for t in tables])
    is_right = np.arange(n) >= n_left if second is not None else np.zeros(n, np.bool_)
    is_self = second is None
    order, cubes = _order(Cubes(*make_cubes(begin, end, reach)), is_right, is_self, growth)

    def batches() -> Iterator[Pairs]:
        counters = options.counters
        found = swept = 0
        add_counts(counters, rows=len(order.row))
        groups = _groups(order)
        sweeps = (_sweep(objects, order, cubes, group, is_self, options) for group in groups)
        with Progress(options.progress, "box_join") as progress:
            for pairs, counts, n_rows in in_order(sweeps, options.n_jobs):
                candidates, computed, largest, n_pairs = counts.tolist()
                add_counts(counters, candidates=candidates, distance_computations=computed, pairs=n_pairs)
                add_counts(counters, largest_stack=largest)
                found += n_pairs
                options.check_limit(found, threshold)
                if n_pairs:
                    yield Pairs(pairs.left, pairs.right - n_left, pairs.distance)
                swept += n_rows
                progress.show(swept / max(1, len(order.row)))

    return batches()


def _stacked(arrays: Sequence[Floats]) -> Floats:
    """The arrays one below the other; one alone is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _order(cubes: Cubes, is_right: Bools, is_self: bool, growth: CutOptions) -> tuple[SweepOrder, Cubes]:
    """Rows by leaf of a tree grown on a sample; also the cubes, those axes first that part them best."""
    n = len(is_right)
    sample = np.arange(n)
    if n > growth.sample_rows:
        sample = np.sort(np.random.default_rng(0).permutation(n)[: growth.sample_rows])
    axes = separating_axes(Cubes(cubes.lower[sample], cubes.upper[sample]), is_right[sample], is_self)
    cubes = Cubes(np.ascontiguousarray(cubes.lower[:, axes]), np.ascontiguousarray(cubes.upper[:, axes]))
    grown = grow_box_tree(
        Cubes(cubes.lower[sample], cubes.upper[sample]),
        is_right[sample],
        is_self,
        rows_per_row=n / len(sample) if n else 1.0,
        row_cost=BOX_NS_PER_ROW,
        candidate_cost=BOX_NS_PER_CANDIDATE,
        max_rows=growth.replication_budget * len(sample),
    )
    tree, n_cuts = grown.tree, grown.n_parts - 1
    while n_cuts and count_rows(cubes, tree) > growth.replication_budget * n:
        n_cuts //= 2  # the sample knew too few of the large cubes
        tree = prune_tree(grown.tree, n_cuts)
    rows = assign_cubes(cubes, tree)
    return sweep_order(rows, n_cuts + 1, cubes, is_right, is_self), cubes


def _groups(order: SweepOrder) -> list[tuple[int, int]]:
    """Leaves (first, end) that are swept together: at most ``_MAX_ROWS_AT_ONCE`` rows, or one leaf."""
    groups = []
    first, n_parts = 0, len(order.axis)
    while first < n_parts:
        end = int(np.searchsorted(order.begin, order.begin[first] + _MAX_ROWS_AT_ONCE, side="right")) - 1
        end = min(max(end, first + 1), n_parts)
        groups.append((first, end))
        first = end
    return groups


_Swept = tuple[Pairs, Ints, int]


def _sweep(
    objects: Objects,
    order: SweepOrder,
    cubes: Cubes,
    group: tuple[int, int],
    is_self: bool,
    options: JoinOptions,
) -> Iterator[_Swept]:
    """Sweep some leaves; yields pairs of objects, counters, and how many rows are done."""
    rows = gather_rows(order, cubes, *group, is_self)
    n = len(rows.row)
    room = min(options.batch_rows, max(1, n * (n - 1) // 2))
    batch = PairBatch(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.float64))
    state = new_state(0)
    decision = options.metric.decision(math.inf)
    while not is_done(state):
        counts = np.zeros(4, np.int64)
        found = box_sweep(state, rows, objects, decision, batch, counts)
        left, right, distance = batch.left[:found], batch.right[:found], batch.distance[:found]
        yield Pairs(left.copy(), right.copy(), distance.copy()), counts, n if is_done(state) else 0
