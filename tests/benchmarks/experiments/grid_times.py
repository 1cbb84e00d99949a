"""Figures 3.12 to 3.16: seconds over k and msl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from epsjoin import self_join

from ..measure import clocked
from .claims import Claim, Line, Picture, Result, Table, within
from .counting import cubes_of
from .grids import ALL_K, ALL_MSL, MAX_ROWS_PER_POINT, datasets, grid_of, rules
from .stack_merge import seconds_of

Seconds = dict[tuple[int, int], float]


def time_grid(name: str, n: int | None, eps: float = 1e-3) -> tuple[Seconds, int]:
    """Seconds of all rules, infinity where one is refused, and the pairs, which are those of every rule."""
    points = datasets(n)[name].make()
    grid = grid_of(name, n, eps)
    seconds_of(points[:1000], eps, 1, 1)  # compiles
    found, pairs = {}, set()
    for k, msl in rules():
        if grid[k, msl] is None:
            found[k, msl] = float("inf")
            continue
        found[k, msl], some = seconds_of(points, eps, k, msl)
        pairs.add(some)
    assert len(pairs) == 1, "the pairs depend on the rule"
    return found | {(0, msl): found[0, 0] for msl in ALL_MSL}, pairs.pop()


FAR_MSL = (6, 7)
"""What the legends of 3.14 to 3.16 have beyond the grid."""


def _time_far(name: str, n: int | None, msl: int, eps: float = 1e-3) -> float:
    """Seconds of the largest k; infinity where the rule makes too many rows."""
    points = datasets(n)[name].make()
    if cubes_of(points, eps).is_too_many(ALL_K[-1], msl, MAX_ROWS_PER_POINT):
        return float("inf")
    return seconds_of(points, eps, ALL_K[-1], msl)[0]


def _claim_of_default(n: int | None, cad: Seconds, eps: float = 1e-3) -> Claim:
    """How long the sweep of the library takes, for which k and msl do not count: no rule is given."""
    points = datasets(n)["CAD"].make()
    self_join(points[:1000], eps)  # compiles
    seconds = clocked(lambda: self_join(points, eps)).cpu
    return Claim(
        "3.12, 3.13: the 45 times are a property of the row-by-row merge (said here, not in the text)",
        f"the library's window sweep, planned and without a rule: {seconds:.2f} s; MSJ {cad[0, 0]:.2f} s, "
        f"the best rule {min(cad.values()):.2f} s",
        seconds < min(cad.values()),
        True,
    )


def times(n: int | None = None) -> Result:
    """Figures 3.12 to 3.16: seconds over k and msl."""
    both = {name: time_grid(name, n) for name in datasets(n)}
    found = {name: seconds for name, (seconds, _) in both.items()}
    far = {name: [_time_far(name, n, msl) for msl in FAR_MSL] for name in ("CT", "CM", "CH")}
    return Result(
        [*_claims(found, far), _claim_of_default(n, found["CAD"])],
        _pictures(found),
        timed=_tables(found),
        counts={f"{name}: pairs": [pairs] for name, (_, pairs) in both.items()},
    )


def _pictures(found: Mapping[str, Seconds]) -> list[Picture]:
    names = {"CAD": "3.13", "CT": "3.14", "CM": "3.15", "CH": "3.16"}
    return [
        Picture(
            f"fig{names[name]}",
            f"Figure {names[name]}: {name}, CPU seconds",
            "k",
            "CPU seconds",
            [
                Line(
                    f"msl = {msl}",
                    ALL_K,
                    [grid[k, msl] if np.isfinite(grid[k, msl]) else float("nan") for k in ALL_K],
                )
                for msl in ALL_MSL
            ],
        )
        for name, grid in found.items()
    ]


def _tables(found: Mapping[str, Seconds]) -> list[Table]:
    return [
        Table(
            f"{name}: CPU seconds of replicating, sorting and merging",
            ["k", *(f"msl = {msl}" for msl in ALL_MSL)],
            [
                [
                    str(k),
                    *(f"{grid[k, msl]:.2f}" if np.isfinite(grid[k, msl]) else "refused" for msl in ALL_MSL),
                ]
                for k in ALL_K
            ],
        )
        for name, grid in found.items()
    ]


def _claims(found: Mapping[str, Seconds], far: Mapping[str, Sequence[float]]) -> list[Claim]:
    cad = found["CAD"]
    least, k, msl = min((value, *rule) for rule, value in cad.items())
    flat = [cad[k, 0] for k in (3, 4, 5)]
    by_msl = {name: [min(grid[k, msl] for k in ALL_K[1:]) for msl in ALL_MSL] for name, grid in found.items()}
    best = {name: values.index(min(values)) for name, values in by_msl.items()}
    rise = {
        name: max(max(grid[k, 5] for k in ALL_K[1:]) / min(values), 1.0)
        for (name, values), grid in zip(by_msl.items(), found.values(), strict=True)
    }
    others = ("CT", "CM", "CH")
    return [
        Claim(
            "3.12, CAD, msl = 0: constant from k = 3 on",
            ", ".join(f"{v:.2f} s" for v in flat),
            within(min(flat), max(flat), 1.3),
            True,
        ),
        Claim(
            "k >= 3 is 45 times faster than MSJ, the best rule (msl = 2, k = 5) 50 times",
            f"{cad[0, 0] / cad[3, 0]:.1f} times for msl = 0, {cad[0, 0] / least:.1f} times at best "
            f"(k = {k}, msl = {msl}: {cad[0, 0]:.2f} s became {least:.2f} s)",
            cad[0, 0] / least >= 45,
            False,
        ),
        Claim(
            "3.13: the least lies at msl = 1 to 3, then it rises",
            f"least at msl = {best['CAD']}; msl = 5: {rise['CAD']:.1f} times",
            1 <= best["CAD"] <= 3 and rise["CAD"] > 1.2,
            True,
        ),
        Claim(
            "3.14-3.16: msl = 0: k = 1 saves 30 to 40 %, constant from k = 2 on",
            ", ".join(f"{100 - 100 * found[name][1, 0] / found[name][0, 0]:.0f} %" for name in others),
            None,
            None,
        ),
        Claim(
            "msl > 0: faster by a factor of 2 to 3, least at msl = 2 or 3",
            "; ".join(
                f"{name}: {found[name][0, 0] / min(by_msl[name]):.1f} at msl = {best[name]}"
                for name in others
            ),
            None,
            None,
        ),
        *(
            Claim(
                f"{name}: for large msl (the legend has 6 and 7) the seconds rise by orders of magnitude",
                "msl = 5, 6, 7: "
                + ", ".join(
                    "refused" if np.isinf(each) else f"{each:.1f} times"
                    for each in (rise[name], *(each / min(by_msl[name]) for each in far[name]))
                )
                + " the least",
                max(far[name]) > 10 * min(by_msl[name]),
                expected,
            )
            for name, expected in (("CT", True), ("CM", False), ("CH", True))
        ),
    ]
