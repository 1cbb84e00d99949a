"""The map and the distances of a run's matches; pure functions from findings to a Matplotlib figure."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from epsjoin.findings import MatchFindings, Row
from epsjoin.report import words
from epsjoin.report.figures.base_map import (
    MAX_MARKS,
    count_beyond,
    find_extent,
    lines_between,
    new_map,
    put_legend,
    shift_longitudes,
)
from epsjoin.report.figures.coastlines import find_coastlines
from epsjoin.report.figures.figure import (
    CAME,
    EXPECTED,
    FAINT,
    INK,
    MEASURED,
    WENT,
    add_halo,
    clean_line,
    draw_note,
    new_panels,
    use_style,
)

PANEL_HEIGHT_IN = 1.5
"""Height of a panel with its margins, in inches."""

AXES = ("longitude", "latitude")


@use_style
def draw_matches(findings: MatchFindings) -> Figure:
    """Draw the matches as lines from the left to the right record, and records without one as crosses."""
    if not findings.is_on_map:
        return draw_note("No criterion is a place, so there is no map.")
    pairs, left, right = findings.map_pairs, findings.map_left, findings.map_right
    every = _places(findings)
    if not len(every):
        return draw_note("No records.")
    low, high = find_extent(every, True)
    fig, ax = new_map(AXES, True, low, high)
    ends, left, right = np.split(every, np.cumsum([2 * len(pairs), len(left)]))
    n_drawn = len(pairs) + len(left) + len(right)
    size, as_image = float(np.clip(120 / np.sqrt(n_drawn), 1.6, 6)), n_drawn > MAX_MARKS
    lines, _ = lines_between(ends, is_geographic=True)
    ax.plot(*lines.T, color=MEASURED, linewidth=0.8, alpha=0.8, zorder=3, rasterized=as_image)
    marks = (
        ("matches", ends[0::2], "o", MEASURED, 0.7 * size, findings.n_pairs),
        (f"only in {findings.dataset}", left, "x", WENT, 0.8 * size, findings.n_left_alone),
        (f"only in {findings.partner.dataset}", right, "+", CAME, 0.9 * size, findings.n_right_alone),
    )
    handles = []
    for text, places, mark, colour, width, number in marks:
        if not number:
            continue
        style: dict[str, Any] = {"marker": mark, "color": colour, "linestyle": "", "markeredgewidth": 0.8}
        ax.plot(*places.T, markersize=width, zorder=2, rasterized=as_image, **style)
        handles.append(Line2D([], [], label=f"{words.count(number)} {clean_line(text, 30)}", **style))
    put_legend(ax, handles, 3, count_beyond(every, low, high))
    return fig


def has_coastlines(findings: MatchFindings) -> bool:
    """Whether coastlines are on the map of these findings."""
    every = _places(findings)
    return findings.is_on_map and bool(len(every)) and bool(find_coastlines(*find_extent(every, True)))


def _places(findings: MatchFindings) -> NDArray[np.float64]:
    """Places of the two records of each match, of the left and of the right records without one; (n, 2)."""
    every = np.concatenate([findings.map_pairs.reshape(-1, 2), findings.map_left, findings.map_right])
    return shift_longitudes(every) if len(every) else every


@use_style
def draw_distances(findings: MatchFindings) -> Figure:
    """Draw how many matches have which distance, a panel for each criterion; its end at the right is ε."""
    if not findings.n_pairs:
        return draw_note("There are no matches.")
    fig, panels = new_panels(len(findings.criteria), PANEL_HEIGHT_IN)
    for ax, row in zip(panels, findings.criteria, strict=True):
        _draw_criterion(ax, row)
    return fig


def _draw_criterion(ax: Axes, row: Row) -> None:
    edges, counts = row["edges"], row["counts"]
    ax.bar(edges[:-1], counts, np.diff(edges), align="edge", color=MEASURED)
    ax.axvline(row["median"], color=INK, linewidth=1)
    unit = f", {row['unit']}" if row["unit"] else ""
    ax.set_title(clean_line(row["name"] + unit, 30), loc="left", color=FAINT, parse_math=False, fontsize=9)
    middle = f"median {words.measure(row['median'], digits=3)}"
    is_left = row["median"] < edges[-1] / 2
    place = (row["median"], 1), (4 if is_left else -4, -2), ("data", "axes fraction"), "offset points"
    side = "left" if is_left else "right"
    add_halo(ax.annotate(middle, *place, ha=side, va="top", color=INK, fontsize=8))
    ax.set_xlim(0, edges[-1])
    ax.set_xticks([])
    is_bounded = np.isfinite(row["eps"])
    if is_bounded:
        ax.axvline(edges[-1], color=EXPECTED, linewidth=2, clip_on=False)
    end = f"ε = {words.exact(row['eps'])}" if is_bounded else words.measure(edges[-1], digits=3)
    for x, text, side in ((0, "0", "left"), (1, end, "right")):
        below = (x, 0), (0, -3), "axes fraction", "offset points"
        add_halo(ax.annotate(text, *below, ha=side, va="top", color=FAINT, fontsize=8))
    ax.set_yticks([0, counts.max()], ["0", words.count(counts.max())])
    ax.tick_params(axis="y", labelsize=8)
