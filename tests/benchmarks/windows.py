"""``make bench-windows``: windows kept up to date against counting anew, and the paper's structures.

Golab, Garg and Özsu (EDBT 2004) measure seconds of Java 1.4 in sections 6.2 and 6.3: maintenance, a histogram
and an intersection of windows by store and index, then rows of a value by ring, AUX, BW and DB. Here their
structures count what they look at, which is the same on every machine, and the order that the paper found
gets a verdict. Seconds are CPU time, in interleaved rounds: a push to a window beside counting all of its
rows.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from epsjoin import JoinWindow, RowWindow, ValueWindow, self_join
from epsjoin.kernels.arrays import Ints
from epsjoin.local.windows.kinds import BY_GROUP, ROW_KINDS, STORES, VALUE_KINDS

from .measure import clocked
from .page import count, machine, put, seconds, spread, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "windows.md"
ROWS = 100_000
"""Rows of a window, as in the paper."""
BATCHES = (50, 500)
DISTINCT = (1_000, 10_000)
LAWS = ("uniform", "power law")
GROUPS = 50
GOALS = {50: 5.0, 500: 10.0}
"""How many times faster than counting anew a push must be, by the number of batches."""


def draw(n: int, n_values: int, law: str, seed: int = 0) -> Ints:
    """Draw values, each as frequent as any (uniform), or the i-th as frequent as 1 / i (power law)."""
    generator = np.random.default_rng(seed)
    if law == "uniform":
        return generator.integers(0, n_values, n)
    weights = 1 / np.arange(1, n_values + 1)
    return generator.permutation(n_values)[generator.choice(n_values, n, p=weights / weights.sum())]


def pushes_against_counting_anew(n_rows: int, rounds: int) -> list[str]:
    """CPU time of replacing a tenth of a window's batches, by pushes and by counting each window anew."""
    rows = []
    for n_batches, n_values, law, kind in product(BATCHES, DISTINCT, LAWS, ("numbers", "texts")):
        size = n_rows // n_batches
        steps = max(1, n_batches // 10)
        values: npt.NDArray[Any] = draw(n_rows + steps * size, n_values, law)
        if kind == "texts":
            values = np.array([f"type {number}" for number in values.tolist()], object)
        ratios = []
        for _ in range(rounds):
            window = ValueWindow(n_batches)
            for begin in range(0, n_rows, size):
                window.push(values[begin : begin + size])
            pushed = counted = 0.0
            for end in range(n_rows + size, len(values) + 1, size):
                pushed += clocked(partial(window.push, values[end - size : end])).cpu
                counted += clocked(partial(ValueWindow.count, values[end - n_rows : end])).cpu
            ratios.append(counted / pushed)
        verdict = "holds" if statistics.median(ratios) >= GOALS[n_batches] else "does not hold"
        times = [f"{1000 * total / steps:.2f}" for total in (counted, pushed)]
        rows.append([kind, str(n_batches), count(n_values), law, *times, spread(ratios), verdict])
    head = ["of", "batches", "values", "drawn", "anew, ms", "push, ms", "times faster"]
    return table([*head, "at least 5 (50), 10 (500)"], rows)


def structures(n_rows: int, n_batches: int, n_values: int, law: str) -> dict[str, int]:
    """Values looked at per row by each store and index, while all batches of a full window are replaced."""
    size = n_rows // n_batches
    values = draw(2 * n_rows, n_values, law)
    edges = np.linspace(0, n_values, GROUPS + 1)[1:-1]
    found = {}
    for kind in VALUE_KINDS:
        work: dict[str, int] = {}
        window = ValueWindow(n_batches, edges if kind == BY_GROUP else None, kind=kind, counters=work)
        for begin in range(0, 2 * n_rows, size):
            if begin == n_rows:
                work.clear()
            window.push(values[begin : begin + size])
        found[kind] = work["probes"] // n_rows
    return found


def table_6_2(n_rows: int) -> tuple[list[str], bool]:
    rows, holds = [], True
    for n_values in (n_rows // 100, n_rows // 10):
        for law in LAWS:
            found = structures(n_rows, 50, n_values, law)
            is_so = all(found[f"{store} L"] > found[f"{store} T"] for store in STORES)
            is_least = found[BY_GROUP] == min(found.values())
            holds &= is_so and is_least
            rows.append(
                [
                    count(n_values),
                    law,
                    *(count(number) for number in found.values()),
                    *("holds" if each else "does not hold" for each in (is_so, is_least)),
                ]
            )
    return table(["values", "drawn", *found, "L > T", "G least"], rows), holds


def table_6_3(n_rows: int) -> tuple[list[str], bool]:
    rows, holds = [], True
    for n_values in (n_rows // 100, n_rows // 10):
        for law in LAWS:
            size = n_rows // 50
            values = draw(2 * n_rows, n_values, law)
            followed, asked = [], []
            for kind in ROW_KINDS:
                work: dict[str, int] = {}
                window = RowWindow(50, kind=kind, counters=work)
                for begin in range(0, 2 * n_rows, size):
                    if begin == n_rows:
                        work.clear()
                    window.push(values[begin : begin + size], np.arange(begin, begin + size))
                followed.append(work["links_followed"])
                for value in range(n_values):
                    window.of(value)
                asked.append(work["links_of_queries"])
            is_so = all(one > other for one, other in pairwise(followed))
            stale = asked[3] - asked[2]
            holds &= is_so and stale <= n_values
            rows.append(
                [
                    count(n_values),
                    law,
                    *(f"{number / n_rows:.2f}" for number in followed),
                    "holds" if is_so else "does not hold",
                    count(stale),
                    "holds" if stale <= n_values else "does not hold",
                ]
            )
    head = ["values", "drawn", "ring", "AUX", "BW", "DB", "ring > AUX > BW > DB"]
    return table([*head, "rows of DB that have left", "at most one per value"], rows), holds


def rolling_join(n_rows: int, rounds: int) -> list[str]:
    """CPU time of a batch of 2 % new rows, joined with the window, and of joining the window anew."""
    rows = []
    for n_dimensions, eps in ((2, 0.003), (8, 0.15)):
        points = np.random.default_rng(n_dimensions).random((n_rows + n_rows // 50, n_dimensions))
        size = n_rows // 50
        work: dict[str, int] = {}
        window = JoinWindow(eps, 50, counters=work)
        for begin in range(0, n_rows, size):
            window.push(points[begin : begin + size], np.arange(begin, begin + size))
        by_push, anew = [], []
        for step in range(rounds):
            ids = np.arange(n_rows + step * size, n_rows + (step + 1) * size)
            work.clear()
            by_push.append(clocked(partial(window.push, points[n_rows:], ids)).cpu)
            whole: dict[str, int] = {}
            anew.append(clocked(partial(self_join, points[:n_rows], eps, counters=whole)).cpu)
        pushed, joined = statistics.median(by_push), statistics.median(anew)
        rows.append(
            [
                str(n_dimensions),
                count(work["candidates"]),
                count(whole["candidates"]),
                seconds(pushed),
                seconds(joined),
                f"{joined / pushed:.1f}",
            ]
        )
    head = ["dimensions", "candidates of a push", "anew", "push, s", "anew, s", "times faster"]
    return table(head, rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=1, help="a window of a SCALEth of the rows; prints only")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(arguments)
    n_rows = ROWS // asked.scale
    pushes = pushes_against_counting_anew(n_rows, asked.rounds)
    stores, are_ordered = table_6_2(n_rows // 10)
    links, are_fewer = table_6_3(n_rows // 10)
    lines = [
        f"Measured on {machine()}.",
        "",
        f"### A push beside counting {count(n_rows)} rows anew",
        "",
        *pushes,
        "",
        f"### Section 6.2: values looked at per row, {count(n_rows // 10)} rows in 50 batches",
        "",
        *stores,
        "",
        f"### Section 6.3: links followed per row, {count(n_rows // 10)} rows in 50 batches",
        "",
        *links,
        "",
        f"### The pairs of a batch, 2 % of {count(n_rows)} rows",
        "",
        *rolling_join(n_rows, asked.rounds),
    ]
    if asked.scale == 1:
        put(PAGE, "\n".join(lines))
    else:
        sys.stdout.write("\n".join(lines) + "\n")
    return 0 if are_ordered and are_fewer else 1


if __name__ == "__main__":
    raise SystemExit(main())
