"""The report of a run: one self-contained HTML page, and pictures of it for a README or a chat.

The page has no scripts, fetches nothing, and holds nothing that is not in the findings: the same findings
give the same bytes. Whatever came from the data is escaped.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from epsjoin.findings import Findings, Row
from epsjoin.report import costs, sentences, summary, words
from epsjoin.report.figures import bars, curves, figure
from epsjoin.report.figures.maps import cluster_map
from epsjoin.report.figures.trends import TRENDS, trends

_OUTLIER_COLUMNS = ("rank", "id", "k_distance", "k_distance_above", "lof", "degree", "dimensions", "nearest")
_NO_PAYLOAD = (*_OUTLIER_COLUMNS, "run", "is_noise")
MOST_COORDINATES = 6
"""Of more coordinates a table of points shows none: what deviates is told beside."""
MOST_PAYLOAD = 16


def render(findings: Findings) -> str:
    """Write the page as HTML.

    Notes
    -----
    Below 2 MB with 50,000 points on the map: large point sets are one picture inside the SVG.
    """
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_template),
    )
    environment.filters.update(
        count=words.count,
        measure=words.measure,
        percent=words.percent,
        size=words.size,
        duration=words.duration,
        cell=words.cell,
    )
    return environment.get_template("run.html.j2").render(
        f=findings,
        style=Markup(_template("run.css")),  # noqa: S704  # our own file
        lead=sentences.first_sentence(findings),
        alarm=sentences.alarm(findings),
        key_numbers=_key_numbers(findings),
        why=sentences.why_eps(findings),
        law=sentences.power_law(findings),
        k_distances=sentences.k_distances(findings),
        difference=sentences.difference(findings),
        changes=sentences.changes(findings),
        pictures=_pictures(findings),
        colours=figure.COLOURS,
        payload=_payload(findings),
        gates=_gates(findings.quality),
        cost=costs.lines(findings),
        steps=costs.steps(findings),
        trends=TRENDS,
        change=words.change,
        plural=words.plural,
        most_coordinates=MOST_COORDINATES,
    )


def _template(name: str) -> str:
    return (importlib.resources.files("epsjoin.report") / name).read_text(encoding="utf-8")


def write_report(findings: Findings, folder: Path) -> list[Path]:
    """Write report.html, clusters.png, pair_count.png, cost.png and run.json, the run at a glance.

    Returns
    -------
    The files in that order. ``folder`` is made if missing; what stood there under these names is replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "report.html"]
    files[0].write_text(render(findings), encoding="utf-8", newline="\n")
    for name, plot in (
        ("clusters.png", cluster_map),
        ("pair_count.png", curves.pair_count_curve),
        ("cost.png", bars.cost),
    ):
        files.append(folder / name)
        files[-1].write_bytes(figure.to_png(plot(findings)))
    files.append(folder / "run.json")
    files[-1].write_text(summary.to_json(findings), encoding="utf-8", newline="\n")
    return files


def _key_numbers(findings: Findings) -> list[tuple[str, str, str]]:
    """Rows of name, value, explanation."""
    n = findings.n_points
    clustered = findings.n_core + findings.n_border
    min_pts = words.count(findings.params.get("min_pts"))
    all_pairs = n * (n - 1) // 2

    def share(part: int) -> str:
        return f"{words.percent(part / n)} of the points" if n else ""

    return [
        ("ε", words.measure(findings.eps, findings.unit), f"distance threshold, {findings.metric} metric"),
        ("points", words.count(n), f"{words.plural(findings.n_quarantined, 'record')} refused"),
        (
            "pairs",
            words.count(findings.n_pairs),
            f"within ε; {words.percent(findings.n_pairs / all_pairs)} of all pairs"
            if all_pairs
            else "within ε",
        ),
        (
            "neighbours",
            words.measure(2 * findings.n_pairs / n if n else None, digits=3),
            "per point on average, itself not counted",
        ),
        ("clusters", words.count(findings.n_clusters), f"{words.plural(clustered, 'point')} in them"),
        ("core", words.count(findings.n_core), f"{share(findings.n_core)}, with {min_pts} or more within ε"),
        ("border", words.count(findings.n_border), f"{share(findings.n_border)}, within ε of a core point"),
        ("noise", words.count(findings.n_noise), f"{share(findings.n_noise)}, in no cluster"),
    ]


def _pictures(findings: Findings) -> dict[str, Markup]:
    """Draw the SVGs by name, each with words for people who cannot see it."""
    return {
        name: Markup(figure.to_svg(plot(findings), name, label))  # noqa: S704  # Matplotlib escaped the texts
        for name, plot, label in (
            ("map", cluster_map, "Map of the points, coloured by cluster"),
            (
                "curve",
                curves.pair_count_curve,
                "Pairs within a radius against the radius, both on log scales",
            ),
            (
                "k-distance",
                curves.k_distance_curve,
                "Distance to the k-th neighbour against the share of points",
            ),
            ("sizes", bars.cluster_sizes, "Number of clusters by size"),
            ("cost", bars.cost, "Expected against measured replicas, candidates and pairs"),
            ("seconds", bars.step_seconds, "Wall-clock time of every step, and in the run before"),
            ("trends", trends, "Numbers of the last runs by date"),
        )
    }


def _payload(findings: Findings) -> list[str]:
    """Name the columns of the source that the outliers' table shows, in their order; not too many."""
    hidden = {*_NO_PAYLOAD, findings.label}
    if len(findings.coordinates) > MOST_COORDINATES:
        hidden |= set(findings.coordinates)
    names = dict.fromkeys(name for row in findings.outliers for name in row if name not in hidden)
    return list(names)[:MOST_PAYLOAD]


def _gates(quality: Sequence[Row]) -> list[tuple[str, int, int, int]]:
    """Rows of table, expectations, broken warnings and broken errors."""
    gates = []
    for name in dict.fromkeys(row["table"] for row in quality):
        mine = [row for row in quality if row["table"] == name]
        broken = [row["severity"] for row in mine if not row["success"]]
        gates.append((name, len(mine), broken.count("warning"), broken.count("error")))
    return gates
