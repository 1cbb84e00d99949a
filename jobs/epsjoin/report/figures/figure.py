"""Sheets to draw a run's figures on, and the way from a figure to SVG and PNG.

Nothing here touches pyplot, a display, the network or the clock. Neutral parts are drawn in the colours of a
light page; in the SVG these become CSS variables, so that the page can swap them on a dark one. Data colours
are middle tones that can be told from both grounds, and by people who see few colours.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from epsjoin.findings import Findings

INK, FAINT, RULE, PAPER = "#1f2429", "#5c646d", "#d8dce1", "#ffffff"
NEUTRALS = {INK: "var(--ink)", FAINT: "var(--faint)", RULE: "var(--rule)", PAPER: "var(--paper)"}
COLOURS = ("#0077bb", "#ee7733", "#009988", "#cc3311", "#33aadd", "#ee3377", "#aa8800", "#8855cc")
"""Of the largest clusters, in their order: Tol's vibrant scheme and two more."""

WIDTH_IN = 6.4
NARROW_IN = 4.4
"""Width of all figures but the map: on a phone their texts are then as large as the page's small print."""
PNG_WIDTH = 1600

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": FAINT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "figure.dpi": 100,
    "svg.fonttype": "none",  # text stays text: small, can be searched, read aloud, in any script
    "svg.hashsalt": "epsjoin",  # ids are random without
    "path.simplify": True,
}

LabelT = TypeVar("LabelT", bound=Text)

Plot = Callable[[Findings], Figure]


def styled(plot: Plot) -> Plot:
    """Let a plot draw in the style of this module, whatever the user's own settings are."""

    @wraps(plot)
    def in_style(findings: Findings) -> Figure:
        with mpl.rc_context(STYLE):
            return plot(findings)

    return in_style


def to_svg(fig: Figure, name: str, label: str) -> str:
    """Write the figure as an ``<svg>`` element to stand inside an HTML page, the same bytes every time.

    Parameters
    ----------
    name : put before every id, so that several figures can share a page.
    label : what the picture shows, for people who hear the page.

    Notes
    -----
    No namespaces, metadata, date, size or link: the page's CSS gives it the width. Texts whose id has
    ``label`` in it want a halo in the colour of the page (``paint-order: stroke``).
    """
    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        fig.savefig(buffer, format="svg", dpi=190, transparent=True)
    root = ElementTree.fromstring(buffer.getvalue())  # noqa: S314  # our own, written two lines above
    for child in list(root):
        if _local(child.tag) == "metadata":
            root.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.tail = None
        if element.text is not None and not element.text.strip():
            element.text = None
        attributes = {
            _local(key): _on_page(_local(key), value, name) for key, value in element.attrib.items()
        }
        element.attrib.clear()
        element.attrib.update(attributes)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.attrib.update({"role": "img", "aria-label": label, "class": "figure"})
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def to_png(fig: Figure) -> bytes:
    """Write the figure on white, ``PNG_WIDTH`` pixels wide, the same bytes every time."""
    for text in fig.findobj(lambda artist: str(artist.get_gid() or "").startswith("label")):
        text.set_path_effects([patheffects.withStroke(linewidth=2.5, foreground=PAPER)])
    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        fig.savefig(
            buffer,
            format="png",
            dpi=PNG_WIDTH / fig.get_figwidth(),
            facecolor=PAPER,
            metadata={"Software": None},
        )
    return buffer.getvalue()


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _on_page(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    value = value.replace("url(#", f"url(#{name}-")
    if key in ("style", "fill", "stroke"):
        value = re.sub("|".join(NEUTRALS), lambda found: NEUTRALS[found[0]], value)
    return value


def sheet(
    height: float,
    left: float = 0.6,
    right: float = 0.15,
    bottom: float = 0.45,
    top: float = 0.25,
    width: float = WIDTH_IN,
) -> tuple[Figure, Axes]:
    """Make a figure with axes of that height; all in inches, so that text never needs a layout."""
    full = height + bottom + top
    fig = blank(full, width)
    box = (left / width, bottom / full, (width - left - right) / width, height / full)
    return fig, fig.add_axes(box)


def blank(height: float, width: float = WIDTH_IN) -> Figure:
    """Make a figure without axes; in inches."""
    fig = Figure(figsize=(width, height))
    FigureCanvasAgg(fig)
    return fig


def note(text: str) -> Figure:
    """Make a figure that says why there is nothing to draw."""
    fig, ax = sheet(0.8, bottom=0.1, top=0.1, width=NARROW_IN)
    ax.set_axis_off()
    lines = textwrap.fill(one_line(text, 150), 58)
    ax.text(0.5, 0.5, lines, ha="center", va="center", color=FAINT, parse_math=False)
    return fig


def one_line(text: str, most: int) -> str:
    """Text from the data on one line, without what no XML may hold, no longer than ``most``."""
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= most else text[: most - 1] + "…"


def halo(text: LabelT) -> LabelT:
    """Mark a text that stands among data: it gets a halo in the colour of the page."""
    text.set_gid("label")
    text.set_parse_math(False)
    return text
