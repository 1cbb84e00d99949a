"""One service in the foreground: what a container runs, and what ``bin/services`` starts.

Usage: ``bin/service NAME``, where NAME is

* ``api-server``, ``scheduler``, ``dag-processor`` or ``triggerer``: one of Airflow's four services;
* ``migrate``: create or upgrade Airflow's database and its pools, then end;
* ``spark-master`` or ``spark-worker``: a part of a Spark cluster of containers, at the host's own name;
* ``spark-worker-1`` or ``spark-worker-2``: a worker of a Spark cluster on this machine, on loopback alone;
* ``health NAME``: end with exit code 0 if that service answers and is healthy;
* ``airflow ...``: a command of ``bin/airflow`` for the Airflow of the services, with their database and logs.

This module uses the standard library only. Settings that are not secret stand in ``docker/settings.env``; a
variable that is set already wins over them. Secrets come from variables (``SECRETS``) or from files of an
earlier start. Airflow and Spark get them as files, so that no secret stands in an argument or in the
environment of a task. Spark's master is at ``EPSJOIN_MASTER``, ``spark://spark-master:7077`` by default.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit

REPOSITORY = Path(__file__).resolve().parents[1]

AIRFLOW = ("api-server", "scheduler", "dag-processor", "triggerer")
CLUSTER = ("spark-master", "spark-worker-1", "spark-worker-2")
NAMES = (*AIRFLOW, "migrate", *CLUSTER, "spark-worker")

SECRETS = {
    "database": "EPSJOIN_DATABASE_PASSWORD",
    "fernet": "EPSJOIN_FERNET_KEY",
    "api": "EPSJOIN_API_SECRET",
    "jwt": "EPSJOIN_JWT_SECRET",
    "spark": "EPSJOIN_SPARK_SECRET",
}
"""File of every secret, and the variable that gives it: the password of the database, the key that encrypts
stored connections, the keys that sign sessions and tokens, and the secret that the parts of Spark share."""

ADMIN_PASSWORD = "EPSJOIN_ADMIN_PASSWORD"  # noqa: S105  # a name
"""The variable with the password of ``admin``, which is written to Airflow's file of passwords."""

IDLE_WORKER = re.compile(rb"airflow worker -- LocalExecutor.*: <idle>")
"""How Airflow's LocalExecutor calls a worker that has no task."""

DAEMON = {
    "SPARK_CONF_DIR": str(REPOSITORY / "conf" / "cluster"),
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""What Spark's master and workers get; each job sets ``JOBS_OWN`` for its own executors."""
JOBS_OWN = ("PYTHONPATH", "PYTHONHOME", "NUMBA_CACHE_DIR", "SPARK_LOG_DIR", "SPARK_WORKER_DIR")


class Refusal(Exception):  # noqa: N818  # the program is right to refuse
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

    Raises
    ------
    Refusal
        Somebody has edited the file, and it is no JSON object of texts any more.
    """
    file = folder / "passwords.json"
    try:
        passwords = json.loads(file.read_text()) if file.is_file() else {}
    except ValueError:
        passwords = None
    if not (isinstance(passwords, dict) and all(isinstance(each, str) for each in passwords.values())):
        raise Refusal(
            f"""{file} is not what it should be, as {{"admin": "...", "ana": "..."}}; mend it, or move it """
            "away for new passwords"
        )
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
    """Complete the environment of one of Airflow's services, or of another command; return the command."""
    folder = find_secrets_folder(environment)
    # on one machine the master has written what the drivers need
    is_driver = name == "scheduler" and SECRETS["spark"] in environment
    take_secrets(environment, folder, ("database", "fernet", "api", "jwt", *(["spark"] if is_driver else [])))
    if is_driver:
        join_cluster(environment, folder)
    if name == "api-server":
        write_passwords(environment, folder)
    environment.pop(ADMIN_PASSWORD, None)

    database = environment.get("EPSJOIN_DATABASE") or "127.0.0.1:5432"
    environment.setdefault("EPSJOIN_AIRFLOW", "bin/service airflow")
    environment |= {
        "PGPASSFILE": str(write_pgpass(folder)),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://airflow@{database}/airflow",
        "AIRFLOW__CORE__FERNET_KEY_CMD": f"cat {shlex.quote(f'{folder}/fernet')}",
        "AIRFLOW__API__SECRET_KEY_CMD": f"cat {shlex.quote(f'{folder}/api')}",
        "AIRFLOW__API_AUTH__JWT_SECRET_CMD": f"cat {shlex.quote(f'{folder}/jwt')}",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folder / "passwords.json"),
    }
    of_service = {"migrate": ["setup"], "airflow": []}.get(name, [name])
    return [str(REPOSITORY / "bin" / "airflow"), *of_service]


