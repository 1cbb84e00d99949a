"""Rows written to files by the tasks that have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from epsjoin.lake.parquet import File, Target
from epsjoin.spark import tasks
from epsjoin.spark.rows import Rows

Count = Callable[[pa.RecordBatch], Mapping[str, float]]


class Written(NamedTuple):
    """What the tasks wrote.

    Parameters
    ----------
    files : of one table, not in its log yet.
    counters : what was counted, and ``largest_worker_bytes``.
    """

    files: list[File]
    counters: dict[str, float]

    @classmethod
    def of(cls, reports: Sequence[tasks.TaskReport]) -> Written:
        """What the tasks told."""
        return cls([file for report in reports for file in report.files], tasks.add_counters(reports))

    @property
    def rows(self) -> int:
        """Rows of the files."""
        return sum(file.rows for file in self.files)


def write_files(into: Target, rows: Rows, count: Count | None = None) -> Written:
    """Let the tasks write the rows, a file for each share that has any.

    Parameters
    ----------
    rows : of the target's columns (without run).
    count : counters of a batch, to be added up.
    """

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = tasks.TaskReport()

        def counted() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for name, value in (count(batch) if count else {}).items():
                    report.counters[name] = report.counters.get(name, 0) + value
                yield batch

        report.write(into, counted())
        yield report.to_batch()

    written = Written.of(tasks.reports_of(rows.run(write)))
    written.counters["rows"] = written.rows
    return written
