"""Housekeeping by bin/airflow: what is deleted in lake, logs and database, and what is not."""

from __future__ import annotations

import os
import time
from datetime import date, timedelta
from pathlib import Path

import pytest

from dags.fake_spark import FakeSpark, write_script
from dags.scripts import BIN, run


def test_airflow__housekeeping_deletes_what_is_old_in_lake_logs_and_database(
    fake_airflow: Path, fake_spark: FakeSpark
) -> None:
    write_script(fake_spark.venv / "bin/python", '#!/bin/sh\necho "python: $*"\n')
    logs = {name: fake_airflow / "home/logs" / name / "attempt=1.log" for name in ("old", "new")}
    for age, file in zip((31, 29), logs.values(), strict=True):
        file.parent.mkdir(parents=True)
        file.touch()
        for path in (file, file.parent):
            os.utime(path, (time.time() - age * 86_400,) * 2)
    home = str(fake_airflow / "home")
    days = {date.today() - timedelta(days=30)}
    lines = run("airflow", "housekeeping", "030", AIRFLOW_HOME=home, EPSJOIN_LAKE="file:///lake").stdout
    days.add(date.today() - timedelta(days=30))  # it may be midnight
    vacuum, clean = lines.splitlines()[:2]
    assert vacuum == f"python: {BIN}/vacuum.py file:///lake 030"
    command, _, rest = clean.partition(" --clean-before-timestamp ")
    assert command == "arguments: db clean"
    assert rest in {f"{day} --skip-archive --yes" for day in days}
    assert not logs["old"].exists()
    assert logs["new"].exists()
    write_script(fake_spark.venv / "bin/python", "#!/bin/sh\necho there is no lake >&2\nexit 1\n")
    done = run("airflow", "housekeeping", "30", AIRFLOW_HOME=home, EPSJOIN_LAKE="file:///lake")
    assert done.returncode == 1
    assert done.stdout.startswith("arguments: db clean "), "the rest is deleted all the same"


def test_airflow__housekeeping_deletes_logs_where_they_are(fake_airflow: Path) -> None:
    """In a folder of the person's own, which may be a link."""
    old = fake_airflow / "disk" / "dag" / "attempt=1.log"
    old.parent.mkdir(parents=True)
    old.touch()
    os.utime(old, (time.time() - 31 * 86_400,) * 2)
    (fake_airflow / "logs").symlink_to(fake_airflow / "disk")
    logs = str(fake_airflow / "logs")
    run(
        "airflow",
        "housekeeping",
        "30",
        AIRFLOW__LOGGING__BASE_LOG_FOLDER=logs,
        EPSJOIN_LAKE="s3://bucket/lake",
    )
    assert not old.exists()
    assert old.parents[1].exists()


def test_airflow__housekeeping_of_a_lake_elsewhere_leaves_its_files_and_deletes_the_rest(
    fake_airflow: Path,
) -> None:
    done = run("airflow", "housekeeping", "30", EPSJOIN_LAKE="s3://user:hunter2@bucket/lake")
    assert done.stdout.splitlines()[0].startswith("arguments: db clean ")
    assert "the lake (s3) is not on this machine, its files stay" in done.stderr
    assert "hunter2" not in done.stderr


def test_airflow__housekeeping_refuses_a_lake_that_is_no_uri(fake_airflow: Path) -> None:
    done = run("airflow", "housekeeping", "30", EPSJOIN_LAKE="/data/lake")
    assert (done.returncode, done.stdout) == (2, "")
    assert "EPSJOIN_LAKE must be a URI, such as file:///data/lake" in done.stderr


@pytest.mark.parametrize("days", ["6", "0", "-1", "x", "999999"])
def test_airflow__housekeeping_refuses_what_a_running_job_may_need(fake_airflow: Path, days: str) -> None:
    done = run("airflow", "housekeeping", days)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"not '{days}'" in done.stderr
