"""One service in the foreground: what a container runs, and what ``bin/services`` starts.

Usage: ``bin/service NAME``, where NAME is

* ``api-server``, ``scheduler``, ``dag-processor`` or ``triggerer``: one of Airflow's four services;
* ``migrate``: create or upgrade Airflow's database and its pools, then end;
* ``spark-master`` or ``spark-worker``: a part of a Spark cluster of containers;
* ``health NAME``: end with exit code 0 if that service answers and is healthy.

This module uses the standard library only. Settings that are not secret stand in ``docker/settings.env``; a
variable that is set already wins over them. Secrets come from variables (``SECRETS``) or from files of an
earlier start. Airflow and Spark get them as files, so that no secret stands in an argument or in the
environment of a task.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import urllib.request
from collections.abc import Iterable, Iterator, MutableMapping
from pathlib import Path
from urllib.error import URLError

REPOSITORY = Path(__file__).resolve().parents[1]

AIRFLOW = ("api-server", "scheduler", "dag-processor", "triggerer")

SECRETS = {
    "database": "EPSJOIN_DATABASE_PASSWORD",
    "fernet": "EPSJOIN_FERNET_KEY",
    "api": "EPSJOIN_API_SECRET",
    "jwt": "EPSJOIN_JWT_SECRET",
    "spark": "EPSJOIN_SPARK_SECRET",
}
"""File of every secret, and the variable that gives it: the password of the database, the key that encrypts
stored connections, the keys that sign sessions and tokens, and the secret that the parts of Spark share."""

ADMIN_PASSWORD = "EPSJOIN_ADMIN_PASSWORD"  # noqa: S105 - a name
"""The variable with the password of ``admin``, which is written to Airflow's file of passwords."""

PORTS = {"spark-master": 7077, "spark-worker": 7078}


class Refusal(Exception):  # noqa: N818 - the program is right to refuse
    """One sentence that says what is wrong and what to do about it."""


def read_settings(file: Path) -> Iterator[tuple[str, str]]:
    """Read the names and values of an env file, as ``docker compose`` does."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield name, value


def add_settings(environment: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the environment with the settings that it lacks, first those of ``docker/settings.env``."""
    settings = dict(read_settings(REPOSITORY / "conf" / "airflow.env"))
    return settings | dict(read_settings(REPOSITORY / "docker" / "settings.env")) | dict(environment)


def write_private(file: Path, text: str) -> None:
    """Write a file that no other user may read; a reader sees the old text or the new one, never a part."""
    made = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(text)
    made.replace(file)


def take_secrets(environment: MutableMapping[str, str], folder: Path, wanted: Iterable[str]) -> None:
    """Move secrets from the environment to files of mode 0600.

    Parameters
    ----------
    environment : all variables of ``SECRETS`` are removed from it, wanted or not.
    folder : the folder of the files; it is created if it is missing.
    wanted : keys of ``SECRETS``.

    Raises
    ------
    Refusal
        A wanted secret is neither given nor left by an earlier start. There are no defaults.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    given = {name: environment.pop(variable, "") for name, variable in SECRETS.items()}
    for name in wanted:
        if given[name]:
            write_private(folder / name, given[name])
        elif not (folder / name).is_file():
            raise Refusal(f"{SECRETS[name]} is not set, and there is no default; docs/operate.md says more")


def write_passwords(environment: MutableMapping[str, str], folder: Path) -> None:
    """Write Airflow's file of passwords, with a password for every user.

    Airflow would make up a password that is missing, but print it to the log.
    """
    file = folder / "passwords.json"
    passwords = json.loads(file.read_text()) if file.is_file() else {}
    given = environment.pop(ADMIN_PASSWORD, "")
    for user in environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"].split(","):
        name = user.split(":")[0].strip()
        if name == "admin" and given:
            passwords[name] = given
        passwords.setdefault(name, secrets.token_urlsafe(18))
    write_private(file, json.dumps(passwords) + "\n")


def find_secrets_folder(environment: MutableMapping[str, str]) -> Path:
    """Return the folder of the secrets: ``EPSJOIN_SECRETS``, or else ``.services/secrets`` of the project."""
    return Path(environment.get("EPSJOIN_SECRETS") or REPOSITORY / ".services" / "secrets")


def write_pgpass(folder: Path) -> Path:
    """Write the file in which PostgreSQL's clients look for a password, so that no URI holds one."""
    password = (folder / "database").read_text().replace("\\", "\\\\").replace(":", "\\:")
    write_private(folder / "pgpass", f"*:*:*:airflow:{password}\n")
    return folder / "pgpass"


