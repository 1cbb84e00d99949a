"""The command ``epsjoin trend``: the results of all runs, as a table and as a picture over time."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from epsjoin.commands.runs import print_answer, read_each_run
from epsjoin.commands.sizes import count_of_clusters
from epsjoin.console import counted, say
from epsjoin.errors import ArgumentError, UnfitTableError
from epsjoin.lake import slices, uris
from epsjoin.lake.arguments import add_lake, open_stored
from epsjoin.lake.cluster_names import count_names
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake
from epsjoin.report import words
from epsjoin.report.figures.figure import COLOURS, FAINT, STYLE, WIDTH_IN, new_figure, to_png

PICTURE = "trend.png"
"""File name of the picture, by default in the folder of the data set's reports."""

PANEL_IN, GAP_IN, LEFT_IN, RIGHT_IN, TOP_IN, BOTTOM_IN = 1.05, 0.45, 0.75, 0.25, 0.75, 0.45
"""Height of a panel, of the gap between two, and widths of the picture's margins, in inches."""

BIRTHS = "clusters born (up) and ended (down)"
"""Name of the panel of births and ends."""

MARGIN_DAYS = 15
"""Days that the time axis shows before the first run and after the last."""


class RunResult(NamedTuple):
    """The result of a run in numbers.

    Parameters
    ----------
    run : the run's logical date.
    points, pairs, clusters : numbers of each.
    eps : the distance threshold, in the unit of the data set's metric.
    born, ended : numbers of clusters whose names began and ended since the run before; ``None`` where nothing
        was compared.
    """

    run: date
    points: int
    pairs: int
    clusters: int
    eps: float
    born: int | None = None
    ended: int | None = None


def main(argv: Sequence[str]) -> int:
    """Print the table, write the picture and print where it is."""
    parser = argparse.ArgumentParser(
        prog="epsjoin trend", description="Print the results of all runs, and draw them over time."
    )
    add_lake(parser, has_run=False)
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help=f"PNG to write (default: {PICTURE} in the folder of the data set's reports)",
    )
    arguments = parser.parse_args(argv)
    picture: Path | None = arguments.picture
    if picture is not None and (picture.is_dir() or not os.access(picture.parent, os.W_OK | os.X_OK)):
        raise ArgumentError(f"--picture: {picture} cannot be written; name a file in a folder of this user's")
    lake = open_stored(arguments)
    title, unit = lake.source.title, lake.source.unit
    runs = read_runs(lake)
    if not runs and slices.list_runs(lake, "clusters"):
        raise UnfitTableError(f"no run of {arguments.dataset} can be shown, for the reasons above")
    if not runs:
        raise UnfitTableError(
            f"{arguments.dataset} has no finished run in {lake.location('')}; make some first"
        )
    print_answer(lake, counted(len(runs), "run"), describe(runs, unit))
    place = _write(to_png(draw(runs, title, unit)), lake, picture)
    print(f"  picture     {place}\n")
    return 0


def describe(runs: Sequence[RunResult], unit: str) -> Iterator[str]:
    """Write the runs as a table."""
    heads = f"{'run':<10}  {'points':>12}  {'pairs':>14}  {'clusters':>10}  {'born':>6}  {'ended':>6}"
    yield f"{heads}  {f'eps {unit}'.rstrip():>12}"
    for row in runs:
        born, ended = (words.MISSING if number is None else f"{number:,}" for number in (row.born, row.ended))
        counts = f"{row.points:>12,}  {row.pairs:>14,}  {row.clusters:>10,}  {born:>6}  {ended:>6}"
        yield f"{row.run}  {counts}  {row.eps:>12.6g}"


def _write(picture: bytes, lake: Lake, file: Path | None) -> str:
    """Write the picture to the file, or to the folder of the data set's reports; return its place."""
    filesystem, folder = uris.filesystem_of(lake.location("reports"))
    place = f"{folder}/{PICTURE}" if file is None else str(file)
    with uris.writing(place):
        if file is not None:
            file.write_bytes(picture)
        else:
            filesystem.create_dir(folder, recursive=True)
            with filesystem.open_output_stream(place) as stream:
                stream.write(picture)
    return place


def read_runs(lake: Lake) -> list[RunResult]:
    """Read every run, the oldest first; see :func:`read_each_run` of those that are left out."""
    return list(read_each_run(lake, "clusters", _read_run, "trend"))


