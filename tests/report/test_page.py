"""The page of a run: what it says of the findings."""

from __future__ import annotations

import dataclasses
import re
import struct

import pytest

from epsjoin.findings import Findings, ValueChanges
from epsjoin.report import page, sentences, summary
from epsjoin.report.figures import figure
from tests.drawn_once import DrawnOnce
from tests.html_reader import Reader

EPS = "ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}2.2134\N{NO-BREAK SPACE}km"
"""No line divides it."""


def test_alarm__counts_the_errors_that_stopped_the_run(example: Findings, reader: Reader) -> None:
    assert sentences.alarm(example) == ""
    assert not any("was stopped" in text for text in reader.words)
    rows = [
        {"table": "pairs", "expectation": f"e{i}", "severity": severity, "success": False, "observed": "4"}
        for i, severity in enumerate(("error", "warning", "error"))
    ]
    stopped = dataclasses.replace(example, quality=[*example.quality, *rows])
    assert sentences.alarm(stopped).startswith("This run was stopped: 2 expectations do not hold.")
    assert sentences.alarm(dataclasses.replace(example, quality=rows[:2])).startswith(
        "This run was stopped: 1 expectation does not hold."
    )
    html = page.render(stopped)
    assert sentences.alarm(stopped) in html
    assert 'href="#quality"' in html
    assert 'id="quality"' in html


def test_first_sentence__has_the_numbers_of_the_findings(example: Findings, reader: Reader) -> None:
    sentence = sentences.first_sentence(example)
    assert sentence == (
        f"737 points: 10 clusters within {EPS}, the largest with 120 points (\u2068Place 0\u2069); "
        "400 points belong to none."
    )
    assert (example.n_points, example.n_clusters, example.n_noise) == (737, 10, 400)
    assert sentence in reader.words


def test_first_sentence__counts_one_and_none_and_thousands(example: Findings, nothing: Findings) -> None:
    one = dataclasses.replace(
        example,
        n_points=11_020,
        n_clusters=1,
        n_noise=1,
        largest_clusters=[{"cluster_id": 3, "size": 11_019}],
    )
    assert sentences.first_sentence(one) == (
        f"11,020 points: 1 cluster within {EPS}, the largest with 11,019 points; 1 point belongs to none."
    )
    none = dataclasses.replace(example, n_points=1, n_pairs=0, n_clusters=0, largest_clusters=[])
    assert sentences.first_sentence(none) == f"1 point: no clusters within {EPS}, and 0 pairs."
    assert sentences.first_sentence(nothing).startswith("No points")


def test_page__shows_the_key_numbers(reader: Reader, example: Findings) -> None:
    for text in (
        "ε 2.2134 km distance threshold, haversine metric",
        "points 737 3 records refused",
        "pairs 4,321 within ε; 1.59 % of all pairs",
        "neighbours 11.7 per point on average",
        "clusters 10 337 points in them",
        f"core {example.n_core} ",
        f"border {example.n_border} ",
        "noise 400 54.3 % of the points, in no cluster",
    ):
        assert text in reader.words


def test_page__has_one_name_for_a_cluster_whose_smallest_core_point_is_another_one_now(
    reader: Reader, example: Findings
) -> None:
    assert "A cluster has the name of its core point with the smallest id; that id is" in reader.words
    first, *others = example.largest_clusters
    kept = [{**first, "called": "Old harbour"}, *({**row, "called": row["label"]} for row in others)]
    for rows, is_told in ((kept, True), ([{**first, "called": first["label"]}, *others], False)):
        findings = dataclasses.replace(example, largest_clusters=rows)
        shown = Reader(page.render(findings)).words
        assert (f"Old harbour {first['key'][0]}" in shown) is is_told
        assert ("A cluster keeps its name from run to run" in shown) is is_told
        name = "Old harbour" if is_told else first["label"]
        assert name in sentences.first_sentence(findings)


def test_page__says_where_everything_came_from(reader: Reader) -> None:
    for text in (
        "data set beacons, run 2023-06-04",
        "2023-06-04.csv.gz 538 kB 740 737 3 " + "9f" * 32,
        "not read, as the contract does not name them: power , usageType .",
        "2 latitude_deg is not a number",
        "1 the key occurs twice",
        "2023-06-04.csv.gz 417 latitude_deg is not a number 85,n/a,3",
        "metric haversine, in km",
        "min_pts 5",
        "max_pairs 1,000,000,000",
        "lof_k –",
    ):
        assert text in reader.words


