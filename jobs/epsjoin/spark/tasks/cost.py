"""What a job costs: the time of its phases on the driver and in its tasks, the CPU of all its processes.

Tasks report their costs by an accumulator of Spark's, which collects them from every machine, whatever rows
the tasks return. What a failed task has spent is reported by the next task of the same process, if there is
one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from pyspark import Accumulator, AccumulatorParam, SparkContext
from pyspark.sql import SparkSession

from epsjoin.lake.phases import phase, seconds_of_phases, timed

R = TypeVar("R")
Seconds = dict[str, float]
"""Seconds by what they were spent on."""

_BUSY = ("read", "work", "write")
"""The phases that are added up over the driver and all tasks."""
_CPU = "cpu"


def _plus(left: Mapping[str, float], right: Mapping[str, float], sign: int = 1) -> Seconds:
    return {name: left.get(name, 0.0) + sign * right.get(name, 0.0) for name in {**left, **right}}


class _Sum(AccumulatorParam[Seconds]):
    """Adds up seconds by name."""

    def zero(self, value: Seconds) -> Seconds:
        return dict.fromkeys(value, 0.0)

    def addInPlace(self, value1: Seconds, value2: Seconds) -> Seconds:
        return _plus(value1, value2)


class _OfTasks:
    """What the tasks of a job have spent; it needs a session only when there are tasks."""

    def __init__(self) -> None:
        self._told: Accumulator[Seconds] | None = None

    def accumulator(self, spark: SparkSession) -> Accumulator[Seconds]:
        if self._told is None:
            self._told = spark.sparkContext.accumulator({}, _Sum())
        return self._told

    @property
    def total(self) -> Seconds:
        return {} if self._told is None else self._told.value


_COUNTING: ContextVar[_OfTasks | None] = ContextVar("counting", default=None)
"""Where the tasks of the running job report their costs; tasks of other callers report none."""


def counted(spark: SparkSession, work: Callable[[Any], Iterable[R]]) -> Callable[[Any], Iterator[R]]:
    """Let a task report what its work costs, if a job is counting; waiting for its rows counts as reading."""
    job = _COUNTING.get()
    told = None if job is None else job.accumulator(spark)

    def run(rows: Iterable[Any]) -> Iterator[R]:
        if told is None:
            yield from work(rows)
            return
        before = seconds_of_phases()
        try:
            yield from timed(work(timed(rows, "read")), "work")
        finally:
            told.add({**_plus(seconds_of_phases(), before, -1), _CPU: _new_cpu_seconds()})

    return run


_cpu_told = 0.0
"""CPU seconds of this process since its fork that tasks have reported."""
_left: list[int] = []
"""A pipe with the CPU seconds of the process that this one was forked from, for the first reader."""


def leave_cpu_seconds_to_workers() -> None:
    """Leave what this process has spent so far to the first worker forked from it that reports its costs."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.write(write, repr(time.process_time()).encode())
    _left.append(read)


def _new_cpu_seconds() -> float:
    global _cpu_told
    now = time.process_time()
    new, _cpu_told = now - _cpu_told, now
    with suppress(BlockingIOError):
        for pipe in _left:
            new += float(os.read(pipe, 64))
    return new


class Meter:
    """Measures a job, from the start of its process; in a session that is running already, from now on.

    On systems without ``/proc`` it begins now, too, and the CPU of the JVM is not known.
    """

    def __init__(self) -> None:
        now = time.monotonic()
        processes = [each for each in (_Process.of(os.getpid()), _jvm()) if each is not None]
        stands = SparkContext._active_spark_context is not None or not processes
        self._cpu_before = _cpu() if stands else {}
        self._began = now if stands else now - max(each.age for each in processes)
        self._step_began, self._phases_before = now, seconds_of_phases()
        self._of_tasks = _OfTasks()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Measure the step of the job, after all that comes before it."""
        self._step_began, self._phases_before = time.monotonic(), seconds_of_phases()
        token = _COUNTING.set(self._of_tasks)
        try:
            with phase("work"):
                yield
        finally:
            _COUNTING.reset(token)

    def counters(self) -> dict[str, float]:
        """Return the counters of the cost until now; see docs/understand-the-result.md."""
        of_tasks = self._of_tasks.total
        phases = _plus(seconds_of_phases(), self._phases_before, -1)
        busy = _plus(phases, of_tasks)
        cpu = {**_plus(_cpu(), self._cpu_before, -1), "workers": of_tasks.get(_CPU, 0.0)}
        found = {
            "seconds": time.monotonic() - self._began,
            "seconds_start": self._step_began - self._began,
            "seconds_commit": phases.get("commit", 0.0),
            **{f"seconds_{name}": busy.get(name, 0.0) for name in _BUSY},
            **{f"cpu_seconds_{name}": seconds for name, seconds in cpu.items()},
        }
        return {name: round(value, 3) for name, value in found.items()}


def _cpu() -> Seconds:
    """CPU seconds of the driver's Python and of its JVM, with their children that have ended."""
    times, jvm = os.times(), _jvm()
    # to the microsecond for the process itself; os.times counts ticks of the kernel
    driver = time.process_time() + times.children_user + times.children_system
    return {"driver": driver} if jvm is None else {"driver": driver, "jvm": jvm.cpu}


class _Process:
    """A process as ``/proc`` has it: its age, and its CPU seconds with those of children that have ended."""

    def __init__(self, fields: list[str]) -> None:
        ticks = os.sysconf("SC_CLK_TCK")
        self.age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / ticks
        self.cpu = sum(map(int, fields[11:15])) / ticks

    @classmethod
    def of(cls, pid: int) -> _Process | None:
        try:
            return cls(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split())
        except OSError:
            return None


def _jvm() -> _Process | None:
    """The JVM of the driver: the parent of a Python that spark-submit has started, otherwise its child."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _Process.of(os.getppid())
    gateway: Any = SparkContext._gateway
    return None if gateway is None else _Process.of(gateway.proc.pid)
