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
import threading
from configparser import ConfigParser
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import service
import services
import session
from service import AIRFLOW, CLUSTER, SECRETS, Refusal
from supervision import BeingStopped, Supervisor
from tests.deployment.environment import ALL_SECRETS, DOCKER, REPO, await_


@pytest.fixture
def here(tmp_path: Path) -> services.Services:
    for name in ("logs", "secrets"):
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
    with pytest.raises(Refusal, match=f"there is no folder {tmp_path}/nowhere for my.secrets"):
        services.write_secrets(tmp_path / "nowhere" / "my.secrets")
    assert dict(service.read_settings(file)) == values


def test_services__refuses_a_port_that_is_taken_before_it_starts_anything(here: services.Services) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        here.database = here.database._replace(port=taken.getsockname()[1])
        with pytest.raises(Refusal, match="is taken by another program; set EPSJOIN_DATABASE_PORT"):
            here.check_ports(["postgres"])
        here.check_ports([])  # it is ours
    here.check_ports(["postgres"])


def test_services__of_two_that_start_at_once_the_second_waits_for_the_first(
    here: services.Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would make a password of the database, which then knows but one of them."""
    says_that_it_waits = threading.Event()
    done: list[str] = []

    def start(_: services.Services) -> None:
        if not done:
            done.append("first begins")
            second.start()
            await_(lambda: says_that_it_waits.is_set() or len(done) > 1)
            done.append("first ends")
        else:
            done.append("second")

    def tell(text: str, **_: bool) -> None:
        if "waits" in text:
            says_that_it_waits.set()
        told.append(text)

    told: list[str] = []
    second = threading.Thread(target=services.Services(here.folder, {}).start_all)
    monkeypatch.setattr(services.Services, "_start_missing", start)
    monkeypatch.setattr(services, "print", tell, raising=False)
    here.start_all()
    second.join()
    assert done == ["first begins", "first ends", "second"]
    assert told.count(f"services: another up is at work in {here.folder}; this one waits for it") == 1
    assert stat.S_IMODE((here.folder / "up.lock").stat().st_mode) == 0o600


@pytest.mark.parametrize("variable", ["EPSJOIN_DATABASE_PORT", "EPSJOIN_CLUSTER_PORT", "AIRFLOW__API__PORT"])
@pytest.mark.parametrize("port", ["abc", "99999", "0", "-1", "²"])
def test_services__refuses_a_port_that_is_none(tmp_path: Path, variable: str, port: str) -> None:
    last = 65533 if "CLUSTER" in variable else 65535  # the workers take the next two
    with pytest.raises(
        Refusal, match=f"^{variable} must be a port, a number from 1 to {last}, not '{port}'$"
    ):
        services.Services(tmp_path, {variable: port})


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("EPSJOIN_CLUSTER_PORT", "65534", "must be a port, a number from 1 to 65533, not '65534'$"),
        ("EPSJOIN_SERVICES_WAIT", "3m", "must be a number of seconds, as 180, not '3m'$"),
    ],
)
def test_services__refuses_a_number_that_cannot_be(
    tmp_path: Path, variable: str, value: str, said: str
) -> None:
    with pytest.raises(Refusal, match=f"^{variable} {said}"):
        services.Services(tmp_path, {variable: value})


@pytest.mark.parametrize(
    ("lake", "said"),
    [
        ("/data/lake", "EPSJOIN_LAKE must be a URI such as file:///data/lake, not '/data/lake'"),
        (
            "file://data/lake",
            "EPSJOIN_LAKE: a file URI has three slashes, file:///..., not 'file://data/lake'",
        ),
        ("", "EPSJOIN_LAKE must be a URI such as file:///data/lake, not ''"),
        ("s3a://key:secret@bucket/lake", "EPSJOIN_LAKE holds a password, which logs would show"),
    ],
)
def test_services__refuse_a_lake_that_no_task_could_use_before_they_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lake: str, said: str
) -> None:
    """Each task would refuse it, the first perhaps in a month."""
    start = Mock()
    monkeypatch.setattr(services.Services, "_start_missing", start)
    with pytest.raises(Refusal, match=f"^{re.escape(said)}") as refused:
        services.Services(tmp_path / "new", {"EPSJOIN_LAKE": lake}).start_all()
    assert "secret" not in str(refused.value)
    assert not (tmp_path / "new").exists()
    services.Services(tmp_path / "new", {"EPSJOIN_LAKE": lake}, ("spark",)).start_all()  # knows no lake
    services.Services(tmp_path / "new", {"EPSJOIN_LAKE": "file:///data/lake"}).start_all()
    services.Services(tmp_path / "new", {}).start_all()
    assert start.call_count == 3


def test_services__keeps_airflow_in_their_own_folder(tmp_path: Path) -> None:
    """Whoever has another Airflow has set its home in the shell."""
    own = services.Services(tmp_path, {"AIRFLOW_HOME": "/home/of/another"}).environment
    assert own["AIRFLOW_HOME"] == f"{tmp_path}/airflow"


def test_services__of_another_user_say_so(here: services.Services, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def __init__(self, *_: object) -> None:
            """As that of Airflow's environment."""

        def request(self, *_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setitem(sys.modules, "supervisor.xmlrpc", SimpleNamespace(SupervisorTransport=Closed))
    with pytest.raises(Refusal, match=f"^{here.folder} belongs to another user"):
        here.print_status()


def test_services__without_the_password_of_a_database_that_is_there_says_what_to_do(
    here: services.Services,
) -> None:
    here.database.files.mkdir()
    with pytest.raises(
        Refusal, match=rf"^{here.secrets}/database is missing, .*; put the file back, or move"
    ):
        here.make_secrets()
    assert not list(here.secrets.iterdir()), "a new password would not open it"


VARIABLE_OF_FOLDER = [
    (("database", "spark", "airflow"), "EPSJOIN_SERVICES_DIR"),
    (("spark",), "EPSJOIN_CLUSTER_DIR"),  # bin/spark-cluster
]


@pytest.mark.parametrize(("groups", "variable"), VARIABLE_OF_FOLDER)
def test_services__in_a_folder_too_deep_for_a_socket_says_so(
    tmp_path: Path, groups: tuple[str, ...], variable: str
) -> None:
    deep = tmp_path / ("d" * services.LONGEST_FOLDER)
    with pytest.raises(Refusal, match=f"too many for a socket in it; set {variable} to a shorter one"):
        services.Services(deep, {}, groups).start_all()
    assert not deep.exists()


@pytest.mark.parametrize(("groups", "variable"), VARIABLE_OF_FOLDER)
def test_services__in_a_folder_that_cannot_be_made_says_so(
    tmp_path: Path, groups: tuple[str, ...], variable: str
) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "services"
    with pytest.raises(
        Refusal, match=rf"^{folder} cannot be made \(Not a directory\); set {variable} to a folder in which"
    ):
        services.Services(folder, {}, groups).start_all()


def test_services__are_started_again_when_they_die_and_their_logs_are_rotated(tmp_path: Path) -> None:
    here = services.Services(tmp_path / "100 % of it", {}, ("spark", "airflow"))
    here.folder.mkdir()
    here.supervisor.write_configuration({})
    read = ConfigParser(interpolation=None)
    read.read(here.folder / "supervisor.conf")
    assert {section[8:] for section in read if section.startswith("program:")} == {*CLUSTER, *AIRFLOW}
    for name in here.names:
        program = read[f"program:{name}"]
        assert (program["autorestart"], program["autostart"]) == ("true", "false")
        assert program["stdout_logfile"] == f"{tmp_path}/100 %% of it/logs/{name}.log", (
            "supervisord expands %"
        )
        assert program["stdout_logfile_maxbytes"] == "10MB"
        assert program["killasgroup"] == "true"
    order = [read[f"group:{group}"]["priority"] for group in ("spark", "airflow")]
    assert order == sorted(order), "the last one is stopped first"


def test_services__airflow_while_they_are_down_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execve", lambda _, words, __: started.append(words[1:]))
    monkeypatch.setenv("EPSJOIN_SERVICES_DIR", str(tmp_path))
    monkeypatch.delenv("EPSJOIN_DATABASE", raising=False)
    with socket.socket() as database:
        database.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{database.getsockname()[1]}"
        monkeypatch.setenv("EPSJOIN_DATABASE_PORT", address.rpartition(":")[2])
        assert services.main(["airflow", "dags", "list"]) == 1
        assert capsys.readouterr().err == (
            f"services: no database answers at {address}: the services are down, or at other ports "
            "(EPSJOIN_DATABASE_PORT); start them by make up, or look by bin/services status\n"
        )
        assert started == []
        without = [[], ["version"], ["dags", "list", "--help"]]
        for words in without:
            services.main(["airflow", *words])
        database.listen()
        services.main(["airflow", "dags", "list"])
        assert started == [["airflow", *words] for words in (*without, ["dags", "list"])]


STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgid(0, 0)  # as Airflow's tasks do
os.write(1, b"ready\\n")  # in one go
time.sleep(60)
"""


def test_session__ends_every_process_whatever_it_does_with_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "GRACE", 0.5)
    here = session.Session(tmp_path / "session")
    command = [sys.executable, "-c", STUBBORN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as leader:
        try:
            assert leader.stdout
            assert [leader.stdout.readline() for _ in range(2)] == ["ready\n", "ready\n"]
            here.begin(leader.pid)
            left = here.find_processes()
            assert len(left) == 2
        finally:
            leader.kill()
    assert len(here.find_processes()) == 1, "found without its leader, too"
    here.end()
    assert not [pid for pid in left if service.read_process(pid).get("state", "Z") != "Z"]
    assert not here.file.exists()


def test_services__down_beside_another_one_waits_until_they_are_down(
    here: services.Services, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a down that was interrupted: supervisord is still at work, and answers nothing."""

    def stopping(_: Supervisor) -> None:
        raise BeingStopped("the services are being stopped")

    monkeypatch.setattr(Supervisor, "connect", stopping)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as supervisord:
        here.supervisor.session.begin(supervisord.pid)
        looked = Mock(side_effect=here.supervisor.session.find_processes)

        def find() -> list[int]:
            if looked.call_count == 2:
                supervisord.kill()
                supervisord.wait()
            return list(looked())

        monkeypatch.setattr(here.supervisor.session, "find_processes", find)
        monkeypatch.setattr(here.supervisor.session, "end", lambda: ended.append(supervisord.poll()))
        ended: list[int | None] = []
        here.stop_all()
    assert ended == [-signal.SIGKILL], "nothing is killed while supervisord stops the services"
    assert capsys.readouterr().out == (
        "services: they are being stopped already; this waits until they are down\nservices: down\n"
    )


LEFT = """
import os, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
import service

def worker(does, is_orphan):
    name = f"airflow worker -- LocalExecutor: {does}"
    command = ["bash", "-c", 'exec -a "$0" sleep 60', name]
    if not is_orphan:
        return subprocess.Popen(command).pid
    started = 'bash -c \\'exec -a "$0" sleep 60\\' "$0" > /dev/null & echo $!'
    return int(subprocess.check_output(["bash", "-c", started, name]))

def lives(pid):
    return service.read_process(pid).get("state", "Z") != "Z"

workers = [worker("<idle>", True), worker("navaids.ingest", True), worker("<idle>", False)]
while any(b"LocalExecutor" != open(f"/proc/{pid}/cmdline", "rb").read()[18:31] for pid in workers):
    time.sleep(0.01)
service.end_idle_workers()
while lives(workers[0]):
    time.sleep(0.01)
print(*map(lives, workers))
for pid in workers[1:]:
    os.kill(pid, 9)
"""


def test_scheduler__ends_the_idle_workers_of_one_that_was_killed() -> None:
    """Not those that are at work, nor those whose scheduler lives."""
    command = [sys.executable, "-c", LEFT, str(REPO / "services")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, start_new_session=True
    )
    told, lives = done.stdout.splitlines()
    assert re.fullmatch(r"service: ends the idle worker \d+ of a killed scheduler", told)
    assert lives == "False True True"


def test_session__looks_past_a_process_whose_name_is_no_text(tmp_path: Path) -> None:
    """As the kernel cuts the name of any program on the machine, within a letter."""
    here = session.Session(tmp_path / "session")
    program = "open('/proc/self/comm', 'wb').write(b'a) \\xc3'); print(flush=True); input()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as leader:
        try:
            assert leader.stdout
            leader.stdout.readline()
            here.begin(leader.pid)
            assert here.find_processes() == [leader.pid]
        finally:
            leader.kill()


def test_session__takes_no_other_process_for_its_own(tmp_path: Path) -> None:
    here = session.Session(tmp_path / "session")
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        try:
            here.file.write_text(f"{stranger.pid} 1\n")
            assert here.find_processes() == [], "its number was in a file that a crash had left"
            here.end()
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_services__of_one_that_ended_shows_the_last_words(
    here: services.Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(here.supervisor, "list_states", lambda: {"scheduler": "BACKOFF"})
    (here.folder / "logs" / "scheduler.log").write_text("no such table\n")
    with pytest.raises(Refusal, match=r"scheduler ended; the last lines of .*scheduler.log:\nno such table"):
        here.wait_until_healthy("scheduler")


def test_services__status_says_who_knows_the_health_of_airflow(
    here: services.Services, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = dict.fromkeys(here.names, "RUNNING") | {"api-server": "FATAL", "postgres": "STOPPED"}
    monkeypatch.setattr(here.supervisor, "list_states", lambda: states)
    monkeypatch.setattr(services, "is_healthy", lambda name, _: name in CLUSTER)
    assert here.print_status() == 1
    said = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert (said["postgres"], said["api-server"]) == ("down (stopped)", "down (fatal)")
    assert {said[name] for name in CLUSTER} == {"healthy"}
    for name in ("scheduler", "dag-processor", "triggerer"):
        assert said[name] == "runs; only the API server knows its health, and does not answer"


def test_services__without_postgresql_says_what_to_do(
    here: services.Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(here.folder))
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    with pytest.raises(Refusal, match=r"PostgreSQL is missing here; install it \(on Debian: apt-get install"):
        here.database.find_programs()


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
    assert here.database.find_programs().name == "postgresql-17"
    (here.folder / "postgres").mkdir()
    (here.folder / "postgres" / "PG_VERSION").write_text("15\n")
    with pytest.raises(
        Refusal, match="was created by PostgreSQL 15, which is missing here; install postgresql-15"
    ):
        here.database.find_programs()
    monkeypatch.setenv("PATH", f"{here.folder}/postgresql-15:{os.environ['PATH']}")
    assert here.database.find_programs().name == "postgresql-15"


@pytest.mark.parametrize(
    ("word", "does"), [("up", "start_all"), ("down", "stop_all"), ("status", "print_status")]
)
def test_services__that_are_interrupted_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], word: str, does: str
) -> None:
    def interrupt(_: services.Services) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("EPSJOIN_SERVICES_DIR", str(tmp_path))
    monkeypatch.setattr(services.Services, does, interrupt)
    assert services.main([word]) == 130
    assert capsys.readouterr().err == "services: interrupted; bin/services status says what runs\n"


def test_services__knows_five_words() -> None:
    done = subprocess.run(
        [str(REPO / "bin" / "services"), "start"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "usage: bin/services up | down | status [spark] | airflow ... | secrets FILE\n"


def test_states__wait_until_supervisord_has_seen_what_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or "up" right after a death would find all well."""
    with subprocess.Popen(["true"]) as died:
        died.wait()
        looks = iter([("RUNNING", died.pid), ("RUNNING", died.pid), ("STARTING", os.getpid())])

        class Procedures:
            def getAllProcessInfo(self) -> list[dict[str, object]]:  # noqa: N802  # supervisord's name
                state, pid = next(looks)
                return [{"name": "one", "statename": state, "pid": pid}]

        supervisor = Supervisor(tmp_path, {}, {})
        monkeypatch.setattr(supervisor, "connect", Procedures)
        assert supervisor.list_states() == {"one": "STARTING"}
