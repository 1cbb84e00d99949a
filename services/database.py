"""PostgreSQL for Airflow, as Debian packages it: its programs, its files, and the user that it runs as."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from service import Refusal, write_pgpass, write_private

ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
"""All that PostgreSQL sees of the environment: it may run as another user."""


class Database(NamedTuple):
    """The database of the services in ``folder``, at a port of the loopback address alone."""

    folder: Path
    port: int

    @property
    def files(self) -> Path:
        """The folder of PostgreSQL's own files."""
        return self.folder / "postgres"

    def find_programs(self) -> Path:
        """Find PostgreSQL: the version that created the database, or else the newest one."""
        version = self.files / "PG_VERSION"
        made_by = version.read_text().strip() if version.is_file() else None
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
            said = subprocess.run(asked, capture_output=True, text=True, check=True)
            if said.stdout.split()[2].split(".")[0] == made_by:
                return folder
        raise Refusal(
            f"{self.files} was created by PostgreSQL {made_by}, which is missing here; "
            f"install postgresql-{made_by}; docs/operate.md says how to move to another version"
        )

    def describe_program(self) -> dict[str, str]:
        """Describe PostgreSQL for supervisord: it stops "fast", without waiting for its clients."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "password_encryption": "scram-sha-256",
        }
        command = ["env", "-i", *(f"{name}={value}" for name, value in ENVIRONMENT.items())]
        command += [str(self.find_programs() / "postgres"), "-D", str(self.files)]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        user = choose_user()
        return {"command": shlex.join(command), "directory": "/", "stopsignal": "INT"} | (
            {"user": user.pw_name} if user else {}
        )

    def create_files(self, secrets: Path) -> None:
        """Create the files of PostgreSQL, unless they are there; the folder is named when it is complete."""
        secret = secrets / "database"
        if self.files.is_dir():
            if not secret.is_file():
                raise Refusal(
                    f"{secret} is missing, the password of the database in {self.files}; put the file back, "
                    f"or move {self.files} away and begin with an empty database (docs/operate.md, Upgrade)"
                )
            return
        made, password, user = self.files.with_name("postgres.new"), self.folder / "password", choose_user()
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(mode=0o700)
        write_private(password, secret.read_text())
        how: dict[str, Any] = {"cwd": "/", "env": ENVIRONMENT}
        if user:
            how |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            self.folder.chmod(0o711)
            for path in (made, password):
                os.chown(path, user.pw_uid, user.pw_gid)
        command = [str(self.find_programs() / "initdb"), "--pgdata", str(made), "--username", "airflow"]
        command += ["--auth", "scram-sha-256", "--pwfile", str(password)]
        command += ["--encoding", "UTF8", "--locale", "C.UTF-8"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
        finally:
            password.unlink()
        if done.returncode:
            whose = user.pw_name if user else pwd.getpwuid(os.geteuid()).pw_name
            raise Refusal(
                f"PostgreSQL could not create its files in {made} as user {whose}; if that is a question of "
                f"rights, set EPSJOIN_SERVICES_DIR to a folder that this user reaches: {done.stderr.strip()}"
            )
        made.rename(self.files)

    def is_healthy(self) -> bool:
        """Whether PostgreSQL answers."""
        return self._call("pg_isready", "--quiet").returncode == 0

    def create_database(self, secrets: Path) -> None:
        """Create the database ``airflow``, unless it is there."""
        words = ("--username", "airflow", "--no-password", "--maintenance-db", "postgres", "airflow")
        made = self._call("createdb", *words, PGPASSFILE=str(write_pgpass(secrets)), LC_ALL="C")
        if made.returncode and "already exists" not in made.stderr:
            raise Refusal(f"the database airflow could not be created: {made.stderr.strip()}")

    def _call(self, program: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.find_programs() / program), "--host", "127.0.0.1", "--port", str(self.port)]
        return subprocess.run(
            [*command, *words], env={**os.environ, **variables}, capture_output=True, text=True, check=False
        )


def choose_user() -> pwd.struct_passwd | None:
    """Choose the user that PostgreSQL runs as: this one (``None``), but never root, which it refuses."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Refusal(
        "PostgreSQL does not run as root, and there is no user postgres or nobody; use another user"
    )
