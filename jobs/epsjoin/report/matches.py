"""The report of a run whose records were matched with those of another data set: one page, two pictures.

As :mod:`epsjoin.report.page`, from the findings alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from epsjoin.console import counted
from epsjoin.findings import Intake, MatchFindings, Row
from epsjoin.report import costs, html, sentences, summary, words
from epsjoin.report.figures import charts, figure
from epsjoin.report.figures.matches import draw_distances, draw_matches, has_coastlines

TRENDS = {"records": "records", "matched": "with a match", "pairs": "matches", "unmatched": "without a match"}
"""Keys of ``MatchFindings.trends``, with their names on the page."""

PICTURES: html.Pictures[MatchFindings] = {
    "map": (draw_matches, "Map of the matches, and of the records without one"),
    "distances": (draw_distances, "Number of matches by distance, for each criterion"),
    "seconds": (charts.draw_step_times, "Wall-clock time of every step, its start told apart"),
}
"""The page's pictures."""


def render_matches(findings: MatchFindings, drawn: Mapping[str, Figure] | None = None) -> str:
    """Write the page as HTML.

    Parameters
    ----------
    findings : the results of the run.
    drawn : the page's figures; by default they are drawn.
    """
    drawn = html.draw(PICTURES, findings) if drawn is None else drawn
    return html.render_template(
        "matches.html.j2",
        f=findings,
        lead=first_sentence(findings),
        alarm=sentences.alarm(findings),
        key_numbers=_list_key_numbers(findings),
        pictures=html.to_svg(drawn, PICTURES),
        map_text=_describe_map(findings),
        alone_of=_alone_of(findings),
        lacking=list_lacking(findings),
        none_alone=_say_none_alone(findings),
        gates=html.count_by_table(findings.quality),
        steps=costs.list_steps(findings),
        step_times=sentences.step_times(findings),
        cpu=sentences.cpu(findings),
        trends=TRENDS,
    )


def make_matches(findings: MatchFindings) -> dict[str, bytes]:
    """Make report.html, matches.png, distances.png and run.json, the run's main numbers.

    Returns
    -------
    The content of each file, by name, in that order.
    """
    drawn = html.draw(PICTURES, findings)
    return {
        "report.html": render_matches(findings, drawn).encode(),
        "matches.png": figure.to_png(drawn["map"]),
        "distances.png": figure.to_png(drawn["distances"]),
        "run.json": summary.to_json(summarise(findings)),
    }


def summarise(findings: MatchFindings) -> dict[str, Any]:
    """Pick what a list of runs shows: points are the records of the left data set."""
    return {
        "dataset": findings.dataset,
        "title": findings.title,
        "run": findings.run,
        "points": findings.n_left,
        "pairs": findings.n_pairs,
        "mutual": findings.n_mutual,
        "unmatched": findings.n_left_alone + findings.n_right_alone,
        "quality": summary.count_quality(findings),
    }


def _sides(findings: MatchFindings) -> list[tuple[Intake, int, int]]:
    """List the sides whose best matches are asked for: data set, records, records without one."""
    left: tuple[Intake, int, int] = (findings, findings.n_left, findings.n_left_alone)
    right: tuple[Intake, int, int] = (findings.partner, findings.n_right, findings.n_right_alone)
    return {"left": [left], "right": [right], "outer": [left, right], "inner": []}[findings.how]


def _limit(row: Row) -> str:
    """Write the threshold of a criterion, of one without a unit with its name."""
    return f"{words.exact(row['eps'], row['unit'])}{'' if row['unit'] else ' in ' + row['name']}"


def first_sentence(findings: MatchFindings) -> str:
    """Say how many records have a match, and within which thresholds."""
    limits = [_limit(row) for row in findings.criteria if math.isfinite(row["eps"])]
    within = words.listed(limits)
    if findings.how == "inner":
        best = counted(findings.n_pairs, "match", "matches")
        return f"{best} within {within} that no match of any records is better than."
    told = [
        f"{words.count(n - alone)} of {counted(n, 'record')} of {side.dataset}"
        for side, n, alone in _sides(findings)
    ]
    other = findings.dataset if findings.how == "right" else findings.partner.dataset
    where = "in the other data set" if findings.how == "outer" else f"in {other}"
    return f"{words.listed(told)} have a match {where} within {within}."


def list_lacking(findings: MatchFindings) -> list[tuple[str, list[int], str]]:
    """List the criteria that records lack: name, records of each side asked for, what it means."""
    rows: list[tuple[str, list[int], str]] = []
    within: list[str] = []
    for row in findings.criteria:
        numbers = [row["lacking"][side is not findings] for side, _, _ in _sides(findings)]
        limit = _limit(row)
        before = f" of those within {words.listed(within)}" if within else ""
        if any(numbers):
            rows.append((row["name"], numbers, f"no record{before} is within {limit}"))
        if math.isfinite(row["eps"]):
            within.append(limit)
    return rows


def _alone_of(findings: MatchFindings) -> list[str]:
    return [side.dataset for side, _, _ in _sides(findings)]


def _say_none_alone(findings: MatchFindings) -> str:
    if findings.how == "inner":
        return "Records without a match are not asked for (how: inner)."
    return "Every record has a match." if findings.n_left or findings.n_right else "There are no records."


def _list_key_numbers(findings: MatchFindings) -> list[tuple[str, str, str]]:
    """List the numbers at the top of the page as rows of (name, value, explanation)."""
    rows = []
    for side, n, alone in _sides(findings):
        about = ""
        if side is findings and findings.asked_from:
            about = f"from {findings.asked_from} until before {findings.asked_until}, UTC"
        rows.append((side.dataset, words.count(n), about or "records"))
        rows.append(("without a match", words.count(alone), _fraction(alone, n)))
    mutual = f"{words.count(findings.n_mutual)} of them are mutual: best for both records"
    several = f"{counted(findings.n_several, 'record')} with more than one"
    return [*rows, ("matches", words.count(findings.n_pairs), f"{mutual}; {several}")]


def _fraction(part: int, n: int) -> str:
    return f"{words.percent(part / n)} of them" if n else ""


def _describe_map(findings: MatchFindings) -> str:
    n_drawn = len(findings.map_pairs) + len(findings.map_left) + len(findings.map_right)
    n = findings.n_pairs + findings.n_left_alone + findings.n_right_alone
    if not findings.is_on_map:
        return ""
    sample = f"{words.count(n_drawn)} of {words.count(n)}. " if n_drawn < n else ""
    coastlines = " Coastlines: Natural Earth, 1:110 million." if has_coastlines(findings) else ""
    return (
        f"{sample}A match is a line from the record of {findings.dataset}, a dot, to that of "
        f"{findings.partner.dataset}.{coastlines}"
    )
