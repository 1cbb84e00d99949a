"""The report of a run: one self-contained HTML page, and pictures of it for a README or a chat.

The page has no scripts, fetches nothing, and holds nothing that is not in the findings: the same findings
give the same bytes. Whatever came from the data is escaped.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from epsjoin.report import canvas, plots, summary, words
from epsjoin.report.findings import Findings, Row, known

STEPS = ("ingest", "fit_epsilon", "replicate", "merge_join", "cluster", "outliers", "quality", "report")
"""Jobs in the order of the pipeline; a job that is not named here comes after them."""

_OUTLIER_COLUMNS = ("rank", "id", "k_distance", "k_distance_above", "lof", "degree", "dimensions")
_NO_PAYLOAD = (*_OUTLIER_COLUMNS, "run", "is_noise")


def render(findings: Findings) -> str:
    """Write the page as HTML.

    Notes
    -----
    Below 2 MB with 50,000 points on the map: large point sets are one picture inside the SVG.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        count=words.count,
        measure=words.measure,
        percent=words.percent,
        size=words.size,
        duration=words.duration,
        cell=words.cell,
    )
    template = (importlib.resources.files("epsjoin.report") / "run.html.j2").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        f=findings,
        lead=first_sentence(findings),
        key_numbers=_key_numbers(findings),
        why=_why_eps(findings),
        law=_power_law(findings),
        pictures=_pictures(findings),
        colours=canvas.COLOURS,
        payload=_payload(findings.outliers),
        cost=_cost(findings),
        counters=_by_step(findings.counters),
        change=words.change,
        plural=words.plural,
    )


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
        ("clusters.png", plots.cluster_map),
        ("pair_count.png", plots.pair_count_curve),
        ("cost.png", plots.cost),
    ):
        files.append(folder / name)
        files[-1].write_bytes(canvas.to_png(plot(findings)))
    files.append(folder / "run.json")
    files[-1].write_text(summary.to_json(findings), encoding="utf-8", newline="\n")
    return files


def first_sentence(findings: Findings) -> str:
    """Say what was found: points, clusters, the largest, and how many points are in none."""
    points = words.plural(findings.n_points, "point")
    within = f"within {_eps(findings)}"
    if not findings.n_points:
        return "No points: the snapshot has no record that could be joined."
    if not findings.n_clusters:
        return f"{points}: no clusters {within}, and {words.plural(findings.n_pairs, 'pair')}."
    text = f"{points}: {words.plural(findings.n_clusters, 'cluster')} {within}, "
    if findings.largest_clusters:
        row = findings.largest_clusters[0]
        label = f" ({words.cell(row['label'])})" if row.get("label") else ""
        text += f"the largest with {words.plural(row['size'], 'point')}{label}; "
    stand = "stands" if findings.n_noise == 1 else "stand"
    return text + f"{words.plural(findings.n_noise, 'point')} {stand} in none."


def _eps(findings: Findings) -> str:
    return f"ε = {words.measure(findings.eps, findings.unit)}" if findings.eps is not None else "an unknown ε"


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
        ("points", words.count(n), f"{words.count(findings.n_quarantined)} records refused"),
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


def _why_eps(findings: Findings) -> str:
    """Say in words how ε was chosen."""
    epsilon, target = findings.epsilon, findings.epsilon.get("target")
    method = epsilon.get("method")
    if method == "given":
        return f"{_eps(findings)} was given with the run's parameters; it was not chosen from the data."
    if method == "neighbours":
        aim = f"a point has {words.measure(target)} neighbours within it on average, itself not counted"
    elif method == "pairs":
        aim = f"the join has about {words.count(target)} pairs"
    elif method == "k_distance_quantile":
        neighbour = max(1, int(findings.params.get("min_pts") or 1) - 1)
        aim = f"{words.percent(target)} of the points have their neighbour number {neighbour} within it"
    else:
        return "How ε was chosen is not known."
    return f"{_eps(findings)} was chosen so that {aim}."


