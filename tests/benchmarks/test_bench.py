"""The benchmark's machinery on tiny sets: the page's text, the exit code, fresh processes; no speed."""

from __future__ import annotations

import gc
import os
import re
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import contenders, measure, neighbours, questions
from benchmarks.contenders import (
    Clusters,
    are_same_clusters,
    ckdtree_pairs,
    epsjoin_batches,
    epsjoin_pairs,
    sklearn_clusters,
)
from benchmarks.measure import growth_bytes, in_own_process, race, timed
from benchmarks.page import BEGIN, END
from benchmarks.questions import Answer, Curve
from benchmarks.sets import Set, first_of_cad, subspace, uniform
from benchmarks.spark.bench import RUN, lake_with_points
from epsjoin.lake import slices
from epsjoin.pipeline import tables_at
from open_sets import numbers

TINY = Set("tiny", "a square", partial(uniform, 400, 2), 0.05, rounds=2)


SPHERE = Set("sphere", "navigation aids", lambda: numbers("navaids")[:400], 300.0, "haversine", rounds=1)


PAGE = f"# Benchmarks\n\nby hand\n\n{BEGIN}\nold\n{END}\n\nbelow\n"


@pytest.fixture(autouse=True, scope="module")
def small_heap():
    """Every measurement collects garbage first: not that of all the tests before."""
    gc.freeze()


def here(function, *arguments):
    """In this process: no import, no waiting."""
    return function(*arguments)


def pairs_of(chosen: Set) -> int:
    points = chosen.make()
    difference = points[:, None] - points[None]
    return int(np.triu(np.sqrt((difference**2).sum(axis=2)) <= chosen.eps, 1).sum())


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / command.PAGE).write_text(PAGE)
    return tmp_path


def cells(lines: list[str], row: str) -> list[str]:
    (found,) = [line for line in lines if line.startswith(f"| {row}")]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_joins__row_has_the_pairs_of_brute_force():
    answer = questions.joins(here, [TINY])
    assert answer.is_right
    row = cells(answer.lines, "tiny")
    assert row[:5] == ["tiny: a square", "400 × 2", "0.05", f"{pairs_of(TINY):,}", "cKDTree"]
    assert len(row) == len(cells(answer.lines, "set"))
    assert len(answer.ratios["tiny"]) == TINY.rounds


def test_joins__on_the_sphere_the_peer_counts_each_pair_once():
    answer = questions.joins(here, [SPHERE])
    assert answer.is_right
    assert cells(answer.lines, "sphere")[4] == "BallTree"


def test_joins__a_wrong_count_is_said_in_its_row():
    wrong = {
        "cKDTree": lambda points, eps: ckdtree_pairs(points, eps) - 1,
        "epsjoin": epsjoin_pairs,
        "unsorted": epsjoin_batches,
    }
    answer = questions.joins(here, [TINY], of_set=lambda _: wrong)
    assert not answer.is_right
    assert cells(answer.lines, "tiny")[3] == f"**DIFFERENT: {pairs_of(TINY) - 1:,}, {pairs_of(TINY):,}**"


def test_joins__a_wrong_count_in_one_round_is_seen():
    calls = []

    def wrong_at_last(points, eps):
        calls.append(len(points))
        return epsjoin_pairs(points, eps) + (len(calls) == 1 + TINY.rounds)

    contenders = {"cKDTree": ckdtree_pairs, "epsjoin": wrong_at_last, "unsorted": epsjoin_batches}
    answer = questions.joins(here, [TINY], of_set=lambda _: contenders)
    assert "DIFFERENT" in cells(answer.lines, "tiny")[3]
    assert not answer.is_right


def test_timed__has_memory_at_hand_before_its_clock_starts(monkeypatch):
    order = []
    with monkeypatch.context() as patch:
        patch.setattr(measure, "take_back", lambda: order.append("memory"))
        patch.setattr(measure.time, "perf_counter", lambda: order.append("clock") or 0.0)
        run = timed(lambda: order.append("work"))
    assert order == ["memory", "clock", "work", "clock"]
    assert run.wall == 0.0


def test_race__contenders_take_turns_in_beginning(tmp_path):
    np.save(tmp_path / "points.npy", TINY.make())
    calls = []
    both = {name: lambda *_, name=name: calls.append(name) for name in ("a", "b")}
    rounds = race(both, tmp_path / "points.npy", 0.1, 3)
    warm, *measured = (calls[i : i + 2] for i in range(0, len(calls), 2))
    assert warm == ["a", "b"]
    assert measured == [["a", "b"], ["b", "a"], ["a", "b"]]
    assert [sorted(one) for one in rounds] == [["a", "b"]] * 3


