"""The dissertation's experiments on few rows: the models' numbers, the grids' verdicts, the command."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from benchmarks.experiments import __main__ as command
from benchmarks.experiments import kept, merges, models, stack_merge
from benchmarks.experiments.claims import Claim, Experiment, Line, Picture, Result, Table, short, within
from benchmarks.experiments.counting import count_work, cubes_of, cubes_within, rows_by_level
from epsjoin import Similarity, Spatial, join
from oracles import join as twin
from oracles import papers

SMALL = 3000


JUDGED = ("fig3.6", "fig3.9", "fig3.11", "fig3.17", "fig4.6", "fig4.7", "fig4.8")
"""Experiments whose claims are those of few rows, too."""
SLOW = ("fig3.17", "fig4.7", "fig4.8", "fig4.9")
"""Experiments that take more than a second with few rows, too."""
NEEDS_MORE = re.compile(r"\bs\b|CPU|Poisson")
"""What is found for claims about seconds, and about the share of many runs."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one.name, marks=[pytest.mark.long] * (one.name in SLOW))
        for one in command.EXPERIMENTS
        if one.run_few
    ],
)
def test_experiments__of_few_rows_have_the_verdicts_and_to_the_last_digit_the_counts_of_before(name: str):
    experiment = next(one for one in command.EXPERIMENTS if one.name == name)
    assert experiment.run_few is not None
    found = experiment.run_few()
    judged = [claim for claim in found.claims if name in JUDGED and not NEEDS_MORE.search(claim.ours)]
    assert [claim for claim in judged if not claim.is_as_expected] == []
    assert kept.differences(name, kept.FEW, found.counts) == []


@pytest.mark.parametrize(
    ("eps", "k", "msl", "factor", "rows"),
    [
        (1e-4, 1, 2, 2.2e3, 1.007),
        (1e-4, 2, 2, 7.7e6, 1.007),
        (1e-4, 3, 2, 1.33e8, 1.007),
        (1e-3, 3, 2, 3.2e7, 1.073),
        (1e-2, 6, 2, 5.7e7, 2.02),
        (1e-4, 3, 0, 511, 1.001),
        (1e-3, 3, 0, 506, 1.010),
        (1e-2, 3, 0, 451, 1.105),
        (0.1, 3, 0, 13, 2.37),
        (0.1, 5, 0, 121, 2.58),
    ],
)
def test_improvement__is_that_of_figure_3_10(eps: float, k: int, msl: int, factor: float, rows: float):
    found, rate = models.improvement(eps, k, msl)
    assert found == pytest.approx(factor, rel=0.03)
    assert rate == pytest.approx(rows, abs=0.005)


def test_follow__meets_pairs_of_one_run_only_in_the_merge_where_runs_are_not_joined():
    # rows of one run are told apart from others by its number, which Semistrict and Strict must take away
    points = np.random.default_rng(0).random((600, 2))
    tables, pairs = (points[:300], points[300:]), {}
    for way in merges.WAYS:
        for kind in (Similarity(0.05), Similarity(0.05, cuts="regular"), Spatial()):
            boxes = tuple(np.concatenate((table, table + 0.05), axis=1) for table in tables)
            given = boxes if isinstance(kind, Spatial) else tables
            course = merges.follow(way, given, kind, merges.sizes_of(given, 0.2, 33))
            assert course.counters["runs"] == 5
            assert (course.counters["pairs_in_runs"] > 0) == (way == "PMJ")
            pairs.setdefault(repr(kind), set()).add(course.pairs)
    assert all(len(found) == 1 for found in pairs.values())
    assert pairs[repr(Similarity(0.05))] == {len(join(*tables, 0.05).left)}


def test_count_work__is_that_of_the_twin():
    points = np.random.default_rng(3).random((90, 3))
    for k, msl, decisions in ((0, 0, "global"), (1, 1, "global"), (2, 0, "inside")):
        expected = papers.gess(points, 0.1, k, msl, decisions=decisions)
        work = count_work(cubes_of(points, 0.1), k, msl, decisions)
        assert work == (90, expected.rows, expected.comparisons, expected.largest_stack)


def test_rows_by_level__add_up_to_all_rows():
    cubes = cubes_within(500, 3, 0.05, seed=1)
    for k in (0, 2):
        assert rows_by_level(cubes, k, 1).sum() == len(cubes.encode(k, 1).row)


def test_cubes__that_become_too_many_rows_are_refused():
    cubes = cubes_within(50, 10, 0.3, seed=1)
    assert cubes.is_too_many(10, 5, 32.0)
    assert not cubes.is_too_many(0, 0, 1.0)
    centre = cubes_of(np.repeat([[0.0], [0.5], [1.0]], 21, axis=1), 0.1)
    assert centre.is_too_many(21, 0, 1e9)  # more than a million rows of one cube


