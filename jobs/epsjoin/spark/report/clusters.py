"""The clusters of a run: points by role, clusters by size, the largest of them and their centres."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.contracts.sources import SourceContract
from epsjoin.kernels.arrays import Ints
from epsjoin.spark.points.buckets import Bucket, plan_buckets
from epsjoin.spark.report.members import MAX_CLUSTERS, MemberSample, locate
from epsjoin.spark.rows.stored import StoredSlice, in_table
from epsjoin.spark.tasks.arrow import Task
from epsjoin.vocabulary import NOISE

MAX_CENTRE = 4
"""Maximum number of coordinates of a cluster's centre, the first ones."""

_MIN_HELD = 1 << 20
"""Minimum number of rows that are held before they are added up."""

MEMBERS = pa.schema(
    [("cluster_id", pa.int64()), ("size", pa.int64()), ("core", pa.int64()), ("border", pa.int64())]
)
"""Points by cluster; all noise is one of them."""


def count_clusters(clusters: StoredSlice) -> dict[str, Any]:
    """Count points by role and clusters by size, and list the largest clusters, without their centres.

    Returns
    -------
    The fields of ``Findings`` about this.
    """
    sizes: dict[int, int] = {}
    noise, core, border = 0, 0, 0
    largest: list[dict[str, Any]] = []
    for bucket in plan_buckets(clusters.n):
        rows = _add_up(in_table(clusters.scan(["cluster_id", "role"], _counter(bucket)), MEMBERS))
        is_noise = pc.equal(rows["cluster_id"], NOISE)
        noise += pc.sum(rows.filter(is_noise)["size"]).as_py() or 0
        rows = rows.filter(pc.invert(is_noise))
        core += pc.sum(rows["core"]).as_py() or 0
        border += pc.sum(rows["border"]).as_py() or 0
        for size, count in zip(*np.unique(rows["size"].to_numpy(), return_counts=True), strict=True):
            sizes[int(size)] = sizes.get(int(size), 0) + int(count)
        order = [("size", "descending"), ("cluster_id", "ascending")]
        largest += rows.take(pc.select_k_unstable(rows, MAX_CLUSTERS, order)).to_pylist()
    largest.sort(key=lambda row: (-row["size"], row["cluster_id"]))
    return {
        "n_clusters": sum(sizes.values()),
        "n_core": core,
        "n_border": border,
        "n_noise": noise,
        "cluster_sizes": np.array(sorted(sizes), np.int64),
        "cluster_size_counts": np.array([sizes[size] for size in sorted(sizes)], np.int64),
        "largest_clusters": largest[:MAX_CLUSTERS],
    }


