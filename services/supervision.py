"""supervisord, which keeps the services: what it reads, its start and end, what it knows of each one."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from configparser import ConfigParser
from pathlib import Path
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from service import REPOSITORY, Refusal, read_process
from session import GRACE, Session


def _has_died_unseen(info: Mapping[str, Any]) -> bool:
    """Whether a service runs by what supervisord knows, and its process has ended."""
    return info["statename"] == "RUNNING" and read_process(info["pid"]).get("state", "Z") == "Z"


class BeingStopped(Refusal):
    """The services are being stopped, by another command or by one that was interrupted."""


class Supervisor:
    """The supervisord of one folder.

    Parameters
    ----------
    folder : holds its files, and the logs of the services.
    environment : what it and the services see.
    groups : names of the services, by group, in the order of their start.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], groups: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.folder = folder
        self.environment = environment
        self.groups = groups
        self.session = Session(folder / "session")

    def connect(self) -> Any:
        """Return the procedures of the supervisord that runs here, or ``None`` if none does."""
        from supervisor.xmlrpc import SupervisorTransport  # of Airflow's environment

        procedures = ServerProxy(
            "http://127.0.0.1", SupervisorTransport(None, None, f"unix://{self.folder}/supervisor.sock")
        ).supervisor
        try:
            procedures.getState()
        except PermissionError:
            raise Refusal(f"{self.folder} belongs to another user, who alone may ask its services") from None
        except OSError:
            return None
        except Fault:
            raise BeingStopped("the services are being stopped; say it again when they are down") from None
        return procedures

    def list_states(self) -> dict[str, str]:
        """List the state of every service in supervisord's words: RUNNING, BACKOFF, FATAL, ...

        To supervisord, a process that has just died still runs until it looks again, which is waited for.
        """
        procedures = self.connect()
        if procedures is None:
            return {}
        while any(map(_has_died_unseen, services := procedures.getAllProcessInfo())):
            time.sleep(0.1)
        return {info["name"]: info["statename"] for info in services}

    def start(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        """Start it in a session of its own; it starts nothing by itself.

        Parameters
        ----------
        settings : see :meth:`write_configuration`.
        """
        self.write_configuration(settings)
        with (self.folder / "logs" / "supervisord.out").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "supervisor.supervisord", "-c", str(self.folder / "supervisor.conf")],
                cwd=REPOSITORY,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,
            )
        self.session.begin(process.pid)
        while self.connect() is None:
            if process.poll() is not None:
                raise Refusal(f"supervisord ended; {self.quote_log('supervisord.out')}")
            time.sleep(0.1)

    def write_configuration(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        """Write what supervisord reads: how each service is started, stopped and logged.

        Parameters
        ----------
        settings : of some services, settings of their own, by the service's name.
        """
        file = ConfigParser(interpolation=None)
        file["supervisord"] = {"nodaemon": "true", "pidfile": f"{self.folder}/supervisord.pid"}
        file["supervisord"]["logfile"] = f"{self.folder}/logs/supervisord.log"
        file["unix_http_server"] = {"file": f"{self.folder}/supervisor.sock", "chmod": "0600"}
        file["supervisorctl"] = {"serverurl": f"unix://{self.folder}/supervisor.sock"}
        made_by = "supervisor.rpcinterface:make_main_rpcinterface"
        file["rpcinterface:supervisor"] = {"supervisor.rpcinterface_factory": made_by}
        for priority, (group, names) in enumerate(self.groups.items()):
            file[f"group:{group}"] = {"programs": ",".join(names), "priority": str(priority)}
            for name in names:
                common = {
                    "command": f"bin/service {name}",
                    "autostart": "false",  # "up" knows the order
                    "autorestart": "true",
                    "startsecs": "5",
                    "stopwaitsecs": str(GRACE),
                    "killasgroup": "true",
                    "redirect_stderr": "true",
                    "stdout_logfile": f"{self.folder}/logs/{name}.log",
                    "stdout_logfile_maxbytes": "10MB",
                    "stdout_logfile_backups": "4",
                }
                file[f"program:{name}"] = common | dict(settings.get(name, {}))
        for section in file.values():
            for name, value in section.items():
                section[name] = value.replace("%", "%%")  # supervisord would expand it
        with (self.folder / "supervisor.conf").open("w", encoding="utf-8") as opened:
            file.write(opened)

    def stop(self) -> None:
        """Stop all services in the reverse order of their start, then supervisord."""
        is_ending = True
        try:
            if procedures := self.connect():
                procedures.shutdown()
            else:
                is_ending = False
        except (BeingStopped, Fault):  # of the latter: since the line above
            print("services: they are being stopped already; this waits until they are down", flush=True)
        end = time.monotonic() + (len(self.groups) + 1) * GRACE
        while is_ending and self.session.leader in self.session.find_processes() and time.monotonic() < end:
            time.sleep(0.1)
        self.end_left_processes()

    def end_left_processes(self) -> None:
        """End what a killed service has left, or all of them if it was supervisord that was killed."""
        self.session.end()
        (self.folder / "supervisor.sock").unlink(missing_ok=True)

    def quote_log(self, file: str) -> str:
        """Name a log and quote its last lines."""
        log = self.folder / "logs" / file
        lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
        return "\n".join([f"the last lines of {log}:", *lines[-15:]])
