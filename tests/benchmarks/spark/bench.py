"""What benches on Spark have in common: a session, a lake with points, calls with their seconds."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..free_memory import take_back

REPOSITORY = Path(__file__).resolve().parents[3]
RUN = "2024-01-01"
OF_ALL_PROCESSES = 2 << 30
"""Bytes that are taken back before a call: more than driver, JVM and workers touch together."""
PHASES = ("reading_seconds", "encoding_seconds", "joining_seconds", "writing_seconds")


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


def largest_bytes(counters: Mapping[str, float]) -> float:
    """The most memory of a worker, or of the driver where that has done the work itself."""
    return counters.get("largest_worker_bytes", counters.get("largest_driver_bytes", 0.0))


def timed(work: Callable[[], Mapping[str, float]]) -> Taken:
    import time

    take_back(OF_ALL_PROCESSES)
    wall, cpu = time.perf_counter(), cpu_of_all()
    counters = work()
    return Taken(time.perf_counter() - wall, cpu_of_all() - cpu, counters)


class Bench:
    """A session, a lake with points and eps, and what is run on them."""

    def __init__(self, points: Any, eps: float, cores: int, folder: Path) -> None:
        os.environ |= environment(cores)
        from epsjoin.params import RunParams
        from epsjoin.spark.job.job import Job
        from epsjoin.spark.job.session import get_session

        self.points, self.eps = points, eps
        self.names = [f"x{j}" for j in range(points.shape[1])]
        lake = lake_with_points(folder, [points], eps)
        params = RunParams(eps=eps, max_pairs=10**9)
        self.job = Job(partial(get_session, "bench"), lake, RUN, params, folder)
        self.folder = folder

    def tree(self) -> Mapping[str, float]:
        from scipy.spatial import cKDTree

        return {"pairs": len(cKDTree(self.points).query_pairs(self.eps, output_type="ndarray"))}

    def jobs(self) -> Mapping[str, float]:
        from epsjoin.spark.join import merge_join, replicate

        spread_ = replicate.run(self.job)
        joined = merge_join.run(self.job)
        both = {
            name: spread_.get(name, 0.0) + joined.get(name, 0.0) for name in {*spread_, *joined} & {*PHASES}
        }
        peak = max(step["largest_worker_bytes"] for step in (spread_, joined))
        moved = {"replica_bytes": spread_["bytes"], "pair_bytes": joined["bytes"]}
        return {**spread_, **joined, **both, **moved, "largest_worker_bytes": peak}

    def library(self) -> Mapping[str, float]:
        import epsjoin.spark
        from epsjoin.lake.lake import Slice
        from epsjoin.spark.rows import scan

        points = scan.read(self.job.spark, self.job.lake, Slice("points", RUN))
        out = self.folder / "library"
        epsjoin.spark.similarity_join(points, eps=self.eps, columns="point", to=str(out))
        return {"pairs": rows_in(out)}

    def by_spark(self) -> Mapping[str, float]:
        import epsjoin.spark
        from epsjoin.lake.lake import Slice
        from epsjoin.spark.rows import scan

        points = scan.read(self.job.spark, self.job.lake, Slice("points", RUN))
        out = self.folder / "by_spark"
        pairs = epsjoin.spark.similarity_join(points, eps=self.eps, columns="point")
        pairs.write.format("delta").mode("overwrite").save(str(out))
        return {"pairs": rows_in(out)}

    def clusters(self) -> Mapping[str, float]:
        from epsjoin.spark.cluster import cluster

        return cluster.run(self.job)

    def outliers(self) -> Mapping[str, float]:
        from epsjoin.spark.neighbours import outliers

        return outliers.run(self.job)

    def compare(self) -> Mapping[str, float]:
        from epsjoin.spark.compare import compare

        return compare.run(self.job)

    def gates(self) -> Mapping[str, float]:
        from epsjoin.pipeline import CHAINS
        from epsjoin.spark.checks.quality import check_quality

        found = [check_quality(self.job, stage) for stage in CHAINS["join"]]
        return {name: sum(stage[name] for stage in found) for name in found[0]}

    def shuffled_bytes(self) -> int:
        """What tasks have written for shuffles until now, by Spark's own count."""
        session = self.job.spark.sparkContext
        spark = session._jsc.sc()
        spark.listenerBus().waitUntilEmpty()
        no_quantiles = session._gateway.new_array(session._gateway.jvm.double, 0)
        stages = spark.statusStore().stageList(None, False, False, no_quantiles, None)
        return sum(int(stages.apply(i).shuffleWriteBytes()) for i in range(stages.size()))


def lake_with_points(folder: Path, shares: Iterable[Any], eps: float) -> Any:
    """Make a lake whose run has these points, numbered in their order, as ``ingest`` would write them.

    Parameters
    ----------
    shares : arrays of points, all of the same width; one is held at a time.
    """
    import numpy as np
    import pyarrow as pa
    import yaml

    from epsjoin.contracts.load_source import load_source
    from epsjoin.lake import slices, targets, transactions
    from epsjoin.lake.arrow import to_binary
    from epsjoin.lake.fingerprints import Fingerprints
    from epsjoin.lake.lake import Lake, Slice
    from epsjoin.pipeline import tables_at

    contracts = folder / "data_contracts"
    shutil.copytree(REPOSITORY / "data_contracts" / "tables", contracts / "tables")
    files: list[Any] = []
    n = 0
    for points in shares:
        names = [f"x{j}" for j in range(points.shape[1])]
        if not files:
            (contracts / "bench.odcs.yaml").write_text(yaml.safe_dump(_contract(names)), encoding="utf-8")
            lake = Lake((folder / "lake").as_uri(), contracts, load_source(contracts, "bench"))
            into = targets.target_of(lake, Slice("points", RUN))
        for rows in np.array_split(np.arange(len(points)), 8):
            columns = {"id": pa.array(n + rows), "point": to_binary(points[rows])}
            columns |= {"key": columns["id"]}
            columns |= {name: pa.array(points[rows, j]) for j, name in enumerate(names)}
            files.append(into.write([pa.table({c: columns[c] for c in into.schema.names if c != "run"})]))
        n += len(points)
    transactions.commit(lake, {Slice("points", RUN): [file for file in files if file]})
    row = {"eps": eps, "method": "given", "n_points": n, "n_sample": 0}
    for name, made in (("epsilon", [row]), ("epsilon_curve", [])):
        where = Fingerprints(lake, RUN).slice(name)
        slices.write_slice(lake, where, slices.table_of(lake, name, made))
    read = {"source": "none.csv", "bytes": 0, "sha256": "", "columns": "", "rows_quarantined": 0}
    read |= {"rows_read": n, "rows_ok": n}
    for name in set(tables_at("input")) - {"points"}:
        rows = [read] if name == "snapshots" else []
        slices.write_slice(lake, Slice(name, RUN), slices.table_of(lake, name, rows))
    return lake


def rows_in(table: Path) -> int:
    """Rows of a Delta table, from its log."""
    import pyarrow as pa
    from deltalake import DeltaTable

    return sum(pa.table(DeltaTable(str(table)).get_add_actions(flatten=True))["num_records"].to_pylist())


def environment(cores: int) -> dict[str, str]:
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


def mebibytes(size: int) -> str:
    return f"{size / 2**20:,.0f}"
