"""What the page says of what changed, with no, one and many changes."""

from __future__ import annotations

import dataclasses
import itertools
import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from epsjoin.findings import ABSENT, Comparison, Findings
from epsjoin.report import page, sentences, words
from epsjoin.report.figures import figure
from epsjoin.report.figures.lives import MARKS, draw_flows, draw_lives
from epsjoin.report.figures.maps import draw_changes
from epsjoin.report.sentences import list_events
from epsjoin.vocabulary import EVENTS, NOISE

DRAWN = {"changes": draw_changes, "flows": draw_flows, "lives": draw_lives}


def with_comparison(findings: Findings, **changed: Any) -> Findings:
    assert findings.comparison is not None
    return dataclasses.replace(findings, comparison=dataclasses.replace(findings.comparison, **changed))


def calm(findings: Findings) -> Findings:
    """Nothing has changed."""
    none: dict[str, Any] = {"came": np.empty((0, 2)), "went": np.empty((0, 2)), "moves": np.empty((0, 4))}
    counts = dict.fromkeys(("inserted", "updated", "deleted", "moved"), 0)
    return with_comparison(findings, **none, **counts, events=[], n_events={}, marks=[], examples=[])


def texts_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html))


def section(html: str, heading: str) -> str:
    """The part of the page from a heading to the next one of its kind."""
    return html.split(f'<h2 id="{heading}">')[1].split("<h2 ")[0]


def test_page__says_in_one_sentence_what_changed(html: str) -> None:
    told = texts_of(section(html, "difference"))
    assert "Since run 2023-05-04 12 records came, 1 went, 7 changed, 5 of which moved. " in told
    assert "Clusters: 1 born, 1 split, 1 merged into another, 1 shrunk." in told
    assert "18 records that came (+), went (×) or moved" in told
    plain = "".join(c for c in told if c.isprintable() and c not in "\u2068\u2069")
    assert "Place 1 split: 12 records of it are in Place 7 now." in plain
    assert "Place 99 is no more: 14 records of it are in Place 0 now." in plain
    assert "Place 8 is new: 7 records." in plain
    assert "Place 0 has shrunk by 9 records." in plain
    assert "The guard made 2 checks: 1 warned." in told
    assert "the column power is new" in told


def test_list_events__has_a_sentence_for_each_kind(example: Findings) -> None:
    events = [{"event": kind, "name": 1, "other": 7, "members": 2} for kind in EVENTS]
    assert len(set(list_events(with_comparison(example, events=events)))) == len(EVENTS)


def test_page__has_what_changed_after_the_numbers_and_before_the_map(html: str) -> None:
    places = [html.index(text) for text in ('class="keys"', 'id="difference"', 'id="map"')]
    assert places == sorted(places)


def test_page__of_a_calm_run_says_so_and_has_its_clusters_but_no_empty_map(example: Findings) -> None:
    html = section(page.render(calm(example)), "difference")
    told = texts_of(html)
    assert "Clusters over the last runs" in told, "also where nothing has changed"
    assert 'class="lives"' in html
    assert "Since run 2023-05-04 0 records came, 0 went, 0 changed. No cluster was born, split" in told
    assert 'class="changes"' not in html
    assert "What happened to clusters" not in told


def test_page__of_a_first_run_says_that_there_is_nothing_to_compare_with(example: Findings) -> None:
    first = with_comparison(calm(example), against="", flows=[])
    first = dataclasses.replace(first, run_before="", guard=[])
    html = section(page.render(first), "difference")
    told = texts_of(html)
    assert (
        "There is nothing to compare with: the lake holds no finished run of beacons before 2023-06-04."
        in told
    )
    assert "Clusters over the last runs" not in told, "a run alone is no history"
    assert 'class="flows"' not in html
    assert "guard" not in told


