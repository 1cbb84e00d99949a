"""Verify: random points and cells against brute force, all rows by what is cheap to see."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from epsjoin.console import say
from epsjoin.errors import DataRefusedError, TableError
from epsjoin.lake import parquet, schemas, slices
from epsjoin.lake.arrow import pair_columns, to_binary, to_matrix
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.lake.sample import sample_stored
from epsjoin.local.arguments import check_count
from epsjoin.local.verify import (
    NOISE,
    Cells,
    Labels,
    QueryPairs,
    check_labels,
    compare_pairs,
    missed_probability,
    neighbours_by_brute_force,
    points_of_cells,
)
from epsjoin.spark import scan, tasks
from epsjoin.spark.job import Job

PER_CELL = 50
"""Points that are checked of one cell, at most."""

MOST_NEIGHBOURS = 5_000_000
"""QueryPairs of the checked points that the driver holds; fewer points are checked where they have more."""

MOST_COUNTED = 5_000_000
"""Pairs among which doubles are looked for; of more, those whose hash is small."""

SHOWN = 20
BATCH_ROWS = 1 << 18
SHARES = 0.001, 0.05
"""Shares of wrong points and of wrong cells for which it is said how likely they are missed."""

PAIR, DEGREE, FAULT, GONE = "pair", "degree", "fault", "gone"
"""Kinds of rows that tasks return; GONE is the fault of a file that cannot be read, or has other rows."""

_POINTS = "id long, point binary, cell long, fault string"
_PAIRS = "kind string, a long, b long, distance double, fault string"
_LABELS = "id long, cluster_id long, role string, degree long, fault string"

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Wish:
    """How much to check: random points, random cells, and the seed of both."""

    points: int = 1000
    cells: int = 20
    seed: int = 0


class _Findings:
    """Sentences about what is wrong; the first ``SHOWN`` are kept, all are counted."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.total = 0

    def add(self, sentences: Iterator[str] | Sequence[str]) -> bool:
        """Take the sentences; whether there were any."""
        before = self.total
        for sentence in sentences:
            self.total += 1
            if len(self.first) < SHOWN:
                self.first.append(sentence)
        return self.total > before

    def refuse(self) -> None:
        """Print all and stop, if there are any.

        Raises
        ------
        DataRefusedError
            With the first.
        """
        if not self.total:
            return
        for sentence in self.first:
            say(f"  {sentence}")
        more = "" if self.total == 1 else f" ({self.total:,} findings, {len(self.first)} of them above)"
        raise DataRefusedError(f"the tables are wrong: {self.first[0]}{more}")


def verify_tables(job: Job, wish: Wish) -> dict[str, float]:
    """Check the run's slices of ``pairs`` and, where there is one, ``clusters``; nothing is written.

    1. The tables belong together: one eps, pairs made from these points and this plan.
    2. Random points, and the points of random cells, are joined with all points by brute force; their
       stored pairs and labels must be the same, distances bit for bit.
    3. All pairs: left_id below right_id, distance within eps, ids that points has, none twice (of more than
       ``MOST_COUNTED``, a part of them).
    4. All labels: one row per point, the degree that the stored pairs give, core where it is ``min_pts``,
       noise in no cluster, clusters named by a core point of their own.
    5. Every file has the rows that its table's log says.

    Tasks read the files themselves, batch by batch; the driver holds the checked points, their neighbours
    and the labels of these.

    Raises
    ------
    ArgumentError
        A number of the wish is out of its range.
    DataRefusedError
        Something is wrong: the first finding; those up to ``SHOWN`` are printed.
    TableError
        ``points``, ``epsilon``, ``join_plan`` or ``pairs`` has no slice of this run.
    """
    check_count("--points", wish.points)
    check_count("--cells", wish.cells, 0)
    check_count("--seed", wish.seed, 0)
    lake, run = job.lake, job.run
    findings = _Findings()
    n_points, n_pairs = (
        slices.count_rows(lake, Slice("points", run)),
        slices.count_rows(lake, Slice("pairs", run)),
    )
    eps = float(slices.read_row(lake, Slice("join_plan", run))["eps"])
    findings.add(_of_other_tables(job, eps))
    has_clusters = _has_clusters(job)

    wish, per_cell = _affordable(wish, n_points, n_pairs)
    try:
        ids, points, n_cells = _choose(job, wish, per_cell, findings)
    except TableError as error:
        findings.add([str(error)])
    findings.refuse()
    say(
        f"verify: {wish.points:,} random points and {min(wish.cells, n_cells):,} of {n_cells:,} cells, "
        f"{len(ids):,} points together, against all {n_points:,} by brute force"
    )
    found = _brute_force(job, ids, points, eps, findings)
    passed = _read_pairs(job, ids, eps).persist()
    stored, are_whole = _neighbours(passed.where(F.col("kind") != DEGREE).toArrow(), findings)
    findings.add(compare_pairs(found, stored))
    if has_clusters:
        labels, faults = _labels_of(job, np.unique(np.concatenate([ids, found.other])))
        are_whole &= not findings.add(faults)
        findings.add(check_labels(ids, found, labels, job.params.min_pts))
    if are_whole:  # Spark's own scan would break where a file is not there
        findings.add(_doubles(job, n_pairs))
        findings.add(_faults_of_all(job, passed, has_clusters))
    passed.unpersist()
    findings.refuse()

    also = " and labels" if has_clusters else "; clusters has no slice of this run"
    say(f"verify: {len(found.query):,} neighbours{also} are right, so is what all rows show")
    points_missed = missed_probability(SHARES[0], n_points, min(wish.points, n_points))
    cells_missed = missed_probability(SHARES[1], n_cells, min(wish.cells, n_cells))
    say(
        f"verify: had {SHARES[0]:.1%} of the points a wrong list of neighbours, this check would have missed "
        f"it with probability {points_missed:.2g}; had all points in {SHARES[1]:.0%} of the cells, "
        f"with {cells_missed:.2g} by the cells alone"
    )
    return {
        "points_checked": float(len(ids)),
        "cells_checked": float(min(wish.cells, n_cells)),
        "neighbours_checked": float(len(found.query)),
        "missed_probability": points_missed,
    }


