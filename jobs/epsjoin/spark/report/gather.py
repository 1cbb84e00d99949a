"""Gathers what a run's report shows from the run's tables; bounded, however large the tables are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import MissingSliceError
from epsjoin.findings import Findings, Row
from epsjoin.lake import held, slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.names import count_names
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours.from_pairs import Neighbours
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.sizes import WORKER_BYTES, row_bytes
from epsjoin.pipeline import TABLES
from epsjoin.source.values import kind_of
from epsjoin.spark.arrow import Task
from epsjoin.spark.epsilon.k_distances import PairCounts, k_distances, other_eps
from epsjoin.spark.job import Job
from epsjoin.spark.join.base import INCREMENT
from epsjoin.spark.neighbours.nearest import nearest_of
from epsjoin.spark.points import stored_reading
from epsjoin.spark.report.clusters import count_clusters, find_centres, sample_map
from epsjoin.spark.report.comparison import find_comparison
from epsjoin.spark.report.names import choose_label, name_record, read_records
from epsjoin.spark.stored import Scan, StoredSlice

MAX_REASONS = 20
"""Maximum number of reasons for refusals that are shown, the most frequent first."""

MAX_EXAMPLES = 5
"""Maximum number of refused records that are shown."""

MAX_OUTLIERS = 20
"""Maximum number of outliers that are shown, by rank."""

N_NEAREST = 3
"""Number of nearest points that are shown of each outlier."""

MAX_RUNS = 12
"""Maximum number of runs in the trends, the reported run included."""


Counters = Mapping[str, Mapping[str, float]]
"""Job to counter to value."""


def gather(job: Job) -> Findings:
    """Gather everything that the report of a run shows.

    Raises
    ------
    TableError
        A table has no slice of this run, or one that was made from other tables than the rest.
    """
    lake, run, source = job.lake, job.run, job.lake.source
    # all fingerprints are taken before a table is read, so that what is replaced in between shows
    inputs = Fingerprints(lake, run)
    try:
        of = inputs.slices()
    except MissingSliceError:  # an older version has made the run, without a comparison
        of = inputs.slices(
            name for name, table in TABLES.items() if table.gate and table.written_by != "compare"
        )

    label = choose_label(source)
    points, clusters, outliers = (
        StoredSlice.of(job, of[name]) for name in ("points", "clusters", "outliers")
    )
    counters = _read_own_counters(lake, run)
    candidates = counters.get("merge_join", {}).get("candidates")

    epsilon = slices.read_row(lake, of["epsilon"])
    curve = slices.read_slice(lake, of["epsilon_curve"]).sort_by("radius")
    eps, k = float(epsilon["eps"]), job.params.n_neighbours
    counts = PairCounts(
        curve["radius"].to_numpy(),
        curve["pairs"].to_numpy(),
        epsilon["exponent"],
        eps,
        float(epsilon["expected_pairs"]),
        points.n,
        int(epsilon["n_sample"]),
    )
    k_curve = k_distances(outliers, eps)

    counted = count_clusters(clusters)
    largest, first = counted["largest_clusters"], find_outliers(outliers)
    nearest = find_nearest(points, [row["id"] for row in first])
    # a cluster's id is the id of its smallest core point, and that point names the cluster
    named = [
        *(row["cluster_id"] for row in largest),
        *(row["id"] for row in first),
        *nearest.neighbour.tolist(),
    ]
    records = read_records(points, np.array(named, np.int64))
    centres = find_centres(clusters, points, largest)

    drawn = sample_map(clusters, points, job.params.seed)
    comparison = find_comparison(job, drawn["map_axes"], label)
    with_points = slices.list_runs_before(lake, run)
    run_before = comparison.against if comparison else max(with_points, default="")
    findings = Findings(
        dataset=source.name,
        title=source.title,
        run=run,
        metric=source.metric,
        unit=source.unit,
        coordinates=source.coordinates,
        key=source.key,
        params=job.params.in_use(),
        n_points=points.n,
        n_pairs=slices.count_rows(lake, of["pairs"]),
        **_gather_input(job, of["snapshots"], of["quarantine"]),
        **counted,
        **drawn,
        epsilon=epsilon,
        curve_radius=curve["radius"].to_numpy(),
        curve_pairs=curve["pairs"].to_numpy(),
        curve_in_fit=curve["in_fit"].to_numpy(zero_copy_only=False),
        plan=_describe_plan(job, inputs.row("join_plan")),
        n_replicas=slices.count_rows(lake, of["replicas"]),
        n_candidates=None if candidates is None else int(candidates),
        counters=counters,
        is_geographic=bool(source.latitude),
        outliers=_describe_outliers(first, nearest, records, source, label),
        label=label or "",
        quality=slices.read_quality(lake, run),
        k=k,
        k_distance=k_curve.distance,
        k_share=k_curve.share,
        other_eps=other_eps(counts, k_curve),
        run_before=run_before,
        trends=make_trends_before(lake, run, counters),
        seconds_before=_select_seconds(_read_own_counters(lake, run_before), counters) if run_before else {},
        comparison=comparison,
        guard=_read_guard(lake, of["guard"]),
        held=held.read(lake, run),
    )
    return replace(
        findings,
        largest_clusters=[
            {
                **row,
                "centre": centres[row["cluster_id"]],
                **name_record(records[row["cluster_id"]], source, label),
            }
            for row in largest
        ],
        trends=[*findings.trends, _make_trend(findings, *count_names(lake, run))],
    )


def _read_guard(lake: Lake, where: Slice) -> list[dict[str, Any]]:
    """Read what the guard found, by check; empty if an older version has made the run."""
    try:
        return list(slices.read_slice(lake, where).sort_by("check").to_pylist())
    except MissingSliceError:
        return []


def _describe_plan(job: Job, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of ``join_plan`` with what its plan expects of the largest part and of one core."""
    known = {name: value for name, value in row.items() if name != "plan"}
    if row["kind"] == INCREMENT:  # it has no parts
        return known
    plan = JoinPlan.from_json(row["plan"])
    part_bytes = plan.expected_part_rows * row_bytes(len(job.lake.source.coordinates))
    return {
        **known,
        "expected_part_rows": plan.expected_part_rows,
        "expected_worker_bytes": WORKER_BYTES + part_bytes,
        "expected_seconds": plan.expected_seconds,
    }


