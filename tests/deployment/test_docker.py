"""Images, compose file, and the services without Docker, which tests/end_to_end/test_services.py starts."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import service
import services
from service import ADMIN_PASSWORD, AIRFLOW, SECRETS
from tests.deployment.environment import ALL_SECRETS, DOCKER, REPO

COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
DOCKERFILE = (DOCKER / "Dockerfile").read_text()


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
    for name in ("api-server", "spark-master"):
        given = SERVICES[name]["build"]["args"]["PYTHON_IMAGE"]
        assert given == f"${{EPSJOIN_PYTHON_IMAGE:-{base[1]}}}", "compose can name a digest"
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
    options = {"pip": "--require-hashes"}  # what builds the others comes first, and is locked as they are
    options["jobs"] = options["airflow"] = "--require-hashes --no-deps --no-build-isolation"
    for words, lock in zip(installs, ("pip", "jobs", "pip", "airflow"), strict=True):
        assert words.startswith(f"{options[lock]} --requirement requirements/{lock}.txt")
    assert "ENV DIST_EXTRA_CONFIG=/opt/epsjoin/requirements/wheels.cfg" in commands(stages()["base"])
    assert "bin/fetch-delta-jars" in "".join(commands(stages()["spark"]))
    assert "RUN bin/class-archive make" in commands(stages()["airflow"]), "where drivers start"
    assert not re.search(r"curl|wget|https?://|ADD ", "".join(commands(DOCKERFILE)))


def is_left_out(path: str, patterns: list[str]) -> bool:
    """Whether ``.dockerignore`` keeps a file out: by the last pattern that fits it or a folder of it."""
    left_out = False
    names = [path, *map(str, Path(path).parents)]
    for pattern in patterns:
        if any(fnmatch.fnmatch(name, pattern.removeprefix("!")) for name in names):
            left_out = not pattern.startswith("!")
    return left_out


def test_images__hold_all_that_the_services_need_and_no_secret() -> None:
    patterns = [line for line in (REPO / ".dockerignore").read_text().splitlines() if line[:1] != "#"]
    assert patterns[0] == "*", "what is not named stays out"
    # BuildKit would take this one instead, Docker's older builder would not
    assert not list(DOCKER.glob("*.dockerignore"))
    kept = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    for path in kept:
        assert (REPO / path).exists(), path
    needed = "bin conf dags data_contracts docker jobs plugins requirements services"
    for folder in needed.split():
        assert folder in kept
    for contract in (REPO / "data_contracts").glob("*.odcs.yaml"):
        servers = yaml.safe_load(contract.read_text())["servers"]
        assert any(server["path"].startswith(f"{path}/") for server in servers for path in kept), contract
    assert is_left_out("docker/my.secrets", patterns)
    assert not is_left_out("docker/compose.yaml", patterns)


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
            if variable != "EPSJOIN_SECRETS" and re.search("PASSWORD|SECRET|KEY", variable):  # a folder
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
    assert [name for name in SERVICES if any("secrets:" in v for v in SERVICES[name].get("volumes", []))] == [
        "api-server"
    ], "passwords that Airflow made for its users outlive the container"
    mounted = SERVICES["api-server"]["environment"]["EPSJOIN_SECRETS"]
    assert f"secrets:{mounted}" in SERVICES["api-server"]["volumes"]
    assert f" {mounted}" in " ".join(commands(stages()["base"])), "the image's user may write there"
    used = {volume.split(":")[0] for body in SERVICES.values() for volume in body.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])


def test_compose__names_the_hosts_that_drivers_and_workers_call() -> None:
    driver = dict(
        line.split() for line in (DOCKER / "driver.conf").read_text().splitlines() if line[:1] != "#"
    )
    assert driver["spark.driver.host"] == SERVICES["scheduler"]["hostname"]
    connection = json.loads(SERVICES["scheduler"]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"])
    master = f"{connection['host']}:{connection['port']}"
    assert master == f"spark://{SERVICES['spark-master']['hostname']}:7077"
    environment = {"EPSJOIN_MASTER": master}
    assert service.find_address("spark-master", environment) == ("spark-master", 7077)
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