def test_page__tells_the_start_of_a_job_from_its_work_and_counts_its_cpu(divided: Findings) -> None:
    shown = Reader(page.render(divided))
    for text in (
        "Wall-clock time of every step: its start (JVM, imports, session), then its own time",
        "job time start read work write commit CPU run before counters",
        "ingest 16 s 5 s 2 s 6 s 2 s 1 s 10.5 s 3 min 0 s rows_out 737 merge_join 2.7 s – – – – – – – bytes",
        "1 of the 3 jobs, which counted it, took 10.5 s of CPU: 3 s in the drivers' Python, 7.5 s in their",
        "That is 14,200 µs of CPU a row, for 740 rows read.",
    ):
        assert text in shown.words, text
    assert "workers of tasks" not in shown.words, "what is not known is not 0"


def test_page__without_the_division_shows_seconds_alone(reader: Reader) -> None:
    assert "job time run before counters" in reader.words
    assert "Wall-clock time of every step, without the start of Spark." in reader.words
    assert "of CPU" not in reader.words


def test_page__shows_what_the_run_cost(reader: Reader) -> None:
    for text in (
        "cut into 4 parts by planned cuts, from a sample of 700 points",
        "replicas 761 755 −0.8 % 1.02 per point",
        "candidates 9,800 10,412 +6.2 % pairs of rows that are compared; 3.84 % of all pairs",
        "pairs 4,180 4,321 +3.4 % the result",
        "largest part 210 213 +1.4 % replicas that one task joins",
        "memory 357 MB 307 MB −13.9 % of the largest worker of the join; expected: an upper bound",
        "joining 2.5 s 2.6 s +4.0 % all tasks together, as on one core; without loading and compiling, 8.2 s",
        "ingest 3 min 12 s 3 min 0 s rows_out 737 merge_join 2.7 s – bytes 93.2 kB, joining_seconds 2.6 s, "
        "largest_part_rows 213, largest_stack 17, largest_worker_bytes 307 MB, pairs 4,321, "
        "starting_seconds 8.2 s cluster 0.4 s 0.5 s –",
    ):
        assert text in reader.words


@pytest.mark.parametrize(
    ("method", "target", "sentence"),
    [
        ("given", None, f"{EPS} was set by the run or by the contract; it was not chosen from the data."),
        (
            "neighbours",
            5.0,
            "chosen so that a point has 5 neighbours within it on average, the point itself not counted.",
        ),
        ("pairs", 20_000.0, "chosen so that the join has about 20,000 pairs."),
        (
            "k_distance_quantile",
            0.9,
            "chosen so that about 90 % of the points have their neighbour number 4 within it.",
        ),
        (None, None, "How ε was chosen is not known."),
    ],
)
def test_page__says_how_eps_was_chosen(mapless: Findings, method: str, target: float, sentence: str) -> None:
    chosen = dataclasses.replace(mapless, epsilon={**mapless.epsilon, "method": method, "target": target})
    assert sentence in Reader(page.render(chosen)).words


@pytest.mark.parametrize(
    ("method", "target", "words"),
    [
        ("given", None, "set by the run or the contract"),
        ("neighbours", 3.0, "chosen for 3 neighbours per point by the pair-count exponent 1.43"),
        ("pairs", 20_000.0, "chosen for 20,000 pairs by the pair-count exponent 1.43"),
        (
            "k_distance_quantile",
            0.9,
            "chosen as the 90 % quantile of the k-distance by the pair-count exponent 1.43",
        ),
    ],
)
def test_why_eps_briefly__names_method_target_and_exponent(
    example: Findings, method: str, target: float, words: str
) -> None:
    row = {**example.epsilon, "method": method, "target": target, "n_points": 5_000}
    assert sentences.why_eps_briefly(row) == words
    without_law = words.partition(" by the pair-count")[0]
    assert sentences.why_eps_briefly({**row, "exponent": None}) == without_law
    of_all = sentences.why_eps_briefly({**row, "n_sample": 5_000})
    assert of_all == (without_law if "quantile" in method else words), "such a quantile needs no law"


