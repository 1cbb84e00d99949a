"""The program that starts one service, with Docker or without: its settings, its secrets."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import service
from service import ADMIN_PASSWORD, AIRFLOW, SECRETS, Refusal
from tests.deployment.environment import DOCKER, REPO, await_
from tests.ports import free_ports

# --- settings


def test_settings__turn_the_login_on_and_win_over_those_of_one_person() -> None:
    settings = service.add_settings([])
    assert settings["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] == "False"
    assert settings["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert service.add_settings([("AIRFLOW__API__HOST", "::1")])["AIRFLOW__API__HOST"] == "::1"
    assert service.add_settings([("EPSJOIN_CLUSTER_CORES", "7")])["EPSJOIN_CLUSTER_CORES"] == "7"
    one = dict(service.read_settings(REPO / "conf" / "airflow.env"))
    own = dict(service.read_settings(DOCKER / "settings.env"))
    assert settings == one | own
    assert not [name for name in settings if re.search("PASSWORD|SECRET|KEY", name)]


# --- bin/service


@pytest.fixture
def given() -> dict[str, str]:
    secrets = {variable: f"pssst-{name}" for name, variable in SECRETS.items()}
    return service.add_settings((secrets | {ADMIN_PASSWORD: "pssst-admin"}).items())


def test_service__moves_secrets_to_files_that_nobody_else_reads(
    given: dict[str, str], tmp_path: Path
) -> None:
    given["EPSJOIN_SECRETS"] = str(tmp_path / "secrets")
    given["EPSJOIN_CLUSTER_DIR"] = str(tmp_path / "cluster")
    for name in (*AIRFLOW, "migrate", "airflow"):
        environment = dict(given)
        command = service.prepare_airflow(name, environment)
        assert "pssst" not in str(command) + str(environment), "neither an argument nor a task's environment"
        assert environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == (
            "postgresql+psycopg2://airflow@127.0.0.1:5432/airflow"
        )
    files = [*(tmp_path / "secrets").iterdir(), *(tmp_path / "cluster").iterdir()]
    assert {file.name for file in files} == {
        *("database", "fernet", "api", "jwt", "spark", "pgpass", "passwords.json", "url", "secret.conf")
    }
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert json.loads((tmp_path / "secrets" / "passwords.json").read_text()) == {"admin": "pssst-admin"}
    for variable, file in (
        ("AIRFLOW__CORE__FERNET_KEY_CMD", "fernet"),
        ("AIRFLOW__API__SECRET_KEY_CMD", "api"),
    ):
        assert environment[variable] == f"cat {tmp_path}/secrets/{file}"
    again = service.add_settings({"EPSJOIN_SECRETS": str(tmp_path / "secrets")}.items())
    service.prepare_airflow("api-server", again)
    assert again["PGPASSFILE"] == f"{tmp_path}/secrets/pgpass", "from the files of the first start"


def test_service__finds_its_secrets_in_a_folder_with_an_apostrophe(
    given: dict[str, str], tmp_path: Path
) -> None:
    """Airflow splits these commands as a shell does, and runs them without one."""
    folder = tmp_path / "Anna's secrets"
    given |= {"EPSJOIN_SECRETS": str(folder), "EPSJOIN_CLUSTER_DIR": str(tmp_path / "cluster")}
    service.prepare_airflow("scheduler", given)
    for variable, file in (
        ("AIRFLOW__CORE__FERNET_KEY_CMD", "fernet"),
        ("AIRFLOW__API__SECRET_KEY_CMD", "api"),
        ("AIRFLOW__API_AUTH__JWT_SECRET_CMD", "jwt"),
    ):
        assert shlex.split(given[variable]) == ["cat", str(folder / file)]


def test_service__escapes_a_password_as_postgresqls_clients_want_it(tmp_path: Path) -> None:
    (tmp_path / "database").write_text("a:b\\c")
    assert service.write_pgpass(tmp_path).read_text() == "*:*:*:airflow:a\\:b\\\\c\n"


@pytest.mark.parametrize("name", AIRFLOW)
@pytest.mark.parametrize("missing", ["database", "fernet", "api", "jwt"])
def test_service__has_no_default_for_a_secret(
    given: dict[str, str], tmp_path: Path, name: str, missing: str
) -> None:
    given["EPSJOIN_SECRETS"] = str(tmp_path)
    given["EPSJOIN_CLUSTER_DIR"] = str(tmp_path)
    given[SECRETS[missing]] = ""
    with pytest.raises(Refusal, match=f"{SECRETS[missing]} is not set, and there is no default"):
        service.prepare_airflow(name, given)


def test_service__without_secrets_says_so_in_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(REPO / "bin" / "service"), "spark-master"],
        env={"PATH": os.environ["PATH"], "EPSJOIN_SECRETS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "service: EPSJOIN_SPARK_SECRET is not set, and there is no default; docs/operate.md says more\n"
    )


def test_service__knows_every_user_so_that_airflow_prints_no_password(tmp_path: Path) -> None:
    users = {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,ana:viewer"}
    service.write_passwords(dict(users), tmp_path)
    first = json.loads((tmp_path / "passwords.json").read_text())
    assert set(first) == {"admin", "ana"}
    assert min(map(len, first.values())) >= 24
    service.write_passwords(dict(users) | {ADMIN_PASSWORD: "mine"}, tmp_path)
    assert json.loads((tmp_path / "passwords.json").read_text()) == first | {"admin": "mine"}


@pytest.mark.parametrize("text", ['{"admin": "mine",}', '["admin", "mine"]', '{"admin": 1234}', ""])
def test_service__says_that_the_file_of_passwords_is_broken(tmp_path: Path, text: str) -> None:
    """A person may change a password there."""
    file = tmp_path / "passwords.json"
    file.write_text(text)
    with pytest.raises(
        Refusal, match=rf"^{file} is not what it should be, as .*; mend it, or move it"
    ) as told:
        service.write_passwords({"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin"}, tmp_path)
    assert "mine" not in str(told.value)
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("part", "host", "port"),
    [("master", "127.0.0.1", 17077), ("worker-1", "127.0.0.1", 17078), ("worker-2", "127.0.0.2", 17079)],
)
def test_service__starts_a_cluster_of_one_machine_on_loopback(
    given: dict[str, str], tmp_path: Path, part: str, host: str, port: int
) -> None:
    given |= {"EPSJOIN_MASTER": "spark://127.0.0.1:17077", "PYTHONPATH": "the jobs' own"}
    words, environment, settings = start_part(part, given, tmp_path)
    assert words[words.index("--host") + 1 :][:3] == [host, "--port", str(port)]
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1", "that of the web pages"
    assert "PYTHONPATH" not in environment
    assert "crypto" not in settings, "nobody else sees the loopback device"
    filtering = "org.apache.spark.ui.JWSFilter"
    assert f"spark.ui.filters {filtering}\n" in settings, "nobody has a token for its pages"
    (secret,) = re.findall(rf"^spark\.{filtering}\.param\.secretKey (\S+)$", settings, re.MULTILINE)
    assert len(secret) >= 32
    assert "spark.master.rest.enabled false\n" in settings, "its REST server has no login"


@pytest.mark.parametrize(("part", "port"), [("master", 7077), ("worker", 7078)])
def test_service__starts_a_part_of_a_cluster_with_the_secret_in_a_file(
    given: dict[str, str], tmp_path: Path, part: str, port: int
) -> None:
    given["EPSJOIN_MASTER"] = f"spark://{socket.gethostname()}:7077"
    words, environment, settings = start_part(part, given, tmp_path)
    assert "pssst" not in repr((words, environment))
    assert words[0] == f"org.apache.spark.deploy.{part}.{part.title()}"
    assert words[words.index("--host") + 1 :][:3] == [socket.gethostname(), "--port", str(port)]
    assert "spark.authenticate true\nspark.authenticate.secret pssst-spark\n" in settings
    assert "spark.network.crypto.enabled true\n" in settings
    assert "SPARK_LOCAL_IP" not in environment
    if part == "worker":
        assert words[-1] == given["EPSJOIN_MASTER"]


def start_part(part: str, given: dict[str, str], folder: Path) -> tuple[list[str], dict[str, str], str]:
    """Start a part of a cluster with a fake Spark; return its arguments, its environment and its settings."""
    spark = folder / "venv/lib/python3.11/site-packages/pyspark/bin/spark-class"
    spark.parent.mkdir(parents=True)
    spark.write_text('#!/bin/sh\necho "$@"\nenv\n')
    spark.chmod(0o755)
    (folder / "venv/bin").mkdir()
    (folder / "venv/bin/python").symlink_to(sys.executable)
    done = subprocess.run(
        [str(REPO / "bin" / "service"), f"spark-{part}"],
        env={"PATH": os.environ["PATH"], "SPARK_JOB_VENV": f"{folder}/venv", "AIRFLOW_VENV": "/nowhere"}
        | {"EPSJOIN_SECRETS": f"{folder}/secrets", "EPSJOIN_CLUSTER_DIR": f"{folder}/cluster"}
        | given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, *environment = done.stdout.splitlines()
    words = first.split()
    settings = folder / "cluster" / f"spark-{part}.conf"
    assert words[words.index("--properties-file") + 1] == str(settings)
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    return words, dict(line.split("=", 1) for line in environment if "=" in line), settings.read_text()


def test_service__scheduler_waits_for_the_api_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([False, False, False, True])
    asked = []
    monkeypatch.setattr(service, "is_healthy", lambda name, _: asked.append(name) or next(answers))
    monkeypatch.setattr(service.time, "sleep", lambda _: None)
    monkeypatch.setattr(service, "prepare_airflow", lambda *_: ["airflow"])
    started = []
    monkeypatch.setattr(service.os, "execve", lambda *_: started.append(len(asked)) or 0)
    monkeypatch.setattr(service.os, "umask", lambda _: None)
    assert service.main(["scheduler"]) == 0
    assert (set(asked), started) == ({"api-server"}, [4]), "not before it is healthy"
    assert capsys.readouterr().out == "service: the scheduler waits for the API server\n"
    assert service.main(["triggerer"]) == 0
    assert started == [4, 4], "the others do not need it"


def test_service__health_is_what_the_api_server_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_ports(1)
    environment = service.add_settings({"AIRFLOW__API__PORT": str(port)}.items())
    assert not service.is_healthy("scheduler", environment), "nobody answers"
    # a proxy would answer for it
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    page = tmp_path / "api" / "v2" / "monitor" / "health"
    page.parent.mkdir(parents=True)
    page.write_text(
        '{"metadatabase":{"status":"healthy"},"dag_processor":{"status":"unhealthy"},"triggerer":null}'
    )
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            await_(lambda: service.is_healthy("api-server", environment))
            for name in ("scheduler", "dag-processor", "triggerer"):
                assert not service.is_healthy(name, environment), name
        finally:
            server.kill()
