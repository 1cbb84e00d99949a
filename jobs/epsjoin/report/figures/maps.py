"""The map of a run: a pure function from findings to a Matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from epsjoin.findings import NOISE, Findings
from epsjoin.report import words
from epsjoin.report.figures.figure import (
    COLOURS,
    NOISE_COLOUR,
    OTHER,
    WIDTH_IN,
    add_halo,
    clean_line,
    draw_note,
    draw_points,
    legend_mark,
    new_axes,
    use_style,
)

LABEL_SIZE = 9
"""Font size of a cluster's name, in points."""

MAX_MARKS = 2000
"""Maximum number of points that the SVG draws one by one; more become an image, to keep the page small."""

Boxes = NDArray[np.float64]
"""Boxes in pixels: left, lower, right and upper end of each."""

MIN_MAP_HEIGHT_IN, MAX_MAP_HEIGHT_IN = 1.4, 4.2
"""Bounds of the map's height, in inches."""


@use_style
def draw_map(findings: Findings) -> Figure:
    """Draw the sample of points: the largest clusters with colours and names, the others muted, noise grey.

    A geographic map has a graticule and the right aspect at its middle latitude. It is cut at the widest gap
    between longitudes if that is much wider than the gap at 180°, so that Alaska stays in one piece.
    """
    points, ids = findings.map_points, findings.map_cluster_ids
    if not len(points):
        return draw_note("No points.")
    if findings.is_geographic:
        points = _shift_longitudes(points)
    (x_low, y_low), (x_high, y_high) = _find_extent(points, findings.is_geographic)
    aspect = _choose_aspect(findings.is_geographic, x_high - x_low, y_low, y_high)
    shape = 0.62 if aspect is None else (y_high - y_low) * aspect / (x_high - x_low)
    fig, ax = new_axes(
        float(np.clip((WIDTH_IN - 0.9) * shape, MIN_MAP_HEIGHT_IN, MAX_MAP_HEIGHT_IN)), right=0.3, bottom=0.4
    )
    ax.set_xlim(x_low, x_high)
    ax.set_ylim(y_low, y_high)
    if aspect is not None:
        ax.set_aspect(aspect)
    _draw_axes(ax, findings)

    named = [int(row["cluster_id"]) for row in findings.largest_clusters[: len(COLOURS)]]
    area = float(np.clip(6e4 / len(points), 1.5, 14))
    as_image = (
        len(points) > MAX_MARKS
    )  # all layers or none: otherwise each layer would be an image of its own
    is_noise = ids == NOISE
    is_named = np.isin(ids, named)
    legend = [
        ("noise", is_noise, NOISE_COLOUR, area * 0.7),
        ("other clusters", ~is_noise & ~is_named, OTHER, area),
    ]
    for _, chosen, colour, size in legend:
        draw_points(ax, points[chosen], colour, size, as_image)
    for cluster_id, colour in zip(named, COLOURS, strict=False):
        draw_points(ax, points[ids == cluster_id], colour, area * 1.8, as_image)
    handles = [legend_mark(colour, label) for label, chosen, colour, _ in legend if chosen.any()]
    if is_named.any():
        handles.append(legend_mark(COLOURS[0], "largest clusters"))
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


