"""How clusters live on: flows of their records since the run before, and sizes over the last runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from epsjoin.findings import ABSENT, OTHERS, Comparison, Findings
from epsjoin.report import words
from epsjoin.report.figures.figure import (
    COLOURS,
    FAINT,
    INK,
    NARROW_IN,
    NOISE_COLOUR,
    OTHER,
    RULE,
    clean_line,
    draw_note,
    measure_line,
    new_axes,
    use_style,
)
from epsjoin.vocabulary import NOISE

End = int | str
"""An end of a flow: a name, ``NOISE``, ``ABSENT`` or ``OTHERS``."""

LANE_IN = 0.19
"""Minimum height of a cluster, so that its name can be read, in inches."""

GAP_IN = 0.05
"""Gap between two clusters, in inches."""

BANDS_IN = 3.0
"""Height of all flows together, without the gaps and what small clusters get on top, in inches."""

NAME_IN, RIGHT_IN = 1.45, 0.65
"""Maximum width of a name at the side, in inches; of flows with the number in brackets beside it."""

SMALL = 8.5
"""Font size of names and numbers, in points."""

MIN_THICKNESS = 0.03
"""Minimum half thickness of a band of a life, as a fraction of its lane: the smallest cluster is seen."""

MARKS = {
    "born": ("o", "born"),
    "split_off": ("D", "split off"),
    "split": ("v", "split"),
    "merged": ("^", "merged"),
    "dissolved": ("x", "dissolved, gone"),
    "gone": ("x", "dissolved, gone"),
}
"""Marks of events, with their names in the legend; growing and shrinking are seen."""


def colours_of(findings: Findings) -> Mapping[int, str]:
    """Return the colours of the names whose clusters have one on the map."""
    if findings.comparison is None:
        return {}
    names = {cluster_id: name for name, cluster_id in findings.comparison.cluster_ids.items()}
    largest = [int(row["cluster_id"]) for row in findings.largest_clusters]
    return {
        names[cluster_id]: colour
        for cluster_id, colour in zip(largest, COLOURS, strict=False)
        if cluster_id in names
    }


class Node(NamedTuple):
    """Where flows begin or end: the members, and where it begins and ends on the axis, in inches."""

    members: int
    low: float
    high: float


@use_style
def draw_flows(findings: Findings) -> Figure:
    """Draw where the records of clusters went, as bands from the run before to this one."""
    found = findings.comparison
    if found is None or not found.against:
        return draw_note("There is no run to compare with.")
    if not found.flows:
        return draw_note("There are no clusters in either run.")
    sides = [_add_up(found.flows, side) for side in ("before", "now")]
    members = max(sum(side.values()) for side in sides)
    nodes = [_stack(side, members) for side in sides]
    height = max(max(node.high for node in side.values()) for side in nodes)
    fig, ax = new_axes(height, left=NAME_IN + 0.2, right=NAME_IN + 0.2, bottom=0.08, top=0.3, width=NARROW_IN)
    ax.set_xlim(0, 1)
    ax.set_ylim(height, 0)
    ax.set_axis_off()
    colours = colours_of(findings)
    _draw_bands(ax, found.flows, nodes, colours)
    for x, side, run in zip((0.0, 1.0), nodes, (found.against, findings.run), strict=True):
        outward = -1 if x == 0 else 1
        align = "right" if x == 0 else "left"
        ax.annotate(run, (x, 0), (0, 6), textcoords="offset points", ha=align, color=FAINT)
        for end, node in side.items():
            colour = _colour_of(end, colours)
            ax.add_patch(Rectangle((x - 0.012, node.low), 0.024, node.high - node.low, color=colour, lw=0))
            ax.annotate(
                _write_end(found, end, node.members, is_before=x == 0),
                (x, (node.low + node.high) / 2),
                (6 * outward, 0),
                textcoords="offset points",
                ha=align,
                va="center_baseline",
                fontsize=SMALL,
                color=INK if isinstance(end, int) and end != NOISE else FAINT,
                parse_math=False,
            )
    return fig


def _add_up(flows: Sequence[Mapping[str, End]], side: str) -> dict[End, int]:
    """Add up the members at each end of one side: the largest names first, then the others."""
    sums: dict[End, int] = {}
    for row in flows:
        sums[row[side]] = sums.get(row[side], 0) + int(row["members"])
    last = (OTHERS, NOISE, ABSENT)

    def order(end: End) -> tuple[int, int, int]:
        if end in last:
            return last.index(end), 0, 0
        return -1, -sums[end], int(end)

    return {end: sums[end] for end in sorted(sums, key=order)}


def _stack(sums: Mapping[End, int], members: int) -> dict[End, Node]:
    nodes: dict[End, Node] = {}
    low = 0.0
    for end, number in sums.items():
        high = low + max(LANE_IN, BANDS_IN * number / members)
        nodes[end] = Node(number, low, high)
        low = high + GAP_IN
    return nodes


def _draw_bands(
    ax: Axes,
    flows: Sequence[Mapping[str, End]],
    nodes: Sequence[Mapping[End, Node]],
    colours: Mapping[int, str],
) -> None:
    """Draw each flow as a band that leaves and reaches its ends in proportion to its members there."""
    places = [{end: place for place, end in enumerate(side)} for side in nodes]
    ordered = sorted(flows, key=lambda row: (places[0][row["before"]], places[1][row["now"]]))
    used = [{end: node.low for end, node in side.items()} for side in nodes]
    for row in ordered:
        edges = []
        for side, end in zip((0, 1), (row["before"], row["now"]), strict=True):
            node = nodes[side][end]
            low = used[side][end]
            high = low + (node.high - node.low) * int(row["members"]) / node.members
            used[side][end] = high
            edges.append((low, high))
        (a, b), (c, d) = edges
        path = Path(
            [(0, a), (0.5, a), (0.5, c), (1, c), (1, d), (0.5, d), (0.5, b), (0, b), (0, a)],
            [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY],
        )
        end = row["now"] if row["before"] in (NOISE, ABSENT, OTHERS) else row["before"]
        neutral = [end for end in (ABSENT, NOISE) if end in (row["before"], row["now"])]
        colour = _colour_of(neutral[0] if neutral else end, colours)
        ax.add_patch(PathPatch(path, facecolor=colour, alpha=0.55, linewidth=0))


def _colour_of(end: End, colours: Mapping[int, str]) -> str:
    """Choose the colour of an end: only clusters that have one on the map stand out."""
    if end == NOISE:
        return NOISE_COLOUR
    if end == ABSENT:
        return FAINT
    return colours.get(int(end), OTHER) if isinstance(end, int) else OTHER


def _write_end(found: Comparison, end: End, members: int, *, is_before: bool) -> str:
    number = f" ({_write_short(members)})"
    if end == NOISE:
        name = "noise"
    elif end == ABSENT:
        name = "came" if is_before else "went"
    elif isinstance(end, int):
        name = _fit(found.called(end), NAME_IN - measure_line(number, SMALL))
    else:
        name = "other clusters"
    return name + number


def _fit(text: str, width: float) -> str:
    """Shorten a name from the data until it is at most so wide, in inches."""
    for limit in range(40, 1, -1):
        line = clean_line(text, limit)
        if measure_line(line, SMALL) <= width:
            break
    return line


def _write_short(number: int) -> str:
    """Write a number in full below a million, above with three digits."""
    return words.count(number) if number < 10**6 else words.tick(float(f"{number:.2e}"))


@use_style
def draw_lives(findings: Findings) -> Figure:
    """Draw the sizes of names over the last runs as bands, and mark what happened to them."""
    found = findings.comparison
    if found is None or not found.lives:
        return draw_note("No cluster has a name.")
    sizes: dict[int, dict[str, int]] = {}
    for row in found.lives:
        sizes.setdefault(row["name"], {})[row["run"]] = row["size"]
    names = sorted(sizes, key=lambda name: (-max(sizes[name].values()), name))
    place = {run: number for number, run in enumerate(found.runs)}
    largest = max(max(of_name.values()) for of_name in sizes.values())
    n_legend = -(-len({MARKS[row["event"]][1] for row in found.marks if row["event"] in MARKS}) // 3)
    height = 0.22 * len(names) + 0.1
    fig, ax = new_axes(
        height, left=NAME_IN, right=RIGHT_IN, bottom=0.3, top=0.12 + 0.2 * n_legend, width=NARROW_IN
    )
    ax.set_xlim(-0.35, len(found.runs) - 0.65)
    ax.set_ylim(len(names) - 0.4, -0.6)
    colours = colours_of(findings)
    for lane, name in enumerate(names):
        ax.axhline(lane, color=RULE, linewidth=0.5, zorder=1)
        by_place = {place[run]: size for run, size in sizes[name].items()}
        _draw_life(ax, lane, by_place, largest, colours.get(name, OTHER))
        _write_size(ax, lane, sizes[name].get(findings.run))
    ax.set_yticks(
        range(len(names)),
        [_fit(found.called(name), NAME_IN - 0.1) for name in names],
        color=INK,
        fontsize=SMALL,
        parse_math=False,
    )
    _mark_events(ax, found, {name: lane for lane, name in enumerate(names)}, place)
    _write_first_and_last(ax, found.runs)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return fig


def _write_size(ax: Axes, lane: int, size: int | None) -> None:
    """Write at the right end of a lane how large its name is now; one without a cluster has ended."""
    text = "ended" if size is None else _write_short(size)
    coordinates = ("axes fraction", "data")
    ax.annotate(
        text, (1, lane), (4, 0), coordinates, "offset points", va="center", color=FAINT, fontsize=SMALL
    )


def _write_first_and_last(ax: Axes, runs: Sequence[str]) -> None:
    """Write the dates of the first run and of the last one below them."""
    ends = sorted({0, len(runs) - 1})
    ax.set_xticks(ends, [runs[end] for end in ends], fontsize=SMALL)
    if len(ends) > 1:
        first, last = ax.get_xticklabels()
        between = (NARROW_IN - NAME_IN - RIGHT_IN) * ends[1] / (ends[1] + 0.7)
        has_room = between > 1.1 * sum(measure_line(runs[end], SMALL) for end in ends)
        # of two or three runs the ends are so near that their dates stand outside of them
        first.set_horizontalalignment("left" if has_room else "center")
        last.set_horizontalalignment("right" if has_room else "left")


def _draw_life(ax: Axes, lane: int, sizes: Mapping[int, int], largest: int, colour: str) -> None:
    """Draw the band of a name, as thick as the root of its size; a run without it leaves a gap."""
    runs = sorted(sizes)
    pieces = np.split(runs, np.flatnonzero(np.diff(runs) > 1) + 1)
    for piece in pieces:
        half = np.maximum(MIN_THICKNESS, 0.42 * np.sqrt([sizes[int(run)] / largest for run in piece]))
        # half a step on both sides, so that a name of a single run is seen, too
        x = np.concatenate([[piece[0] - 0.25], piece, [piece[-1] + 0.25]])
        half = np.concatenate([half[:1], half, half[-1:]])
        ax.fill_between(x, lane - half, lane + half, color=colour, linewidth=0, zorder=2)


def _mark_events(ax: Axes, found: Comparison, lanes: Mapping[int, int], place: Mapping[str, int]) -> None:
    """Mark what happened, and name the marks that there are; what ended is marked where it was last."""
    handles: dict[str, Line2D] = {}
    for row in found.marks:
        if row["event"] not in MARKS:
            continue
        mark, text = MARKS[row["event"]]
        x = place[row["run"]] - (0.5 if mark in "x^" else 0.0)
        style: dict[str, Any] = {
            "marker": mark,
            "markersize": 5.5,
            "markeredgecolor": INK,
            "linestyle": "",
            "markeredgewidth": 1.1,
        }
        ax.plot(x, lanes[row["name"]], markerfacecolor="none", zorder=4, **style)
        handles[text] = Line2D([], [], markerfacecolor="none", label=text, **style)
    if handles:
        ax.legend(
            handles=[
                handles[text] for text in dict.fromkeys(text for _, text in MARKS.values()) if text in handles
            ],
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=3,
            frameon=False,
            borderaxespad=0,
            handletextpad=0,
            columnspacing=0.8,
            fontsize=SMALL,
        )
