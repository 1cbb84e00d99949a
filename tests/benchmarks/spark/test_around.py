"""The bench of every step of a run: what is counted, what is compared, what is written."""

from __future__ import annotations

import os
import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from benchmarks.measure import in_own_process
from benchmarks.sets import BY_NAME, Set, uniform
from benchmarks.spark import around
from epsjoin.contracts.load_source import load_source
from epsjoin.source.records import open_records


@pytest.fixture(autouse=True)
def cache_of_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """One into which nobody else compiles meanwhile."""
    folder = tmp_path / "numba"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    return folder


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
        wall = 2.0 if is_ours and Path(command[3]).stem == "outliers" else 1.0
        return around.Cost(wall, cpu, 7_000_000, "what was counted")

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
    assert "| all steps | 11.0 | 20.0 | 1814.9 | 7 | 1.22 | 0.56 |" in printed
    assert (
        "Beyond their starts, in CPU s: `replicate` and `merge_join` 1.0; "
        "both gates 3.0 (3.00 of the join, 272.2 µs a row); "
        "`cluster` 1.5 (1.50 of the join, 136.1 µs a row); "
        "`outliers` 1.5 (1.50 of the join, 136.1 µs a row); "
        "`cluster` and `outliers` 3.0 (3.00 of the join, 272.2 µs a row); "
        "`report` 1.5 (1.50 of the join, 136.1 µs a row). "
        "Starts included, of the join's wall time and of its CPU: "
        "`cluster` 0.50 and 0.50, `outliers` 1.00 and 0.50."
    ) in printed


def test_around__measures_a_round_in_which_a_kernel_was_compiled_once_more(cache_of_kernels: Path) -> None:
    kernel = cache_of_kernels / "neighbours.nbi"
    n_outliers = 0

    def call(function, command: list[str], folder: str) -> around.Cost:
        nonlocal n_outliers
        cpu = 2.0
        if Path(command[3]).stem == "outliers":
            n_outliers += 1
            cpu = [0.5, 0.75, 3.0, 4.0][n_outliers - 1]  # the least are of rounds that do not count
            if n_outliers <= 2:  # a new file, then the same one written anew, as of a kernel that has changed
                kernel.parent.mkdir(exist_ok=True)
                kernel.write_text("compiled")
                os.utime(kernel, ns=(n_outliers, n_outliers))
        return around.Cost(1.0, cpu, 7_000_000, "what was counted")

    _, (found,) = around.measure(around.navaids, [around.PROJECT], 2, call)
    assert n_outliers == 4
    assert found["outliers"].cpu == 3.0


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


def test_around__has_a_part_of_the_page_for_each_set() -> None:
    page = around.PAGE.read_text(encoding="utf-8")
    assert [name for name in around.SETS if any(page.count(each) != 1 for each in around.markers(name))] == []


@pytest.fixture
def little_cad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_NAME, "cad16L", Set("tiny", "a square", partial(uniform, 10, 3), 0.5))


@pytest.mark.usefixtures("little_cad")
@pytest.mark.parametrize(
    ("name", "eps"), [("cad16L x 4", 0.5), ("cad16L x 16", 0.5), ("cad16L, wide eps", around.WIDE_EPS)]
)
def test_around__writes_rows_that_the_contract_takes(name: str, eps: float, tmp_path: Path) -> None:
    of = around.SETS[name](tmp_path)
    assert of.contract == tmp_path / "tiny.odcs.yaml"
    source = load_source(tmp_path, of.dataset)
    read = {"csv": pyarrow.csv.read_csv, "parquet": pyarrow.parquet.read_table}[source.format]
    rows = read(source.path).to_pandas()
    assert list(rows) == [column.name for column in source.columns] == ["id", "x0", "x1", "x2"]
    assert rows["id"].tolist() == list(range(of.n_rows))
    x = rows[["x0", "x1", "x2"]].to_numpy()
    np.testing.assert_allclose(x[10:] - x[:-10], np.tile([2.0, 0.0, 0.0], (len(x) - 10, 1)), atol=1e-12)
    assert of.params == f'{{"eps": {eps}}}'


def test_around__writes_vectors_that_the_contract_takes(monkeypatch, tmp_path: Path) -> None:
    for name, value in (("N_VECTORS", 40), ("VECTOR_SIZE", 6), ("N_TOPICS", 3)):
        monkeypatch.setattr(around, name, value)
    of = around.SETS["embeddings"](tmp_path)
    source = load_source(tmp_path, of.dataset)
    assert (source.metric, len(source.coordinates), of.n_rows) == ("cosine", 6, 40)
    with Path(source.path).open("rb") as stream:
        records = list(open_records(stream, source.path, source))
    assert [record.reason for record in records] == [None] * 40


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
