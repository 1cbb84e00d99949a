"""What all maps of a report share: extent, aspect, axes, coastlines, legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, Formatter, FuncFormatter, MaxNLocator
from matplotlib.transforms import blended_transform_factory
from numpy.typing import NDArray

from epsjoin.local.neighbours.rank import widest_gaps
from epsjoin.report import words
from epsjoin.report.figures.coastlines import find_coastlines
from epsjoin.report.figures.figure import FAINT, WIDTH_IN, clean_line, new_axes

MAX_MARKS = 2000
"""Maximum number of points that the SVG draws one by one; more become an image, to keep the page small."""

MIN_MAP_HEIGHT_IN, MAX_MAP_HEIGHT_IN = 1.4, 4.2
"""Bounds of the map's height, in inches."""

_STEPS = (*(n * 10.0**power for power in range(-6, 0) for n in (1, 2, 5)), 1, 2, 5, 10, 15, 30, 60, 90, 360)
"""Degrees between two lines of a map, one of which is taken."""


def new_map(
    names: tuple[str, str],
    is_geographic: bool,
    low: tuple[float, float],
    high: tuple[float, float],
) -> tuple[Figure, Axes]:
    """Make a map of this extent, with axes and coastlines.

    Parameters
    ----------
    names : of x and y; the second is "" with a single coordinate.
    is_geographic : whether x and y are degrees of longitude and latitude.
    low, high : lower left and upper right corner.
    """
    width, tall = high[0] - low[0], high[1] - low[1]
    aspect = _choose_aspect(is_geographic, width, low[1], high[1])
    shape = 0.62 if aspect is None else tall * aspect / width
    fig, ax = new_axes(
        float(np.clip((WIDTH_IN - 0.9) * shape, MIN_MAP_HEIGHT_IN, MAX_MAP_HEIGHT_IN)), right=0.3, bottom=0.4
    )
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    if aspect is not None:
        ax.set_aspect(aspect)
    _draw_axes(ax, names, is_geographic)
    if is_geographic:
        _draw_coastlines(ax, find_coastlines(low, high))
    return fig, ax


def put_legend(ax: Axes, handles: Sequence[Line2D], ncols: int, n_beyond: int = 0) -> None:
    """Explain the marks above the map, from where a map of the full width begins: a narrow one has no room.

    Where the words would end beyond the picture, they take more lines, for which the picture grows: smaller
    letters could not be read on a phone. Points beyond the map are counted.
    """
    if n_beyond:
        told = f"{words.count(n_beyond)} far away, not on this map"
        handles, ncols = [*handles, Line2D([], [], linestyle="", label=told)], ncols + 1
    figure, left = ax.figure, ax.get_position(original=True).x0
    for columns in range(ncols, 0, -1):
        legend = ax.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(left, 1),
            bbox_transform=blended_transform_factory(figure.transFigure, ax.transAxes),
            ncols=columns,
            frameon=False,
            borderaxespad=0.2,
            handletextpad=0,
            columnspacing=0.8,
        )
        if legend.get_window_extent().width <= (1 - left) * figure.bbox.width:
            break
    _grow_above(ax, legend.get_window_extent().y1 - figure.bbox.height)


def _grow_above(ax: Axes, missing: float) -> None:
    """Make a picture higher by so many pixels, above axes that keep their size and place."""
    if missing <= 0:
        return
    figure, place = cast("Figure", ax.figure), ax.get_position(original=True)
    width, height = figure.get_size_inches()
    full = height + math.ceil(missing) / figure.dpi
    figure.set_size_inches(width, full)
    ax.set_position((place.x0, place.y0 * height / full, place.width, place.height * height / full))