def _read_run(lake: Lake, run: str) -> RunResult:
    """Read the result of a run."""
    inputs = Fingerprints(lake, run)
    of_clusters = inputs.slice("clusters")
    n_clusters = count_of_clusters(lake, of_clusters)["n_clusters"]
    try:
        born, ended = count_names(inputs)
    except UnfitTableError as error:
        say(f"trend: what was born and ended with run {run} is left out: {error}")
        born = ended = None
    return RunResult(
        date.fromisoformat(run),
        slices.count_rows(lake, of_clusters),
        slices.count_rows(lake, inputs.slice("pairs")),
        n_clusters,
        float(inputs.value("join_plan", "eps")),
        born,
        ended,
    )


def draw(runs: Sequence[RunResult], title: str, unit: str) -> Figure:
    """Draw points, pairs, clusters and eps over time, one above the other, each on a scale of its own.

    Below the clusters are those that were born, as bars that rise, and that ended, as bars that fall, if
    any two runs were compared.

    Parameters
    ----------
    runs : at least one run, the oldest first.
    title : title of the data set.
    unit : unit of eps; may be empty.
    """
    panels: dict[str, list[int] | list[float]] = {
        "points": [row.points for row in runs],
        "pairs": [row.pairs for row in runs],
        "clusters": [row.clusters for row in runs],
    }
    if any(row.born is not None for row in runs):
        panels[BIRTHS] = [row.born or 0 for row in runs]
    panels[f"eps, {unit}" if unit else "eps"] = [row.eps for row in runs]
    height = TOP_IN + len(panels) * PANEL_IN + (len(panels) - 1) * GAP_IN + BOTTOM_IN
    dates = [row.run for row in runs]
    margin = timedelta(MARGIN_DAYS)  # it fits after any run, as the last one is in the year 9998
    first = dates[0] - min(margin, dates[0] - date.min)
    last = dates[-1] + margin
    with mpl.rc_context(STYLE):
        fig = new_figure(height)
        left = LEFT_IN / WIDTH_IN
        fig.text(left, 1 - 0.25 / height, title, size=12, va="center", parse_math=False)
        for number, (name, values) in enumerate(panels.items()):
            bottom = height - TOP_IN - (number + 1) * PANEL_IN - number * GAP_IN
            width = (WIDTH_IN - LEFT_IN - RIGHT_IN) / WIDTH_IN
            ax = fig.add_axes((left, bottom / height, width, PANEL_IN / height))
            ax.set_title(name, loc="left", parse_math=False)
            if name == BIRTHS:
                _draw_births(ax, runs, (last - first).days)
            else:
                ax.plot(
                    dates,  # type: ignore[arg-type]  # Matplotlib accepts dates, its type hints do not
                    values,
                    color=COLOURS[number],
                    marker="o",
                    markersize=4,
                    linewidth=1,
                )
            ax.set_xlim(first, last)  # type: ignore[arg-type]  # as above
            ax.margins(y=0.25)
            ax.grid(axis="y")
            are_counts = all(isinstance(value, int) for value in values)
            ax.yaxis.set_major_locator(MaxNLocator(3, integer=are_counts))
            ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}" if are_counts else "{x:g}"))
            if name == BIRTHS:  # both are counts
                ax.yaxis.set_major_formatter(lambda y, _: f"{abs(y):,.0f}")
            months = AutoDateLocator(maxticks=10)  # type: ignore[no-untyped-call]  # Matplotlib's
            ax.xaxis.set_major_locator(months)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(months))  # type: ignore[no-untyped-call]  # as above
            ax.tick_params(labelbottom=number == len(panels) - 1, labelcolor=FAINT)
    return fig


def _draw_births(ax: Axes, runs: Sequence[RunResult], days: int) -> None:
    """Draw a bar up for the births of each run, and one down for the ends; a dash where there is neither."""
    compared = [row for row in runs if row.born is not None]
    dates = [row.run for row in compared]
    width = max(1.0, days / 150)
    for colour, heights in (
        (COLOURS[2], [row.born or 0 for row in compared]),
        (FAINT, [-(row.ended or 0) for row in compared]),
    ):
        ax.bar(dates, heights, width, color=colour)  # type: ignore[arg-type]  # dates, as above
    ax.axhline(0, color=FAINT, linewidth=0.6)
    most = max(max(row.born or 0, row.ended or 0) for row in compared)
    if not most:
        ax.set_ylim(-1, 1)
