"""All services as ``make up`` starts them, with login; nothing of them is left when they are down."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from deltalake import DeltaTable
from tests.end_to_end.supervised import pids, supervise
from tests.ports import free_ports

REPO = Path(__file__).resolve().parents[2]
RUN = "2023-06-01"
STOPPED = [
    ["api-server", "dag-processor", "scheduler", "triggerer"],
    ["spark-master", "spark-worker-1", "spark-worker-2"],
    ["postgres"],
]
"""What is stopped at once, in the order in which it is: everything before what it needs."""

# a machine may be busy
pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(1800)]


class Started:
    """Services in a folder, on ports, of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        first = free_ports(5)
        self.ports = {
            "AIRFLOW__API__PORT": first,
            "EPSJOIN_DATABASE_PORT": first + 1,
            "EPSJOIN_CLUSTER_PORT": first + 2,  # and the next two for the workers
        }
        self.base = f"http://127.0.0.1:{self.ports['AIRFLOW__API__PORT']}"
        self.token = ""
        self.seen: set[int] = set()

    def say(self, *words: str) -> subprocess.CompletedProcess[str]:
        own = {
            name: value for name, value in os.environ.items() if not name.startswith(("EPSJOIN_", "AIRFLOW"))
        }
        own |= {name: str(port) for name, port in self.ports.items()}
        own |= {
            "EPSJOIN_SERVICES_DIR": str(self.folder),
            "EPSJOIN_SERVICES_WAIT": "600",
            "EPSJOIN_LAKE": f"file://{self.folder}/lake",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",  # nobody changes a DAG meanwhile
        }
        command = [str(REPO / "bin" / "services"), *words]
        return subprocess.run(command, env=own, capture_output=True, text=True, check=False)

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        request = urllib.request.Request(self.base + path, method=method)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=120) as answer:
            return json.load(answer)

    def refusal_of(self, path: str, body: Any = None) -> int:
        with pytest.raises(HTTPError) as refused:
            self.ask(path, body)
        return refused.value.code

    def login(self) -> None:
        password = json.loads((self.folder / "secrets" / "passwords.json").read_text())["admin"]
        self.token = self.ask("/auth/token", {"username": "admin", "password": password})["access_token"]

    def unpause(self) -> None:
        """Log in and let runs start: any test may be the first one that is chosen."""
        self.login()
        self.ask("/api/v2/dags/navaids", {"is_paused": False}, "PATCH")

    def secrets(self) -> list[str]:
        found = [json.loads((self.folder / "secrets" / "passwords.json").read_text())["admin"]]
        found += [
            (self.folder / "secrets" / name).read_text() for name in ("database", "fernet", "api", "jwt")
        ]
        found += [(self.folder / "cluster" / "secret.conf").read_text().split()[-1]]
        assert min(map(len, found)) >= 24
        return found

    def processes(self) -> dict[int, str]:
        """Command lines of all that belongs to a session of ours, lies in our folder, or speaks of it."""
        sessions = self.sessions()
        marks = [str(self.folder).encode(), *(f":{port}".encode() for port in self.ports.values())]
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes()
                state, _, _, session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
                text = (
                    command + (process / "environ").read_bytes() + os.fsencode((process / "cwd").readlink())
                )
            except OSError:
                continue
            if int(process.name) != os.getpid() and (
                (int(session) in sessions and state != "Z") or any(mark in text for mark in marks)
            ):
                found[int(process.name)] = command.replace(b"\0", b" ").decode(errors="replace")
        return found

    def sessions(self) -> set[int]:
        """What was started, and is remembered after the services have forgotten it."""
        self.seen |= {int(file.read_text().split()[0]) for file in self.folder.glob("session")}
        return self.seen

    def listeners(self) -> set[str]:
        """Addresses, as the kernel writes them, on which one of our processes listens."""
        sockets = {
            fields[9]: fields[1].rpartition(":")[0]
            for table in ("tcp", "tcp6")
            for fields in map(str.split, Path(f"/proc/net/{table}").read_text().splitlines()[1:])
            if fields[3] == "0A"
        }
        found = set()
        for pid in self.processes():
            try:
                links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
            except OSError:
                continue
            found |= {
                sockets[link[8:-1]] for link in links if link.startswith("socket:") and link[8:-1] in sockets
            }
        return found


