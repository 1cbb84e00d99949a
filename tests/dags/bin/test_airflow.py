"""The wrapper ``bin/airflow``: settings, commands of our own, what it says where something is missing."""

from __future__ import annotations

import importlib.util
import json
import re
import runpy
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from dags.fake_spark import REPOSITORY, write_script
from dags.scripts import BIN, run

RUNNER = BIN / "run_airflow.py"


def test_run_airflow__runs_a_file_as_python_does_and_seldom_looks_for_garbage(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("")
    file = tmp_path / "airflow"  # as Airflow's own has no other name
    file.write_text(
        "import beside, gc, sys\n"
        "if __name__ == '__main__':\n"
        "    print(sys.argv, sys.path[0], gc.get_threshold())\n"
        "    sys.exit(3)\n"
    )
    done = subprocess.run(
        [sys.executable, RUNNER, file, "dags", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout == f"{[str(file), 'dags', '--help']} {tmp_path} (50000, 20, 20)\n"


def test_airflow__has_the_projects_settings(fake_airflow: Path) -> None:
    lines = run("airflow", "dags", "list").stdout.splitlines()
    assert lines[0] == "arguments: dags list"
    for line in (
        f"AIRFLOW_HOME={REPOSITORY}/.airflow",
        f"AIRFLOW__CORE__DAGS_FOLDER={REPOSITORY}/dags",
        f"AIRFLOW__CORE__PLUGINS_FOLDER={REPOSITORY}/plugins",
        "AIRFLOW__CORE__LOAD_EXAMPLES=False",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS=False",
        "AIRFLOW__API__HOST=127.0.0.1",
        'AIRFLOW_CONN_SPARK_DEFAULT={"conn_type":"spark","host":"local[2]","extra":{"deploy-mode":"client"}}',
    ):
        assert line in lines


def test_airflow__keeps_what_is_set_already(fake_airflow: Path) -> None:
    lines = run("airflow", "x", AIRFLOW__API__PORT="9090", AIRFLOW_CONN_SPARK_DEFAULT="spark://a:7077").stdout
    assert "AIRFLOW_CONN_SPARK_DEFAULT=spark://a:7077\n" in lines
    assert "AIRFLOW__CORE__EXECUTION_API_SERVER_URL=http://127.0.0.1:9090/execution/\n" in lines


def test_airflow__keeps_bytecode_apart_where_none_may_lie_beside_sources(fake_airflow: Path) -> None:
    printed = run("airflow", "x", PYTHONDONTWRITEBYTECODE="1").stdout
    assert f"PYTHONPYCACHEPREFIX={REPOSITORY}/.cache/bytecode\n" in printed
    assert "PYTHONDONTWRITEBYTECODE" not in printed


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "127.0.0.1,localhost"),
        ({"NO_PROXY": "intra.example"}, "intra.example,127.0.0.1,localhost"),
        ({"no_proxy": "a", "NO_PROXY": "b"}, "a,127.0.0.1,localhost"),
        ({"no_proxy": "127.0.0.1,a"}, "127.0.0.1,a"),
        ({"no_proxy": "*"}, "*"),
    ],
)
def test_airflow__sends_nothing_of_this_machine_to_a_proxy(
    fake_airflow: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], expected: str
) -> None:
    """Tasks tell the API server how they do, each with its token."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    lines = run("airflow", "x", http_proxy="http://proxy.example:3128", **given).stdout.splitlines()
    assert {f"no_proxy={expected}", f"NO_PROXY={expected}"} <= set(lines)


def test_airflow__finds_plugins_only_where_they_are(fake_airflow: Path) -> None:
    assert "PYTHONPATH=" not in run("airflow", "x", PYTHONPATH=str(REPOSITORY / "tests")).stdout


def test_airflow__of_a_copied_project_uses_the_copys_database_and_logs(fake_airflow: Path) -> None:
    """Every option of Airflow whose default is in its home: airflow.cfg has the original's."""
    (airflow,) = importlib.util.find_spec("airflow.config_templates").submodule_search_locations
    at_home = [
        f"AIRFLOW__{section}__{name}".upper()
        for section, body in yaml.safe_load(Path(airflow, "config.yml").read_text()).items()
        for name, option in body["options"].items()
        if "{AIRFLOW_HOME}" in str(option["default"])
    ]
    assert "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" in at_home
    lines = run("airflow", "x", AIRFLOW_HOME="/copy").stdout.splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    assert [name for name in at_home if not re.search(f"/copy/|{REPOSITORY}/", found.get(name, ""))] == []
    given = dict.fromkeys(at_home, "sqlite:///of the caller")
    lines = run("airflow", "x", **given).stdout.splitlines()
    assert given.items() <= dict(line.split("=", 1) for line in lines if "=" in line).items()


