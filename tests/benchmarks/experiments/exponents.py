"""Figures 3.31 to 3.37: the power law of pairs, and the cost model with the fractal dimension for d."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from epsjoin import EpsilonFit, fit_epsilon
from epsjoin.kernels.arrays import Floats

from .. import sets
from .claims import Claim, Line, Picture, Result, Table, short
from .cost_model import expected_work
from .counting import Cubes, count_work, cubes_of
from .grids import datasets

P_OF_TEXT = {"CAD": 2.9, "CH": 3.8, "CM": 6.4, "CT": 5.7}
SAMPLES = {"CAD": 10_000, "CT": 6_870, "CM": 6_804, "CH": 10_000}
"""Rows of 3.33 to 3.37: 1 % of CAD and 10 % of the others in the text, about as many here."""
ALL_EPS: list[float] = np.geomspace(3e-4, 0.3, 12).tolist()
K, MSL = 3, 0

NORMS = ("euclidean", "manhattan", "chebyshev")

Errors = dict[str, tuple[list[float], list[float]]]
"""Of each set and eps: by how many orders the models of GESS and of MSJ are above the count."""


@cache
def law(name: str, rows: int, metric: str = "euclidean") -> EpsilonFit:
    points = uniform_9() if name == "uniform 9-d" else datasets()[name].make()
    return fit_epsilon(points, metric, sample_rows=rows)


uniform_9 = partial(sets.uniform, 50_000, 9)


def laws() -> Result:
    """Figures 3.31 and 3.32, and the table of exponents."""
    names = [*datasets(), "uniform 9-d"]
    fits = {name: law(name, 20_000) for name in names}
    small = {name: law(name, 2_000) for name in names}
    rows, lines = [], []
    for name, fit in fits.items():
        few, found = small[name].power_law, fit.power_law
        d = fit.sample.shape[1]
        meets = few.interval_low <= found.interval_high and found.interval_low <= few.interval_high
        rows.append(
            [
                name,
                f"{P_OF_TEXT[name]:.1f}" if name in P_OF_TEXT else "–",
                _interval(found),
                _interval(few),
                "yes" if meets else "no",
                str(d),
                f"{found.r_squared:.4f}",
            ]
        )
        seen = fit.curve.pairs > 0
        step = max(1, int(seen.sum()) // 24)
        lines.append(
            Line(name, fit.curve.radius[seen][::step].tolist(), fit.curve.pairs[seen][::step].tolist())
        )
    return Result(
        [
            Claim(
                "3.31, 3.32: on log-log scales the pairs lie on a straight line (3.15)",
                "R² " + ", ".join(row[6] for row in rows),
                all(float(row[6]) > 0.95 for row in rows),
                True,
            ),
            Claim(
                "the exponent is below the number of dimensions",
                "; ".join(f"{r[0]}: {r[2]} of {r[5]}" for r in rows[:4]),
                all(fits[name].exponent < fits[name].sample.shape[1] for name in datasets()),
                True,
            ),
            Claim(
                "it does not change with sampling",
                "2,000 rows: " + "; ".join(f"{r[0]}: {r[3]}" for r in rows),
                all(row[4] == "yes" for row in rows),
                False,
            ),
            _claim_of_norms(),
        ],
        [
            Picture(
                "fig3.31",
                "Figures 3.31 and 3.32: pairs over ε",
                "distance",
                "pairs of a sample",
                lines,
                is_log_x=True,
            )
        ],
        [
            Table(
                "The exponent P with its 95 % interval",
                ["set", "the text's set", "20,000 rows", "2,000 rows", "intervals meet", "d", "R²"],
                rows,
            )
        ],
        counts={
            f"{name}, {len(fit.sample):,} rows of a sample: pairs": [int(fit.curve.pairs.max())]
            for sample in (fits, small)
            for name, fit in sample.items()
        },
    )


def _claim_of_norms() -> Claim:
    """The text's second invariance: P is one number for all L_p."""
    of = {name: [law(name, 20_000, metric).power_law for metric in NORMS] for name in datasets()}
    meet = [
        max(each.interval_low for each in fits) <= min(each.interval_high for each in fits)
        for fits in of.values()
    ]
    return Claim(
        "it does not change with the L_p metric",
        "L2, L1, L∞: " + "; ".join(f"{name}: {', '.join(map(_interval, fits))}" for name, fits in of.items()),
        all(meet),
        False,
    )


def _interval(fit: object) -> str:
    return f"{fit.exponent:.2f} ({fit.interval_low:.2f} – {fit.interval_high:.2f})"