def _counter(bucket: Bucket) -> Task:
    """Count the points of each cluster of a bucket."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held, rows, limit = [MEMBERS.empty_table()], 0, _MIN_HELD
        for batch in batches:
            batch = batch.filter(pa.array(bucket.holds(batch["cluster_id"].to_numpy())))
            roles = (pc.cast(pc.equal(batch["role"], role), pa.int64()) for role in ("core", "border"))
            one = pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)
            held.append(pa.table([batch["cluster_id"], one, *roles], schema=MEMBERS))
            rows += batch.num_rows
            if rows > limit:
                held = [_add_up(pa.concat_tables(held))]
                rows = len(held[0])
                limit = max(_MIN_HELD, 2 * rows)
        yield from _add_up(pa.concat_tables(held)).to_batches()

    return count


def _add_up(rows: pa.Table) -> pa.Table:
    """Add up the rows of each cluster."""
    names = MEMBERS.names[1:]
    added = rows.group_by("cluster_id", use_threads=False).aggregate([(name, "sum") for name in names])
    return added.select(["cluster_id", *(f"{name}_sum" for name in names)]).rename_columns(MEMBERS.names)


def find_centres(
    clusters: StoredSlice,
    points: StoredSlice,
    largest: Sequence[Mapping[str, Any]],
    sample: MemberSample,
) -> dict[int, list[float]]:
    """Find the centres of some clusters: cluster id to the means of the first coordinates of its points.

    Means of places are taken on the sphere, so that the mean of 179° and -179° is 180°. Sums are exact, so
    they are the same in any order.

    Parameters
    ----------
    largest : rows with cluster_id and size.
    sample : all points of these clusters are shown to it, by the places of the clusters in ``largest``.
    """
    source = points.job.lake.source
    chosen = np.array([row["cluster_id"] for row in largest], np.int64)
    names, on_sphere = source.coordinates[:MAX_CENTRE], _is_on_sphere(source)
    if on_sphere:
        names = (source.latitude, source.longitude)
    sums: dict[tuple[int, int], list[float]] = {}
    for bucket in plan_buckets(sum(row["size"] for row in largest)):
        schema = pa.schema([("id", pa.int64()), ("number", pa.int8())])
        members = in_table(
            clusters.scan(["id", "cluster_id"], _find_members(chosen, bucket)), schema
        ).sort_by("id")
        ids, numbers = members["id"].to_numpy(), members["number"].to_numpy()
        sample.add(ids, numbers)
        for batch in points.scan(list(dict.fromkeys(["id", *names])), _adder(ids, numbers, names, source)):
            for row in batch.to_pylist():
                sums.setdefault((row["number"], row["axis"]), []).extend(row["terms"])
    centres = {}
    for number, row in enumerate(largest):
        means = [
            math.fsum(sums[number, axis]) / row["size"] for axis in range(3 if on_sphere else len(names))
        ]
        centres[row["cluster_id"]] = _to_degrees(source, means) if on_sphere else means
    return centres


def _is_on_sphere(source: SourceContract) -> bool:
    """Whether points are places on the sphere, and not degrees beside other numbers, such as a height."""
    return {*source.coordinates} == {source.latitude, source.longitude}


def _find_members(chosen: Ints, bucket: Bucket) -> Task:
    """Find the points of some clusters that belong to a bucket."""
    order = np.argsort(chosen)

    def find(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows, at = locate(batch["cluster_id"].to_numpy(), chosen[order])
            ids = batch["id"].to_numpy()[rows]
            mine = bucket.holds(ids)
            yield pa.record_batch({"id": ids[mine], "number": order[at][mine].astype(np.int8)})

    return find


def _adder(ids: Ints, numbers: NDArray[np.int8], names: Sequence[str], source: SourceContract) -> Task:
    """Add up the coordinates of the points of each cluster: number, axis, and terms of the exact sum."""

    def add(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sums: dict[tuple[int, int], list[float]] = {}
        for batch in batches:
            rows, at = locate(batch["id"].to_numpy(), ids)
            columns = [batch[name].to_numpy()[rows].astype(np.float64) for name in names]
            if _is_on_sphere(source):
                columns = _to_sphere(*columns)
            number = numbers[at]
            for each in np.unique(number).tolist():
                for axis, column in enumerate(columns):
                    held = sums.get((each, axis), [])
                    sums[each, axis] = add_exactly([*held, *column[number == each].tolist()])
        fields = [("number", pa.int64()), ("axis", pa.int64()), ("terms", pa.list_(pa.float64()))]
        rows_ = [{"number": each, "axis": axis, "terms": terms} for (each, axis), terms in sums.items()]
        yield pa.RecordBatch.from_pylist(rows_, pa.schema(fields))

    return add


def add_exactly(values: Sequence[float]) -> list[float]:
    """Add numbers without rounding: a few numbers whose sum is exactly that of these; NaN beyond float64."""
    terms: list[float] = []
    try:
        while rest := math.fsum([*values, *(-term for term in terms)]):
            terms.append(rest)
    except OverflowError:  # no number is the mean of such
        return [math.nan]
    return terms


def _to_sphere(latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    latitude, longitude = np.radians(latitude), np.radians(longitude)
    x, y = np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude)
    return [x, y, np.sin(latitude)]


def _to_degrees(source: SourceContract, means: Sequence[float]) -> list[float]:
    """The place on the sphere below a point, as the coordinates of the source."""
    x, y, z = means
    degrees = {
        source.latitude: math.degrees(math.atan2(z, math.hypot(x, y))),
        source.longitude: math.degrees(math.atan2(y, x)),
    }
    return [degrees[name] for name in source.coordinates]
