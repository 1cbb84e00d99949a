"""``make bench-spark``: the join on Spark, from points in Delta to pairs in Delta.

Its page is docs/benchmarks-spark.md. One process per set holds a session and runs every contender in every
round: cKDTree on one thread, the library (``similarity_join`` written by Spark), the jobs (``replicate``,
``merge_join``), and clusters from the pairs. CPU time is that of all processes: this one, the JVM, the Python
workers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .measure import in_own_process
from .page import count, machine, megabytes, put, seconds, spread, table

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "benchmarks-spark.md"
RUN = "2024-01-01"
SETS = ("cad16L", "uni8", "landmarks", "skin")
GROWTH = (130_000, 1_300_000)
LSH_ROWS = 20_000
PHASES = ("reading_seconds", "encoding_seconds", "joining_seconds", "writing_seconds")
SIMULATED_CORES = (1, 2, 4, 8, 16, 64)


class Taken(NamedTuple):
    """One call: wall and CPU seconds, its counters."""

    wall: float
    cpu: float
    counters: Mapping[str, float]


def cpu_of_all() -> float:
    """CPU seconds of this process and all below it, those that ended included (Linux)."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended, and its parent counts it
                continue
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = sum(map(int, fields[11:15])) / ticks
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(used[pid] for pid in mine)


def timed(work: Callable[[], Mapping[str, float]]) -> Taken:
    import time

    wall, cpu = time.perf_counter(), cpu_of_all()
    counters = work()
    return Taken(time.perf_counter() - wall, cpu_of_all() - cpu, counters)


class Bench:
    """A session, a lake with points and eps, and what is run on them."""

    def __init__(self, points: Any, eps: float, cores: int, folder: Path) -> None:
        os.environ |= _environment(cores)
        import numpy as np
        import pyarrow as pa
        import yaml

        from epsjoin.contract import load_source
        from epsjoin.params import RunParams
        from epsjoin.spark import tables
        from epsjoin.spark.arrow import to_binary
        from epsjoin.spark.job import Job
        from epsjoin.spark.lineage import stamp_of_points
        from epsjoin.spark.session import get_session

        self.points, self.eps = points, eps
        self.names = [f"x{j}" for j in range(points.shape[1])]
        contracts = folder / "data_contracts"
        shutil.copytree(REPOSITORY / "data_contracts" / "tables", contracts / "tables")
        (contracts / "bench.odcs.yaml").write_text(yaml.safe_dump(_contract(self.names)), encoding="utf-8")
        source = load_source(contracts, "bench")
        lake = tables.Lake((folder / "lake").as_uri(), contracts, source)
        params = RunParams(eps=eps, max_pairs=10**9)
        self.job = Job(get_session("bench"), lake, RUN, params, folder)
        into = tables.target(lake, "points", RUN)
        files = []
        for rows in np.array_split(np.arange(len(points)), 8):
            columns = {"id": pa.array(rows), "point": to_binary(points[rows])}
            columns |= {"key": columns["id"]}
            columns |= {name: pa.array(points[rows, j]) for j, name in enumerate(self.names)}
            files.append(into.write([pa.table({c: columns[c] for c in into.schema.names if c != "run"})]))
        tables.commit(lake, "points", RUN, [file for file in files if file])
        row = {"eps": eps, "method": "given", "n_points": len(points), "n_sample": 0}
        stamp = stamp_of_points(lake, RUN)
        tables.write_slice(lake, "epsilon", RUN, tables.rows_of(lake, "epsilon", [row]), stamp)
        self.folder = folder

    def tree(self) -> Mapping[str, float]:
        from scipy.spatial import cKDTree

        return {"pairs": len(cKDTree(self.points).query_pairs(self.eps, output_type="ndarray"))}

    def jobs(self) -> Mapping[str, float]:
        from epsjoin.spark.merge_join import join_parts
        from epsjoin.spark.replicate import write_replicas

        spread_ = write_replicas(self.job)
        joined = join_parts(self.job)
        both = {
            name: spread_.get(name, 0.0) + joined.get(name, 0.0) for name in {*spread_, *joined} & {*PHASES}
        }
        peak = max(step["largest_worker_bytes"] for step in (spread_, joined))
        moved = {"replica_bytes": spread_["bytes"], "pair_bytes": joined["bytes"]}
        return {**spread_, **joined, **both, **moved, "largest_worker_bytes": peak}

    def library(self) -> Mapping[str, float]:
        import pyarrow as pa
        from deltalake import DeltaTable

        import epsjoin.spark
        from epsjoin.spark import tables

        points = tables.read(self.job.spark, self.job.lake, "points", RUN)
        pairs = epsjoin.spark.similarity_join(points, eps=self.eps, columns="point")
        out = self.folder / "library"
        pairs.write.format("delta").mode("overwrite").save(str(out))
        written = pa.table(DeltaTable(str(out)).get_add_actions(flatten=True))
        return {"pairs": sum(written["num_records"].to_pylist())}

    def clusters(self) -> Mapping[str, float]:
        from epsjoin.spark.cluster import find_clusters

        return find_clusters(self.job)