def models() -> Result:
    """Figures 3.33 to 3.37: the model with d := P beside what is counted, and beside a sample's count."""
    pictures, rows = [], []
    counts = dict[str, Sequence[int]]()
    errors: Errors = {}
    for number, name in enumerate(("CAD", "CT", "CM", "CH")):
        points = _sample(name)
        p = law(name, 20_000).exponent
        cubes = [cubes_of(points, eps) for eps in ALL_EPS]
        work = [count_work(each, K, MSL) for each in cubes]
        counts |= {
            f"{name}, ε = {eps:.2g}, k = {K}, msl = {MSL}: rows, comparisons, largest area": each[1:]
            for eps, each in zip(ALL_EPS, work, strict=True)
        }
        counted = [max(1, each.comparisons) for each in work]
        sampled = [_from_sample(each) for each in cubes]
        n = len(points)
        gess, msj = (
            [max(1e-3, expected_work(n, p, eps, k, MSL).comparisons) for eps in ALL_EPS] for k in (K, 0)
        )
        errors[name] = _orders(gess, counted), _orders(msj, counted)
        rows += [
            [name, f"{eps:.2g}", short(c), f"{e:+.1f}", f"{f:+.1f}", f"{math.log10(s / c):+.2f}"]
            for eps, c, e, f, s in zip(ALL_EPS, counted, *errors[name], sampled, strict=True)
        ]
        lines = [
            Line("counted", ALL_EPS, counted),
            Line("model of GESS", ALL_EPS, gess),
            Line("model of MSJ", ALL_EPS, msj),
            Line("from 2,000 rows", ALL_EPS, sampled),
        ]
        pictures.append(
            Picture(
                f"fig3.{33 + number}",
                f"Figure 3.{33 + number}: {name}, P = {p:.1f}",
                "ε",
                "comparisons",
                lines,
                is_log_x=True,
            )
        )
        if name == "CH":
            pictures.append(_picture_of_other_dimensions(n, lines[0]))
    return Result(
        _claims_of_models(errors),
        pictures,
        [
            Table(
                "Comparisons counted, and log10 of model / counted",
                ["set", "ε", "counted", "GESS", "MSJ", "from 2,000 rows"],
                rows,
            )
        ],
        counts=counts,
    )


def _picture_of_other_dimensions(n: int, counted: Line) -> Picture:
    models = [
        Line(f"d = {d}", ALL_EPS, [expected_work(n, d, eps, 0).comparisons for eps in ALL_EPS])
        for d in (1, 2, 3, 6, 64)
    ]
    title = "Figure 3.37: CH, the model of MSJ for other d"
    return Picture("fig3.37", title, "ε", "comparisons", [counted, *models], is_log_x=True)


def _claims_of_models(errors: Errors) -> list[Claim]:
    """What the text says of its figures, by the errors of GESS's and of MSJ's model."""
    claims = []
    for name, text in (
        ("CAD", "3.33, CAD: GESS's model is 3 orders too low"),
        ("CT", "3.34, CT: 4 orders too low"),
    ):
        worst = min(errors[name][0])
        claims.append(Claim(text, f"{_span(errors[name][0])} orders", worst < -2, False))
    claims += [
        Claim(
            "MSJ's model is off by an order at most (CAD)",
            f"{_span(errors['CAD'][1])} orders",
            max(map(abs, errors["CAD"][1])) <= 1,
            True,
        ),
        Claim(
            "3.35, CM: the count lies between the two models",
            f"GESS {_span(errors['CM'][0])}, MSJ {_span(errors['CM'][1])}",
            all(a <= 0 <= b for a, b in zip(*errors["CM"], strict=True)),
            False,
        ),
        Claim(
            "3.35, CM: below ε = 0.02 GESS's model is nearer, above it MSJ's",
            "; ".join(
                f"ε = {eps:.2g}: {gess:+.1f}, {msj:+.1f}"
                for eps, gess, msj in zip(ALL_EPS, *errors["CM"], strict=True)
            ),
            all(
                (abs(gess) < abs(msj)) == (eps < 0.02)
                for eps, gess, msj in zip(ALL_EPS, *errors["CM"], strict=True)
            ),
            False,
        ),
        Claim(
            "3.34, CT: MSJ's model lies very near the count",
            f"{_span(errors['CT'][1])} orders",
            max(map(abs, errors["CT"][1])) <= 0.3,
            False,
        ),
        Claim(
            "3.36, CH: MSJ's model predicts the count",
            f"{_span(errors['CH'][1])} orders",
            max(map(abs, errors["CH"][1])) <= 0.3,
            False,
        ),
        Claim(
            "3.7.3: the claim that the model holds with the fractal dimension finds no support",
            "off by " + "; ".join(f"{name}: {_span(errors[name][0])}" for name in errors) + " orders",
            any(max(map(abs, both[0])) > 1 for both in errors.values()),
            True,
        ),
    ]
    return claims


def _sample(name: str) -> Floats:
    points = datasets()[name].make()
    return points[np.sort(np.random.default_rng(0).choice(len(points), SAMPLES[name], replace=False))]


def _from_sample(cubes: Cubes) -> float:
    """Comparisons of some 2,000 rows, scaled by the square; what the planner does."""
    some = cubes.some(2000)
    scale = len(cubes.lower) / len(some.lower)
    return max(1e-3, count_work(some, K, MSL).comparisons * scale * scale)


def _orders(expected: list[float], counted: list[int]) -> list[float]:
    return [math.log10(a / b) for a, b in zip(expected, counted, strict=True)]


def _span(values: list[float]) -> str:
    return f"{min(values):+.1f} to {max(values):+.1f}"
