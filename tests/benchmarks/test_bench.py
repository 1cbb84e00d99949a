"""The benchmark's machinery on tiny sets: the page's text, the exit code, fresh processes; no speed."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from benchmarks import __main__ as command
from benchmarks import (
    around,
    contenders,
    increments,
    ingest,
    measure,
    neighbours,
    parts,
    plans,
    questions,
    scaling,
    spark_join,
)
from benchmarks.contenders import (
    Clusters,
    are_same_clusters,
    ckdtree_pairs,
    epsjoin_batches,
    epsjoin_pairs,
    sklearn_clusters,
)
from benchmarks.measure import cpu_meter, growth_bytes, in_own_process, own_groups, race
from benchmarks.page import BEGIN, END, put, spread, table
from benchmarks.questions import Answer, Curve
from benchmarks.sets import BY_NAME, Set, cad, first_of_cad, histograms, navaids, subspace, uniform
from epsjoin.contracts.sources import load_source

TINY = Set("tiny", "a square", partial(uniform, 400, 2), 0.05, rounds=2)
SPHERE = Set("sphere", "navigation aids", lambda: navaids()[:400], 300.0, "haversine", rounds=1)
PAGE = f"# Benchmarks\n\nby hand\n\n{BEGIN}\nold\n{END}\n\nbelow\n"


@pytest.fixture(autouse=True, scope="module")
def small_heap():
    """Every measurement collects garbage first: not that of all the tests before."""
    gc.freeze()
    yield
    gc.unfreeze()


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


def test_race__contenders_take_turns_in_beginning(tmp_path):
    np.save(tmp_path / "points.npy", TINY.make())
    calls = []
    both = {name: lambda *_, name=name: calls.append(name) for name in ("a", "b")}
    rounds = race(both, tmp_path / "points.npy", 0.1, 3)
    warm, *timed = (calls[i : i + 2] for i in range(0, len(calls), 2))
    assert warm == ["a", "b"]
    assert timed == [["a", "b"], ["b", "a"], ["a", "b"]]
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
    answer = questions.threads(here, [TINY])
    assert answer.is_right
    row = cells(answer.lines, "tiny, 400 × 2")
    assert row[1] == f"{pairs_of(TINY):,}"
    one, two = (float(seconds) for seconds in row[2].split(" / ")[1:])
    low, high = re.findall(r"[0-9.]+", row[4])[1:]
    assert one > 0.0
    assert two > 0.0
    assert 0.0 < float(low) <= float(high)


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


@pytest.mark.parametrize("chosen", [TINY, SPHERE])
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


def test_put__needs_the_markers(tmp_path):
    (tmp_path / "page.md").write_text(f"{BEGIN} no end")
    with pytest.raises(ValueError, match="page.md has no"):
        put(tmp_path / "page.md", "text")


@pytest.mark.parametrize(
    ("page", "markers"),
    [
        (command.DOCS / command.PAGE, (BEGIN, END)),
        (plans.DOCS / plans.PAGE, (BEGIN, END)),
        (parts.DOCS / parts.PAGE, (parts.BEGIN, parts.END)),
        (spark_join.PAGE, (BEGIN, END)),
        (scaling.PAGE, (BEGIN, END)),
        (increments.PAGE, (BEGIN, END)),
    ],
    ids=["bench", "bench-plans", "bench-parts", "bench-spark", "bench-scaling", "bench-increments"],
)
def test_pages__of_the_docs_have_their_markers(page: Path, markers: tuple[str, str]):
    text = page.read_text(encoding="utf-8")
    assert [text.count(marker) for marker in markers] == [1, 1]


def test_table_and_spread__are_written_for_people():
    assert table(["a", "b"], [["1", "2"]]) == ["| a | b |", "| --- | --- |", "| 1 | 2 |"]
    assert spread([3.0]) == "3.0"
    assert spread([1.0, 40.0, 3.0]) == "3.0 (1.00 – 40)"


def test_growth_bytes__sees_memory_that_was_given_back():
    size = 64 << 20
    grown = growth_bytes(lambda: np.ones(size, np.uint8).sum())
    assert 0.95 * size < grown < 2 * size  # the kernel counts pages a little late
    assert growth_bytes(lambda: None) < size // 4  # the peak is forgotten


def test_in_own_process__is_fresh_and_has_one_blas_thread():
    assert in_own_process(os.getpid) != os.getpid()
    assert in_own_process(os.getenv, "OPENBLAS_NUM_THREADS") == "1"


def test_sets__are_the_same_every_time_and_share_no_numbers():
    for make in (
        partial(cad, 300),
        partial(histograms, 300),
        partial(subspace, 300, 5),
        partial(uniform, 300, 3),
    ):
        one = make()
        assert np.array_equal(one, make())
        assert np.isfinite(one).all()
    assert np.array_equal(uniform(100, 2, 40), uniform(120, 2)[20:])
    assert np.array_equal(first_of_cad(50, 300), cad(300)[:50])


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("landmarks", (121_960, 2)),
        ("pendigits", (6_870, 16)),
        ("landsat", (6_435, 36)),
        ("digits", (1_797, 64)),
        ("cities", (144_563, 2)),
    ],
)
def test_sets__real_ones_are_read_whole(name, shape):
    assert BY_NAME[name].make().shape == shape


def test_sets__have_the_pairs_that_are_known():
    """Computed with scikit-learn and SciPy, see tests/data/expected.json."""
    for name, pairs in (("pendigits", 59_888), ("landsat", 131_497), ("digits", 6_122)):
        chosen = BY_NAME[name]
        assert epsjoin_pairs(chosen.make(), chosen.eps) == pairs


SPIN = """
import signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as Spark's parent of the workers
import os
if os.fork() == 0:
    end = time.process_time() + 1.0
    while time.process_time() < end: pass
    os._exit(0)
