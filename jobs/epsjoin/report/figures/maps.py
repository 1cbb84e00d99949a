"""The maps of a run and of what changed in it; pure functions from findings to a Matplotlib figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from epsjoin.findings import Findings, to_number
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
    COLOURS,
    INK,
    MOVED,
    NOISE_COLOUR,
    OTHER,
    RULE,
    WENT,
    add_halo,
    clean_line,
    draw_note,
    draw_points,
    legend_mark,
    use_style,
)
from epsjoin.report.figures.labels import Ground, Label, choose_places
from epsjoin.vocabulary import NOISE

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""A name of which eight characters are enough on a map."""

LABEL_SIZE, RANK_SIZE = 9, 7.5
"""Font sizes of a cluster's name and of an outlier's rank, in points."""

MAX_BACKGROUND = 1000
"""Maximum number of points below the changes, which show only where the data lies."""


@use_style
def draw_map(findings: Findings) -> Figure:
    """Draw the sample of points: the largest clusters with colours and names, the others muted, noise grey.

    A geographic map has coastlines, a graticule and the right aspect at its middle latitude. It is cut at
    the widest gap between longitudes if that is much wider than the gap at 180°, so that Alaska stays in one
    piece.
    """
    if not len(findings.map_points):
        return draw_note("No points.")
    ids, layout = findings.map_cluster_ids, _lay_out(findings)
    points = layout.points
    fig, ax = new_map(findings.map_axes, findings.is_geographic, layout.low, layout.high)

    named = [int(row["cluster_id"]) for row in findings.largest_clusters[: len(COLOURS)]]
    area = float(np.clip(6e4 / len(points), 1.5, 14))
    # all layers or none: otherwise each layer would be an image of its own
    as_image = len(points) > MAX_MARKS
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
    if len(layout.outliers):
        ring: dict[str, Any] = {"markersize": 4, "markerfacecolor": "none", "markeredgecolor": INK}
        ax.plot(*layout.outliers.T, "o", **ring, zorder=4, clip_on=False)
        handles.append(legend_mark("none", "outliers", INK))
    put_legend(ax, handles, 4, count_beyond(points, layout.low, layout.high))
    _name_clusters(fig, ax, findings, layout, named)
    return fig


