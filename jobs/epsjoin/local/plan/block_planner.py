"""The planner of joins by pairs of blocks: cells where a sample says that they prune, and blocks that fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from epsjoin.errors import BudgetError
from epsjoin.kernels.arrays import Bools, Floats, Floats32, Ints, Points
from epsjoin.local.metric import Metric
from epsjoin.local.plan.blocks import BlockCosts, BlockPlan, Cells
from epsjoin.local.plan.costs import BLOCK_NS_PER_TASK
from epsjoin.local.plan.product import MANY_DIMENSIONS, ProductPlan, has_products, let_through
from epsjoin.local.plan.sizes import WORKER_BYTES
from epsjoin.local.plan.ways import Tables, choose_way
from epsjoin.local.product.blas import one_thread
from epsjoin.local.product.rows import FilterSpace, embed, farthest, filter_rows
from epsjoin.params import RunParams

REMEDY = "join a selection of the rows, or take a smaller eps or float32, which need fewer blocks"
"""What to do about too many blocks of frames, by default."""
MAX_TASKS = 10_000
"""Maximum number of pairs of blocks."""
MIN_TASKS = 8
"""Minimum number of pairs of blocks, so that the cores have work; fewer where each would have hardly any."""
_COLUMNS = 8
"""Number of columns of filter rows along which cells are cut: those in which rows vary most."""
_MAX_LEVELS = 7
"""Maximum number of times that cells are halved."""
_SAMPLE_ROWS = 4096
"""Maximum number of rows of each table by which cells are cut."""
_TRIED_ROWS = 1024
"""Maximum number of rows of each table whose pairs are counted by cells."""
_SIGMAS = 4.0
"""Number of standard deviations by which a block may be larger than expected and still fits."""
_ROW_BYTES = 96
"""Bytes of a row of a task beside its coordinates: ids, order, halves, thresholds."""


class _Dealt(NamedTuple):
    """Cells whose rows are dealt to blocks.

    Parameters
    ----------
    cells : the cells; buckets, rows : (s, c), blocks and expected rows of each, for each table.
    is_near : (c, c) bool, the cells that are joined.
    """

    cells: Cells
    buckets: Ints
    rows: Floats
    is_near: Bools

    @property
    def n_tasks(self) -> int:
        """Pairs of blocks."""
        near = float(self.buckets[0] @ self.is_near @ self.buckets[-1])
        if len(self.buckets) == 1:  # a block meets each other block once, and itself
            near = (near + float(self.buckets.sum())) / 2.0
        return int(near)

    @property
    def products(self) -> float:
        """Pairs of rows that are multiplied."""
        near = float(self.rows[0] @ self.is_near @ self.rows[-1])
        return near / 2.0 if len(self.buckets) == 1 else near

    @property
    def sent_rows(self) -> float:
        """Rows that are sent to tasks, each as often as it is sent."""
        return float(sum(self.rows[i] @ self.is_near @ self.buckets[-1 - i] for i in range(len(self.rows))))

    def nanoseconds(self, costs: BlockCosts) -> float:
        """Cost of the tasks, without the pairs that products let through."""
        fixed = (self.n_tasks - 1) * BLOCK_NS_PER_TASK
        return fixed + float(costs.of_tasks(np.array(self.products), np.array(self.sent_rows)))


def plan_blocks(
    tables: Tables,
    product: ProductPlan,
    eps: float,
    metric: Metric,
    item_bytes: int,
    worker_bytes: float,
    expected_pairs: float,
    remedy: str = REMEDY,
) -> BlockPlan:
    """Choose cells and blocks on samples: the cheapest of 1, 2, 4, ... cells.

    Parameters
    ----------
    tables : uniform samples in random order of the tables, with their numbers of rows.
    product : the filter rows.
    eps, metric : threshold and metric.
    item_bytes : bytes of a coordinate as it is sent, 4 or 8.
    worker_bytes : memory of a Python worker.
    expected_pairs : pairs in the result.
    remedy : what the refusal advises.

    Returns
    -------
    BlockPlan
        The same for the same arguments.

    Raises
    ------
    BudgetError
        There would be more than ``MAX_TASKS`` tasks. The message says what they would cost.

    Notes
    -----
    The sample tells the number of a cell's rows, and the hash deals them evenly; two blocks have room for
    four standard deviations of both.
    """
    space, d = product.space, tables.left.shape[1]
    row_bytes = 2 * d * item_bytes + 4 * space.size + _ROW_BYTES
    task_rows = max(2, int((worker_bytes - WORKER_BYTES) // row_bytes))
    samples = [_sample_rows(tables.left, metric, space)]
    n_rows = [float(tables.n_left)]
    if tables.right is not None:
        samples.append(_sample_rows(tables.right, metric, space))
        n_rows.append(float(tables.n_right))
    costs, reach = BlockCosts.of(space, d * item_bytes), farthest(space, metric, eps)
    cells = Cells(np.empty(0, np.int64), np.empty(0, np.float32))
    tried = [_deal(cells, samples, n_rows, reach, task_rows, costs)]
    both = np.concatenate(samples)
    columns = np.argsort(-both.var(axis=0), kind="stable")[:_COLUMNS] if len(both) else np.empty(0, np.int64)
    for _ in range(_MAX_LEVELS):
        cells = _halve(cells, both, columns)
        tried.append(_deal(cells, samples, n_rows, reach, task_rows, costs))
    allowed = [dealt for dealt in tried if dealt.n_tasks <= MAX_TASKS]
    best = min(allowed or tried, key=lambda dealt: dealt.nanoseconds(costs))
    if best.n_tasks > MAX_TASKS:
        raise BudgetError(
            f"the join would take {best.n_tasks:,} pairs of blocks, {MAX_TASKS:,} are allowed: "
            f"{best.products:.3g} products, {best.sent_rows:.3g} rows sent to tasks, "
            f"{best.nanoseconds(costs) / 3.6e12:,.0f} hours of one core; {remedy}"
        )
    tasks, cell_of = _list_tasks(best)
    between = _pairs_between(best.cells, samples, space, metric, eps)
    block_rows = np.repeat((best.rows / best.buckets).ravel(), best.buckets.ravel())
    weights = block_rows[tasks].prod(axis=1) * between[cell_of[tasks[:, 0]], cell_of[tasks[:, 1]]]
    return BlockPlan(
        metric,
        eps,
        space,
        best.cells,
        best.buckets,
        tasks,
        block_rows,
        row_bytes,
        d * item_bytes,
        expected_pairs,
        weights / max(weights.sum(), 1e-300),
        product.survivors,
    )


class Products(NamedTuple):
    """Samples of the tables that are joined by products, and the filter rows."""

    tables: Tables
    way: ProductPlan


def choose_products(
    samples: Sequence[Floats], n_rows: Sequence[int], eps: float, metric: Metric
) -> Products | None:
    """Choose products for points of one set or two; None if the metric has none, or a sweep costs less.

    Parameters
    ----------
    samples, n_rows : a uniform sample of each set in random order, and its number of rows.
    """
    is_wide = samples[0].shape[1] >= MANY_DIMENSIONS and min(map(len, samples)) > 1
    if not is_wide or not has_products(metric):
        return None
    left, right = (samples[0], None) if len(samples) == 1 else samples
    tables = Tables(left, right, n_rows[0], 0 if right is None else n_rows[1])
    with one_thread():
        way = choose_way(tables, eps, metric)
    return Products(tables, way) if isinstance(way, ProductPlan) else None


def plan_products(
    chosen: Products,
    eps: float,
    metric: Metric,
    item_bytes: int,
    worker_bytes: int,
    expected_pairs: float,
    remedy: str = REMEDY,
) -> BlockPlan:
    """Plan the blocks of what :func:`choose_products` chose: see :func:`plan_blocks`."""
    with one_thread():
        return plan_blocks(*chosen, eps, metric, item_bytes, worker_bytes, expected_pairs, remedy)


def plan_run_in_blocks(
    samples: Sequence[Floats],
    n_rows: Sequence[int],
    eps: float,
    metric: Metric,
    params: RunParams,
    expected_pairs: float,
) -> BlockPlan | None:
    """Plan a run in blocks; None if it is to be cut into parts, which costs less or is asked for.

    Raises
    ------
    BudgetError
        There would be more than ``MAX_TASKS`` tasks.
    """
    if params.cuts != "planned" or params.n_parts is not None:
        return None
    chosen = choose_products(samples, n_rows, eps, metric)
    if chosen is None:
        return None
    remedy = "raise worker_memory_mb, so that blocks are larger, or take a smaller eps"
    worker_bytes = params.worker_memory_mb << 20
    return plan_products(chosen, eps, metric, 8, worker_bytes, expected_pairs, remedy)


def _sample_rows(points: Points, metric: Metric, space: FilterSpace) -> Floats32:
    return filter_rows(embed(points[:_SAMPLE_ROWS], metric), space)


def _halve(cells: Cells, rows: Floats32, columns: Ints) -> Cells:
    """Cut each cell at the median of that of some columns in which its rows vary most."""
    found = cells.find(rows)
    column, position = np.zeros(cells.size, np.int64), np.zeros(cells.size, np.float32)
    for cell in range(cells.size):
        inside = rows[found == cell][:, columns]
        if len(inside):
            widest = int(np.argmax(inside.var(axis=0)))
            column[cell], position[cell] = columns[widest], np.median(inside[:, widest])
    return Cells(np.concatenate((cells.column, column)), np.concatenate((cells.position, position)))


def _near_cells(cells: Cells, reach: float) -> Bools:
    """Tell which cells may have rows within reach of one another, by their boxes; (c, c) bool."""
    n_cuts = len(cells.column)
    columns, place = np.unique(cells.column, return_inverse=True)
    shape = 2 * n_cuts + 1, len(columns)
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    for node in range(n_cuts):
        below, above = 2 * node + 1, 2 * node + 2
        low[[below, above]], high[[below, above]] = low[node], high[node]
        high[below, place[node]] = low[above, place[node]] = cells.position[node]
    low, high = low[n_cuts:], high[n_cuts:]
    gap = np.maximum(0.0, np.maximum(low[:, None] - high, low - high[:, None]))
    return np.asarray(np.sqrt((gap * gap).sum(axis=2)) * (1.0 - 1e-12) <= reach)


def _deal(
    cells: Cells,
    samples: list[Floats32],
    n_rows: list[float],
    reach: float,
    task_rows: int,
    costs: BlockCosts,
) -> _Dealt:
    """Deal the rows of cells to blocks: no more than fit, and enough pairs of blocks for the cores."""
    counts = np.array([np.bincount(cells.find(rows), minlength=cells.size) for rows in samples])
    sampled = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    per_row = np.array(n_rows)[:, None] / sampled
    # a sample may have missed rows of a cell, unless there is only one cell
    missed = _SIGMAS * np.sqrt(counts * (1.0 - counts / sampled)) + (3.0 if cells.size > 1 else 0.0)
    highest = np.minimum((counts + missed) * per_row, np.array(n_rows)[:, None])
    is_near, most = _near_cells(cells, reach), task_rows / 2.0
    while True:
        # x + _SIGMAS sqrt(x) is at most most
        fitting = max(1.0, (math.sqrt(most + _SIGMAS**2 / 4.0) - _SIGMAS / 2.0) ** 2)
        buckets = np.maximum(1, np.ceil(highest / fitting)).astype(np.int64)
        dealt = _Dealt(cells, buckets, counts * per_row, is_near)
        wanted = min(MIN_TASKS, dealt.nanoseconds(costs) / BLOCK_NS_PER_TASK - dealt.n_tasks)
        if dealt.n_tasks >= wanted or most < 2.0:
            return dealt
        most = 0.75 * min(most, float(highest.max()))


def _list_tasks(dealt: _Dealt) -> tuple[Ints, Ints]:
    """The two blocks of each task, and the cell of each block."""
    cell = np.concatenate([np.repeat(np.arange(dealt.cells.size), each) for each in dealt.buckets])
    n_left = int(dealt.buckets[0].sum())
    if len(dealt.buckets) == 1:
        near = dealt.is_near[cell[:, None], cell]
        return np.argwhere(np.triu(near)), cell
    tasks = np.argwhere(dealt.is_near[cell[:n_left, None], cell[n_left:]])
    tasks[:, 1] += n_left
    return tasks, cell


def _pairs_between(
    cells: Cells, samples: list[Floats32], space: FilterSpace, metric: Metric, eps: float
) -> Floats:
    """How many pairs rows of cells have with one another, for each pair of rows; (c, c), above 0."""
    left, right = samples[0], samples[-1]
    if len(samples) == 1:
        left, right = left[::2], left[1::2]
    left, right = left[:_TRIED_ROWS], right[:_TRIED_ROWS]
    found, among = cells.find(left), cells.find(right)
    i, j = np.nonzero(let_through(left, right, space, metric, eps))
    shape = cells.size, cells.size
    pairs = np.bincount(found[i] * cells.size + among[j], minlength=cells.size**2).reshape(shape)
    sizes = np.outer(*(np.bincount(each, minlength=cells.size) for each in (found, among)))
    if len(samples) == 1:
        pairs, sizes = pairs + pairs.T, sizes + sizes.T
    # cells without a pair in the sample may have some: they count as a tenth of a pair
    return (pairs + 0.1) / (sizes + 1.0)
