"""Small random cases of best matches in which ties abound, and what the definition says of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from epsjoin import Closest, Own, OwnOrder, Subset
from epsjoin.kernels.arrays import Floats
from oracles import bestmatch as twin
from oracles.join import distance

METRICS = ("euclidean", "manhattan", "chebyshev", "cosine", "haversine")
KINDS = ("columns", "closest", "own", "subset", "own order", "mixed")


class Case(NamedTuple):
    """Arguments of a best match, and the same criteria for the oracle.

    These read the rows when they are asked, since a later criterion may move a row to where it is defined.
    """

    left: Floats
    right: Floats
    arguments: dict[str, Any]
    criteria: list[twin.Criterion]

    def best(self) -> twin.Best:
        """What the definition says."""
        return twin.best_matches(len(self.left), len(self.right), self.criteria)


def rows_of(best):
    return list(zip(best.left.tolist(), best.right.tolist(), best.best_for.tolist(), strict=True))


def make_case(kind: str, seed: int) -> Case:
    """A case of up to eight rows on either side, on a coarse grid, with one to four columns."""
    random = np.random.default_rng([KINDS.index(kind), seed])
    n, m = random.integers(0, 9, 2).tolist()
    d = int(random.integers(1, 5)) if kind == "columns" else int(random.integers(2, 5))
    step = random.choice([0.5, 0.1, 1.0])  # tenths are not exact: |x - y| = eps is decided by float64
    left, right = (random.integers(-3, 4, (rows, d)) * step for rows in (n, m))
    case = _Maker(left, right, random, step)
    if kind == "columns":
        eps = random.choice([0.0, step, 2 * step, 3 * step, math.inf], d)
        case.criteria = [case.column(column, eps[column]) for column in range(d)]
        return Case(left, right, {"eps": eps}, case.criteria)
    wanted = {
        "closest": ["closest", "metric"],
        "own": ["closest", "own"],
        "subset": ["closest", "subset"],
        "own order": ["closest", "own order"],
        "mixed": random.choice(["metric", "own", "subset", "own order"], 3).tolist(),
    }[kind]
    for each in wanted:
        case.add(each)
    return Case(left, right, {"orders": case.orders}, case.criteria)


class _Maker:
    def __init__(self, left: Floats, right: Floats, random: np.random.Generator, step: float) -> None:
        self.left, self.right, self.random, self.step = left, right, random, step
        self.orders: list[Any] = []
        self.criteria: list[twin.Criterion] = []

    def column(self, column: int, eps: float) -> twin.Criterion:
        x, y = self.left[:, column], self.right[:, column]
        return twin.closest(lambda i, j: abs(float(x[i]) - float(y[j])), eps)

    def add(self, kind: str) -> None:
        {
            "closest": self._closest,
            "metric": self._metric,
            "own": self._own,
            "subset": self._subset,
            "own order": self._own_order,
        }[kind]()

    def _closest(self) -> None:
        column = int(self.random.integers(self.left.shape[1]))
        eps = float(self.random.choice([0.0, self.step, 3 * self.step, math.inf]))
        self.orders.append(Closest(column, eps=eps))
        self.criteria.append(self.column(column, eps))

    def _metric(self) -> None:
        metric = str(self.random.choice(METRICS))
        columns = self.random.choice(self.left.shape[1], 2, replace=False).tolist()
        eps = float(self.random.choice([self.step, 2 * self.step, math.inf]))
        if metric == "cosine":  # not defined at 0
            for side in (self.left, self.right):
                side[(side[:, columns] == 0).all(axis=1), columns[0]] = self.step
            eps /= 4
        if metric == "haversine":
            eps *= 111.2
        x, y = self.left, self.right
        self.orders.append(Closest(columns, eps=eps, metric=metric))
        self.criteria.append(
            twin.closest(lambda i, j: distance(x[i, columns].tolist(), y[j, columns].tolist(), metric), eps)
        )

    def _own(self) -> None:
        x, y = self.left[:, 0], self.right[:, 1]
        self.orders.append(Own(lambda left, right: -left[:, 0] - 2.0 * right[:, 1]))
        self.criteria.append(twin.own(lambda i, j: -x[i] - 2.0 * y[j]))

    def _subset(self) -> None:
        shift, words = int(self.random.choice([0, 62])), int(self.random.integers(1, 3))
        masks = [self.random.integers(0, 8, (len(side), words)) for side in (self.left, self.right)]
        bits = [each.astype(np.uint64) << np.uint64(shift) for each in masks]
        sets = [
            [
                frozenset((w, b) for w, word in enumerate(row) for b in range(64) if word >> b & 1)
                for row in of
            ]
            for of in (each.tolist() for each in bits)
        ]
        self.orders.append(Subset(*bits))
        self.criteria.append(twin.subset(*sets))

    def _own_order(self) -> None:
        """Smaller |l - r| is better in column 0, where column 1 of the right rows has the same sign."""
        x, y = self.left, self.right

        def of_pairs(pairs: Any, others: Any) -> Any:
            (left, right), (other_left, other_right) = pairs, others
            nearer = np.abs(left[:, 0] - right[:, 0]) <= np.abs(other_left[:, 0] - other_right[:, 0])
            return nearer & (np.sign(right[:, 1]) == np.sign(other_right[:, 1]))

        def of_two(pair: tuple[int, int], other: tuple[int, int]) -> bool:
            (i, j), (k, o) = pair, other
            nearer = abs(x[i][0] - y[j][0]) <= abs(x[k][0] - y[o][0])
            return nearer and bool(np.sign(y[j][1]) == np.sign(y[o][1]))

        self.orders.append(OwnOrder(of_pairs))
        self.criteria.append(twin.own_order(of_two))
