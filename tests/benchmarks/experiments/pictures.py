"""Curves as pictures: dark on white, the same bytes for the same numbers."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from epsjoin.report.figures.figure import COLOURS, STYLE, new_axes

from ..plots import write
from .claims import Picture

_STYLES = ("-", "--", ":")


def draw(picture: Picture, folder: Path) -> None:
    """Write ``<folder>/<name>.svg``."""
    with mpl.rc_context(STYLE):
        fig, ax = new_axes(2.7, left=0.75, right=1.9, width=6.4)
        for number, line in enumerate(picture.lines):
            ax.plot(
                line.x,
                line.y,
                _STYLES[number // len(COLOURS) % len(_STYLES)],
                color=COLOURS[number % len(COLOURS)],
                marker="o",
                markersize=3.5,
                linewidth=1.4,
                label=line.name,
            )
        if picture.is_log_x:
            ax.set_xscale("log")
        if picture.is_log_y:
            ax.set_yscale("log")
        ax.grid(visible=True)
        ax.set_xlabel(picture.x_label)
        ax.set_ylabel(picture.y_label)
        ax.legend(
            loc="upper left", bbox_to_anchor=(1.02, 1.0), frameon=False, fontsize=8.5, labelcolor="#5c646d"
        )
        write(fig, folder / f"{picture.name}.svg")
