"""Images, compose file, and the services without Docker, which tests/end_to_end/test_services.py starts."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import service
import services
from service import ADMIN_PASSWORD, AIRFLOW, SECRETS, Refusal

REPO = Path(__file__).resolve().parents[1]
DOCKER = REPO / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
ALL_SECRETS = {*SECRETS.values(), ADMIN_PASSWORD}


def stages() -> dict[str, str]:
    """The Dockerfile's stages by name."""
    parts = re.split(r"^FROM (.+) AS (\S+)$", DOCKERFILE, flags=re.MULTILINE)
    return {name: text for _, name, text in zip(*[iter(parts[1:])] * 3, strict=True)}


def commands(text: str) -> list[str]:
    """A stage's instructions, one string each, without comments."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return [" ".join(line.split()) for line in lines.replace("\\\n", " ").splitlines() if line.strip()]


# --- images


def test_images__have_a_base_with_a_full_version() -> None:
    base = re.search(r"^ARG PYTHON_IMAGE=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert base
    assert re.fullmatch(r"python:3\.11\.\d+-slim-[a-z]+", base[1])
    assert re.fullmatch(r"\$\{\w+:-postgres:\d+\.\d+-[a-z]+\}", SERVICES["postgres"]["image"])
    from_ = re.findall(r"^FROM (\S+) AS \S+$", DOCKERFILE, re.MULTILINE)
    assert from_[0] == "${PYTHON_IMAGE}"
    assert set(from_[1:]) <= set(stages()), "no other image than the pinned one"


def test_images__end_as_a_user_that_is_not_root_and_ask_for_health() -> None:
    user = [line for line in commands(DOCKERFILE) if line.startswith("USER ")]
    assert user == ["USER 10001:10001"], "set once, in the stage that all others come from"
    assert user[0] in commands(stages()["base"])
    for name in ("spark", "airflow"):
        health = [line for line in commands(stages()[name]) if line.startswith("HEALTHCHECK")]
        default = json.loads(next(line for line in commands(stages()[name]) if line.startswith("CMD"))[4:])
        assert len(health) == 1
        assert json.loads(health[0][health[0].index("[") :]) == ["bin/service", "health", *default]


def test_images__install_what_is_locked_and_nothing_else() -> None:
    installs = re.findall(r"pip install ([^&]+)", " ".join(commands(DOCKERFILE)))
    assert len(installs) == 2
    for words, lock in zip(installs, ("jobs", "airflow"), strict=True):
        assert words.split()[:3] == ["--require-hashes", "--requirement", f"requirements/{lock}.txt"]
    assert "bin/fetch-delta-jars" in "".join(commands(stages()["spark"]))
    assert not re.search(r"curl|wget|https?://|ADD ", "".join(commands(DOCKERFILE)))


def test_images__hold_all_that_the_services_need_and_no_secret() -> None:
    patterns = [
        line for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] != "#"
    ]
    assert patterns[0] == "*", "what is not named stays out"
    kept = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    for path in kept:
        assert (REPO / path).exists(), path
    needed = "bin conf dags data_contracts docker jobs plugins requirements services"
    for folder in needed.split():
        assert folder in kept
    for contract in (REPO / "data_contracts").glob("*.odcs.yaml"):
        servers = yaml.safe_load(contract.read_text())["servers"]
        assert any(server["path"].startswith(f"{path}/") for server in servers for path in kept), contract
    assert any(fnmatch.fnmatch("docker/my.secrets", pattern) for pattern in patterns[1:])


# --- compose file; its schema is checked by "make check"


def test_compose__is_one_of_each_service() -> None:
    assert set(SERVICES) == {"postgres", "migrate", *AIRFLOW, "spark-master", "spark-worker"}
    for name in (*AIRFLOW, "migrate", "spark-master", "spark-worker"):
        body = SERVICES[name]
        assert body["command"] == [name]
        assert body["build"]["target"] == ("spark" if name.startswith("spark") else "airflow")
        assert body["env_file"] == ["settings.env"]
        assert (DOCKER / body["build"]["context"] / body["build"]["dockerfile"]).is_file()


def test_compose__publishes_on_loopback_alone() -> None:
    published = {name: body["ports"] for name, body in SERVICES.items() if "ports" in body}
    assert published == {"api-server": ["127.0.0.1:${EPSJOIN_PORT:-8080}:8080"]}
    assert not any("network_mode" in body for body in SERVICES.values())


def test_compose__has_no_default_for_a_secret() -> None:
    text = (DOCKER / "compose.yaml").read_text()
    asked = {
        variable: rest
        for variable, rest in re.findall(r"\$\{(\w+)([^}]*)\}", text)
        if variable in ALL_SECRETS
    }
    assert set(asked) == ALL_SECRETS
    for variable, rest in re.findall(r"\$\{(\w+)([^}]*)\}", text):
        if variable in ALL_SECRETS:
            assert rest == ":?is not set; see docs/operate.md", variable
    for name, body in SERVICES.items():
        for variable, value in body["environment"].items():
            if re.search("PASSWORD|SECRET|KEY", variable):
                assert value.startswith("${"), f"{variable} of {name} is written out"


def test_compose__gives_a_secret_to_those_alone_who_need_it() -> None:
    def who_gets(variable: str) -> set[str]:
        return {name for name, body in SERVICES.items() if variable in body["environment"]}

    assert who_gets(ADMIN_PASSWORD) == {"api-server"}
    assert who_gets(SECRETS["spark"]) == {"scheduler", "spark-master", "spark-worker"}
    for name in ("database", "fernet", "api", "jwt"):
        assert who_gets(SECRETS[name]) == {*AIRFLOW, "migrate"}


def test_compose__looks_after_health_order_and_rights() -> None:
    for name, body in SERVICES.items():
        assert body["cap_drop"] == ["ALL"], name
        assert body["security_opt"] == ["no-new-privileges:true"], name
        assert not body.get("privileged"), name
        assert "mem_limit" in body, name
        if name not in ("postgres", "migrate", "api-server"):  # the last has its image's
            assert body["healthcheck"]["test"] == ["CMD", "bin/service", "health", name]
    assert SERVICES["postgres"]["user"] == "postgres"
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in AIRFLOW:
        assert SERVICES[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert SERVICES["spark-worker"]["depends_on"] == {"spark-master": {"condition": "service_healthy"}}


def test_compose__lets_those_reach_the_lake_who_use_it() -> None:
    mounts = {
        name: [v for v in body.get("volumes", []) if v.startswith("lake:")] for name, body in SERVICES.items()
    }
    assert {name: found for name, found in mounts.items() if found} == {
        "api-server": ["lake:/lake:ro"],
        "scheduler": ["lake:/lake"],
        "spark-worker": ["lake:/lake"],
    }
    assert "EPSJOIN_LAKE=file:///lake" in stages()["spark"]
    used = {volume.split(":")[0] for body in SERVICES.values() for volume in body.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])


def test_compose__names_the_hosts_that_drivers_and_workers_call() -> None:
    driver = dict(
        line.split() for line in (DOCKER / "driver.conf").read_text().splitlines() if line[:1] != "#"
    )
    assert driver["spark.driver.host"] == SERVICES["scheduler"]["hostname"]
    connection = json.loads(SERVICES["scheduler"]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"])
    master = f"{connection['host']}:{connection['port']}"
    assert master == f"spark://{SERVICES['spark-master']['hostname']}:{service.PORTS['spark-master']}"
    for name in ("scheduler", "spark-master", "spark-worker"):
        assert SERVICES[name]["environment"]["EPSJOIN_MASTER"] == master


def test_compose__is_accepted_by_docker(tmp_path: Path) -> None:
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no docker with its compose plugin here; make check validates the schema")
    services.write_secrets(tmp_path / "secrets")
    command = ["docker", "compose", "--file", str(DOCKER / "compose.yaml"), "--env-file"]
    done = subprocess.run(
        [*command, str(tmp_path / "secrets"), "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refused = subprocess.run(
        [*command, "/dev/null", "config", "--quiet"], capture_output=True, text=True, check=False
    )
    assert "is not set; see docs/operate.md" in refused.stderr


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
    for name in (*AIRFLOW, "migrate"):
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
        assert environment[variable] == f"cat '{tmp_path}/secrets/{file}'"
    again = service.add_settings({"EPSJOIN_SECRETS": str(tmp_path / "secrets")}.items())
    service.prepare_airflow("api-server", again)
    assert again["PGPASSFILE"] == f"{tmp_path}/secrets/pgpass", "from the files of the first start"


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


@pytest.mark.parametrize("part", ["master", "worker"])
def test_service__starts_a_part_of_a_cluster_with_the_secret_in_a_file(
    given: dict[str, str], tmp_path: Path, part: str
) -> None:
    spark = tmp_path / "venv/lib/python3.11/site-packages/pyspark/bin/spark-class"
    spark.parent.mkdir(parents=True)
    spark.write_text('#!/bin/sh\necho "$@"\nenv\n')
    spark.chmod(0o755)
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python").symlink_to(sys.executable)
    folders = {"EPSJOIN_SECRETS": f"{tmp_path}/secrets", "EPSJOIN_CLUSTER_DIR": f"{tmp_path}/cluster"}
    done = subprocess.run(
        [str(REPO / "bin" / "service"), f"spark-{part}"],
        env={"PATH": os.environ["PATH"], "SPARK_JOB_VENV": f"{tmp_path}/venv", "AIRFLOW_VENV": "/nowhere"}
        | folders
        | {SECRETS["spark"]: given[SECRETS["spark"]]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "pssst" not in done.stdout
    host, words = socket.gethostname(), done.stdout.splitlines()[0].split()
    assert words[0] == f"org.apache.spark.deploy.{part}.{part.title()}"
    assert words[words.index("--host") + 1 :][:3] == [host, "--port", str(service.PORTS[f"spark-{part}"])]
    settings = tmp_path / "cluster" / "daemons.conf"
    assert words[words.index("--properties-file") + 1] == str(settings)
    assert "spark.authenticate true\nspark.authenticate.secret pssst-spark\n" in settings.read_text()
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    if part == "worker":
        assert words[-1] == "spark://spark-master:7077"


def test_service__health_is_what_the_api_server_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
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


# --- bin/services


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_(condition: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


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
