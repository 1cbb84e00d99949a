"""The doctor: every fault has its remedy in the same line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCTOR = Path(__file__).resolve().parents[1] / "jobs" / "epsjoin" / "doctor.py"


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
        (
            GOOD_JAVA.replace("jdk.incubator.vector@17", "java.base@17"),
            "lacks the module jdk.incubator.vector",
        ),
        ("exit 1", "-version does not say a version; install a JDK 17"),
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


def test_doctor__is_content_with_the_environment_that_runs_it() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCTOR)], env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert "ok    .venv:" in done.stdout, done.stdout