def _shift_longitudes(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shift longitudes beyond the widest gap by 360°, so that data across 180° stays together."""
    longitudes = np.unique(points[:, 0])
    gaps = np.diff(longitudes, append=longitudes[0] + 360)
    widest = int(gaps.argmax())
    if gaps[widest] < max(30, 2 * gaps[-1]):
        return points  # cutting at 180° is as good
    moved = points.copy()
    moved[moved[:, 0] > longitudes[widest], 0] -= 360
    return moved


def _find_extent(
    points: NDArray[np.float64], is_geographic: bool
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Find the lower left and upper right corner of the map: the points with a margin, never an empty box."""
    low, high = points.min(axis=0), points.max(axis=0)
    min_margin = 0.5 if is_geographic else np.maximum(np.abs(high) * 0.05, 1e-9)
    side = high - low
    margin = np.where(side > 0, side * 0.03, min_margin)
    low, high = low - margin, high + margin
    if is_geographic:
        west = -180 if points[:, 0].min() >= -180 else -540
        low, high = np.maximum(low, (west, -90)), np.minimum(high, (180, 90))
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _choose_aspect(is_geographic: bool, width: float, low: float, high: float) -> float | None:
    """Choose the length of a unit of y over one of x; ``None``: the axes differ too much, each is scaled."""
    if is_geographic:
        return float(1 / np.cos(np.radians(np.clip((low + high) / 2, -75, 75))))
    return 1.0 if 0.25 <= (high - low) / width <= 1.5 else None


def _draw_axes(ax: Axes, findings: Findings) -> None:
    x_name, y_name = findings.map_axes
    if not findings.is_geographic:
        ax.set_xlabel(clean_line(x_name, 60), parse_math=False)
        ax.set_ylabel(clean_line(y_name, 60), parse_math=False)
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
    ax.tick_params(axis="x", pad=6)  # otherwise the two numbers at the corner touch
    ax.grid(visible=True)


def _name_clusters(
    fig: Figure, ax: Axes, findings: Findings, points: NDArray[np.float64], named: Sequence[int]
) -> None:
    """Write each name next to its cluster, off other names and, if possible, off the clusters."""
    fig.draw_without_rendering()  # only drawing fixes the aspect of the axes, and so the places of the data
    renderer = FigureCanvasAgg(fig).get_renderer()  # type: ignore[no-untyped-call]  # Matplotlib's
    point = fig.dpi / 72
    rows = {int(row["cluster_id"]): row for row in findings.largest_clusters}
    anchors = {
        cluster_id: np.median(points[chosen], axis=0)
        for cluster_id in named
        if (chosen := findings.map_cluster_ids == cluster_id).any()
    }
    spots = {cluster_id: ax.transData.transform(anchor) for cluster_id, anchor in anchors.items()}
    names: list[Boxes] = []
    clusters = [
        _box_of(ax.transData.transform(points[findings.map_cluster_ids == cluster_id]))
        for cluster_id in anchors
    ]
    frame = np.array(ax.bbox.extents)
    around = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    reach = np.array((13, 24, 38, 54, 72))[:, None]
    places = np.stack([1.5 * np.cos(around) * reach, np.sin(around) * reach], axis=2).reshape(-1, 2)
    for cluster_id, anchor in anchors.items():
        colour = COLOURS[named.index(cluster_id)]
        name = rows[cluster_id].get("label") or f"cluster {cluster_id}"
        text = f"{clean_line(str(name), 26)} ({words.count(rows[cluster_id].get('size'))})"
        width, height, _ = renderer.get_text_width_height_descent(
            text, FontProperties(size=LABEL_SIZE), ismath=False
        )
        middles = spots[cluster_id] + places * point
        half = np.array((width, height)) / 2
        boxes = np.column_stack([middles - half, middles + half])
        outside = width * height - _overlaps(boxes, frame)
        on_names = sum((_overlaps(boxes, other) for other in names), np.zeros(len(boxes)))
        on_clusters = sum((_overlaps(boxes, other) for other in clusters), np.zeros(len(boxes)))
        best = int(np.argmin(30 * (outside + on_names) + on_clusters + np.hypot(*places.T)))
        names.append(boxes[best])
        add_halo(
            ax.annotate(
                text,
                tuple(anchor),
                tuple(places[best].tolist()),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=LABEL_SIZE,
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 1, "shrinkA": 0, "shrinkB": 1},
                zorder=5,
            )
        )


def _box_of(pixels: NDArray[np.float64]) -> Boxes:
    """Return the box of the middle 80 % of a cluster's points, so that stray points keep no name away."""
    low, high = np.quantile(pixels, (0.1, 0.9), axis=0)
    return np.concatenate([low - 4, high + 4])


def _overlaps(boxes: Boxes, other: Boxes) -> NDArray[np.float64]:
    """Return the area that each box and the other one cover both, in square pixels."""
    low, high = np.maximum(boxes[:, :2], other[:2]), np.minimum(boxes[:, 2:], other[2:])
    return np.asarray(np.maximum(high - low, 0).prod(axis=1))
