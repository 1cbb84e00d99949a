"""The scripts of ``bin/`` for Delta's jars and for a cluster, of which tests/end_to_end starts a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dags.fake_spark import REPOSITORY, FakeSpark, write_script
from dags.scripts import run


def test_spark_cluster__without_the_environment_says_what_to_do(tmp_path: Path) -> None:
    folders = {"SPARK_JOB_VENV": str(tmp_path / "nowhere"), "EPSJOIN_CLUSTER_DIR": str(tmp_path / "cluster")}
    done = run("spark-cluster", "up", **folders)
    assert done.returncode == 1
    assert (
        done.stderr
        == f"services: no pyspark in {tmp_path}/nowhere; run 'make setup', or set SPARK_JOB_VENV\n"
    )
    assert run("spark-cluster", "down", **folders).returncode == 0
    assert run("spark-cluster", "status", **folders).returncode == 1


def test_spark_cluster__knows_three_words() -> None:
    done = run("spark-cluster", "start")
    assert done.returncode == 2
    assert done.stderr == "usage: bin/spark-cluster up | down | status\n"


def test_fetch_delta_jars__that_did_not_get_them_fails_and_leaves_nothing(
    fake_spark: FakeSpark, tmp_path: Path
) -> None:
    # Ivy's trap: offline it may exit 0 with too few jars
    write_script(fake_spark.venv / "bin" / "spark-submit", "#!/bin/sh\necho unresolved dependency\nexit 0\n")
    done = run("fetch-delta-jars", DELTA_JARS=str(tmp_path / "jars"))
    assert done.returncode == 1
    assert "is the network up" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list((tmp_path / "jars").iterdir()) == []
    assert (tmp_path / "jars.log").read_text() == "unresolved dependency\n"
    assert sorted(file.name for file in tmp_path.glob("jars*")) == ["jars", "jars.log"]


def test_fetch_delta_jars__without_the_environment_says_what_to_do(tmp_path: Path) -> None:
    done = run(
        "fetch-delta-jars", DELTA_JARS=str(tmp_path / "jars"), SPARK_JOB_VENV=str(tmp_path / "nowhere")
    )
    assert done.returncode == 1
    assert "run 'make setup' first" in done.stderr


def test_fetch_delta_jars__has_nothing_to_do_when_the_checksums_match(tmp_path: Path) -> None:
    jars = REPOSITORY / ".cache" / "jars"
    if not jars.exists():
        pytest.skip("the jars are not here: bin/fetch-delta-jars")
    done = run("fetch-delta-jars", DELTA_JARS=str(jars), SPARK_JOB_VENV=str(tmp_path / "nowhere"))
    assert done.returncode == 0, done.stderr
    assert "nothing to do" in done.stdout
