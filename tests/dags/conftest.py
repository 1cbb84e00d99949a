"""A throw-away Airflow with the project's settings, and a Spark that only notes what it is asked."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

REPOSITORY = Path(__file__).resolve().parents[2]

# Airflow reads its settings when it is imported, so they stand before everything else.
_HOME = tempfile.mkdtemp(prefix="epsjoin-airflow-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
for _line in (REPOSITORY / "conf" / "airflow.env").read_text().splitlines():
    if _line and not _line.startswith("#"):
        os.environ.__setitem__(*_line.split("=", 1))
for _name in ("EPSJOIN_LAKE", "EPSJOIN_RETRIES", "EPSJOIN_PROFILE", "SPARK_CONF_DIR"):
    os.environ.pop(_name, None)
os.environ |= {
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",  # the tests of logins take it back
    "AIRFLOW_HOME": _HOME,
    "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
}

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from fastapi.testclient import TestClient
from pendulum import duration

import intervals
from dags.fake_spark import FakeSpark, write_script

if TYPE_CHECKING:
    from dags.in_process import Scheduler


@pytest.fixture(scope="session")
def dag_bag() -> DagBag:
    """All DAGs, as Airflow finds them."""
    return DagBag(REPOSITORY / "dags")


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's tables, and its pools as ``bin/airflow setup`` makes them."""
    # slow to import, and most tests need no database
    from airflow.cli.cli_parser import get_parser
    from airflow.utils.db import initdb

    initdb()
    arguments = get_parser().parse_args(["pools", "import", str(REPOSITORY / "conf" / "pools.json")])
    arguments.func(arguments)


@pytest.fixture(scope="module")
def rest(database: None) -> Iterator[TestClient]:
    """Airflow's REST API, to whom everybody is an admin."""
    # slow to import, and most tests need no server
    from airflow.api_fastapi.app import create_app, purge_cached_app

    purge_cached_app()
    yield TestClient(create_app(apps="core"), raise_server_exceptions=False)
    purge_cached_app()


@pytest.fixture
def fake_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSpark:
    """Put a Spark in place of the jobs' environment; the project's own wrapper starts it."""
    spark = FakeSpark(tmp_path / "spark")
    spark.put_in_place(monkeypatch)
    return spark


@pytest.fixture
def fake_airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An Airflow that prints its arguments and its environment, and a Python that runs no other file."""
    write_script(tmp_path / "venv/bin/airflow", '#!/bin/sh\necho "arguments: $*"\nenv\n')
    python = f"""#!/bin/sh
    case $1 in
    -c) exec {sys.executable} "$@" ;;
    */run_airflow.py) shift ;;
    esac
    case $1 in
    */airflow) exec "$@" ;;
    */standalone.py) shift; exec {tmp_path}/venv/bin/airflow "$@" ;;
    esac
    """
    write_script(tmp_path / "venv/bin/python", python)
    for line in (REPOSITORY / "conf" / "airflow.env").read_text().splitlines():
        if line and not line.startswith("#"):
            monkeypatch.delenv(line.split("=")[0], raising=False)
    for name in ("AIRFLOW_HOME", "AIRFLOW__CORE__DAGS_FOLDER", "AIRFLOW__CORE__PLUGINS_FOLDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AIRFLOW_VENV", str(tmp_path / "venv"))
    return tmp_path


@pytest.fixture
def navaids(database: None, fake_spark: FakeSpark) -> DAG:
    """A navaids DAG of the test's own; its tasks start the fake Spark."""
    return DagBag(REPOSITORY / "dags").dags["navaids"]


@pytest.fixture
def scheduler(database: None, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scheduler]:
    """The DAG navaids, whose schedule goes on beside its back-fills; of a run, only ``ingest`` is real."""
    # slow to import, and most tests need no scheduler
    from dags.in_process import Scheduler

    monkeypatch.setattr(intervals, "GRACE", duration(months=1))  # as if the last month had just ended
    scheduler = Scheduler(DagBag(REPOSITORY / "dags" / "navaids.py"), only=["ingest"])
    yield scheduler
    scheduler.close()
