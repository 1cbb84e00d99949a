"""The doctor: every fault has its remedy in the same line."""

from __future__ import annotations

import ast
import os
import re
import resource
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from epsjoin.commands import doctor

PROJECT = Path(__file__).resolve().parents[2]
DOCTOR = PROJECT / "jobs" / "epsjoin" / "commands" / "doctor.py"


def ask(tmp_path: Path, java: str | None, **environment: str) -> tuple[int, str]:
    """Run the doctor with a PATH that holds the tools and, if given, a java that is this script."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "sha256sum", "setpriv", "sh", "echo"):
        (tools / tool).symlink_to(shutil.which(tool) or tool)
    if java is not None:
        (tools / "java").write_text(f"#!/bin/sh\n{java}\n")
        (tools / "java").chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(DOCTOR), "--machine"],
        env={"PATH": str(tools), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


GOOD_JAVA = '[ "$1" = -version ] && echo \'openjdk version "17.0.1"\' >&2 || echo jdk.incubator.vector@17'


def test_doctor__is_content_with_python_and_java(tmp_path: Path) -> None:
    code, said = ask(tmp_path, GOOD_JAVA)
    assert code == 0, said
    assert "WRONG" not in said


@pytest.mark.parametrize(
    ("java", "sentence"),
    [
        (None, "WRONG java: no java on the PATH and no JAVA_HOME; install a JDK 17"),
        (GOOD_JAVA.replace("17.0", "11.0"), "is Java 11; install a JDK 17"),
        (GOOD_JAVA.replace("17.0.1", "1.8.0_392"), "is Java 8; install a JDK 17"),
        (
            GOOD_JAVA.replace("jdk.incubator.vector@17", "java.base@17"),
            "lacks the module jdk.incubator.vector",
        ),
        ("exit 1", "-version prints no version; install a JDK 17"),
    ],
)
def test_doctor__says_what_is_wrong_with_java(tmp_path: Path, java: str | None, sentence: str) -> None:
    code, said = ask(tmp_path, java)
    assert code == 1
    assert sentence in said


def test_doctor__says_that_java_home_is_wrong(tmp_path: Path) -> None:
    code, said = ask(tmp_path, GOOD_JAVA, JAVA_HOME="/nowhere")
    assert code == 1
    assert "JAVA_HOME is /nowhere, which has no bin/java" in said


@pytest.mark.parametrize(
    ("mode", "text", "reason"),
    [(0o644, "#!/bin/sh\n", "Permission denied"), (0o755, "no program", "Exec format error")],
)
def test_doctor__says_that_the_java_of_java_home_cannot_be_run(
    tmp_path: Path, mode: int, text: str, reason: str
) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(text)
    java.chmod(mode)
    code, said = ask(tmp_path, GOOD_JAVA, JAVA_HOME=str(tmp_path / "jdk"))
    assert code == 1
    assert f"WRONG java: {java} cannot be run: {reason}; install a JDK 17" in said


def test_doctor__names_the_pythons_that_are_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    assert doctor._check_python() == (
        "python",
        False,
        "3.10.13; install Python 3.11, 3.12 or 3.13, or run make PYTHON=<its path>",
    )
    monkeypatch.setattr(sys, "version_info", (3, 12, 3, "final", 0))
    assert doctor._check_python().is_well
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)  # Debian without python3-venv
    assert doctor._check_python().text == "3.12.3 cannot make environments; install python3.12-venv"


def test_doctor__supports_the_pythons_of_the_package_and_of_the_makefile() -> None:
    versions = [f"3.{minor}" for _, minor in doctor.PYTHONS]
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    first, last = doctor.PYTHONS[0], doctor.PYTHONS[-1]
    assert project["requires-python"] == f">={first[0]}.{first[1]},<{last[0]}.{last[1] + 1}"
    named = "Programming Language :: Python :: "
    found = [name.removeprefix(named) for name in project["classifiers"] if name.startswith(named)]
    assert found == ["3 :: Only", *versions]
    searched = re.search(r"for version in (.*); do", (PROJECT / "bin" / "find-pythons").read_text())
    assert searched is not None
    assert searched[1].split() == versions[::-1]


def test_doctor__runs_on_any_python_from_3_7_on() -> None:
    """Its syntax and the names that it imports; the youngest of what it calls came with 3.7, too."""
    ast.parse(DOCTOR.read_text(), feature_version=(3, 7))


@pytest.mark.parametrize(
    ("installed", "finding"),
    [
        ({"one": "1.0", "both": "1.0"}, (True, "2 packages as in jobs.txt")),
        ({"one": "1.0", "both": "2.0", "some": "3.0"}, (True, "3 packages as in jobs.txt")),
        ({"both": "1.0"}, (False, "one is missing, jobs.txt has 1.0 (1 packages differ)")),
        ({"one": "1.0", "both": "3.0"}, (False, "both is 3.0, jobs.txt has 1.0 or 2.0")),
    ],
)
def test_doctor__reads_the_conditions_of_a_lock_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], finding: tuple[bool, str]
) -> None:
    there = load_doctor(tmp_path, monkeypatch)
    (tmp_path / "project/requirements").mkdir()
    for name in ("jobs", "airflow"):
        (tmp_path / f"project/requirements/{name}.txt").write_text(
            "one==1.0 \\\n    --hash=sha256:00\n"
            "both==1.0 ; python_full_version < '3.12' \\\n    --hash=sha256:00\n"
            "both==2.0 ; python_full_version >= '3.12' \\\n    --hash=sha256:00\n"
            "some==3.0 ; sys_platform == 'win32' \\\n    --hash=sha256:00\n"
        )
    for name, version in installed.items():
        folder = f"project/.venv/lib/python3.12/site-packages/{name}-{version}.dist-info"
        (tmp_path / folder).mkdir(parents=True)
    put_script(tmp_path / "project/.venv/bin/python", "")
    found = next(there.check_environments())
    assert found.is_well == finding[0]
    assert finding[1] in found.text
    shutil.move(tmp_path / "project/.venv", tmp_path / "elsewhere")
    assert next(there.check_environments()).text == "missing; run make setup"
    monkeypatch.setenv("SPARK_JOB_VENV", "")
    assert next(there.check_environments()).text == "missing; run make setup"
    monkeypatch.setenv("SPARK_JOB_VENV", str(tmp_path / "elsewhere"))
    assert next(there.check_environments()).text == found.text


def test_doctor__says_that_the_python_of_an_environment_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an upgrade of the system: its packages are all there still, and make finds nothing to do."""
    there = load_doctor(tmp_path, monkeypatch)
    (tmp_path / "project/requirements").mkdir()
    for name in ("jobs", "airflow"):
        (tmp_path / f"project/requirements/{name}.txt").write_text("one==1.0 \\\n    --hash=sha256:00\n")
    (tmp_path / "project/.venv/lib/python3.12/site-packages/one-1.0.dist-info").mkdir(parents=True)
    python = tmp_path / "project/.venv/bin/python"
    put_script(python, "")
    assert next(there.check_environments()) == (".venv", True, "1 packages as in jobs.txt")
    python.unlink()
    python.symlink_to("/nowhere/python3.12")
    found = next(there.check_environments())
    assert (found.is_well, found.text[-42:]) == (False, "run; delete this folder and run make setup")