def _of_other_tables(job: Job, eps: float) -> Iterator[str]:
    of_fit = float(slices.read_row(job.lake, Slice("epsilon", job.run))["eps"])
    if of_fit != eps:
        yield f"epsilon of run {job.run} is {of_fit!r}, pairs were joined with {eps!r}"
    try:
        slices.files_of(job.lake, Fingerprints(job.lake, job.run).slice("pairs"))
    except TableError as error:
        yield str(error)


def _has_clusters(job: Job) -> bool:
    try:
        slices.files_of(job.lake, Slice("clusters", job.run))
    except TableError:
        return False
    return True


def _affordable(wish: Wish, n_points: int, n_pairs: int) -> tuple[Wish, int]:
    """The wish and the points per cell, fewer where they would have more neighbours than the driver holds."""
    neighbours = (wish.points + wish.cells * PER_CELL) * 2 * n_pairs / max(1, n_points)
    if neighbours <= MOST_NEIGHBOURS:
        return wish, PER_CELL
    share = MOST_NEIGHBOURS / neighbours
    fewer = Wish(math.ceil(wish.points * share), wish.cells, wish.seed)
    say(
        f"verify: points have {2 * n_pairs / n_points:,.0f} neighbours, so {fewer.points:,} are checked, "
        f"not {wish.points:,}"
    )
    return fewer, math.ceil(PER_CELL * share)


def _choose(job: Job, wish: Wish, per_cell: int, findings: _Findings) -> tuple[Ids, NDArray[np.float64], int]:
    """Ids and coordinates of the points to check, by id, and the number of occupied cells."""
    dimensions, location = len(job.lake.source.coordinates), job.lake.location("points")
    ids, points = sample_stored(job.lake, job.run, wish.points, wish.seed)
    if not len(ids):
        return ids, points, 0
    cells = Cells.over(points, wish.seed)

    def choose(file: File) -> Iterator[pa.RecordBatch]:
        held, held_points = np.empty(0, np.int64), np.empty((0, dimensions))
        occupied = np.empty(0, np.int64)
        for batch in parquet.stream_file(location, file, ["id", "point"], BATCH_ROWS):
            of_batch = to_matrix(batch.column("point"), dimensions)
            occupied = np.union1d(occupied, cells.of(of_batch))
            held = np.concatenate([held, batch.column("id").to_numpy()])
            held_points = np.concatenate([held_points, of_batch])
            chosen = points_of_cells(held, held_points, cells, wish.cells, per_cell)
            held, held_points = held[chosen], held_points[chosen]
        yield _record(_POINTS, id=held, point=to_binary(held_points))
        yield _record(_POINTS, cell=occupied)

    taken = _read_all(job, "points", choose, _POINTS)
    if findings.add(taken["fault"].drop_null().to_pylist()):
        return ids, points, 0
    of_cells = taken.filter(pc.is_valid(taken["id"]))
    cell_ids = of_cells["id"].to_numpy()
    cell_points = to_matrix(of_cells["point"].combine_chunks(), dimensions)
    chosen = points_of_cells(cell_ids, cell_points, cells, wish.cells, per_cell)
    ids, first = np.unique(np.concatenate([ids, cell_ids[chosen]]), return_index=True)
    points = np.concatenate([points, cell_points[chosen]])[first]
    return ids, points, len(taken["cell"].drop_null().unique())


