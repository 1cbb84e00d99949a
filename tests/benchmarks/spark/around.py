"""``make bench-around``: what a run costs step by step, by spark-submit as a person starts it.

Its page is docs/benchmarks/around.md; each set has a marked part of it, written when the set has been
measured. Each step is measured with all of its processes: the launcher, the driver's JVM and Python, the
workers. With ``--against FOLDER`` another checkout, set up, takes turns with this one, step by step, on a
lake of its own.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tiny import coordinate, key, list_of_coordinates, write_contract

from ..free_memory import take_back_free
from ..measure import cpu_meter, in_own_process
from ..page import count, machine, megabytes, put, seconds, table
from .scaling import processes_below

PROJECT = Path(__file__).resolve().parents[3]
PAGE = PROJECT / "docs" / "benchmarks" / "around.md"
MASTER = "local[2]"
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: whoever is left by its parent becomes a child of this process."""
_TOUCHED, _TOUCHED_OF_ROW = 2 << 30, 500
"""Bytes that are taken back before a step, and for each row: about what its processes touch."""
_BETWEEN_LOOKS = 0.2
"""Seconds between two looks at the memory of the processes."""

STEPS = {
    "ingest": ["ingest"],
    "quality input": ["quality", "--stage", "input"],
    "fit_epsilon": ["fit_epsilon"],
    "replicate": ["replicate"],
    "merge_join": ["merge_join"],
    "cluster": ["cluster"],
    "outliers": ["outliers"],
    "compare": ["compare"],
    "quality results": ["quality", "--stage", "results"],
    "report": ["report"],
}
"""The ten submits of a run: the script of each in ``jobs/``, and its own arguments."""

TABLES_ALONE = tuple(step for step in STEPS if "quality" not in step and step not in ("compare", "report"))
"""The steps of the largest set: from its rows to their outliers."""

NOTHING = {
    "nothing": "from epsjoin.spark.job import session\n\nsession.get_session('nothing').range(1).count()\n",
    "no session": "import epsjoin.spark.job.session\n",
}
"""Jobs that do nothing: one counts a row, the other does not even start a session."""

WITHOUT_SESSION = ("quality input", "fit_epsilon", "cluster", "outliers", "quality results", "report")
"""The steps that start a session only for large slices."""


class Cost(NamedTuple):
    """Seconds of wall and CPU of a step, the peak bytes of its largest process, whose CPU was counted."""

    wall: float
    cpu: float
    peak: int
    counts: str


class Input(NamedTuple):
    """A data set: its name, the date of its run, its contract (``None``: the project has one), its steps."""

    n_rows: int
    dataset: str
    run: str
    contract: Path | None = None
    params: str = "{}"
    steps: Sequence[str] = tuple(STEPS)


def navaids(folder: Path) -> Input:
    return Input(11_020, "navaids", "2023-06-01")


def landmarks(folder: Path) -> Input:
    return Input(121_960, "landmarks", "2000-01-01")


WIDE_EPS = 0.0131
"""Nine of ten points of cad16L have 4 others within it: ``np.quantile(k_distance(points, 4), 0.9)``."""


def cad(
    copies: int,
    folder: Path,
    format_: str = "csv",
    steps: Sequence[str] = tuple(STEPS),
    eps: float | None = None,
) -> Input:
    """cad16L with ids: as one CSV file, or as a Parquet file for each copy; ``None``: the eps of the set.

    Copies lie beside one another, so that none has neighbours in another.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pcsv
    import pyarrow.parquet as pq

    from ..sets import BY_NAME

    chosen = BY_NAME["cad16L"]
    points = chosen.make()
    n, d = points.shape
    names = [f"x{j}" for j in range(d)]

    def rows_of(copy: int) -> pa.Table:
        columns = [points[:, j] + (2.0 * copy if j == 0 else 0.0) for j in range(d)]
        return pa.table([np.arange(copy * n, (copy + 1) * n), *columns], ["id", *names])

    snapshot = folder / "snapshot"
    if format_ == "csv":
        with pcsv.CSVWriter(snapshot, rows_of(0).schema) as writer:
            for copy in range(copies):
                writer.write_table(rows_of(copy))
    else:
        snapshot.mkdir()
        for copy in range(copies):
            pq.write_table(rows_of(copy), snapshot / f"{copy:02}.parquet")
    contract = folder / "tiny.odcs.yaml"
    write_contract(contract, [key(), *map(coordinate, names)], str(snapshot), format_, {})
    return Input(copies * n, "tiny", "2023-06-01", contract, f'{{"eps": {eps or chosen.eps}}}', steps)


N_VECTORS, VECTOR_SIZE, N_TOPICS, APART = 50_000, 384, 500, 0.3


def embeddings(folder: Path) -> Input:
    """Vectors as lists of float32 in one column of Parquet, by the cosine; some in no topic."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(0)
    vectors = random.standard_normal((N_VECTORS, VECTOR_SIZE))
    in_topic = random.random(N_VECTORS) >= APART
    topics = random.standard_normal((N_TOPICS, VECTOR_SIZE))
    vectors[in_topic] = topics[random.integers(N_TOPICS, size=in_topic.sum())] + 0.4 * vectors[in_topic]
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).ravel()), VECTOR_SIZE)
    snapshot, contract = folder / "snapshot.parquet", folder / "tiny.odcs.yaml"
    pq.write_table(pa.table({"id": np.arange(N_VECTORS), "vector": lists}), snapshot)
    columns = [key(), list_of_coordinates("vector", VECTOR_SIZE)]
    write_contract(contract, columns, str(snapshot), "parquet", {"metric": "cosine"})
    return Input(N_VECTORS, "tiny", "2023-06-01", contract, '{"eps": 0.14}')