def join_cluster(environment: MutableMapping[str, str], secrets_of: Path) -> Path:
    """Write what ``bin/spark-submit`` and Spark's own processes read about a cluster; return the folder."""
    folder = Path(environment.get("EPSJOIN_CLUSTER_DIR") or REPOSITORY / ".cache" / "cluster")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    master = environment.get("EPSJOIN_MASTER", "spark://spark-master:7077")
    settings = f"spark.authenticate true\nspark.authenticate.secret {(secrets_of / 'spark').read_text()}\n"
    if not is_loopback(find_address("spark-master", environment)[0]):
        settings += "spark.network.crypto.enabled true\n"  # others may see what goes over the wire
    write_private(folder / "url", f"{master}\n")
    write_private(folder / "secret.conf", settings)
    return folder


def is_loopback(host: str) -> bool:
    """Whether no other machine sees what is sent to a host."""
    return host == "localhost" or host.startswith("127.")


def find_address(name: str, environment: MutableMapping[str, str]) -> tuple[str, int]:
    """Return host and port of a part of a Spark cluster.

    To Spark the two workers of one machine are two machines: on one it never runs two attempts of a task at
    once. Only Linux has more than one loopback address.
    """
    master = urlsplit(environment.get("EPSJOIN_MASTER", "spark://spark-master:7077"))
    if name == "spark-master":
        return str(master.hostname), int(master.port or 7077)
    if name == "spark-worker":
        return socket.gethostname(), 7078
    number = int(name.rpartition("-")[2])
    return f"127.0.0.{number if sys.platform == 'linux' else 1}", int(master.port or 7077) + number


def find_spark(environment: MutableMapping[str, str]) -> Path:
    """Find pyspark in the jobs' environment, by name: asking Python would cost a second."""
    venv = Path(environment.get("SPARK_JOB_VENV") or REPOSITORY / ".venv")
    for home in venv.glob("lib/python3*/site-packages/pyspark"):
        return home
    raise Refusal(f"no pyspark in {venv}; run 'make setup', or set SPARK_JOB_VENV")


def compile_kernels(environment: MutableMapping[str, str]) -> None:
    """Compile what ``bin/spark-submit`` ships to a cluster, so that the first job does not wait for it."""
    python = find_spark(environment).parents[3] / "bin" / "python"
    command = [str(python), "-I", str(REPOSITORY / "bin" / "ship.py"), str(REPOSITORY / ".cache" / "ship")]
    if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode:
        raise Refusal("the kernels could not be compiled; the reason stands above")


