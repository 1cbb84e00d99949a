"""The shell scripts of ``bin/``: what they hand on, what they refuse, and that no job outlives its task."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from dags.fake_spark import REPOSITORY, FakeSpark, write_script

BIN = REPOSITORY / "bin"


def run(command: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / command), *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


# --- bin/spark-submit


def test_spark_submit__hands_on_environment_and_settings(fake_spark: FakeSpark, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.json"
    done = run("spark-submit", "--master", "local[1]", "/x/jobs/ingest.py", "--metrics-out", str(metrics))
    assert done.returncode == 0, done.stderr
    assert fake_spark.command("ingest")[:2] == ["--master", "local[1]"]
    environment = fake_spark.environment
    assert environment["SPARK_HOME"] == str(fake_spark.venv / "lib/python3.11/site-packages/pyspark")
    assert environment["PYSPARK_PYTHON"] == str(fake_spark.venv / "bin/python")
    assert environment["SPARK_CONF_DIR"] == str(REPOSITORY / "conf")
    assert environment["PYTHONPATH"].split(":")[0] == str(REPOSITORY / "jobs")
    assert environment["OMP_NUM_THREADS"] == "1"
    assert environment["NUMBA_CACHE_DIR"]


@pytest.mark.parametrize("profile", ["small", "large"])
def test_spark_submit__takes_the_profile_and_the_jars(
    fake_spark: FakeSpark, tmp_path: Path, profile: str
) -> None:
    run("spark-submit", "/x/jobs/ingest.py", "--metrics-out", str(tmp_path / "m"), EPSJOIN_PROFILE=profile)
    arguments = fake_spark.calls_text().splitlines()
    assert arguments[:3] == [
        "--properties-file",
        str(REPOSITORY / f"conf/{profile}.conf"),
        "--load-spark-defaults",
    ]
    assert f"spark.driver.extraClassPath={fake_spark.jars}/*" in arguments


def test_spark_submit__passes_the_exit_code_on(fake_spark: FakeSpark) -> None:
    fake_spark.ends("ingest", 4)
    assert run("spark-submit", "/x/jobs/ingest.py").returncode == 4


def test_spark_submit__without_the_environment_says_what_to_do(fake_spark: FakeSpark, tmp_path: Path) -> None:
    done = run("spark-submit", "/x/jobs/ingest.py", SPARK_JOB_VENV=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "no jobs environment in" in done.stderr
    assert "run 'make setup'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert fake_spark.jobs == []


def test_spark_submit__without_pyspark_says_what_to_do(fake_spark: FakeSpark) -> None:
    (fake_spark.venv / "lib").rename(fake_spark.root / "lib")
    done = run("spark-submit", "/x/jobs/ingest.py")
    assert done.returncode == 1
    assert done.stderr == f"spark-submit: no pyspark in {fake_spark.venv}; run 'make setup'\n"


def test_spark_submit__without_a_jar_says_what_to_do(fake_spark: FakeSpark) -> None:
    jar = sorted(fake_spark.jars.iterdir())[-1]
    jar.unlink()
    done = run("spark-submit", "/x/jobs/ingest.py")
    assert done.returncode == 1
    assert f"{jar.name} is missing" in done.stderr
    assert "run 'make setup'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_spark_submit__names_a_jar_that_is_broken(fake_spark: FakeSpark) -> None:
    jar = sorted(fake_spark.jars.iterdir())[-1]
    jar.write_text("half of it")
    done = run("spark-submit", "/x/jobs/ingest.py")
    assert done.returncode == 1
    assert done.stderr == (
        f"spark-submit: {jar.name} in {fake_spark.jars} is not what it should be (conf/delta-jars.sha256); "
        "run bin/fetch-delta-jars\n"
    )
    assert fake_spark.jobs == []


def test_spark_submit__refuses_an_unknown_profile(fake_spark: FakeSpark) -> None:
    done = run("spark-submit", "/x/jobs/ingest.py", EPSJOIN_PROFILE="medium")
    assert done.returncode == 1
    assert "must be small or large, not 'medium'" in done.stderr


def test_profiles__hold_settings_and_a_reason_for_them() -> None:
    for name in ("spark-defaults.conf", "small.conf", "large.conf"):
        lines = (REPOSITORY / "conf" / name).read_text().splitlines()
        settings = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
        assert all(len(setting) == 2 and setting[0].startswith("spark.") for setting in settings), name
        assert sum(line.startswith("#") for line in lines) > 1, f"{name}: say why"


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children with their parent")
def test_spark_submit__jvm_and_driver_die_with_the_task(fake_spark: FakeSpark, tmp_path: Path) -> None:
    # Spark's shape: a JVM, and below it the driver's Python (the fake one sleeps for 300 s)
    fake_spark.script(
        f'#!/bin/sh\necho $$ > {tmp_path}/jvm\n"$PYSPARK_DRIVER_PYTHON" &\necho $! > {tmp_path}/driver\nwait'
    )
    call = f"import subprocess; subprocess.run([{str(BIN / 'spark-submit')!r}, 'x.py'])"
    with subprocess.Popen([sys.executable, "-c", call]) as task:
        deadline = time.monotonic() + 30
        while not ((tmp_path / "driver").exists() and (tmp_path / "driver").read_text().strip()):
            assert time.monotonic() < deadline, "the fake Spark did not start"
            time.sleep(0.05)
        time.sleep(0.5)  # the driver's wrapper needs a moment to tie itself to the JVM
        pids = [int((tmp_path / name).read_text()) for name in ("jvm", "driver")]
        try:
            assert all(map(alive, pids))
            task.send_signal(signal.SIGKILL)
            task.wait()
            deadline = time.monotonic() + 5
            while any(map(alive, pids)) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert [alive(pid) for pid in pids] == [False, False], "a job went on after its task was killed"
        finally:
            for pid in filter(alive, pids):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children with their parent")
def test_die_with_parent__does_not_start_what_has_lost_its_parent_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the parent dies after the wrapper's first line and before the kernel knows
    real = shutil.which("setpriv")
    write_script(
        tmp_path / "bin/setpriv",
        f'#!/bin/sh\ncase " $* " in *" -- "*) kill -KILL $PPID; sleep 0.2 ;; esac\nexec {real} "$@"\n',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    call = f"import subprocess; subprocess.run([{str(BIN / 'die-with-parent')!r}, 'touch', 'started'])"
    died = subprocess.run([sys.executable, "-c", call], check=False, cwd=tmp_path)
    assert died.returncode == -signal.SIGKILL
    time.sleep(1)
    assert not (tmp_path / "started").exists()


# --- bin/spark-submit, on a cluster


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
    done = run("spark-submit", "--master", "spark://127.0.0.1:7077", "/x/jobs/ingest.py")
    assert done.returncode == 0, done.stderr
    settings = settings_of(shipping)
    assert settings["spark.archives"] == "/ship/epsjoin-1.tar.gz#shipped"
    assert settings["spark.executorEnv.PYTHONPATH"] == "shipped"
    assert settings["spark.executorEnv.OMP_NUM_THREADS"] == "1"
    assert settings["spark.jars"].split(",") == [str(jar) for jar in sorted(shipping.jars.iterdir())]
    assert "spark.executor.extraClassPath" not in settings, "a path of this machine"
    assert shipping.environment["PYSPARK_PYTHON"] == str(shipping.venv / "bin/python")


def test_spark_submit__on_one_machine_ships_nothing(shipping: FakeSpark) -> None:
    for master in (["--master", "local[2]"], ["--master=local"], []):
        assert run("spark-submit", *master, "/x/jobs/ingest.py").returncode == 0
    assert "spark.archives" not in shipping.calls_text()
    assert "spark.jars" not in shipping.calls_text()
    assert settings_of(shipping)["spark.executor.extraClassPath"] == f"{shipping.jars}/*"


def test_spark_submit__takes_the_master_of_the_environment_unless_one_is_given(shipping: FakeSpark) -> None:
    master = "spark://127.0.0.1:7077"
    run("spark-submit", "/x/jobs/ingest.py", "--master", "of the job", EPSJOIN_MASTER=master)
    assert shipping.command("ingest")[:2] == ["--master", master]
    run("spark-submit", "--master=local[3]", "/x/jobs/report.py", EPSJOIN_MASTER=master)
    last = sorted((shipping.root / "calls").iterdir())[-1].read_text().splitlines()
    assert "--master=local[3]" in last
    assert master not in last


def test_spark_submit__takes_a_packed_environment_for_the_workers_alone(shipping: FakeSpark) -> None:
    run(
        *("spark-submit", "--master", "spark://127.0.0.1:7077", "/x/jobs/ingest.py"),
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
    job = ("--master", master, "/x/jobs/ingest.py")
    done = run("spark-submit", *job)
    assert done.returncode == 1
    assert done.stderr == (
        f"spark-submit: the workers of {master} cannot reach a driver at 127.0.0.1; "
        "set spark.driver.host (docs/clusters.md)\n"
    )
    assert shipping.jobs == []
    assert run("spark-submit", "--conf", "spark.driver.host=here", *job).returncode == 0
    (tmp_path / "more.conf").write_text("spark.driver.host  here\n")
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
    run("spark-submit", "--master", "spark://127.0.0.1:7078", "/x/jobs/report.py")
    assert properties_file(shipping) == REPOSITORY / "conf" / "small.conf", "another cluster"
    (shipping.root / "calls" / "000-report").unlink()

    (tmp_path / "more.conf").write_text("spark.executor.memory 3g\n")
    run(
        *("spark-submit", "--master", "spark://127.0.0.1:7077", "/x/jobs/ingest.py"),
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
    done = run("spark-submit", "/x/jobs/ingest.py", EPSJOIN_CONF=str(tmp_path / "no.conf"))
    assert done.returncode == 1
    assert done.stderr == f"spark-submit: EPSJOIN_CONF names {tmp_path}/no.conf, which is no file\n"


def test_spark_submit__stops_when_the_kernels_cannot_be_compiled(shipping: FakeSpark) -> None:
    write_script(shipping.venv / "bin" / "python", "#!/bin/sh\necho the reason >&2\nexit 1\n")
    done = run("spark-submit", "--master", "spark://127.0.0.1:7077", "/x/jobs/ingest.py")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "the reason"
    assert shipping.jobs == []


# --- bin/spark-cluster; tests/end_to_end/test_cluster.py starts a real one


def test_spark_cluster__without_the_environment_says_what_to_do(tmp_path: Path) -> None:
    folders = {"SPARK_JOB_VENV": str(tmp_path / "nowhere"), "EPSJOIN_CLUSTER_DIR": str(tmp_path / "cluster")}
    done = run("spark-cluster", "up", **folders)
    assert done.returncode == 1
    assert done.stderr.startswith(f"spark-cluster: no pyspark in {tmp_path}/nowhere; run 'make setup'")
    assert len(done.stderr.splitlines()) == 1
    assert run("spark-cluster", "down", **folders).returncode == 0
    assert run("spark-cluster", "status", **folders).returncode == 1


def test_spark_cluster__takes_no_other_process_for_its_own(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster"
    cluster.mkdir()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            (cluster / "master.pid").write_text(f"{stranger.pid}\n")
            assert "master: down" in run("spark-cluster", "status", EPSJOIN_CLUSTER_DIR=str(cluster)).stdout
            run("spark-cluster", "down", EPSJOIN_CLUSTER_DIR=str(cluster))
            assert alive(stranger.pid), "its number was in a file that a crash had left"
            assert not (cluster / "master.pid").exists()
        finally:
            stranger.kill()


def test_spark_cluster__knows_three_words() -> None:
    done = run("spark-cluster", "start")
    assert done.returncode == 2
    assert done.stderr == "usage: bin/spark-cluster up | down | status\n"


# --- bin/fetch-delta-jars


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


# --- bin/airflow


@pytest.fixture
def fake_airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An Airflow that prints its arguments and its environment."""
    write_script(tmp_path / "venv/bin/airflow", '#!/bin/sh\necho "arguments: $*"\nenv\n')
    for line in (REPOSITORY / "conf" / "airflow.env").read_text().splitlines():
        if line and not line.startswith("#"):
            monkeypatch.delenv(line.split("=")[0], raising=False)
    for name in ("AIRFLOW_HOME", "AIRFLOW__CORE__DAGS_FOLDER", "AIRFLOW__CORE__PLUGINS_FOLDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AIRFLOW_VENV", str(tmp_path / "venv"))
    return tmp_path


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


