"""Curves to judge ε by: pairs within r, and k-distances; pure functions from findings to a figure."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from epsjoin.findings import Findings, Row, to_number
from epsjoin.report import words
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
from epsjoin.report.figures.marks import (
    EXPECTED,
    MEASURED,
    NOISE_COLOUR,
    OTHER,
    draw_points,
    draw_ring,
    legend_mark,
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
    """Draw the distance to the k-th neighbour against the fraction of the points that have it within that.

    The line counts all points, up to ε, where the join ends. The dots beyond ε come from the sample.
    """
    usable = findings.k_distance > 0
    if not usable.any():
        return draw_note("The k-distance of no point is known.")
    share, distance = 100 * findings.k_share[usable], findings.k_distance[usable]
    counted = findings.k_is_counted[usable]
    fig, ax = new_axes(2.6, left=0.6, top=0.3, width=NARROW_IN)
    ax.set_yscale("log")
    ax.set_xlim(0, 100)
    ax.grid(visible=True)
    ax.plot(share[counted], distance[counted], color=MEASURED, linewidth=2.2)
    draw_points(ax, np.column_stack([share, distance])[~counted], OTHER, 5)
    ax.set_xlabel("% of the points")
    unit = f", {findings.unit}" if findings.unit else ""
    name = f"distance to neighbour {findings.k}{unit}"
    ax.set_title(name, loc="left", color=FAINT, parse_math=False)
    eps = findings.eps
    if eps is not None and eps > 0:
        ax.axhline(eps, color=EXPECTED, linewidth=1.4)
        text = f"ε = {words.measure(eps, findings.unit)}"
        # the curve rises, so there is room at the left, above the line
        place = (0, eps), (4, 3), ("axes fraction", "data"), "offset points"
        add_halo(ax.annotate(text, *place, ha="left", va="bottom", color=INK))
    ax.margins(y=0.08)
    write_short_numbers(ax.yaxis)
    if (~counted).any():
        handles = [legend_mark(MEASURED, "all points"), legend_mark(OTHER, "beyond ε: from the sample")]
        ax.legend(handles=handles, loc="lower right", frameon=False, handletextpad=0.1, borderaxespad=0.2)
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
    lines = [f"ε = {words.measure(eps, findings.unit)}"]
    expected = to_number(findings.epsilon.get("expected_pairs"))
    if expected is not None and expected > 0:
        draw_ring(ax, eps, expected)
        lines.append(f"expected {words.plural(round(expected), 'pair')}")
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
    lines = [f"P = {words.measure(exponent, digits=3)}"]
    if low is not None and high is not None:
        lines.append(f"95 %: {words.measure(low, digits=3)} to {words.measure(high, digits=3)}")
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