def _gather_input(job: Job, of_snapshots: Slice, of_quarantine: Slice) -> dict[str, Any]:
    """Gather the fields of ``Findings`` about the input of the run.

    Parameters
    ----------
    of_snapshots, of_quarantine : the slices of ``snapshots`` and ``quarantine``.
    """
    snapshots = slices.read_slice(job.lake, of_snapshots).to_pylist()
    named = {column.name for column in job.lake.source.columns}
    found = {name for row in snapshots for name in json.loads(row["columns"])}
    quarantine = StoredSlice.of(job, of_quarantine)
    return {
        "snapshots": snapshots,
        "unknown_columns": tuple(sorted(found - named)),
        "quarantine_reasons": count_reasons(quarantine),
        "quarantine_examples": find_examples(quarantine),
    }


def count_reasons(quarantine: StoredSlice) -> dict[str, int]:
    """Count the refused records by reason, the most frequent first, at most ``MAX_REASONS`` reasons.

    As in the job ingest, a reason is counted without the value in it.
    """
    reasons: Counter[str] = Counter()
    for batch in quarantine.scan(["line", "reason"], _count_reasons):
        reasons.update(dict(zip(batch["kind"].to_pylist(), batch["records"].to_pylist(), strict=True)))
    return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:MAX_REASONS])


