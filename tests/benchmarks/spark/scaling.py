"""``make bench-scaling``: the ways that steps take when data fits no driver, and plans of more points.

Its page is docs/benchmarks/scaling.md. The set is cad16L; limits are lowered so that the steps take the ways
of large data.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..measure import cpu_meter, in_own_process
from ..page import count, machine, put, seconds, table
from .bench import REPOSITORY, RUN, Bench, Taken, mebibytes, rows_in, timed

PAGE = Path(__file__).resolve().parents[3] / "docs" / "benchmarks" / "scaling.md"
SET = "cad16L"
PARTS = 64
LAYOUTS = ((8, 64), (64, 256))
"""Tasks and parts."""
ROUNDS = {"max_on_driver": 0, "max_in_one_task": 100_000}
PLANS = ((10**8, 140, 20_000, 1024), (10**9, 650, 65_000, 1024), (10**9, 650, 65_000, 8192))
"""Points, parts asked for, rows of the sample, worker_memory_mb."""
MAX_BY_SPARK = 4
"""How many copies are clustered by Spark, too."""
JOBS = ("replicate", "merge_join", "cluster", "outliers", "cluster_by_spark")
COPIES = (1, 4)
"""How many copies of the set the jobs run on; 16 are 20.8 million points, and some 15 GB of disk."""


def ways(file: str, eps: float) -> dict[str, list[Taken]]:
    """Every way of every step, more than once; the first time compiles."""
    import numpy as np
    import pyarrow as pa

    from epsjoin.lake import slices, targets, transactions
    from epsjoin.lake.fingerprints import Fingerprints
    from epsjoin.lake.lake import Slice
    from epsjoin.local.metric import get_metric
    from epsjoin.spark.cluster import from_pairs
    from epsjoin.spark.cluster.cluster import stored_pairs
    from epsjoin.spark.join import merge_join, replicate
    from epsjoin.spark.neighbours.rank import rank_points
    from epsjoin.spark.neighbours.ranked import Scoring
    from epsjoin.spark.points.points import stored_points
    from epsjoin.spark.rows.rows import StoredRows
    from epsjoin.spark.rows.write import write_files
    from epsjoin.spark.tasks import tasks

    folder = Path(tempfile.mkdtemp(prefix="bench-scaling-"))
    try:
        bench = Bench(np.load(file), eps, 2, folder)
        job = replace(bench.job, params=replace(bench.job.params, n_parts=PARTS))
        found: dict[str, list[Taken]] = {}

        def take(name: str, work: Any) -> None:
            found.setdefault(name, []).append(timed(work))

        def replicas(max_files: int) -> dict[str, float]:
            counters = replicate.run(job, max_files)
            files = slices.files_of(job.lake, Slice("replicas", job.run))
            return {"rows": counters["rows"], "files": float(len(files))}

        for _ in range(3):
            take("replicate, a file of each task and part", lambda: replicas(10_000))
            take("replicate, a file of each part", lambda: replicas(0))
        merge_join.run(job)
        inputs = Fingerprints(job.lake, job.run)
        pairs = stored_pairs(job, inputs.slice("pairs"))
        ids = StoredRows.of(job, Slice("points", job.run), "id long")
        points = stored_points(job)

        def written(table: str, make: Callable[[ExitStack], Any]) -> dict[str, float]:
            with ExitStack() as done:
                where = inputs.slice(table)
                files, counters = write_files(targets.target_of(job.lake, where), make(done))
                transactions.commit(job.lake, {where: files})
            return dict(counters)

        def clusters(**limits: int) -> dict[str, float]:
            find = from_pairs.cluster_pairs
            return written(
                "clusters", lambda done: find(ids, ids.n, pairs, job.params.min_pts, done, **limits)
            )

        def outliers(max_on_driver: int) -> dict[str, float]:
            labels = StoredRows.of(job, inputs.slice("clusters"), from_pairs.CLUSTERS)
            _, sample = points.sample(20_000, 0)
            names = [f"x{j}" for j in range(points.reading.dimensions)]
            k = job.params.n_neighbours
            of = points, sample, labels, pairs, Scoring(eps, get_metric("euclidean"), k, names)
            return written("outliers", lambda done: rank_points(*of, done, max_on_driver))

        spark, run_tasks, lazy_tasks = job.spark, tasks.run_tasks, tasks.lazy_tasks
        for megabytes in (0, 2):

            def give(item: int, n_bytes: int = megabytes << 20) -> Iterator[pa.RecordBatch]:
                # random, so that no compression makes them fewer
                value = np.random.default_rng(item).bytes(n_bytes)
                yield pa.record_batch({"value": pa.array([value], pa.binary())})

            def by_list(give: Any = give) -> dict[str, float]:
                return {"batches": len(run_tasks(spark, range(8), give))}

            def by_query(give: Any = give) -> dict[str, float]:
                return {"rows": lazy_tasks(spark, range(8), give, "value binary").toArrow().num_rows}

            for _ in range(6):
                take(f"8 tasks that give {megabytes} MB each, of a list", by_list)
                take(f"8 tasks that give {megabytes} MB each, of a query", by_query)
        for _ in range(2):
            take("cluster, by tasks, put together by the driver", clusters)
            take("cluster, by Spark", lambda: clusters(max_on_driver=0))
            take("cluster, by Spark, no task holds all edges", lambda: clusters(**ROUNDS))
            take("outliers, by the driver", lambda: outliers(10**9))
            take("outliers, by Spark", lambda: outliers(0))
        bench.job.spark.stop()
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def layouts(n_rows: int, dimensions: int) -> list[list[str]]:
    """Replicas as tasks write and parts read them: a file of each task and part, or a row group in one."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    how: dict[str, Any] = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    rows = []
    for n_tasks, n_parts in LAYOUTS:
        n = n_rows // (n_tasks * n_parts)
        points = pa.array([bytes(8 * dimensions)] * n, pa.binary())
        share = pa.table({"id": np.arange(n), "mask": np.zeros(n, np.int64), "point": points})
        for name, has_groups in (("a file of each task and part", False), ("a row group of each part", True)):
            folder = Path(tempfile.mkdtemp(prefix="bench-layouts-"))
            try:
                began, files = time.perf_counter(), 0
                for task in range(n_tasks):
                    if has_groups:
                        with pq.ParquetWriter(folder / f"{task}", share.schema, **how) as writer:
                            for _ in range(n_parts):
                                writer.write_table(share)
                        files += 1
                        continue
                    for part in range(n_parts):
                        with pq.ParquetWriter(folder / f"{task}-{part}", share.schema, **how) as writer:
                            writer.write_table(share)
                        files += 1
                written = time.perf_counter() - began
                began = time.perf_counter()
                for part in range(n_parts):
                    for task in range(n_tasks):
                        file = pq.ParquetFile(folder / (f"{task}" if has_groups else f"{task}-{part}"))
                        file.read_row_group(part if has_groups else 0, use_threads=False)
                taken = time.perf_counter() - began
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            rows.append(
                [count(n_tasks), count(n_parts), name, count(files), seconds(written), seconds(taken)]
            )
            print(rows[-1], flush=True)
    return rows


