"""What a process and all that it starts take of CPU, by control groups of Linux."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import measure
from benchmarks.measure import cpu_meter, own_groups

SPIN = """
import signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as Spark's parent of the workers
import os
if os.fork() == 0:
    end = time.process_time() + 1.0
    while time.process_time() < end: pass
    os._exit(0)
try: os.wait()
except ChildProcessError: pass
"""
"""A process whose child uses a second of CPU and ends unseen by its parent."""


def kinds_of_groups() -> list[str]:
    """The versions of control groups that this machine lets be made."""
    kinds = []
    for parent in own_groups():
        if group := measure._new_group(parent):
            kinds.append("1" if (group / "cpuacct.usage").exists() else "2")
            group.rmdir()
    return kinds


@pytest.mark.parametrize("version", ["1", "2"])
def test_cpu_meter__counts_what_is_in_it_and_no_neighbour(version: str, monkeypatch) -> None:
    if version not in (kinds := kinds_of_groups()):
        pytest.skip(f"no control group of version {version} can be made here")
    (parent,) = [parent for kind, parent in zip(kinds, own_groups(), strict=True) if kind == version]
    monkeypatch.setattr(measure, "own_groups", lambda: [parent])
    spin = [sys.executable, "-c", SPIN]
    with cpu_meter() as meter:
        subprocess.run(spin, check=True)  # a neighbour
        assert meter.seconds() < 0.5
        subprocess.run(meter.command(spin), check=True)
        assert 1.0 <= meter.seconds() < 1.9
    assert not meter.group.exists()
    assert "alone" in meter.counts


def test_cpu_meter__takes_in_a_running_process_and_lets_it_go_at_the_end() -> None:
    if not kinds_of_groups():
        pytest.skip("no control group can be made here")
    running = subprocess.Popen(["sleep", "60"])
    try:
        before = Path(f"/proc/{running.pid}/cgroup").read_text()
        with cpu_meter() as meter:
            meter.add(running.pid)
            assert meter.group.name in Path(f"/proc/{running.pid}/cgroup").read_text()
        assert Path(f"/proc/{running.pid}/cgroup").read_text() == before
    finally:
        running.kill()
        running.wait()


def test_cpu_meter__lets_go_of_processes_that_come_and_go() -> None:
    if not kinds_of_groups():
        pytest.skip("no control group can be made here")
    restless = "for i in 1 2 3 4; do (while :; do /bin/true; done) & done; wait"
    for _ in range(3):
        try:
            with cpu_meter() as meter:
                running = subprocess.Popen(meter.command(["sh", "-c", restless]), start_new_session=True)
                time.sleep(0.1)
            assert not meter.group.exists()
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


@pytest.mark.parametrize("parents", [[], [Path("/nowhere")]], ids=["no group", "not allowed"])
def test_cpu_meter__without_a_control_group_counts_the_machine_and_says_so(parents, monkeypatch) -> None:
    monkeypatch.setattr(measure, "own_groups", lambda: parents)
    with cpu_meter() as meter:
        spin = [sys.executable, "-c", SPIN]
        assert meter.command(spin) == spin
        subprocess.run(spin, check=True)
        assert meter.seconds() >= 0.9, "the machine's clock has ticks"
    assert "the whole machine" in meter.counts


def test_cpu_meter__leaves_no_group_that_nobody_may_enter(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(measure, "own_groups", lambda: [tmp_path])
    monkeypatch.setattr(measure.CpuMeter, "command", lambda *_: ["false"])
    with cpu_meter() as meter:
        assert meter.group is None
    assert not list(tmp_path.iterdir())


def test_own_groups__version_1_comes_first_at_this_process_own_place(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("4:memory:/far\n2:cpu,cpuacct:/here\n0::/new\n")
    (tmp_path / "mounts").write_text(
        "cgroup2 /c/unified cgroup2 rw 0 0\n"
        "cgroup /c/memory cgroup rw,memory 0 0\n"
        "cgroup /c/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
    )
    assert list(own_groups(tmp_path)) == [Path("/c/cpu,cpuacct/here"), Path("/c/unified/new")]