def shift_longitudes(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shift longitudes beyond the widest gap by 360°, so that data across 180° stays together."""
    moved = points.copy()
    moved[moved[:, 0] > widest_gaps(points[:, 0], 360.0), 0] -= 360
    return moved


def lines_between(
    ends: NDArray[np.float64], is_geographic: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Make lines of pairs of points, with a gap after each; on the earth the shorter way across 180°.

    Parameters
    ----------
    ends : (2 n, 2), the two ends of a line one after the other.

    Returns
    -------
    (3 n, 2) what is to be drawn as one line, and (n, 2) where the lines end.
    """
    begin, end = ends[0::2], ends[1::2].copy()
    if is_geographic:
        end[:, 0] = begin[:, 0] + (end[:, 0] - begin[:, 0] + 180) % 360 - 180
    gap = np.full_like(begin, np.nan)
    return np.stack([begin, end, gap], axis=1).reshape(-1, 2), end


_ONE_IN, _FAR = 100, 3.0
"""One point in so many may be beyond the map, if it lies so many widths of the others away from them."""

_FARTHEST = 1e290
"""Largest coordinate that is drawn; matplotlib computes with multiples of the sides of a map."""


def find_extent(
    points: NDArray[np.float64], is_geographic: bool
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Find the lower left and upper right corner of the map: the points with a margin, never an empty box.

    A few that lie far from all others are beyond the map: with them it would show the others as one dot.
    """
    shown = points[~_are_far(points)]
    low, high = np.clip([shown.min(axis=0), shown.max(axis=0)], -_FARTHEST, _FARTHEST)
    min_margin = 0.5 if is_geographic else np.maximum(np.abs(high) * 0.05, 1e-9)
    side = high - low
    margin = np.where(side > 0, side * 0.03, min_margin)
    low, high = low - margin, high + margin
    if is_geographic:
        west = -180 if points[:, 0].min() >= -180 else -540
        low, high = np.maximum(low, (west, -90)), np.minimum(high, (180, 90))
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _are_far(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the points that are beyond the map, if they are few: three times as far as most are apart."""
    n_few = len(points) // _ONE_IN
    none = np.zeros(len(points), np.bool_)
    if not n_few:
        return none
    ordered = np.sort(np.clip(points, -_FARTHEST, _FARTHEST), axis=0)
    low, high = ordered[n_few], ordered[-1 - n_few]
    reach = _FAR * (high - low)
    is_far = ((points < low - reach) | (points > high + reach)) & (high > low)
    found = np.asarray(is_far.any(axis=1))
    return found if found.sum() <= n_few else none


def count_beyond(points: NDArray[np.float64], low: tuple[float, float], high: tuple[float, float]) -> int:
    """Count the points that are beyond a map of this extent."""
    return int(((points < low) | (points > high)).any(axis=1).sum())


def _choose_aspect(is_geographic: bool, width: float, low: float, high: float) -> float | None:
    """Choose the length of a unit of y over one of x; ``None``: the axes differ too much, each is scaled."""
    if is_geographic:
        return float(1 / np.cos(np.radians(np.clip((low + high) / 2, -75, 75))))
    return 1.0 if 0.25 <= (high - low) / width <= 1.5 else None


class _Ticks(Formatter):
    """Writes the numbers at an axis."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002  # matplotlib's signature
        return words.tick(x)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return words.ticks(values)


def _draw_axes(ax: Axes, names: tuple[str, str], is_geographic: bool) -> None:
    x_name, y_name = names
    if not is_geographic:
        ax.set_xlabel(clean_line(x_name, 60), parse_math=False)
        ax.set_ylabel(clean_line(y_name, 60), parse_math=False)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(6))
            axis.set_major_formatter(_Ticks())
        if not y_name:
            ax.yaxis.set_visible(False)
        return
    ax.apply_aspect()
    width = ax.get_position().width * WIDTH_IN
    for axis, hemispheres, is_wide in ((ax.xaxis, ("E", "W"), True), (ax.yaxis, ("N", "S"), False)):
        low, high = axis.get_view_interval()
        step = next(
            step
            for step in _STEPS
            if (high - low) / step <= 7 and (not is_wide or (high - low) / step * _label_width(step) <= width)
        )
        axis.set_major_locator(
            FixedLocator((np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step).tolist())
        )
        axis.set_major_formatter(FuncFormatter(lambda value, _, h=hemispheres: words.degrees(value, *h)))
    ax.tick_params(axis="x", pad=6)  # otherwise the two numbers at the corner touch
    ax.grid(visible=True)


def _label_width(step: float) -> float:
    """Width of a longitude with the decimals that such steps need, in inches."""
    return 0.5 + 0.075 * max(0, -math.floor(math.log10(step)))


def _draw_coastlines(ax: Axes, lines: Sequence[NDArray[np.float64]]) -> None:
    """Draw the lines as one, below the points."""
    if lines:
        gap = np.full((1, 2), np.nan)
        both = np.concatenate([piece for line in lines for piece in (line, gap)])
        ax.plot(*both.T, color=FAINT, linewidth=0.5, alpha=0.7, zorder=1.5, gid="coastlines")