def test_airflow__setup_starts_one_process(fake_airflow: Path) -> None:
    write_script(fake_airflow / "venv/bin/python", '#!/bin/sh\necho "python: $*"\n')
    assert run("airflow", "setup").stdout == f"python: {RUNNER} {BIN}/set_airflow_up.py\n"


def test_airflow__setup_makes_database_and_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr("airflow.__main__.main", lambda: made.append(sys.argv[1:]))
    monkeypatch.setattr(sys, "argv", [""])
    runpy.run_path(str(BIN / "set_airflow_up.py"), run_name="__main__")
    assert made == [["db", "migrate"], ["pools", "import", str(REPOSITORY / "conf" / "pools.json")]]


def test_airflow__run_is_dags_test_for_people(fake_airflow: Path) -> None:
    write_script(fake_airflow / "venv/bin/python", '#!/bin/sh\necho "python: $*"\nenv\n')
    lines = run("airflow", "run", "navaids", "2023-06-01", "--conf", '{"eps": 1}').stdout.splitlines()
    assert lines[0] == f'python: {RUNNER} {BIN}/dag_commands.py run navaids 2023-06-01 --conf {{"eps": 1}}'
    assert "AIRFLOW__LOGGING__LOG_FORMAT=%(message)s" in lines
    assert "EPSJOIN_RETRIES=0" in lines


@pytest.mark.parametrize(("given", "code"), [([], 2), (["-h"], 0), (["--help"], 0)])
def test_airflow__run_explains_itself_and_not_airflows_command(
    fake_airflow: Path, given: list[str], code: int
) -> None:
    done = run("airflow", "run", *given)
    assert done.returncode == code
    said, silent = (done.stderr, done.stdout) if code else (done.stdout, done.stderr)
    assert said.startswith("usage: bin/airflow run DATASET DATE [-c PARAMETERS]\n")
    assert "'{\"eps\": 20}'" in said
    assert silent == ""