def test_sweep__without_reference_points_reports_pairs_more_than_once():
    points = np.random.default_rng(4).random((200, 2))
    rows = stack_merge.merge_rows(points, 0.1, 2, 3)
    pairs = len(twin.brute_force(points, 0.1))
    assert stack_merge.sweep(rows, 0.1)[1] == pairs
    without = rows._replace(is_replica=np.zeros_like(rows.is_replica))
    assert stack_merge.sweep(without, 0.1)[1] > 1.5 * pairs


def test_within__takes_either_as_the_larger():
    assert within(3, 2, 1.5)
    assert within(2, 3, 1.5)
    assert not within(2, 3.01, 1.5)
    assert [short(value) for value in (0.01234, 12.34, 123.4, 123456.0, 1234567)] == [
        *("0.0123", "12.3", "123", "123,456", "1.23e+06")
    ]


def made_up(verdict: bool | None) -> Experiment:
    picture = Picture("fig0", "Figure 0", "x", "y", [Line("a", [1, 2], [3.0, float("nan")])], is_log_x=True)
    claim = Claim("the sun rises", "it does", verdict, True)
    table = Table("days", ["day"], [["1"]])
    return Experiment("fig0", "Sun", "Every day.", lambda: Result([claim], [picture], [table]))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / command.PAGE).write_text("by hand\n" + "\n".join(command.MARKERS))
    return tmp_path


def test_main__writes_the_page_and_its_pictures_the_same_every_time(docs: Path, capsys):
    assert command.main([], docs, [made_up(True)]) == 0
    page = (docs / command.PAGE).read_text()
    assert "by hand" in page
    assert "Verdicts on 1 claims: holds 1, does not hold 0, cannot be judged 0." in page
    assert "| the sun rises | it does | **holds** |" in page
    assert "![Figure 0](pictures/experiments/fig0.svg)" in page
    picture = docs / command.PICTURES / "fig0.svg"
    before = picture.read_bytes()
    assert command.main([], docs, [made_up(True)]) == 0
    assert picture.read_bytes() == before
    assert (docs / command.PAGE).read_text() == page


def test_main__takes_a_group_of_experiments(docs: Path, capsys):
    of_chapter_4 = made_up(False)._replace(name="fig4.0", title="Moon")
    assert command.main(["--only", "pmj"], docs, [made_up(True), of_chapter_4]) == 1
    assert "Sun" not in capsys.readouterr().out


@pytest.mark.parametrize("verdict", [False, None])
def test_main__ends_with_1_where_a_verdict_changes(verdict: bool | None, docs: Path, capsys):
    assert command.main(["--only", "fig0"], docs, [made_up(verdict)]) == 1
    assert "expected 'holds', found" in capsys.readouterr().err
    assert not (docs / command.PICTURES).exists()


def test_page__of_the_docs_has_its_markers_and_all_pictures():
    text = (command.DOCS / command.PAGE).read_text(encoding="utf-8")
    assert [text.count(marker) for marker in command.MARKERS] == [1, 1]
    assert len({one.name for one in command.EXPERIMENTS}) == len(command.EXPERIMENTS)


def test_differences__are_told_by_what_was_counted_and_kept_ones_are_none(tmp_path: Path):
    file = tmp_path / "counts.json"
    found = {"CAD: pairs": [7], "CAD: rows, comparisons": (3, 20)}
    kept.keep(kept.FEW, {"fig0": found, "fig1": {"CT: pairs": [1]}, "fig2": {}}, file)
    kept.keep(kept.FEW, {"fig1": {"CT: pairs": [2]}}, file)
    kept.keep(kept.ALL, {"fig1": {"CT: pairs": [3]}}, file)
    assert kept.differences("fig0", kept.FEW, found, file) == []
    assert kept.differences("fig1", kept.FEW, {"CT: pairs": [2]}, file) == []
    assert kept.differences("fig1", kept.ALL, {"CT: pairs": [2]}, file) == [
        "fig1, all rows: CT: pairs: [2], but [3] in counts.json",
        kept.REMEDY,
    ]
    assert kept.differences("fig0", kept.FEW, {"CAD: rows, comparisons": (3, 21), "CH: rows": [1]}, file) == [
        "fig0, few rows: CAD: pairs: nothing, but [7] in counts.json",
        "fig0, few rows: CAD: rows, comparisons: [3, 21], but [3, 20] in counts.json",
        "fig0, few rows: CH: rows: [1], but nothing in counts.json",
        kept.REMEDY,
    ]
    many = {f"{number}: rows": [number] for number in range(kept.MAX_TOLD + 2)}
    assert kept.differences("fig3", kept.FEW, many, file)[-2] == "fig3, few rows: 2 more differences"
    assert file.read_text().count("\n") == 16  # a change of one is a line of a diff


@pytest.mark.long
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of one family")
def test_experiments__count_the_same_on_a_processor_with_narrow_vectors():
    # numba, NumPy and OpenBLAS choose their code by the processor: these choose that of one of 2004
    narrow = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name]),
        "OPENBLAS_CORETYPE": "Prescott",
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.experiments", "--few"],
        env={**os.environ, **narrow, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
