"""All services on this machine, without Docker, kept by supervisord.

The settings are those of ``docker/compose.yaml``.

* ``bin/services up``: PostgreSQL, a Spark cluster, Airflow's four services; returns when all are healthy.
  A service that already runs is left alone; one that dies later is started again by supervisord.
* ``bin/services down``: stop everything; database, secrets and logs stay.
* ``bin/services status``: say what runs; the exit code is 0 only if every service is healthy.
* ``bin/services airflow ...``: a command of ``bin/airflow`` for the Airflow of these services.
* ``bin/services secrets FILE``: write new secrets for ``docker compose --env-file FILE``.
* ``up spark``, ``down spark``, ``status spark``: the Spark cluster alone (``bin/spark-cluster``).

This module runs in Airflow's environment, for supervisor lies there. It needs Linux, and PostgreSQL as Debian
packages it. supervisord and all that it starts are one session of the kernel; by it ``down`` finds every
process, even those that a killed service has left.

Variables: ``EPSJOIN_SERVICES_DIR`` (default: ``.services``), the ports ``AIRFLOW__API__PORT`` (8080),
``EPSJOIN_DATABASE_PORT`` (5433), ``EPSJOIN_CLUSTER_PORT`` (7077, and the next two for the workers);
``EPSJOIN_SERVICES_WAIT`` (seconds, 180); and those of ``bin/airflow``.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from database import Database
from service import (
    ADMIN_PASSWORD,
    AIRFLOW,
    CLUSTER,
    REPOSITORY,
    SECRETS,
    Refusal,
    add_settings,
    compile_kernels,
    is_healthy,
    write_passwords,
    write_private,
)
from supervision import Supervisor

GROUPS = {"database": ("postgres",), "spark": CLUSTER, "airflow": AIRFLOW}
"""The services in the order of their start; they are stopped the other way, group by group."""

NEED_NO_DATABASE = {"--help", "-h", "version"}
"""Words of Airflow's commands that are answered while the services are down, too."""

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells have it."""

LONGEST_FOLDER = 80
"""Bytes in the path of the services' folder: the kernel allows 107 in that of a socket."""


def make_secret(name: str) -> str:
    """Make a secret that nobody can guess; a Fernet key must be 32 bytes in URL-safe base64."""
    if name == "fernet":
        return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return secrets.token_urlsafe(64)  # signatures of tokens ask for this length


def write_secrets(file: Path) -> None:
    """Write all variables that ``docker/compose.yaml`` asks for, with new secrets."""
    if file.exists():
        raise Refusal(
            f"{file} is there already; with new secrets the database of the old ones would not open"
        )
    if not file.parent.is_dir():
        raise Refusal(
            f"there is no folder {file.parent.absolute()} for {file.name}; make it, or name another"
        )
    lines = [f"{variable}={make_secret(name)}\n" for name, variable in SECRETS.items()]
    write_private(file, "".join([*lines, f"{ADMIN_PASSWORD}={secrets.token_urlsafe(18)}\n"]))


def read_port(environment: dict[str, str], variable: str, default: int, n_ports: int = 1) -> int:
    """Read the first of some ports from a variable."""
    given, last = environment.get(variable) or str(default), 65536 - n_ports
    if not (given.isascii() and given.isdecimal() and 0 < int(given) <= last):
        raise Refusal(f"{variable} must be a port, a number from 1 to {last}, not {given!r}")
    return int(given)


def read_seconds(environment: dict[str, str], variable: str, default: int) -> float:
    """Read a number of seconds from a variable."""
    given = environment.get(variable) or str(default)
    if not (given.isascii() and given.isdecimal()):
        raise Refusal(f"{variable} must be a number of seconds, as {default}, not {given!r}")
    return float(given)