def test_airflow__setup_makes_database_and_pools(fake_airflow: Path) -> None:
    lines = run("airflow", "setup").stdout.splitlines()
    assert [line for line in lines if line.startswith("arguments:")] == [
        "arguments: db migrate",
        f"arguments: pools import {REPOSITORY}/conf/pools.json",
    ]


def test_airflow__run_is_dags_test_for_people(fake_airflow: Path) -> None:
    lines = run("airflow", "run", "navaids", "2023-06-01", "--conf", '{"eps": 1}').stdout.splitlines()
    assert lines[0] == 'arguments: dags test navaids 2023-06-01 --conf {"eps": 1}'
    assert "AIRFLOW__LOGGING__LOG_FORMAT=%(message)s" in lines
    assert "EPSJOIN_RETRIES=0" in lines


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
    lines = run("airflow", "standalone").stdout.splitlines()
    assert lines == ["arguments: standalone", "arguments: scheduler --skip-serve-logs"]


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
            assert "0.0.0.0" not in file.read_text(), file  # noqa: S104 - looked for, not used


def test_airflow__without_its_environment_says_what_to_do(tmp_path: Path) -> None:
    done = run("airflow", "version", AIRFLOW_VENV=str(tmp_path))
    assert done.returncode == 1
    assert "run 'make setup'" in done.stderr


def test_airflow__backfill_run_is_ours_and_other_backfill_commands_are_airflows(fake_airflow: Path) -> None:
    write_script(fake_airflow / "venv/bin/python", '#!/bin/sh\necho "python: $*"\nenv\n')
    lines = run("airflow", "backfill", "run", "navaids", "2022-11-01", "2023-06-01").stdout.splitlines()
    assert lines[0] == f"python: {BIN}/backfill.py navaids 2022-11-01 2023-06-01"
    assert f"AIRFLOW_HOME={REPOSITORY}/.airflow" in lines
    lines = run("airflow", "backfill", "create", "--dag-id", "navaids").stdout.splitlines()
    assert lines[0] == "arguments: backfill create --dag-id navaids"
    assert run("airflow", "backfill").stdout.splitlines()[0] == "arguments: backfill"
