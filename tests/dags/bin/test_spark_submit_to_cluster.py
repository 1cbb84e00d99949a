"""bin/spark-submit, on a cluster: what it ships, and the secret of the cluster."""

from __future__ import annotations

import socket
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from dags.fake_spark import INGEST, REPORT, REPOSITORY, FakeSpark, write_script
from dags.scripts import BIN, run


@pytest.fixture
def shipping(fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeSpark:
    """A fake Spark whose Python says where the archive is, as ``bin/ship.py`` does; no real cluster."""
    write_script(fake_spark.venv / "bin" / "python", "#!/bin/sh\necho /ship/epsjoin-1.tar.gz\n")
    monkeypatch.setenv("EPSJOIN_CLUSTER_DIR", str(tmp_path / "cluster"))
    fake_spark.writes_no_metrics()
    return fake_spark


def settings_of(fake_spark: FakeSpark) -> dict[str, str]:
    """What Spark got as ``--conf``."""
    arguments = fake_spark.calls_text().splitlines()
    given = [b for a, b in pairwise(arguments) if a == "--conf"]
    return dict(setting.split("=", 1) for setting in given)


def test_spark_submit__ships_package_and_jars_to_a_cluster(shipping: FakeSpark) -> None:
    done = run("spark-submit", "--master", "spark://127.0.0.1:7077", INGEST)
    assert done.returncode == 0, done.stderr
    settings = settings_of(shipping)
    assert settings["spark.archives"] == "/ship/epsjoin-1.tar.gz#shipped"
    assert settings["spark.executorEnv.PYTHONPATH"] == "shipped"
    assert settings["spark.executorEnv.OMP_NUM_THREADS"] == "1"
    assert settings["spark.jars"].split(",") == [str(jar) for jar in sorted(shipping.jars.iterdir())]
    assert "spark.executor.extraClassPath" not in settings, "a path of this machine"
    assert "spark.authenticate" not in settings, "a cluster without a secret would not start the job"
    assert shipping.environment["PYSPARK_PYTHON"] == str(shipping.venv / "bin/python")


def test_spark_submit__on_one_machine_ships_nothing(shipping: FakeSpark) -> None:
    for master in (["--master", "local[2]"], ["--master=local"], []):
        assert run("spark-submit", *master, INGEST).returncode == 0
    assert "spark.archives" not in shipping.calls_text()
    assert "spark.jars" not in shipping.calls_text()
    assert settings_of(shipping)["spark.executor.extraClassPath"] == f"{shipping.jars}/*"
    assert settings_of(shipping)["spark.authenticate"] == "true", "Spark makes a secret for each driver"


def test_spark_submit__takes_the_master_of_the_environment_unless_one_is_given(shipping: FakeSpark) -> None:
    master = "spark://127.0.0.1:7077"
    run("spark-submit", INGEST, "--master", "of the job", EPSJOIN_MASTER=master)
    assert shipping.command("ingest")[:2] == ["--master", master]
    run("spark-submit", "--master=local[3]", REPORT, EPSJOIN_MASTER=master)
    last = sorted((shipping.root / "calls").iterdir())[-1].read_text().splitlines()
    assert "--master=local[3]" in last
    assert master not in last


def test_spark_submit__takes_a_packed_environment_for_the_workers_alone(shipping: FakeSpark) -> None:
    run(
        *("spark-submit", "--master", "spark://127.0.0.1:7077", INGEST),
        EPSJOIN_ARCHIVES="/x/packed.tar.gz#packed",
        EPSJOIN_EXECUTOR_PYTHON="./packed/bin/python",
    )
    archives = settings_of(shipping)["spark.archives"]
    assert archives == "/ship/epsjoin-1.tar.gz#shipped,/x/packed.tar.gz#packed"
    assert shipping.environment["PYSPARK_PYTHON"] == "./packed/bin/python"
    assert shipping.environment["DRIVER_PYTHON"] == str(shipping.venv / "bin/python")


@pytest.mark.parametrize("master", ["spark://node1:7077", "yarn", "k8s://https://10.0.0.1:6443"])
def test_spark_submit__wants_the_drivers_address_for_other_machines(
    shipping: FakeSpark, tmp_path: Path, master: str
) -> None:
    job = ("--master", master, INGEST)
    done = run("spark-submit", *job)
    assert done.returncode == 2
    assert done.stderr == (
        f"spark-submit: the workers of {master} cannot reach a driver at 127.0.0.1; "
        "set spark.driver.host (docs/clusters.md)\n"
    )
    assert shipping.jobs == []
    assert run("spark-submit", "--conf", "spark.driver.host=here", *job).returncode == 0
    for line in ("spark.driver.host  here\n", "\tspark.driver.host\there\n", "spark.driver.host=here"):
        (tmp_path / "more.conf").write_text(line)
        assert run("spark-submit", *job, EPSJOIN_CONF=str(tmp_path / "more.conf")).returncode == 0


def properties_file(fake_spark: FakeSpark) -> Path:
    arguments = fake_spark.calls_text().splitlines()
    return Path(arguments[arguments.index("--properties-file") + 1])


def test_spark_submit__adds_the_clusters_secret_but_to_no_command_line(
    shipping: FakeSpark, tmp_path: Path
) -> None:
    cluster = tmp_path / "cluster"
    cluster.mkdir()
    (cluster / "url").write_text("spark://127.0.0.1:7077\n")
    (cluster / "secret.conf").write_text("spark.authenticate.secret pssst\n")
    run("spark-submit", "--master", "spark://127.0.0.1:7078", REPORT)
    assert properties_file(shipping) == REPOSITORY / "conf" / "small.conf", "another cluster"
    (shipping.root / "calls" / "000-report").unlink()

    (tmp_path / "more.conf").write_text("spark.executor.memory 3g")  # a last line without an end
    run(
        *("spark-submit", "--master", "spark://127.0.0.1:7077", INGEST),
        EPSJOIN_CONF=str(tmp_path / "more.conf"),
    )
    file = properties_file(shipping)
    try:
        profile = (REPOSITORY / "conf" / "small.conf").read_text()
        assert file.read_text() == profile + "spark.executor.memory 3g\nspark.authenticate.secret pssst\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "pssst" not in shipping.calls_text()
        assert "pssst" not in str(shipping.environment)
    finally:
        file.unlink()


def test_spark_submit__without_the_file_of_settings_says_so(shipping: FakeSpark, tmp_path: Path) -> None:
    done = run("spark-submit", INGEST, EPSJOIN_CONF=str(tmp_path / "no.conf"))
    assert done.returncode == 2
    assert done.stderr == f"spark-submit: EPSJOIN_CONF names {tmp_path}/no.conf, which is no file\n"


def test_spark_submit__stops_when_the_kernels_cannot_be_compiled(shipping: FakeSpark) -> None:
    fails = 'case "$*" in *ship.py*) echo the reason >&2; exit 1 ;; esac\n'
    write_script(shipping.venv / "bin" / "python", f"#!/bin/sh\n{fails}")
    done = run("spark-submit", "--master", "spark://127.0.0.1:7077", INGEST)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "the reason"
    assert shipping.jobs == []


def test_spark_submit__on_a_master_that_does_not_answer_says_so(shipping: FakeSpark) -> None:
    write_script(shipping.venv / "bin" / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    with socket.socket() as master:
        master.bind(("127.0.0.1", 0))
        silent = f"127.0.0.1:{master.getsockname()[1]}"
        done = run("spark-submit", INGEST, EPSJOIN_MASTER=f"spark://{silent}")
        assert done.returncode == 1
        assert done.stderr == (
            f"spark-submit: no Spark master answers at spark://{silent}; "
            "start it (make cluster-up), or correct EPSJOIN_MASTER or --master\n"
        )
        assert shipping.jobs == []
        find = [sys.executable, "-I", str(BIN / "find_master.py")]
        asked = [
            f"spark://{silent}",
            "spark://nothing",
            "spark://127.0.0.1:x",
            f"spark://127.0.0.1:x,{silent}",
        ]
        assert [subprocess.run([*find, master], check=False).returncode for master in asked] == [1] * 4
        master.listen()
        assert subprocess.run([*find, asked[-1]], check=False).returncode == 0, "one of two answers"