def _brute_force(
    job: Job, ids: Ids, points: NDArray[np.float64], eps: float, findings: _Findings
) -> QueryPairs:
    source, location = job.lake.source, job.lake.location("points")
    shared = job.spark.sparkContext.broadcast((ids, points))
    dimensions, metric = len(source.coordinates), source.metric

    def compare(file: File) -> Iterator[pa.RecordBatch]:
        for batch in parquet.stream_file(location, file, ["id", "point"], BATCH_ROWS):
            others = batch.column("id").to_numpy(), to_matrix(batch.column("point"), dimensions)
            found = neighbours_by_brute_force(*shared.value, *others, eps, metric)
            yield _record(_PAIRS, PAIR, a=found.query, b=found.other, distance=found.distance)

    return _neighbours(_read_all(job, "points", compare, _PAIRS), findings)[0]


def _read_pairs(job: Job, ids: Ids, eps: float) -> DataFrame:
    """What all pair files show, by kinds of rows.

    PAIR: a pair of a checked point a and b, twice where both are checked. DEGREE: the id a is in b pairs of
    the file. FAULT and GONE.
    """
    location = job.lake.location("pairs")
    shared = job.spark.sparkContext.broadcast(ids)

    def read(file: File) -> Iterator[pa.RecordBatch]:
        wrong = {"left_id is not below right_id": 0, f"the distance is not from 0 to eps {eps!r}": 0}
        example: dict[str, str] = {}
        ends, counts = np.empty(0, np.int64), np.empty(0, np.int64)
        for batch in parquet.stream_file(location, file, ["left_id", "right_id", "distance"], BATCH_ROWS):
            left, right, distance = pair_columns(batch)
            for what, is_wrong in zip(
                wrong, (left >= right, ~((distance >= 0) & (distance <= eps))), strict=True
            ):
                wrong[what] += int(is_wrong.sum())
                for at in np.flatnonzero(is_wrong)[:1]:
                    example.setdefault(what, f"({left[at]}, {right[at]}) at {float(distance[at])!r}")
            for query, other in ((left, right), (right, left)):
                is_checked = _is_in(query, shared.value)
                yield _record(
                    _PAIRS,
                    PAIR,
                    a=query[is_checked],
                    b=other[is_checked],
                    distance=distance[is_checked],
                )
            more, place = np.unique(np.concatenate([ends, left, right]), return_inverse=True)
            one_each = np.ones(2 * len(left), np.int64)
            counts = np.bincount(place, np.concatenate([counts, one_each]), len(more)).astype(np.int64)
            ends = more
        yield _record(_PAIRS, DEGREE, a=ends, b=counts)
        faults = [f"{n:,} pairs where {what}, such as {example[what]}" for what, n in wrong.items() if n]
        yield _record(_PAIRS, FAULT, fault=[f"{file.path}: {text}" for text in faults])

    return tasks.lazy_tasks(job.spark, _files(job, "pairs"), _reading(_PAIRS, read), _PAIRS)


def _labels_of(job: Job, ids: Ids) -> tuple[Labels, list[str]]:
    location = job.lake.location("clusters")
    shared = job.spark.sparkContext.broadcast(ids)
    names = ["id", "cluster_id", "role", "degree"]

    def read(file: File) -> Iterator[pa.RecordBatch]:
        for batch in parquet.stream_file(location, file, names, BATCH_ROWS):
            is_wanted = pa.array(_is_in(batch.column("id").to_numpy(), shared.value))
            wanted = batch.filter(is_wanted)
            yield _record(_LABELS, **{name: wanted.column(name) for name in names})

    rows = _read_all(job, "clusters", read, _LABELS)
    faults = rows["fault"].drop_null().to_pylist()
    rows = rows.filter(pc.is_valid(rows["id"])).sort_by("id")
    ids, cluster_id, degree = (rows[name].to_numpy() for name in ("id", "cluster_id", "degree"))
    return Labels(ids, cluster_id, np.array(rows["role"].to_pylist(), np.str_), degree), faults


def _doubles(job: Job, n_pairs: int) -> Iterator[str]:
    pairs = scan.read(job.spark, job.lake, Slice("pairs", job.run)).select("left_id", "right_id")
    share = MOST_COUNTED / max(1, n_pairs)
    if share < 1:
        say(f"verify: doubles are looked for among {share:.2%} of the pairs")
        pairs = pairs.where(F.xxhash64("left_id", "right_id") < F.lit(int(-(2**63) + share * 2**64)))
    twice = pairs.groupBy("left_id", "right_id").count().where(F.col("count") > 1)
    for row in _some(twice):
        yield f"pair ({row['left_id']}, {row['right_id']}) is stored {row['count']} times"