def _power_law(findings: Findings) -> list[str]:
    """Sentences on the fit and on what it expects at ε."""
    epsilon = findings.epsilon
    sentences = []
    exponent = known(epsilon.get("exponent"))
    if exponent is not None:
        low, high = (words.measure(epsilon.get(f"exponent_{end}"), digits=3) for end in ("low", "high"))
        first, last = (known(epsilon.get(f"range_{end}")) for end in ("low", "high"))
        sentences.append(
            f"On a sample of {words.count(epsilon.get('n_sample'))} points the pairs within r grow "
            f"like r to the power P = {words.measure(exponent, digits=3)} (95 % interval {low} to {high}), "
            f"fitted from r = {words.measure(first, findings.unit)} to {words.measure(last, findings.unit)}, "
            f"R² = {words.measure(epsilon.get('r_squared'))}."
        )
        eps = findings.eps
        if eps is not None and first is not None and last is not None and not first <= eps <= last:
            side = "below" if eps < first else "above"
            sentences.append(f"ε lies {side} the fitted range, so what is expected there is less certain.")
    elif epsilon.get("note"):
        sentences.append(f"No power law was fitted: {epsilon['note']}")
    if known(epsilon.get("expected_pairs")) is not None:
        sentences.append(
            f"Expected at ε: {words.count(epsilon['expected_pairs'])} pairs, "
            f"{words.measure(epsilon.get('expected_neighbours'), digits=3)} neighbours per point; "
            f"found: {words.count(findings.n_pairs)} pairs."
        )
    return sentences


def _pictures(findings: Findings) -> dict[str, Markup]:
    """Draw the SVGs by name, each with words for people who cannot see it."""
    return {
        name: Markup(canvas.to_svg(plot(findings), name, label))  # noqa: S704  # Matplotlib escaped the texts
        for name, plot, label in (
            ("map", plots.cluster_map, "Map of the points, coloured by cluster"),
            ("curve", plots.pair_count_curve, "Pairs within a radius against the radius, both on log scales"),
            ("sizes", plots.cluster_sizes, "Number of clusters by size"),
            ("cost", plots.cost, "Expected against measured replicas, candidates and pairs"),
        )
    }


def _payload(outliers: Sequence[Row]) -> list[str]:
    """Name the columns of the source that the outliers' rows bring along, in their order."""
    return list(dict.fromkeys(name for row in outliers for name in row if name not in _NO_PAYLOAD))


def _cost(findings: Findings) -> list[tuple[str, Any, Any, str]]:
    """Rows of name, expected, measured and what the measured number is a share of."""
    n, plan = findings.n_points, findings.plan
    replicas, candidates = known(findings.n_replicas), known(findings.n_candidates)
    all_pairs = n * (n - 1) // 2
    per_point = f"{words.measure(replicas / n, digits=3)} per point" if replicas is not None and n else ""
    share = (
        f"{words.percent(candidates / all_pairs)} of all pairs"
        if candidates is not None and all_pairs
        else ""
    )
    return [
        ("replicas", plan.get("expected_rows"), replicas, per_point),
        ("candidates", plan.get("expected_candidates"), candidates, share),
        ("pairs", plan.get("expected_pairs"), findings.n_pairs, "the result"),
    ]


def _by_step(counters: Mapping[str, Mapping[str, float]]) -> list[tuple[str, Any, list[tuple[str, str]]]]:
    """Rows of job, its seconds and its other counters, in the order of the pipeline."""
    order = {job: place for place, job in enumerate(STEPS)}
    jobs = sorted(counters, key=lambda job: (order.get(job, len(STEPS)), job))
    return [
        (
            job,
            counters[job].get("seconds"),
            [
                (name, _counter(name, value))
                for name, value in sorted(counters[job].items())
                if name != "seconds"
            ],
        )
        for job in jobs
    ]


def _counter(name: str, value: float) -> str:
    if name == "bytes" or name.endswith("_bytes"):
        return words.size(value)
    if name.endswith("seconds"):
        return words.duration(value)
    return words.measure(value) if value != int(value) else words.count(value)
