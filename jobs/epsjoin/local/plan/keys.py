"""What the rows of a part are compared by: a mask under planned cuts, a code under regular cuts.

:attr:`epsjoin.local.plan.join_plan.JoinPlan.key` is the one place that asks which of the two a plan has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Bytes, Floats, Ints
from epsjoin.kernels.codes import cube_corners
from epsjoin.kernels.plan.cuts import CutTree, assign, hash_to_unit
from epsjoin.kernels.plan.regular import carry, stack_rows
from epsjoin.kernels.sweep.window import window_rows
from epsjoin.local.metric import Metric
from epsjoin.local.plan.costs import stack_nanoseconds, window_seconds
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.plan.split_rules.encode import Space, encode
from epsjoin.local.plan.split_rules.own_rule import Rule
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import SweepOptions, sweep_stack, sweep_window

Keys = Ints | Bytes


class KeyedRows(NamedTuple):
    """Rows in the parts in which they must be joined, in no particular order.

    Parameters
    ----------
    row : (m,) int64, index of the point.
    part : (m,) int64.
    key : planned cuts: (m,) int64 masks; regular cuts: (m, w) uint8 codes.
    """

    row: Ints
    part: Ints
    key: Keys


class PartRows(NamedTuple):
    """Rows of a part.

    Parameters
    ----------
    points, embedded : (n, d) and (n, e) float64.
    ids : (n,) int64.
    key : of each row.
    is_right : (n,) bool, of two tables: rows of the right one; None: one table.
    """

    points: Floats
    embedded: Floats
    ids: Ints
    key: Keys
    is_right: Bools | None


@dataclass(frozen=True)
class MaskKey:
    """Masks of planned cuts (:mod:`epsjoin.kernels.plan.cuts`)."""

    column: ClassVar[str] = "mask"
    """Column of ``replicas`` that holds the keys."""
    tree: CutTree

    def assign(self, embedded: Floats, ids: Ints, eps: float) -> KeyedRows:
        """Assign rows to the parts that their cubes, of side ``eps``, touch."""
        return KeyedRows(*assign(embedded, hash_to_unit(ids), eps, self.tree))

    def empty(self, n: int) -> Keys:
        """Make an array for the keys of n rows."""
        return np.empty(n, np.int64)

    def join(
        self,
        rows: PartRows,
        part: int,  # noqa: ARG002  # as of CodeKey
        eps: float,
        metric: Metric,
        options: SweepOptions,
    ) -> Iterator[Pairs]:
        """Find the pairs that a part reports; see :func:`epsjoin.local.join.parts.join_part`."""
        reach = metric.embedded_eps(eps)
        projection = choose_projection(rows.embedded, len(rows.ids), reach, metric.norm).projection
        mask = np.asarray(rows.key, np.int64)
        ordered = window_rows(rows.points, rows.embedded, rows.ids, mask, reach, projection, rows.is_right)
        return sweep_window(ordered, metric.decision(eps), options)

    def seconds(self, rows: float, dimensions: int, candidates: float, pairs: float) -> float:
        """Estimate the seconds that one core sweeps."""
        return window_seconds(rows, dimensions, candidates, pairs)


@dataclass(frozen=True)
class CodeKey:
    """Codes of regular cuts (:mod:`epsjoin.kernels.codes`).

    Parameters
    ----------
    space, rule : how cubes become codes.
    boundaries : see :class:`epsjoin.local.plan.join_plan.JoinPlan`.
    """

    column: ClassVar[str] = "code"
    """Column of ``replicas`` that holds the keys."""
    space: Space
    rule: Rule
    boundaries: Bytes

    def assign(self, embedded: Floats, ids: Ints, eps: float) -> KeyedRows:  # noqa: ARG002  # as of MaskKey
        """Assign rows to the parts that the key ranges of their codes touch."""
        coded = encode(embedded, self.space, self.rule)
        carried = carry(coded.codes, self.boundaries)
        return KeyedRows(coded.row[carried.coded], carried.part, coded.codes[carried.coded])

    def empty(self, n: int) -> Keys:
        """Make an array for the keys of n rows."""
        return np.empty((n, self.boundaries.shape[1]), np.uint8)

    def join(
        self, rows: PartRows, part: int, eps: float, metric: Metric, options: SweepOptions
    ) -> Iterator[Pairs]:
        """Find the pairs that a part reports; see :func:`epsjoin.local.join.parts.join_part`."""
        space, n = self.space, len(rows.ids)
        codes = np.ascontiguousarray(rows.key, np.uint8).reshape(n, self.boundaries.shape[1])
        corners = cube_corners(rows.embedded, space.axes, space.low, space.width, space.eps)
        side = None if rows.is_right is None else rows.is_right.astype(np.int8)
        order, stacked = stack_rows(rows.points, rows.embedded, codes, *corners, self.boundaries, part, side)
        return sweep_stack(stacked, rows.ids[order], space.eps, metric.decision(eps), options)

    def seconds(self, rows: float, dimensions: int, candidates: float, pairs: float) -> float:  # noqa: ARG002  # as of MaskKey
        """Estimate the seconds that one core sweeps."""
        return stack_nanoseconds(rows, candidates) / 1e9


Key = MaskKey | CodeKey
