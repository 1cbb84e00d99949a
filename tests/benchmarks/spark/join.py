"""``make bench-spark``: from points to pairs, both in Delta, by every contender in one process.

Its page is docs/benchmarks/spark.md. One process per set holds a session and runs every contender in every
round: cKDTree on one thread, the jobs (``replicate``, ``merge_join``), the library (``similarity_join``, its
pairs written by the tasks, or by Spark), clusters and outliers from the pairs, the quality gates of all
tables. CPU time is that of all processes: this one, the JVM, the Python workers.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..measure import in_own_process
from ..page import count, machine, megabytes, put, seconds, spread, table
from .bench import PHASES, REPOSITORY, RUN, Bench, Taken, largest_bytes, mebibytes, timed

PAGE = REPOSITORY / "docs" / "benchmarks" / "spark.md"
SETS = ("cad16L", "uni8", "landmarks", "skin")
GROWTH = (130_000, 1_300_000)
LSH_ROWS = 20_000
SIMULATED_CORES = (1, 2, 4, 8, 16, 32)
SIMULATED_PARTS = (8, 64)
MEMORY_SETS = {
    **dict.fromkeys(("uni2", "uni8", "cad16L", "hist64", "landmarks", "skewed")),
    "skin": 0.036,
}
"""With eps where it is not the set's own: skin then has 100 million pairs."""
GROWING = (("jobs", "wall"), ("jobs", "cpu"), ("clusters", "wall"), ("outliers", "wall"))
Run = Callable[..., "dict[str, list[Taken]]"]
"""Points, eps and cores to what all contenders took."""


def run_set(file: str, eps: float, cores: int, rounds: int, gates: bool) -> dict[str, list[Taken]]:
    """All contenders in every round; the first, unmeasured one starts workers and compiles."""
    import numpy as np

    folder = Path(tempfile.mkdtemp(prefix="bench-spark-"))
    try:
        bench = Bench(np.load(file), eps, cores, folder)
        contenders = {
            "cKDTree": bench.tree,
            "jobs": bench.jobs,
            "library": bench.library,
            "by Spark": bench.by_spark,
            "clusters": bench.clusters,  # of the pairs that the jobs have written
            "outliers": bench.outliers,
        }
        for work in list(contenders.values())[1:]:
            work()
        found: dict[str, list[Taken]] = {name: [] for name in contenders}
        for _ in range(rounds):
            for name, work in contenders.items():
                before = bench.shuffled_bytes()
                taken = timed(work)
                moved = {"shuffled_bytes": bench.shuffled_bytes() - before}
                found[name].append(taken._replace(counters={**taken.counters, **moved}))
        if gates:  # not in the rounds: Python workers, idle meanwhile, would end, and their CPU be missed
            bench.compare()  # whose tables the gates check, too
            bench.gates()
            found["gates"] = [timed(bench.gates) for _ in range(rounds)]
        counts = {name: {int(t.counters["pairs"]) for t in found[name]} for name in list(contenders)[:4]}
        if len(set.union(*counts.values())) != 1:
            raise AssertionError(f"the contenders do not agree on the pairs: {counts}")
        bench.job.spark.stop()
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_memory(file: str, eps: float) -> list[Mapping[str, float]]:
    """The counters of each step, each run once in a new session."""
    import numpy as np

    folder = Path(tempfile.mkdtemp(prefix="bench-memory-"))
    try:
        bench = Bench(np.load(file), eps, 2, folder)
        from epsjoin.spark.join import merge_join, replicate

        taken = [replicate.run(bench.job), merge_join.run(bench.job), bench.clusters(), bench.outliers()]
        bench.job.spark.stop()
        return taken
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def seconds_of_tasks(file: str, eps: float, n_parts: int) -> list[float]:
    """Seconds of each task of ``merge_join`` that has a core to itself."""
    from dataclasses import replace

    import numpy as np

    folder = Path(tempfile.mkdtemp(prefix="bench-tasks-"))
    try:
        bench = Bench(np.load(file), eps, 1, folder)
        from epsjoin.spark.tasks.reports import TaskReport

        bench.job = replace(bench.job, params=replace(bench.job.params, n_parts=n_parts))
        found: list[list[float]] = []
        plain = TaskReport.of_batches

        def watched(batches: Any) -> list[TaskReport]:
            reports = plain(batches)
            found.append([sum(r.counters.get(phase, 0.0) for phase in PHASES) for r in reports])
            return reports

        TaskReport.of_batches = watched
        for _ in range(2):  # compiled by the first
            bench.jobs()
        bench.job.spark.stop()
        return found[-1]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def makespan(tasks_seconds: list[float], cores: int) -> float:
    """When the last core is through, each taking the longest task that is left: how Spark gets them."""
    busy = [0.0] * cores
    for each in sorted(tasks_seconds, reverse=True):
        busy[busy.index(min(busy))] += each
    return max(busy)