def _environment(cores: int) -> dict[str, str]:
    conf = {
        "spark.driver.extraClassPath": f"{REPOSITORY}/.cache/jars/*",
        "spark.sql.warehouse.dir": f"{REPOSITORY}/.cache/warehouse",
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "4",
    }
    given = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": f"{REPOSITORY}/jobs",
        "SPARK_CONF_DIR": str(REPOSITORY / "conf"),
        "NUMBA_CACHE_DIR": str(REPOSITORY / ".cache" / "numba"),
        "OMP_NUM_THREADS": "1",
        "PYSPARK_SUBMIT_ARGS": (
            f"--properties-file {REPOSITORY}/conf/large.conf --load-spark-defaults --master local[{cores}] "
            f"{given} pyspark-shell"
        ),
    }


def _contract(names: list[str]) -> dict[str, Any]:
    key = {
        "name": "key",
        "logicalType": "integer",
        "primaryKey": True,
        "primaryKeyPosition": 1,
        "required": True,
    }
    role = [{"property": "role", "value": "coordinate"}]
    coordinates = [
        {"name": name, "logicalType": "number", "required": True, "customProperties": role} for name in names
    ]
    return {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": "bench",
        "version": "1.0.0",
        "status": "active",
        "servers": [{"server": "files", "type": "local", "path": "none.csv", "format": "csv"}],
        "schema": [{"name": "bench", "logicalType": "object", "properties": [key, *coordinates]}],
    }


def run_set(file: str, eps: float, cores: int, rounds: int) -> dict[str, list[Taken]]:
    """All contenders in every round; the first, unmeasured one starts workers and compiles."""
    import numpy as np

    folder = Path(tempfile.mkdtemp(prefix="bench-spark-"))
    try:
        bench = Bench(np.load(file), eps, cores, folder)
        contenders = {
            "cKDTree": bench.tree,
            "jobs": bench.jobs,
            "library": bench.library,
            "clusters": bench.clusters,  # of the pairs that the jobs have just written
        }
        for work in list(contenders.values())[1:]:
            work()
        found: dict[str, list[Taken]] = {name: [] for name in contenders}
        for _ in range(rounds):
            for name, work in contenders.items():
                found[name].append(timed(work))
        counts = {name: {int(t.counters["pairs"]) for t in found[name]} for name in list(contenders)[:3]}
        if len(set.union(*counts.values())) != 1:
            raise AssertionError(f"the contenders do not agree on the pairs: {counts}")
        bench.job.spark.stop()
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_lsh(file: str, eps: float, rows: int) -> dict[str, Any]:
    """MLlib's approximate join and the library's exact one, on the same rows."""
    import numpy as np

    folder = Path(tempfile.mkdtemp(prefix="bench-lsh-"))
    try:
        bench = Bench(np.load(file)[:rows], eps, 2, folder)
        from pyspark.ml.feature import BucketedRandomProjectionLSH
        from pyspark.ml.functions import array_to_vector
        from pyspark.sql import functions as F

        import epsjoin.spark
        from epsjoin.spark import tables

        points = tables.read(bench.job.spark, bench.job.lake, "points", RUN)
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

        exact()
        result = {"lsh": timed(lsh), "exact": timed(exact), "cKDTree": timed(bench.tree)}
        bench.job.spark.stop()
        return result
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def median(taken: list[Taken], what: str) -> float:
    return statistics.median(getattr(each, what) for each in taken)