def prepare_spark(name: str, environment: dict[str, str]) -> list[str]:
    """Complete the environment of Spark's master or of a worker; return its command."""
    home = find_spark(environment)
    secrets_of = find_secrets_folder(environment)
    take_secrets(environment, secrets_of, ("spark",))
    for variable in (ADMIN_PASSWORD, *JOBS_OWN):
        environment.pop(variable, None)
    folder = join_cluster(environment, secrets_of)
    host, port = find_address(name, environment)
    environment |= DAEMON | {"SPARK_HOME": str(home), "SPARK_LOCAL_DIRS": str(folder / "local")}
    if is_loopback(host):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"  # the web pages listen on all addresses otherwise
    # These pages cannot be turned off. They take any free port, and nobody holds a token for their filter.
    settings = {
        "spark.ui.filters": "org.apache.spark.ui.JWSFilter",
        "spark.org.apache.spark.ui.JWSFilter.param.secretKey": secrets.token_urlsafe(32),
        "spark.master.rest.enabled": "false",
        "spark.port.maxRetries": "0",
        "spark.worker.cleanup.enabled": "true",
        "spark.worker.cleanup.appDataTtl": "86400",
    }
    written = "".join(f"{key} {value}\n" for key, value in settings.items())
    write_private(folder / f"{name}.conf", written + (folder / "secret.conf").read_text())

    kind = "Master" if name == "spark-master" else "Worker"
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
    command += ["--properties-file", str(folder / f"{name}.conf")]
    command += ["--host", host, "--port", str(port), "--webui-port", "0"]
    if kind == "Worker":
        command += [
            "--work-dir",
            str(folder / "work" / name),
            "--cores",
            environment["EPSJOIN_CLUSTER_CORES"],
        ]
        command += ["--memory", environment["EPSJOIN_CLUSTER_MEMORY"], (folder / "url").read_text().strip()]
    return command


def is_healthy(name: str, environment: MutableMapping[str, str]) -> bool:
    """Whether a service answers and does its work.

    The API server knows the state of all of Airflow's services: the others write to the database every few
    seconds that they run. To ask it costs less than to start another Airflow beside each of them.
    """
    if name.startswith("spark-"):
        try:
            with socket.create_connection(find_address(name, environment), timeout=5):
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


def wait_for_api_server(environment: MutableMapping[str, str]) -> None:
    """Return when the API server is healthy: a task that starts earlier cannot report, and loses a try."""
    if not is_healthy("api-server", environment):
        print("service: the scheduler waits for the API server", flush=True)
    while not is_healthy("api-server", environment):
        time.sleep(1)


def read_process(pid: int) -> dict[str, str]:
    """Read what ``/proc`` says of a process, nothing if it has ended; number and beginning are its alone."""
    try:
        # the name, in brackets, may hold spaces and brackets, and any bytes: the kernel cuts it after 15
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    fields = text.rpartition(")")[2].split()
    return {"state": fields[0], "parent": fields[1], "session": fields[3], "began": fields[19]}


def end_idle_workers() -> None:
    """End what a killed scheduler has left in this session and will never work again.

    Its workers that are at work finish; one that is idle waits for a task that nobody can give it any more.
    """
    own = str(os.getsid(0))
    for folder in Path("/proc").glob("[0-9]*"):
        found = read_process(int(folder.name))
        # the parent of a worker whose scheduler lives is in the session, too
        if found.get("session") != own or read_process(int(found["parent"])).get("session") == own:
            continue
        with suppress(OSError):  # it has ended by now
            if IDLE_WORKER.match((folder / "cmdline").read_bytes()):
                print(f"service: ends the idle worker {folder.name} of a killed scheduler", flush=True)
                os.kill(int(folder.name), signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Become the service; return only after a refusal or a question about health."""
    environment = add_settings(os.environ.items())
    rest: list[str] = []
    match arguments:
        case ["health", name] if name in NAMES:
            return 0 if is_healthy(name, environment) else 1
        case [name] if name in NAMES:
            prepare = prepare_spark if name.startswith("spark-") else prepare_airflow
        case ["airflow" as name, *rest]:
            prepare = prepare_airflow
        case _:
            print(f"usage: bin/service [health] {' | '.join(NAMES)} | airflow ...", file=sys.stderr)
            return 2
    try:
        command = prepare(name, environment) + rest
    except Refusal as refusal:
        print(f"service: {refusal}", file=sys.stderr)
        return 1
    if name == "scheduler":
        end_idle_workers()
        wait_for_api_server(environment)
    os.umask(0o077 if name.startswith("spark-") else 0o027)
    return os.execve(command[0], command, environment)  # noqa: S606  # the project's own scripts


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
