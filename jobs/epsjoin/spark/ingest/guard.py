"""The guard, on the tables of the lake: compares the snapshot with that of the latest earlier run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from epsjoin.console import say
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import UnfitTableError
from epsjoin.kernels.arrays import Floats, Ints, Words
from epsjoin.lake import slices
from epsjoin.lake.arrow import are_same
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.parquet import columns_of
from epsjoin.local.guard.causes import MIN_MOVED
from epsjoin.local.guard.judge import MAX_SAMPLE, WARN_LOST, Finding, judge
from epsjoin.local.guard.seen import Matched, Seen, Values
from epsjoin.local.snapshots import Digests, count_common, find_difference, order_distance, places_given_up
from epsjoin.spark.digests import to_digests
from epsjoin.spark.job.job import Job
from epsjoin.spark.points.buckets import Bucket, plan_buckets
from epsjoin.spark.points.hashes import hash_ids
from epsjoin.spark.rows.stored import StoredSlice, in_table

MAX_LOSSES = 12
"""Maximum number of earlier runs whose losses tell what is usual."""

MAX_STALE = 32
"""Maximum number of earlier runs whose files are compared with the snapshot's."""

_MANY_UPDATED = 0.01
"""Fraction of updated records above which some are looked at, however few have moved; or the limit of
``format`` if that is lower."""

_SAMPLE_SEED = 1
"""Seed of the hash that chooses the records whose values are looked at."""

_COLUMNS = ("id", "record", "place")


@dataclass(frozen=True)
class Snapshot:
    """A snapshot as the guard looks at it, before or after it is committed.

    Parameters
    ----------
    what : its name, for people.
    points, digests : its points and their digests; ``digests`` is ``None`` where they have none.
    files : its rows of ``snapshots``; none if they are not those of the points.
    """

    what: str
    points: StoredSlice
    digests: StoredSlice | None
    files: Sequence[Mapping[str, Any]]


def judge_snapshot(job: Job, now: Snapshot) -> list[Finding]:
    """Compare the run's snapshot with that of the latest earlier run that has points, and judge what differs.

    A run that was held has no points of its own, so the one before it is taken. The findings depend on
    nothing but the lake and the snapshot.
    """
    seen = _look(job, now)
    return judge(seen, job.lake.source.guard, job.params.accept)


def _look(job: Job, now: Snapshot) -> Seen:
    runs = slices.list_runs_before(job.lake, job.run)
    if not runs:
        return Seen(now.what)
    before = _stored(job, runs[-1])
    seen = Seen(
        now.what,
        runs[-1],
        before.points.n,
        now.points.n,
        columns_before=_columns_in(before.files),
        columns_now=_columns_in(now.files) if before.files else (),
        left_out_before=_left_out(job.lake.source, before.files),
        left_out_now=_left_out(job.lake.source, now.files),
        same_as=_find_same(job, runs[-MAX_STALE:], now.files),
    )
    if job.lake.source.key and before.digests is None:
        say(
            f"ingest: the guard compares numbers of records alone: run {runs[-1]} has no digests of its "
            "points; run ingest for it again first, and it compares each record"
        )
    if before.digests is not None and now.digests is not None:
        matched, sample = _match(before.digests, now.digests)
        seen = replace(seen, matched=matched)
        limit = job.lake.source.guard.get("format")
        many = _MANY_UPDATED if limit is None else min(limit, _MANY_UPDATED)
        if matched.moved >= MIN_MOVED or matched.updated > many * matched.kept:
            seen = _with_values(job, seen, before.points, now.points, sample)
    if seen.lost > WARN_LOST * seen.n_before:
        seen = replace(seen, most_lost=_most_lost(job, runs[-MAX_LOSSES:]))
    return seen


def _stored(job: Job, run: str) -> Snapshot:
    """The snapshot of a run, without those of its tables that are not of the same pass as its points.

    They are of another pass while the run is being made again, and after its ingest was killed.
    """
    of_run = Fingerprints(job.lake, run)
    points = StoredSlice.of(job, of_run.slice("points"))
    digests, files = None, list[dict[str, Any]]()
    with suppress(UnfitTableError):
        files = slices.read_slice(job.lake, of_run.slice("snapshots")).to_pylist()
    if job.lake.source.key:
        with suppress(UnfitTableError):
            digests = StoredSlice.of(job, of_run.slice("digests"))
    # a run of a contract without a key has an empty slice
    is_empty = digests is not None and digests.n != points.n
    return Snapshot(run, points, None if is_empty else digests, files)