def plans(points: Any, eps: float) -> list[list[str]]:
    """Plans of more points than there are, at equal neighbours per point: eps shrinks with the third root."""
    import numpy as np

    from epsjoin import Cuts, get_metric
    from epsjoin.errors import BudgetError
    from epsjoin.local.plan.planner import plan_join
    from epsjoin.local.plan.sizes import rows_that_fit

    rows = []
    for n, n_parts, m, memory in PLANS:
        chosen = np.random.default_rng(0).permutation(len(points))[:m]
        most = rows_that_fit(memory, points.shape[1])
        began = time.perf_counter()
        asked = [count(n), count(m), count(memory), count(n_parts)]
        try:
            plan = plan_join(
                points[chosen],
                chosen,
                n,
                eps * (len(points) / n) ** (1 / 3),
                get_metric("euclidean"),
                Cuts(n_parts=n_parts, sample_rows=m, most_part_rows=most),
            )
            part_rows = count(int(plan.expected_part_rows))
            found = [count(plan.n_parts), f"{plan.expected_rows / n:.3f}", part_rows]
        except BudgetError:
            found = ["refused: no part of that memory", "", ""]
        rows.append([*asked, *found, seconds(time.perf_counter() - began)])
        print(rows[-1], flush=True)
    return rows


class Submitted(NamedTuple):
    """A job by ``bin/spark-submit``: seconds of all its processes, the most memory of each kind of them."""

    wall: float
    cpu: float
    resident: dict[str, int]