def test_doctor__says_that_the_file_of_settings_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = load_doctor(tmp_path, monkeypatch)
    shutil.copytree(PROJECT / "requirements", tmp_path / "project/requirements")
    assert [each for each in there.check_environments() if each.what == "EPSJOIN_CONF"] == []
    monkeypatch.setenv("EPSJOIN_CONF", f"{tmp_path}/mine.conf")
    found = list(there.check_environments())[-1]
    assert (found.is_well, found.text) == (
        False,
        f"it names {tmp_path}/mine.conf, which is no file; correct or unset it",
    )
    (tmp_path / "mine.conf").touch()
    assert list(there.check_environments())[-1].is_well


def test_doctor__is_content_with_the_environment_that_runs_it() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCTOR)], env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert "ok    .venv:" in done.stdout, done.stdout


def load_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The doctor's functions, on a project of the test's own: the real settings, no environments."""
    project = tmp_path / "project"
    shutil.copytree(DOCTOR.parents[3] / "conf", project / "conf")
    monkeypatch.setattr(doctor, "PROJECT", project)
    names = "AIRFLOW_VENV", "SPARK_JOB_VENV", "EPSJOIN_PROFILE", "EPSJOIN_LAKE", "EPSJOIN_CONF"
    for name in (doctor.CONNECTION, *names):
        monkeypatch.delenv(name, raising=False)
    return doctor


def put_script(file: Path, body: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo '175 MB, taken by this Java'", "175 MB, taken by this Java"),
        ("echo none; exit 1", "none; jobs take longer to start without it: run bin/class-archive make"),
        (None, "not checked: No such file or directory"),
    ],
)
def test_doctor__says_whether_jobs_start_from_a_class_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, text: str
) -> None:
    there = load_doctor(tmp_path, monkeypatch)
    (tmp_path / "project/requirements").mkdir()
    for lock in ("jobs.txt", "airflow.txt"):
        (tmp_path / "project/requirements" / lock).touch()
    if script:
        put_script(tmp_path / "project/bin/class-archive", script)
    found = list(there.check_environments())[-1]
    assert found == there.Finding("class archive", True, text), "jobs run without it"


def test_doctor__asks_nothing_about_a_connection_without_airflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = load_doctor(tmp_path, monkeypatch)
    assert list(there.check_connection()) == []
    monkeypatch.setenv("AIRFLOW_VENV", "")  # as good as not set; in the project there is a bin/airflow
    monkeypatch.chdir(DOCTOR.parents[3])
    assert list(there.check_connection()) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (None, None),  # as conf/airflow.env has it
        ('{"conn_type":"spark","host":"yarn"}', None),
        (
            '{"conn_type":"spark","extra":"{\\"deploy-mode\\": \\"cluster\\"}"}',
            "asks for deploy-mode cluster",
        ),
        ("spark://host:7077?deploy-mode=client", None),
        ("spark://u:secret@host:7077?deploy-mode=cluster", "asks for deploy-mode cluster"),
        ("http://u:secret@host", "is of type 'http', it must be 'spark'"),
        ('{"conn_type":"spark"', "begins like JSON, but is not valid JSON"),
        ("spark://u:secret@local[2]", "is no valid URI, and JSON takes any master"),
    ],
)
def test_doctor__reads_the_spark_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, fault: str | None
) -> None:
    there = load_doctor(tmp_path, monkeypatch)
    put_script(tmp_path / "project/.venv-airflow/bin/airflow", "exit 1")
    if text is not None:
        monkeypatch.setenv(there.CONNECTION, text)
    (finding,) = there.check_connection()
    assert finding.is_well == (fault is None)
    assert (fault or "client mode") in finding.text
    assert fault is None or "for one machine: AIRFLOW_CONN_SPARK_DEFAULT='{" in finding.text
    assert "secret" not in finding.text


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ('echo \'some log line\'; echo \'[{"conn_type": "spark", "extra_dejson": {}}]\'', None),
        ('echo \'[{"conn_type": "http"}]\'', "is of type 'http'"),
        ("echo Connection not found >&2; exit 1", "the connection spark_default is missing"),
        ("exec sleep 5", "Airflow did not answer within 0.5 s"),
    ],
)
def test_doctor__asks_airflow_where_no_variable_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, fault: str | None
) -> None:
    there = load_doctor(tmp_path, monkeypatch)
    put_script(tmp_path / "project/.venv-airflow/bin/airflow", "exit 1")
    put_script(tmp_path / "project/bin/airflow", answer)
    (tmp_path / "project/conf/airflow.env").write_text("# nothing\n")
    monkeypatch.setattr(there, "TIMEOUT", 0.5)
    (finding,) = there.check_connection()
    assert finding.is_well == (fault is None), finding.text
    assert (fault or "client mode") in finding.text


def test_doctor__says_that_disk_memory_and_open_files_are_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = load_doctor(tmp_path, monkeypatch)
    assert all(finding.is_well for finding in there.check_resources("s3a://bucket/lake"))
    assert next(iter(there.check_resources("s3a://bucket/lake"))).what == "disk of Spark"
    monkeypatch.setattr(there, "MIN_FREE_BYTES", 10**18)
    monkeypatch.setattr(there, "PYTHON_WORKER_BYTES", 10**18)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    said = {finding.what: finding for finding in there.check_resources(str(tmp_path / "not/yet/there"))}
    assert not any(finding.is_well for finding in said.values())
    assert "make room" in said["disk of the lake"].text
    assert "or set SPARK_LOCAL_DIRS" in said["disk of Spark"].text
    assert "end other programs" in said["memory"].text
    assert said["open files"].text.startswith("256 at most; jobs need 1024: raise the hard limit")
    monkeypatch.setenv("EPSJOIN_PROFILE", "huge")
    (memory,) = (finding for finding in there.check_resources("/") if finding.what == "memory")
    assert "EPSJOIN_PROFILE must be small or large, not 'huge'" in memory.text


def test_doctor__says_that_spark_has_no_folder_to_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = load_doctor(tmp_path, monkeypatch)
    (tmp_path / "file").touch()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/file/below")
    (found,) = (each for each in there.check_resources("/") if each.what == "disk of Spark")
    assert (found.is_well, found.text) == (
        False,
        f"temporary files cannot be written to {tmp_path}/file/below; "
        "set SPARK_LOCAL_DIRS to a folder for them",
    )
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/file,")  # behind the comma is none
    assert not next(each for each in there.check_resources("/") if each.what == "disk of Spark").is_well
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/file,{tmp_path}/not/yet")  # one is enough
    (found,) = (each for each in there.check_resources("/") if each.what == "disk of Spark")
    assert found.is_well
    assert found.text.endswith(f" GB free at {tmp_path}/not/yet")
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    monkeypatch.setenv("TMPDIR", f"{tmp_path}/file")  # Python would take another one, jobs do not
    assert not next(each for each in there.check_resources("/") if each.what == "disk of Spark").is_well


def test_doctor__reads_empty_variables_as_jobs_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = load_doctor(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    put_script(tmp_path / "bin/airflow", "")  # not that of the project
    for name in ("AIRFLOW_VENV", "SPARK_JOB_VENV"):
        monkeypatch.setenv(name, "")
    assert list(there.check_connection()) == []
    (finding,) = there.check_lake("/lake")
    assert f"there is no {tmp_path}/project/.venv/bin/python" in finding.text


def test_doctor__of_a_lake_in_a_folder_of_another_user_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.stat

    def stat(path: object, *more: object, **named: object) -> os.stat_result:
        if "closed/" in str(path):
            raise PermissionError(13, "Permission denied")
        return real(path, *more, **named)  # type: ignore[call-overload, no-any-return]  # as it was given

    monkeypatch.setattr(os, "stat", stat)
    disk, *_ = doctor.check_resources(f"{tmp_path}/closed/lake")
    assert disk.what == "disk of the lake"
    assert "GB free at" in disk.text


def test_doctor__tries_the_lake_and_leaves_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_JOB_VENV", sys.prefix)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "table").write_text("")
    for name in ("there", "not there"):
        (finding,) = doctor.check_lake(f"{tmp_path}/{name}")
        assert finding.is_well, finding.text
        assert "a file and a Delta table written, read and deleted in file://" in finding.text
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["table"]
    (finding,) = doctor.check_lake(f"{tmp_path}/there/table/lake")  # below a file
    assert not finding.is_well
    assert " Cannot create directory " in finding.text
    assert "allow this user to write there, or name another --lake" in finding.text


def test_check_lake__says_what_helps_where_no_right_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_JOB_VENV", sys.prefix)
    for fault, remedy in (
        ("ModuleNotFoundError: No module named 'pyarrow'", "; run make setup"),
        ("--lake: a file URI has three slashes, file:///..., not 'file://x/y'", "; correct it"),
        ("[Errno 28] No space left on device", "; free some there, or name another --lake"),
    ):
        done = subprocess.CompletedProcess([], 1, "", f"a trace\n{fault}\n")
        monkeypatch.setattr(doctor.subprocess, "run", lambda *_, done=done, **__: done)
        (finding,) = doctor.check_lake(str(tmp_path))
        assert finding.text.startswith(fault + remedy)
        assert "allow this user" not in finding.text


def test_doctor__refuses_a_lake_of_a_relative_path(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        doctor.main(["--lake", "relative"])
    said = capsys.readouterr()
    assert said.err.endswith(
        "--lake must be a URI (file:///..., s3a://...) or an absolute path, not 'relative'\n"
    )
    assert not said.out


def test_doctor__refuses_a_lake_whose_host_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """And does not repeat it: what is no host may be a part of a password."""
    with pytest.raises(SystemExit, match="2"):
        doctor.main(["--lake", "s3a://u:secret[x@bucket/lake"])
    said = capsys.readouterr()
    assert said.err.endswith("the next /; correct it\n")
    assert "secret" not in said.err + said.out


@pytest.mark.parametrize("venv", [None, ""])
def test_doctor__does_not_try_the_lake_without_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, venv: str | None
) -> None:
    there = load_doctor(tmp_path, monkeypatch)
    if venv is not None:
        monkeypatch.setenv("SPARK_JOB_VENV", venv)
    (finding,) = there.check_lake("/lake")
    assert not finding.is_well
    assert f"there is no {there.PROJECT}/.venv/bin/python; run make setup" in finding.text


def test_doctor__runs_where_nothing_is_installed(tmp_path: Path) -> None:
    """A copy of the bare project, Python without any package, an empty PATH."""
    for name in ("jobs/epsjoin/commands/doctor.py", "requirements/jobs.txt", "requirements/airflow.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DOCTOR.parents[3] / name, tmp_path / name)
    shutil.copytree(DOCTOR.parents[3] / "conf", tmp_path / "conf")
    command = [
        sys.executable,
        "-I",
        "-S",
        str(tmp_path / "jobs/epsjoin/commands/doctor.py"),
        "--lake",
        "/lake",
    ]
    done = subprocess.run(command, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ""
    for what in (
        "java: no java on the PATH",
        ".venv: missing; run make setup",
        "delta jars: ",
        "lake: not checked",
    ):
        assert f"WRONG {what}" in done.stdout
