"""How long sorts of one column take, by digits (``epsjoin.kernels.sorting``) and by NumPy; prints a table.

``PYTHONPATH=jobs:tests python -m benchmarks.sorting``; with ``NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL
AVX512_SPR"`` NumPy sorts without AVX-512.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.sorting import argsort, sort_numbers

from .page import count, machine, table

SIZES = (1 << 10, 1 << 14, 1_300_000, 4_000_000)
ROUNDS = 5

Column = NDArray[np.generic]
WAYS: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sort, int64": (sort_numbers, lambda column: column.sort()),
    "sort, uint32": (sort_numbers, lambda column: column.sort()),
    "stable order, float64": (argsort, lambda column: np.argsort(column, kind="stable")),
    "order, float64": (argsort, np.argsort),
}
"""What is asked for, and who answers: digits, then NumPy."""


def make(way: str, n: int) -> Column:
    random = np.random.default_rng(0)
    if "float" in way:
        return random.standard_normal(n)
    return random.integers(0, 16 * n, n).astype(way.split()[-1])


def seconds_of(call: Callable[[Any], Any], column: Column) -> float:
    """CPU seconds of a call on a copy."""
    copied = column.copy()
    began = time.process_time()
    call(copied)
    return time.process_time() - began


def main() -> int:
    rows = []
    for way, calls in WAYS.items():
        for n in SIZES:
            column = make(way, n)
            taken: list[list[float]] = [[], []]
            for _ in range(ROUNDS + 1):  # the first loads what the others use
                for times, call in zip(taken, calls, strict=True):
                    times.append(seconds_of(call, column))
            digits, numpy_ = (1e9 * float(np.median(times[1:])) / n for times in taken)
            rows.append([way, count(n), f"{digits:.1f}", f"{numpy_:.1f}", f"{numpy_ / digits:.1f}"])
    print(f"{machine()}. CPU ns a number, the median of {ROUNDS} in turns.\n")
    print("\n".join(table(["", "numbers", "digits", "NumPy", "times faster"], rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