def row_of(name: str, found: dict[str, list[Taken]]) -> list[str]:
    tree_wall, tree_cpu = median(found["cKDTree"], "wall"), median(found["cKDTree"], "cpu")
    cells = [name, seconds(tree_wall)]
    for who in ("jobs", "library"):
        ratios = [t.wall / o.wall for t, o in zip(found["cKDTree"], found[who], strict=True)]
        cells += [seconds(median(found[who], "wall")), spread(ratios)]
        cells.append(f"{median(found[who], 'cpu') / tree_cpu:.2f}")
    cells.append(seconds(median(found["clusters"], "wall")))
    cells.append(f"{median(found['clusters'], 'wall') / median(found['jobs'], 'wall'):.0%}")
    return cells


def phases_of(name: str, found: dict[str, list[Taken]]) -> list[str]:
    counters = found["jobs"][-1].counters
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
        megabytes(int(counters["largest_worker_bytes"])),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-spark", description=__doc__)
    parser.add_argument("--only", help="one set; prints, writes no page")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    import numpy as np

    from .sets import BY_NAME, cad

    lines = [f"{machine()}", ""]
    with tempfile.TemporaryDirectory(prefix="bench-points-") as folder:

        def run(points: Any, eps: float, cores: int) -> dict[str, list[Taken]]:
            file = f"{folder}/points.npy"
            np.save(file, points)
            return in_own_process(run_set, file, eps, cores, arguments.rounds)

        names = (arguments.only,) if arguments.only else SETS
        found = {}
        for name in names:
            chosen = BY_NAME[name]
            if chosen.eps is None:
                raise ValueError(f"{name} has no eps of its own")
            found[name] = run(chosen.make(), chosen.eps, 2)
            print(row_of(name, found[name]), phases_of(name, found[name]), flush=True)
        lines += ["## From points in Delta to pairs in Delta, local[2]", ""]
        head = [
            "set",
            "cKDTree s",
            "jobs s",
            "cKDTree / jobs",
            "CPU",
            "library s",
            "cKDTree / library",
            "CPU",
        ]
        lines += table([*head, "clusters s", "of the join"], [row_of(*each) for each in found.items()])
        lines += ["", "## Where the jobs' task time goes, seconds over all tasks", ""]
        head = [
            "set",
            "points",
            "rows",
            "pairs",
            "read",
            "encode",
            "join",
            "write",
            "replicas MB",
            "pairs MB",
            "worker MB",
        ]
        lines += table(head, [phases_of(*each) for each in found.items()])
        if arguments.only:
            print("\n".join(lines))
            return 0
        lsh_file = f"{folder}/lsh.npy"
        cad16 = BY_NAME["cad16"]
        np.save(lsh_file, cad16.make())
        lsh = in_own_process(run_lsh, lsh_file, cad16.eps, LSH_ROWS)
        lines += ["", f"## Against MLlib's LSH, {LSH_ROWS:,} rows of cad16", ""]
        lines += table(
            ["", "wall s", "CPU s", "pairs"],
            [
                [who, seconds(t.wall), seconds(t.cpu), count(int(t.counters["pairs"]))]
                for who, t in lsh.items()
            ],
        )
        lines += ["", f"`similarity_join` is {lsh['lsh'].wall / lsh['exact'].wall:.0f} times as fast.", ""]
        lines += ["## Growth with points and cores (the surface of cad16, as many neighbours)", ""]
        whole = cad(GROWTH[-1])
        rows = []
        for n in GROWTH:
            points = whole[:n].copy()
            eps = BY_NAME["cad16L"].eps * (GROWTH[-1] / n) ** (1 / 3)
            for cores in (1, 2):
                grown = run(points, eps, cores)
                rows.append([count(n), str(cores), seconds(median(grown["jobs"], "wall"))])
                rows[-1] += [
                    seconds(median(grown["jobs"], "cpu")),
                    seconds(median(grown["clusters"], "wall")),
                ]
        lines += table(["points", "cores", "jobs s", "CPU s", "clusters s"], rows)
    put(PAGE, "\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