def test_page__of_a_guard_without_an_earlier_run_has_a_sentence_instead_of_a_table(example: Findings) -> None:
    nothing = {"observed": None, "verdict": "ok", "against": None, "words": "there is no earlier run"}
    rows = [{"check": check, "limit": None, **nothing} for check in ("lost", "new")]
    html = section(page.render(dataclasses.replace(example, guard=rows)), "difference")
    told = unescape(texts_of(html))
    assert "There is no earlier run to compare with, so the guard's 2 checks had nothing to find." in told
    assert "<th>verdict</th>" not in html


def test_page__without_the_job_compare_says_so_and_has_the_numbers_of_the_run_before(
    example: Findings,
) -> None:
    told = texts_of(section(page.render(dataclasses.replace(example, comparison=None)), "difference"))
    assert (
        "Which records and clusters have changed since run 2023-05-04 is not known: the job compare has not "
        "run for this run."
    ) in told
    assert "points 726 737 +11 " in told
    assert "largest clusters" not in told
    assert "Examples" not in told


def test_page__of_a_source_without_a_key_counts_no_changed_records(example: Findings) -> None:
    told = sentences.what_changed(dataclasses.replace(with_comparison(example, updated=0, moved=0), key=()))
    assert told.startswith(
        "Since run 2023-05-04 12 records came and 1 went; as the source has no key, a record that changed is "
        "one that went and one that came. Clusters: 1 born"
    )


def test_page__of_more_changes_than_are_drawn_says_how_many(example: Findings, html: str) -> None:
    rng = np.random.default_rng(0)
    many = with_comparison(
        example,
        **{"inserted": 4000, "deleted": 3000, "moved": 3000, "updated": 3500},
        came=rng.uniform(30, 60, (800, 2)),
        went=rng.uniform(30, 60, (600, 2)),
        moves=rng.uniform(30, 60, (600, 4)),
    )
    found = page.render(many)
    assert "2,000 of 10,000 records that came" in texts_of(found)
    assert len(found) < len(html) + 400_000


def test_what_changed__counts_one_record_as_one(example: Findings) -> None:
    one = with_comparison(calm(example), inserted=1)
    assert "1 record came, 0 went" in sentences.what_changed(one)


def test_power_law__counts_one_pair_as_one(example: Findings) -> None:
    assert sentences.power_law(dataclasses.replace(example, n_pairs=1))[-1].endswith("; found: 1 pair.")


def test_what_changed__names_other_settings_where_something_happened(example: Findings) -> None:
    assert example.comparison is not None
    against, due = example.comparison.against, "some of what happened is due to that."

    def told(findings: Findings, before: dict[str, Any], now: dict[str, Any]) -> str:
        rows = [{"run": against, **before}, {"run": findings.run, **now}]
        return sentences.what_changed(dataclasses.replace(findings, trends=rows, unit="km"))

    same = {"eps": 2.5, "min_pts": 5}
    for before in (same, {}, {"eps": None, "min_pts": None}):
        assert due not in told(example, before, same)
    assert f"In that run min_pts was 8: {due}" in told(example, same | {"min_pts": 8}, same)
    both = told(example, {"eps": 3.0, "min_pts": 1000}, same)
    assert f"In that run ε was 3 km and min_pts was 1,000: {due}" in both.replace(words.NO_BREAK, " ")
    assert due not in told(calm(example), {"eps": 3.0}, same)


def test_guard__says_what_was_held_and_accepted(example: Findings) -> None:
    def told(*verdicts: str) -> str:
        rows = [{"check": "lost", "verdict": verdict, "against": "2023-05-04"} for verdict in verdicts]
        return sentences.guard(dataclasses.replace(example, guard=rows))

    assert told("ok", "ok") == "The guard's 2 checks found nothing above a limit."
    assert told("held", "ok") == "The guard made 2 checks: 1 held the snapshot."
    assert "1 would have held it, which the run accepted, 1 warned" in told("accepted", "warned")
    assert told() == ""


