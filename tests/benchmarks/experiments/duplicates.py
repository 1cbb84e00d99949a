"""Figures 3.29 and 3.30: what the reference point method costs, and how many reports it suppresses."""

from __future__ import annotations

import statistics

import numpy as np

from ..measure import clocked
from .claims import Claim, Line, Picture, Result, Table
from .grids import datasets
from .stack_merge import merge_rows, sweep

K, MSL = 3, 2
"""The text says k = 3; msl = 2 splits more, and so makes more duplicates, than msl = 0."""
ALL_EPS = tuple(round(1e-3 * step, 6) for step in range(1, 11))
"""Ten times the text's: the surface has as many pairs a row there, having no near-copies."""


def reference_points(n: int = 100_000, rounds: int = 5) -> Result:
    """Pairs and seconds with and without the reference point method, over eps."""
    points = datasets(n)["CAD"].make()
    sweep(merge_rows(points[:1000], 1e-3, K, MSL), 1e-3)  # compiles
    found = [_both(points, eps, rounds) for eps in ALL_EPS]
    pairs, reports = ([each[i] for each in found] for i in (0, 1))
    with_it, without = ([each[i] for each in found] for i in (2, 3))
    cost = [100 * (a / b - 1) for a, b in zip(with_it, without, strict=True)]
    few = [c for c, p, r in zip(cost, pairs, reports, strict=True) if r - p < p]
    duplicates = dict(zip(ALL_EPS, (r - p for p, r in zip(pairs, reports, strict=True)), strict=True))
    rows = [[f"{eps:g}", f"{p:,}", f"{r - p:,}"] for eps, p, r in zip(ALL_EPS, pairs, reports, strict=True)]
    seconds = [
        [f"{eps:g}", f"{a:.3f}", f"{b:.3f}", f"{c:+.0f} %"]
        for eps, a, b, c in zip(ALL_EPS, with_it, without, cost, strict=True)
    ]
    return Result(
        [
            Claim(
                "3.30: at the least ε duplicates are few",
                f"{duplicates[1e-3]:,} beside {pairs[0]:,} pairs",
                duplicates[1e-3] < 0.2 * pairs[0],
                True,
            ),
            Claim(
                "their number rises with ε: 1.5e6 at 8 times the least ε, beside 1.8e6 pairs (29 MB)",
                f"{duplicates[8e-3]:,} beside {pairs[7]:,}: {duplicates[8e-3] / pairs[7]:.2f} a pair",
                list(duplicates.values()) == sorted(duplicates.values())
                and duplicates[8e-3] > 0.5 * pairs[7],
                True,
            ),
            Claim(
                "3.29: at the least ε the method costs next to nothing",
                f"{cost[0]:+.0f} % of the merge",
                cost[0] < 30,
                True,
            ),
            Claim(
                "it costs more with more duplicates",
                f"{max(few, default=0):+.0f} % at most while duplicates are fewer than pairs, "
                f"{cost[-1]:+.0f} % at 1e-2",
                None,
                None,
            ),
        ],
        [
            Picture(
                "fig3.30",
                "Figure 3.30: reports",
                "ε",
                "pairs",
                [Line("with reference points", ALL_EPS, pairs), Line("without", ALL_EPS, reports)],
            ),
            Picture(
                "fig3.29",
                "Figure 3.29: seconds of the merge",
                "ε",
                "CPU seconds",
                [Line("with reference points", ALL_EPS, with_it), Line("without", ALL_EPS, without)],
                is_log_y=False,
            ),
        ],
        [Table(f"CAD, {n:,} rows, k = {K}, msl = {MSL}", ["ε", "pairs", "duplicates"], rows)],
        [Table("CPU seconds of the merge", ["ε", "with reference points", "without", "costs"], seconds)],
        {
            f"ε = {eps:g}: pairs, duplicates": [p, duplicates[eps]]
            for eps, p in zip(ALL_EPS, pairs, strict=True)
        },
    )


def _both(points: np.ndarray, eps: float, rounds: int) -> tuple[int, int, float, float]:
    """Pairs, reports without the method, and the median seconds of both, in interleaved rounds."""
    rows = merge_rows(points, eps, K, MSL)
    all_ways = [rows, rows._replace(is_replica=np.zeros_like(rows.is_replica))]
    reports = [0, 0]
    seconds: list[list[float]] = [[], []]
    for _ in range(rounds):
        for way, of in enumerate(all_ways):
            cpu, _, reports[way] = clocked(lambda of=of: sweep(of, eps)[1])
            seconds[way].append(cpu)
    with_it, without = map(statistics.median, seconds)
    return reports[0], reports[1], with_it, without
