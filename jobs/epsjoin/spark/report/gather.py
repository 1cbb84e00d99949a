"""Gathers what a run's report shows from the run's tables; bounded, however large the tables are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import MissingSliceError
from epsjoin.findings import Comparison, Findings, Row
from epsjoin.lake import refusals, slices
from epsjoin.lake.cluster_names import count_names
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours.from_pairs import Neighbours
from epsjoin.local.plan.sizes import WORKER_BYTES
from epsjoin.local.plan.stored import read_plan
from epsjoin.pipeline import TABLES, tables_up_to
from epsjoin.spark.epsilon.k_distances import PairCounts, k_distances, other_eps
from epsjoin.spark.job.job import Job
from epsjoin.spark.job.same_params import check_same_params
from epsjoin.spark.join.base import INCREMENT
from epsjoin.spark.neighbours.nearest import nearest_of
from epsjoin.spark.points.points import stored_reading
from epsjoin.spark.report.clusters import find_centres
from epsjoin.spark.report.comparison import find_comparison
from epsjoin.spark.report.deviations import DeviationSample
from epsjoin.spark.report.documents import find_alike
from epsjoin.spark.report.intake import gather_intake
from epsjoin.spark.report.map_sample import sample_map
from epsjoin.spark.report.names import choose_label, name_record, read_records
from epsjoin.spark.report.sizes import count_clusters
from epsjoin.spark.report.trends import make_trend, make_trends_before, read_own_counters, select_seconds
from epsjoin.spark.rows.stored import StoredSlice
from epsjoin.spark.tasks.arrow import Scan, Task

MAX_OUTLIERS = 20
"""Maximum number of outliers that are shown, by rank."""

N_NEAREST = 3
"""Number of nearest points that are shown of each outlier."""


def gather(job: Job) -> Findings:
    """Gather everything that the report of a run shows.

    Raises
    ------
    TableError
        A table has no slice of this run, or one that was made from other tables than the rest.
    ArgumentError
        See :func:`check_same_params`.
    """
    check_same_params(job, "report")
    lake, run, source = job.lake, job.run, job.lake.source
    # all fingerprints are taken before a table is read, so that replaced tables are noticed
    inputs = Fingerprints(lake, run, is_made_now=True)
    of = _find_slices(job, inputs)
    label = choose_label(source)
    points, clusters, outliers = (
        StoredSlice.of(job, of[name]) for name in ("points", "clusters", "outliers")
    )
    counters = read_own_counters(lake, run)
    drawn = sample_map(clusters, points, job.params.seed)
    comparison = find_comparison(job, drawn["map_axes"], label)
    with_points = slices.list_runs_before(lake, run)
    run_before = comparison.against if comparison else max(with_points, default="")
    shown = _gather_clusters_and_outliers(points, clusters, outliers, label)
    names = _names_given(comparison)
    largest = [{**row, "called": names.get(row["cluster_id"])} for row in shown["largest_clusters"]]
    findings = Findings(
        **vars(gather_intake(job, of["snapshots"], of["quarantine"])),
        run=run,
        metric=source.metric,
        unit=source.unit,
        coordinates=source.coordinates,
        params=job.params.in_use(),
        n_points=points.n,
        **{**shown, "largest_clusters": largest},
        **drawn,
        **_gather_epsilon(job, of, points.n, outliers),
        **_gather_join(job, of, inputs.row("join_plan"), counters),
        counters=counters,
        is_geographic=bool(source.latitude),
        quality=slices.read_quality(lake, run),
        run_before=run_before,
        trends=make_trends_before(lake, run, counters),
        seconds_before=select_seconds(read_own_counters(lake, run_before), counters) if run_before else {},
        comparison=comparison,
        guard=_read_guard(lake, of["guard"]),
        refusal=refusals.read(lake, run),
        alike=find_alike(
            clusters, StoredSlice.of(job, of["pairs"]), points, shown["largest_clusters"], label
        ),
    )
    trends = [*findings.trends, make_trend(findings, *count_names(inputs))]
    return replace(findings, trends=trends)


def _names_given(comparison: Comparison | None) -> dict[int, str]:
    """Return what clusters of the run are called by the pictures, by cluster_id."""
    if comparison is None:
        return {}
    return {
        cluster_id: comparison.called(name)
        for name, cluster_id in comparison.cluster_ids.items()
        if name in comparison.labels or name != cluster_id
    }


def _find_slices(job: Job, inputs: Fingerprints) -> dict[str, Slice]:
    """Find the slices of the run by table, also if an older version has made the run."""
    names = list(tables_up_to("results", job.lake.source.chain))
    if job.run not in slices.list_runs(job.lake, "value_counts"):
        names.remove("value_counts")
    try:
        return inputs.slices(names)
    except MissingSliceError:  # made by a still older version, without a comparison
        return inputs.slices(name for name in names if TABLES[name].written_by != "compare")


def _gather_epsilon(job: Job, of: Mapping[str, Slice], n_points: int, outliers: StoredSlice) -> Row:
    """Gather how eps was chosen, and what another eps would find; fields of ``Findings``."""
    epsilon = slices.read_row(job.lake, of["epsilon"])
    curve = slices.read_slice(job.lake, of["epsilon_curve"]).sort_by("radius")
    eps = float(epsilon["eps"])
    counts = PairCounts(
        curve["radius"].to_numpy(),
        curve["pairs"].to_numpy(),
        epsilon["exponent"],
        eps,
        float(epsilon["expected_pairs"]),
        n_points,
        int(epsilon["n_sample"]),
    )
    k_curve = k_distances(outliers, eps)
    return {
        "epsilon": epsilon,
        "curve_radius": counts.radius,
        "curve_pairs": counts.pairs,
        "curve_in_fit": curve["in_fit"].to_numpy(zero_copy_only=False),
        "k": job.params.n_neighbours,
        "k_distance": k_curve.distance,
        "k_distance_fraction": k_curve.fraction,
        "other_eps": other_eps(counts, k_curve),
    }


def _gather_join(job: Job, of: Mapping[str, Slice], plan: Row, counters: Mapping[str, Row]) -> Row:
    """Gather what the join was planned to do and has done; fields of ``Findings``."""
    candidates = counters.get("merge_join", {}).get("candidates")
    return {
        "plan": _describe_plan(plan),
        "n_replicas": slices.count_rows(job.lake, of["replicas"]),
        "n_candidates": None if candidates is None else int(candidates),
        "n_pairs": slices.count_rows(job.lake, of["pairs"]),
    }


def _gather_clusters_and_outliers(
    points: StoredSlice, clusters: StoredSlice, outliers: StoredSlice, label: str | None
) -> Row:
    """Gather the counts of clusters, and the largest and the first outliers by name; fields of ``Findings``.

    The records of all points that are named are read at once, and all coordinates once for the nearest points
    and for what sets clusters apart.
    """
    source = points.job.lake.source
    counted, first = count_clusters(clusters.n, clusters.scan), find_outliers(outliers)
    largest = counted["largest_clusters"]
    sample = DeviationSample.of(points)
    centres = find_centres(clusters, points, largest, sample.described.members)
    nearest = find_nearest(points, [row["id"] for row in first], sample.scan)
    # a cluster's id is the id of its smallest core point, and that point names the cluster
    named = [
        *(row["cluster_id"] for row in largest),
        *(row["id"] for row in first),
        *nearest.neighbour.tolist(),
    ]
    records = read_records(points, np.array(named, np.int64))
    return {
        **counted,
        "largest_clusters": [
            {
                **row,
                "centre": centres[row["cluster_id"]],
                "dimensions": dimensions,
                **name_record(records[row["cluster_id"]], source, label),
            }
            for row, dimensions in zip(largest, sample.describe(len(largest)), strict=True)
        ],
        "n_usual": sample.described.n_usual,
        "n_of_cluster": sample.described.members.limit,
        "outliers": _describe_outliers(first, nearest, records, source, label),
    }


def _read_guard(lake: Lake, where: Slice) -> list[dict[str, Any]]:
    """Read what the guard found, by check; empty if an older version has made the run."""
    try:
        return list(slices.read_slice(lake, where).sort_by("check").to_pylist())
    except MissingSliceError:
        return []


def _describe_plan(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of ``join_plan`` with what its plan expects of the largest part and of one core."""
    known = {name: value for name, value in row.items() if name not in ("plan", "placed_ids", "gone_ids")}
    if row["kind"] == INCREMENT:  # it has no parts
        return known
    plan = read_plan(row["plan"])
    return {
        **known,
        "expected_part_rows": plan.expected_part_rows,
        "expected_worker_bytes": WORKER_BYTES + plan.expected_part_rows * plan.row_bytes,
        "expected_seconds": plan.expected_seconds,
    }


