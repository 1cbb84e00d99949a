"""Style, size, axes and marks of the report's Matplotlib figures, and their export as SVG and PNG.

Nothing here uses pyplot, a display, the network or the clock. Neutral colours are those of a light page; in
the SVG they become CSS variables, so that a dark page can replace them. The colours of data stand out on both
backgrounds, and colour-blind people can tell them apart.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from epsjoin.findings import RunFindings
from epsjoin.report import words

INK, FAINT, RULE, PAPER = "#1f2429", "#5c646d", "#d8dce1", "#ffffff"
"""Neutral colours: text, secondary text, lines, background."""

NEUTRALS = {INK: "var(--ink)", FAINT: "var(--faint)", RULE: "var(--rule)", PAPER: "var(--paper)"}
"""Neutral colours and the CSS variables that replace them in the SVG."""

COLOURS = ("#0077bb", "#ee7733", "#009988", "#cc3311", "#33aadd", "#ee3377", "#aa8800", "#8855cc")
"""Colours of the largest clusters, in their order: Tol's vibrant scheme and two more."""

OTHER, NOISE_COLOUR = "#72839b", "#a9aeb5"
"""Colours of the clusters that have none of their own, and of noise."""

MEASURED, EXPECTED = COLOURS[0], COLOURS[1]
"""Colours of what was measured, and of what was expected, chosen or earlier."""

CAME, WENT, MOVED = COLOURS[2], COLOURS[3], COLOURS[0]
"""Colours of records that came, went and moved since the run before."""

WIDTH_IN = 5.0
"""Width of the map, in inches: on a phone its names are then just large enough to be read."""

NARROW_IN = 4.4
"""Width of all other figures, in inches: on a phone their text is then as large as the page's small print."""

FONT_SIZE = 9.5
"""Size of the text of figures, in points, where nothing else is said."""

PNG_WIDTH = 1600
"""Width of a PNG file, in pixels."""

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": FONT_SIZE,
    "axes.titlesize": FONT_SIZE,
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
    "svg.fonttype": "none",  # text stays text, which is small and can be searched and read aloud
    "svg.hashsalt": "epsjoin",  # without it, ids are random
    "path.simplify": True,
}

LabelT = TypeVar("LabelT", bound=Text)

FindingsT = TypeVar("FindingsT", bound=RunFindings)

Plot = Callable[[FindingsT], Figure]
"""A function that draws one figure of a run."""


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the style of this module, whatever the user's Matplotlib settings are.

    Names of records may have characters that no font of Matplotlib's has, such as emoji. The SVG keeps them
    as text, which the reader's fonts draw, and a PNG has a box for each: nobody is warned of either.
    """
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font", category=UserWarning)
        yield


def use_style(plot: Plot[FindingsT]) -> Plot[FindingsT]:
    """Make a plot draw as :func:`styled`."""

    @wraps(plot)
    def draw(findings: FindingsT) -> Figure:
        with styled():
            return plot(findings)

    return draw


_NOT_IN_XML = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ufffe\\uffff]")
"""Characters of a text, such as a unit, that would break a picture."""


def to_svg(fig: Figure, name: str, label: str) -> str:
    """Write the figure as an ``<svg>`` element for an HTML page, the same bytes every time.

    Parameters
    ----------
    name : prefix of every id, so that several figures can stand on one page.
    label : description of the picture for screen readers.

    Notes
    -----
    The element has no namespaces, metadata, date, size or links. The page's CSS sets its width, and draws a
    halo in the colour of the page around texts whose id contains ``label`` (``paint-order: stroke``).
    """
    buffer = io.BytesIO()
    with styled():
        fig.savefig(buffer, format="svg", dpi=190, transparent=True)
    svg = _NOT_IN_XML.sub(" ", buffer.getvalue().decode())
    root = ElementTree.fromstring(svg)  # noqa: S314  # not foreign: written three lines above
    for child in list(root):
        if _strip_namespace(child.tag) == "metadata":
            root.remove(child)
    for element in root.iter():
        element.tag = _strip_namespace(element.tag)
        element.tail = None
        if element.text is not None and not element.text.strip():
            element.text = None
        attributes = {
            _strip_namespace(key): _adapt_attribute(_strip_namespace(key), value, name)
            for key, value in element.attrib.items()
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
    with styled():
        fig.savefig(
            buffer,
            format="png",
            dpi=PNG_WIDTH / fig.get_figwidth(),
            facecolor=PAPER,
            metadata={"Software": None},
        )
    return buffer.getvalue()


def _strip_namespace(name: str) -> str:
    return name.rpartition("}")[2]


def _adapt_attribute(key: str, value: str, name: str) -> str:
    """Put the figure's name before ids and references, and replace neutral colours by CSS variables."""
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    value = value.replace("url(#", f"url(#{name}-")
    if key in ("style", "fill", "stroke"):
        value = re.sub("|".join(NEUTRALS), lambda found: NEUTRALS[found[0]], value)
    return value


