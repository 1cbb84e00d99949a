"""All services on this machine, without Docker; one file, because it runs by itself, without any package.

The settings are those of ``docker/compose.yaml``.

* ``bin/services up``: PostgreSQL, a Spark cluster, Airflow's four services; returns when all are healthy.
  A service that already runs is left alone.
* ``bin/services down``: stop everything; database, secrets and logs stay.
* ``bin/services status``: say what runs; the exit code is 0 only if every service is healthy.
* ``bin/services secrets FILE``: write new secrets for ``docker compose --env-file FILE``.

This module uses the standard library only. It needs Linux, and PostgreSQL as Debian packages it. Each service
runs in a process session of its own; by its session ``down`` finds every process of a service, even after the
first process of the service has ended.

Variables: ``EPSJOIN_SERVICES_DIR`` (default: ``.services``), the ports ``AIRFLOW__API__PORT`` (8080),
``EPSJOIN_DATABASE_PORT`` (5433), ``EPSJOIN_CLUSTER_PORT`` (7077); ``EPSJOIN_SERVICES_WAIT`` (seconds, 180);
and those of ``bin/airflow`` and ``bin/spark-cluster``.
"""

from __future__ import annotations

import base64
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from service import (
    ADMIN_PASSWORD,
    AIRFLOW,
    REPOSITORY,
    SECRETS,
    Refusal,
    add_settings,
    is_healthy,
    write_passwords,
    write_pgpass,
    write_private,
)

GRACE = 10.0
"""How many seconds a service has to end by itself before it is killed."""


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
    lines = [f"{variable}={make_secret(name)}\n" for name, variable in SECRETS.items()]
    write_private(file, "".join([*lines, f"{ADMIN_PASSWORD}={secrets.token_urlsafe(18)}\n"]))


class Process(NamedTuple):
    """A process as ``/proc`` shows it; ``began`` tells it from a later process with the same number."""

    pid: int
    session: int
    began: int
    is_zombie: bool


def list_processes() -> list[Process]:
    """List all processes of this machine."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # the name, in brackets, may hold spaces and brackets
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found.append(Process(int(folder.name), int(fields[3]), int(fields[19]), fields[0] == "Z"))
    return found


def send_signal(process: Process, what: signal.Signals) -> None:
    """Send a signal to a process that may have ended meanwhile."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, what)