def find_outliers(outliers: StoredSlice) -> list[dict[str, Any]]:
    """Find the first outliers by rank, with ``tied`` (see :func:`find_ties`)."""
    names = [name for name in outliers.schema.names if name != "run"]
    rows = outliers.take(["rank"], lambda batch: batch["rank"].to_numpy() <= MAX_OUTLIERS, names)
    first = rows.sort_by("rank").to_pylist()
    return [{**row, "tied": ranks} for row, ranks in zip(first, find_ties(first, outliers.scan), strict=True)]


def find_ties(rows: Sequence[Row], scan: Scan) -> list[tuple[int, int]]:
    """Find for each of the first outliers the first and the last rank of those that only their ids order.

    Parameters
    ----------
    rows : the first rows of ``outliers``, by rank from 1.
    scan : of all rows of ``outliers``. Points that are tied follow one another, so only those that are tied
        with the last one of ``rows`` are looked for.
    """
    if not rows:
        return []
    scores = [_score_of(row) for row in rows]
    last = [batch["last"][0].as_py() for batch in scan(_SCORES, _make_search(rows[-1]))]
    ends = {score: number for number, score in enumerate(scores, 1)} | {scores[-1]: max(last)}
    return [(scores.index(score) + 1, ends[score]) for score in scores]


