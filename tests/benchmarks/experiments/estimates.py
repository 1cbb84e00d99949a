"""Figures 4.12 and 4.13: how the estimate of the number of pairs runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from epsjoin import Similarity

from .claims import Claim, Line, Picture, Result, Table, within
from .merges import Step, follow, sizes_of, thin
from .tables import CAD_EPS, cad_tables, point_bytes, shuffled


def estimates(n: int = 200_000) -> Result:
    """Figures 4.12 and 4.13; the published estimator is ours of the first phase, without its check."""
    in_order = cad_tables(n)
    kind, size = Similarity(CAD_EPS), point_bytes(in_order[0].shape[1])
    sizes = sizes_of(in_order, 0.01, size)
    shown, claims, rows = [], [], []
    found = {
        "4.12": follow("PMJ", shuffled(in_order), kind, sizes),
        "4.13": follow("PMJ", in_order, kind, sizes),
    }
    theirs: dict[str, float] = {}
    halfway: dict[str, float] = {}
    for number, course in found.items():
        true = course.pairs
        of_runs = [step for step in course.steps if step.phase == "runs" and step.estimate.pairs is not None]
        half = next(step for step in course.steps if step.merged >= 0.5)
        theirs[number] = statistics.median([step.estimate.pairs or 0.0 for step in of_runs]) / true
        halfway[number] = (half.estimate.pairs or 0.0) / true
        order = "shuffled" if number == "4.12" else "by cluster"
        steps = thin([step for step in course.steps if step.estimate.pairs is not None])
        lines = [Line("estimate", *_over(steps, [step.estimate.pairs or math.nan for step in steps]))]
        with_interval = [step for step in steps if step.estimate.low is not None]
        for name in ("low", "high"):
            y = [max(1.0, getattr(step.estimate, name)) for step in with_interval]
            lines.append(Line(f"95 %, {name}", *_over(with_interval, y)))
        lines += [
            Line("pairs so far", *_over(steps, [step.pairs for step in steps])),
            Line("true", *_over(steps, [true] * len(steps))),
        ]
        caption = f"Figure {number}: estimate while it runs, CAD {order}, 1 % memory"
        shown.append(Picture(f"fig{number}", caption, "pages read and written", "pairs", lines))
        held = [
            step.estimate.low <= true <= step.estimate.high
            for step in course.steps
            if step.phase == "merges" and step.estimate.low is not None and step.estimate.high is not None
        ]
        notes = sum(bool(step.estimate.note) for step in of_runs)
        rows.append(
            [
                *(order, f"{true:,}", f"{theirs[number]:.2f}", f"{100 * notes / len(of_runs):.0f} %"),
                *(f"{halfway[number]:.3f}", f"{100 * sum(held) / max(1, len(held)):.0f} %"),
            ]
        )
    orders = math.log10(theirs["4.13"])
    claims += [
        Claim(
            "4.12: of shuffled rows the estimate is near the truth after a few seconds",
            f"{theirs['4.12']:.2f} of it in the median of all that are given while runs are made",
            within(theirs["4.12"], 1.0, 1.25),
            True,
        ),
        Claim(
            "4.13: of rows by cluster it is 1.5 to 2 orders too high",
            f"{orders:.1f} orders in the median",
            orders >= 1.5,
            True,
        ),
        Claim(
            "here: such an order is seen while runs are made, and no interval is given; at half of the merge "
            "the estimate is right in both orders",
            ", ".join(f"{ratio:.3f}" for ratio in halfway.values()) + " of the truth",
            all(within(ratio, 1.0, 1.25) for ratio in halfway.values()),
            True,
        ),
    ]
    head = [
        *("rows come", "pairs", "estimate / true in runs, median", "without interval there"),
        *("estimate / true at half of the merge", "intervals of the merge that hold it"),
    ]
    counts = dict[str, Sequence[int]]()
    for number, course in found.items():
        counts |= course.counts(f"figure {number}, PMJ")
    return Result(claims, shown, [Table("Estimates", head, rows)], counts=counts)


def _over(steps: Sequence[Step], y: Sequence[float]) -> tuple[list[float], Sequence[float]]:
    return [step.pages for step in steps], y
