"""How it is measured: in processes of their own, in turn, warm, and by CPU time first.

One process runs all rounds of a set. Both contenders then see the same points, the same machine within
seconds, and compiled code; a process per round would spend minutes on imports and points alone. Who begins
changes with every round, so that neither always finds the other's heap. Memory is measured apart, in one
process per contender, where nothing ran before.
"""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from .free_memory import take_back

if TYPE_CHECKING:  # numpy must not be loaded before the number of its threads is set
    from .contenders import Contender
    from .sets import Points

T = TypeVar("T")
_SECONDS_TO_LEAVE = 10.0
LIMIT = "limit"
WARM_ROWS = 10_000  # enough that a join is planned as a large one is


class Call(Protocol):
    """Call a function and give what it returns: :func:`in_own_process`, or at once in this one."""

    def __call__(self, function: Callable[..., T], *arguments: Any) -> T: ...


class Run(NamedTuple):
    """One call: CPU (user and system) and wall seconds, and what it returned."""

    cpu: float
    wall: float
    answer: Any


Round = dict[str, Run]


class Times(NamedTuple):
    """CPU and wall seconds of each round."""

    cpu: list[float]
    wall: list[float]


def in_own_process(function: Callable[..., T], *arguments: Any) -> T:
    """Call the function in a fresh process whose BLAS has one thread."""
    # inherited: the new process imports the main module, and with it numpy, before it runs anything else
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as pool:
        return pool.submit(function, *arguments).result()


def clocked(work: Callable[[], Any]) -> Run:
    """Call the function, and tell what that took."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = work()
    return Run(time.process_time() - cpu, time.perf_counter() - wall, answer)


def timed(work: Callable[[], Any]) -> Run:
    """The same without garbage of others, and with memory at hand."""
    gc.collect()
    take_back()
    return clocked(work)


def interleaved(tasks: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """What each task takes in each round, after one that warms up."""
    times = {name: Times([], []) for name in tasks}
    for number in range(rounds + 1):
        for name, task in tasks.items():
            cpu, wall, _ = clocked(task)
            if number:
                times[name].cpu.append(cpu)
                times[name].wall.append(wall)
    return times


class CpuMeter:
    """CPU seconds, user and system, of some processes and of all that they start, however these end (Linux).

    Spark's Python workers end unseen by their parent, so that no process counts what they used: a control
    group does. Where none can be had it is the CPU of the whole machine, which must have nothing else to do.
    :func:`cpu_meter` makes one.

    Parameters
    ----------
    group : folder of the control group; ``None``: the whole machine.
    """

    def __init__(self, group: Path | None) -> None:
        self.group = group
        self._before = 0.0 if group else _machine_cpu()

    @property
    def counts(self) -> str:
        """What is counted, for the page."""
        return "the processes of a step alone" if self.group else "**the whole machine** (no control group)"

    def command(self, command: Sequence[str]) -> list[str]:
        """The same command, counted from its first instruction."""
        if self.group is None:
            return list(command)
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.group / "cgroup.procs"), *command]

    def add(self, pid: int) -> None:
        """Count a process that runs, and what it starts, from now on."""
        if self.group:
            (self.group / "cgroup.procs").write_text(str(pid))

    def seconds(self) -> float:
        """CPU seconds so far."""
        if self.group is None:
            return _machine_cpu() - self._before
        if (nanoseconds := self.group / "cpuacct.usage").exists():
            return int(nanoseconds.read_text()) / 1e9
        return int((self.group / "cpu.stat").read_text().split()[1]) / 1e6  # usage_usec is its first line


@contextmanager
def cpu_meter() -> Iterator[CpuMeter]:
    """A new meter, which counts nothing yet. Who is still in it at the end goes back to this process."""
    group = next(filter(None, map(_new_group, own_groups())), None)
    try:
        yield CpuMeter(group)
    finally:
        if group:
            _remove_group(group)


def _remove_group(group: Path) -> None:
    """Put the processes of a group into that above it and remove it; who starts or ends takes a moment."""
    end = time.monotonic() + _SECONDS_TO_LEAVE
    while True:
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                (group.parent / "cgroup.procs").write_text(pid)
        try:
            return group.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                raise
        time.sleep(0.01)


def _new_group(parent: Path) -> Path | None:
    """A control group below this one; ``None`` where it cannot be made, or nobody may enter it."""
    try:
        group = Path(tempfile.mkdtemp(prefix="epsjoin-bench-", dir=parent))
    except OSError:
        return None
    if subprocess.run(CpuMeter(group).command(["true"]), stderr=subprocess.DEVNULL).returncode:
        group.rmdir()
        return None
    return group


def own_groups(proc: Path = Path("/proc/self")) -> Iterator[Path]:
    """This process's control groups that count CPU: that of version 1 before that of version 2."""
    own = {}
    for line in (proc / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        own.update(dict.fromkeys(controllers.split(","), path))
    mounts = [line.split() for line in (proc / "mounts").read_text().splitlines()]
    for kind, controller in (("cgroup", "cpuacct"), ("cgroup2", "")):
        for _, folder, type_, options, *_ in mounts:
            if type_ == kind and controller in own and (not controller or controller in options.split(",")):
                yield Path(folder + own[controller])


def _machine_cpu() -> float:
    """CPU seconds, user and system, that all processes have used since the machine started."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split()[1:11])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def race(
    contenders: Mapping[str, Contender],
    file: Path,
    eps: float,
    rounds: int,
    limit: Callable[[Points, int], Any] | None = None,
) -> list[Round]:
    """Let every contender run in every round, on the points of the file.

    Parameters
    ----------
    limit : runs at the end of each round, as ``LIMIT``, with the number of pairs that the first contender has
        found in it.
    """
    points = _points(file)
    for contender in contenders.values():
        _warm(contender, points, eps)
    result = []
    for number in range(rounds):
        names = list(contenders) if number % 2 == 0 else list(contenders)[::-1]
        one = {name: _run(contenders[name], points, eps) for name in names}
        if limit is not None:
            n_pairs = one[next(iter(contenders))].answer
            one[LIMIT] = timed(lambda n_pairs=n_pairs: limit(points, n_pairs))
        result.append(one)
    return result


def peak_bytes(contender: Contender, file: Path, eps: float) -> int:
    """By how much the process grows at most, above the points and all that is imported."""
    points = _points(file)
    _warm(contender, points, eps)
    return growth_bytes(lambda: contender(points, eps))


def growth_bytes(work: Callable[[], Any]) -> int:
    """By how much the resident set grows at most while this runs (Linux).

    ``ru_maxrss`` is not enough: it begins with what the parent had when it started this process, and keeps
    the peak of imports and compiling. Linux lets a process forget that peak.
    """
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = _status_bytes("VmRSS")
    work()
    return _status_bytes("VmHWM") - before


def _status_bytes(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise OSError(f"/proc/self/status has no {name}")
    return int(found[1]) * 1024


def _points(file: Path) -> Points:
    import numpy as np

    points: Points = np.load(file)
    return points


def _warm(contender: Contender, points: Points, eps: float) -> None:
    """Compile for this dtype and dimension, and import what is imported late."""
    contender(points[:: max(1, len(points) // WARM_ROWS)][:WARM_ROWS].copy(), eps)


def _run(contender: Contender, points: Points, eps: float) -> Run:
    return timed(lambda: contender(points, eps))
