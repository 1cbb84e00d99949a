"""The counters of what a job costs: of the driver and of tasks, whatever the tasks return."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from epsjoin.lake import phases
from epsjoin.lake.phases import phase
from epsjoin.spark.job.job import Job, run_job
from epsjoin.spark.rows.rows import FrameRows
from epsjoin.spark.tasks import cost, tasks
from tests.lake.test_phases import Clock
from tests.spark.conftest import JobMaker
from tests.tiny import RUN, coordinate, key

NAMES = {
    *("seconds", "seconds_start", "seconds_read", "seconds_work", "seconds_write", "seconds_commit"),
    *("cpu_seconds_driver", "cpu_seconds_jvm", "cpu_seconds_workers"),
}
ENOUGH = 0.2
"""Seconds that a task of these tests takes at least."""


def burn() -> None:
    began = time.process_time()
    while time.process_time() - began < ENOUGH:
        pass


def read_and_work(_: object) -> Iterator[pa.RecordBatch]:
    with phase("read"):
        time.sleep(ENOUGH)
    burn()
    yield pa.record_batch({"n": [1]})


def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        burn()
        with phase("write"):
            time.sleep(ENOUGH)
        yield batch


def cost_of(job: Job, step: object) -> dict[str, float]:
    """Run a step as a job; what it cost."""
    file = job.project / "metrics.json"
    given = ["--lake", job.lake.uri, "--dataset", "tiny", "--run", RUN, "--metrics-out", str(file)]
    assert run_job("ingest", step, [*given, "--contracts", str(job.lake.contracts)]) == 0
    return {name: value for name, value in json.loads(file.read_text()).items() if "seconds" in name}


@pytest.fixture
def job(make_job: JobMaker) -> Job:
    return make_job([key(), coordinate("x")])


def test_cost__has_what_tasks_spend_by_phase(job: Job) -> None:
    def step(job: Job) -> dict[str, float]:
        assert len(tasks.run_tasks(job.spark, [1, 2], read_and_work)) == 2
        frame = job.spark.range(0, 2, 1, 2)
        assert FrameRows(frame).map(of_batches, "id long").count() == 2  # by no function of ours
        return {}

    found = cost_of(job, step)
    assert found.keys() == NAMES
    assert min(found[f"seconds_{name}"] for name in ("read", "write")) >= 2 * ENOUGH
    assert min(found["seconds_work"], found["cpu_seconds_workers"]) >= 4 * ENOUGH
    assert found["seconds"] >= found["seconds_start"] + found["seconds_commit"]


def test_cost__of_a_step_without_tasks_is_that_of_the_driver(job: Job) -> None:
    def step(job: Job) -> dict[str, float]:
        with phase("commit"):
            time.sleep(ENOUGH)
        burn()
        return {}

    found = cost_of(job, step)
    assert found["cpu_seconds_workers"] == 0
    assert min(found[name] for name in ("cpu_seconds_driver", "seconds_work", "seconds_commit")) >= ENOUGH
    assert found["seconds"] >= 2 * ENOUGH


class Told:
    """What a task has told, where Spark's accumulator would be."""

    def __init__(self) -> None:
        self.costs: list[dict[str, float]] = []

    def add(self, costs: dict[str, float]) -> None:
        self.costs.append({name: seconds for name, seconds in costs.items() if name != "cpu"})


def test_counted__tells_what_rows_and_work_took_whether_the_task_fails_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, told, job = Clock(), Told(), cost._OfTasks()
    monkeypatch.setattr(phases, "time", clock)
    monkeypatch.setattr(phases, "_seconds", {})
    monkeypatch.setattr(job, "_told", told)

    def rows() -> Iterator[int]:
        for row in range(3):
            clock.now += 1
            yield row

    def work(mine: Iterable[int]) -> Iterator[int]:
        for row in mine:
            clock.now += 4
            yield row
            if row == 2:
                raise ValueError("of the work")

    token = cost._COUNTING.set(job)
    task = cost.counted(None, work)
    cost._COUNTING.reset(token)
    found = []

    def take() -> None:
        for row in task(rows()):
            clock.now += 100  # by Spark
            found.append(row)

    with pytest.raises(ValueError, match="of the work"):
        take()
    assert (found, told.costs) == ([0, 1, 2], [{"read": 3, "work": 12}])


def test_counted__changes_nothing_for_who_is_no_job(spark: SparkSession) -> None:
    (batch,) = tasks.run_tasks(spark, [1], read_and_work)
    assert batch.to_pydict() == {"n": [1]}
    assert FrameRows(spark.range(1)).map(of_batches, "id long").collect() == [(0,)]


def test_cpu_of_the_parent__is_told_once(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, sys, time\n"
        "from epsjoin.spark.tasks import cost\n"
        f"while time.process_time() < {ENOUGH}: pass\n"
        "cost.leave_cpu_seconds_to_workers()\n"
        "for worker in range(2):\n"
        "    if not os.fork():\n"
        "        print(cost._new_cpu_seconds() >= time.process_time() + 0.1, flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(cost.__file__).parents[3])}
    ended = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["True", "False"]
