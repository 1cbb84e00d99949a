"""Colours and marks that several figures of a run share."""

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
MEASURED, EXPECTED = COLOURS[0], COLOURS[1]


def scatter(
    ax: Axes, points: NDArray[np.float64], colour: str, area: float, as_picture: bool = False
) -> None:
    """Draw points, in the SVG as one picture if there are many."""
    if len(points):
        ax.scatter(
            points[:, 0], points[:, 1], s=area, color=colour, linewidths=0, rasterized=as_picture, zorder=2
        )


def ring(ax: Axes, x: float, y: float) -> None:
    """Draw what was expected."""
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


def mark(colour: str, label: str, edge: str | None = None) -> Line2D:
    """Make a legend's mark."""
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


def short_numbers(axis: Axis) -> None:
    """Write few and short numbers at an axis on a log scale, more of them where it spans little."""
    low, high = sorted(axis.get_view_interval())
    # With less than two decades, 1-2-5 steps; otherwise an axis might show a single number.
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=9))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: words.tick(value)))