def test_page__of_a_run_that_was_held_when_made_again_says_so_first(example: Findings, html: str) -> None:
    assert "the new snapshot was refused" not in texts_of(html)
    html = page.render(dataclasses.replace(example, refusal="5 of 9 <records> are missing; mend the source"))
    told = (
        "This run was made again, and the new snapshot was refused. This page shows what had come in "
        "before. 5 of 9 &lt;records&gt; are missing; mend the source"
    )
    assert told in texts_of(html.split("<nav ")[0])


@pytest.mark.parametrize("name", DRAWN)
def test_pictures__are_the_same_bytes_every_time(example: Findings, name: str) -> None:
    first, second = (figure.to_svg(DRAWN[name](example), name, "text") for _ in range(2))
    assert first == second


def marks_of(findings: Findings) -> dict[str, int]:
    """Number of marks on the map of changes by their sign."""
    (ax,) = draw_changes(findings).axes
    return {
        str(line.get_marker()): len(line.get_xdata()) for line in ax.get_lines() if line.get_gid() is None
    }


def test_draw_changes__has_a_mark_for_each_change(example: Findings) -> None:
    """A moved record is a line of two ends and a gap, and a dot."""
    assert marks_of(example) == {"+": 12, "x": 1, "None": 15, "o": 5}


def test_draw_changes__goes_the_short_way_across_180_degrees(example: Findings) -> None:
    moved = with_comparison(calm(example), moved=1, moves=np.array([[179.5, 50.0, -179.5, 51.0]]))
    moved = dataclasses.replace(
        moved,
        map_points=np.empty((0, 2)),
        map_cluster_ids=np.empty(0, np.int64),
    )
    (ax,) = draw_changes(moved).axes
    (line,) = (line for line in ax.get_lines() if line.get_marker() == "None" and line.get_gid() is None)
    x = np.asarray(line.get_xdata(), float)
    assert abs(x[1] - x[0]) == pytest.approx(1.0)


def names_in(findings: Findings, drawn: str) -> list[str]:
    return [text.get_text() for text in texts_on(DRAWN[drawn](findings))]


def texts_on(fig: Figure) -> list[Text]:
    """The texts of a picture, the names on its axis last."""
    (ax,) = fig.axes
    return [*ax.texts, *(ax.get_yticklabels() if ax.axison else ())]


def test_draw_flows__adds_up_what_leaves_and_what_reaches_each_cluster(example: Findings) -> None:
    written = names_in(example, "flows")
    assert written[0] == "2023-05-04"
    assert {"Place 0 (127)", "Place 99 (14)", "other clusters (4)", "noise (6)", "came (7)"} <= set(written)
    assert {"Place 0 (132)", "Place 7 (9)", "noise (9)", "went (3)", "cluster 5 (10)"} <= set(written)
    assert len(written) == 2 + 12 + 12


def test_draw_flows__writes_a_name_in_full_where_there_is_room(example: Findings) -> None:
    """Two clusters without a label may differ in their last digits alone."""
    flows = [{"before": name, "now": name, "members": 411} for name in (45856, 45882, 104185)]
    written = names_in(with_comparison(example, flows=flows, labels={}), "flows")
    assert [text for text in written if "cluster" in text] == [
        *("cluster 45856 (411)", "cluster 45882 (411)", "cluster 104185 (411)"),
    ] * 2


def test_draw_flows__gives_each_cluster_room_for_its_name(example: Findings) -> None:
    assert example.comparison is not None
    tiny = [{"before": name, "now": name, "members": 1} for name in range(19)]
    flows = [*tiny, {"before": 99, "now": 99, "members": 10**6}, {"before": ABSENT, "now": 99, "members": 1}]
    fig = draw_flows(with_comparison(example, flows=flows))
    (ax,) = fig.axes
    fig.draw_without_rendering()
    left = [text for text in ax.texts if text.get_ha() == "right"][1:]
    boxes = sorted((text.get_window_extent().y0, text.get_window_extent().y1) for text in left)
    assert len(boxes) == 21
    assert all(upper <= lower + 1 for (_, upper), (lower, _) in itertools.pairwise(boxes))