_SCORES = ("rank", "k_distance", "lof")


def _score_of(row: Row) -> tuple[float | None, float | None]:
    """Return the numbers that decide on an outlier's rank, as ``local.neighbours.rank`` sorts."""
    return row["lof"], row["k_distance"]


def _make_search(row: Row) -> Task:
    """Find the last rank with the scores of this row."""
    scores = dict(zip(("lof", "k_distance"), _score_of(row), strict=True))

    def search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        last = 0
        for batch in batches:
            lof, k_distance = (
                batch[name].is_null() if score is None else pc.equal(batch[name], score)
                for name, score in scores.items()
            )
            last = max(last, pc.max(batch["rank"].filter(pc.and_(lof, k_distance))).as_py() or 0)
        yield pa.record_batch({"last": pa.array([last], pa.int64())})

    return search


def find_nearest(points: StoredSlice, ids: Sequence[int], scan: Scan) -> Neighbours:
    """Find the nearest other points of each of these, however far, by a scan of the points."""
    source, reading = points.job.lake.source, stored_reading(points.job.lake)
    few = reading.arrays(points.take_ids(np.array(ids, np.int64), ["id", "point"]))
    return nearest_of(scan, reading, few, get_metric(source.point_metric), N_NEAREST)


def _describe_outliers(
    first: Sequence[Row],
    nearest: Neighbours,
    records: Mapping[int, Row],
    source: SourceContract,
    label: str | None,
) -> list[dict[str, Any]]:
    """Describe the first outliers, as ``Findings.outliers`` has them.

    Parameters
    ----------
    first : their rows.
    nearest : the nearest other points of each.
    records : records of the source by id: of the outliers and of their nearest.
    label : the column that names a point to a person.
    """
    near: dict[int, list[dict[str, Any]]] = {}
    for id_, other, distance in zip(*(column.tolist() for column in nearest), strict=True):
        named = name_record(records[other], source, label)
        near.setdefault(id_, []).append({"id": other, **named, "distance": distance})
    return [
        {
            **row,
            **name_record(records[row["id"]], source, label),
            "columns": records[row["id"]],
            "nearest": near.get(row["id"], []),
        }
        for row in first
    ]
