"""A job's processes: found by a mark in their environment, which they inherit however they are started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

MARK = "SURVIVAL_MARK"
LAUNCHER = "org.apache.spark.launcher.Main"


class Process(NamedTuple):
    """A running process."""

    pid: int
    parent: int
    command: str


class Started:
    """A command below a process that stands for Airflow's task: it starts the command and waits.

    Parameters
    ----------
    command : what to run.
    log : file for all that it says.
    below_task : whether there is that process; Airflow itself needs none.
    **environment : on top of this process's own.
    """

    def __init__(
        self, command: Sequence[str], log: Path, *, below_task: bool = True, **environment: str
    ) -> None:
        self.mark = uuid.uuid4().hex
        task = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
        with log.open("w") as output:
            self.task = subprocess.Popen(
                [sys.executable, "-c", task, *command] if below_task else list(command),
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, MARK: self.mark, **environment},
            )

    def processes(self) -> list[Process]:
        """All its processes that run."""
        return list(marked(self.mark))

    def is_over(self) -> bool:
        """Whether the command has ended."""
        return self.task.poll() is not None

    def is_gone_within(self, seconds: float) -> bool:
        """Whether none of its processes is left after so many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            self.task.poll()
            if not self.processes():
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)

    def end(self) -> None:
        """Kill whatever is left of it."""
        for process in self.processes():
            kill(process.pid)
        self.task.wait()


def marked(mark: str) -> list[Process]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            if state != "Z" and f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                found.append(Process(int(folder.name), int(parent), " ".join(words)))
        except OSError:  # it has ended meanwhile
            continue
    return found


def kill(pid: int) -> bool:
    """Kill a process by its id; whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _is_java(process: Process) -> bool:
    return Path(process.command.partition(" ")[0]).name == "java"


def task(started: Started) -> list[int]:
    """What started the wrapper: Airflow's task process, or what stands for it."""
    return [started.task.pid]


def jvm(started: Started) -> list[int]:
    """Spark's JVM; its scripts and the JVM of its launcher, which are there before, name its class, too."""
    return [
        p.pid
        for p in started.processes()
        if _is_java(p) and "org.apache.spark.deploy.SparkSubmit" in p.command and LAUNCHER not in p.command
    ]


def driver(started: Started) -> list[int]:
    """The driver's Python, a child of the JVM; a child that is still to become it says what the JVM says."""
    of_jvm = set(jvm(started))
    children = [p for p in started.processes() if p.parent in of_jvm and "/jobs/" in p.command]
    return [p.pid for p in children if not _is_java(p)]


def worker(started: Started) -> list[int]:
    """Python processes that work on tasks: children of pyspark.daemon."""
    daemons = set(daemon(started))
    return [p.pid for p in started.processes() if p.parent in daemons]


def daemon(started: Started) -> list[int]:
    """The process that forks the workers."""
    of_jvm = set(jvm(started))
    return [p.pid for p in started.processes() if "spark.startup.daemon" in p.command and p.parent in of_jvm]


def wrapper(started: Started) -> list[int]:
    """bin/spark-submit: a shell, then, by exec, the JVM itself."""
    return [p.pid for p in started.processes() if p.parent == started.task.pid]


Victim = Callable[[Started], list[int]]
