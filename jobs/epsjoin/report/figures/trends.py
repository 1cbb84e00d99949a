"""How the runs went on: small figures side by side, one for each number."""

from __future__ import annotations

from datetime import date

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from epsjoin.findings import Findings, known
from epsjoin.report import words
from epsjoin.report.figures.figure import FAINT, INK, NARROW_IN, blank, halo, note, styled
from epsjoin.report.figures.marks import EXPECTED, MEASURED

COLUMNS = 2
CELL_HEIGHT_IN, LEFT_IN, RIGHT_IN, BELOW_IN, ABOVE_IN = 1.05, 0.62, 0.1, 0.24, 0.3
TRENDS = {
    "points": "points",
    "pairs": "pairs",
    "eps": "ε",
    "clusters": "clusters",
    "noise": "noise",
    "refused": "records refused",
    "errors": "broken rules: errors",
    "seconds": "seconds",
}
"""Keys of ``Findings.trends`` and what they are called."""


@styled
def trends(findings: Findings) -> Figure:
    """Draw every number of the last runs against their dates; this run's is written at its mark."""
    shown = [key for key in TRENDS if any(known(row.get(key)) is not None for row in findings.trends)]
    if len(findings.trends) < 2 or not shown:
        return note("There are no runs before this one in the lake.")
    n_rows = -(-len(shown) // COLUMNS)
    fig = blank(n_rows * CELL_HEIGHT_IN, NARROW_IN)
    for place, key in enumerate(shown):
        _draw(_cell(fig, place, n_rows), findings, key)
    return fig


def _cell(fig: Figure, place: int, n_rows: int) -> Axes:
    width, height = NARROW_IN / COLUMNS, n_rows * CELL_HEIGHT_IN
    left = place % COLUMNS * width + LEFT_IN
    bottom = height - (place // COLUMNS + 1) * CELL_HEIGHT_IN + BELOW_IN
    box = left, bottom, width - LEFT_IN - RIGHT_IN, CELL_HEIGHT_IN - BELOW_IN - ABOVE_IN
    return fig.add_axes(
        (box[0] / NARROW_IN, box[1] / height, box[2] / NARROW_IN, box[3] / height)  # shares of the sheet
    )


def _draw(ax: Axes, findings: Findings, key: str) -> None:
    days = np.array([date.fromisoformat(str(row["run"])).toordinal() for row in findings.trends])
    values = np.array([_number(row.get(key)) for row in findings.trends])
    ax.plot(days, values, "o-", color=MEASURED, linewidth=1.4, markersize=3)
    unit = f" ({findings.unit})" if key == "eps" and findings.unit else ""
    ax.set_title(TRENDS[key] + unit, loc="left", color=FAINT, parse_math=False, pad=7, fontsize=9)
    if np.isfinite(values[-1]):
        ax.plot(days[-1:], values[-1:], "o", color=EXPECTED, markersize=5)
        ax.set_title(
            words.measure(values[-1]) if key in ("eps", "seconds") else words.count(values[-1]),
            loc="right",
            color=INK,
            pad=7,
            fontsize=9,
        )
    low, high = np.nanmin(values), np.nanmax(values)
    room = (high - low) * 0.18 or max(abs(high) * 0.05, 0.5)
    ax.set_ylim(low - room, high + room)
    ends = _told_apart(float(low), float(high))
    ax.set_yticks(list(ends), list(ends.values()))
    ax.set_xlim(days[0] - 0.03 * (days[-1] - days[0]), days[-1] + 0.04 * (days[-1] - days[0]))
    ax.set_xticks([])
    ax.tick_params(axis="y", labelsize=8)
    for end, x in ((0, 0), (-1, 1)):
        halo(
            ax.annotate(
                str(findings.trends[end]["run"]),
                (x, 0),
                (0, -3),
                "axes fraction",
                "offset points",
                ha="right" if x else "left",
                va="top",
                color=FAINT,
                fontsize=8,
            )
        )


def _told_apart(low: float, high: float) -> dict[float, str]:
    """The ends of an axis in as few digits as tell them apart; whole numbers in full, if not huge."""
    if low == int(low) and high == int(high) and max(abs(low), abs(high)) < 1e7:
        return {low: words.count(low), high: words.count(high)}
    for digits in range(4, 10):
        texts = {end: words.measure(end, digits=digits) for end in (low, high)}
        if low == high or texts[low] != texts[high]:
            break
    return texts


def _number(value: object) -> float:
    number = known(value)
    return np.nan if number is None else number