@use_style
def draw_changes(findings: Findings) -> Figure:
    """Draw where records came (+), went (x) and moved (a line to a dot), on the map of the run."""
    found = findings.comparison
    if found is None or not found.against:
        return draw_note("There is no run to compare with.")
    if not found.n_marks:
        return draw_note("No record came, went or moved.")
    ends = found.moves.reshape(-1, 2)
    every = np.concatenate([findings.map_points, found.came, found.went, ends])
    every = shift_longitudes(every) if findings.is_geographic else every
    edges = np.cumsum([len(findings.map_points), len(found.came), len(found.went)])
    points, came, went, ends = np.split(every, edges)
    low, high = find_extent(every, findings.is_geographic)
    fig, ax = new_map(findings.map_axes, findings.is_geographic, low, high)
    draw_points(ax, points[:: -(-len(points) // MAX_BACKGROUND) or 1], RULE, 2.0)
    size = float(np.clip(400 / found.n_marks, 3, 6))
    for places, mark, colour in ((came, "+", CAME), (went, "x", WENT)):
        ax.plot(*places.T, mark, color=colour, markersize=size, markeredgewidth=1.1, zorder=3)
    if len(ends):
        lines, end = lines_between(ends, findings.is_geographic)
        ax.plot(*lines.T, color=MOVED, linewidth=1.1, zorder=3)
        ax.plot(*end.T, "o", color=MOVED, markersize=size * 0.6, zorder=3)
    counts = (
        ("came", "+", CAME, found.inserted),
        ("went", "x", WENT, found.deleted),
        ("moved", "o", MOVED, found.moved),
    )
    handles = [
        Line2D([], [], linestyle="", marker=mark, color=colour, label=f"{words.count(number)} {text}")
        for text, mark, colour, number in counts
    ]
    put_legend(ax, handles, 3, count_beyond(every, low, high))
    return fig


class Layout(NamedTuple):
    """Where things are on the map.

    Parameters
    ----------
    points : (n, 2) float64, the places of the findings' points.
    outliers : (m, 2) float64, the places of the first outliers; of those beyond the map, at its edge.
    ranks : their ranks.
    low, high : lower left and upper right corner of the map.
    """

    points: NDArray[np.float64]
    outliers: NDArray[np.float64]
    ranks: list[int]
    low: tuple[float, float]
    high: tuple[float, float]


def _lay_out(findings: Findings) -> Layout:
    """Place the points and the outliers, which need not be among them, on one map."""
    places, ranks = [], []
    for row in findings.outliers:
        place = [to_number(row["columns"].get(name)) if name else 0.0 for name in findings.map_axes]
        if None not in place:
            places.append(place)
            ranks.append(int(row["rank"]))
    both = np.concatenate([findings.map_points, np.array(places, np.float64).reshape(-1, 2)])
    if findings.is_geographic:
        both = shift_longitudes(both)
    n = len(findings.map_points)
    low, high = find_extent(both, findings.is_geographic)
    return Layout(both[:n], np.clip(both[n:], low, high), ranks, low, high)


def has_coastlines(findings: Findings) -> bool:
    """Whether coastlines are on the map of these findings."""
    if not findings.is_geographic or not len(findings.map_points):
        return False
    layout = _lay_out(findings)
    return bool(find_coastlines(layout.low, layout.high))


def _name_clusters(fig: Figure, ax: Axes, findings: Findings, layout: Layout, named: Sequence[int]) -> None:
    """Write the rank next to each outlier and the name next to each cluster, off one another and off both."""
    fig.draw_without_rendering()  # only drawing fixes the aspect of the axes, and so the places of the data
    rows = {int(row["cluster_id"]): row for row in findings.largest_clusters}
    members = {cluster_id: layout.points[findings.map_cluster_ids == cluster_id] for cluster_id in named}
    anchors = {
        each: np.clip(np.median(points, axis=0), layout.low, layout.high)
        for each, points in members.items()
        if len(points)
    }
    texts = [
        _Text(str(rank), place, RANK_SIZE, (7, 12, 18, 26, 34), INK)
        for rank, place in zip(layout.ranks, layout.outliers, strict=True)
    ]
    for cluster_id, anchor in anchors.items():
        row = rows[cluster_id]
        name = str(row.get("called") or row.get("label") or f"cluster {cluster_id}")
        length = 9 if _UUID.fullmatch(name) else 26
        text = f"{clean_line(name, length)} ({words.count(row.get('size'))})"
        colour = COLOURS[named.index(cluster_id)]
        texts.append(_Text(text, anchor, LABEL_SIZE, (13, 18, 24, 31, 38, 46, 54, 63, 72), colour))
    rings = ax.transData.transform(layout.outliers).reshape(-1, 2)
    clusters = [_box_of(ax.transData.transform(members[cluster_id])) for cluster_id in anchors]
    ground = Ground(
        np.array(ax.bbox.extents), np.column_stack([rings - 4, rings + 4]), np.reshape(clusters, (-1, 4))
    )
    _write(fig, ax, texts, ground)


class _Text(NamedTuple):
    """A text, the place of the data that it names, its size and its distances from there, in points."""

    text: str
    place: NDArray[np.float64]
    size: float
    reach: Sequence[float]
    colour: str


def _write(fig: Figure, ax: Axes, texts: Sequence[_Text], ground: Ground) -> None:
    """Write texts, each joined to its place by a line; first those of the outliers, whose rings are taken."""
    renderer = FigureCanvasAgg(fig).get_renderer()  # type: ignore[no-untyped-call]  # Matplotlib's
    point = fig.dpi / 72
    around = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    n_taken = len(ground.taken)
    labels, offsets = [], []
    for number, (text, place, size, reach, _) in enumerate(texts):
        far = np.array(reach)[:, None]
        places = np.stack([1.5 * np.cos(around) * far, np.sin(around) * far], axis=2).reshape(-1, 2)
        font = FontProperties(size=size)
        width, _, _ = renderer.get_text_width_height_descent(text, font, ismath=False)
        _, height, _ = renderer.get_text_width_height_descent("lp", font, ismath=False)  # of any line
        anchor = ax.transData.transform(place)
        middles, half = anchor + places * point, np.array((width, height)) / 2
        boxes = np.column_stack([middles - half, middles + half])
        own = number if number < n_taken else number - n_taken
        labels.append(Label(anchor, boxes, np.hypot(*places.T), own))
        offsets.append(places)
    for each, places, best in zip(texts, offsets, choose_places(labels, ground, n_taken), strict=True):
        line = {
            "arrowstyle": "-",
            "color": each.colour,
            "linewidth": each.size / 9,
            "shrinkA": 0,
            "shrinkB": 1,
        }
        add_halo(
            ax.annotate(
                each.text,
                tuple(each.place),
                tuple(places[best].tolist()),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=each.size,
                arrowprops=line,
                zorder=5,
            )
        )


def _box_of(pixels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the box of the middle 80 % of a cluster's points, so that stray points keep no name away."""
    low, high = np.quantile(pixels, (0.1, 0.9), axis=0)
    return np.concatenate([low - 4, high + 4])
