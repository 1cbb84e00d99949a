"""Ids that occur more than once in a snapshot, found by the ids alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from epsjoin.kernels.sorting import argsort
from epsjoin.source.rules import Ints
from epsjoin.spark.ingest.facts import ManyDoubles, facts_of, to_dict
from epsjoin.spark.ingest.read import split_places
from epsjoin.spark.tasks.arrow import Task, from_ipc
from epsjoin.spark.tasks.reports import TaskReport

MAX_DOUBLES = 1 << 18
"""Maximum number of doubles in a bucket that are passed on one by one; the driver holds 8 bytes of each.

If there are more, all records of the files that they are in become doubles.
"""

DOUBLES = pa.schema([("report", pa.string()), ("place", pa.int64())])
"""What finders return: the report of a task, or the place of a double."""


def make_finder(max_doubles: int = MAX_DOUBLES) -> Task:
    """Make the work of a task that finds the doubles among ``ID_STREAMS``, which are sorted by their buckets.

    A double is a record whose id another record has. The reports of the readers are passed on.
    """

    def find(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = TaskReport()
        for item in _in_buckets(batches):
            if isinstance(item, str):
                yield _to_batch(report=item)
                continue
            report.counters["ids"] = report.counters.get("ids", 0) + item.shape[1]
            places = _doubles(*item)
            if len(places) > max_doubles:
                report.facts += [to_dict(ManyDoubles(file)) for file in split_places(places)]
            elif places.size:
                yield _to_batch(places=places)
        yield _to_batch(report=report.to_json())

    return find


def doubles_of(batches: Iterable[pa.RecordBatch], reports: Iterable[TaskReport]) -> dict[int, Ints | None]:
    """The doubles that finders returned: numbers of records, rising, by file; ``None``: all of the file.

    Parameters
    ----------
    batches : what finders returned.
    reports : the reports in it.
    """
    places = [batch["place"].drop_null().to_numpy() for batch in batches]
    found: dict[int, Ints | None] = dict(split_places(np.concatenate([*places, np.empty(0, np.int64)])))
    many = [fact.file for fact in facts_of(reports) if isinstance(fact, ManyDoubles)]
    return found | dict.fromkeys(many)


def _in_buckets(batches: Iterable[pa.RecordBatch]) -> Iterator[str | Ints]:
    """The ids and places of each bucket, (2, n), and the reports."""
    bucket, held = -1, list[Ints]()
    for batch in batches:
        for number, stream, report in zip(*(batch.column(i) for i in range(3)), strict=True):
            if report.is_valid:
                yield report.as_py()
                continue
            if number.as_py() != bucket and held:
                yield np.concatenate(held, axis=1)
                held = []
            bucket = number.as_py()
            for rows in from_ipc(stream.as_buffer()):
                held.append(np.stack([rows["id"].to_numpy(), rows["place"].to_numpy()]))
    if held:
        yield np.concatenate(held, axis=1)


def _doubles(ids: Ints, places: Ints) -> Ints:
    order = argsort(ids)
    is_equal = np.diff(ids[order]) == 0
    is_double = np.append(is_equal, False) | np.insert(is_equal, 0, False)
    found: Ints = places[order[is_double]]
    return found


def _to_batch(*, report: str | None = None, places: Ints | None = None) -> pa.RecordBatch:
    n = 1 if places is None else len(places)
    columns = [
        pa.array([report] * n, pa.string()),
        pa.array([None] if places is None else places, pa.int64()),
    ]
    return pa.record_batch(columns, schema=DOUBLES)