SETS: Mapping[str, Callable[[Path], Input]] = {
    "navaids": navaids,
    "landmarks": landmarks,
    "embeddings": embeddings,
    "cad16L": partial(cad, 1),
    "cad16L, wide eps": partial(cad, 1, eps=WIDE_EPS),
    "cad16L x 4": partial(cad, 4),
    "cad16L x 16": partial(cad, 16, format_="parquet", steps=TABLES_ALONE),
}
"""The sets by their names; a generated one is made in the folder."""


def cost_of(command: Sequence[str], folder: str) -> Cost:
    """Run a command to the end of all of its processes; to be called in a process of its own (Linux).

    Raises
    ------
    RuntimeError
        The command failed; the text is what it printed.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1)
    peak = 0
    with cpu_meter() as meter, tempfile.TemporaryFile("w+") as printed:
        began = time.perf_counter()
        started = subprocess.Popen(
            meter.command(command), cwd=folder, stdout=printed, stderr=subprocess.STDOUT
        )
        while started.poll() is None:
            peak = max([peak, *(process.peak for process in processes_below(started.pid))])
            time.sleep(_BETWEEN_LOOKS)
        wall = time.perf_counter() - began
        with suppress(ChildProcessError):
            while True:
                os.wait()  # for whoever was left by its parent
        cpu, counts = meter.seconds(), meter.counts
        if started.returncode:
            printed.seek(0)
            raise RuntimeError(f"{' '.join(command)}\n{printed.read()}")
    left = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return Cost(wall, cpu, max(peak, left), counts)


def commands(project: Path, lake: Path, of: Input) -> dict[str, list[str]]:
    """The command of every step, and before them those of jobs that do nothing."""
    lake.mkdir(parents=True)
    submit = [str(project / "bin" / "spark-submit"), "--master", MASTER]
    contracts = project / "data_contracts"
    if of.contract:  # the source's is shared; of tables each checkout promises its own
        shutil.copytree(contracts / "tables", lake / "data_contracts" / "tables")
        contracts = lake / "data_contracts"
        shutil.copy(of.contract, contracts)
    run = ["--lake", (lake / "lake").as_uri(), "--dataset", of.dataset, "--run", of.run]
    run += ["--contracts", str(contracts), "--params", of.params]
    steps = {
        name: [*submit, str(project / "jobs" / f"{script}.py"), *own, *run]
        for name, (script, *own) in STEPS.items()
        if name in of.steps and (project / "jobs" / f"{script}.py").is_file()  # an older checkout has fewer
    }
    starts = {}
    for name, text in NOTHING.items():
        script = lake / f"{name.replace(' ', '_')}.py"
        script.write_text(text, encoding="utf-8")
        starts[name] = [*submit, str(script)]
    return starts | steps


def measure(
    make: Callable[[Path], Input], projects: Sequence[Path], rounds: int, call: Callable[..., Cost]
) -> tuple[int, list[dict[str, Cost]]]:
    """The rows of a set, and of each project the cost of each step: that of the round with the least CPU.

    A round in which a job compiled a kernel, as the first after a change of one does, is measured once more.
    """
    found: list[dict[str, Cost]] = [{} for _ in projects]
    with tempfile.TemporaryDirectory(prefix="bench-around-") as scratch:
        folder = Path(scratch)
        of = make(folder)
        n_measured = n_begun = 0
        while n_measured < rounds:
            n_begun += 1
            before = compiled(projects)
            lakes = [folder / f"{n_begun}-{i}" for i in range(len(projects))]
            todo = [commands(project, lake, of) for project, lake in zip(projects, lakes, strict=True)]
            costs: list[dict[str, Cost]] = [{} for _ in projects]
            for step in todo[0]:
                for i in (i for i, steps in enumerate(todo) if step in steps):
                    take_back_free(_TOUCHED + _TOUCHED_OF_ROW * of.n_rows)
                    costs[i][step] = cost = call(cost_of, todo[i][step], str(lakes[i]))
                    print(f"  {projects[i].name} {step}: {cost.wall:.1f} s, {cost.cpu:.1f} CPU s", flush=True)
            for lake in lakes:
                shutil.rmtree(lake)
            if compiled(projects) != before:
                print("  Kernels were compiled in this round, so it is measured once more.", flush=True)
                continue
            n_measured += 1
            for least, once in zip(found, costs, strict=True):
                for step, cost in once.items():
                    least[step] = min(least.get(step, cost), cost, key=lambda each: each.cpu)
    return of.n_rows, found


def compiled(projects: Sequence[Path]) -> dict[Path, int]:
    """The files of the kernels that jobs of these checkouts have compiled, and when each was written."""
    folders = {Path(os.environ.get("NUMBA_CACHE_DIR", project / ".cache" / "numba")) for project in projects}
    return {file: file.stat().st_mtime_ns for folder in folders for file in folder.rglob("*.nb[ci]")}


def lines_of(n_rows: int, found: Sequence[Mapping[str, Cost]]) -> list[str]:
    """Whose CPU it is, and a set's table: this project's cost of each step, its ratios to the other's."""
    head = ["", "wall s", "CPU s", "µs of CPU a row", "largest process, MB"]
    ours, *others = found
    rows = []
    for step, cost in (*ours.items(), ("all steps", total(ours))):
        row = [step, seconds(cost.wall), seconds(cost.cpu)]
        row += ["" if step in NOTHING else seconds(1e6 * cost.cpu / n_rows), megabytes(cost.peak)]
        for other in others:
            theirs = total(other) if step == "all steps" else other.get(step)
            row += [f"{cost.wall / theirs.wall:.2f}", f"{cost.cpu / theirs.cpu:.2f}"] if theirs else ["", ""]
        rows.append(row)
    counted = f"The CPU is that of {total(ours).counts}."
    compared = ["wall, ratio", "CPU, ratio"] * len(others)
    return [counted, "", *table(head + compared, rows), "", shares(n_rows, ours)]