BY_SPARK = """
from epsjoin.spark.cluster import cluster
from epsjoin.spark.job.job import run_job
cluster.fits_driver = lambda *_: False
cluster.MAX_ON_DRIVER = 0
raise SystemExit(run_job("cluster", cluster.run))
"""
"""The job ``cluster`` as it is for more points than the driver labels."""


def submit(job: str, folder: Path, params: dict[str, Any]) -> Submitted:
    """Run a job on two cores with the small profile, and look at its processes until it ends (Linux)."""
    given = ["--lake", str(folder / "lake"), "--dataset", "bench", "--run", RUN]
    given += ["--contracts", str(folder / "data_contracts"), "--params", json.dumps(params)]
    command = [str(REPOSITORY / "bin" / "spark-submit"), "--master", "local[2]"]
    began = time.perf_counter()
    program = REPOSITORY / "jobs" / f"{job}.py"
    if not program.exists():
        program = folder / f"{job}.py"
        program.write_text(BY_SPARK, encoding="utf-8")
    with cpu_meter() as meter, (folder / f"{job}.log").open("w") as log:
        started = subprocess.Popen(meter.command([*command, str(program), *given]), stdout=log, stderr=log)
        resident: dict[str, int] = {}
        while started.poll() is None:
            for process in processes_below(started.pid):
                resident[process.kind] = max(resident.get(process.kind, 0), process.peak)
            time.sleep(0.1)
        taken = Submitted(time.perf_counter() - began, meter.seconds(), resident)
    if started.returncode:
        raise RuntimeError(f"{job} ended with {started.returncode}: {(folder / f'{job}.log').read_text()}")
    return taken


class Process(NamedTuple):
    kind: str
    peak: int