def test_race__the_limit_ends_each_round_with_the_pairs_of_its_first_contender(tmp_path):
    np.save(tmp_path / "points.npy", TINY.make())
    answers = iter([0, 3])
    calls = []
    both = {"a": lambda *_: next(answers), "b": lambda *_: 9}
    (one,) = race(
        both, tmp_path / "points.npy", 0.1, 1, lambda *given: calls.append((len(given[0]), given[1]))
    )
    assert calls == [(400, 3)]
    assert list(one) == ["a", "b", "limit"]


def test_machine_limit__gathers_every_row_in_order_and_writes_the_pairs():
    points = uniform(500, 3)
    expected = points[np.argsort(points[:, 0])]
    assert (contenders.in_order_of_first_coordinate(points) == expected).all()
    assert contenders.machine_limit(points, 7) == 7


def test_threads__a_row_tells_two_against_one():
    clocks = {"cKDTree": (9, 8), "epsjoin": (6, 6), "epsjoin, n_jobs=2": (3, 2)}

    def by_clocks(function, *arguments):
        """What it returns, with the seconds of these clocks, CPU ten times wall."""
        found = function(*arguments)
        if function is not race:
            return found
        return [
            {
                name: run._replace(cpu=10.0 * clocks[name][n], wall=clocks[name][n])
                for name, run in one.items()
            }
            for n, one in enumerate(found)
        ]

    answer = questions.threads(by_clocks, [TINY])
    assert answer.is_right
    assert cells(answer.lines, "tiny, 400 × 2")[1:] == [
        f"{pairs_of(TINY):,}",
        "8.50 / 6.00 / 2.50",
        "85.0 / 60.0 / 25.0",
        "**2.5 (2.0 – 3.0)**",
        "0.42 (0.33 – 0.50)",
        "3.5 (3.0 – 4.0)",
    ]


def test_threads_and_growth__a_wrong_count_is_said(monkeypatch):
    monkeypatch.setattr(questions, "ckdtree_pairs", lambda *_: 5)
    two_threads = questions.threads(here, [TINY])
    assert "DIFFERENT: 5, " in cells(two_threads.lines, "tiny")[1]
    grown = questions.growth_dimensions(here, [Set("2", "", partial(subspace, 300, 2), None, rounds=1)])
    assert "DIFFERENT: 5, " in cells(grown.lines, "2 ")[2]
    assert not two_threads.is_right
    assert not grown.is_right


def test_growth__peer_ends_where_it_would_take_too_long(monkeypatch):
    monkeypatch.setattr(questions, "CKDTREE_ROWS", 1_000)
    sets = [Set(f"{n:,}", "", partial(first_of_cad, n, 4_000), None, rounds=1) for n in (400, 1_000, 4_000)]
    answer = questions.growth_rows(here, sets)
    assert answer.is_right
    assert cells(answer.lines, "4,000")[3] == "–"
    assert cells(answer.lines, "400 ")[3] != "–"
    assert [len(answer.curve.seconds[name]) for name in ("cKDTree", "epsjoin")] == [2, 3]
    assert any(re.search(r"epsjoin × \S+ \(400 to 4,000\)", line) for line in answer.lines)
    for row in answer.lines[2:5]:
        assert 2 < float(row.split("|")[3]) < 10  # neighbours, of five wished


def test_stream__counts_every_pair_of_the_batches():
    answer = questions.stream(here, partial_square, 20_000)
    row = cells(answer.lines, "partial_square")
    expected = pairs_of(Set("", "", partial_square, float(row[1])))
    assert row[2] == f"{expected:,}"
    assert 15_000 < expected < 25_000


def partial_square():
    return uniform(2_000, 2)


def test_dbscan__is_refused_when_labels_differ():
    right = questions.dbscan(here, [TINY], mine=partial(sklearn_clusters, algorithm="brute"))
    assert right.is_right
    wrong = questions.dbscan(here, [TINY], mine=lambda points, eps: sklearn_clusters(points, eps * 1.5))
    assert not wrong.is_right
    assert "DIFFERENT" in cells(wrong.lines, "tiny")[1]


CORE = np.array([True, True, True, False, False])


@pytest.mark.parametrize(
    ("labels", "is_core", "same"),
    [
        ([7, 7, 3, 7, -1], CORE, True),  # other names
        ([0, 0, 1, 1, -1], CORE, True),  # the border point in the other cluster
        ([0, 0, 1, -1, -1], CORE, False),  # the border point as noise
        ([0, 0, 0, 0, -1], CORE, False),  # two clusters made one
        ([0, 2, 1, 0, -1], CORE, False),  # one made two
        ([0, 0, 1, 0, -1], np.array([True, True, True, True, False]), False),
    ],
)
def test_are_same_clusters__up_to_the_border_rule(labels, is_core, same):
    ours = Clusters(np.array([0, 0, 1, 0, -1]), CORE)
    assert are_same_clusters(ours, Clusters(np.array(labels), is_core)) is same


