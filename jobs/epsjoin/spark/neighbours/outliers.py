"""The step ``outliers``: rank all points by their k nearest neighbours, the furthest out first."""

from __future__ import annotations

from contextlib import ExitStack

import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.console import counted, say
from epsjoin.errors import TableError
from epsjoin.lake import delta_log, parquet
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.local.metric import get_metric
from epsjoin.spark.cluster.cluster import stored_pairs
from epsjoin.spark.cluster.from_pairs import CLUSTERS
from epsjoin.spark.job import Job
from epsjoin.spark.neighbours.rank import rank_points
from epsjoin.spark.points import stored_points
from epsjoin.spark.rows import StoredRows
from epsjoin.spark.write import write_files


def run(job: Job) -> dict[str, float]:
    """Replace the run's slice of ``outliers``: every point with its rank, k-distance and LOF.

    Degree and noise are taken from ``clusters``. Sums are computed in the order of the neighbours, so a score
    is the same bit for bit under every partitioning.

    Raises
    ------
    TableError
        ``points``, ``pairs`` or ``clusters`` has no slice of this run, or points or pairs were lost on the
        way.
    """
    lake, run, k = job.lake, job.run, job.params.n_neighbours
    inputs = Fingerprints(lake, run)
    outliers = inputs.slice("outliers")
    pairs = stored_pairs(job, inputs.slice("pairs"))
    clusters = StoredRows.of(job, inputs.slice("clusters"), CLUSTERS)
    points = stored_points(job)
    _, sample = points.sample(job.params.sample_rows, job.params.seed)
    eps = float(inputs.row("join_plan")["eps"])
    metric = get_metric(lake.source.metric)
    with ExitStack() as done:
        ranked = rank_points(points, sample, clusters, pairs, eps, metric, k, lake.source.coordinates, done)
        files, counters = write_files(parquet.target_of(lake, outliers), ranked, _count)
    if counters["rows"] != points.n:
        raise TableError(
            f"{counters['rows']:,.0f} points were scored, the log of points says {points.n:,}; "
            "run outliers again"
        )
    delta_log.commit(lake, {outliers: files})
    say(f"outliers: {counters['noise']:,.0f} noise; LOF of {counted(counters['with_lof'], 'point')}, k = {k}")
    return {**counters, "k": k}


def _count(rows: pa.RecordBatch) -> dict[str, float]:
    known = {f"with_{name}": float(len(rows) - rows[name].null_count) for name in ("lof", "k_distance")}
    return {**known, "noise": float(pc.sum(rows["is_noise"]).as_py() or 0)}
