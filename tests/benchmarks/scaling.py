"""``make bench-scaling``: the ways that steps take when data fits no driver, and plans of more points.

Its page is docs/benchmarks/scaling.md. The set is cad16L; limits are lowered so that the steps take the ways
of large data.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from .measure import in_own_process
from .page import count, machine, put, seconds, table
from .spark_join import Bench, Taken, timed

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "scaling.md"
SET = "cad16L"
PARTS = 64
LAYOUTS = ((8, 64), (64, 256))
"""Tasks and parts."""
ROUNDS = {"max_on_driver": 0, "max_shared_cores": 0, "max_in_one_task": 100_000}
PLANS = ((10**8, 140, 20_000, 1024), (10**9, 650, 65_000, 1024), (10**9, 650, 65_000, 8192))
"""Points, parts asked for, rows of the sample, worker_memory_mb."""


def ways(file: str, eps: float) -> dict[str, list[Taken]]:
    """Every way of every step, more than once; the first time compiles."""
    import numpy as np
    import pyarrow as pa

    from epsjoin.lake import delta_log, parquet, slices
    from epsjoin.lake.fingerprints import Fingerprints
    from epsjoin.lake.lake import Slice
    from epsjoin.local.metric import get_metric
    from epsjoin.spark import tasks
    from epsjoin.spark.cluster import from_pairs
    from epsjoin.spark.cluster.cluster import stored_pairs
    from epsjoin.spark.join import merge_join, replicate
    from epsjoin.spark.neighbours.rank import rank_points
    from epsjoin.spark.points import stored_points
    from epsjoin.spark.rows import StoredRows
    from epsjoin.spark.write import write_files

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
                files, counters = write_files(parquet.target_of(job.lake, where), make(done))
                delta_log.commit(job.lake, {where: files})
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
            of = points, sample, labels, pairs, eps, get_metric("euclidean"), k, names
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
            take("cluster, by the driver", clusters)
            take("cluster, by Spark, core ids shared", lambda: clusters(max_on_driver=0))
            take("cluster, by Spark, no task holds all", lambda: clusters(**ROUNDS))
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


def main() -> int:
    import numpy as np

    from .sets import BY_NAME

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
        files = best.counters.get("files")
        rows.append([name, seconds(best.wall), seconds(best.cpu), "" if files is None else count(int(files))])
        print(rows[-1], flush=True)
    lines = [machine(), "", f"## Other ways of the steps, {SET}, {PARTS} parts, local[2]", ""]
    lines += table(["", "wall s", "CPU s", "files"], rows)
    lines += ["", f"## Files of the replicas of {SET}, written and read by pyarrow on one thread", ""]
    head = ["tasks", "parts", "", "files", "written s", "read s"]
    lines += table(head, layouts(len(points), points.shape[1]))
    lines += ["", f"## Plans of more points, from rows of {SET} as a sample", ""]
    head = ["points", "sample", "worker_memory_mb", "parts asked for", "parts", "rows per point"]
    lines += table([*head, "rows of the largest part", "s"], plans(points, chosen.eps))
    put(PAGE, "\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
