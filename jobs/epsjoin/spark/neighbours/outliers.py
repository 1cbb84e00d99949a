"""The step ``outliers``: rank all points by their k nearest neighbours, the furthest out first."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.console import counted, say
from epsjoin.errors import DataRefusedError, TableError
from epsjoin.lake import targets, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.local.metric import get_metric
from epsjoin.pipeline import joined_table
from epsjoin.spark.cluster.from_pairs import CLUSTERS
from epsjoin.spark.job.job import Job
from epsjoin.spark.job.same_params import check_same_params
from epsjoin.spark.join.pairs import PAIRS
from epsjoin.spark.join.stored_pairs import stored_pairs
from epsjoin.spark.neighbours.on_driver import (
    MAX_ON_DRIVER_BYTES,
    DriverInputs,
    rank_on_driver,
    room_on_driver,
)
from epsjoin.spark.neighbours.rank import rank_points
from epsjoin.spark.neighbours.ranked import Scoring
from epsjoin.spark.points.hashes import sample_of
from epsjoin.spark.points.points import STORED, draw_sample, stored_points, stored_reading
from epsjoin.spark.rows.rows import StoredRows
from epsjoin.spark.rows.splits import names_of
from epsjoin.spark.rows.stored import StoredSlice
from epsjoin.spark.rows.write import write_files


def run(job: Job, max_on_driver: int = MAX_ON_DRIVER_BYTES) -> dict[str, float]:
    """Replace the run's slice of ``outliers``: every point with its rank, k-distance and LOF.

    Documents are ranked by the distances of their points, which are lower bounds of the edits between them:
    with candidates instead of pairs, everything below is exact for that metric.

    Degree and noise are taken from ``clusters``. Sums are computed in the order of the neighbours, so a score
    is the same bit for bit under every partitioning.

    Parameters
    ----------
    max_on_driver : maximum number of bytes that the driver may hold, see
        :func:`epsjoin.spark.neighbours.on_driver.room_on_driver`; up to that it works without a session.

    Raises
    ------
    ArgumentError
        The clusters were made with another ``min_pts``.
    TableError
        ``points``, ``pairs`` or ``clusters`` has no slice of this run, or points or pairs were lost on the
        way.
    DataRefusedError
        A k-distance is so large that its square does not fit into float64.
    EpsjoinError
        The disk has too little room for the driver's files.
    """
    lake, run, k = job.lake, job.run, job.params.n_neighbours
    inputs = Fingerprints(lake, run, is_made_now=True)
    outliers = inputs.slice("outliers")
    check_same_params(job, "outliers", of_jobs=["cluster"])
    joined = joined_table(lake.source.chain)
    slices_of = (Slice("points", run), inputs.slice("clusters"), inputs.slice(joined))
    points, clusters, pairs = (StoredSlice.of(job, where) for where in slices_of)
    reading, names = stored_reading(lake), lake.source.axes
    sample_rows, seed = job.params.sample_rows, job.params.seed
    eps, metric = float(inputs.row("join_plan")["eps"]), get_metric(lake.source.point_metric)
    scoring = Scoring(eps, metric, k, names, are_candidates=joined != "pairs")
    into = targets.target_of(lake, outliers)
    with targets.deleted_on_error(into), ExitStack() as done:
        make = room_on_driver(points.n, len(names), k, max_on_driver)
        if make is not None:
            columns = names_of(STORED), ["id", "cluster_id", "degree"], names_of(PAIRS)
            tables = zip((points, clusters, pairs), columns, strict=True)
            read = DriverInputs(*(table.stream(each) for table, each in tables))

            def draw(ids: NDArray[np.int64], places: NDArray[np.float64]) -> NDArray[np.float64]:
                return places[sample_of(ids, sample_rows, seed)]

            ranked = rank_on_driver(read, reading, draw, scoring, job.session, make)
        else:
            _, sample = draw_sample(points.scan, reading, points.n, sample_rows, seed)
            of_clusters = StoredRows.of(job, clusters.where, CLUSTERS)
            of_pairs = stored_pairs(job, pairs.where)
            whole = stored_points(job)
            ranked = rank_points(whole, sample, of_clusters, of_pairs, scoring, done, max_on_driver)
        files, counters = write_files(into, ranked, _count)
        if counters["rows"] != points.n:
            raise TableError(
                f"{counters['rows']:,.0f} points were scored, the log of points says {points.n:,}; "
                "run outliers again"
            )
        if far := counters.pop("far", 0.0):
            raise DataRefusedError(
                f"the squares of the distances of {counted(far, 'point')} do not fit into float64; give the "
                "coordinates a maximum in the contract, and ingest quarantines rows that lie so far away"
            )
    transactions.commit(lake, {outliers: files})
    say(f"outliers: {counters['noise']:,.0f} noise; LOF of {counted(counters['with_lof'], 'point')}, k = {k}")
    return {**counters, "k": k, "sample_rows": job.params.sample_rows, "seed": job.params.seed}


def _count(rows: pa.RecordBatch) -> dict[str, float]:
    known = {f"with_{name}": float(len(rows) - rows[name].null_count) for name in ("lof", "k_distance")}
    far = float(pc.sum(pc.is_inf(rows["k_distance"])).as_py() or 0)
    return {**known, "far": far, "noise": float(pc.sum(rows["is_noise"]).as_py() or 0)}
