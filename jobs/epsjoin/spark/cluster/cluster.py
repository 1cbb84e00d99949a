"""The step ``cluster``: density clusters from the stored pairs."""

from __future__ import annotations

from contextlib import ExitStack

from epsjoin.console import counted, say
from epsjoin.errors import TableError
from epsjoin.lake import targets, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.local.plan.sizes import points_that_map
from epsjoin.spark.cluster.from_pairs import MAX_ON_DRIVER, cluster_pairs, count_roles
from epsjoin.spark.cluster.on_driver import cluster_on_driver, fits_driver
from epsjoin.spark.job.job import Job
from epsjoin.spark.join.stored_pairs import stored_pairs
from epsjoin.spark.rows.rows import Rows, StoredRows
from epsjoin.spark.rows.stored import StoredSlice
from epsjoin.spark.rows.write import write_files


def run(job: Job) -> dict[str, float]:
    """Replace the run's slice of ``clusters``.

    The driver does it without a session if points and pairs fit it (:mod:`epsjoin.spark.cluster.on_driver`),
    otherwise tasks read the pairs (:mod:`epsjoin.spark.cluster.from_pairs`).

    Raises
    ------
    TableError
        ``points`` or ``pairs`` has no slice of this run, or points or pairs were lost on the way.
    """
    inputs = Fingerprints(job.lake, job.run, is_made_now=True)
    clusters = inputs.slice("clusters")
    pairs, points = inputs.slice("pairs"), Slice("points", job.run)
    of_pairs, of_points = StoredSlice.of(job, pairs), StoredSlice.of(job, points)
    into = targets.target_of(job.lake, clusters)
    with targets.deleted_on_error(into), ExitStack() as done:
        if fits_driver(of_points.n, of_pairs.n, job.params.min_pts):
            found: Rows = cluster_on_driver(of_points, of_pairs, job.params.min_pts)
        else:
            ids = StoredRows.of(job, points, "id long")
            most = min(MAX_ON_DRIVER, points_that_map(job.params.worker_memory_mb))
            found = cluster_pairs(ids, ids.n, stored_pairs(job, pairs), job.params.min_pts, done, most)
        files, counters = write_files(into, found, count_roles)
        if counters["rows"] != of_points.n:
            raise TableError(
                f"{counters['rows']:,.0f} points have a label, the log says {of_points.n:,}; "
                "run cluster again"
            )
        if counters["neighbours"] != 2 * of_pairs.n:
            raise TableError(
                f"the points have {counters['neighbours']:,.0f} neighbours together, not two for each of "
                f"{of_pairs.n:,} pairs; run cluster again"
            )
    transactions.commit(job.lake, {clusters: files})
    say(
        f"cluster: {counted(counters['clusters'], 'cluster')}, {counters['core']:,.0f} core, "
        f"{counters['border']:,.0f} border, {counters['noise']:,.0f} noise"
    )
    return {**counters, "min_pts": job.params.min_pts}