class Services:
    """The services of one folder.

    Parameters
    ----------
    folder : holds everything that the services write to the disk.
    environment : variables of the user, without the settings of the project.
    groups : names of ``GROUPS``.
    """

    def __init__(
        self, folder: Path, environment: dict[str, str], groups: tuple[str, ...] = tuple(GROUPS)
    ) -> None:
        self.folder = folder
        self.groups = groups
        self.names = [name for group in groups for name in GROUPS[group]]
        self.secrets = folder / "secrets"
        self.database = Database(folder, read_port(environment, "EPSJOIN_DATABASE_PORT", 5433))
        self.cluster_port = read_port(environment, "EPSJOIN_CLUSTER_PORT", 7077, len(CLUSTER))
        self.wait = read_seconds(environment, "EPSJOIN_SERVICES_WAIT", 180)
        spark = {
            "conn_type": "spark",
            "host": "spark://127.0.0.1",
            "port": self.cluster_port,
            "extra": {"deploy-mode": "client"},
        }
        own = {
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
            "EPSJOIN_AIRFLOW": "bin/services airflow",
            "EPSJOIN_CLUSTER_DIR": str(folder / "cluster"),
            "EPSJOIN_DATABASE": f"127.0.0.1:{self.database.port}",
            "EPSJOIN_MASTER": f"spark://127.0.0.1:{self.cluster_port}",
            "EPSJOIN_SECRETS": str(self.secrets),
        }
        # whoever has an Airflow of their own has set its home
        at_home = {"AIRFLOW_HOME": str(folder / "airflow")}
        self.environment = add_settings((own | environment | at_home).items())
        for variable in SECRETS.values():
            self.environment.pop(variable, None)  # only containers use them; each folder has its own
        self.api_port = read_port(self.environment, "AIRFLOW__API__PORT", 8080)
        self.supervisor = Supervisor(folder, self.environment, {group: GROUPS[group] for group in groups})

    def wait_until_healthy(self, name: str) -> None:
        """Return when a service is healthy; refuse with the end of its log if it ends or takes too long."""
        end = time.monotonic() + self.wait
        while not self.is_healthy(name):
            if self.supervisor.list_states().get(name) in ("BACKOFF", "EXITED", "FATAL"):
                raise Refusal(f"{name} ended; {self.supervisor.quote_log(f'{name}.log')}")
            if time.monotonic() > end:
                log = self.supervisor.quote_log(f"{name}.log")
                raise Refusal(f"{name} was not healthy after {self.wait:g} s; {log}")
            time.sleep(0.5)

    def is_healthy(self, name: str) -> bool:
        """Whether a service runs and answers."""
        if self.supervisor.list_states().get(name) not in ("STARTING", "RUNNING"):
            return False
        return self.database.is_healthy() if name == "postgres" else is_healthy(name, self.environment)

    def start_all(self) -> None:
        """Start every service that does not run; if none did, and one of them fails, stop the others."""
        if "airflow" in self.groups:
            self.check_lake()
        self.make_folders()
        with self._alone():
            self._start_missing()
        self.tell_where()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other ``up`` is at work here; one that is killed leaves it.

        Each of two would make secrets and a database, and take what the other has started for its own.
        """
        with os.fdopen(os.open(self.folder / "up.lock", os.O_WRONLY | os.O_CREAT, 0o600), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"services: another up is at work in {self.folder}; this one waits for it", flush=True)
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _start_missing(self) -> None:
        if "database" in self.groups:
            self.database.find_programs()
        if is_new := self.supervisor.connect() is None:
            self.supervisor.end_left_processes()
        states = self.supervisor.list_states()
        missing = [name for name in self.names if states.get(name) not in ("STARTING", "RUNNING", "BACKOFF")]
        self.check_ports(missing)
        self.make_secrets()
        if set(missing) & set(CLUSTER):
            compile_kernels(self.environment)
        try:
            if is_new:
                self.supervisor.start(
                    {"postgres": self.database.describe_program()} if "database" in self.groups else {}
                )
            for group in self.groups:
                if starting := [name for name in GROUPS[group] if name in missing]:
                    print(f"services: {', '.join(starting)} ...", flush=True)
                    self.start(group)
            for name in self.names:
                self.wait_until_healthy(name)
        except BaseException:
            if is_new:
                self.stop_all()
            raise

    def check_lake(self) -> None:
        """Refuse a lake that no task could use: the first run by schedule would fail, perhaps in a month."""
        sys.path.insert(0, str(REPOSITORY / "plugins"))  # before one of the same name in PYTHONPATH
        import project  # what DAGs and tasks ask

        try:
            project.check_lake_uri(project.find_lake_uri(self.environment))
        except ValueError as error:
            raise Refusal(str(error)) from None

    def make_folders(self) -> None:
        """Make the folders that are missing, for this user alone."""
        variable = "EPSJOIN_SERVICES_DIR" if "airflow" in self.groups else "EPSJOIN_CLUSTER_DIR"
        if len(os.fsencode(self.folder)) > LONGEST_FOLDER:
            raise Refusal(
                f"the path {self.folder} has more than {LONGEST_FOLDER} bytes, too many for a socket in it; "
                f"set {variable} to a shorter one"
            )
        for folder in (self.folder, self.secrets, self.folder / "logs"):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise Refusal(
                    f"{folder} cannot be made ({error.strerror}); set {variable} to a folder "
                    "in which this user may write"
                ) from None

    def tell_where(self) -> None:
        """Say where what was started is found."""
        if "airflow" in self.groups:
            host = self.environment["AIRFLOW__API__HOST"]
            where = f"password in {self.secrets}/passwords.json"
            print(f"services: http://{host}:{self.api_port}, user admin, {where}")
        else:
            print(f"services: {self.environment['EPSJOIN_MASTER']}, two workers")
        print(f"services: logs in {self.folder}/logs")

    def make_secrets(self) -> None:
        """Make the secrets that are missing, and the files of a new database, which hold one of them."""
        if "database" in self.groups and self.database.files.is_dir():
            self.database.create_files(self.secrets)
        for name in SECRETS if "airflow" in self.groups else ["spark"]:
            if not (self.secrets / name).exists():
                write_private(self.secrets / name, make_secret(name))
        if "database" in self.groups:
            self.database.create_files(self.secrets)
        if "airflow" in self.groups:
            write_passwords(self.environment, self.secrets)

    def check_ports(self, missing: list[str]) -> None:
        """Refuse a port that another program uses, before anything is started."""
        ports = [("postgres", "EPSJOIN_DATABASE_PORT", self.database.port)]
        ports += [("api-server", "AIRFLOW__API__PORT", self.api_port)]
        ports += [(name, "EPSJOIN_CLUSTER_PORT", self.cluster_port + n) for n, name in enumerate(CLUSTER)]
        for name, variable, port in ports:
            end = time.monotonic() + 3  # what has just ended holds its port for a moment
            while name in missing and not is_free(port):
                if time.monotonic() > end:
                    raise Refusal(f"port {port} is taken by another program; set {variable} to a free one")
                time.sleep(0.1)

    def migrate(self) -> None:
        """Create or upgrade Airflow's database and pools."""
        with (self.folder / "logs" / "migrate.log").open("wb") as log:
            done = subprocess.run(
                [REPOSITORY / "bin" / "service", "migrate"],
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode:
            raise Refusal(
                f"Airflow's database could not be created; {self.supervisor.quote_log('migrate.log')}"
            )

    def start(self, group: str) -> None:
        """Have what does not run of a group started; only the database is waited for."""
        if group == "airflow":
            self.migrate()
        self.supervisor.connect().startProcessGroup(group, False)
        if group == "database":
            self.wait_until_healthy("postgres")
            self.database.create_database(self.secrets)

    def stop_all(self) -> None:
        """Stop everything: first the services that use the database, the database last."""
        self.supervisor.stop()
        print("services: down")

    def print_status(self) -> int:
        """Print the state of every service; return 0 only if all of them are healthy."""
        states, code = self.supervisor.list_states(), 0
        for name in self.names:
            if states.get(name) not in ("STARTING", "RUNNING"):
                said = f"down ({states[name].lower()})" if name in states else "down"
            elif self.is_healthy(name):
                said = "healthy"
            elif name in AIRFLOW[1:] and not self.is_healthy("api-server"):
                said = "runs; only the API server knows its health, and does not answer"
            else:
                said = "unhealthy"
            code |= said != "healthy"
            print(f"{name}: {said}")
        return code


def check_database(address: str) -> None:
    """Refuse a database that does not answer: Airflow would say so by a traceback."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError):
        raise Refusal(
            f"no database answers at {address}: the services are down, or at other ports "
            "(EPSJOIN_DATABASE_PORT); start them by make up, or look by bin/services status"
        ) from None


def is_free(port: int) -> bool:
    """Whether a service could listen at a port of this machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def main(arguments: list[str]) -> int:
    """Run the command that the arguments name."""
    folder = Path(os.environ.get("EPSJOIN_SERVICES_DIR") or REPOSITORY / ".services").absolute()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that "up" takes down what it has started
    try:
        match arguments:
            case ["secrets", file]:
                write_secrets(Path(file))
            case ["airflow", *words]:
                environment = Services(folder, dict(os.environ)).environment
                if words and not NEED_NO_DATABASE.intersection(words):
                    check_database(environment["EPSJOIN_DATABASE"])
                service = str(REPOSITORY / "bin" / "service")
                os.execve(service, [service, *arguments], environment)  # noqa: S606  # the project's own script
            case ["up" | "down" | "status" as word, *groups] if groups in ([], ["spark"]):
                services = Services(folder, dict(os.environ), tuple(groups) or tuple(GROUPS))
                if word == "status":
                    return services.print_status()
                services.start_all() if word == "up" else services.stop_all()
            case _:
                usage = "usage: bin/services up | down | status [spark] | airflow ... | secrets FILE"
                print(usage, file=sys.stderr)
                return 2
    except Refusal as refusal:
        print(f"services: {refusal}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("services: interrupted; bin/services status says what runs", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