@pytest.mark.parametrize(("eps", "is_said"), [(0.5, True), (200.0, False)])
def test_page__says_that_eps_lies_below_the_fit(mapless: Findings, eps: float, is_said: bool) -> None:
    """Above it the pairs of the sample are as many as one wants, and counted."""
    far = dataclasses.replace(mapless, epsilon={**mapless.epsilon, "eps": eps})
    assert ("ε lies below the fitted range" in Reader(page.render(far)).words) == is_said


def test_page__says_what_other_eps_would_give(reader: Reader) -> None:
    for text in (
        "1.1067 km 1,551 4.21 23.1 %",
        "2.2134 km 4,180 11.3 37.4 % chosen",
        "3.5 km 8,046 21.8 55 % knee of the k-distances",
        "8.8536 km 2,000,000,000 82 – by the power law alone, more pairs than max_pairs allows",
        "37.4 % of the points have their neighbour number 4 within ε, counted on all points.",
        "bends most at 3.5 km. This knee",
    ):
        assert text in reader.words
    assert [value for name, value in reader.attributes if value == "chosen"] == ["chosen"] * 2  # and this run


def test_page__sets_numbers_and_examples_beside_those_of_the_run_before(reader: Reader) -> None:
    for text in (
        "points 726 737 +11",
        "ε 2.2 km 2.2134 km +0.6 %",
        "clusters 9 10 +1",
        "noise 403 400 −3",
        "came VEG Vega –",
        "changed X3 – power: LOW → HIGH",
        "went X4 Altair –",
    ):
        assert text in reader.words


def test_page__of_a_first_run_has_no_trends(mapless: Findings) -> None:
    first = dataclasses.replace(mapless, comparison=None, run_before="", trends=mapless.trends[-1:])
    text = Reader(page.render(first)).words
    assert "the lake holds no finished run of beacons before 2023-06-04." in text
    assert "so there are no trends yet" in text


def test_page__lists_the_last_runs(reader: Reader) -> None:
    for text in (
        "This run and the 2 runs before it in the lake",
        "2023-04-04 700 – – – – – – – – –",
        "2023-05-04 726 4,000 2.2 9 403 0 1 2 1 120",
        "2023-06-04 737 4,321 2.2134 10 400 3 0 1 1 195",
    ):
        assert text in reader.words


def test_page__shows_what_the_gates_found(reader: Reader) -> None:
    assert "1 of 2 expectations of the tables' contracts hold; these do not:" in reader.words
    assert "warning snapshots nothing_was_quarantined 3" in reader.words
    assert "pairs 1 0 0 snapshots 1 1 0" in reader.words


def test_page__shows_what_was_left_out_beside_what_was_refused(mapless: Findings, reader: Reader) -> None:
    (file,) = mapless.snapshots
    some = {**file, "rows_left_out": 12_345, "taken_where": "power > 0 AND usage <> '<b>'"}
    text = Reader(page.render(dataclasses.replace(mapless, snapshots=[some]))).words
    assert "3 records refused, 12,345 left out" in text
    assert "refused left out SHA-256" in text
    assert "3 12,345 9f9f" in text
    assert "records for which this is not true: power > 0 AND usage <> '<b>'" in text
    assert "left out" not in reader.words, "of a contract that takes all records"


def test_page__shows_refused_records_of_parquet_by_row(mapless: Findings, reader: Reader) -> None:
    text = Reader(page.render(dataclasses.replace(mapless, numbered_by="row"))).words
    assert "file row reason record" in text
    assert "file line reason record" in reader.words


def test_page__has_a_list_of_its_sections(reader: Reader) -> None:
    ids = [value for name, value in reader.attributes if name == "id"]
    links = [value for name, value in reader.attributes if name == "href" and value != "#contents"]
    listed = links[: links.index("#terms") + 1]
    assert len(set(listed)) == len(listed) == 11
    assert [ids.count(str(link).removeprefix("#")) for link in listed] == [1] * len(listed)
    assert reader.tags.count("h2") == len(listed), "each section is listed"
    ways_back = [value for name, value in reader.attributes if (name, value) == ("href", "#contents")]
    assert len(ways_back) == len(listed), "each section leads back"