def measure_line(line: str, size: float = FONT_SIZE) -> float:
    """How wide a line of text is, in inches."""
    with styled():
        font = FontProperties(size=size)
        points, _, _ = text_to_path.get_text_width_height_descent(line, font, ismath=False)
    return float(points) / 72


def new_axes(
    height: float,
    left: float = 0.6,
    right: float = 0.15,
    bottom: float = 0.45,
    top: float = 0.25,
    width: float = WIDTH_IN,
) -> tuple[Figure, Axes]:
    """Make a figure with axes of this height and these margins, in inches; no layout is computed."""
    full = height + bottom + top
    fig = new_figure(full, width)
    box = (left / width, bottom / full, (width - left - right) / width, height / full)
    return fig, fig.add_axes(box)


def new_figure(height: float, width: float = WIDTH_IN) -> Figure:
    """Make a figure without axes, its size in inches."""
    fig = Figure(figsize=(width, height))
    FigureCanvasAgg(fig)
    return fig


COLUMNS = 2
"""Number of panels side by side."""

LEFT_IN, RIGHT_IN, BELOW_IN, ABOVE_IN = 0.62, 0.1, 0.24, 0.3
"""Margins of a panel, in inches."""


def new_panels(n: int, height: float) -> tuple[Figure, list[Axes]]:
    """Make a figure of some panels side by side, row by row; the height is that of one with its margins."""
    full, width = -(-n // COLUMNS) * height, NARROW_IN / COLUMNS
    fig = new_figure(full, NARROW_IN)
    panels = []
    for place in range(n):
        left = place % COLUMNS * width + LEFT_IN
        bottom = full - (place // COLUMNS + 1) * height + BELOW_IN
        inner = (width - LEFT_IN - RIGHT_IN) / NARROW_IN, (height - BELOW_IN - ABOVE_IN) / full
        panels.append(fig.add_axes((left / NARROW_IN, bottom / full, *inner)))
    return fig, panels


def draw_note(text: str) -> Figure:
    """Make a figure with a text that says why there is nothing to draw."""
    fig, ax = new_axes(0.8, bottom=0.1, top=0.1, width=NARROW_IN)
    ax.set_axis_off()
    lines = textwrap.fill(clean_line(text, 150), 58)
    ax.text(0.5, 0.5, lines, ha="center", va="center", color=FAINT, parse_math=False)
    return fig


def clean_line(text: str, limit: int) -> str:
    """Return text from the data as one line of at most ``limit`` characters, all of them allowed in XML."""
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def add_halo(text: LabelT) -> LabelT:
    """Mark a text that stands among data, so that it is drawn with a halo in the colour of the page."""
    text.set_gid("label")
    text.set_parse_math(False)
    return text


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


def add_legend(ax: Axes, handles: list[Line2D], ncols: int = 2) -> None:
    """Put a legend of so many columns into the upper right corner of the axes, above the data."""
    ax.legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=ncols, frameon=False, borderaxespad=0
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