def _faults_of_all(job: Job, passed: DataFrame, has_clusters: bool) -> Iterator[str]:
    """What ids, degrees and labels of all points show."""
    ids = (
        scan.read(job.spark, job.lake, Slice("points", job.run))
        .groupBy("id")
        .agg(F.count("*").alias("n_points"))
    )
    degrees = (
        passed.where(F.col("kind") == DEGREE)
        .groupBy(F.col("a").alias("id"))
        .agg((F.sum("b") + 1).alias("of_pairs"))
    )
    every = ids.join(degrees, "id", how="full")
    fault = F.when(F.col("n_points").isNull(), "it is in pairs or clusters, but not in points")
    fault = fault.when(F.col("n_points") > 1, "points has it more than once")
    if has_clusters:
        clusters = scan.read(job.spark, job.lake, Slice("clusters", job.run)).drop("run")
        names = clusters.where((F.col("role") == "core") & (F.col("id") == F.col("cluster_id")))
        names = names.select("cluster_id", F.lit(True).alias("is_named")).distinct()
        clusters = clusters.join(names, "cluster_id", how="left")
        one = clusters.groupBy("id").agg(
            F.count("*").alias("n_labels"),
            *(F.first(name).alias(name) for name in ("cluster_id", "role", "degree", "is_named")),
        )
        every = every.join(one, "id", how="full")
        is_core, is_noise = F.col("role") == "core", F.col("role") == "noise"
        fault = (
            fault.when(F.col("n_labels").isNull(), "it has no row in clusters")
            .when(F.col("n_labels") > 1, "clusters has it more than once")
            .when(
                F.coalesce("of_pairs", F.lit(1)) != F.col("degree"),
                F.format_string(
                    "degree %d is stored, its pairs make %d", "degree", F.coalesce("of_pairs", F.lit(1))
                ),
            )
            .when(
                is_core != (F.col("degree") >= job.params.min_pts),
                F.format_string(
                    f"role %s is stored, its degree is %d, min_pts {job.params.min_pts}", "role", "degree"
                ),
            )
            .when(~F.col("role").isin("core", "border", "noise"), F.concat(F.lit("unknown role "), "role"))
            .when(
                is_noise != (F.col("cluster_id") == NOISE),
                F.format_string("role %s in cluster %d", "role", "cluster_id"),
            )
            .when(
                ~is_noise & F.col("is_named").isNull(),
                F.format_string("cluster %d has no core point of that id", "cluster_id"),
            )
            .when(
                is_core & (F.col("cluster_id") > F.col("id")),
                F.format_string("core point in cluster %d, a larger id", "cluster_id"),
            )
        )
    for row in _some(every.select("id", fault.alias("fault")).where(F.col("fault").isNotNull())):
        yield f"point {row['id']}: {row['fault']}"


def _some(frame: DataFrame) -> list[Row]:
    return frame.limit(SHOWN).collect()


def _files(job: Job, table: str) -> list[File]:
    return slices.files_of(job.lake, Slice(table, job.run))


def _read_all(
    job: Job, table: str, read: Callable[[File], Iterator[pa.RecordBatch]], schema: str
) -> pa.Table:
    """What ``read`` makes of every file of a table, on the driver."""
    found = tasks.run_tasks(job.spark, _files(job, table), _reading(schema, read))
    return pa.Table.from_batches(found, schema=schemas.parse_ddl(schema))


def _reading(
    schema: str, read: Callable[[File], Iterator[pa.RecordBatch]]
) -> Callable[[File], Iterator[pa.RecordBatch]]:
    """``read``, but a file that cannot be read is a fault, not a broken task."""

    def safely(file: File) -> Iterator[pa.RecordBatch]:
        try:
            yield from read(file)
        except TableError as error:
            yield _record(schema, GONE, fault=[str(error)])

    return safely


def _record(schema: str, kind: str = "", **columns: object) -> pa.RecordBatch:
    """A batch of the schema's columns, null where nothing is given."""
    fields = schemas.parse_ddl(schema)
    n = len(next(iter(columns.values())))  # type: ignore[arg-type]  # a column of any kind
    given = {"kind": [kind] * n} | columns
    return pa.record_batch(
        [
            pa.array(given[field.name], field.type) if field.name in given else pa.nulls(n, field.type)
            for field in fields
        ],
        schema=fields,
    )


def _neighbours(rows: pa.Table, findings: _Findings) -> tuple[QueryPairs, bool]:
    """The pairs among the rows, faults to the findings, and whether every file could be read."""
    findings.add(rows["fault"].drop_null().to_pylist())
    is_gone = pc.any(pc.equal(rows["kind"], GONE)).as_py()
    pairs = rows.filter(pc.equal(rows["kind"], PAIR))
    return QueryPairs(*(pairs[name].to_numpy() for name in ("a", "b", "distance"))), not is_gone


def _is_in(values: Ids, rising: Ids) -> NDArray[np.bool_]:
    if not len(rising):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(rising, values), len(rising) - 1)
    return np.asarray(rising[at] == values)
