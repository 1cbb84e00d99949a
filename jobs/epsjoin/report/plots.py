"""Figures of a run: pure functions from findings to a Matplotlib figure; ``canvas`` makes SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox, BboxBase
from numpy.typing import NDArray

from epsjoin.report import words
from epsjoin.report.canvas import COLOURS, FAINT, INK, PAPER, WIDTH_IN, halo, note, one_line, sheet, styled
from epsjoin.report.findings import NOISE, Findings, Row, known

OTHER, NOISE_COLOUR = "#72839b", "#a9aeb5"
MEASURED, EXPECTED = COLOURS[0], COLOURS[1]
LABEL_SIZE = 8.5
MOST_MARKS = 2000
"""More marks than this are drawn as one picture inside the SVG, or the page would weigh megabytes."""
MOST_MAP_HEIGHT_IN = 5.2


@styled
def cluster_map(findings: Findings) -> Figure:
    """Draw the map's sample of points: the largest clusters coloured and named, the others muted, noise grey.

    A geographic map has a graticule, the aspect that is true in the middle of its latitudes, and its edge
    where the least is cut, so that Alaska stays in one piece.
    """
    points, ids = findings.map_points, findings.map_cluster_ids
    if not len(points):
        return note("No points.")
    if findings.is_geographic:
        points = _unbroken(points)
    (x_low, y_low), (x_high, y_high) = _extent(points, findings.is_geographic)
    aspect = _aspect(findings.is_geographic, x_high - x_low, y_low, y_high)
    shape = 0.62 if aspect is None else (y_high - y_low) * aspect / (x_high - x_low)
    fig, ax = sheet(float(np.clip((WIDTH_IN - 0.9) * shape, 1.6, MOST_MAP_HEIGHT_IN)), right=0.3, bottom=0.4)
    ax.set_xlim(x_low, x_high)
    ax.set_ylim(y_low, y_high)
    if aspect is not None:
        ax.set_aspect(aspect)
    _map_axes(ax, findings)

    named = [int(row["cluster_id"]) for row in findings.largest_clusters[: len(COLOURS)]]
    area = float(np.clip(6e4 / len(points), 1.5, 14))
    as_picture = len(points) > MOST_MARKS  # all or none, or every layer would be a picture of its own
    is_noise = ids == NOISE
    is_named = np.isin(ids, named)
    legend = [
        ("noise", is_noise, NOISE_COLOUR, area * 0.7),
        ("other clusters", ~is_noise & ~is_named, OTHER, area),
    ]
    for _, chosen, colour, size in legend:
        _scatter(ax, points[chosen], colour, size, as_picture)
    for cluster_id, colour in zip(named, COLOURS, strict=False):
        _scatter(ax, points[ids == cluster_id], colour, area * 1.8, as_picture)
    handles = [_mark(colour, label) for label, chosen, colour, _ in legend if chosen.any()]
    if is_named.any():
        handles.append(_mark(COLOURS[0], "largest clusters, each its colour"))
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=3,
        frameon=False,
        borderaxespad=0.2,
        handletextpad=0.1,
        columnspacing=1.2,
    )
    _name_clusters(fig, ax, findings, points, named)
    return fig


@styled
def pair_count_curve(findings: Findings) -> Figure:
    """Draw pairs within r against r, log-log: the counts, the straight part, ε and the pairs expected."""
    usable = (findings.curve_pairs > 0) & (findings.curve_radius > 0)
    if not usable.any():
        return note(str(findings.epsilon.get("note") or "No pairs within any radius that was looked at."))
    radius, pairs = findings.curve_radius[usable], findings.curve_pairs[usable]
    fitted = findings.curve_in_fit[usable]
    fig, ax = sheet(3.7, left=0.75, top=0.35)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.grid(visible=True)
    _scatter(ax, np.column_stack([radius, pairs])[~fitted], NOISE_COLOUR, 16)
    _scatter(ax, np.column_stack([radius, pairs])[fitted], MEASURED, 22)
    ax.set_xlabel(f"radius r ({findings.unit})" if findings.unit else "radius r", parse_math=False)
    ax.set_title("pairs within r", loc="left", color=FAINT)

    eps, exponent = findings.eps, known(findings.epsilon.get("exponent"))
    if exponent is not None and fitted.any():
        _fitted_line(ax, radius[fitted], pairs[fitted], eps, findings.epsilon)
    elif findings.epsilon.get("note"):
        why = one_line(str(findings.epsilon["note"]), 80)
        halo(ax.annotate(why, (1, 0), (-4, 4), "axes fraction", "offset points", ha="right", color=FAINT))
    if eps is not None and eps > 0:
        _mark_eps(ax, findings, eps)
    ax.margins(0.06)
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        # With less than two decades, 1-2-5 steps; otherwise an axis might show a single number.
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=9))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: words.tick(value)))
    return fig


@styled
def cluster_sizes(findings: Findings) -> Figure:
    """Draw how many clusters there are of each size, in the classes 1, 2-4, 5-9, 10-19, 20-49, ..."""
    sizes, counts = findings.cluster_sizes, findings.cluster_size_counts
    if not len(sizes):
        return note("No clusters.")
    edges = np.array(
        [step * 10**power for power in range(19) for step in (1, 2, 5) if power < 18 or step == 1]
    )
    first, last = (int(np.searchsorted(edges, size, side="right")) - 1 for size in (sizes.min(), sizes.max()))
    low, high = edges[first : last + 1], edges[first + 1 : last + 2]
    inside = [(sizes >= a) & (sizes < b) for a, b in zip(low, high, strict=True)]
    clusters = np.array([counts[chosen].sum() for chosen in inside])
    points = np.array([(counts[chosen] * sizes[chosen]).sum() for chosen in inside])

    fig, ax = sheet(0.27 * len(low) + 0.1, left=1.35, bottom=0.1, top=0.05)
    place = np.arange(len(low))
    ax.barh(place, clusters, height=0.68, color=MEASURED)
    names = [words.count(a) if b - a == 1 else f"{a:,}–{b - 1:,}" for a, b in zip(low, high, strict=True)]
    ax.set_yticks(place, [f"{name} points" if i == 0 else name for i, name in enumerate(names)], color=INK)
    ax.invert_yaxis()
    for y, n_clusters, n_points in zip(place, clusters, points, strict=True):
        if n_clusters:
            text = f"{words.plural(int(n_clusters), 'cluster')}, {words.plural(int(n_points), 'point')}"
            ax.annotate(text, (n_clusters, y), (5, 0), textcoords="offset points", va="center", color=FAINT)
    ax.set_xlim(0, clusters.max() * 1.55)  # room for the words at the longest bar
    ax.xaxis.set_visible(False)
    ax.spines["bottom"].set_visible(False)
    return fig


@styled
def cost(findings: Findings) -> Figure:
    """Draw what the plan expected and what the run measured: replicas, candidates, pairs."""
    plan = findings.plan
    lines = [
        ("replicas", known(plan.get("expected_rows")), known(findings.n_replicas)),
        (
            "candidates",
            known(plan.get("expected_candidates")),
            known(findings.n_candidates),
        ),
        ("pairs", known(plan.get("expected_pairs")), known(findings.n_pairs)),
    ]
    values = [value for _, *both in lines for value in both if value is not None and value > 0]
    if not values:
        return note("Nothing was expected or measured.")
    fig, ax = sheet(2.3, left=0.35, right=0.35)
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
            _ring(ax, expected, y)
        if measured:
            ax.plot(measured, y, "o", markersize=5.5, color=MEASURED, zorder=3)
        text = f"{name}: expected {words.count(expected)}, measured {words.count(measured)}"
        if expected and measured is not None:
            text += f" ({words.change(expected, measured)})"
        halo(ax.annotate(text, (0, y), (2, 9), ("axes fraction", "data"), "offset points"))
    handles = [_mark(MEASURED, "measured"), _mark("none", "expected", EXPECTED)]
    ax.legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, borderaxespad=0
    )
    return fig


def _scatter(
    ax: Axes, points: NDArray[np.float64], colour: str, area: float, as_picture: bool = False
) -> None:
    if len(points):
        ax.scatter(
            points[:, 0], points[:, 1], s=area, color=colour, linewidths=0, rasterized=as_picture, zorder=2
        )


def _ring(ax: Axes, x: float, y: float) -> None:
    ax.plot(
        x,
        y,
        "o",
        markersize=10,
        markerfacecolor=PAPER,
        markeredgecolor=EXPECTED,
        markeredgewidth=2,
        zorder=2.5,
    )


def _mark(colour: str, label: str, edge: str | None = None) -> Line2D:
    return Line2D(
        [],
        [],
        linestyle="",
        marker="o",
        markersize=5,
        color=colour,
        markeredgecolor=edge or colour,
        label=label,
    )


def _unbroken(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points with longitudes that run on over 180° where the data does; the widest gap becomes the edge."""
    longitudes = np.unique(points[:, 0])
    gaps = np.diff(longitudes, append=longitudes[0] + 360)
    widest = int(gaps.argmax())
    if gaps[widest] < max(30, 2 * gaps[-1]):
        return points  # the usual edge is as good
    moved = points.copy()
    moved[moved[:, 0] > longitudes[widest], 0] -= 360
    return moved


