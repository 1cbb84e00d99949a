"""What all runs of a data set found, over time, as a table and a picture: ``epsjoin trend``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import pyarrow.compute as pc
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from epsjoin.console import say
from epsjoin.contracts.odcs import load_source
from epsjoin.errors import TableError
from epsjoin.lake import lineage, slices, uris
from epsjoin.lake.lake import Lake
from epsjoin.paths import PROJECT
from epsjoin.report.figures.figure import COLOURS, FAINT, STYLE, WIDTH_IN, to_png

PICTURE = "trend.png"
"""Its name in the folder of the data set's reports."""

PANEL_IN, GAP_IN, LEFT_IN, RIGHT_IN, TOP_IN, BOTTOM_IN = 1.05, 0.45, 0.75, 0.25, 0.75, 0.45
ROOM_DAYS = 15


class Found(NamedTuple):
    """What a run found.

    Parameters
    ----------
    run : its logical date.
    points, pairs, clusters : how many there are.
    eps : in the unit of the data set's metric.
    """

    run: date
    points: int
    pairs: int
    clusters: int
    eps: float


def main(argv: Sequence[str]) -> int:
    """Print the table, write the picture, say where it is."""
    parser = argparse.ArgumentParser(
        prog="epsjoin trend", description="Print what all runs found, and draw it over time."
    )
    parser.add_argument("--lake", required=True, help="folder of all tables: a URI or an absolute path")
    parser.add_argument("--dataset", required=True, help="name of a contract in the contracts' folder")
    parser.add_argument(
        "--contracts", type=Path, default=PROJECT / "data_contracts", help="folder of the contracts"
    )
    arguments = parser.parse_args(argv)
    source = load_source(arguments.contracts, arguments.dataset)
    lake = Lake(uris.lake_uri(arguments.lake), arguments.contracts, source)
    found = gather(lake)
    if not found:
        raise TableError(f"{arguments.dataset} has no finished run in {lake.location('')}; make some first")
    print(f"\n{source.title}, {len(found)} runs\n")
    print(f"  {'run':<10}  {'points':>12}  {'pairs':>14}  {'clusters':>10}  {'eps ' + source.unit:>12}")
    for row in found:
        print(f"  {row.run}  {row.points:>12,}  {row.pairs:>14,}  {row.clusters:>10,}  {row.eps:>12.6g}")
    filesystem, folder = uris.filesystem_of(lake.location("reports"))
    filesystem.create_dir(folder, recursive=True)
    with filesystem.open_output_stream(f"{folder}/{PICTURE}") as file:
        file.write(to_png(draw(found, source.title, source.unit)))
    print(f"\n  picture     {folder}/{PICTURE}\n")
    return 0


def gather(lake: Lake) -> list[Found]:
    """What every run found whose tables belong together, the oldest first; others are named and left out."""
    found = []
    for run in slices.runs_of(lake, "clusters"):
        try:
            join = lineage.read_join(lake, run)
            of_clusters = slices.read_small(lake, "clusters", run, ["cluster_id", "role"], join.stamp)
            members = of_clusters.filter(pc.field("role") != "noise")
            found.append(
                Found(
                    date.fromisoformat(run),
                    len(of_clusters),
                    slices.count(lake, "pairs", run, join.stamp),
                    len(members["cluster_id"].unique()),
                    float(join.plan["eps"]),
                )
            )
        except TableError as error:
            say(f"trend: run {run} is left out: {error}")
    return found


def draw(found: Sequence[Found], title: str, unit: str) -> Figure:
    """Draw points, pairs, clusters and eps over time, one above the other, each on a scale of its own.

    Parameters
    ----------
    found : at least one run, the oldest first.
    title : of the data set.
    unit : of eps; may be empty.
    """
    panels: tuple[tuple[str, list[int] | list[float]], ...] = (
        ("points", [row.points for row in found]),
        ("pairs", [row.pairs for row in found]),
        ("clusters", [row.clusters for row in found]),
        (f"eps, {unit}" if unit else "eps", [row.eps for row in found]),
    )
    height = TOP_IN + len(panels) * PANEL_IN + (len(panels) - 1) * GAP_IN + BOTTOM_IN
    dates = [row.run for row in found]
    first, last = dates[0] - timedelta(ROOM_DAYS), dates[-1] + timedelta(ROOM_DAYS)
    with mpl.rc_context(STYLE):
        fig = Figure(figsize=(WIDTH_IN, height))
        FigureCanvasAgg(fig)
        left = LEFT_IN / WIDTH_IN
        fig.text(left, 1 - 0.25 / height, title, size=12, va="center", parse_math=False)
        for number, (name, values) in enumerate(panels):
            bottom = height - TOP_IN - (number + 1) * PANEL_IN - number * GAP_IN
            width = (WIDTH_IN - LEFT_IN - RIGHT_IN) / WIDTH_IN
            ax = fig.add_axes((left, bottom / height, width, PANEL_IN / height))
            ax.set_title(name, loc="left", parse_math=False)
            ax.plot(
                dates,  # type: ignore[arg-type]  # Matplotlib takes dates, its types do not
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
            months = AutoDateLocator(maxticks=10)  # type: ignore[no-untyped-call]  # Matplotlib's
            ax.xaxis.set_major_locator(months)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(months))  # type: ignore[no-untyped-call]  # as above
            ax.tick_params(labelbottom=number == len(panels) - 1, labelcolor=FAINT)
    return fig
