"""What tasks report to the driver: their files, their counters, and why they refused their input."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext

from epsjoin.lake.parquet import File
from epsjoin.lake.targets import Target
from epsjoin.stopwatch import add_seconds, each_within

T = TypeVar("T")


@dataclass
class TaskReport:
    """What one task reports to the driver: the files it wrote, its counters, why it refused its input.

    Counters that end in ``seconds`` are wall-clock times of phases. ``largest_worker_bytes`` is the peak
    memory of the task's process, ``largest_driver_bytes`` that of the driver where it does the work itself.
    All other counters depend on the data alone. The names of its files begin with ``number``, by default that
    of the task, which gives the files their order.
    """

    files: list[File] = field(default_factory=list)
    counters: dict[str, float] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    number: int = field(default_factory=lambda: task_number())

    def write(
        self, into: Target, batches: Iterable[pa.RecordBatch | pa.Table], **partition: object
    ) -> File | None:
        """Write batches to a new file of the table (see :meth:`Target.write`) and report the file."""
        file = into.write(batches, task=self.number, **partition)
        self.files += [file] if file else []
        return file

    def timed(self, items: Iterable[T], phase: str) -> Iterator[T]:
        """Yield the same items, and add the time spent waiting for them to ``<phase>_seconds``."""
        return each_within(items, lambda: add_seconds(self.counters, f"{phase}_seconds"))

    def add(self, others: Iterable[TaskReport]) -> None:
        """Add the counters and refusals of the tasks whose rows this task has received."""
        for other in others:
            self.counters |= add_counters([self, other])
            self.refused += other.refused

    def to_json(self) -> str:
        """The report as JSON text."""
        where = "worker" if TaskContext.get() else "driver"
        self.counters[f"largest_{where}_bytes"] = peak_bytes()
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> TaskReport:
        """The report that :meth:`to_json` wrote."""
        body = json.loads(text)
        body["files"] = [File(**file) for file in body["files"]]
        return cls(**body)

    @classmethod
    def of_batches(cls, batches: Iterable[pa.RecordBatch]) -> list[TaskReport]:
        """The reports that tasks returned, in the order of the batches."""
        return [cls.from_json(text) for batch in batches for text in batch.column("report").to_pylist()]

    def to_batch(self) -> pa.RecordBatch:
        """The report as a batch of one row, which the task returns."""
        return pa.record_batch({"report": pa.array([self.to_json()])})


def peak_bytes() -> int:
    """The most memory that this process has held so far, without that of the process that started it."""
    if sys.platform == "linux":
        # getrusage begins with the peak of the process that started this one
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) << 10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def task_number() -> int:
    """Number of the partition that this task computes; 0 on the driver."""
    context = TaskContext.get()
    return context.partitionId() if context else 0


def add_counters(reports: Iterable[TaskReport]) -> dict[str, float]:
    """Add up the tasks' counters; for those that begin with ``largest_``, take the maximum."""
    total: dict[str, float] = {}
    for report in reports:
        for name, value in report.counters.items():
            total[name] = (
                max(total.get(name, 0), value) if name.startswith("largest_") else total.get(name, 0) + value
            )
    return total
