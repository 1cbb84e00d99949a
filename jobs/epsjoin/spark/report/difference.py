"""The difference between the points of a run and those of the run before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from epsjoin.digests import UNKEYED, digest_table
from epsjoin.kernels.arrays import Ints
from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.arrow import Task
from epsjoin.spark.buckets import Bucket, plan_buckets
from epsjoin.spark.job import Job
from epsjoin.spark.report.names import name_record
from epsjoin.spark.stored import StoredSlice, in_table

MAX_EXAMPLES = 4
"""Maximum number of rows that are shown of each kind of difference."""


class Hashed(NamedTuple):
    """The rows of a run that belong to a bucket, by ascending id: ids and hashes, (n,) int64 each."""

    ids: Ints
    hashes: Ints


def find_difference(job: Job, label: str | None) -> dict[str, Any]:
    """Compare the run's points with those of the run before, the latest earlier one with points in the lake.

    Rows with the same id are compared by a 64-bit hash of the source's columns. If the source has no key, an
    id is only a place in a file: rows are then compared by the hash alone, and equal ones are counted.

    Parameters
    ----------
    label : the column that names a point to a person.

    Returns
    -------
    The dictionary that ``findings`` describes; empty if there is no run before.
    """
    before = slices.list_runs_before(job.lake, job.run)[-1:]
    if not before:
        return {}
    is_keyed = bool(job.lake.source.key)
    old, new = (StoredSlice.of(job, Slice("points", run)) for run in (before[0], job.run))
    counts = {"added": 0, "removed": 0, "changed": 0, "same": 0}
    differing: dict[str, list[int]] = {"added": [], "changed": [], "removed": []}
    for bucket in plan_buckets(new.n + old.n):
        rows = [_hash_rows(points, bucket, is_keyed=is_keyed) for points in (new, old)]
        if is_keyed:
            found = _compare_by_id(*rows)
            for what, ids in found.items():
                counts[what] += len(ids)
            for what, smallest in differing.items():
                differing[what] = sorted([*smallest, *found[what][:MAX_EXAMPLES].tolist()])[:MAX_EXAMPLES]
        else:
            for what, n in _compare_by_hash(*rows).items():
                counts[what] += n
    chosen = [(what, id_) for what, ids in differing.items() for id_ in ids]
    return {
        "run": before[0],
        "is_keyed": is_keyed,
        **counts,
        **({} if is_keyed else {"changed": None}),
        "examples": _describe_examples(job, new, old, chosen, label),
    }


def _hash_rows(points: StoredSlice, bucket: Bucket, *, is_keyed: bool) -> Hashed:
    """Reduce each point of a bucket to its id and its hash; without a key the hash is the id, too."""
    names = [column.name for column in points.job.lake.source.columns]
    # a column of the source may be called id: then it is the id
    hashed = in_table(
        points.scan(list(dict.fromkeys(["id", *names])), _hasher(bucket, names, is_keyed=is_keyed)),
        pa.schema([("id", pa.int64()), ("hash", pa.int64())]),
    )
    ids, hashes = (hashed[name].to_numpy() for name in ("id", "hash"))
    order = np.argsort(ids, kind="stable")
    return Hashed(ids[order], hashes[order])


def _hasher(bucket: Bucket, names: Sequence[str], *, is_keyed: bool) -> Task:
    def hash_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if is_keyed:
                batch = batch.filter(pa.array(bucket.holds(batch["id"].to_numpy())))
            # half a digest: a run has far fewer rows than 2^32
            hashes = digest_table(batch.select(names), UNKEYED)[:, 0].view(np.int64)
            ids = batch["id"].to_numpy() if is_keyed else hashes
            mine = slice(None) if is_keyed else bucket.holds(hashes)
            yield pa.record_batch({"id": ids[mine], "hash": hashes[mine]})

    return hash_batches


def _compare_by_id(new: Hashed, old: Hashed) -> dict[str, Ints]:
    """Return the ids of each kind, ascending."""
    is_in_both = np.isin(new.ids, old.ids, assume_unique=True)
    was_in_both = np.isin(old.ids, new.ids, assume_unique=True)
    is_same = new.hashes[is_in_both] == old.hashes[was_in_both]
    ids = new.ids[is_in_both]
    return {
        "added": new.ids[~is_in_both],
        "removed": old.ids[~was_in_both],
        "changed": ids[~is_same],
        "same": ids[is_same],
    }


def _compare_by_hash(new: Hashed, old: Hashed) -> dict[str, int]:
    """Count how many of the rows of each hash were added, removed or stayed."""
    both, rows = np.unique(np.concatenate([new.ids, old.ids]), return_inverse=True)
    now = np.bincount(rows[: len(new.ids)], minlength=len(both))
    then = np.bincount(rows[len(new.ids) :], minlength=len(both))
    return {
        "added": int(np.maximum(now - then, 0).sum()),
        "removed": int(np.maximum(then - now, 0).sum()),
        "same": int(np.minimum(now, then).sum()),
    }


def _describe_examples(
    job: Job, new: StoredSlice, old: StoredSlice, chosen: Sequence[tuple[str, int]], label: str | None
) -> list[dict[str, Any]]:
    names = [column.name for column in job.lake.source.columns]
    ids = np.array([id_ for _, id_ in chosen], np.int64)
    new_rows, old_rows = (read_records(points, ids) for points in (new, old))
    return [
        {
            "what": what,
            "id": id_,
            **name_record(new_rows.get(id_) or old_rows[id_], job.lake.source, label),
            "columns": [
                (name, old_rows[id_][name], new_rows[id_][name])
                for name in (names if what == "changed" else ())
                if old_rows[id_][name] != new_rows[id_][name]
            ],
        }
        for what, id_ in chosen
    ]


def read_records(points: StoredSlice, ids: Ints) -> Mapping[int, Mapping[str, Any]]:
    """Read a few points: id to the values of the source's columns."""
    if not len(ids):
        return {}
    names = [column.name for column in points.job.lake.source.columns]
    rows = points.take_ids(ids, list(dict.fromkeys(["id", *names])))
    values = rows.select(names).to_pylist()
    return dict(zip(rows["id"].to_pylist(), values, strict=True))
