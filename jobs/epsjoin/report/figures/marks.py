"""Colours, marks, legend and axes that several figures of a run share."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from epsjoin.report import words
from epsjoin.report.figures.figure import COLOURS, PAPER

OTHER, NOISE_COLOUR = "#72839b", "#a9aeb5"
"""Colours of the clusters that have none of their own, and of noise."""

MEASURED, EXPECTED = COLOURS[0], COLOURS[1]
"""Colours of what was measured, and of what was expected, chosen or earlier."""


def draw_points(
    ax: Axes, points: NDArray[np.float64], colour: str, area: float, as_image: bool = False
) -> None:
    """Draw points; with ``as_image`` they become one image in the SVG."""
    if len(points):
        ax.scatter(
            points[:, 0], points[:, 1], s=area, color=colour, linewidths=0, rasterized=as_image, zorder=2
        )


def draw_ring(ax: Axes, x: float, y: float) -> None:
    """Draw a ring, the mark of an expected or earlier number."""
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


def legend_mark(colour: str, label: str, edge: str | None = None) -> Line2D:
    """Make a mark for a legend."""
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


def add_legend(ax: Axes, handles: list[Line2D]) -> None:
    """Put a legend of one line into the upper right corner of the axes, above the data."""
    ax.legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, borderaxespad=0
    )


def hide_x_axis(ax: Axes) -> None:
    """Hide the x axis of bars that have their numbers written next to them."""
    ax.xaxis.set_visible(False)
    ax.spines["bottom"].set_visible(False)


def write_short_numbers(axis: Axis) -> None:
    """Write few and short numbers at an axis on a log scale, more of them if it spans little."""
    low, high = sorted(axis.get_view_interval())
    # below two decades in steps of 1, 2 and 5: otherwise the axis might show a single number
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=9))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: words.tick(value)))