def _columns_in(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the columns found in the files, each once."""
    return list(dict.fromkeys(name for file in files for name in json.loads(file["columns"])))


def _left_out(source: SourceContract, files: Sequence[Mapping[str, Any]]) -> float | None:
    """The fraction of records left out; ``None`` without a condition, or if the condition was another one."""
    read = sum(file["rows_read"] for file in files)
    if not source.condition or not read or {file["taken_where"] for file in files} != {source.condition}:
        return None
    return float(sum(file["rows_left_out"] for file in files) / read)


def _most_lost(job: Job, runs: Sequence[str]) -> float:
    """The largest fraction that one of the runs has lost without being held for it."""
    found = slices.read_runs(job.lake, "guard", runs, ["run", "check", "observed", "verdict"]).to_pylist()
    not_usual = {row["run"] for row in found if row["verdict"] == "held"}
    usual = (
        row["observed"]
        for row in found
        if row["check"] == "lost" and row["verdict"] != "accepted" and row["run"] not in not_usual
    )
    return max((fraction for fraction in usual if fraction is not None), default=0.0)


def _find_same(job: Job, runs: Sequence[str], files: Sequence[Mapping[str, Any]]) -> str | None:
    """The latest run with these very files, if a run after it had others: then an old snapshot is back."""
    of_runs: dict[str, set[str]] = {}
    for row in slices.read_runs(job.lake, "snapshots", runs, ["run", "sha256"]).to_pylist():
        of_runs.setdefault(row["run"], set()).add(row["sha256"])
    now = {file["sha256"] for file in files}
    same = [run for run in runs if of_runs.get(run) == now]
    return same[-1] if same and same[-1] != runs[-1] else None


class _Sample(NamedTuple):
    """Ids of some records that moved, and of some that were updated."""

    moved: Ints
    updated: Ints


def _match(before: StoredSlice, now: StoredSlice) -> tuple[Matched, _Sample]:
    """Match the records of two runs by their digests, bucket by bucket as the driver can hold them."""
    kept = updated = moved = 0
    distance = None
    sample = _Sample(np.empty(0, np.int64), np.empty(0, np.int64))
    left, taken = list[Words](), list[Words]()
    buckets = plan_buckets(before.n + now.n)
    for bucket in buckets:
        old, new = (_read(digests, bucket) for digests in (before, now))
        found = find_difference(old, new)
        kept += len(found.matching.now)
        updated += int(found.is_updated.sum())
        moved += int(found.is_moved.sum())
        ids = new.ids[found.matching.now]
        sample = _Sample(
            _draw(sample.moved, ids[found.is_moved]), _draw(sample.updated, ids[found.is_updated])
        )
        for places, some in zip((left, taken), places_given_up(old, new, found), strict=True):
            places.append(some[some % np.uint64(bucket.of) == 0])
        if bucket.of == 1:  # in the order of the files
            distance = order_distance(found.matching)
    # with several buckets, only some of the places were kept, from which the number is estimated
    taken_over = count_common(np.concatenate(left), np.concatenate(taken)) * len(buckets)
    return Matched(kept, updated, moved, taken_over, distance), sample


def _read(digests: StoredSlice, bucket: Bucket) -> Digests:
    """The digests of a bucket; if there is only one, in the order of the records in the files."""
    if bucket.of == 1:
        return to_digests(in_table(list(digests.stream(_COLUMNS)), digests.columns(_COLUMNS)))
    return to_digests(digests.filter(lambda batch: bucket.holds(batch["id"].to_numpy()), _COLUMNS))


def _draw(drawn: Ints, ids: Ints) -> Ints:
    """Choose some of the ids: always the same, in whatever buckets they come."""
    both = np.concatenate([drawn, ids])
    return both[np.argsort(hash_ids(_SAMPLE_SEED, both), kind="stable")[:MAX_SAMPLE]]


def _with_values(job: Job, seen: Seen, before: StoredSlice, now: StoredSlice, sample: _Sample) -> Seen:
    """Look at the values of the sample, in the columns that both runs have."""
    source = job.lake.source
    known = columns_of(before.location, before.files[0])
    columns = [
        column
        for column in source.columns
        if column.name not in source.key
        and known.get_field_index(column.name) >= 0
        and known.field(column.name).type == now.schema.field(column.name).type
    ]
    names = [column.name for column in columns]
    schema = now.columns(["id", *names])
    ids = np.union1d(sample.moved, sample.updated)
    old, new = (replace(points, schema=schema).filter_ids(ids, schema.names) for points in (before, now))
    coordinates = [name for name in source.coordinates if name in names]
    numbers = [column.name for column in columns if column.type in ("integer", "number")]
    of_moved, of_updated = (np.searchsorted(ids, drawn) for drawn in sample)
    changed = {name: ~are_same(old[name], new[name])[of_updated] for name in names}
    return replace(
        seen,
        # points with another number of coordinates are not compared
        moved=_values(old.take(of_moved), new.take(of_moved), coordinates)
        if coordinates and len(coordinates) == len(source.coordinates)
        else Values(),
        updated=_values(old.take(of_updated), new.take(of_updated), numbers),
        changed={name: int(flags.sum()) for name, flags in changed.items()},
        n_updated=len(of_updated),
    )


def _values(before: pa.Table, now: pa.Table, names: Sequence[str]) -> Values:
    return Values(tuple(names), _to_floats(before, names), _to_floats(now, names))


def _to_floats(rows: pa.Table, names: Sequence[str]) -> Floats:
    floats = np.empty((len(rows), len(names)))
    for place, name in enumerate(names):
        floats[:, place] = rows[name].cast(pa.float64(), safe=False).to_numpy()  # a missing value is NaN
    return floats
