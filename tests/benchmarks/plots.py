"""The answers as pictures: dark on white, the same bytes for the same numbers."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from epsjoin.report.figures.figure import COLOURS, FAINT, INK, PAPER, STYLE, new_axes

from .questions import Curve

_COLOUR_OF = {"epsjoin": COLOURS[0], "cKDTree": COLOURS[1]}


def write_ratios(file: Path, ratios: Mapping[str, Sequence[float]]) -> None:
    """How many times faster, by set: a dot at the median, a line from the least to the greatest round."""
    with mpl.rc_context(STYLE):
        fig, ax = new_axes(0.28 * len(ratios) + 0.2, left=0.95, right=0.5)
        for y, values in enumerate(ratios.values()):
            middle = statistics.median(values)
            ax.plot([min(values), max(values)], [y, y], color=COLOURS[0], linewidth=3, alpha=0.45)
            ax.plot([middle], [y], "o", color=COLOURS[0], markersize=6)
            ax.annotate(
                f"{middle:.1f}", (max(values), y), (7, 0), textcoords="offset points", va="center", color=INK
            )
        ax.axvline(1.0, color=FAINT, linewidth=1, linestyle="--")
        ax.set_yticks(range(len(ratios)), list(ratios), color=INK)
        ax.invert_yaxis()
        ax.set_xscale("log")
        ax.set_xlim(left=0.9 * min(1.0, *(min(values) for values in ratios.values())))
        _plain(ax.xaxis, (1, 2, 5))
        ax.grid(visible=True, axis="x")
        ax.set_xlabel("how many times faster, by CPU time (dot: median; bar: all rounds)")
        write(fig, file)


def write_growth(file: Path, curve: Curve) -> None:
    """CPU seconds against a size, both on log scales."""
    with mpl.rc_context(STYLE):
        fig, ax = new_axes(2.9, right=0.8)
        for name, cost in curve.seconds.items():
            if not cost:
                continue
            x = curve.x[: len(cost)]
            ax.plot(x, cost, "o-", color=_COLOUR_OF[name], linewidth=1.6, markersize=5)
            ax.annotate(
                name,
                (x[-1], cost[-1]),
                (7, 0),
                textcoords="offset points",
                va="center",
                color=_COLOUR_OF[name],
            )
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(curve.x, [f"{x:,}" for x in curve.x])
        ax.xaxis.set_minor_locator(NullLocator())
        _plain(ax.yaxis, (1, 3))
        ax.grid(visible=True)
        ax.set_xlabel(curve.label)
        ax.set_ylabel("CPU seconds")
        write(fig, file)


def _plain(axis: mpl.axis.Axis, steps: Sequence[float]) -> None:
    """Numbers as they are said, not powers of ten."""
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def write(fig: Figure, file: Path) -> None:
    fig.savefig(file, format="svg", facecolor=PAPER, metadata={"Date": None})
