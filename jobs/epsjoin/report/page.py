"""The report of a run: one self-contained HTML page, and three of its pictures as files.

The page has no scripts, loads nothing, and shows nothing that is not in the findings: from the same findings
come the same bytes. Whatever comes from the data is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from epsjoin.console import counted
from epsjoin.findings import Findings
from epsjoin.report import costs, html, sentences, summary, words
from epsjoin.report.figures import charts, figure
from epsjoin.report.figures.lives import draw_flows, draw_lives
from epsjoin.report.figures.maps import draw_changes, draw_map, has_coastlines
from epsjoin.report.figures.trends import TRENDS, draw_trends

MAX_COORDINATES = 6
"""Maximum number of coordinates that the table of outliers shows; of more it shows none."""

MAX_COLUMNS = 16
"""Maximum number of columns of the source that the table of outliers shows, besides key and label."""

MAX_CHANGES = 6
"""Maximum number of columns that are shown of a row that changed: a source may write all its numbers anew."""


def render(findings: Findings, drawn: Mapping[str, Figure] | None = None) -> str:
    """Write the page as HTML.

    Parameters
    ----------
    findings : the results of the run.
    drawn : the page's figures; by default they are drawn.

    Notes
    -----
    A page with 50,000 points on its map is smaller than 2 MB, as many points become one image in the SVG.
    """
    drawn = html.draw(PICTURES, findings) if drawn is None else drawn
    return html.render_template(
        "run.html.j2",
        f=findings,
        lead=sentences.first_sentence(findings),
        alarm=sentences.alarm(findings),
        key_numbers=_list_key_numbers(findings),
        why=sentences.why_eps(findings),
        law=sentences.power_law(findings),
        k_distances=sentences.k_distances(findings),
        bounds=sentences.bounds(findings),
        bounds_of_outliers=sentences.bounds_of_outliers(findings),
        changes=sentences.list_changes(findings),
        what_changed=sentences.what_changed(findings),
        events=sentences.list_events(findings),
        guard=sentences.guard(findings),
        was_compared=sentences.was_compared(findings),
        pictures=html.to_svg(drawn, PICTURES),
        coastlines=has_coastlines(findings),
        colours=figure.COLOURS,
        ties=sentences.ties(findings),
        deviations=sentences.deviations(findings),
        record=_choose_columns(findings),
        gates=html.count_by_table(findings.quality),
        cost=costs.list_costs(findings),
        how_joined=sentences.how_joined(findings.plan),
        steps=costs.list_steps(findings),
        step_times=sentences.step_times(findings),
        cpu=sentences.cpu(findings),
        trends=TRENDS,
        max_coordinates=MAX_COORDINATES,
        max_changes=MAX_CHANGES,
    )


def make_report(findings: Findings) -> dict[str, bytes]:
    """Make report.html, clusters.png, pair_count.png, cost.png and run.json, the run's main numbers.

    Returns
    -------
    The content of each file, by name, in that order.
    """
    drawn = html.draw(PICTURES, findings)
    pictures = {"clusters.png": "map", "pair_count.png": "curve", "cost.png": "cost"}
    return {
        "report.html": render(findings, drawn).encode(),
        **{name: figure.to_png(drawn[picture]) for name, picture in pictures.items()},
        "run.json": summary.to_json(summary.summarise(findings)),
    }


def _list_key_numbers(findings: Findings) -> list[tuple[str, str, str]]:
    """List the numbers at the top of the page as rows of (name, value, explanation)."""
    n = findings.n_points
    clustered = findings.n_core + findings.n_border
    min_pts = words.count(findings.params.get("min_pts"))
    all_pairs = n * (n - 1) // 2

    def fraction(part: int) -> str:
        return f"{words.percent(part / n)} of the points" if n else ""

    return [
        ("ε", words.exact(findings.eps, findings.unit), f"distance threshold, {findings.metric} metric"),
        (
            "points",
            words.count(n),
            f"{counted(findings.n_quarantined, 'record')} refused"
            + (f", {words.count(findings.n_left_out)} left out" if findings.taken_where else ""),
        ),
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
            "per point on average, the point itself not counted",
        ),
        ("clusters", words.count(findings.n_clusters), f"{counted(clustered, 'point')} in them"),
        (
            "core",
            words.count(findings.n_core),
            f"{fraction(findings.n_core)}, with {min_pts} or more points within ε",
        ),
        (
            "border",
            words.count(findings.n_border),
            f"{fraction(findings.n_border)}, within ε of a core point",
        ),
        ("noise", words.count(findings.n_noise), f"{fraction(findings.n_noise)}, in no cluster"),
    ]


PICTURES: html.Pictures[Findings] = {
    "map": (
        draw_map,
        "Map of the points, coloured by cluster; the first outliers are marked with their ranks",
    ),
    "changes": (draw_changes, "Map of the records that came, went and moved since the run before"),
    "flows": (draw_flows, "Where the records of clusters went since the run before"),
    "lives": (draw_lives, "Sizes of clusters over the last runs, with what happened to them"),
    "curve": (
        charts.draw_pair_counts,
        "Pairs within a radius against the radius, both on log scales",
    ),
    "k-distance": (
        charts.draw_k_distances,
        "Distance to the k-th neighbour against the fraction of points",
    ),
    "sizes": (charts.draw_cluster_sizes, "Number of clusters by size"),
    "cost": (charts.draw_costs, "Expected against measured replicas, candidates and pairs"),
    "seconds": (
        charts.draw_step_times,
        "Wall-clock time of every step, its start told apart, and in the run before",
    ),
    "trends": (draw_trends, "Numbers of the last runs by date"),
}
"""The page's pictures."""


def _choose_columns(findings: Findings) -> list[str]:
    """Choose the columns of the source that the table of outliers shows as the record, in their order."""
    hidden = {*findings.key, findings.label}
    if len(findings.coordinates) > MAX_COORDINATES:
        hidden |= set(findings.coordinates)
    names = dict.fromkeys(name for row in findings.outliers for name in row.get("columns", ()))
    return [name for name in names if name not in hidden][:MAX_COLUMNS]