def await_(what: Callable[[], Any], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(1)


@pytest.fixture(scope="module")
def started() -> Iterator[Started]:
    # pytest's own folders are closed to the user that PostgreSQL runs as
    folder = Path(tempfile.mkdtemp(prefix="epsjoin-services-"))
    services = Started(folder)
    try:
        up = services.say("up")
        assert up.returncode == 0, up.stdout + up.stderr
        assert f"{services.base}, user admin, password in {folder}/secrets/passwords.json" in up.stdout
        yield services
    finally:
        services.sessions()
        log = folder / "logs" / "supervisord.log"
        n_lines = len(log.read_text().splitlines())
        down = services.say("down")
        said = "\n".join(log.read_text().splitlines()[n_lines:])
        left = services.processes()
        taken = [port for port in services.ports.values() if not is_free(port)]
        shutil.rmtree(folder, ignore_errors=True)
    assert down.returncode == 0, down.stderr
    assert left == {}
    assert taken == []
    stopped = re.findall(r" stopped: (\S+) \(", said)
    assert [sorted(stopped[:4]), sorted(stopped[4:7]), stopped[7:]] == STOPPED


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_services__let_nobody_in_without_the_password(started: Started) -> None:
    started.token = ""
    assert started.refusal_of("/api/v2/dags") == 401
    assert started.refusal_of("/auth/token", {"username": "admin", "password": "admin"}) == 401
    started.login()
    assert {dag["dag_id"] for dag in started.ask("/api/v2/dags")["dags"]} == {
        "navaids",
        "landmarks",
        "earthquakes",
        "vega_specs",
    }
    pools = {pool["name"]: pool["slots"] for pool in started.ask("/api/v2/pools")["pools"]}
    assert pools["lake_writers"] == 2


def test_services__listen_on_loopback_alone(started: Started) -> None:
    of_java = "0000000000000000FFFF0000"
    ours = {"0100007F", "0200007F"}  # 127.0.0.1, and that of the second worker
    assert started.listeners() == {*ours, *(of_java + address for address in ours)} - {"0200007F"}


def test_services__up_twice_changes_nothing(started: Started) -> None:
    # not all of them: a database opens and closes one per connection, Airflow one per file it reads
    runs = pids(started.folder)
    assert len(runs) == 8
    again = started.say("up")
    assert again.returncode == 0, again.stderr
    assert pids(started.folder) == runs
    status = started.say("status")
    assert status.returncode == 0
    assert status.stdout.count(": healthy\n") == 8


# tests/deployment/test_services.py: supervisord is told the same of all; an Airflow that starts costs most
@pytest.mark.parametrize("name", ["spark-worker-2", pytest.param("triggerer", marks=pytest.mark.long)])
def test_services__that_die_are_started_again_and_the_rest_is_left_alone(started: Started, name: str) -> None:
    before = pids(started.folder)
    os.kill(before[name], signal.SIGKILL)
    await_(lambda: len(now := pids(started.folder)) == 8 and now[name] != before[name], 60)
    up = started.say("up")
    assert up.returncode == 0, up.stderr
    after = pids(started.folder)
    assert {service for service in before if after[service] != before[service]} == {name}


def test_services__run_a_job_on_the_cluster(started: Started) -> None:
    unpaused = started.say("airflow", "dags", "unpause", "navaids", "--yes")
    assert unpaused.returncode == 0, unpaused.stderr
    started.login()
    assert started.ask("/api/v2/dags/navaids")["is_paused"] is False, "a command is for the services' Airflow"
    # a month without a snapshot: exit code 5 comes back as "skipped"
    run = "/api/v2/dags/navaids/dagRuns"
    started.ask(run, {"dag_run_id": "empty", "logical_date": "2026-10-01T00:00:00Z"})
    ingest = f"{run}/empty/taskInstances/ingest"
    await_(lambda: started.ask(ingest)["state"] in ("skipped", "failed", "up_for_retry"), 600)
    assert started.ask(ingest)["state"] == "skipped"
    master = (started.folder / "logs" / "spark-master.log").read_text()
    assert "Registered app navaids ingest" in master


@pytest.mark.long
def test_services__run_the_whole_chain_on_the_cluster(started: Started) -> None:
    started.unpause()
    run = "/api/v2/dags/navaids/dagRuns"
    started.ask(run, {"dag_run_id": "whole", "logical_date": f"{RUN}T00:00:00Z"})
    await_(lambda: started.ask(f"{run}/whole")["state"] in ("success", "failed"), 1500)
    assert started.ask(f"{run}/whole")["state"] == "success"
    lake = started.folder / "lake" / "navaids"
    assert DeltaTable(lake / "pairs").to_pyarrow_table().num_rows == 16529
    assert (lake / "reports" / f"run={RUN}" / "report.html").is_file()


def test_services__tell_no_secret(started: Started) -> None:
    secrets = started.secrets()
    commands = started.processes()
    assert len(commands) > 8
    assert not [command for command in commands.values() if any(secret in command for secret in secrets)]
    written = [
        *(started.folder / "logs").iterdir(),
        *(file for file in (started.folder / "airflow").rglob("*") if file.is_file()),
    ]
    assert any("task_id=ingest" in str(file) for file in written), "the log of a task is among them"
    for file in written:
        assert not any(secret.encode() in file.read_bytes() for secret in secrets), file
    started.login()
    rendered = json.dumps(started.ask("/api/v2/dags/~/dagRuns/~/taskInstances"))
    assert "application_args" in rendered
    assert not any(secret in rendered for secret in secrets)
    for file in (started.folder / "secrets").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


@pytest.mark.long
def test_services__half_a_minute_without_api_server_kills_no_job(started: Started) -> None:
    started.unpause()
    run = "/api/v2/dags/navaids/dagRuns"
    started.ask(run, {"dag_run_id": "alone", "logical_date": "2023-04-01T00:00:00Z"})
    ingest = f"{run}/alone/taskInstances/ingest"
    await_(lambda: started.ask(ingest)["state"] == "running", 300)
    supervise(started.folder, "stop", "airflow:api-server")
    time.sleep(45)  # the job ends meanwhile, and has to report
    assert started.say("up").returncode == 0
    await_(lambda: started.ask(ingest)["state"] in ("success", "skipped", "failed", "up_for_retry"), 300)
    assert (started.ask(ingest)["state"], started.ask(ingest)["try_number"]) == ("skipped", 1), "no snapshot"


@pytest.mark.long
def test_services__down_and_up_cost_only_the_try_that_was_under_way(started: Started) -> None:
    started.unpause()
    run = "/api/v2/dags/navaids/dagRuns"
    started.ask(run, {"dag_run_id": "again", "logical_date": "2023-03-01T00:00:00Z"})
    ingest = f"{run}/again/taskInstances/ingest"
    await_(lambda: started.ask(ingest)["state"] == "running", 600)
    assert started.say("down").returncode == 0
    assert started.say("up").returncode == 0
    started.login()
    await_(lambda: started.ask(ingest)["state"] in ("success", "skipped", "failed"), 900)
    assert (started.ask(ingest)["state"], started.ask(ingest)["try_number"]) == ("skipped", 2), "no snapshot"


@pytest.mark.long
def test_services__down_ends_a_job_that_runs(started: Started) -> None:
    started.unpause()
    run = "/api/v2/dags/navaids/dagRuns"
    started.ask(run, {"dag_run_id": "ended", "logical_date": "2023-05-01T00:00:00Z"})
    await_(lambda: any("jobs/ingest.py" in command for command in started.processes().values()), 300)
    # what is left is what the fixture looks for
