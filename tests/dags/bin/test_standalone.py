"""``bin/standalone.py``: its services end with it, however it is asked to end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent

import pytest

from dags.scripts import BIN, has_ended

SCRIPT = (BIN / "standalone.py").read_text()


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """Ctrl-C is heard, also where the tests run behind ``nohup`` or ``&``, which pass on that it is not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def run_standalone(
    script: str,
    folder: Path,
    starts: str,
    ends: str,
    asked: signal.Signals | None,
    port: int = 1,
    scheduler: str = "return None",
) -> subprocess.CompletedProcess[str]:
    """Run the script with an Airflow that is asked to end, if it is, once ``starts`` has run."""
    (folder / "airflow").mkdir()
    for package in (".", "jobs", "cli", "cli/commands"):
        (folder / "airflow" / package).mkdir(exist_ok=True)
        (folder / "airflow" / package / "__init__.py").touch()
    (folder / "airflow" / "jobs" / "job.py").write_text(f"def most_recent_job(_): {scheduler}")
    (folder / "airflow" / "cli" / "commands" / "standalone_command.py").write_text(
        dedent("""
            import subprocess, threading

            class SubCommand(threading.Thread):  # as Airflow's
                def __init__(self, parent, name, command, env):
                    super().__init__()
                    self.name, self.command, self.process = name, command, None

                def run(self):
                    self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE)
                    for line in self.process.stdout:
                        print(line.decode(), end="")

                def stop(self):
                    while self.process is None:
                        pass
                    self.process.terminate()
            """)
    )
    (folder / "airflow" / "__main__.py").write_text(
        dedent(f"""
            import os, subprocess, time

            def main():
                {starts}
                try:
                    {"pass" if asked is None else f"os.kill(os.getpid(), {asked.value})"}
                    time.sleep(45)
                except KeyboardInterrupt:
            """)
        + indent(dedent(ends), " " * 8)
    )
    return subprocess.run(
        [sys.executable, "-c", script, "standalone"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder), "AIRFLOW__API__PORT": str(port)},
        check=False,
        timeout=50,
    )


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_standalone__ends_as_by_ctrl_c(asked: signal.Signals, tmp_path: Path) -> None:
    """Airflow's own stops its services then, and by no other signal."""
    done = run_standalone(SCRIPT, tmp_path, "pass", "print('the services are stopped')", asked)
    assert (done.stdout, done.stderr) == ("the services are stopped\n", "")


def test_standalone__is_refused_where_another_one_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run_standalone(SCRIPT, tmp_path, "print('begun')", "pass", signal.SIGINT, port)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"something answers at 127.0.0.1:{port} already: another standalone" in done.stderr


@pytest.mark.parametrize(
    ("scheduler", "code"),
    [
        ("return type('', (), {'is_alive': lambda _: True})()", 2),
        ("return type('', (), {'is_alive': lambda _: False})()", 0),
        ("from sqlalchemy.exc import OperationalError; raise OperationalError('', {}, Exception())", 0),
    ],
    ids=["alive", "ended", "no tables yet"],
)
def test_standalone__is_refused_beside_a_scheduler_that_lives(
    tmp_path: Path, scheduler: str, code: int
) -> None:
    done = run_standalone(SCRIPT, tmp_path, "pass", "pass", signal.SIGINT, scheduler=scheduler)
    assert done.returncode == code
    assert ("a scheduler is at work on this database" in done.stderr) == (code == 2)


def test_standalone__kills_services_that_do_not_end(tmp_path: Path) -> None:
    """A scheduler waits for tasks that wait for an API server that has ended."""
    soon = SCRIPT.replace("STOP_SECONDS = 60", "STOP_SECONDS = 1")
    assert soon != SCRIPT
    shell = "trap : TERM; echo ready; sleep 600 & echo $!; wait; wait; kill -STOP $$"  # until killed
    done = run_standalone(
        soon,
        tmp_path,
        f"service = subprocess.Popen(['sh', '-c', '{shell}'], stdout=subprocess.PIPE, text=True); "
        "service.stdout.readline()",
        """
        service.terminate()
        print(service.stdout.readline(), end='')
        print('stopped by', service.wait())
        """,
        signal.SIGTERM,
    )
    task, said = done.stdout.splitlines()
    assert (said, done.stderr) == (f"stopped by {-signal.SIGKILL}", "")
    assert has_ended(int(task)), "what the service has started is killed, too"


@pytest.mark.parametrize("how", ["exit 7", "kill -9 $$"], ids=["by itself", "killed"])
def test_standalone__ends_when_one_of_its_services_has_ended(tmp_path: Path, how: str) -> None:
    """Nobody else notices a scheduler that is gone: runs would be waited for that nobody makes."""
    services = {"api-server": "exec sleep 600", "scheduler": f"echo works; {how}"}
    done = run_standalone(
        SCRIPT,
        tmp_path,
        f"""
                from airflow.cli.commands.standalone_command import SubCommand
                started = [SubCommand(None, n, ['sh', '-c', c], None) for n, c in {services}.items()]
                for service in started: service.start()
        """.strip(),
        """
        for service in started:
            service.stop()
            service.join()
        print('stopped')
        """,
        None,
    )
    code = 7 if how == "exit 7" else -signal.SIGKILL
    assert done.stdout == "works\nstopped\n"
    assert done.stderr == f"airflow: scheduler has ended with exit code {code}, so all services end\n"
    assert done.returncode == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody is told of such processes")
def test_standalone__kills_what_a_killed_service_has_left(tmp_path: Path) -> None:
    """The workers of a scheduler hold its output open, and wait for work for ever."""
    soon = SCRIPT.replace("STOP_SECONDS = 60", "STOP_SECONDS = 1")
    done = run_standalone(
        soon,
        tmp_path,
        """
                from airflow.cli.commands.standalone_command import SubCommand
                service = SubCommand(None, 'scheduler', ['sh', '-c', 'sleep 600 & echo $!; kill -9 $$'], None)
                service.start()
        """.strip(),
        "service.join()",
        None,
    )
    assert done.returncode == 1
    assert has_ended(int(done.stdout))


def test_standalone__that_is_asked_to_end_tells_no_service_that_ends(tmp_path: Path) -> None:
    done = run_standalone(
        SCRIPT,
        tmp_path,
        """
                from airflow.cli.commands.standalone_command import SubCommand
                service = SubCommand(None, 'scheduler', ['sh', '-c', 'echo works; exec sleep 600'], None)
                service.start()
                while service.process is None: time.sleep(0.01)
        """.strip(),
        """
        import threading
        service.stop()
        for thread in set(threading.enumerate()) - {threading.main_thread()}:
            thread.join()
        """,
        signal.SIGTERM,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "works\n", "")
