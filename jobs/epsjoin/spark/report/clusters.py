"""The clusters of a run: points by role, clusters by size, the largest of them and their centres."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.contracts.sources import SourceContract
from epsjoin.kernels.arrays import Ints
from epsjoin.spark.points.buckets import Bucket, plan_buckets
from epsjoin.spark.report.members import MemberSample, locate
from epsjoin.spark.rows.stored import StoredSlice, in_table
from epsjoin.spark.tasks.arrow import Task

MAX_CENTRE = 4
"""Maximum number of coordinates of a cluster's centre, the first ones."""


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
    sample : is given all points of these clusters, by the places of the clusters in ``largest``.
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
            math.fsum(add_exactly(sums[number, axis])) / row["size"]
            for axis in range(3 if on_sphere else len(names))
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
            if math.isnan(rest):  # for sums that are beyond float64 themselves
                return [math.nan]
            terms.append(rest)
    except OverflowError:  # these have no mean
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
