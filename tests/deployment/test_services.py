"""All services without Docker: their ports, their processes, their database."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import service
import services
from service import SECRETS, Refusal
from tests.deployment.environment import ALL_SECRETS, DOCKER, REPO, await_


@pytest.fixture
def here(tmp_path: Path) -> services.Services:
    for name in ("run", "logs", "secrets"):
        (tmp_path / name).mkdir()
    return services.Services(tmp_path, {})


def test_services__has_the_settings_of_the_compose_file_and_secrets_of_its_own(tmp_path: Path) -> None:
    own = services.Services(tmp_path, dict.fromkeys(SECRETS.values(), "of the containers")).environment
    assert not set(SECRETS.values()) & set(own)
    assert (
        own["EPSJOIN_CLUSTER_MEMORY"]
        == dict(service.read_settings(DOCKER / "settings.env"))["EPSJOIN_CLUSTER_MEMORY"]
    )
    assert json.loads(own["AIRFLOW_CONN_SPARK_DEFAULT"])["port"] == 7077


def test_services__secrets_are_all_that_the_compose_file_asks_for(tmp_path: Path) -> None:
    file = tmp_path / "my.secrets"
    services.write_secrets(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    values = dict(service.read_settings(file))
    assert set(values) == ALL_SECRETS
    assert len(set(values.values())) == len(values)
    assert all(re.fullmatch(r"[\w=-]{24,}", value) for value in values.values()), "compose reads no quotes"
    with pytest.raises(Refusal, match="is there already"):
        services.write_secrets(file)
    assert dict(service.read_settings(file)) == values


def test_services__refuses_a_port_that_is_taken_before_it_starts_anything(here: services.Services) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        here.database_port = taken.getsockname()[1]
        with pytest.raises(Refusal, match="is taken by another program; set EPSJOIN_DATABASE_PORT"):
            here.check_ports(["postgres"])
        here.check_ports([])  # it is ours
    here.check_ports(["postgres"])


STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgid(0, 0)  # as Airflow's tasks do
print("ready", flush=True)
time.sleep(600)
"""


def test_services__down_leaves_no_process_whatever_it_does_with_a_signal(
    here: services.Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "GRACE", 0.5)
    here.start("stubborn", [sys.executable, "-c", STUBBORN])
    log = here.folder / "logs" / "stubborn.log"
    await_(lambda: log.read_text().count("ready") == 2)
    left = here.find_processes("stubborn")
    assert len(left) == 2
    assert here.is_running("stubborn")
    os.kill(left[0].session, signal.SIGKILL)
    await_(lambda: len(here.find_processes("stubborn")) == 1)
    assert not here.is_running("stubborn"), "its first process is gone"
    here.stop(["stubborn"])
    alive = {process.pid for process in services.list_processes() if not process.is_zombie}
    assert not {process.pid for process in left} & alive
    assert not list((here.folder / "run").iterdir())


def test_services__takes_no_other_process_for_its_own(here: services.Services) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        try:
            (here.folder / "run" / "scheduler").write_text(f"{stranger.pid} 1\n")
            assert not here.is_running("scheduler"), "its number was in a file that a crash had left"
            here.stop(["scheduler"])
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_services__of_one_that_ended_shows_the_last_words(here: services.Services) -> None:
    here.start("scheduler", ["sh", "-c", "echo no such table; exit 1"])
    with pytest.raises(Refusal, match=r"scheduler ended; the last lines of .*scheduler.log:\nno such table"):
        here.wait_until_healthy("scheduler")


def test_services__without_postgresql_says_what_to_do(
    here: services.Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(here.folder))
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    with pytest.raises(Refusal, match=r"PostgreSQL is missing here; install it \(on Debian: apt-get install"):
        here.find_database_programs()


def test_services__takes_the_postgresql_that_made_the_database(
    here: services.Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("15", "17"):
        programs = here.folder / f"postgresql-{version}"
        programs.mkdir()
        (programs / "initdb").touch()
        (programs / "postgres").write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}.3'\n")
        (programs / "postgres").chmod(0o755)
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    monkeypatch.setenv("PATH", f"{here.folder}/postgresql-17:{os.environ['PATH']}")
    assert here.find_database_programs().name == "postgresql-17"
    (here.folder / "postgres").mkdir()
    (here.folder / "postgres" / "PG_VERSION").write_text("15\n")
    with pytest.raises(
        Refusal, match="was created by PostgreSQL 15, which is missing here; install postgresql-15"
    ):
        here.find_database_programs()
    monkeypatch.setenv("PATH", f"{here.folder}/postgresql-15:{os.environ['PATH']}")
    assert here.find_database_programs().name == "postgresql-15"


def test_services__knows_four_words() -> None:
    done = subprocess.run(
        [str(REPO / "bin" / "services"), "start"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "usage: bin/services up | down | status | secrets FILE\n"