def prepare_airflow(name: str, environment: dict[str, str]) -> list[str]:
    """Complete the environment of one of Airflow's services; return its command."""
    folder = find_secrets_folder(environment)
    # on one machine bin/spark-cluster has made a secret of its own
    is_driver = name == "scheduler" and SECRETS["spark"] in environment
    take_secrets(environment, folder, ("database", "fernet", "api", "jwt", *(["spark"] if is_driver else [])))
    if is_driver:
        join_cluster(environment, folder)
    if name == "api-server":
        write_passwords(environment, folder)
    environment.pop(ADMIN_PASSWORD, None)

    database = environment.get("EPSJOIN_DATABASE") or "127.0.0.1:5432"
    environment |= {
        "PGPASSFILE": str(write_pgpass(folder)),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://airflow@{database}/airflow",
        "AIRFLOW__CORE__FERNET_KEY_CMD": f"cat '{folder}/fernet'",
        "AIRFLOW__API__SECRET_KEY_CMD": f"cat '{folder}/api'",
        "AIRFLOW__API_AUTH__JWT_SECRET_CMD": f"cat '{folder}/jwt'",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folder / "passwords.json"),
    }
    return [str(REPOSITORY / "bin" / "airflow"), "setup" if name == "migrate" else name]


def join_cluster(environment: MutableMapping[str, str], secrets_of: Path) -> None:
    """Write what ``bin/spark-submit`` and ``bin/spark-cluster`` read about a cluster of containers."""
    folder = Path(environment.get("EPSJOIN_CLUSTER_DIR") or REPOSITORY / ".cache" / "cluster")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = (secrets_of / "spark").read_text()
    write_private(folder / "url", environment.get("EPSJOIN_MASTER", "spark://spark-master:7077") + "\n")
    write_private(folder / "secret.conf", f"spark.authenticate true\nspark.authenticate.secret {secret}\n")


def prepare_spark(name: str, environment: dict[str, str]) -> list[str]:
    """Complete the environment of Spark's master or of a worker; return its command."""
    folder = find_secrets_folder(environment)
    take_secrets(environment, folder, ("spark",))
    environment.pop(ADMIN_PASSWORD, None)
    join_cluster(environment, folder)
    command = str(REPOSITORY / "bin" / "spark-cluster")
    return [command, name.removeprefix("spark-"), socket.gethostname(), str(PORTS[name])]


def is_healthy(name: str, environment: MutableMapping[str, str]) -> bool:
    """Whether a service answers and does its work.

    The API server knows the state of all of Airflow's services: the others write to the database every few
    seconds that they run. To ask it costs less than to start another Airflow beside each of them.
    """
    if name in PORTS:
        try:
            with socket.create_connection((socket.gethostname(), PORTS[name]), timeout=5):
                return True
        except OSError:
            return False
    port = environment["AIRFLOW__API__PORT"]
    base = environment.get("AIRFLOW__CORE__EXECUTION_API_SERVER_URL", f"http://127.0.0.1:{port}/execution/")
    url = base.removesuffix("/execution/") + "/api/v2/monitor/health"
    # a proxy that the environment names is for other addresses
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=10) as answer:
            parts = json.load(answer)
    except (URLError, OSError, ValueError):
        return False
    part = "metadatabase" if name == "api-server" else name.replace("-", "_")
    return bool((parts.get(part) or {}).get("status") == "healthy")


def main(arguments: list[str]) -> int:
    """Become the service; return only after a refusal or a question about health."""
    names = (*AIRFLOW, "migrate", *PORTS)
    environment = add_settings(os.environ.items())
    match arguments:
        case ["health", name] if name in names:
            return 0 if is_healthy(name, environment) else 1
        case [name] if name in names:
            prepare = prepare_spark if name in PORTS else prepare_airflow
        case _:
            print(f"usage: bin/service [health] {' | '.join(names)}", file=sys.stderr)
            return 2
    try:
        command = prepare(name, environment)
    except Refusal as refusal:
        print(f"service: {refusal}", file=sys.stderr)
        return 1
    os.umask(0o077 if name in PORTS else 0o027)
    return os.execve(command[0], command, environment)  # noqa: S606 - the project's own scripts


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