try: os.wait()
except ChildProcessError: pass
"""
"""A process whose child uses a second of CPU and ends unseen by its parent."""


def kinds_of_groups() -> list[str]:
    """The versions of control groups that this machine lets be made."""
    kinds = []
    for parent in own_groups():
        if group := measure._new_group(parent):
            kinds.append("1" if (group / "cpuacct.usage").exists() else "2")
            group.rmdir()
    return kinds


@pytest.mark.parametrize("version", ["1", "2"])
def test_cpu_meter__counts_what_is_in_it_and_no_neighbour(version: str, monkeypatch) -> None:
    if version not in (kinds := kinds_of_groups()):
        pytest.skip(f"no control group of version {version} can be made here")
    (parent,) = [parent for kind, parent in zip(kinds, own_groups(), strict=True) if kind == version]
    monkeypatch.setattr(measure, "own_groups", lambda: [parent])
    spin = [sys.executable, "-c", SPIN]
    with cpu_meter() as meter:
        subprocess.run(spin, check=True)  # a neighbour
        assert meter.seconds() < 0.5
        subprocess.run(meter.command(spin), check=True)
        assert 1.0 <= meter.seconds() < 1.9
    assert not meter.group.exists()
    assert "alone" in meter.counts


def test_cpu_meter__takes_in_a_running_process_and_lets_it_go_at_the_end() -> None:
    if not kinds_of_groups():
        pytest.skip("no control group can be made here")
    running = subprocess.Popen(["sleep", "60"])
    try:
        before = Path(f"/proc/{running.pid}/cgroup").read_text()
        with cpu_meter() as meter:
            meter.add(running.pid)
            assert meter.group.name in Path(f"/proc/{running.pid}/cgroup").read_text()
        assert Path(f"/proc/{running.pid}/cgroup").read_text() == before
    finally:
        running.kill()
        running.wait()


def test_cpu_meter__lets_go_of_processes_that_come_and_go() -> None:
    if not kinds_of_groups():
        pytest.skip("no control group can be made here")
    restless = "for i in 1 2 3 4; do (while :; do /bin/true; done) & done; wait"
    for _ in range(3):
        try:
            with cpu_meter() as meter:
                running = subprocess.Popen(meter.command(["sh", "-c", restless]), start_new_session=True)
                time.sleep(0.1)
            assert not meter.group.exists()
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


@pytest.mark.parametrize("parents", [[], [Path("/nowhere")]], ids=["no group", "not allowed"])
def test_cpu_meter__without_a_control_group_counts_the_machine_and_says_so(parents, monkeypatch) -> None:
    monkeypatch.setattr(measure, "own_groups", lambda: parents)
    with cpu_meter() as meter:
        spin = [sys.executable, "-c", SPIN]
        assert meter.command(spin) == spin
        subprocess.run(spin, check=True)
        assert meter.seconds() >= 0.9, "the machine's clock has ticks"
    assert "the whole machine" in meter.counts


def test_cpu_meter__leaves_no_group_that_nobody_may_enter(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(measure, "own_groups", lambda: [tmp_path])
    monkeypatch.setattr(measure.CpuMeter, "command", lambda *_: ["false"])
    with cpu_meter() as meter:
        assert meter.group is None
    assert not list(tmp_path.iterdir())


def test_own_groups__version_1_comes_first_at_this_process_own_place(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("4:memory:/far\n2:cpu,cpuacct:/here\n0::/new\n")
    (tmp_path / "mounts").write_text(
        "cgroup2 /c/unified cgroup2 rw 0 0\n"
        "cgroup /c/memory cgroup rw,memory 0 0\n"
        "cgroup /c/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
    )
    assert list(own_groups(tmp_path)) == [Path("/c/cpu,cpuacct/here"), Path("/c/unified/new")]


@pytest.mark.parametrize(("fraction", "is_local"), increments.CHANGES.values(), ids=increments.CHANGES)
def test_increments__change_as_many_rows_as_they_say(fraction: float, is_local: bool) -> None:
    points, ids = np.random.default_rng(0).random((4000, 3)), np.arange(4000)
    now, ids_now = increments.change(points, ids, fraction, is_local=is_local)
    assert len(now) == len(ids_now) == len({*ids_now.tolist()}) == 4000
    kept = ids_now[ids_now < 4000]
    is_moved = (now[ids_now < 4000] != points[kept]).any(axis=1)
    n = round(fraction * 4000)
    assert (4000 - len(kept), int(is_moved.sum())) == (n // 4, n // 2)
    was = points[np.setdiff1d(ids, kept[~is_moved]), 0]
    assert not n or (np.ptp(was) < 0.1) == is_local


def test_increments__say_whether_the_join_costs_as_little_as_wanted(capsys) -> None:
    steps = {"ingest": [3.0] * 3, "replicate": [1.0] * 3, "merge_join": [9.0] * 3}
    cheap = {"ingest": [3.0] * 3, "replicate": [0.5] * 3, "merge_join": [1.0] * 3}
    cpu = {increments.WHOLE: steps} | dict.fromkeys(increments.CHANGES, cheap)
    found = (1_000_000, "it", cpu, dict.fromkeys(cpu, 7.0))
    for dear, verdict in (
        ([1.0, 9.0, 0.5], "0.15 (0.10 – 0.95) of whole, at most 0.2 is wanted: as wanted"),
        ([1.0, 9.0, 4.0], "**more than"),
    ):
        cheap["merge_join"] = dear
        assert increments.main(["--only", "uni8"], lambda *_: found) == 0
        assert verdict in capsys.readouterr().out


def test_increments__of_clusters_say_how_many_pairs_were_looked_at(capsys, monkeypatch) -> None:
    """In this process, and at a small size: where nothing has changed, no pair is looked at."""
    monkeypatch.setattr(increments, "CLUSTERED", "cad16")
    found = increments.main(["--only", "clusters", "--rows", "3000", "--rounds", "1"], lambda f, *a: f(*a))
    out = capsys.readouterr().out
    assert found == 0
    assert "clusters of cad16, arrays, 3,000 rows" in out
    cells = {line.split(" | ")[0][2:]: line.split(" | ")[1:] for line in out.splitlines() if " | " in line}
    assert cells["nothing"][2:4] == ["0", "0"]
    assert set(increments.CHANGES) < set(cells)


def test_around__counts_all_processes_of_a_step_and_the_largest(tmp_path: Path) -> None:
    program = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"  # left by its parent, as the JVM leaves the parent of the workers
        "    held = bytearray(300 << 20)\n"
        "    end = time.process_time() + 0.5\n"
        "    while time.process_time() < end: pass\n"
        "    open('done', 'w').close()\n"
        "    os._exit(0)\n"
        "os.close(1); os.close(2)\n"
    )
    cost = in_own_process(around.cost_of, [sys.executable, "-c", program], str(tmp_path))
    assert (tmp_path / "done").exists()
    assert cost.cpu >= 0.5
    assert cost.peak > 300 << 20


def test_around__counts_processes_that_end_unseen_by_their_parent(tmp_path: Path) -> None:
    program = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"  # as Spark's parent of the workers
        "if os.fork() == 0:\n"
        "    held = bytearray(300 << 20)\n"
        "    end = time.process_time() + 1.5\n"
        "    while time.process_time() < end: pass\n"
        "    os._exit(0)\n"
        "time.sleep(4)\n"
    )
    cost = in_own_process(around.cost_of, [sys.executable, "-c", program], str(tmp_path))
    assert cost.cpu >= 1.5
    assert cost.peak > 300 << 20


def test_around__a_step_that_fails_ends_the_bench_with_what_it_printed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the reason"):
        in_own_process(around.cost_of, ["sh", "-c", "echo the reason; exit 3"], str(tmp_path))


def make_jobs(project: Path, *scripts: str) -> None:
    """The scripts that a checkout has, empty."""
    (project / "jobs").mkdir(parents=True)
    for script in scripts:
        (project / "jobs" / f"{script}.py").touch()


def test_around__measures_all_steps_in_turns_and_compares(tmp_path: Path, capsys) -> None:
    """The other checkout is older, and has a job less."""
    make_jobs(tmp_path / "other", *({script for script, *_ in around.STEPS.values()} - {"compare"}))
    asked: list[list[str]] = []
    ours_cpu = {"nothing": 1.5, "no_session": 0.5}

    def call(function, command: list[str], folder: str) -> around.Cost:
        assert function is around.cost_of
        asked.append(command)
        is_ours = command[0].startswith(str(around.PROJECT))
        cpu = ours_cpu.get(Path(command[3]).stem, 2.0) if is_ours else 4.0
        return around.Cost(1.0, cpu, 7_000_000, "what was counted")

    assert around.main(["--only", "navaids", "--against", str(tmp_path / "other")], call) == 0
    assert len(asked) == 2 * 11 + 1, "two that do nothing, and nine steps; ours has one more"
    assert [command[0] for command in asked[:2]] == [
        f"{place}/bin/spark-submit" for place in (around.PROJECT, tmp_path / "other")
    ]
    ours = [command for command in asked if command[0].startswith(str(around.PROJECT))]
    assert [Path(command[3]).stem for command in ours] == [
        *("nothing", "no_session", "ingest", "quality", "fit_epsilon", "replicate", "merge_join", "cluster"),
        *("outliers", "compare", "quality", "report"),
    ]
    printed = capsys.readouterr().out
    assert "The CPU is that of what was counted." in printed
    assert "| ingest | 1.00 | 2.00 | 181.5 | 7 | 1.00 | 0.50 |" in printed, "2 s for 11,020 rows"
    assert "| compare | 1.00 | 2.00 | 181.5 | 7 |  |  |" in printed
    assert "| all steps | 10.0 | 20.0 | 1814.9 | 7 | 1.11 | 0.56 |" in printed
    assert (
        "Beyond their starts, in CPU s: `replicate` and `merge_join` 1.0; "
        "both gates 3.0 (3.00 of the join, 272.2 µs a row); `cluster` 0.5 (0.50 of the join, 45.4 µs a row); "
        "`outliers` 1.5 (1.50 of the join, 136.1 µs a row); "
        "`cluster` and `outliers` 2.0 (2.00 of the join, 181.5 µs a row); "
        "`report` 1.5 (1.50 of the join, 136.1 µs a row)."
    ) in printed


def test_around__writes_the_part_of_a_set_when_it_is_measured(monkeypatch, tmp_path: Path) -> None:
    page = tmp_path / "around.md"
    parts = "".join("{}\nold\n{}\n".format(*around.markers(name)) for name in ("navaids", "landmarks"))
    page.write_text(f"by hand\n{parts}")
    monkeypatch.setattr(around, "PAGE", page)

    def call(function, command: list[str], folder: str) -> around.Cost:
        if "landmarks" in command:
            raise RuntimeError("the disk is full")
        return around.Cost(1.0, 2.0 if "--lake" in command else 1.0, 7_000_000, "what was counted")

    with pytest.raises(RuntimeError, match="full"):
        around.main(["--write", "--only", "navaids", "--only", "landmarks"], call)
    navaids, landmarks = page.read_text().split("<!-- navaids:end -->")
    assert navaids.startswith("by hand\n<!-- navaids:begin -->\n## navaids, 11,020 rows\n")
    assert "old" not in navaids
    assert landmarks.endswith("<!-- landmarks:begin -->\nold\n<!-- landmarks:end -->\n")


@pytest.fixture
def little_cad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_NAME, "cad16L", Set("tiny", "a square", partial(uniform, 10, 3), 0.5))


@pytest.mark.usefixtures("little_cad")
@pytest.mark.parametrize("name", ["cad16L x 4", "cad16L x 16"])
def test_around__writes_rows_that_the_contract_takes(name: str, tmp_path: Path) -> None:
    of = around.SETS[name](tmp_path)
    assert of.contract == tmp_path / "tiny.odcs.yaml"
    source = load_source(tmp_path, of.dataset)
    read = {"csv": pyarrow.csv.read_csv, "parquet": pyarrow.parquet.read_table}[source.format]
    rows = read(source.path).to_pandas()
    assert list(rows) == [column.name for column in source.columns] == ["id", "x0", "x1", "x2"]
    assert rows["id"].tolist() == list(range(of.n_rows))
    x = rows[["x0", "x1", "x2"]].to_numpy()
    np.testing.assert_allclose(x[10:] - x[:-10], np.tile([2.0, 0.0, 0.0], (len(x) - 10, 1)), atol=1e-12)
    assert of.params == '{"eps": 0.5}'


@pytest.mark.usefixtures("little_cad")
def test_around__a_checkout_gets_the_table_contracts_of_its_own(tmp_path: Path, capsys) -> None:
    other = tmp_path / "other"
    tables = Path("data_contracts", "tables")
    shutil.copytree(around.PROJECT / tables, other / tables)
    make_jobs(other, *(script for script, *_ in around.STEPS.values()))
    (other / tables / "pairs.odcs.yaml").write_text("of another version")
    seen: dict[str, set[str]] = {"ingest": set(), "outliers": set()}

    def call(function, command: list[str], folder: str) -> around.Cost:
        if (script := Path(command[3]).stem) in seen:
            contracts = Path(command[command.index("--contracts") + 1])
            project = Path(command[0]).parents[1]
            own = {file.name: file.read_text() for file in (project / tables).iterdir()}
            assert {file.name: file.read_text() for file in (contracts / "tables").iterdir()} == own
            seen[script].add(load_source(contracts, "tiny").path)
        return around.Cost(1.0, 2.0 if "--lake" in command else 1.0, 3, "what was counted")

    assert around.main(["--only", "cad16L x 16", "--against", str(other)], call) == 0
    (ingested,), (ranked,) = seen.values()
    assert ingested == ranked, "the rows are shared"
    assert "| all steps | 6.00 | 12.0 |" in capsys.readouterr().out, "six steps: no gate, no report"


@pytest.mark.parametrize("name", ingest.KINDS)
def test_ingest_bench__readers_take_all_rows_and_the_job_is_counted_beyond_its_start(
    name: str, tmp_path: Path, capsys
) -> None:
    submitted: list[list[str]] = []

    def call(function, *arguments):
        if function is not around.cost_of:
            return function(*arguments) if function is not ingest.peak_of else 3_000_000
        submitted.append(arguments[0])
        is_large = "large" in arguments[0][-1]
        return around.Cost(2.0, 7.0 if is_large else 5.0, 4_000_000, "what was counted")

    assert ingest.main(["--only", name, "--rows", "2000", "--rounds", "2"], call) == 0
    printed = capsys.readouterr().out
    assert len(submitted) == 4
    assert "**2000.0 µs of CPU a row**. The CPU is that of what was counted." in printed, "2 s for 1,000 rows"
    assert re.findall(r"^\| (\w+) \| [\d.]+ \| 3 \|", printed, re.MULTILINE) == list(ingest.READERS)


def test_ingest_bench__a_reader_that_loses_a_row_ends_it() -> None:
    run = measure.Run(1.0, 1.0, 7)
    rounds = [{name: run._replace(answer=6 if name == "pandas" else 7) for name in ingest.READERS}]
    with pytest.raises(ValueError, match="pandas took 6 rows of 7"):
        ingest.compare(7, rounds, dict.fromkeys(ingest.READERS, 0))
