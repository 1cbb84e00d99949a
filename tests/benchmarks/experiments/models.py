"""Figures 3.6 to 3.11: the models on uniform data, and cubes drawn at random beside them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.stats import chisquare

from epsjoin.kernels.arrays import Bools, Floats, Ints

from .claims import Claim, Line, Picture, Result, Table, short, within
from .cost_model import (
    ExpectedWork,
    expected_comparisons,
    expected_work,
    io_cost,
    largest_sort,
)
from .counting import count_work, cubes_within, rows_by_level

D, N = 10, 100_000
ALL_EPS = (1e-4, 1e-3, 1e-2, 1e-1)
ALL_K = range(7)
PAGES = 10_000


def modelled(eps: float, k: int, msl: int, n: int = N, d: int = D) -> ExpectedWork:
    return expected_work(n, d, eps, k, msl)


def improvement(eps: float, k: int, msl: int) -> tuple[float, float]:
    """IF of the model, and rows per point."""
    work = modelled(eps, k, msl)
    return modelled(eps, 0, msl).comparisons / work.comparisons, float(work.left_rows.sum()) / N


def simulated_improvement(eps: float, k: int, msl: int) -> float:
    """IF by lemma 2 from the levels of ``N`` cubes that were drawn: a level without cubes costs nothing."""
    cubes = cubes_within(N, D, eps, seed=0)
    msj, gess = (rows_by_level(cubes, each, msl).astype(float) for each in (0, k))
    return expected_comparisons(msj, msj, D) / expected_comparisons(gess, gess, D)


def levels(runs: int = 200) -> Result:
    """Figure 3.9: frequencies of cubes by level, modelled and drawn."""
    eps = 1e-4
    msj, gess = modelled(eps, 0, 62).left_rows, modelled(eps, 1, 62).left_rows
    drawn = np.zeros((runs, 2, len(msj)), np.int64)
    for run in range(runs):
        cubes = cubes_within(N, D, eps, seed=run)
        for number, k in enumerate((0, 1)):
            drawn[run, number] = rows_by_level(cubes, k, 62)
    counted = drawn.sum(axis=0)
    large = runs * msj >= 5
    p = float(chisquare(_folded(counted[0], large), _folded(runs * msj, large)).pvalue)
    depth = [float(rows @ np.arange(len(rows)) / rows.sum()) for rows in (gess, counted[1])]
    hit = float((drawn[:, 1, 2] > 0).mean())
    x = list(range(len(msj)))
    pictures = [
        Picture(
            name,
            caption,
            "level",
            "cubes of 100,000",
            [
                Line("model", x, model.tolist()),
                Line(f"mean of {runs} sets", x, np.where(found > 0, found / runs, np.nan).tolist()),
            ],
        )
        for name, caption, model, found in (
            ("fig3.9a", "Figure 3.9a: MSJ", msj, counted[0]),
            ("fig3.9b", "Figure 3.9b: GESS, k = 1", gess, counted[1]),
        )
    ]
    return Result(
        [
            Claim(
                "3.9a: model and simulation of MSJ are nearly identical",
                f"χ² of {runs} sets of 100,000 cubes: p = {p:.2f}",
                p > 0.01,
                True,
            ),
            Claim(
                "3.9b: with replication, cubes fall a little deeper than the model says",
                f"mean level {depth[1]:.4f}, model {depth[0]:.4f}",
                depth[1] >= depth[0],
                True,
            ),
            Claim(
                "level 2 is expected to hold 7.2e-6 · 100,000 = 0.72 cubes",
                f"{gess[2]:.3f}",
                within(gess[2], 0.72, 1.01),
                True,
            ),
            Claim(
                "so in 72 % of the simulations one cube lies in level 2",
                f"in {100 * hit:.0f} % of {runs}; Poisson says {100 * -math.expm1(-gess[2]):.0f} %",
                within(hit, 0.72, 1.1),
                False,
            ),
        ],
        pictures,
        counts={
            f"k = {k}: rows in levels 0, 1, … of {runs} sets": found.tolist()
            for k, found in enumerate(counted)
        },
    )


def _folded(rows: Floats | Ints, large: Bools) -> list[float]:
    """The levels with enough cubes, and all others together."""
    rest = [float(rows[~large].sum())] if not large.all() else []
    return [*map(float, rows[large]), *rest]


def comparisons() -> Result:
    """Figure 3.10: IF over k, for msl = 2 and msl = 0."""
    found = {(eps, k, msl): improvement(eps, k, msl) for eps in ALL_EPS for k in ALL_K for msl in (0, 2)}
    drawn = {(eps, k): simulated_improvement(eps, k, 2) for eps in ALL_EPS[:3] for k in range(1, 4)}
    pictures = [
        Picture(
            f"fig3.10{part}",
            f"Figure 3.10{part}: msl = {msl}",
            "k",
            "IF: comparisons of MSJ / of GESS",
            [
                *(Line(f"ε = {eps:g}", ALL_K, [found[eps, k, msl][0] for k in ALL_K]) for eps in ALL_EPS),
                *(
                    Line(f"drawn, ε = {eps:g}", range(1, 4), [drawn[eps, k] for k in range(1, 4)])
                    for eps in ALL_EPS[:3]
                    if msl == 2
                ),
            ],
        )
        for part, msl in (("a", 2), ("b", 0))
    ]
    rows = [
        [
            f"{eps:g}",
            str(msl),
            str(k),
            short(factor),
            f"{rate:.3f}",
            short(drawn[eps, k]) if msl == 2 and (eps, k) in drawn else "–",
        ]
        for (eps, k, msl), (factor, rate) in found.items()
        if 1 <= k <= 5
    ]
    at = {k: found[1e-4, k, 2][0] for k in (1, 2, 3)}
    steady = {eps: found[eps, 4, 0][0] for eps in ALL_EPS[:3]}
    rates = {eps: max(found[eps, k, 2][1] for k in ALL_K) for eps in ALL_EPS[:3]}
    low = max(found[eps, k, 0][1] for eps in ALL_EPS[:3] for k in ALL_K)
    last = found[0.1, 4, 0]
    return Result(
        [
            Claim(
                "3.10a: at ε = 1e-4, IF rises to 1e2 for k = 1",
                f"model {short(at[1])}, drawn {short(drawn[1e-4, 1])}",
                within(at[1], 1e2, 2),
                False,
            ),
            Claim(
                "and to 1.2e8 for k = 2",
                f"model {short(at[2])} for k = 2, {short(at[3])} for k = 3; drawn {short(drawn[1e-4, 2])} "
                "for k = 2, since none of 100,000 cubes is left above",
                within(drawn[1e-4, 2], 1.2e8, 1.5),
                True,
            ),
            Claim(
                "with rising k it reaches 8 orders of magnitude",
                f"{short(found[1e-4, 6, 2][0])}",
                found[1e-4, 6, 2][0] > 1e8,
                True,
            ),
            Claim(
                "for larger ε it falls",
                "; ".join(f"{eps:g}: {short(found[eps, 2, 2][0])}" for eps in ALL_EPS),
                all(found[a, 2, 2][0] > found[b, 2, 2][0] for a, b in pairwise(ALL_EPS)),
                True,
            ),
            Claim(
                "replication below 1 % for ε = 1e-3 and 1e-4",
                f"{100 * (rates[1e-4] - 1):.1f} % at 1e-4, {100 * (rates[1e-3] - 1):.1f} % at 1e-3",
                rates[1e-3] < 1.01,
                False,
            ),
            Claim("below a factor of 2 for ε = 1e-2", f"{rates[1e-2]:.2f}", rates[1e-2] < 2, False),
            Claim(
                "3.10b: msl = 0: about 500 for k >= 3 and ε = 1e-4, 1e-3, 1e-2, constant from there on",
                "; ".join(f"{eps:g}: {factor:.0f}" for eps, factor in steady.items()),
                all(
                    within(v, 500, 1.15) and within(v, found[eps, 6, 0][0], 1.001)
                    for eps, v in steady.items()
                ),
                True,
            ),
            Claim("replication below 11 %", f"{100 * (low - 1):.1f} %", low < 1.11, True),
            Claim(
                "at ε = 0.1 replication 2.85 and IF 95",
                "k = 3, 4, 5: "
                + ", ".join(f"{found[0.1, k, 0][1]:.2f} and {found[0.1, k, 0][0]:.0f}" for k in (3, 4, 5)),
                within(last[1], 2.85, 1.02) and within(last[0], 95, 1.1),
                False,
            ),
            Claim(
                "msl = 0 means: split in level 0 only (strategy 2 is printed as level < msl)",
                f"msl = -1: IF {improvement(1e-4, 3, -1)[0]:g}; msl = 0: {steady[1e-4]:.0f}",
                improvement(1e-4, 3, -1)[0] == 1.0 and steady[1e-4] > 400,
                True,
            ),
        ],
        pictures,
        [
            Table(
                "Improvement over MSJ",
                ["ε", "msl", "k", "IF", "rows per point", "IF of 100,000 cubes drawn"],
                rows,
            )
        ],
    )


def memory() -> Result:
    """Figure 3.11: the expected sweep area, tau, and the largest that is counted."""
    tau = {(eps, k, msl): modelled(eps, k, msl).area / N for eps in ALL_EPS for k in ALL_K for msl in (0, 2)}
    pictures = [
        Picture(
            f"fig3.11{part}",
            f"Figure 3.11{part}: msl = {msl}",
            "k",
            "τ: expected sweep area / rows",
            [Line(f"ε = {eps:g}", ALL_K, [tau[eps, k, msl] for k in ALL_K]) for eps in ALL_EPS],
        )
        for part, msl in (("a", 2), ("b", 0))
    ]
    n, d, eps = 20_000, 4, 0.02
    cubes = cubes_within(n, d, eps, seed=0)
    counted = [count_work(cubes, k, 2) for k in (0, 1)]
    areas = [(work.largest_area, modelled(eps, k, 2, n, d).area) for k, work in enumerate(counted)]
    first = [tau[1e-3, k, 2] for k in range(4)]
    return Result(
        [
            Claim(
                "3.11a: τ falls exponentially in k",
                ", ".join(f"{value:.2g}" for value in first),
                all(a / b > 50 for a, b in pairwise(first)),
                True,
            ),
            Claim(
                "at k = 1 and ε = 1e-3 it is smaller than MSJ's by a factor of 1e-4",
                f"the factor is {first[1] / first[0]:.1e}, the value {first[1]:.1e}: which of them is meant?",
                None,
                None,
            ),
            Claim(
                "3.11b: msl = 0: falls, then stays",
                ", ".join(f"{tau[1e-3, k, 0]:.2g}" for k in range(5)),
                within(tau[1e-3, 3, 0], tau[1e-3, 6, 0], 1.01) and tau[1e-3, 1, 0] < 0.01 * tau[1e-3, 0, 0],
                True,
            ),
            Claim(
                "memory can be estimated by τ (3.6.1.2)",
                "largest area counted / n τ, d = 4, ε = 0.02, k = 0 and 1: "
                + ", ".join(f"{found:,} / {expected:,.0f}" for found, expected in areas),
                all(within(*area, 2) for area in areas),
                True,
            ),
        ],
        pictures,
        counts={
            f"uniform, d = 4, k = {k}, msl = 2: rows, comparisons, largest area": work[1:]
            for k, work in enumerate(counted)
        },
    )


def inputs_and_outputs() -> Result:
    """Figures 3.6 to 3.8: pages that MSJ and GESS read and write beyond the first reading."""
    shares = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.12, 0.15, 0.2)
    files = expected_work(1, 16, 1e-3, 0).left_rows
    pages = [PAGES, PAGES]
    msj = [io_cost("msj", pages, 2 * PAGES * share, files) for share in shares]
    gess = [io_cost("gess", pages, 2 * PAGES * share) for share in shares]
    ratio = dict(zip(shares, (a / b for a, b in zip(msj, gess, strict=True)), strict=True))
    x = [100 * share for share in shares]
    most = largest_sort(512) * 4096 / 2**20
    sizes = [64, 128, 256, 512, 1024, 2048]
    twice = [io_cost("gess", pages, 2 * PAGES * share, omega=2) for share in shares]
    of_twice = [a / b for a, b in zip(twice, msj, strict=True)]
    pictures = [
        Picture(
            "fig3.6",
            "Figure 3.6: merges of MSJ",
            "memory, % of both inputs",
            "more accesses / input pages",
            [Line("MSJ", x, [cost / (2 * PAGES) - 4 for cost in msj])],
            is_log_y=False,
        ),
        Picture(
            "fig3.7",
            "Figure 3.7: sorted in one merge",
            "memory, pages",
            "pages",
            [Line("(m/3 - 1) 2m", sizes, [largest_sort(size) for size in sizes])],
            is_log_x=True,
        ),
        Picture(
            "fig3.8",
            "Figure 3.8: I/O of MSJ / of GESS",
            "memory, % of both inputs",
            "ratio",
            [
                Line("with the factor 2", x, list(ratio.values())),
                Line(
                    "3.11 as printed",
                    x,
                    [
                        (4 + (cost / (2 * PAGES) - 4) / 2) / (other / (2 * PAGES))
                        for cost, other in zip(msj, gess, strict=True)
                    ],
                ),
            ],
            is_log_y=False,
        ),
    ]
    return Result(
        [
            Claim(
                "3.7: 2 MB of memory sort 690 MB in one merge",
                f"{most:.0f} MiB at 4 KB pages",
                within(most, 690, 1.03),
                True,
            ),
            Claim(
                "3.8: GESS needs at most half of the I/O for all sizes of the buffer",
                f"{min(ratio[s] for s in shares if s >= 0.01):.2f} at least from 1 % on; "
                f"{ratio[0.005]:.2f} at 0.5 %, where GESS needs a pass more, too",
                min(ratio.values()) >= 2,
                False,
            ),
            Claim(
                "2.5 times better below 10 %",
                f"{ratio[0.1]:.2f} at 10 %, {ratio[0.07]:.2f} at 7 %",
                ratio[0.07] >= 2.5,
                True,
            ),
            Claim(
                "2.7 and more for smaller buffers",
                f"{ratio[0.05]:.2f} at 5 %, {ratio[0.02]:.2f} at 2 %",
                ratio[0.05] >= 2.7,
                True,
            ),
            Claim(
                "even with 2 rows per point (3.14) the I/O of GESS is below that of MSJ",
                f"of MSJ's {of_twice[-1]:.2f} from 15 % on, {of_twice[4]:.2f} at 5 %, "
                f"{max(of_twice):.2f} at 0.5 %",
                max(of_twice) < 1,
                False,
            ),
        ],
        pictures,
    )