def test_draw_flows_and_lives__fit_their_pictures_whatever_the_names(example: Findings) -> None:
    assert example.comparison is not None
    labels = dict.fromkeys(range(100), "WWWW Llanfairpwllgwyngyll")
    large = [{**row, "size": 123_456_789} for row in example.comparison.lives]
    flows = [{**row, "members": 987_654_321} for row in example.comparison.flows]
    crowded = with_comparison(example, labels=labels, lives=large, flows=flows)
    for draw in (draw_flows, draw_lives):
        fig = draw(crowded)
        fig.draw_without_rendering()
        boxes = [text.get_window_extent() for text in texts_on(fig)]
        assert min(box.x0 for box in boxes) >= 0
        assert max(box.x1 for box in boxes) <= fig.bbox.width


@pytest.mark.parametrize("n_runs", [2, 3, 6])
def test_draw_lives__has_its_dates_apart(example: Findings, n_runs: int) -> None:
    found = example.comparison
    assert found is not None
    runs = found.runs[-n_runs:]
    lives = [row for row in found.lives if row["run"] in runs]
    fig = draw_lives(with_comparison(example, runs=runs, lives=lives, marks=[]))
    fig.draw_without_rendering()
    first, last = (label.get_window_extent() for label in fig.axes[0].get_xticklabels())
    assert 0 <= first.x0 < first.x1 < last.x0
    assert last.x1 <= fig.bbox.width


def test_draw_lives__names_sizes_and_what_ended(example: Findings) -> None:
    written = names_in(example, "lives")
    assert written.count("ended") == 1
    assert written[-11:] == [
        *("Place 0", "Place 1", "Place 2", "Place 3", "Place 99", "Place 4"),
        *("cluster 5", "Place 6", "Place 7", "Place 8", "Place 9"),
    ]


def test_draw_lives__has_a_gap_where_a_name_was_not_there_and_marks_what_happened(example: Findings) -> None:
    found = example.comparison
    assert isinstance(found, Comparison)
    runs = found.runs[:5]
    lives = [{"run": run, "name": 1, "size": 9} for run in (runs[0], runs[1], runs[3], runs[4])]
    marks = [{"run": runs[3], "event": event, "name": 1} for event in ("born", "grown")]
    (ax,) = draw_lives(with_comparison(example, runs=runs, lives=lives, marks=marks)).axes
    assert len(ax.collections) == 2, "two bands"
    assert [line.get_marker() for line in ax.get_lines() if line.get_marker() != "None"] == ["o"]


def test_draw_lives__has_room_for_the_names_of_all_marks(example: Findings) -> None:
    found = example.comparison
    assert found is not None
    run, name = found.runs[-1], found.lives[-1]["name"]
    marks = [{"run": run, "event": event, "name": name} for event in MARKS]
    fig = draw_lives(with_comparison(example, marks=marks))
    fig.draw_without_rendering()
    legend = fig.axes[0].get_legend()
    assert len(legend.get_texts()) == 5
    box = legend.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= fig.bbox.width
    assert box.y1 <= fig.bbox.height


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("changes", "There is no run to compare with."),
        ("flows", "There is no run to compare with."),
        ("lives", "No cluster has a name."),
    ],
)
def test_pictures__without_a_comparison_say_why(example: Findings, name: str, why: str) -> None:
    (ax,) = DRAWN[name](dataclasses.replace(example, comparison=None)).axes
    assert ax.texts[0].get_text() == why


def test_noise__is_no_cluster(example: Findings) -> None:
    assert "cluster −1" not in " ".join(names_in(example, "flows"))
    assert NOISE == -1
