"""The table ``changes``: which records differ from those of the run before, and how."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.contracts.sources import SourceContract
from epsjoin.contracts.trees import TREE
from epsjoin.differ.columns import without_infinities
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.lake.arrow import are_same, retype
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.parquet import as_written
from epsjoin.local.snapshots import match_records
from epsjoin.spark.compare.records import Records, identify, read_both
from epsjoin.spark.digests import places_in
from epsjoin.spark.job.job import Job
from epsjoin.spark.points.buckets import plan_buckets
from epsjoin.spark.rows.stored import StoredSlice

_TEXT_ROWS = 1 << 10
"""Number of rows that are written as JSON at a time."""


def find_changes(job: Job, now: Fingerprints) -> Iterator[pa.Table]:
    """Find the rows of ``changes`` (without run) of a run against the run before, a bucket at a time.

    Digests show which records may differ. Their columns are then read, so that a record with the same values
    under a contract with other columns is not a change.
    """
    before = now.before
    if before is None:
        return
    old, new = (StoredSlice.of(job, run.slice("points")) for run in (before, now))
    if old.files:
        old = replace(old, schema=as_written(old.location, old.files[0], old.schema))
    for bucket in plan_buckets(old.n + new.n):
        deleted, inserted, both = _differing(*read_both(job, before, now, bucket), bool(job.lake.source.key))
        yield _describe(job, before.run, old, new, deleted, inserted, both)


def _differing(before: Records, now: Records, is_keyed: bool) -> tuple[Ints, Ints, Ints]:
    """The ids of deleted and inserted records, and of those in both runs that may differ."""
    old, new = (before.ids, now.ids) if is_keyed else identify(before, now)
    found = match_records(old, new)
    differs = (before.digests[found.before] != now.digests[found.now]).any(axis=1)
    return before.ids[found.deleted], now.ids[found.inserted], now.ids[found.now][differs]


def _describe(
    job: Job, against: str, old: StoredSlice, new: StoredSlice, deleted: Ints, inserted: Ints, both: Ints
) -> pa.Table:
    """Look up the records with these ids, and write them in rows, ordered by id."""
    source = job.lake.source
    names = [column.name for column in source.columns]
    placed = [*names, TREE] if source.tree else names
    then, now = (points.filter_ids(ids, names) for points, ids in ((old, deleted), (new, inserted)))
    was, is_ = (points.filter_ids(both, placed) for points in (old, new))
    then, was = retype(then, now.schema), retype(was, is_.schema)
    differs = ~np.stack([are_same(was[name], is_[name]) for name in names], axis=1)
    is_updated = differs.any(axis=1)
    was, is_ = (rows.filter(pa.array(is_updated)) for rows in (was, is_))
    differs = differs[is_updated]
    has_moved = _have_moved(source, was, is_, differs)
    # if a record has not moved, its vector says nothing, and would be most of the text
    short = [column.name for column in source.columns if column.item is None]
    texts = _to_texts(was, has_moved, names, short), _to_texts(is_, has_moved, names, short)
    parts = [
        _rows("inserted", now["id"], None, to_json(now, names)),
        _rows("updated", is_["id"], *texts, has_moved, _lists(differs, names)),
        _rows("deleted", then["id"], to_json(then, names), None),
    ]
    rows = pa.concat_tables(parts).sort_by([("id", "ascending"), ("what", "descending")])
    return rows.add_column(0, "against", pa.array([against] * rows.num_rows, pa.string()))


def _have_moved(source: SourceContract, was: pa.Table, is_: pa.Table, differs: Bools) -> Bools:
    """Which of the records are at another place: by their coordinates, or as trees."""
    if source.tree:
        (old,), (new,) = (places_in(source, rows).values() for rows in (was, is_))
        return ~are_same(old, new)
    names = [column.name for column in source.columns]
    return np.asarray(differs[:, [names.index(name) for name in source.coordinates]].any(axis=1))


def _to_texts(rows: pa.Table, has_moved: Bools, names: list[str], short: list[str]) -> pa.ChunkedArray:
    """The records as texts: those that have moved with all columns, the others with some."""
    if len(short) == len(names):
        return to_json(rows, names)
    moved, stayed = np.flatnonzero(has_moved), np.flatnonzero(~has_moved)
    texts = [to_json(rows.take(pa.array(of)), named) for of, named in ((moved, names), (stayed, short))]
    back = np.argsort(np.concatenate([moved, stayed]))
    return pa.chunked_array([chunk for each in texts for chunk in each.chunks], pa.string()).take(
        pa.array(back)
    )


def to_json(rows: pa.Table, names: list[str]) -> pa.ChunkedArray:
    """The rows as texts; few at a time are Python objects, which take ten times the memory."""
    texts = (
        [
            json.dumps(without_infinities(row), ensure_ascii=False, default=_as_text)
            for row in batch.to_pylist()
        ]
        for batch in rows.select(names).to_batches(max_chunksize=_TEXT_ROWS)
    )
    return pa.chunked_array((pa.array(each, pa.string()) for each in texts), pa.string())


def _as_text(value: Any) -> str:
    """Dates and times as ISO texts."""
    return str(value.isoformat())


def _lists(differs: NDArray[np.bool_], names: list[str]) -> list[str]:
    kinds, kind = np.unique(differs, axis=0, return_inverse=True)
    texts = [json.dumps([names[place] for place in np.flatnonzero(row)], ensure_ascii=False) for row in kinds]
    return [texts[place] for place in kind.ravel()]


def _rows(
    what: str,
    ids: pa.ChunkedArray,
    before: pa.ChunkedArray | None,
    now: pa.ChunkedArray | None,
    has_moved: Bools | None = None,
    columns: list[str] | None = None,
) -> pa.Table:
    n = len(ids)
    none = pa.nulls(n, pa.string())
    return pa.table(
        {
            "id": ids,
            "what": pa.array([what] * n, pa.string()),
            "moved": pa.array(np.zeros(n, np.bool_) if has_moved is None else has_moved),
            "columns": none if columns is None else pa.array(columns, pa.string()),
            "before": none if before is None else before,
            "now": none if now is None else now,
        }
    )