def test_page__shows_the_eps_that_was_used_with_all_of_its_digits(mapless: Findings) -> None:
    eps = 2.0000004
    used = dataclasses.replace(
        mapless,
        epsilon={**mapless.epsilon, "eps": eps},
        counters={**mapless.counters, "fit_epsilon": {"eps": eps}},
        trends=[{**row, "eps": eps} for row in mapless.trends],
        other_eps=[{**row, "eps": eps * f} for row, f in zip(mapless.other_eps, (0.5, 1, 2, 4), strict=True)],
    )
    text = Reader(page.render(used)).words.replace("\N{NO-BREAK SPACE}", " ")
    places = ("within ε = 2.0000004 km", "ε 2.0000004 km distance", "ε 2.0000004 km 2.0000004 km same")
    in_tables = (
        "1.0000002 km 1,551",
        "2.0000004 km 4,180",
        "8.0000016 km",
        "eps 2.0000004",
        "4,000 2.0000004 9",
    )
    assert [place for place in (*places, *in_tables) if place not in text] == []
    assert not re.search(r"(?<![\d.])2 km", text)


def test_changes__are_so_few_that_numbers_written_anew_fill_no_page(mapless: Findings) -> None:
    columns = [(f"f{i}", 1.0, 1.0 + 2**-40) for i in range(64)]
    row = {"what": "updated", "id": 1, "key": ["A"], "label": None, "columns": columns}
    assert mapless.comparison is not None
    noisy = dataclasses.replace(mapless, comparison=dataclasses.replace(mapless.comparison, examples=[row]))
    text = Reader(page.render(noisy)).words
    assert "f5: 1 → 1.000000000001" in text
    assert "f6:" not in text
    assert "; and 58 other columns" in text


def test_make_report__makes_page_pictures_and_summary(mapless: Findings, drawn_once: DrawnOnce) -> None:
    files = page.make_report(mapless)
    pictures = ["clusters.png", "pair_count.png", "cost.png"]
    assert list(files) == ["report.html", *pictures, "run.json"]
    assert files["report.html"] == page.render(mapless).encode()
    assert files["run.json"] == summary.to_json(summary.summarise(mapless))
    for name in pictures:
        assert files[name].startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">I", files[name][16:20]) == (figure.PNG_WIDTH,)
    drawn_once.forget()
    assert page.make_report(mapless) == files


def test_page__compares_values_over_the_last_runs(example: Findings) -> None:
    row = {"value": "<b>TACAN</b>", "points": 7}
    moved = {**row, "value": "VOR", "fraction": 0.25, "fraction_before": 0.5}
    kinds = ValueChanges(
        column="type",
        n_intervals=12,
        n_runs=3,
        n_values=4,
        new=[row],
        gone=[{**row, "value": "LORAN"}],
        moved=[moved],
        n_new=1,
        n_gone=1,
    )
    second = dataclasses.replace(kinds, column="use", n_runs=2, n_values=1, new=[], n_new=0)
    alone = dataclasses.replace(
        kinds, column="country", n_runs=1, n_values=1, new=[], gone=[], moved=[], n_new=0, n_gone=0
    )
    words = Reader(page.render(dataclasses.replace(example, values=[kinds, second, alone]))).words
    assert "Values of type over 12 intervals" in words
    assert (
        "1 is in none of the 2 earlier runs of the window, 1 left it with the interval before its first"
        in words
    )
    assert all(each in words for each in ("<b>TACAN</b>", "LORAN", "25 %", "50 %"))
    assert "fraction moved most points fraction fraction before" in words
    assert "1 value in this run. 0 are not in the one earlier run of the window, 1 left" in words
    assert "1 value; no earlier run of the window has any to compare with" in words


def test_page__names_the_files_without_a_record(mapless: Findings) -> None:
    (file,) = mapless.snapshots
    empty = [{**file, "source": f"{i}.json", "rows_read": 0} for i in range(7)]
    says = "No record is in 0.json , 1.json , 2.json , 3.json , 4.json and 2 further files."
    assert says in Reader(page.render(dataclasses.replace(mapless, snapshots=[file, *empty]))).words
    assert "No record is in" not in Reader(page.render(mapless)).words
