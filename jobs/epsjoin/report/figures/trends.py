"""The trends over the last runs: small panels side by side, one for each number."""

from __future__ import annotations

from datetime import date

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from epsjoin.findings import Findings, to_number
from epsjoin.report import words
from epsjoin.report.figures.figure import (
    EXPECTED,
    FAINT,
    INK,
    MEASURED,
    add_halo,
    draw_note,
    new_panels,
    use_style,
)

PANEL_HEIGHT_IN = 1.05
"""Height of a panel with its margins, in inches."""

TRENDS = {
    "points": "points",
    "pairs": "pairs",
    "eps": "ε",
    "clusters": "clusters",
    "noise": "noise",
    "refused": "records refused",
    "errors": "broken rules: errors",
    "born": "clusters born",
    "ended": "clusters ended",
    "seconds": "seconds",
}
"""Keys of ``Findings.trends`` that are shown, with their names on the page."""


@use_style
def draw_trends(findings: Findings) -> Figure:
    """Draw the numbers of the last runs against their dates; the number of this run stands at the heading."""
    shown = [key for key in TRENDS if any(to_number(row.get(key)) is not None for row in findings.trends)]
    if len(findings.trends) < 2 or not shown:
        return draw_note("There are no runs before this one in the lake.")
    fig, panels = new_panels(len(shown), PANEL_HEIGHT_IN)
    for ax, key in zip(panels, shown, strict=True):
        _draw_panel(ax, findings, key)
    return fig


def _draw_panel(ax: Axes, findings: Findings, key: str) -> None:
    days = np.array([date.fromisoformat(str(row["run"])).toordinal() for row in findings.trends])
    values = np.array([_to_float(row.get(key)) for row in findings.trends])
    ax.plot(days, values, "o-", color=MEASURED, linewidth=1.4, markersize=3)
    unit = f" ({findings.unit})" if key == "eps" and findings.unit else ""
    ax.set_title(TRENDS[key] + unit, loc="left", color=FAINT, parse_math=False, pad=7, fontsize=9)
    if np.isfinite(values[-1]):
        ax.plot(days[-1:], values[-1:], "o", color=EXPECTED, markersize=5)
        ax.set_title(
            {"eps": words.exact, "seconds": words.measure}.get(key, words.count)(values[-1]),
            loc="right",
            color=INK,
            pad=7,
            fontsize=9,
        )
    low, high = np.nanmin(values), np.nanmax(values)
    room = (high - low) * 0.18 or max(abs(high) * 0.05, 0.5)
    ax.set_ylim(low - room, high + room)
    ends = _label_ends(float(low), float(high))
    ax.set_yticks(list(ends), list(ends.values()))
    ax.set_xlim(days[0] - 0.03 * (days[-1] - days[0]), days[-1] + 0.04 * (days[-1] - days[0]))
    ax.set_xticks([])
    ax.tick_params(axis="y", labelsize=8)
    for end, x in ((0, 0), (-1, 1)):
        add_halo(
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


def _label_ends(low: float, high: float) -> dict[float, str]:
    """Write the ends of an axis with as few digits as make them differ; whole numbers below 10⁷ in full."""
    if low == int(low) and high == int(high) and max(abs(low), abs(high)) < 1e7:
        return {low: words.count(low), high: words.count(high)}
    for digits in range(4, 10):
        texts = {end: words.measure(end, digits=digits) for end in (low, high)}
        if low == high or texts[low] != texts[high]:
            break
    return texts


def _to_float(value: object) -> float:
    number = to_number(value)
    return np.nan if number is None else number