def test_airflow__dags_does_not_advise_to_install_what_is_not_locked(
    fake_airflow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "PYTHONWARNINGS=ignore:Could not import graphviz\n" in run("airflow", "dags", "list").stdout
    assert "PYTHONWARNINGS=error\n" in run("airflow", "dags", "list", PYTHONWARNINGS="error").stdout
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.warns(UserWarning, match="^Could not import graphviz"):  # what the filter is for
        runpy.run_module("airflow.utils.dot_renderer")


@pytest.mark.parametrize("command", ["test", "trigger"])
def test_airflow__dags_with_a_date_go_by_our_own_way(fake_airflow: Path, command: str) -> None:
    write_script(fake_airflow / "venv/bin/python", '#!/bin/sh\necho "python: $*"\n')
    lines = run("airflow", "dags", command, "navaids", "-c", '{"eps": 1}').stdout.splitlines()
    assert lines == [f'python: {RUNNER} {BIN}/dag_commands.py {command} navaids -c {{"eps": 1}}']


@pytest.mark.parametrize("service", ["scheduler", "triggerer"])
def test_airflow__starts_no_server_of_logs(fake_airflow: Path, service: str) -> None:
    lines = run("airflow", service, "--pid", "x").stdout.splitlines()
    assert lines[0] == f"arguments: {service} --pid x --skip-serve-logs"


def test_airflow__standalone_starts_its_services_by_this_script(fake_airflow: Path) -> None:
    # Airflow's own starts them by the name airflow, without --skip-serve-logs
    write_script(
        fake_airflow / "venv/bin/airflow",
        '#!/bin/sh\necho "arguments: $*"\nif [ "$1" = standalone ]; then airflow scheduler; fi\n',
    )
    (fake_airflow / "home").mkdir()
    (fake_airflow / "home" / "simple_auth_manager_passwords.json.generated").write_text("kept")
    lines = run("airflow", "standalone", AIRFLOW_HOME=str(fake_airflow / "home")).stdout.splitlines()
    assert lines == ["arguments: standalone", "arguments: scheduler --skip-serve-logs"]


def test_airflow__standalone_asks_for_a_password_that_it_says_once_and_nobody_else_can_read(
    fake_airflow: Path, tmp_path: Path
) -> None:
    write_script(
        fake_airflow / "venv/bin/airflow",
        '#!/bin/sh\necho "$AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"\n',
    )
    first, *rest = run("airflow", "standalone", AIRFLOW_HOME=str(tmp_path / "home")).stdout.splitlines()
    file = tmp_path / "home" / "simple_auth_manager_passwords.json.generated"
    password = json.loads(file.read_text())["admin"]
    assert len(password) >= 16
    assert first == f"airflow: user admin, password {password}; it is kept in {file}"
    assert rest == ["False"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("kept")
    assert run("airflow", "standalone", AIRFLOW_HOME=str(tmp_path / "home")).stdout == "False\n"
    assert file.read_text() == "kept"
    own = tmp_path / "own" / "passwords.json"
    name = "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"
    said = run("airflow", "standalone", AIRFLOW_HOME=str(tmp_path / "home"), **{name: str(own)}).stdout
    assert json.loads(own.read_text())["admin"] in said


def test_airflow__standalone_refuses_a_lake_that_no_task_could_use(
    fake_airflow: Path, tmp_path: Path
) -> None:
    write_script(fake_airflow / "venv/bin/airflow", "#!/bin/sh\necho begun\n")
    home = str(tmp_path / "home")
    for lake in ("/data/lake", ""):
        refused = run("airflow", "standalone", AIRFLOW_HOME=home, EPSJOIN_LAKE=lake)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith("airflow: EPSJOIN_LAKE must be a URI, such as file:///data/lake; ")
    assert not (tmp_path / "home").exists()
    assert "begun" in run("airflow", "standalone", AIRFLOW_HOME=home, EPSJOIN_LAKE="file:///lake").stdout


@pytest.mark.parametrize("command", ["setup", "standalone"])
def test_airflow__upgrades_no_database_of_another_airflow(tmp_path: Path, command: str) -> None:
    """Whoever has one has set its home in the shell; once upgraded, the other cannot open it."""
    with closing(sqlite3.connect(tmp_path / "airflow.db")) as database, database:
        database.execute("CREATE TABLE slot_pool (pool TEXT)")
        database.execute("INSERT INTO slot_pool VALUES ('default_pool')")
        database.execute("CREATE TABLE alembic_version (version_num TEXT)")
        database.execute("INSERT INTO alembic_version VALUES ('686269002441')")  # of Airflow 2.9
    done = run("airflow", command, AIRFLOW_HOME=str(tmp_path))
    assert done.returncode == 2
    assert "airflow.db is the database of another Airflow, which this one would upgrade; " in done.stderr
    assert "Traceback" not in done.stderr
    with closing(sqlite3.connect(tmp_path / "airflow.db")) as database:
        assert database.execute("SELECT count(*) FROM sqlite_master").fetchall() == [(2,)]


def test_settings__let_nothing_listen_beyond_this_machine() -> None:
    lines = (REPOSITORY / "conf" / "spark-defaults.conf").read_text().splitlines()
    settings = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
    assert settings["spark.master"].startswith("local[")
    assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"
    for profile in ("small.conf", "large.conf", "cluster/spark-defaults.conf"):
        file = REPOSITORY / "conf" / profile
        text = file.read_text() if file.exists() else ""
        assert not re.search(r"^\s*spark\.(driver\.(host|bindAddress)|ui\.enabled)", text, re.MULTILINE), (
            profile
        )
    env = (REPOSITORY / "conf" / "airflow.env").read_text().splitlines()
    assert "AIRFLOW__API__HOST=127.0.0.1" in env
    for file in (REPOSITORY / "conf").rglob("*"):
        if file.is_file():
            assert "0.0.0.0" not in file.read_text(), file


@pytest.mark.parametrize(
    ("words", "home", "said"),
    [
        (
            "run navaids 2023-06-01",
            "new",
            "no tables yet in sqlite:////.*/new/airflow.db; make them by bin/airflow",
        ),
        (
            "run navaids 2023-06-01",
            "file",
            "sqlite:////.*/file/airflow.db cannot be opened .*; set AIRFLOW_HOME to",
        ),
        (
            "backfill run navaids 2023-06-01 2023-06-01",
            "new",
            "no tables yet in sqlite:////.*; make them by bin/",
        ),
    ],
)
def test_airflow__without_a_database_says_what_to_do(
    tmp_path: Path, words: str, home: str, said: str
) -> None:
    """Airflow's own sentence would have another Airflow's database migrated, or there is a traceback."""
    (tmp_path / "airflow.cfg").touch()
    (tmp_path / "file").touch()
    done = run(
        "airflow",
        *words.split(),
        AIRFLOW_HOME=str(tmp_path / home),
        AIRFLOW_CONFIG=str(tmp_path / "airflow.cfg"),
    )
    assert done.returncode == 2
    assert re.search(said, done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("database", "said"),
    [
        ("postgresql+psycopg2://u:secret@127.0.0.1:9/x", "cannot be opened (connection to server at"),
        ("sqlite:///{folder}/own.db", "cannot be opened (file is not a database)"),
    ],
)
def test_airflow__with_a_database_of_ones_own_that_cannot_be_opened_names_its_setting(
    tmp_path: Path, database: str, said: str
) -> None:
    """``AIRFLOW_HOME`` does not decide about it."""
    (tmp_path / "airflow.cfg").touch()
    (tmp_path / "own.db").write_text("no database at all " * 100)
    done = run(
        "airflow",
        *["run", "navaids", "2023-06-01"],
        AIRFLOW_HOME=str(tmp_path),
        AIRFLOW_CONFIG=str(tmp_path / "airflow.cfg"),
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=database.format(folder=tmp_path),
    )
    assert done.returncode == 2
    (line,) = (line for line in done.stderr.splitlines() if "cannot be opened" in line)
    assert said in line
    assert "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" in line
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "user:secret@host", "must be the URL of a database, such as"),
        ("AIRFLOW__LOGGING__LOGGING_LEVEL", "LOUD", "must be one of DEBUG, INFO, WARN, WARNING, ERROR, "),
        ("AIRFLOW__LOGGING__LOGGING_LEVEL", "", "must be one of DEBUG, INFO, WARN, WARNING, ERROR, "),
        ("AIRFLOW__API__PORT", "secret", "must be the number of a port, 1 to 65535; "),
        ("AIRFLOW__API__PORT", "0", "must be the number of a port, 1 to 65535; "),
        ("AIRFLOW__API__PORT", "65536", "must be the number of a port, 1 to 65535; "),
        ("AIRFLOW__API__PORT", "123456789012345678901", "must be the number of a port, 1 to 65535; "),
    ],
)
@pytest.mark.parametrize("command", [["run", "navaids", "2023-06-01"], ["dags", "list"]])
def test_airflow__names_a_setting_whose_value_cannot_be(
    fake_airflow: Path, command: list[str], name: str, value: str, said: str
) -> None:
    """Airflow ends with a traceback, which does not name all of them."""
    done = run("airflow", *command, **{name: value})
    assert done.returncode == 2
    assert done.stderr.startswith(f"airflow: {name} {said}")
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr


def test_airflow__without_its_environment_says_what_to_do(tmp_path: Path) -> None:
    done = run("airflow", "version", AIRFLOW_VENV=str(tmp_path))
    assert done.returncode == 1
    assert "run 'make setup'" in done.stderr


def test_airflow__backfill_run_is_ours_and_other_backfill_commands_are_airflows(fake_airflow: Path) -> None:
    write_script(fake_airflow / "venv/bin/python", '#!/bin/sh\necho "python: $*"\nenv\n')
    lines = run("airflow", "backfill", "run", "navaids", "2022-11-01", "2023-06-01").stdout.splitlines()
    assert lines[0] == f"python: {RUNNER} {BIN}/backfill.py navaids 2022-11-01 2023-06-01"
    assert f"AIRFLOW_HOME={REPOSITORY}/.airflow" in lines
    lines = run("airflow", "backfill", "create", "--dag-id", "navaids").stdout.splitlines()
    airflow = f"{fake_airflow}/venv/bin/airflow"
    assert lines[0] == f"python: {RUNNER} {airflow} backfill create --dag-id navaids"
    assert run("airflow", "backfill").stdout.splitlines()[0] == f"python: {RUNNER} {airflow} backfill"