def run_lsh(file: str, eps: float, rows: int, rounds: int) -> dict[str, list[Taken]]:
    """MLlib's approximate join and the library's exact one, on the same rows, after a round unmeasured."""
    import numpy as np

    folder = Path(tempfile.mkdtemp(prefix="bench-lsh-"))
    try:
        bench = Bench(np.load(file)[:rows], eps, 2, folder)
        from pyspark.ml.feature import BucketedRandomProjectionLSH
        from pyspark.ml.functions import array_to_vector
        from pyspark.sql import functions as F

        import epsjoin.spark
        from epsjoin.lake.lake import Slice
        from epsjoin.spark.rows import scan

        points = scan.read(bench.job.spark, bench.job.lake, Slice("points", RUN))
        vectors = points.select("id", array_to_vector(F.array(*bench.names)).alias("at")).persist()
        vectors.count()

        def lsh() -> Mapping[str, float]:
            model = BucketedRandomProjectionLSH(
                inputCol="at", outputCol="hashes", bucketLength=4 * eps, numHashTables=3, seed=1
            ).fit(vectors)
            near = model.approxSimilarityJoin(vectors, vectors, eps, distCol="distance")
            return {"pairs": near.where(F.col("datasetA.id") < F.col("datasetB.id")).count()}

        def exact() -> Mapping[str, float]:
            return {"pairs": epsjoin.spark.similarity_join(vectors, eps=eps, columns="at").count()}

        contenders = {"lsh": lsh, "exact": exact, "cKDTree": bench.tree}
        for work in contenders.values():
            work()
        found = [{name: timed(work) for name, work in contenders.items()} for _ in range(rounds)]
        bench.job.spark.stop()
        return {name: [each[name] for each in found] for name in contenders}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def pairs_of(taken: list[Taken]) -> int:
    return int(taken[-1].counters["pairs"])


def median(taken: list[Taken], what: str) -> float:
    return statistics.median(getattr(each, what) for each in taken)


def row_of(name: str, found: dict[str, list[Taken]]) -> list[str]:
    tree_cpu = median(found["cKDTree"], "cpu")
    cells = [name, seconds(median(found["cKDTree"], "wall"))]
    for who in ("jobs", "library", "by Spark"):
        ratios = [t.wall / o.wall for t, o in zip(found["cKDTree"], found[who], strict=True)]
        cells += [seconds(median(found[who], "wall")), spread(ratios)]
        cells.append(f"{median(found[who], 'cpu') / tree_cpu:.2f}")
    return cells


def after_pairs(name: str, found: dict[str, list[Taken]]) -> list[str]:
    cells = [name]
    for who in ("clusters", "outliers"):
        shares = [t.wall / o.wall for t, o in zip(found[who], found["jobs"], strict=True)]
        cells += [seconds(median(found[who], "wall")), f"{statistics.median(shares):.0%}"]
    shares = [t.wall / o.wall for t, o in zip(found["gates"], found["jobs"], strict=True)]
    return [*cells, seconds(median(found["gates"], "wall")), f"{statistics.median(shares):.0%}"]


def phases_of(name: str, found: dict[str, list[Taken]]) -> list[str]:
    counters = found["jobs"][-1].counters
    shuffled = [found[who][-1].counters["shuffled_bytes"] for who in ("jobs", "library", "by Spark")]
    total = sum(counters.get(phase, 0.0) for phase in PHASES)
    shares = [f"{counters.get(p, 0.0):.2f} ({counters.get(p, 0.0) / total:.0%})" for p in PHASES]
    return [
        name,
        count(int(counters["points"])),
        count(int(counters["rows"])),
        count(int(counters["pairs"])),
        *shares,
        megabytes(int(counters["replica_bytes"])),
        megabytes(int(counters["pair_bytes"])),
        *(megabytes(int(each)) for each in shuffled),
        megabytes(int(counters["largest_worker_bytes"])),
    ]


def sets_section(found: dict[str, dict[str, list[Taken]]]) -> list[str]:
    lines = ["## From points in Delta to pairs in Delta, local[2]", ""]
    head = ["set", "cKDTree s", "jobs s", "cKDTree / jobs", "CPU", "library s", "cKDTree / library"]
    head += ["CPU", "by Spark s", "cKDTree / by Spark", "CPU"]
    lines += table(head, [row_of(*each) for each in found.items()])
    lines += ["", "## Clusters and outliers from the pairs, and the quality gates, local[2]", ""]
    head = ["set", "clusters s", "of the jobs", "outliers s", "of the jobs", "gates s", "of the jobs"]
    lines += table(head, [after_pairs(*each) for each in found.items()])
    lines += ["", "## Where the jobs' task time goes, seconds over all tasks", ""]
    head = ["set", "points", "rows", "pairs", "read", "encode", "join", "write"]
    head += ["replicas MB", "pairs MB", "shuffled MB", "by the library", "by Spark", "worker MB"]
    return lines + table(head, [phases_of(*each) for each in found.items()])