@pytest.mark.parametrize("chosen", [pytest.param(TINY, marks=pytest.mark.long), SPHERE])
def test_neighbours__a_wrong_distance_is_said_in_its_row(chosen):
    right = neighbours.neighbours(here, [chosen], rounds=1)
    assert right.is_right
    assert cells(right.lines, chosen.name)[1] == "400 × 2"
    of_set = {name: dict(who) for name, who in neighbours.contenders(chosen).items()}
    of_set["lof"][neighbours.MINE] = lambda points, _: neighbours.my_lof(points * 1.01, _, chosen.metric)
    wrong = neighbours.neighbours(here, [chosen], 1, lambda _: of_set)
    assert not wrong.is_right
    assert "DIFFERENT" in cells(wrong.lines, chosen.name)[-1]
    assert "DIFFERENT" not in cells(wrong.lines, chosen.name)[-3]


@pytest.fixture
def short(monkeypatch):
    """The whole command, its questions on tiny sets."""
    growth_sets = [Set(str(d), "", partial(subspace, 300, d), None, rounds=1) for d in (2, 4)]
    grown = Curve("n", "rows", [10, 100, 1000], {"cKDTree": [1.0, 9.0], "epsjoin": [1.0, 3.0, 9.0]})
    tiny = {
        "growth-n": lambda *_, **__: Answer("Growth with n", ["| n |"], curve=grown),
        "growth-d": lambda call, rounds: questions.growth_dimensions(call, growth_sets, rounds),
    }
    monkeypatch.setattr(command, "QUESTIONS", tiny)
    monkeypatch.setattr(questions, "stream", lambda _: Answer("Pairs as a stream", ["none"]))


def test_main__writes_the_page_between_the_markers_and_the_pictures(docs, short):
    assert command.main(["--rounds", "1"], call=here, docs=docs, sets=[TINY]) == 0
    text = (docs / command.PAGE).read_text()
    assert text.startswith(f"# Benchmarks\n\nby hand\n\n{BEGIN}\nMeasured by `make bench` on ")
    assert text.endswith(f"{END}\n\nbelow\n")
    assert "old" not in text
    assert f"| {pairs_of(TINY):,} | cKDTree |" in text
    assert re.findall(r"^## (.+)$", text, re.M) == [
        "All pairs within eps, one thread",
        "Growth with n",
        "Growth with d",
        "Pairs as a stream",
    ]
    shown = re.findall(r"\]\(\.\./(pictures/\S+)\)", text)
    assert shown == sorted(set(shown), key=shown.index)
    drawn = {str(file.relative_to(docs)) for file in docs.glob("pictures/*.svg")}
    assert drawn == {f"pictures/benchmarks-{name}.svg" for name in ("ratio", "growth-n", "growth-d")}
    assert set(shown) <= drawn
    for file in docs.glob("pictures/*.svg"):
        ElementTree.parse(file)


def test_main__a_wrong_count_gives_exit_code_1(docs, short, monkeypatch, capsys):
    monkeypatch.setattr(contenders, "epsjoin_pairs", lambda *_: -1)
    assert command.main(["--only", "tiny", "--rounds", "1"], call=here, docs=docs, sets=[TINY]) == 1
    out, err = capsys.readouterr()
    assert f"DIFFERENT: -1, {pairs_of(TINY):,}" in out
    assert "do not agree" in err


def test_main__some_sets_leave_the_page_alone(docs, short, capsys):
    assert command.main(["--only", "tiny", "--rounds", "1"], call=here, docs=docs, sets=[TINY]) == 0
    assert (docs / command.PAGE).read_text() == PAGE
    assert not list(docs.glob("pictures/*"))
    assert capsys.readouterr().out.count("## ") == 1


@pytest.mark.parametrize("arguments", [["--only", "cad"], ["--rounds", "0"]])
def test_main__wrong_arguments(arguments, docs, capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments, call=here, docs=docs)
    assert stopped.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_lake_with_points__has_all_that_the_first_gate_checks(tmp_path):
    lake = lake_with_points(tmp_path, [uniform(20, 2)], 0.1)
    for name in tables_at("input"):
        assert slices.list_runs(lake, name) == [RUN], name


def test_growth_bytes__sees_memory_that_was_given_back():
    size = 64 << 20
    grown = growth_bytes(lambda: np.ones(size, np.uint8).sum())
    assert 0.95 * size < grown < 2 * size  # the kernel counts pages a little late
    assert growth_bytes(lambda: None) < size // 4  # the peak is forgotten


def test_in_own_process__is_fresh_and_has_one_blas_thread():
    assert in_own_process(os.getpid) != os.getpid()
    assert in_own_process(os.getenv, "OPENBLAS_NUM_THREADS") == "1"
