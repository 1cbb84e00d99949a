"""Bars and dots of a run: cluster sizes, costs, times; pure functions from findings to a figure."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from epsjoin.findings import Findings
from epsjoin.report import costs, words
from epsjoin.report.figures.figure import (
    FAINT,
    INK,
    NARROW_IN,
    add_halo,
    clean_line,
    draw_note,
    new_axes,
    use_style,
)
from epsjoin.report.figures.marks import EXPECTED, MEASURED, add_legend, draw_ring, hide_x_axis, legend_mark


@use_style
def draw_cluster_sizes(findings: Findings) -> Figure:
    """Draw how many clusters there are of each size, in the classes 1, 2-4, 5-9, 10-19, 20-49, ..."""
    sizes, counts = findings.cluster_sizes, findings.cluster_size_counts
    if not len(sizes):
        return draw_note("No clusters.")
    edges = np.array(
        [step * 10**power for power in range(19) for step in (1, 2, 5) if power < 18 or step == 1]
    )
    first, last = (int(np.searchsorted(edges, size, side="right")) - 1 for size in (sizes.min(), sizes.max()))
    low, high = edges[first : last + 1], edges[first + 1 : last + 2]
    inside = [(sizes >= a) & (sizes < b) for a, b in zip(low, high, strict=True)]
    clusters = np.array([counts[chosen].sum() for chosen in inside])
    points = np.array([(counts[chosen] * sizes[chosen]).sum() for chosen in inside])

    fig, ax = new_axes(0.27 * len(low) + 0.1, left=1.3, bottom=0.1, top=0.05, width=NARROW_IN)
    place = np.arange(len(low))
    ax.barh(place, clusters, height=0.68, color=MEASURED)
    names = [words.count(a) if b - a == 1 else f"{a:,}–{b - 1:,}" for a, b in zip(low, high, strict=True)]
    ax.set_yticks(place, [f"{name} points" if i == 0 else name for i, name in enumerate(names)], color=INK)
    ax.invert_yaxis()
    for y, n_clusters, n_points in zip(place, clusters, points, strict=True):
        if n_clusters:
            text = f"{words.plural(int(n_clusters), 'cluster')}, {words.plural(int(n_points), 'point')}"
            ax.annotate(text, (n_clusters, y), (5, 0), textcoords="offset points", va="center", color=FAINT)
    ax.set_xlim(0, clusters.max() * 3.2)  # room for the text at the longest bar
    hide_x_axis(ax)
    return fig


@use_style
def draw_costs(findings: Findings) -> Figure:
    """Draw what the plan expected and what the run measured: replicas, candidates, pairs."""
    lines = [(line.name, line.expected, line.measured) for line in costs.list_costs(findings)[:3]]
    values = [value for _, *both in lines for value in both if value is not None and value > 0]
    if not values:
        return draw_note("Nothing was expected or measured.")
    fig, ax = new_axes(1.9, left=0.25, right=0.3, width=NARROW_IN)
    ax.set_xscale("log")
    low, high = 10 ** np.floor(np.log10(min(values)) - 0.1), 10 ** np.ceil(np.log10(max(values)) + 0.1)
    ax.set_xlim(low, high)
    ax.set_ylim(-0.35, 2.75)
    ax.grid(visible=True, axis="x")
    ax.yaxis.set_visible(False)
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(LogLocator(numticks=8))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words.tick(value)))
    for y, (name, expected, measured) in zip((2, 1, 0), lines, strict=True):
        drawn = [value for value in (expected, measured) if value is not None and value > 0]
        ax.plot(drawn, [y] * len(drawn), color=FAINT, linewidth=1.2)
        if expected:
            draw_ring(ax, expected, y)
        if measured:
            ax.plot(measured, y, "o", markersize=5.5, color=MEASURED, zorder=3)
        text = f"{name}: expected {words.count(expected)}, measured {words.count(measured)}"
        if expected and measured is not None:
            text += f" ({words.change(expected, measured)})"
        add_halo(ax.annotate(text, (0, y), (2, 9), ("axes fraction", "data"), "offset points"))
    handles = [legend_mark(MEASURED, "measured"), legend_mark("none", "expected", EXPECTED)]
    add_legend(ax, handles)
    return fig


@use_style
def draw_step_times(findings: Findings) -> Figure:
    """Draw the wall-clock time of every step as a bar, and that of the run before as a ring."""
    timed = [step for step in costs.list_steps(findings) if step.seconds is not None]
    if not timed:
        return draw_note("No times were recorded.")
    now = [step.seconds or 0.0 for step in timed]
    before = [step.seconds_before or 0.0 for step in timed]
    fig, ax = new_axes(0.27 * len(timed) + 0.1, left=1.3, bottom=0.1, top=0.3, width=NARROW_IN)
    place = np.arange(len(timed))
    ax.barh(place, now, height=0.6, color=MEASURED)
    ax.set_yticks(place, [clean_line(step.job, 18) for step in timed], color=INK, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0, max(*now, *before, 1e-3) * 1.4)  # room for the text at the longest bar
    for y, (seconds, earlier) in enumerate(zip(now, before, strict=True)):
        if earlier:
            draw_ring(ax, earlier, y)
        end = max(seconds, earlier), y
        text = words.duration(seconds)
        ax.annotate(text, end, (9, 0), textcoords="offset points", va="center", color=FAINT)
    handles = [legend_mark(MEASURED, "this run")]
    if any(before):
        handles.append(legend_mark("none", "the run before", EXPECTED))
    add_legend(ax, handles)
    hide_x_axis(ax)
    return fig
