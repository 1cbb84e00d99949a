"""bin/spark-submit: environment, settings and jars."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dags.fake_spark import INGEST, REPOSITORY, FakeSpark, write_script
from dags.scripts import BIN, alive, run


def test_spark_submit__hands_on_environment_and_settings(fake_spark: FakeSpark, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.json"
    done = run("spark-submit", "--master", "local[1]", INGEST, "--metrics-out", str(metrics))
    assert done.returncode == 0, done.stderr
    assert fake_spark.command("ingest")[:2] == ["--master", "local[1]"]
    environment = fake_spark.environment
    assert environment["SPARK_HOME"] == str(fake_spark.venv / "lib/python3.11/site-packages/pyspark")
    assert environment["PYSPARK_PYTHON"] == str(fake_spark.venv / "bin/python")
    assert environment["SPARK_CONF_DIR"] == str(REPOSITORY / "conf")
    assert environment["PYTHONPATH"].split(":")[0] == str(REPOSITORY / "jobs")
    assert environment["OMP_NUM_THREADS"] == environment["MALLOC_ARENA_MAX"] == "1"
    assert environment["NUMBA_CACHE_DIR"]


@pytest.mark.parametrize("profile", ["small", "large"])
def test_spark_submit__takes_the_profile_and_the_jars(
    fake_spark: FakeSpark, tmp_path: Path, profile: str
) -> None:
    run("spark-submit", INGEST, "--metrics-out", str(tmp_path / "m"), EPSJOIN_PROFILE=profile)
    arguments = fake_spark.calls_text().splitlines()
    assert arguments[:3] == [
        "--properties-file",
        str(REPOSITORY / f"conf/{profile}.conf"),
        "--load-spark-defaults",
    ]
    assert f"spark.driver.extraClassPath={fake_spark.jars}/*" in arguments


@pytest.mark.parametrize("folder", ["jars", "of two words"])
def test_spark_submit__tells_the_launcher_where_its_classes_are(
    fake_spark: FakeSpark, tmp_path: Path, folder: str
) -> None:
    """Spark splits the options at blanks, so a path with one is not among them."""
    venv = tmp_path / folder / "venv"
    shutil.copytree(fake_spark.venv, venv)
    jar = venv / "lib/python3.11/site-packages/pyspark/jars/spark-launcher_2.13-4.2.0.jar"
    jar.parent.mkdir(exist_ok=True)
    jar.touch()
    run("spark-submit", INGEST, "--metrics-out", str(tmp_path / "m"), SPARK_JOB_VENV=str(venv))
    options = fake_spark.environment["SPARK_LAUNCHER_OPTS"].split()
    found = [option for option in options if option.startswith("-Xbootclasspath")]
    assert found == ([f"-Xbootclasspath/a:{jar}"] if folder == "jars" else [])


def test_spark_submit__leaves_the_launchers_options_to_who_sets_them(
    fake_spark: FakeSpark, tmp_path: Path
) -> None:
    run("spark-submit", INGEST, "--metrics-out", str(tmp_path / "m"), SPARK_LAUNCHER_OPTS="-Dx=1")
    assert fake_spark.environment["SPARK_LAUNCHER_OPTS"] == "-Dx=1"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({}, "C.UTF-8"),  # of cron and systemd
        ({"LC_ALL": "POSIX"}, "C.UTF-8"),
        ({"LANG": "xx_XX.UTF-8"}, "C.UTF-8"),  # not installed
        ({"LANG": "C.UTF-8"}, None),
    ],
)
def test_spark_submit__reads_names_beyond_ascii_whatever_the_locale(
    fake_spark: FakeSpark,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    taken: str | None,
) -> None:
    """Java 17 in another locale cannot open a file whose path has such a letter."""
    for name in ("LANG", "LANGUAGE", *(name for name in os.environ if name.startswith("LC_"))):
        monkeypatch.delenv(name, raising=False)
    run("spark-submit", INGEST, "--metrics-out", str(tmp_path / "m"), **given)
    assert fake_spark.environment.get("LC_ALL") == taken


def test_spark_submit__keeps_bytecode_apart_where_none_may_lie_beside_sources(
    fake_spark: FakeSpark, tmp_path: Path
) -> None:
    metrics = str(tmp_path / "m")
    run("spark-submit", INGEST, "--metrics-out", metrics, PYTHONDONTWRITEBYTECODE="1")
    environment = fake_spark.environment
    assert "PYTHONDONTWRITEBYTECODE" not in environment
    assert environment["PYTHONPYCACHEPREFIX"] == str(REPOSITORY / ".cache/bytecode")
    run("spark-submit", INGEST, "--metrics-out", metrics, PYTHONDONTWRITEBYTECODE="")
    assert "PYTHONPYCACHEPREFIX" not in fake_spark.environment


def test_spark_submit__passes_the_exit_code_on(fake_spark: FakeSpark) -> None:
    fake_spark.ends("ingest", 4)
    assert run("spark-submit", INGEST).returncode == 4


def test_spark_submit__without_the_environment_says_what_to_do(fake_spark: FakeSpark, tmp_path: Path) -> None:
    done = run("spark-submit", INGEST, SPARK_JOB_VENV=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "no jobs environment in" in done.stderr
    assert "run 'make setup'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert fake_spark.jobs == []


def test_spark_submit__without_pyspark_says_what_to_do(fake_spark: FakeSpark) -> None:
    (fake_spark.venv / "lib").rename(fake_spark.root / "lib")
    done = run("spark-submit", INGEST)
    assert done.returncode == 1
    assert done.stderr == f"spark-submit: no pyspark in {fake_spark.venv}; run 'make setup'\n"


def test_spark_submit__without_a_jar_says_what_to_do(fake_spark: FakeSpark) -> None:
    jar = sorted(fake_spark.jars.iterdir())[-1]
    jar.unlink()
    done = run("spark-submit", INGEST)
    assert done.returncode == 1
    assert f"{jar.name} is missing" in done.stderr
    assert "run 'make setup'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_spark_submit__names_a_jar_that_is_broken(fake_spark: FakeSpark) -> None:
    jar = sorted(fake_spark.jars.iterdir())[-1]
    jar.write_text("half of it")
    done = run("spark-submit", INGEST)
    assert done.returncode == 1
    assert done.stderr == (
        f"spark-submit: {jar.name} in {fake_spark.jars} is not what it should be (conf/delta-jars.sha256); "
        "run bin/fetch-delta-jars\n"
    )
    assert fake_spark.jobs == []


@pytest.mark.parametrize(("limit", "is_refused"), [(256, True), (1023, True), (1024, False)])
def test_spark_submit__says_that_too_few_files_may_be_open(
    fake_spark: FakeSpark, tmp_path: Path, limit: int, is_refused: bool
) -> None:
    """Java would end with traces; it raises the soft limit itself."""
    limited = f'ulimit -n {limit} && exec "$0" "$@"'
    command = ["sh", "-c", limited, str(BIN / "spark-submit"), INGEST, "--metrics-out", str(tmp_path / "m")]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    said = (
        f"spark-submit: only {limit} files may be open at once, jobs need 1024: raise the hard limit "
        "(ulimit -Hn, or LimitNOFILE of a service)\n"
    )
    assert (done.returncode, done.stderr) == ((2, said) if is_refused else (0, ""))


def test_spark_submit__refuses_an_unknown_profile(fake_spark: FakeSpark) -> None:
    done = run("spark-submit", INGEST, EPSJOIN_PROFILE="medium")
    assert done.returncode == 2
    assert "must be small or large, not 'medium'" in done.stderr


@pytest.mark.parametrize(
    ("home", "sentence"), [("/nowhere", "JAVA_HOME is /nowhere"), ("", "no java on the PATH")]
)
def test_spark_submit__without_java_says_what_to_do(
    fake_spark: FakeSpark, tmp_path: Path, home: str, sentence: str
) -> None:
    for tool in ("dirname", "sh"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "")
    done = run("spark-submit", INGEST, JAVA_HOME=home, PATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith(f"spark-submit: {sentence}")
    assert done.stderr.endswith(
        "install a JDK 17, and set JAVA_HOME to its folder if it is not on the PATH\n"
    )
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["jobs/nojob.py"],
        ["--master", "local[2]", "/nowhere/ingest.py"],
        ["--py-files", "elsewhere.py", "--verbose", "jobs/nojob.py"],
        [],
    ],
)
def test_spark_submit__without_a_job_names_those_that_there_are(
    fake_spark: FakeSpark, words: list[str]
) -> None:
    done = run("spark-submit", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"spark-submit: {f'there is no {words[-1]}' if words else 'no job is given'};"
    )
    assert " cluster compare fit_epsilon ingest " in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert fake_spark.jobs == []


@pytest.mark.parametrize(
    "words", [["--py-files", "elsewhere.py", INGEST], ["hdfs://there/ingest.py"], ["--version"]]
)
def test_spark_submit__leaves_to_spark_what_is_no_file_here(fake_spark: FakeSpark, words: list[str]) -> None:
    fake_spark.writes_no_metrics()
    assert run("spark-submit", *words).returncode == 0


def test_spark_submit__refuses_folders_of_which_spark_can_write_to_none(
    fake_spark: FakeSpark, tmp_path: Path
) -> None:
    fake_spark.writes_no_metrics()
    done = run("spark-submit", INGEST, SPARK_LOCAL_DIRS=f"{INGEST}/x,/proc/x")
    assert done.returncode == 2
    assert done.stderr == (
        f"spark-submit: Spark cannot write its temporary files to {INGEST}/x,/proc/x; "
        "set SPARK_LOCAL_DIRS to a folder for them\n"
    )
    assert fake_spark.jobs == []
    for folders in (str(tmp_path), f"/proc/x,{tmp_path}/new"):
        assert run("spark-submit", INGEST, SPARK_LOCAL_DIRS=folders).returncode == 0


def test_profiles__hold_settings_and_a_reason_for_them() -> None:
    for name in ("spark-defaults.conf", "small.conf", "large.conf"):
        lines = (REPOSITORY / "conf" / name).read_text().splitlines()
        settings = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
        assert all(len(setting) == 2 and setting[0].startswith("spark.") for setting in settings), name
        assert sum(line.startswith("#") for line in lines) > 1, f"{name}: say why"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children with their parent")
def test_spark_submit__jvm_and_driver_die_with_the_task(fake_spark: FakeSpark, tmp_path: Path) -> None:
    # Spark's shape: a JVM, and below it the driver's Python (the fake one sleeps for 300 s)
    fake_spark.script(
        f'#!/bin/sh\necho $$ > {tmp_path}/jvm\n"$PYSPARK_DRIVER_PYTHON" &\necho $! > {tmp_path}/driver\nwait'
    )
    call = f"import subprocess; subprocess.run([{str(BIN / 'spark-submit')!r}, {INGEST!r}])"
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
    wrapper = repr(str(BIN / "die-with-parent"))
    call = f"import os, subprocess; subprocess.run([{wrapper}, str(os.getpid()), 'touch', 'started'])"
    died = subprocess.run([sys.executable, "-c", call], check=False, cwd=tmp_path)
    assert died.returncode == -signal.SIGKILL
    time.sleep(1)
    assert not (tmp_path / "started").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children with their parent")
def test_spark_submit__does_not_start_a_job_whose_task_has_died_meanwhile(
    fake_spark: FakeSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environment, jars and settings are looked at first, which takes some tenths of a second."""
    real = shutil.which("sha256sum")
    write_script(
        tmp_path / "bin/sha256sum",
        f"#!/bin/sh\n[ ! -s {tmp_path}/task ] || kill -KILL $(cat {tmp_path}/task)\nsleep 0.2\n"
        f'exec {real} "$@"\n',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    call = (
        f"import os, subprocess; open({str(tmp_path / 'task')!r}, 'w').write(str(os.getpid())); "
        f"subprocess.run([{str(BIN / 'spark-submit')!r}, {INGEST!r}])"
    )
    died = subprocess.run([sys.executable, "-c", call], check=False, stdout=subprocess.PIPE)
    assert died.returncode == -signal.SIGKILL  # and nobody holds its output open: the wrapper has ended
    assert fake_spark.jobs == []
