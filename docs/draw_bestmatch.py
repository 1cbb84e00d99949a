"""Draws the picture of ``docs/best-matches.md`` from its first example; ``make docs`` calls it."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from draw_library import ROOT, blocks
from epsjoin.report.figures.figure import EXPECTED, FAINT, INK, MEASURED, NOISE_COLOUR, STYLE, new_axes

PAGE = ROOT / "docs" / "best-matches.md"
PICTURE = ROOT / "docs" / "pictures" / "best-matches.png"
EPS = (30.0, 1.0)
SHOWN = (17.0, 0.55)
"""End of the axes, in seconds and magnitudes."""


def run_first_block() -> dict[str, Any]:
    """Run the page's first block; return its names."""
    names: dict[str, Any] = {}
    with redirect_stdout(StringIO()):
        exec(blocks(PAGE)[0], names)  # noqa: S102  # the page's code
    return names


def draw(names: dict[str, Any]) -> Figure:
    """Draw how far the matches of the first left row are from it, and what each best match dominates."""
    distances = np.abs(names["right"] - names["left"][0])
    best = set(names["best"].right[names["best"].left == 0].tolist())
    with mpl.rc_context(STYLE):
        fig, ax = new_axes(2.4, left=0.65, bottom=0.5, top=0.15)
        ax.set_xlim(0, SHOWN[0])
        ax.set_ylim(0, SHOWN[1])
        for row, (x, y) in enumerate(distances.tolist()):
            if x > EPS[0] or y > EPS[1]:
                continue
            colour = MEASURED if row in best else NOISE_COLOUR
            if row in best:
                ax.add_patch(Rectangle((x, y), SHOWN[0], SHOWN[1], color=EXPECTED, alpha=0.13, linewidth=0))
            ax.plot(x, y, "o", color=colour, markersize=7, zorder=3)
            text = f"right row {row}" + ("" if row in best else ": dominated")
            ax.annotate(text, (x, y), (7, 5), textcoords="offset points", color=INK)
        ax.set_xlabel("seconds apart", color=FAINT)
        ax.set_ylabel("magnitudes apart", color=FAINT)
    return fig


if __name__ == "__main__":
    draw(run_first_block()).savefig(PICTURE, dpi=220, metadata={"Software": None})
