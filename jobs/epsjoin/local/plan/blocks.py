"""Blocks of rows whose pairs are joined by products, and which rows are in which block.

A *cell* is a box in the first columns of filter rows. Cells that lie farther apart than eps are not joined.
The rows of a cell are dealt to *blocks*, by a hash of their ids, so that two blocks fit a worker: without
structure there is one cell, and all pairs of blocks are joined. Each pair of blocks is a task, and every row
goes to all tasks of its block. A row is in one block, so two rows meet in one task, once.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Floats32, Ints, Points
from epsjoin.kernels.plan.cuts import hash_to_unit
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.costs import (
    BLOCK_NS_PER_BYTE,
    BLOCK_NS_PER_TASK,
    PRODUCT_NS_PER_COORDINATE,
    PRODUCT_NS_PER_PAIR,
    PRODUCT_NS_PER_SURVIVOR_TERM,
    PRODUCT_NS_PER_TERM,
)
from epsjoin.local.plan.join_plan import ExpectedParts
from epsjoin.local.product.rows import FilterSpace, embed, filter_rows

BLOCKS = "blocks"
"""The kind of these plans, beside the kinds of cuts."""


class Cells(NamedTuple):
    """A complete binary tree of cuts; its leaves are the cells, numbered by rising coordinates.

    Parameters
    ----------
    column, position : (c - 1,) int64 and float32, the cuts in the order of a heap: a filter row lies above
        one where its value in this column is at least this position.
    """

    column: Ints
    position: Floats32

    @property
    def size(self) -> int:
        """Number of cells, c."""
        return len(self.column) + 1

    def find(self, rows: Floats32) -> Ints:
        """Number of the cell of each filter row; (n,) int64."""
        node = np.zeros(len(rows), np.int64)
        for _ in range(self.size.bit_length() - 1):
            is_above = rows[np.arange(len(rows)), self.column[node]] >= self.position[node]
            node = 2 * node + 1 + is_above
        return node - len(self.column)


class BlockCosts(NamedTuple):
    """What joins of blocks cost, in nanoseconds of one core.

    Parameters
    ----------
    per_product, per_sent_row : for a pair of rows that is multiplied, for a row that a task gets.
    """

    per_product: float
    per_sent_row: float

    @classmethod
    def of(cls, space: FilterSpace, sent_bytes: int) -> BlockCosts:
        """The costs for these filter rows, and for rows of this number of bytes."""
        d, k, m = len(space.centre), space.size, len(space.axes)
        return cls(
            PRODUCT_NS_PER_PAIR + PRODUCT_NS_PER_TERM * k,
            d * (PRODUCT_NS_PER_COORDINATE + 2.0 * PRODUCT_NS_PER_TERM * m) + sent_bytes * BLOCK_NS_PER_BYTE,
        )

    def of_tasks(self, products: Floats, rows: Floats) -> Floats:
        """Nanoseconds of tasks with these products and rows, without the pairs that products let through."""
        return products * self.per_product + rows * self.per_sent_row + BLOCK_NS_PER_TASK


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """Which rows are in which block, and which blocks are joined.

    Made by :func:`epsjoin.local.plan.block_planner.plan_blocks`. It takes some hundred KB; 3.8 MB with 255
    axes of 1,536 dimensions.

    Parameters
    ----------
    metric, eps : Euclid or cosine, and its threshold.
    space : the filter rows.
    cells : the cells.
    buckets : (s, c) int64, blocks of each cell, for each of s tables; blocks are numbered in this order.
    tasks : (t, 2) int64, the two blocks of each task. In a self join a block also meets itself.
    block_rows : (b,) float64, expected rows of each block.
    row_bytes, sent_bytes : bytes of a row of a task in a worker's memory, and on its way there.
    expected_pairs : pairs in the result.
    fractions : (t,) float64, each task's fraction of them.
    survivors : pairs that products let through.
    """

    metric: Metric
    eps: float
    space: FilterSpace
    cells: Cells
    buckets: Ints
    tasks: Ints
    block_rows: Floats
    row_bytes: int
    sent_bytes: int
    expected_pairs: float
    fractions: Floats
    survivors: float

    @property
    def kind(self) -> str:
        """``BLOCKS``."""
        return BLOCKS

    def get_metric(self) -> Metric:
        """Return the plan's metric."""
        return self.metric

    def to_json(self) -> str:
        """Write the plan as one JSON object; :meth:`from_json` reads the same plan, bit for bit."""
        arrays = {
            "centre": self.space.centre,
            "axes": self.space.axes,
            **self.cells._asdict(),
            **{name: getattr(self, name) for name in _ARRAYS},
        }
        return json.dumps(
            {
                "kind": BLOCKS,
                "metric": self.metric.name,
                "radius": self.space.radius,
                **{name: getattr(self, name) for name in _NUMBERS},
                **{name: _to_text(array) for name, array in arrays.items()},
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> BlockPlan:
        """Read the plan that :meth:`to_json` wrote.

        Raises
        ------
        ArgumentError
            The text is not such a plan.
        """
        try:
            read = json.loads(text)
            arrays: dict[str, Any] = {
                name: _from_text(read[name]) for name in ("centre", "axes", *Cells._fields, *_ARRAYS)
            }
            return cls(
                metric=get_metric(read["metric"]),
                space=FilterSpace(arrays["centre"], read["radius"], arrays["axes"]),
                cells=Cells(*(arrays[name] for name in Cells._fields)),
                **{name: arrays[name] for name in _ARRAYS},
                **{name: read[name] for name in _NUMBERS},
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(f"this is no plan of blocks: {error}") from error

    @property
    def dimensions(self) -> int:
        """Coordinates of a point."""
        return len(self.space.centre)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.block_rows)

    @property
    def n_parts(self) -> int:
        """Number of tasks, which are the parts of this join."""
        return len(self.tasks)

    @property
    def n_stored_parts(self) -> int:
        """Number of values of the column ``part`` of ``replicas``, which names the block here."""
        return self.n_blocks

    @property
    def is_self(self) -> bool:
        """Whether one table is joined with itself."""
        return len(self.buckets) == 1

    @cached_property
    def products(self) -> Floats:
        """Expected pairs of rows that each task multiplies; (t,)."""
        left, right = self.block_rows[self.tasks].T
        return np.asarray(np.where(self.tasks[:, 0] == self.tasks[:, 1], left * left / 2.0, left * right))

    @cached_property
    def parts(self) -> ExpectedParts:
        """What is expected of each task."""
        left, right = self.block_rows[self.tasks].T
        rows = np.where(self.tasks[:, 0] == self.tasks[:, 1], left, left + right)
        of_survivors = self.survivors * PRODUCT_NS_PER_SURVIVOR_TERM * len(self.space.centre)
        nanoseconds = BlockCosts.of(self.space, self.sent_bytes).of_tasks(self.products, rows)
        return ExpectedParts(
            rows, self.fractions * self.expected_pairs, (nanoseconds + self.fractions * of_survivors) / 1e9
        )

    @property
    def expected_rows(self) -> float:
        """Rows that are sent to tasks, each as often as it is sent."""
        return float(self.parts.rows.sum())

    @property
    def expected_stored_rows(self) -> float:
        """Rows of the table ``replicas`` of a run: a block is stored once, however many tasks read it."""
        return float(self.block_rows.sum())

    @property
    def expected_part_rows(self) -> float:
        """Rows of the largest task."""
        return float(self.parts.rows.max())

    @property
    def expected_candidates(self) -> float:
        """Pairs of rows that are multiplied."""
        return float(self.products.sum())

    @property
    def expected_seconds(self) -> float:
        """Seconds of one core, by the costs of :mod:`epsjoin.local.plan.costs`."""
        return float(self.parts.seconds.sum())

    @cached_property
    def tasks_of(self) -> list[list[int]]:
        """The tasks of each block, ascending."""
        tasks: list[list[int]] = [[] for _ in self.block_rows]
        for task, blocks in enumerate(self.tasks.tolist()):
            for block in set(blocks):
                tasks[block].append(task)
        return tasks

    def blocks_of(self, points: Points, ids: Ints, *, is_right: bool = False) -> Ints:
        """Number of the block of each row; (n,) int64.

        Parameters
        ----------
        points : (n, d), some rows, which are converted to float64 all at once. Not modified.
        ids : (n,) int64.
        is_right : whether these are rows of the right one of two tables.
        """
        cell = np.zeros(len(ids), np.int64)
        if self.cells.size > 1:
            cell = self.cells.find(filter_rows(embed(points, self.metric), self.space))
        first = (np.cumsum(self.buckets) - self.buckets.ravel()).reshape(self.buckets.shape)
        of_cell = self.buckets[int(is_right), cell]
        bucket: Ints = (hash_to_unit(ids) * of_cell).astype(np.int64)
        return np.asarray(first[int(is_right), cell] + bucket)


_ARRAYS = ("buckets", "tasks", "block_rows", "fractions")
_NUMBERS = ("eps", "row_bytes", "sent_bytes", "expected_pairs", "survivors")


def _to_text(array: NDArray[Any]) -> dict[str, Any]:
    """An array in JSON: its bytes, little-endian, in base 64."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "type": little.dtype.str,
        "shape": array.shape,
        "base64": base64.b64encode(little.tobytes()).decode(),
    }


def _from_text(read: dict[str, Any]) -> NDArray[Any]:
    data = np.frombuffer(base64.b64decode(read["base64"], validate=True), np.dtype(read["type"]))
    return data.astype(data.dtype.newbyteorder("=")).reshape(read["shape"])