def shares(n_rows: int, found: Mapping[str, Cost]) -> str:
    """What the steps around the join take, beyond their starts and as a whole, as shares of the join's.

    A step that need not start a session is charged with what it takes beyond a start without one, so that a
    session which it starts for large slices counts as its own.
    """
    beyond = {
        step: cost.cpu - found["no session" if step in WITHOUT_SESSION else "nothing"].cpu
        for step, cost in found.items()
    }
    join = beyond["replicate"] + beyond["merge_join"]
    around = {
        "both gates": [step for step in beyond if "quality" in step],
        "`cluster`": ["cluster"],
        "`outliers`": ["outliers"],
        "`cluster` and `outliers`": ["cluster", "outliers"],
        "`report`": ["report"],
    }
    told = []
    for name, steps in around.items():
        if steps and all(step in beyond for step in steps):
            cpu = sum(beyond[step] for step in steps)
            told.append(f"{name} {cpu:.1f} ({cpu / join:.2f} of the join, {1e6 * cpu / n_rows:.1f} µs a row)")
    joins = total({step: found[step] for step in ("replicate", "merge_join")})
    whole = [
        f"`{step}` {found[step].wall / joins.wall:.2f} and {found[step].cpu / joins.cpu:.2f}"
        for step in ("cluster", "outliers")
    ]
    return (
        f"Beyond their starts, in CPU s: `replicate` and `merge_join` {join:.1f}; {'; '.join(told)}. "
        f"Starts included, of the join's wall time and of its CPU: {', '.join(whole)}."
    )


def total(found: Mapping[str, Cost]) -> Cost:
    """The sum of the steps, and the peak of the largest process of all."""
    costs = [cost for step, cost in found.items() if step not in NOTHING]
    walls, cpus, peaks, counts = zip(*costs, strict=True)
    return Cost(sum(walls), sum(cpus), max(peaks), " and ".join(sorted(set(counts))))


def main(arguments: Sequence[str], call: Callable[..., Cost] = in_own_process) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(SETS), action="append", help="print it; no page is written")
    parser.add_argument("--write", action="store_true", help="write the parts of these sets nevertheless")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--against",
        type=lambda text: Path(text).resolve(),
        action="append",
        default=[],
        help="another checkout, set up",
    )
    given = parser.parse_args(arguments)
    for name in given.only or SETS:
        n_rows, found = measure(SETS[name], [PROJECT, *given.against], given.rounds, call)
        lines = [f"## {name}, {count(n_rows)} rows", "", f"{machine()}; {MASTER}."]
        if given.against:
            lines[-1] += " Ratios: this project to the other checkout, in turns, step by step."
        lines += lines_of(n_rows, found)
        print("\n".join(lines), flush=True)
        if given.write or not given.only:
            put(PAGE, "\n".join(lines), markers(name))
    return 0


def markers(name: str) -> tuple[str, str]:
    """What stands before and behind the part of a set in the page."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