class Services:
    """The services of one folder.

    Parameters
    ----------
    folder : holds everything that the services write to the disk.
    environment : variables of the user, without the settings of the project.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.secrets = folder / "secrets"
        self.database_port = int(environment.get("EPSJOIN_DATABASE_PORT") or 5433)
        self.cluster_port = int(environment.get("EPSJOIN_CLUSTER_PORT") or 7077)
        self.wait = float(environment.get("EPSJOIN_SERVICES_WAIT") or 180)
        spark = f'{{"conn_type":"spark","host":"spark://127.0.0.1","port":{self.cluster_port},"extra":{{"deploy-mode":"client"}}}}'
        own = {
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW_CONN_SPARK_DEFAULT": spark,
            "EPSJOIN_CLUSTER_DIR": str(folder / "cluster"),
            "EPSJOIN_DATABASE": f"127.0.0.1:{self.database_port}",
            "EPSJOIN_SECRETS": str(self.secrets),
        }
        self.environment = add_settings((own | environment).items())
        for variable in SECRETS.values():
            self.environment.pop(variable, None)  # only containers use them; each folder has its own
        self.api_port = int(self.environment["AIRFLOW__API__PORT"])

    # --- processes

    def find_processes(self, name: str) -> list[Process]:
        """List the processes of a service that run: its first process and all others of its session."""
        try:
            pid, began = map(int, (self.folder / "run" / name).read_text().split())
        except (OSError, ValueError):
            return []
        everyone = list_processes()
        if any(process.pid == pid and process.began != began for process in everyone):
            return []  # the number was given to another process, so nothing of the session is left
        return [process for process in everyone if process.session == pid and not process.is_zombie]

    def is_running(self, name: str) -> bool:
        """Whether the first process of a service runs."""
        return any(process.pid == process.session for process in self.find_processes(name))

    def start(self, name: str, command: list[str], **how: Any) -> None:
        """Start a service in a session of its own; its output goes to a log."""
        self.stop([name])  # processes that an earlier start left
        with (self.folder / "logs" / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - the project's own
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **how,
            )
        began = next(other.began for other in list_processes() if other.pid == process.pid)
        (self.folder / "run" / name).write_text(f"{process.pid} {began}\n")

    def stop(self, names: list[str], how: signal.Signals = signal.SIGTERM) -> None:
        """Stop services together; what still runs after ``GRACE`` seconds is killed."""
        running = {name: self.find_processes(name) for name in names}
        for session in running.values():
            for process in session:
                if process.pid == process.session:
                    send_signal(process, how)
        end = time.monotonic() + GRACE
        while any(running.values()):
            if time.monotonic() > end:
                for process in (process for session in running.values() for process in session):
                    send_signal(process, signal.SIGKILL)
            time.sleep(0.1)
            running = {name: self.find_processes(name) for name in names}
        for name in names:
            (self.folder / "run" / name).unlink(missing_ok=True)

    def wait_until_healthy(self, name: str) -> None:
        """Return when a service is healthy; refuse with the end of its log if it ends or takes too long."""
        end = time.monotonic() + self.wait
        while not self.is_healthy(name):
            if not self.is_running(name):
                raise Refusal(f"{name} ended; {self.quote_log(name)}")
            if time.monotonic() > end:
                raise Refusal(f"{name} was not healthy after {self.wait:g} s; {self.quote_log(name)}")
            time.sleep(0.5)

    def is_healthy(self, name: str) -> bool:
        """Whether a service runs and answers."""
        if name == "postgres":
            tool = str(self.find_database_programs() / "pg_isready")
            asked = [tool, "--quiet", "--host", "127.0.0.1", "--port", str(self.database_port)]
            return self.is_running(name) and subprocess.run(asked, check=False).returncode == 0  # noqa: S603 - Debian's
        return self.is_running(name) and is_healthy(name, self.environment)

    def quote_log(self, name: str) -> str:
        """Name the log of a service and quote its last lines."""
        log = self.folder / "logs" / f"{name}.log"
        return "\n".join([f"the last lines of {log}:", *log.read_text(errors="replace").splitlines()[-15:]])

    # --- PostgreSQL

    def find_database_programs(self) -> Path:
        """Find PostgreSQL: the version that created the database, or else the newest one."""
        data = self.folder / "postgres" / "PG_VERSION"
        made_by = data.read_text().strip() if data.is_file() else None
        on_path = shutil.which("postgres")
        folders = [Path(on_path).resolve().parent] if on_path else []
        debian = Path("/usr/lib/postgresql").glob("*/bin")
        folders += sorted(
            debian, key=lambda bin_: [int(n) for n in bin_.parent.name.split(".")], reverse=True
        )
        found = [folder for folder in folders if (folder / "initdb").is_file()]
        if not found:
            raise Refusal("PostgreSQL is missing here; install it (on Debian: apt-get install postgresql)")
        if made_by is None:
            return found[0]
        for folder in found:
            asked = [str(folder / "postgres"), "--version"]
            said = subprocess.run(asked, capture_output=True, text=True, check=True)  # noqa: S603 - Debian's
            if said.stdout.split()[2].split(".")[0] == made_by:
                return folder
        raise Refusal(
            f"{data.parent} was created by PostgreSQL {made_by}, which is missing here; "
            f"install postgresql-{made_by}; docs/operate.md says how to move to another version"
        )

    def choose_database_user(self) -> dict[str, Any]:
        """Choose the user that PostgreSQL runs as: this user, but never root, which PostgreSQL refuses."""
        how: dict[str, Any] = {"cwd": "/", "env": {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}}
        if os.geteuid() != 0:
            return how
        for name in ("postgres", "nobody"):
            try:
                user = pwd.getpwnam(name)
            except KeyError:
                continue
            return how | {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        raise Refusal(
            "PostgreSQL does not run as root, and there is no user postgres or nobody; use another user"
        )

    def start_database(self) -> None:
        """Start PostgreSQL on the loopback address alone; create the database ``airflow`` the first time."""
        programs, how = self.find_database_programs(), self.choose_database_user()
        data = self.folder / "postgres"
        if not data.is_dir():
            self.create_database_files(programs, how, data)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.database_port),
            "unix_socket_directories": "",
            "password_encryption": "scram-sha-256",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self.start("postgres", [str(programs / "postgres"), "-D", str(data), *options], **how)
        self.wait_until_healthy("postgres")

        command = [str(programs / "createdb"), "--host", "127.0.0.1", "--port", str(self.database_port)]
        command += ["--username", "airflow", "--no-password", "--maintenance-db", "postgres", "airflow"]
        environment = {**os.environ, "PGPASSFILE": str(write_pgpass(self.secrets)), "LC_ALL": "C"}
        made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - Debian's
        if made.returncode and "already exists" not in made.stderr:
            raise Refusal(f"the database airflow could not be created: {made.stderr.strip()}")

    def create_database_files(self, programs: Path, how: dict[str, Any], data: Path) -> None:
        """Create the files of PostgreSQL; the folder gets its name when it is complete."""
        made, password = data.with_name("postgres.new"), self.folder / "password"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(mode=0o700)
        write_private(password, (self.secrets / "database").read_text())
        if "user" in how:
            self.folder.chmod(0o711)
            for path in (made, password):
                os.chown(path, how["user"], how["group"])
        command = [str(programs / "initdb"), "--pgdata", str(made), "--username", "airflow"]
        command += ["--auth", "scram-sha-256", "--pwfile", str(password)]
        command += ["--encoding", "UTF8", "--locale", "C.UTF-8"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, **how)  # noqa: S603 - Debian's
        finally:
            password.unlink()
        if done.returncode:
            whose = pwd.getpwuid(how.get("user", os.geteuid())).pw_name
            raise Refusal(
                f"PostgreSQL could not create its files in {made} as user {whose}; if that is a question of "
                f"rights, set EPSJOIN_SERVICES_DIR to a folder that this user reaches: {done.stderr.strip()}"
            )
        made.rename(data)

    # --- all of them

    def call_spark_cluster(self, word: str, quiet: bool = False) -> int:
        """Call ``bin/spark-cluster`` with a word; return its exit code."""
        command = [str(REPOSITORY / "bin" / "spark-cluster"), word]
        silence = subprocess.DEVNULL if quiet else None
        done = subprocess.run(command, env=self.environment, stdout=silence, stderr=silence, check=False)  # noqa: S603 - the project's own
        return done.returncode

    def start_all(self) -> None:
        """Start every service that does not run; if one of them fails, stop what was started here."""
        for folder in (
            self.folder,
            self.secrets,
            *(self.folder / name for name in ("logs", "run", "airflow")),
        ):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in SECRETS:
            if name != "spark" and not (self.secrets / name).exists():  # bin/spark-cluster makes that one
                write_private(self.secrets / name, make_secret(name))
        write_passwords(self.environment, self.secrets)
        missing = [name for name in ("postgres", *AIRFLOW) if not self.is_running(name)]
        if self.call_spark_cluster("status", quiet=True):
            missing.append("spark")
        self.check_ports(missing)
        try:
            if "postgres" in missing:
                print("services: PostgreSQL ...", flush=True)
                self.start_database()
            if self.call_spark_cluster("up"):
                raise Refusal("the Spark cluster did not start; the reason stands above")
            service = str(REPOSITORY / "bin" / "service")
            if set(missing) & set(AIRFLOW):
                print("services: Airflow ...", flush=True)
                self.migrate(service)
            for name in AIRFLOW:
                if name in missing:
                    self.start(name, [service, name], env=self.environment)
            for name in AIRFLOW:
                self.wait_until_healthy(name)
        except BaseException:
            self.stop([name for name in AIRFLOW if name in missing])
            if "spark" in missing:
                self.call_spark_cluster("down", quiet=True)
            if "postgres" in missing:
                self.stop(["postgres"], signal.SIGINT)
            raise
        host = self.environment["AIRFLOW__API__HOST"]
        print(
            f"services: http://{host}:{self.api_port}, user admin, password in {self.secrets}/passwords.json"
        )
        print(f"services: logs in {self.folder}/logs")

    def check_ports(self, missing: list[str]) -> None:
        """Refuse a port that another program uses, before anything is started."""
        for name, variable, port in (
            ("postgres", "EPSJOIN_DATABASE_PORT", self.database_port),
            ("api-server", "AIRFLOW__API__PORT", self.api_port),
            ("spark", "EPSJOIN_CLUSTER_PORT", self.cluster_port),
        ):
            if name in missing and not is_free(port):
                raise Refusal(f"port {port} is taken by another program; set {variable} to a free one")

    def migrate(self, service: str) -> None:
        """Create or upgrade Airflow's database and pools."""
        with (self.folder / "logs" / "migrate.log").open("wb") as log:
            done = subprocess.run(  # noqa: S603 - the project's own
                [service, "migrate"], env=self.environment, stdout=log, stderr=subprocess.STDOUT, check=False
            )
        if done.returncode:
            raise Refusal(f"Airflow's database could not be created; {self.quote_log('migrate')}")

    def stop_all(self) -> None:
        """Stop everything: first the services that use the database, the database last."""
        self.stop(list(AIRFLOW))
        self.call_spark_cluster("down", quiet=True)
        self.stop(["postgres"], signal.SIGINT)  # "fast": it does not wait for its clients
        print("services: down")

    def print_status(self) -> int:
        """Print the state of every service; return 0 only if all of them are healthy."""
        code = 0
        for name in ("postgres", *AIRFLOW):
            state = "healthy" if self.is_healthy(name) else "unhealthy" if self.is_running(name) else "down"
            code |= state != "healthy"
            print(f"{name}: {state}")
        return self.call_spark_cluster("status") | code


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
        services = Services(folder, dict(os.environ))
        match arguments:
            case ["up"]:
                services.start_all()
            case ["down"]:
                services.stop_all()
            case ["status"]:
                return services.print_status()
            case ["secrets", file]:
                write_secrets(Path(file))
            case _:
                print("usage: bin/services up | down | status | secrets FILE", file=sys.stderr)
                return 2
    except Refusal as refusal:
        print(f"services: {refusal}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