def _count_reasons(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    counts: Counter[str] = Counter()
    for batch in batches:
        of_records = batch["reason"].filter(batch["line"].is_valid())
        for each in of_records.value_counts().to_pylist():
            counts[kind_of(each["values"])] += each["counts"]
    yield pa.record_batch(
        {"kind": pa.array(counts.keys(), pa.string()), "records": pa.array(counts.values(), pa.int64())}
    )


def find_examples(quarantine: StoredSlice) -> list[dict[str, Any]]:
    """Find the first refused records by file and line; a file that was refused as a whole comes first."""
    places = [
        place for batch in _find_first(quarantine.scan(_PLACE, _find_first)) for place in batch.to_pylist()
    ]

    def is_first(batch: pa.RecordBatch) -> NDArray[np.bool_]:
        found = np.zeros(batch.num_rows, np.bool_)
        line = pc.fill_null(batch["line"], 0)
        for place in places:
            both = pc.and_(pc.equal(batch["source"], place["source"]), pc.equal(line, place["line"]))
            found |= both.to_numpy(zero_copy_only=False)
        return found

    names = [name for name in quarantine.schema.names if name != "run"]
    rows = quarantine.take(_PLACE, is_first, names).to_pylist()
    return sorted(rows, key=lambda row: (row["source"], row["line"] or 0))[:MAX_EXAMPLES]


_PLACE = ("source", "line")
"""Columns of ``quarantine`` that say where a record stands; of a whole file the line is null."""


def _find_first(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Find the first places of refused records, at most ``MAX_EXAMPLES``; the line of a whole file is 0."""
    first = pa.table({"source": pa.array([], pa.string()), "line": pa.array([], pa.int64())})
    for batch in batches:
        rows = pa.table({"source": batch["source"], "line": pc.fill_null(batch["line"], 0)})
        first = pa.concat_tables([first, rows])
        keys = [(name, "ascending") for name in _PLACE]
        first = first.take(pc.select_k_unstable(first, MAX_EXAMPLES, keys))
    yield from first.to_batches()


def find_outliers(outliers: StoredSlice) -> list[dict[str, Any]]:
    """Find the first outliers by rank, with ``tied`` (see :func:`find_ties`)."""
    names = [name for name in outliers.schema.names if name != "run"]
    rows = outliers.take(["rank"], lambda batch: batch["rank"].to_numpy() <= MAX_OUTLIERS, names)
    first = rows.sort_by("rank").to_pylist()
    return [{**row, "tied": ranks} for row, ranks in zip(first, find_ties(first, outliers.scan), strict=True)]


def find_ties(rows: Sequence[Row], scan: Scan) -> list[tuple[int, int]]:
    """Find for each of the first outliers the first and the last rank of the points that only ids order.

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


def find_nearest(points: StoredSlice, ids: Sequence[int]) -> Neighbours:
    """Find the nearest other points of each of these, however far."""
    source, reading = points.job.lake.source, stored_reading(points.job.lake)
    few = reading.arrays(points.take_ids(np.array(ids, np.int64), ["id", "point"]))
    return nearest_of(points.scan, reading, few, get_metric(source.metric), N_NEAREST)


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


def _read_own_counters(lake: Lake, run: str) -> Counters:
    """Read what the jobs of a run counted, without the report, which cannot know its own counters."""
    return {job: of_job for job, of_job in slices.read_counters(lake, run).items() if job != "report"}


def _select_seconds(counters: Counters, beside: Counters) -> dict[str, float]:
    """Select the wall-clock time of every job whose time was taken as that of the same job ``beside`` was.

    Jobs of earlier versions counted from the start of the step, those of today from that of their process,
    and then they have ``seconds_start``, too. The two are not compared.
    """
    return {
        job: of_job["seconds"]
        for job, of_job in counters.items()
        if "seconds" in of_job and ("seconds_start" in of_job) == ("seconds_start" in beside.get(job, of_job))
    }


def make_trends_before(lake: Lake, run: str, beside: Counters) -> list[dict[str, Any]]:
    """Make a row for each of the last runs before this one, oldest first, as ``findings`` describes it.

    Parameters
    ----------
    beside : counters of this run; a run with a job whose time was taken otherwise has no ``seconds``.

    Notes
    -----
    Read from the logs of ``points`` and ``pairs``, and from ``job_metrics`` and ``quality``: no large table
    is read, however many runs there are.
    """
    points, pairs = (slices.count_rows_by_run(lake, table) for table in ("points", "pairs"))
    rows = []
    for other in slices.list_runs_before(lake, run)[-(MAX_RUNS - 1) :]:
        counters = _read_own_counters(lake, other)
        clusters = counters.get("cluster", {})
        born, ended = count_names(lake, other)
        rows.append(
            {
                "run": other,
                "points": points[other],
                "pairs": pairs.get(other),
                "eps": counters.get("fit_epsilon", {}).get("eps"),
                "clusters": clusters.get("clusters"),
                "noise": clusters.get("noise"),
                "refused": counters.get("ingest", {}).get("rows_quarantined"),
                "errors": _count_errors(slices.read_quality(lake, other)),
                "born": born,
                "ended": ended,
                "seconds": _add_seconds(counters, beside),
            }
        )
    return rows


def _make_trend(findings: Findings, born: int | None, ended: int | None) -> dict[str, Any]:
    """Make the run's own row of the trends from what its page shows."""
    return {
        "run": findings.run,
        "points": findings.n_points,
        "pairs": findings.n_pairs,
        "clusters": findings.n_clusters,
        "noise": findings.n_noise,
        "eps": findings.epsilon["eps"],
        "refused": findings.n_quarantined,
        "errors": _count_errors(findings.quality),
        "born": born,
        "ended": ended,
        "seconds": _add_seconds(findings.counters, findings.counters),
    }


def _add_seconds(counters: Counters, beside: Counters) -> float | None:
    """Add up the times of all jobs; ``None`` if there is none, or if one was taken otherwise."""
    timed = {job for job, of_job in counters.items() if "seconds" in of_job}
    selected = _select_seconds(counters, beside)
    return sum(selected.values()) or None if selected.keys() == timed else None


def _count_errors(quality: Sequence[Row]) -> int | None:
    """Count the broken expectations of severity error; ``None`` if nothing was checked."""
    return sum(not row["success"] and row["severity"] == "error" for row in quality) if quality else None
