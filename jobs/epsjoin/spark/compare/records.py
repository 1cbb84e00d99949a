"""The records of two runs, matched: by their ids, or in a source without a key by what their columns hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from epsjoin.digests import UNKEYED, digest_table
from epsjoin.kernels.arrays import Ints, Words
from epsjoin.kernels.sorting import lexsort
from epsjoin.lake import slices
from epsjoin.lake.arrow import to_binary
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.schemas import parse_ddl
from epsjoin.spark.digests import to_words
from epsjoin.spark.job.job import Job
from epsjoin.spark.points.buckets import Bucket
from epsjoin.spark.rows.stored import StoredSlice, in_table
from epsjoin.spark.tasks.arrow import Task

DIGESTED = "id long, record binary"
"""Columns that say about a record what is known without its own columns."""


class Records(NamedTuple):
    """Records of a run, without their columns.

    Parameters
    ----------
    ids : (n,) int64.
    digests : (n, 2) of all values of the source's columns.
    """

    ids: Ints
    digests: Words


def read_both(job: Job, before: Fingerprints, now: Fingerprints, bucket: Bucket) -> tuple[Records, Records]:
    """Read the records of a bucket of both runs.

    Buckets are of ids, or in a source without a key of digests. The stored digests are read if both runs have
    them, otherwise the columns of the points.
    """
    stored = [_stored_digests(job, run) for run in (before, now)]
    old, new = (
        _read(job, run, digests if all(stored) else None, bucket)
        for run, digests in zip((before, now), stored, strict=True)
    )
    return old, new


def _stored_digests(job: Job, run: Fingerprints) -> StoredSlice | None:
    """The run's slice of ``digests``, unless it has none: without a key, or made by an older version."""
    if not job.lake.source.key or not run.has("digests"):
        return None
    digests = StoredSlice.of(job, run.slice("digests"))
    return digests if digests.n == slices.count_rows(job.lake, run.slice("points")) else None


def _read(job: Job, run: Fingerprints, digests: StoredSlice | None, bucket: Bucket) -> Records:
    is_keyed = bool(job.lake.source.key)
    if digests is not None:
        rows = digests.filter(lambda batch: bucket.holds(batch["id"].to_numpy()), ["id", "record"])
    else:
        names = [column.name for column in job.lake.source.columns]
        points = StoredSlice.of(job, run.slice("points"))
        # a column of the source may be called id: then it is the id
        columns = list(dict.fromkeys(["id", *names]))
        found = points.scan(columns, digest_batches(names, bucket, is_keyed=is_keyed))
        rows = in_table(found, parse_ddl(DIGESTED))
    return Records(rows["id"].to_numpy(), to_words(rows["record"]))


def digest_batches(names: Sequence[str], bucket: Bucket, *, is_keyed: bool) -> Task:
    """Reduce points to the columns ``DIGESTED``, those of a bucket alone."""

    def digest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if is_keyed:
                batch = batch.filter(pa.array(bucket.holds(batch["id"].to_numpy())))
            digests, ids = digest_table(batch.select(names), UNKEYED), batch["id"].to_numpy()
            mine = slice(None) if is_keyed else bucket.holds(digests[:, 0].view(np.int64))
            yield pa.record_batch({"id": ids[mine], "record": to_binary(digests[mine])})

    return digest


def identify(before: Records, now: Records) -> tuple[Ints, Ints]:
    """Number the records of a source without a key, so that the same record has one number in both runs.

    Among records with equal values, the first by id in one run is the same as the first in the other, and so
    on.

    Returns
    -------
    (m,) and (n,) int64, in the order of the records, each number once in a run.
    """
    words = np.concatenate([before.digests, now.digests])
    ids = np.concatenate([before.ids, now.ids])
    is_now = np.arange(ids.size) >= before.ids.size
    order = lexsort((ids, is_now, words[:, 1], words[:, 0]))
    sorted_words, sorted_now = words[order], is_now[order]
    is_other = np.ones(ids.size, np.bool_)
    is_other[1:] = (sorted_words[1:] != sorted_words[:-1]).any(axis=1)
    is_first = is_other.copy()
    is_first[1:] |= sorted_now[1:] != sorted_now[:-1]
    place = np.arange(ids.size)
    nth = place - np.maximum.accumulate(np.where(is_first, place, 0))
    number = np.empty(ids.size, np.int64)
    number[order] = (np.cumsum(is_other) - 1) * (nth.max(initial=0) + 1) + nth
    return number[: before.ids.size], number[before.ids.size :]
