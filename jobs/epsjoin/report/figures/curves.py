"""The curves behind ε: pairs within r, and k-distances; pure functions from findings to a figure."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from epsjoin.findings import Findings, Row, known
from epsjoin.report import words
from epsjoin.report.figures.figure import FAINT, INK, NARROW_IN, halo, note, one_line, sheet, styled
from epsjoin.report.figures.marks import (
    EXPECTED,
    MEASURED,
    NOISE_COLOUR,
    OTHER,
    mark,
    ring,
    scatter,
    short_numbers,
)


@styled
def pair_count_curve(findings: Findings) -> Figure:
    """Draw pairs within r against r, log-log: the counts, the straight part, ε and the pairs expected."""
    usable = (findings.curve_pairs > 0) & (findings.curve_radius > 0)
    if not usable.any():
        return note(str(findings.epsilon.get("note") or "No pairs within any radius that was looked at."))
    radius, pairs = findings.curve_radius[usable], findings.curve_pairs[usable]
    fitted = findings.curve_in_fit[usable]
    fig, ax = sheet(2.9, left=0.6, top=0.3, width=NARROW_IN)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.grid(visible=True)
    scatter(ax, np.column_stack([radius, pairs])[~fitted], NOISE_COLOUR, 16)
    scatter(ax, np.column_stack([radius, pairs])[fitted], MEASURED, 22)
    ax.set_xlabel(f"radius r ({findings.unit})" if findings.unit else "radius r", parse_math=False)
    ax.set_title("pairs within r", loc="left", color=FAINT)

    eps, law = findings.eps, _law(findings.epsilon)
    if law and fitted.any():
        _fitted_line(ax, radius[fitted], pairs[fitted], eps, findings.epsilon)
    elif findings.epsilon.get("note"):
        why = textwrap.fill(one_line(str(findings.epsilon["note"]), 110), 56)
        halo(ax.annotate(why, (1, 0), (-4, 4), "axes fraction", "offset points", ha="right", color=FAINT))
    if eps is not None and eps > 0:
        law = _mark_eps(ax, findings, eps) + law
    ax.margins(0.06)
    if law:
        _write_beside(ax, eps, law)
    for axis in (ax.xaxis, ax.yaxis):
        short_numbers(axis)
    return fig


@styled
def k_distance_curve(findings: Findings) -> Figure:
    """Draw the distance to the k-th neighbour against the share of the points that have theirs within it.

    Line: all points, counted, up to ε, as far as the join looked. Dots: on from there, from the sample.
    """
    usable = findings.k_distance > 0
    if not usable.any():
        return note("No point's k-distance is known.")
    share, distance = 100 * findings.k_share[usable], findings.k_distance[usable]
    counted = findings.k_is_counted[usable]
    fig, ax = sheet(2.6, left=0.6, top=0.3, width=NARROW_IN)
    ax.set_yscale("log")
    ax.set_xlim(0, 100)
    ax.grid(visible=True)
    ax.plot(share[counted], distance[counted], color=MEASURED, linewidth=2.2)
    scatter(ax, np.column_stack([share, distance])[~counted], OTHER, 5)
    ax.set_xlabel("% of the points")
    unit = f", {findings.unit}" if findings.unit else ""
    name = f"distance to neighbour {findings.k}{unit}"
    ax.set_title(name, loc="left", color=FAINT, parse_math=False)
    eps = findings.eps
    if eps is not None and eps > 0:
        ax.axhline(eps, color=EXPECTED, linewidth=1.4)
        text = f"ε = {words.measure(eps, findings.unit)}"
        # the curve rises, so at the left, above the line, there is room
        place = (0, eps), (4, 3), ("axes fraction", "data"), "offset points"
        halo(ax.annotate(text, *place, ha="left", va="bottom", color=INK))
    ax.margins(y=0.08)
    short_numbers(ax.yaxis)
    if (~counted).any():
        handles = [mark(MEASURED, "all points"), mark(OTHER, "beyond ε: from the sample")]
        ax.legend(handles=handles, loc="lower right", frameon=False, handletextpad=0.1, borderaxespad=0.2)
    return fig


def _fitted_line(
    ax: Axes, radius: NDArray[np.float64], pairs: NDArray[np.float64], eps: float | None, epsilon: Row
) -> None:
    """Draw the power law through the fitted part, dashed from there to ε where ε lies outside it."""
    exponent = float(epsilon["exponent"])
    # A least-squares line goes through the centre of its points, so the exponent alone places it.
    constant = np.mean(np.log(pairs) - exponent * np.log(radius))
    ends = np.array([radius.min(), radius.max()])

    def law(r: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.exp(constant + exponent * np.log(r)))

    ax.plot(ends, law(ends), color=MEASURED, linewidth=2.2)
    if eps is not None and eps > 0 and not ends[0] <= eps <= ends[1]:
        reach = np.array([ends[0] if eps < ends[0] else ends[1], eps])
        ax.plot(reach, law(reach), color=MEASURED, linewidth=1.2, linestyle=(0, (4, 3)))


def _mark_eps(ax: Axes, findings: Findings, eps: float) -> list[str]:
    """Draw the chosen ε as a line over the whole height, with the pairs expected and found; say so."""
    ax.axvline(eps, color=EXPECTED, linewidth=1.4)
    said = [f"ε = {words.measure(eps, findings.unit)}"]
    expected = known(findings.epsilon.get("expected_pairs"))
    if expected is not None and expected > 0:
        ring(ax, eps, expected)
        said.append(f"expected {words.plural(round(expected), 'pair')}")
    if findings.n_pairs > 0:
        ax.plot(eps, findings.n_pairs, "D", markersize=5, color=INK, zorder=3)
        said.append(f"found {words.count(findings.n_pairs)}")
    return said


def _law(epsilon: Row) -> list[str]:
    exponent, low, high = (known(epsilon.get(name)) for name in ("exponent", "exponent_low", "exponent_high"))
    if exponent is None:
        return []
    said = [f"P = {words.measure(exponent, digits=3)}"]
    if low is not None and high is not None:
        said.append(f"95 %: {words.measure(low, digits=3)} to {words.measure(high, digits=3)}")
    return said


def _write_beside(ax: Axes, eps: float | None, said: list[str]) -> None:
    """Write on the side of ε that has more room: the curve rises, so at the top left or the bottom right."""
    at = 1.0
    if eps is not None and eps > 0:
        at = float(ax.transAxes.inverted().transform(ax.transData.transform((eps, 1)))[0])
    is_left = at >= 0.5
    halo(
        ax.annotate(
            "\n".join(said),
            (at, 1 if is_left else 0),
            (-6, -3) if is_left else (6, 5),
            "axes fraction",
            "offset points",
            ha="right" if is_left else "left",
            va="top" if is_left else "bottom",
            color=INK,
        )
    )