def processes_below(root: int) -> Iterator[Process]:
    """The processes that a process has started, each with the most memory of its own."""
    seen: dict[int, tuple[int, str, int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text()
            peak = re.search(r"VmHWM:\s+(\d+) kB", (folder / "status").read_text())
        except OSError:  # it has just ended
            continue
        kind = "JVM" if "java" in command.split("\0")[0] else "worker"
        kind = "driver" if ".py\0--lake" in command and kind != "JVM" else kind
        seen[int(folder.name)] = (int(fields[1]), kind, int(peak[1]) << 10 if peak else 0)
    mine = {root}
    while more := {pid for pid, (parent, *_) in seen.items() if parent in mine} - mine:
        mine |= more
    for pid in mine & seen.keys():
        _, kind, peak_bytes = seen[pid]
        yield Process(kind, peak_bytes)


def at_size(copies: int, of: str = SET, jobs: Sequence[str] | None = None) -> list[list[str]]:
    """The jobs from points to outliers, or those named, on shifted copies of a set, in a JVM of 1 GB."""
    import numpy as np

    from ..sets import BY_NAME

    chosen = BY_NAME[of]
    points = chosen.make()
    rows = []
    folder = Path(tempfile.mkdtemp(prefix="bench-size-"))
    try:
        shift = 2.0 * np.eye(1, points.shape[1])  # the points lie in a cube of side 1
        eps = chosen.eps or 0.0
        n_pairs = in_own_process(_lay, str(folder), copies, points, shift, eps)
        joining = Submitted(0.0, 0.0, {})
        for job in jobs or JOBS[: len(JOBS) if copies <= MAX_BY_SPARK else -1]:
            found = submit(job, folder, {"eps": eps, "max_pairs": 10**9})
            is_join = job in ("replicate", "merge_join")
            if is_join:
                joining = Submitted(joining.wall + found.wall, joining.cpu + found.cpu, {})
            if job == "merge_join" and rows_in(folder / "lake" / "bench" / "pairs") != n_pairs:
                raise AssertionError(f"not the {n_pairs:,} pairs that epsjoin.self_join finds copy by copy")
            memory = [mebibytes(found.resident.get(kind, 0)) for kind in ("JVM", "driver", "worker")]
            ratios = [f"{found.wall / joining.wall:.2f}", f"{found.cpu / joining.cpu:.2f}"]
            shares = ["", ""] if is_join else ratios
            n = count(copies * len(points))
            rows.append(
                [
                    n,
                    job.replace("_by_", ", by ").replace("spark", "Spark"),
                    seconds(found.wall),
                    seconds(found.cpu),
                    *shares,
                    *memory,
                ]
            )
            print(rows[-1], flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return rows


def _lay(folder: str, copies: int, points: Any, shift: Any, eps: float) -> int:
    """Lay the points in a lake; the pairs of all copies, which are too far apart to have any in common."""
    import epsjoin

    from .bench import lake_with_points

    found = []

    def each() -> Iterator[Any]:
        for place in range(copies):
            share = points + place * shift
            found.append(len(epsjoin.self_join(share, eps).left))
            yield share

    lake_with_points(Path(folder), each(), eps)
    return sum(found)


def size_section(copies: Sequence[int], of: str = SET, jobs: Sequence[str] | None = None) -> list[str]:
    head = ["points", "job", "wall s", "CPU s", "of the join's wall", "of its CPU"]
    head += ["JVM MiB", "driver MiB", "worker MiB"]
    rows = [row for number in copies for row in at_size(number, of, jobs)]
    title = f"## Jobs on shifted copies of {of}, `conf/small.conf` (a JVM of 1 GB), local[2]"
    return ["", title, "", *table(head, rows)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-scaling", description=__doc__)
    parser.add_argument("--copies", type=int, help="only the jobs on so many copies; prints, writes no page")
    parser.add_argument("--of", default=SET, metavar="SET", help=f"copies of this set, not of {SET}")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, help="only these, in this order")
    arguments = parser.parse_args()
    if arguments.copies:
        print("\n".join(size_section([arguments.copies], arguments.of, arguments.jobs)))
        return 0
    import numpy as np

    from ..sets import BY_NAME

    chosen = BY_NAME[SET]
    if chosen.eps is None:
        raise ValueError(f"{SET} has no eps of its own")
    points = chosen.make()
    with tempfile.TemporaryDirectory(prefix="bench-points-") as folder:
        np.save(f"{folder}/points.npy", points)
        found = in_own_process(ways, f"{folder}/points.npy", chosen.eps)
    rows = []
    for name, taken in found.items():
        best = min(taken[1:], key=lambda each: each.cpu)
        counted = [best.counters.get(name) for name in ("rows", "files")]
        counts = ["" if each is None else count(int(each)) for each in counted]
        rows.append([name, seconds(best.wall), seconds(best.cpu), *counts])
        print(rows[-1], flush=True)
    lines = [machine(), "", f"## Other ways of the steps, {SET}, {PARTS} parts, local[2]", ""]
    lines += table(["", "wall s", "CPU s", "rows", "files"], rows)
    lines += ["", f"## Files of the replicas of {SET}, written and read by pyarrow on one thread", ""]
    head = ["tasks", "parts", "", "files", "written s", "read s"]
    lines += table(head, layouts(len(points), points.shape[1]))
    lines += ["", f"## Plans of more points, from rows of {SET} as a sample", ""]
    head = ["points", "sample", "worker_memory_mb", "parts asked for", "parts", "rows per point"]
    lines += table([*head, "rows of the largest part", "s"], plans(points, chosen.eps))
    lines += size_section(COPIES)
    put(PAGE, "\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
