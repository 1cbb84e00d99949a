"""Best matches as sets of rows, for tests that compare those of frames with those of the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import epsjoin

Row = tuple[int | None, int | None, int, tuple[float, ...]]
"""Ids, for whom the pair is best, values; no id and no values where there is no partner."""


def of_library(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    left_ids: NDArray[np.int64],
    right_ids: NDArray[np.int64],
    orders: Sequence[Any],
    how: Any,
    take: Any = "all",
) -> list[Row]:
    """The rows of the library on tables by rising id, so that its first partner has the smallest."""
    x, y = np.argsort(left_ids), np.argsort(right_ids)
    ordered = [
        epsjoin.Subset(order.left_masks[x], order.right_masks[y])
        if isinstance(order, epsjoin.Subset)
        else order
        for order in orders
    ]
    best = epsjoin.bestmatch_join(left[x], right[y], how=how, orders=ordered, take=take)
    rows: list[Row] = []
    for i, j, values, best_for in zip(
        best.left.tolist(), best.right.tolist(), best.values.tolist(), best.best_for.tolist(), strict=True
    ):
        is_pair = i >= 0 and j >= 0
        ids = (int(left_ids[x[i]]) if i >= 0 else None, int(right_ids[y[j]]) if j >= 0 else None)
        rows.append((*ids, best_for, tuple(values) if is_pair else ()))
    return rows
