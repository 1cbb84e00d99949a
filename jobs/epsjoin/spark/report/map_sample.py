"""The points that the map of a run shows: drawn at random, and where they are on its axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from epsjoin.contracts.trees import HEIGHT_BINS
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.spark.points.hashes import hash_ids
from epsjoin.spark.points.points import stored_reading
from epsjoin.spark.points.reading import Reading
from epsjoin.spark.report.members import locate
from epsjoin.spark.rows.stored import MAX_THREADS, StoredSlice, in_table
from epsjoin.vocabulary import NOISE

MAX_MAP_CLUSTERED = 30_000
"""Maximum number of clustered points on the map; more would hide one another."""

MAX_MAP_NOISE = 20_000
"""Maximum number of noise points on the map."""

TREE_AXES = ("nodes", "leaves")
"""What the map of documents shows."""


def sample_map(clusters: StoredSlice, points: StoredSlice, seed: int) -> dict[str, Any]:
    """Draw the points of the map at random: the fields of ``Findings`` about them."""
    source = points.job.lake.source
    axes = TREE_AXES if source.tree else choose_axes(points)
    names = ["point"] if source.tree else [name for name in axes if name]
    of_points = [("id", pa.int64()), ("cluster_id", pa.int64())]
    drawn = clusters.scan(["id", "cluster_id"], lambda batches: _draw(batches, seed))
    sample = in_table(list(_draw(drawn, seed)), pa.schema(of_points)).sort_by("id")
    ids = sample["id"].to_numpy()
    places = np.zeros((len(ids), 2))
    place = partial(_place_trees, ids=ids, reading=stored_reading(points.job.lake))
    if not source.tree:
        place = partial(_place, ids=ids, names=names)
    for batch in points.scan(list(dict.fromkeys(["id", *names])), place):
        for axis in range(batch.num_columns - 1):
            places[batch["at"].to_numpy(), axis] = batch[f"x{axis}"].to_numpy()
    return {
        "map_points": places,
        "map_cluster_ids": sample["cluster_id"].to_numpy(),
        "map_axes": axes,
    }


def _draw(batches: Iterable[pa.RecordBatch], seed: int) -> Iterator[pa.RecordBatch]:
    """Keep the points with the smallest hashes, of those in clusters and of noise."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        both = pa.Table.from_batches([*held, batch]).combine_chunks()
        is_noise = both["cluster_id"].to_numpy() == NOISE
        hashes = hash_ids(seed, both["id"].to_numpy())
        kept = [_smallest(hashes, ~is_noise, MAX_MAP_CLUSTERED), _smallest(hashes, is_noise, MAX_MAP_NOISE)]
        held = both.take(np.concatenate(kept)).to_batches()
    yield from held


def _smallest(hashes: Ints, is_meant: Bools, limit: int) -> Ints:
    """Find the rows with the smallest hashes; of equal hashes, which only equal ids have, any."""
    rows = np.flatnonzero(is_meant)
    return rows if len(rows) <= limit else rows[np.argpartition(hashes[rows], limit)[:limit]]


def _place(batches: Iterable[pa.RecordBatch], ids: Ints, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Find the coordinates of the points with these ids, which ascend: rows of at, x0, x1."""
    for batch in batches:
        rows, at = locate(batch["id"].to_numpy(), ids)
        columns = {
            f"x{axis}": batch[name].to_numpy()[rows].astype(np.float64) for axis, name in enumerate(names)
        }
        yield pa.record_batch({"at": at, **columns})


def _place_trees(batches: Iterable[pa.RecordBatch], ids: Ints, reading: Reading) -> Iterator[pa.RecordBatch]:
    """Find the numbers of nodes and of leaves of the documents with these ids: rows of at, x0, x1.

    A point has half of these numbers: it begins with the nodes by their heights, and leaves have height 0.
    """
    for batch in batches:
        rows, at = locate(batch["id"].to_numpy(), ids)
        _, points = reading.arrays(batch.take(pa.array(rows)))
        heights = 2 * points[:, :HEIGHT_BINS]
        yield pa.record_batch({"at": at, "x0": heights.sum(axis=1), "x1": heights[:, 0]})


def choose_axes(points: StoredSlice) -> tuple[str, str]:
    """Choose the names of x and y: longitude and latitude, or the two widest coordinates, in their order."""
    source = points.job.lake.source
    if source.latitude:
        return source.longitude, source.latitude
    names, reading = source.coordinates, stored_reading(points.job.lake)
    ends = [
        batch["ends"].to_numpy().reshape(2, len(names))
        for batch in points.scan(
            ["id", "point"], lambda batches: _find_ends(batches, reading), threads=MAX_THREADS
        )
    ]
    widths = np.zeros(len(names))
    if ends:
        widths = np.max([high for _, high in ends], axis=0) - np.min([low for low, _ in ends], axis=0)
    widest = sorted(np.lexsort((np.arange(len(names)), -widths))[:2].tolist())
    return names[widest[0]], names[widest[1]] if len(names) > 1 else ""


def _find_ends(batches: Iterable[pa.RecordBatch], reading: Reading) -> Iterator[pa.RecordBatch]:
    """Find the smallest and the largest value of each coordinate, one after the other."""
    low, high = np.inf, -np.inf
    for batch in batches:
        _, places = reading.arrays(batch)
        low, high = np.minimum(low, places.min(axis=0)), np.maximum(high, places.max(axis=0))
    if np.ndim(low):
        yield pa.record_batch({"ends": np.concatenate([low, high])})