def lsh_section(file: str, eps: float, rounds: int) -> list[str]:
    found = in_own_process(run_lsh, file, eps, LSH_ROWS, rounds)
    rows = [
        [who, *(seconds(median(taken, what)) for what in ("wall", "cpu")), count(pairs_of(taken))]
        for who, taken in found.items()
    ]
    lines = ["", f"## Against MLlib's LSH, {LSH_ROWS:,} rows of cad16", ""]
    lines += table(["", "wall s", "CPU s", "pairs"], rows)
    times = [lsh.wall / exact.wall for lsh, exact in zip(found["lsh"], found["exact"], strict=True)]
    share = pairs_of(found["lsh"]) / pairs_of(found["cKDTree"])
    text = f"`similarity_join` is {spread(times)} times as fast; LSH, which does not promise all, found"
    text += f" {share:.2%} of the pairs."
    return [*lines, "", text, ""]


def growth_section(run: Run, whole: Any, eps: float) -> list[str]:
    rows = []
    for n in GROWTH:
        for cores in (1, 2):
            grown = run(whole[:n].copy(), eps * (GROWTH[-1] / n) ** (1 / 3), cores)
            medians = [median(grown[who], what) for who, what in GROWING]
            rows.append([count(n), str(cores), *map(seconds, medians)])
            print(rows[-1], flush=True)
    head = ["points", "cores", *(f"{who} {'CPU ' if what == 'cpu' else ''}s" for who, what in GROWING)]
    title = "## Growth with points and cores (the surface of cad16, as many neighbours)"
    return [title, "", *table(head, rows)]


def memory_section(folder: str) -> list[str]:
    import numpy as np

    from epsjoin.params import RunParams

    from ..sets import BY_NAME, SKEWED

    rows = []
    for name, eps in MEMORY_SETS.items():
        chosen = SKEWED if name == SKEWED.name else BY_NAME[name]
        points = chosen.make()
        np.save(f"{folder}/points.npy", points)
        steps = in_own_process(run_memory, f"{folder}/points.npy", eps or chosen.eps)
        held = max(int(step.get("largest_worker_bytes", 0)) for step in steps)
        if held > RunParams.worker_memory_mb << 20:
            raise RuntimeError(f"{name}: a worker held {held:,} bytes, more than worker_memory_mb")
        of_steps = [mebibytes(int(largest_bytes(step))) for step in steps]
        rows.append([name, f"{len(points):,} × {points.shape[1]}", count(int(steps[1]["pairs"])), *of_steps])
        print(rows[-1], flush=True)
    head = ["set", "points", "pairs", "replicate MiB", "merge_join MiB", "cluster MiB", "outliers MiB"]
    bound = f"The bound of a worker is `worker_memory_mb`, {RunParams.worker_memory_mb:,}."
    bound += " Clusters and outliers of sets of this size are found by the driver's process."
    return ["", "## The most memory of a Python process", "", bound, "", *table(head, rows)]


def simulated_section(file: str, eps: float) -> list[str]:
    rows = []
    for n_parts in SIMULATED_PARTS:
        taken = in_own_process(seconds_of_tasks, file, eps, n_parts)
        spans = [makespan(taken, cores) for cores in SIMULATED_CORES]
        rows.append([count(len(taken)), seconds(max(taken)), *map(seconds, spans)])
    head = ["parts", "longest task s", *(f"{cores} core{'s'[: cores > 1]}" for cores in SIMULATED_CORES)]
    return ["", "## More cores, simulated: seconds of merge_join's tasks on cad16L", "", *table(head, rows)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-spark", description=__doc__)
    parser.add_argument("--only", help="one set, or memory; prints, writes no page")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    import numpy as np

    from ..sets import BY_NAME, cad

    with tempfile.TemporaryDirectory(prefix="bench-points-") as folder:

        def run(points: Any, eps: float, cores: int, *, gates: bool = False) -> dict[str, list[Taken]]:
            np.save(f"{folder}/points.npy", points)
            return in_own_process(run_set, f"{folder}/points.npy", eps, cores, arguments.rounds, gates)

        if arguments.only == "memory":
            print("\n".join(memory_section(folder)))
            return 0
        found = {}
        for name in (arguments.only,) if arguments.only else SETS:
            chosen = BY_NAME[name]
            if chosen.eps is None:
                raise ValueError(f"{name} has no eps of its own")
            found[name] = run(chosen.make(), chosen.eps, 2, gates=True)
            for row in (row_of, after_pairs, phases_of):
                print(row(name, found[name]), flush=True)
        lines = [f"{machine()}", "", *sets_section(found)]
        if arguments.only:
            print("\n".join(lines))
            return 0
        small, large = BY_NAME["cad16"], BY_NAME["cad16L"]
        if small.eps is None or large.eps is None:
            raise ValueError("cad16 and cad16L have an eps of their own")
        np.save(f"{folder}/cad16.npy", small.make())
        lines += lsh_section(f"{folder}/cad16.npy", small.eps, arguments.rounds)
        whole = cad(GROWTH[-1])
        lines += growth_section(run, whole, large.eps)
        lines += memory_section(folder)
        np.save(f"{folder}/cad16L.npy", whole)
        lines += simulated_section(f"{folder}/cad16L.npy", large.eps)
    put(PAGE, "\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
