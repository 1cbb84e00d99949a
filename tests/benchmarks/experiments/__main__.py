"""``make experiments``: runs all, writes docs/experiments.md and pictures; ``--only fig3.10`` prints one.

It ends with 1 if a verdict or a count has changed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..page import machine, put, table
from . import duplicates, estimates, exponents, grid_times, grids, kept, models, pmj
from .claims import VERDICTS, Claim, Experiment, Result, Table
from .pictures import draw

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = "experiments.md"
PICTURES = "pictures/experiments"
MARKERS = ("<!-- experiments:begin -->", "<!-- experiments:end -->")

EXPERIMENTS = (
    Experiment(
        "fig3.6",
        "I/O: figures 3.6 to 3.8",
        "Two inputs of 10,000 pages, 16 uniform dimensions, ε = 1e-3.",
        models.inputs_and_outputs,
        models.inputs_and_outputs,
    ),
    Experiment(
        "fig3.9",
        "Cubes by level: figure 3.9",
        "100,000 uniform cubes, d = 10, ε = 1e-4, 200 sets.",
        models.levels,
        partial(models.levels, 2),
    ),
    Experiment(
        "fig3.10",
        "Comparisons of uniform data: figure 3.10",
        "The model for 100,000 cubes, d = 10; drawn: one set of as many cubes.",
        models.comparisons,
    ),
    Experiment("fig3.11", "Memory: figure 3.11", "As figure 3.10.", models.memory, models.memory),
    Experiment(
        "fig3.12",
        "Seconds: figures 3.12 to 3.16",
        "ε = 1e-3 of the largest side; CPU seconds of replicating, sorting and the row-by-row merge.",
        grid_times.times,
    ),
    Experiment(
        "fig3.17",
        "Comparisons, rows, the sweep area: figures 3.17 to 3.28",
        "ε = 1e-3. A rule with more than 32 rows per point is refused.",
        grids.counts,
        partial(grids.counts, 3000),
    ),
    Experiment(
        "fig3.29",
        "Duplicates: figures 3.29 and 3.30",
        "CAD, k = 3, msl = 2; ε is ten times the text's, where the surface has as many pairs a row. "
        "The same merge with the reference point method switched off.",
        duplicates.reference_points,
        partial(duplicates.reference_points, 3000, 1),
    ),
    Experiment(
        "fig3.31",
        "The power law: figures 3.31 and 3.32",
        "Euclidean distances; 20,000 and 2,000 sampled rows.",
        exponents.laws,
    ),
    Experiment(
        "fig3.33",
        "The model with the fractal dimension: figures 3.33 to 3.37",
        "msl = 0, k = 3; samples of about 7,000 to 10,000 rows.",
        exponents.models,
    ),
    Experiment(
        "fig4.6",
        "Equi join, first pairs: figure 4.6",
        "Two tables of 2,000,000 integers below 2,000,000; memory is 10 % of both; a merge takes all runs.",
        pmj.equi,
        partial(pmj.equi, 40_000),
    ),
    Experiment(
        "fig4.7",
        "Spatial join: figure 4.7",
        "Boxes of 33,155 ZIP code areas and of 13,361 primary roads of the US.",
        pmj.spatial,
        partial(pmj.spatial, 6000, 1),
    ),
    Experiment(
        "fig4.8",
        "Similarity join, two dimensions: figure 4.8",
        "Every other one of 121,960 landmarks with the rest, ε = 0.0123457, planned cuts.",
        pmj.similarity,
        partial(pmj.similarity, 20_000, 1),
    ),
    Experiment(
        "fig4.9",
        "Similarity join, rows by cluster and shuffled: figures 4.9 and 4.10",
        "A surface in 16 dimensions, 200,000 rows, each in one of two tables by a coin; ε = 0.0083.",
        pmj.clusters,
        partial(pmj.clusters, 4000, 1),
    ),
    Experiment(
        "fig4.11",
        "First pairs and memory: figure 4.11 and table 4.3",
        "The boxes of figure 4.7, memory of 1 to 20 % of both inputs.",
        pmj.memory,
    ),
    Experiment(
        "fig4.12",
        "The estimate while it runs: figures 4.12 and 4.13",
        "The tables of figures 4.9 and 4.10, memory of 1 % of both inputs.",
        estimates.estimates,
    ),
)
GROUPS = {"pmj": "fig4."}
"""What ``--only`` takes besides an experiment: the names of a group begin so."""


def shown(claims: Sequence[Claim]) -> list[str]:
    """A row for each claim."""
    rows = [[one.text, one.ours, f"**{VERDICTS[one.verdict]}**"] for one in claims]
    return table(["the text", "here", "verdict"], rows)


def section(experiment: Experiment, result: Result) -> list[str]:
    """The part of the page about one experiment, without seconds."""
    lines = [f"## {experiment.title}", "", experiment.setting, "", *shown(result.claims), ""]
    for picture in result.pictures:
        lines += [f"![{picture.caption}]({PICTURES}/{picture.name}.svg)", "", f"*{picture.caption}*", ""]
    for one in (*result.tables, *result.timed):
        lines += _folded(one)
    return lines


def _folded(one: Table) -> list[str]:
    return [
        "<details>",
        f"<summary>{one.caption}</summary>",
        "",
        *table(one.head, one.rows),
        "",
        "</details>",
        "",
    ]


def summary(results: dict[str, Result]) -> list[str]:
    """How many claims hold."""
    verdicts = [claim.verdict for result in results.values() for claim in result.claims]
    counts = ", ".join(f"{word} {verdicts.count(verdict)}" for verdict, word in VERDICTS.items())
    return [f"Verdicts on {len(verdicts)} claims: {counts}.", "Seconds:", f"{machine()}.", ""]


def main(
    arguments: Sequence[str] | None = None,
    docs: Path = DOCS,
    experiments: Sequence[Experiment] = EXPERIMENTS,
    counts: Path = kept.FILE,
) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.experiments", description=__doc__)
    parser.add_argument(
        "--only", choices=[*(one.name for one in experiments), *GROUPS], help="print one, write no page"
    )
    parser.add_argument("--few", action="store_true", help="few rows, as in the tests; write no page")
    parser.add_argument("--keep", action="store_true", help="keep the counts that are found")
    chosen = parser.parse_args(arguments)
    results: dict[str, Result] = {}
    for one in experiments:
        run = one.run_few if chosen.few else one.run
        if run is not None and _is_chosen(one, chosen.only):
            results[one.name] = result = run()
            print("\n".join([f"{one.name}: {one.title}", *shown(result.claims), ""]), flush=True)
    if not chosen.few and chosen.only is None:
        write_page(docs, experiments, results)
    rows = kept.FEW if chosen.few else kept.ALL
    found = {name: result.counts for name, result in results.items()}
    if chosen.keep:
        kept.keep(rows, found, counts)
    changed = [said for name, each in found.items() for said in kept.differences(name, rows, each, counts)]
    if not chosen.few:
        changed += _changed_verdicts(results)
    for said in changed:
        print(said, file=sys.stderr)
    return 1 if changed else 0


def _is_chosen(one: Experiment, only: str | None) -> bool:
    return only in (None, one.name) or (only in GROUPS and one.name.startswith(GROUPS[only]))


def write_page(docs: Path, experiments: Sequence[Experiment], results: dict[str, Result]) -> None:
    """The marked part of the page, and its pictures."""
    folder = docs / PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    for result in results.values():
        for picture in result.pictures:
            draw(picture, folder)
    text = [line for one in experiments for line in section(one, results[one.name])]
    put(docs / PAGE, "\n".join([*summary(results), *text]), MARKERS)


def _changed_verdicts(results: dict[str, Result]) -> list[str]:
    return [
        f"expected '{VERDICTS[claim.expected]}', found '{VERDICTS[claim.verdict]}': {claim.text}"
        for result in results.values()
        for claim in result.claims
        if not claim.is_as_expected
    ]


if __name__ == "__main__":
    raise SystemExit(main())
