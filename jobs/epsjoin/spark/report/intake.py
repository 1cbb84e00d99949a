"""What came in of a data set, as a report shows it: files, columns that were not read, refused records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.findings import Intake
from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.source.values import kind_of
from epsjoin.spark.job.job import Job
from epsjoin.spark.report.names import choose_label
from epsjoin.spark.report.values import gather_values
from epsjoin.spark.rows.stored import StoredSlice

MAX_REASONS = 20
"""Maximum number of reasons for refusals that are shown, the most frequent first."""

MAX_EXAMPLES = 5
"""Maximum number of refused records that are shown."""


def gather_intake(job: Job, of_snapshots: Slice, of_quarantine: Slice) -> Intake:
    """Gather what a page shows of the files of a run.

    Parameters
    ----------
    job : of the data set whose files they are.
    of_snapshots, of_quarantine : the slices of ``snapshots`` and ``quarantine``.
    """
    source = job.lake.source
    snapshots = slices.read_slice(job.lake, of_snapshots).to_pylist()
    named = {column.in_file for column in source.columns}
    found = {name for row in snapshots for name in json.loads(row["columns"])}
    quarantine = StoredSlice.of(job, of_quarantine)
    return Intake(
        dataset=source.name,
        title=source.title,
        key=source.key,
        label=choose_label(source) or "",
        snapshots=snapshots,
        unknown_columns=tuple(sorted(found - named)),
        quarantine_reasons=count_reasons(quarantine),
        quarantine_examples=find_examples(quarantine),
        numbered_by=source.numbered_by,
        values=gather_values(job.lake, of_snapshots.run),
    )


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
"""Columns of ``quarantine`` that say where a record stands; for a whole file the line is null."""


def _find_first(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Find the first places of refused records, at most ``MAX_EXAMPLES``; a whole file has the line 0."""
    first = pa.table({"source": pa.array([], pa.string()), "line": pa.array([], pa.int64())})
    for batch in batches:
        rows = pa.table({"source": batch["source"], "line": pc.fill_null(batch["line"], 0)})
        first = pa.concat_tables([first, rows])
        keys = [(name, "ascending") for name in _PLACE]
        first = first.take(pc.select_k_unstable(first, MAX_EXAMPLES, keys))
    yield from first.to_batches()