def _extent(
    points: NDArray[np.float64], is_geographic: bool
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Lower left and upper right corner of the map: the points with a margin, never empty."""
    low, high = points.min(axis=0), points.max(axis=0)
    least = 0.5 if is_geographic else np.maximum(np.abs(high) * 0.05, 1e-9)
    side = high - low
    margin = np.where(side > 0, side * 0.03, least)
    low, high = low - margin, high + margin
    if is_geographic:
        west = -180 if points[:, 0].min() >= -180 else -540
        low, high = np.maximum(low, (west, -90)), np.minimum(high, (180, 90))
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _aspect(is_geographic: bool, width: float, low: float, high: float) -> float | None:
    """Length of a unit of y over that of x; ``None``: axes so different that each gets its own scale."""
    if is_geographic:
        return float(1 / np.cos(np.radians(np.clip((low + high) / 2, -75, 75))))
    return 1.0 if 0.25 <= (high - low) / width <= 1.5 else None


def _map_axes(ax: Axes, findings: Findings) -> None:
    x_name, y_name = findings.map_axes
    if not findings.is_geographic:
        ax.set_xlabel(one_line(x_name, 60), parse_math=False)
        ax.set_ylabel(one_line(y_name, 60), parse_math=False)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(6))
            axis.set_major_formatter(FuncFormatter(lambda value, _: words.tick(value)))
        if not y_name:
            ax.yaxis.set_visible(False)
        return
    for axis, hemispheres in ((ax.xaxis, ("E", "W")), (ax.yaxis, ("N", "S"))):
        low, high = axis.get_view_interval()
        step = next(
            (s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30) if (high - low) / s <= 7), 60
        )
        axis.set_major_locator(
            FixedLocator((np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step).tolist())
        )
        axis.set_major_formatter(FuncFormatter(lambda value, _, h=hemispheres: words.degrees(value, *h)))
    ax.tick_params(axis="x", pad=6)  # or the corner's two numbers touch
    ax.grid(visible=True)


def _name_clusters(
    fig: Figure, ax: Axes, findings: Findings, points: NDArray[np.float64], named: Sequence[int]
) -> None:
    """Write each name beside its cluster, where it covers no other name and as few clusters as may be."""
    fig.draw_without_rendering()  # an axes' aspect, and so its data's place, is settled only by drawing
    renderer = FigureCanvasAgg(fig).get_renderer()  # type: ignore[no-untyped-call]  # Matplotlib's
    point = fig.dpi / 72
    rows = {int(row["cluster_id"]): row for row in findings.largest_clusters}
    anchors = {
        cluster_id: np.median(points[chosen], axis=0)
        for cluster_id in named
        if (chosen := findings.map_cluster_ids == cluster_id).any()
    }
    spots = {cluster_id: ax.transData.transform(anchor) for cluster_id, anchor in anchors.items()}
    names: list[Bbox] = []
    clusters = [
        _middle_of(ax.transData.transform(points[findings.map_cluster_ids == cluster_id]))
        for cluster_id in anchors
    ]
    around = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    places = [
        np.array((1.5 * np.cos(a), np.sin(a))) * reach for reach in (13, 24, 38, 54, 72) for a in around
    ]
    for cluster_id, anchor in anchors.items():
        colour = COLOURS[named.index(cluster_id)]
        name = rows[cluster_id].get("label") or f"cluster {cluster_id}"
        text = f"{one_line(str(name), 26)} ({words.count(rows[cluster_id].get('size'))})"
        width, height, _ = renderer.get_text_width_height_descent(
            text, FontProperties(size=LABEL_SIZE), ismath=False
        )
        boxes = [_box_at(spots[cluster_id] + place * point, width, height) for place in places]
        prices = [
            30 * (_outside(box, ax.bbox) + sum(_shared(box, other) for other in names))
            + sum(_shared(box, other) for other in clusters)
            + np.hypot(*place)
            for box, place in zip(boxes, places, strict=True)
        ]
        best = int(np.argmin(prices))
        names.append(boxes[best])
        halo(
            ax.annotate(
                text,
                tuple(anchor),
                tuple(places[best]),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=LABEL_SIZE,
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 1, "shrinkA": 0, "shrinkB": 1},
                zorder=5,
            )
        )


def _middle_of(pixels: NDArray[np.float64]) -> Bbox:
    """Box of the middle 80 % of a cluster's points: far-flung points do not keep a name away."""
    low, high = np.quantile(pixels, (0.1, 0.9), axis=0)
    return Bbox((low - 4, high + 4))


def _box_at(middle: NDArray[np.float64], width: float, height: float) -> Bbox:
    return Bbox.from_bounds(float(middle[0]) - width / 2, float(middle[1]) - height / 2, width, height)


def _shared(one: BboxBase, other: BboxBase) -> float:
    """Area in both boxes, in square pixels."""
    both = Bbox.intersection(one, other)
    return 0.0 if both is None else float(both.width * both.height)


def _outside(box: Bbox, frame: BboxBase) -> float:
    """Area of the box that lies outside the frame, in square pixels."""
    return float(box.width * box.height) - _shared(box, frame)


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
    text = f"P = {words.measure(exponent, digits=3)}"
    low, high = (known(epsilon.get(f"exponent_{end}")) for end in ("low", "high"))
    if low is not None and high is not None:
        text += f"\n95 %: {words.measure(low, digits=3)} to {words.measure(high, digits=3)}"
    # a cumulative curve rises, so the lower right corner is free
    halo(ax.text(0.98, 0.04, text, transform=ax.transAxes, ha="right", va="bottom", color=INK))


def _mark_eps(ax: Axes, findings: Findings, eps: float) -> None:
    """Draw the chosen ε as a line over the whole height, with the pairs expected and found there."""
    ax.axvline(eps, color=EXPECTED, linewidth=1.4)
    text = f"ε = {words.measure(eps, findings.unit)}"
    expected = known(findings.epsilon.get("expected_pairs"))
    if expected is not None and expected > 0:
        _ring(ax, eps, expected)
        text += f"\nexpected {words.plural(round(expected), 'pair')}"
    if findings.n_pairs > 0:
        ax.plot(eps, findings.n_pairs, "D", markersize=5, color=INK, zorder=3)
        text += f"\nfound {words.count(findings.n_pairs)}"
    # The curve rises to the right, so left of the line at its upper end there is room.
    halo(
        ax.annotate(
            text,
            (eps, 1),
            (-6, -3),
            ("data", "axes fraction"),
            "offset points",
            ha="right",
            va="top",
            color=INK,
        )
    )
