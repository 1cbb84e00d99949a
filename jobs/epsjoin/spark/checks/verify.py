"""Verify a run's pairs, clusters and outliers: random points by brute force, all rows by cheap checks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import functions as F

from epsjoin.console import counted, say
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import ArgumentError, TableError
from epsjoin.lake import slices
from epsjoin.lake.arrow import to_binary, to_matrix
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.lake.sample import sample_stored
from epsjoin.local.arguments import check_count, check_seed
from epsjoin.local.verify.brute_force import Ids, QueryPairs, neighbours_by_brute_force
from epsjoin.local.verify.choice import Cells, missed_probability, points_of_cells
from epsjoin.local.verify.compare import Labels, check_labels, compare_pairs
from epsjoin.spark.checks.all_rows import find_duplicates, find_faults, scan_pairs
from epsjoin.spark.checks.ends import find_end_faults
from epsjoin.spark.checks.faults import (
    DEGREE,
    GONE,
    PAIR,
    PAIR_ROWS,
    Faults,
    read_files,
    to_batch,
)
from epsjoin.spark.checks.scores import compare_random_scores, find_score_faults
from epsjoin.spark.checks.some_rows import read_some, stream_points
from epsjoin.spark.cluster.from_pairs import CLUSTERS
from epsjoin.spark.job.job import Job
from epsjoin.spark.job.same_params import check_same_params

MAX_POINTS_PER_CELL = 50
"""Maximum number of points of one cell that are checked."""

MAX_NEIGHBOURS = 5_000_000
"""Maximum number of neighbours that the driver holds; if the checked points have more, fewer are checked."""

ERROR_FRACTIONS = 0.001, 0.05
"""Fractions of wrong points and of wrong cells for which the probability to miss all of them is printed."""

_POINTS = "id long, point binary, cell long, fault string"


@dataclass(frozen=True)
class Request:
    """How much to check: the numbers of random points, of random cells, and of random scores; their seed."""

    points: int = 1000
    cells: int = 20
    seed: int = 0
    scores: int = 100


def verify_tables(job: Job, request: Request) -> dict[str, float]:
    """Check the run's slices of ``pairs`` and, where they are, ``clusters`` and ``outliers``; writes nothing.

    1. The tables belong together: one eps, pairs made from these points and this plan, outliers from these
       pairs and clusters.
    2. Random points, and the points of random cells, are joined with all points by brute force; their
       stored pairs and labels must be the same, distances bit for bit.
    3. All pairs: left_id below right_id, the distance of the two points, bit for bit, within eps, ids that
       points has, none twice (of more than ``MAX_COUNTED_PAIRS``, a sample of about that many).
    4. All labels: one row per point, the degree that follows from the stored pairs, core where it is
       ``min_pts`` or more, noise in no cluster and without a core point within eps, border points in the
       cluster of their nearest core point, core points of a pair in one cluster, clusters named by a core
       point of their own, all core points of a cluster connected by chains of them (of clusters with up to
       ``MAX_CHAINED_CORES``).
    5. All scores: one row per point, degree and noise of ``clusters``, ranks 1 to n in the order of the
       scores, the k-distance of each point with k pairs or more.
    6. The scores of random points are computed by brute force; k-distances and factors must be the same, bit
       for bit.
    7. Every file has the rows that its table's log says.

    Tasks read the files themselves, batch by batch; the driver holds the checked points, their neighbours
    and the labels of these.

    Raises
    ------
    ArgumentError
        A number of the request is out of its range; the run was made with other parameters; or the data set
        has documents or matches, which only the gate checks.
    DataRefusedError
        The tables are wrong. The message has the first fault; up to ``MAX_SHOWN`` are printed.
    TableError
        ``points``, ``epsilon``, ``join_plan`` or ``pairs`` has no slice of this run.
    """
    check_count("--points", request.points)
    check_count("--cells", request.cells, 0)
    check_count("--scores", request.scores, 0)
    check_seed("--seed", request.seed)
    _refuse_other_chains(job.lake.source)
    check_same_params(job, "verify")
    tables, faults = _Tables.of(job), Faults()
    faults.add(_compare_versions(job, tables))
    request, per_cell = _limit_request(request, tables.n_points, tables.n_pairs)
    try:
        ids, points, n_cells = _choose_points(job, request, per_cell, faults)
    except TableError as error:
        faults.add([str(error)])
    faults.refuse()
    n_random, n_random_cells = min(request.points, tables.n_points), min(request.cells, n_cells)
    say(
        f"verify: {counted(n_random, 'random point')} and {n_random_cells:,} of {n_cells:,} cells, "
        f"{counted(len(ids), 'point')} together, against all {tables.n_points:,} by brute force"
    )
    found = _find_neighbours(job, ids, points, tables.eps, faults)
    n_scores = _check_stored(job, request, tables, ids, found, faults)
    faults.refuse()

    points_missed = missed_probability(ERROR_FRACTIONS[0], tables.n_points, n_random)
    cells_missed = missed_probability(ERROR_FRACTIONS[1], n_cells, n_random_cells)
    say(_say_neighbours(tables.has_clusters, len(found.query)))
    say(_say_scores(tables.has_outliers, n_scores, tables.n_points))
    say(
        f"verify: if {ERROR_FRACTIONS[0]:.1%} of the points had a wrong list of neighbours, this check would "
        f"have missed it with probability {points_missed:.2g}; if all points in {ERROR_FRACTIONS[1]:.0%} of "
        f"the cells had, with {cells_missed:.2g} by the cells alone"
    )
    return {
        "points_checked": float(len(ids)),
        "cells_checked": float(n_random_cells),
        "neighbours_checked": float(len(found.query)),
        "scores_checked": float(n_scores),
        "missed_probability": points_missed,
    }


class _Tables(NamedTuple):
    """What there is to check: numbers of rows, the eps, and whether there are labels and scores."""

    n_points: int
    n_pairs: int
    eps: float
    has_clusters: bool
    has_outliers: bool

    @classmethod
    def of(cls, job: Job) -> _Tables:
        lake, run = job.lake, job.run
        n_points, n_pairs = (slices.count_rows(lake, Slice(table, run)) for table in ("points", "pairs"))
        eps = float(slices.read_row(lake, Slice("join_plan", run))["eps"])
        runs = [slices.list_runs(lake, table) for table in ("clusters", "outliers")]
        return cls(n_points, n_pairs, eps, *(run in each for each in runs))


def _refuse_other_chains(source: SourceContract) -> None:
    """Refuse a data set whose results are not pairs of points within eps."""
    if source.tree:
        raise ArgumentError(
            f"verify checks pairs of points, {source.name} has documents; run the gate quality_results, "
            "which holds their pairs against candidates, and compare some by epsjoin.tree_distance"
        )
    if source.match is not None:
        raise ArgumentError(
            f"verify checks pairs of points, {source.name} has matches; run the gate quality_matches, "
            "and compare some by epsjoin.bestmatch_join"
        )


def _check_stored(
    job: Job, request: Request, tables: _Tables, ids: Ids, found: QueryPairs, faults: Faults
) -> int:
    """Check what is stored of the chosen points and of all; return how many scores were computed again.

    Parameters
    ----------
    ids, found : the chosen points, and their neighbours by brute force.
    faults : what is wrong is added to it.
    """
    passed = scan_pairs(job, ids, tables.eps).persist()
    stored, are_whole = _split_rows(passed.where(F.col("kind") != DEGREE).toArrow(), faults)
    faults.add(compare_pairs(found, stored))
    if tables.has_clusters:
        labels, of_labels = _read_labels(job, np.unique(np.concatenate([ids, found.other])))
        are_whole &= not faults.add(of_labels)
        faults.add(check_labels(ids, found, labels, job.params.min_pts))
    n_scores = 0
    if tables.has_outliers:
        n_scores, scores_are_whole = compare_random_scores(
            job, request.scores, request.seed, tables.n_points, faults
        )
        are_whole &= scores_are_whole
    if are_whole:  # Spark's own scan would fail if a file is missing
        faults.add(find_duplicates(job, tables.n_pairs))
        faults.add(find_faults(job, passed, tables.has_clusters))
        faults.add(find_end_faults(job, tables.has_clusters, tables.has_outliers))
        if tables.has_outliers:
            faults.add(find_score_faults(job, tables.n_points, tables.eps, tables.has_clusters))
    passed.unpersist()
    return n_scores


def _say_neighbours(has_clusters: bool, n_neighbours: int) -> str:
    if not has_clusters:
        return (
            f"verify: {n_neighbours:,} neighbours are right, and all rows fit one another; clusters has no "
            "slice of this run, so no label was checked"
        )
    return f"verify: {n_neighbours:,} neighbours and their labels are right, and all rows fit one another"


def _say_scores(has_outliers: bool, n_scores: int, n_points: int) -> str:
    if not has_outliers:
        return "verify: outliers has no slice of this run, so no score was checked"
    if not n_scores:
        return "verify: all ranks fit the scores, none of which was computed again"
    missed = missed_probability(ERROR_FRACTIONS[1], n_points, n_scores)
    return (
        f"verify: all ranks fit the scores, and the LOF of {counted(n_scores, 'random point')} is right; if "
        f"{ERROR_FRACTIONS[1]:.0%} of the points had a wrong LOF that leaves all ranks right, this check "
        f"would have missed it with probability {missed:.2g}"
    )


def _compare_versions(job: Job, tables: _Tables) -> Iterator[str]:
    """Faults if the tables were made from different ones."""
    of_fit = float(slices.read_row(job.lake, Slice("epsilon", job.run))["eps"])
    if of_fit != tables.eps:
        yield f"epsilon of run {job.run} is {of_fit!r}, pairs were joined with {tables.eps!r}"
    for table in ("pairs", "outliers") if tables.has_outliers else ("pairs",):
        try:
            slices.files_of(job.lake, Fingerprints(job.lake, job.run, is_made_now=True).slice(table))
        except TableError as error:
            yield str(error)


def _limit_request(request: Request, n_points: int, n_pairs: int) -> tuple[Request, int]:
    """Reduce the request, and the points per cell, if their neighbours would be too many for the driver."""
    request = replace(request, points=min(request.points, max(1, n_points)))
    neighbours = (request.points + request.cells * MAX_POINTS_PER_CELL) * 2 * n_pairs / max(1, n_points)
    if neighbours <= MAX_NEIGHBOURS:
        return request, MAX_POINTS_PER_CELL
    fraction = MAX_NEIGHBOURS / neighbours
    fewer = replace(request, points=math.ceil(request.points * fraction))
    say(
        f"verify: points have {2 * n_pairs / n_points:,.0f} neighbours, so {fewer.points:,} are checked, "
        f"not {request.points:,}"
    )
    return fewer, math.ceil(MAX_POINTS_PER_CELL * fraction)


def _choose_points(
    job: Job, request: Request, per_cell: int, faults: Faults
) -> tuple[Ids, NDArray[np.float64], int]:
    """Choose the points to check: ids and coordinates, sorted by id, and the number of occupied cells."""
    dimensions, location = len(job.lake.source.coordinates), job.lake.location("points")
    ids, points = sample_stored(job.lake, job.run, request.points, request.seed)
    if not len(ids):
        return ids, points, 0
    cells = Cells.over(points, request.seed)

    def choose(file: File) -> Iterator[pa.RecordBatch]:
        held, held_points = np.empty(0, np.int64), np.empty((0, dimensions))
        occupied = np.empty(0, np.int64)
        for some, of_some in stream_points(location, file, dimensions):
            occupied = np.union1d(occupied, cells.of(of_some))
            held, held_points = np.concatenate([held, some]), np.concatenate([held_points, of_some])
            chosen = points_of_cells(held, held_points, cells, request.cells, per_cell)
            held, held_points = held[chosen], held_points[chosen]
        yield to_batch(_POINTS, id=held, point=to_binary(held_points))
        yield to_batch(_POINTS, cell=occupied)

    taken = read_files(job, "points", choose, _POINTS)
    if faults.add(taken["fault"].drop_null().to_pylist()):
        return ids, points, 0
    of_cells = taken.filter(pc.is_valid(taken["id"]))
    cell_ids = of_cells["id"].to_numpy()
    cell_points = to_matrix(of_cells["point"].combine_chunks(), dimensions)
    chosen = points_of_cells(cell_ids, cell_points, cells, request.cells, per_cell)
    ids, first = np.unique(np.concatenate([ids, cell_ids[chosen]]), return_index=True)
    points = np.concatenate([points, cell_points[chosen]])[first]
    return ids, points, len(taken["cell"].drop_null().unique())


def _find_neighbours(
    job: Job, ids: Ids, points: NDArray[np.float64], eps: float, faults: Faults
) -> QueryPairs:
    source, location = job.lake.source, job.lake.location("points")
    shared = job.spark.sparkContext.broadcast((ids, points))
    dimensions, metric = len(source.coordinates), source.metric

    def compare(file: File) -> Iterator[pa.RecordBatch]:
        for others in stream_points(location, file, dimensions):
            found = neighbours_by_brute_force(*shared.value, *others, eps, metric)
            yield to_batch(PAIR_ROWS, PAIR, a=found.query, b=found.other, distance=found.distance)

    return _split_rows(read_files(job, "points", compare, PAIR_ROWS), faults)[0]


def _read_labels(job: Job, ids: Ids) -> tuple[Labels, list[str]]:
    rows, broken = read_some(job, "clusters", ids, CLUSTERS)
    ids, cluster_id, degree = (rows[name].to_numpy() for name in ("id", "cluster_id", "degree"))
    return Labels(ids, cluster_id, np.array(rows["role"].to_pylist(), np.str_), degree), broken


def _split_rows(rows: pa.Table, faults: Faults) -> tuple[QueryPairs, bool]:
    """Add the faults among the rows; return the pairs, and whether every file could be read."""
    faults.add(rows["fault"].drop_null().to_pylist())
    is_gone = pc.any(pc.equal(rows["kind"], GONE)).as_py()
    pairs = rows.filter(pc.equal(rows["kind"], PAIR))
    return QueryPairs(*(pairs[name].to_numpy() for name in ("a", "b", "distance"))), not is_gone
