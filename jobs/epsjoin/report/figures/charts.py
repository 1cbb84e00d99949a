"""Curves to judge ε by, and bars of sizes, costs and times; pure functions from findings to a figure."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from epsjoin.console import counted
from epsjoin.findings import Findings, Row, RunFindings, to_number
from epsjoin.report import costs, words
from epsjoin.report.figures.figure import (
    COLOURS,
    EXPECTED,
    FAINT,
    FONT_SIZE,
    INK,
    MEASURED,
    NARROW_IN,
    NOISE_COLOUR,
    OTHER,
    add_halo,
    add_legend,
    clean_line,
    draw_note,
    draw_points,
    draw_ring,
    hide_x_axis,
    legend_mark,
    measure_line,
    new_axes,
    use_style,
    write_short_numbers,
)


@use_style
def draw_pair_counts(findings: Findings) -> Figure:
    """Draw pairs within r against r on log scales: the counts, the fitted part, ε and the expected pairs."""
    usable = (findings.curve_pairs > 0) & (findings.curve_radius > 0)
    if not usable.any():
        return draw_note(
            str(findings.epsilon.get("note") or "No two points lie within any of the examined radii.")
        )
    radius, pairs = findings.curve_radius[usable], findings.curve_pairs[usable]
    fitted = findings.curve_in_fit[usable]
    fig, ax = new_axes(2.9, left=0.6, top=0.3, width=NARROW_IN)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.grid(visible=True)
    draw_points(ax, np.column_stack([radius, pairs])[~fitted], NOISE_COLOUR, 16)
    draw_points(ax, np.column_stack([radius, pairs])[fitted], MEASURED, 22)
    ax.set_xlabel(f"radius r ({findings.unit})" if findings.unit else "radius r", parse_math=False)
    ax.set_title("pairs within r", loc="left", color=FAINT)

    eps, texts = findings.eps, _write_law(findings.epsilon)
    if texts and fitted.any():
        _draw_fit(ax, radius[fitted], pairs[fitted], eps, findings.epsilon)
    elif findings.epsilon.get("note"):
        why = textwrap.fill(clean_line(str(findings.epsilon["note"]), 110), 56)
        add_halo(ax.annotate(why, (1, 0), (-4, 4), "axes fraction", "offset points", ha="right", color=FAINT))
    if eps is not None and eps > 0:
        texts = _mark_eps(ax, findings, eps) + texts
    ax.margins(0.06)
    if texts:
        _write_lines(ax, eps, texts)
    for axis in (ax.xaxis, ax.yaxis):
        write_short_numbers(axis)
    return fig


@use_style
def draw_k_distances(findings: Findings) -> Figure:
    """Draw the distance to the k-th neighbour against the fraction of the points that have it within that."""
    usable = findings.k_distance > 0
    if not usable.any():
        return draw_note("The k-distance of no point is known.")
    percent, distance = 100 * findings.k_distance_fraction[usable], findings.k_distance[usable]
    distance = np.minimum(distance, 1e250)  # the margins of matplotlib's axis must be numbers, too
    fig, ax = new_axes(2.6, left=0.6, top=0.3, width=NARROW_IN)
    ax.set_yscale("log")
    ax.set_xlim(0, 100)
    ax.grid(visible=True)
    ax.plot(percent, distance, color=MEASURED, linewidth=2.2)
    ax.set_xlabel("% of the points")
    unit = f", {findings.unit}" if findings.unit else ""
    name = f"distance to neighbour {findings.k}{unit}"
    ax.set_title(name, loc="left", color=FAINT, parse_math=False)
    eps = findings.eps
    if eps is not None and eps > 0:
        ax.axhline(eps, color=EXPECTED, linewidth=1.4)
        text = f"ε = {words.exact(eps, findings.unit)}"
        # the curve rises, so there is room at the left, above the line
        place = (0, eps), (4, 3), ("axes fraction", "data"), "offset points"
        add_halo(ax.annotate(text, *place, ha="left", va="bottom", color=INK))
    ax.margins(y=0.08)
    write_short_numbers(ax.yaxis)
    return fig


def _draw_fit(
    ax: Axes, radius: NDArray[np.float64], pairs: NDArray[np.float64], eps: float | None, epsilon: Row
) -> None:
    """Draw the power law through the fitted part, and dashed from there to ε if ε lies outside it."""
    exponent = float(epsilon["exponent"])
    # a least-squares line goes through the centre of its points, so the exponent alone determines it
    constant = np.mean(np.log(pairs) - exponent * np.log(radius))
    ends = np.array([radius.min(), radius.max()])

    def law(r: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.exp(constant + exponent * np.log(r)))

    ax.plot(ends, law(ends), color=MEASURED, linewidth=2.2)
    if eps is not None and eps > 0 and not ends[0] <= eps <= ends[1]:
        reach = np.array([ends[0] if eps < ends[0] else ends[1], eps])
        ax.plot(reach, law(reach), color=MEASURED, linewidth=1.2, linestyle=(0, (4, 3)))


def _mark_eps(ax: Axes, findings: Findings, eps: float) -> list[str]:
    """Draw ε as a vertical line with the expected and the found pairs, and return the text for them."""
    ax.axvline(eps, color=EXPECTED, linewidth=1.4)
    lines = [f"ε = {words.exact(eps, findings.unit)}"]
    expected = to_number(findings.epsilon.get("expected_pairs"))
    if expected is not None and expected > 0:
        draw_ring(ax, eps, expected)
        lines.append(f"expected {counted(round(expected), 'pair')}")
    if findings.n_pairs > 0:
        ax.plot(eps, findings.n_pairs, "D", markersize=5, color=INK, zorder=3)
        lines.append(f"found {words.count(findings.n_pairs)}")
    return lines


def _write_law(epsilon: Row) -> list[str]:
    exponent, low, high = (
        to_number(epsilon.get(name)) for name in ("exponent", "exponent_low", "exponent_high")
    )
    if exponent is None:
        return []
    lines = [f"P = {words.exponent(exponent)}"]
    if low is not None and high is not None:
        lines.append(f"95 %: {words.exponent(low)} to {words.exponent(high)}")
    return lines


def _write_lines(ax: Axes, eps: float | None, lines: list[str]) -> None:
    """Write on the side of ε with more room, at the top left or bottom right, as the curve rises."""
    at = 1.0
    if eps is not None and eps > 0:
        at = float(ax.transAxes.inverted().transform(ax.transData.transform((eps, 1)))[0])
    is_left = at >= 0.5
    add_halo(
        ax.annotate(
            "\n".join(lines),
            (at, 1 if is_left else 0),
            (-6, -3) if is_left else (6, 5),
            "axes fraction",
            "offset points",
            ha="right" if is_left else "left",
            va="top" if is_left else "bottom",
            color=INK,
        )
    )


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
            text = f"{counted(int(n_clusters), 'cluster')}, {counted(int(n_points), 'point')}"
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
        size = min(FONT_SIZE, FONT_SIZE * (NARROW_IN - 0.35) / (1.06 * measure_line(text)))  # hinted
        place = ("axes fraction", "data")
        add_halo(ax.annotate(text, (0, y), (2, 9), place, "offset points", fontsize=size))
    handles = [legend_mark(MEASURED, "measured"), legend_mark("none", "expected", EXPECTED)]
    add_legend(ax, handles)
    return fig


PHASE_COLOURS = {
    "start": NOISE_COLOUR,
    "read": COLOURS[4],
    "work": MEASURED,
    "write": COLOURS[2],
    "commit": COLOURS[7],
}
"""Colours of what the time of a job is divided into."""


TIMES_LEFT_IN = 1.3
"""Room for the names of steps, in inches."""


def _describe_times(step: costs.Step, before: float) -> str:
    text = words.duration(step.seconds)
    text += f", start {words.duration(step.phases['start'])}" if step.phases else ""
    return f"{text}, before {words.duration(before)}" if before else text


@use_style
def draw_step_times(findings: RunFindings) -> Figure:
    """Draw the wall-clock time of every step as a bar, divided if known, and the run before as a ring."""
    timed = [step for step in costs.list_steps(findings) if step.seconds is not None]
    if not timed:
        return draw_note("No times were recorded.")
    now = [step.seconds or 0.0 for step in timed]
    before = [step.seconds_before or 0.0 for step in timed]
    is_divided = any(step.phases for step in timed)
    top = 0.55 if is_divided else 0.3
    fig, ax = new_axes(0.27 * len(timed) + 0.1, left=TIMES_LEFT_IN, bottom=0.1, top=top, width=NARROW_IN)
    place = np.arange(len(timed))
    for y, step in enumerate(timed):
        left = 0.0
        for name, seconds in (step.phases or {"whole": now[y]}).items():
            colour = PHASE_COLOURS.get(name, OTHER if is_divided else MEASURED)
            ax.barh(y, seconds, left=left, height=0.6, color=colour)
            left += seconds
    ax.set_yticks(place, [clean_line(step.job, 18) for step in timed], color=INK, parse_math=False)
    ax.invert_yaxis()
    ends = [max(both) for both in zip(now, before, strict=True)]
    said = [_describe_times(step, earlier) for step, earlier in zip(timed, before, strict=True)]
    # room for the texts behind the bars
    rooms = [1.0 - (measure_line(text) + 0.18) / (NARROW_IN - TIMES_LEFT_IN) for text in said]
    ax.set_xlim(0, max(end / max(room, 0.08) for end, room in zip(ends, rooms, strict=True)) or 1e-3)
    for y, (end, text) in enumerate(zip(ends, said, strict=True)):
        if before[y]:
            draw_ring(ax, before[y], y)
        ax.annotate(text, (end, y), (9, 0), textcoords="offset points", va="center", color=FAINT)
    handles = [legend_mark(MEASURED, "this run")]
    if is_divided:
        handles = [legend_mark(colour, name) for name, colour in PHASE_COLOURS.items()]
        if not all(step.phases for step in timed):
            handles.append(legend_mark(OTHER, "not divided"))
    if any(before):
        handles.append(legend_mark("none", "the run before", EXPECTED))
    add_legend(ax, handles, ncols=3 if is_divided else 2)
    hide_x_axis(ax)
    return fig
