"""Windows by definition: the last batches as lists, and every question answered from all of their rows."""

from __future__ import annotations

import math
from collections import Counter, deque
from fractions import Fraction
from typing import Any

NAN = "not a number"
"""Stands for NaN, which is not equal to itself."""


def plain(value: Any) -> Any:
    return NAN if isinstance(value, float) and math.isnan(value) else value


def ascending(values: Any) -> list[Any]:
    """Sort values, NaN last."""
    return sorted(value for value in values if value != NAN) + [NAN] * (NAN in values)


class Window:
    def __init__(self, n_batches: int) -> None:
        self.n_batches = n_batches
        self.batches: deque[list[tuple[Any, int]]] = deque()
        self.expired: list[tuple[Any, int]] = []

    def push(self, values: list[Any], row_ids: list[int] | None = None) -> None:
        ids = row_ids if row_ids is not None else [0] * len(values)
        self.batches.append([(plain(value), row) for value, row in zip(values, ids, strict=True)])
        self.expired = self.batches.popleft() if len(self.batches) > self.n_batches else []

    def rows(self) -> list[Any]:
        return [value for batch in self.batches for value, _ in batch]

    def values(self) -> set[Any]:
        return {value for value in self.rows() if value is not None}

    def counts(self) -> list[tuple[Any, int]]:
        counted = Counter(self.rows())
        return [(value, counted[value]) for value in ascending(self.values())]

    def missing(self) -> int:
        return sum(value is None for value in self.rows())

    def new(self) -> list[Any]:
        if not self.batches:
            return []
        newest = {value for value, _ in self.batches[-1]} - {None}
        return ascending(newest - {value for batch in list(self.batches)[:-1] for value, _ in batch})

    def gone(self) -> list[Any]:
        return ascending({value for value, _ in self.expired} - {None} - self.values())

    def quantile(self, q: Fraction) -> Any:
        there = [value for value in self.rows() if value is not None]
        in_order = [value for value in ascending(set(there)) for _ in range(there.count(value))]
        for rank, value in enumerate(in_order, start=1):
            if Fraction(rank, len(in_order)) >= q:
                return value
        return None

    def moments(self) -> tuple[float, float]:
        numbers = [value for value in self.rows() if value is not None]
        if not numbers or any(value == NAN or math.isinf(value) for value in numbers):
            return math.nan, math.nan
        exact = [Fraction(value) for value in numbers]
        mean = sum(exact) / len(exact)
        return float(mean), float(sum((value - mean) ** 2 for value in exact) / len(exact))

    def of(self, value: Any) -> list[int]:
        return [
            row for batch in reversed(self.batches) for its, row in reversed(batch) if its == plain(value)
        ]
