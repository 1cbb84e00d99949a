"""The Makefile's Python: the newest that works, and environments of one version each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


def write_script(file: Path, body: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


def run(folder: Path, *command: str, path: Path | None = None) -> str:
    """What a command says in a folder, with what is in ``path`` and nothing else on the PATH."""
    environment = {"PATH": str(path) if path else os.environ["PATH"]}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder of programs, without any Python yet."""
    (tmp_path / "bin").mkdir()
    for tool in ("make", "sh", "env", "rm", "touch", "mkdir", "chmod", "cat", "tr"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    return tmp_path / "bin"


def test_find_pythons__names_those_that_work_and_make_environments_newest_first(tools: Path) -> None:
    write_script(tools / "python3.13", 'echo "pyenv: python3.13: command not found" >&2; exit 127')
    for version in ("3.11", "3.12"):
        write_script(tools / f"python{version}", f"echo /opt/python{version}")
    assert run(PROJECT, "bin/find-pythons", path=tools) == "/opt/python3.12\n/opt/python3.11\n"
    write_script(
        tools / "python3.12", f"exec {sys.executable} -c \"import sys; sys.modules['ensurepip'] = None; $2\""
    )
    assert run(PROJECT, "bin/find-pythons", path=tools) == "/opt/python3.11\n"
    write_script(tools / "python3.11", f'exec {sys.executable} "$@"')
    assert run(PROJECT, "bin/find-pythons", path=tools) == f"{sys.executable}\n"


@pytest.mark.parametrize(
    "name", ["two words", "o'brien", "r&d", "a:b", "50%", "(1)", "$HOME", '"', "\\", "#", ","]
)
def test_make__in_a_folder_whose_name_the_shell_would_change_says_what_to_do(
    tmp_path: Path, name: str
) -> None:
    """Or an installation of minutes ends with "Unterminated quoted string"."""
    folder = tmp_path / name
    folder.mkdir()
    shutil.copy(PROJECT / "Makefile", folder)
    done = subprocess.run(["make", "help"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f'the folder of the project is "{folder}", but its path may have letters' in done.stderr


def test_make__works_in_a_folder_of_letters_of_any_alphabet(tmp_path: Path) -> None:
    folder = tmp_path / "söhne-v1.2_ε+δ@x=y~"
    folder.mkdir()
    shutil.copy(PROJECT / "Makefile", folder)
    assert "setup" in run(folder, "make", "help")


def test_make__judges_the_folder_itself_and_not_a_link_to_it(tmp_path: Path) -> None:
    """``CURDIR``, of which the other paths are made, is the folder that a link leads to."""
    for folder, link in (("two words", "clean"), ("tidy", "a link")):
        (tmp_path / folder).mkdir()
        shutil.copy(PROJECT / "Makefile", tmp_path / folder)
        (tmp_path / link).symlink_to(folder)
    odd, tidy = (
        subprocess.run(
            ["make", "help"],
            cwd=tmp_path / link,
            env={**os.environ, "PWD": str(tmp_path / link)},
            capture_output=True,
            text=True,
            check=False,
        )
        for link in ("clean", "a link")
    )
    assert f'the folder of the project is "{tmp_path / "two words"}", but' in odd.stderr
    assert "setup" in tidy.stdout


def test_make_doctor__runs_by_any_python3_where_no_supported_one_is(tools: Path) -> None:
    write_script(tools / "python3", 'echo "by python3: $*"')
    said = run(PROJECT, "make", "doctor", path=tools)
    assert said.startswith("by python3: jobs/epsjoin/commands/doctor.py --lake ")
    write_script(
        tools / "python3.12", f'[ "$1" = -c ] && echo {tools}/python3.12 || echo "by python3.12: $*"'
    )
    assert run(PROJECT, "make", "doctor", path=tools).startswith("by python3.12: jobs/")
    assert run(PROJECT, "make", "PYTHON=python3", "doctor", path=tools).startswith("by python3: jobs/")


def test_make__looks_for_pythons_once_and_only_where_a_target_needs_one(tools: Path, tmp_path: Path) -> None:
    looks = tmp_path / "looks"
    python = write_script(tools / "python3.12", f"echo >> {looks}; echo {tools}/python3.12")
    run(PROJECT, "make", "--dry-run", "down", path=tools)
    assert not looks.exists()
    said = run(PROJECT, "make", "--dry-run", "--always-make", ".cache/audit/.installed", path=tools)
    assert said.count(f"{python} ") > 2
    assert looks.read_text() == "\n"


def test_environment__of_another_python_is_made_anew(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "pip.txt").touch()
    lock = tmp_path / "requirements" / "jobs.txt"
    shutil.copy(PROJECT / "Makefile", tmp_path)
    pythons = [
        write_script(
            tools / f"fake{version}",
            f"""case $1 in
-c) echo {version} ;;
-m) mkdir -p $3/bin; touch $3/bin/python{version}
    echo '#!/bin/sh
echo "$*" >> {tmp_path}/installed' > $3/bin/pip; chmod +x $3/bin/pip ;;
esac""",
        )
        for version in ("3.11", "3.12")
    ]
    kept = tmp_path / ".venv" / "package"
    for turn, (python, is_kept) in enumerate([(pythons[0], False), (pythons[0], True), (pythons[1], False)]):
        lock.touch()
        os.utime(lock, (2e9 + turn, 2e9 + turn))  # newer than the environment
        run(tmp_path, "make", f"PYTHON={python}", ".venv/.installed", path=tools)
        assert kept.exists() == is_kept
        kept.touch()
    assert sorted(file.name for file in (tmp_path / ".venv" / "bin").iterdir()) == ["pip", "python3.12"]
    locks = re.findall(r" -r requirements/(\w+)\.txt$", (tmp_path / "installed").read_text(), re.MULTILINE)
    assert locks == ["pip", "jobs"] * 3, "each environment by the pip that is pinned"


@pytest.mark.parametrize("goal", ["demo", "demo-backfill", ".airflow/.migrated"])
def test_make__sets_up_and_uses_the_project_s_own_airflow(goal: str) -> None:
    """Whatever the shell's ``AIRFLOW_HOME`` and database: setup would upgrade that of another Airflow."""
    said = run(PROJECT, "make", "--dry-run", "--what-if=conf/pools.json", goal)
    wanted = "setup" if goal.startswith(".") else "run|backfill"
    (line,) = (line for line in said.splitlines() if re.search(f"bin/airflow ({wanted})", line))
    words = line.partition(" bin/airflow")[0].split()
    hidden = {name for before, name in pairwise(words) if before == "-u"}
    assert words[0] == "env"
    assert hidden == {
        "AIRFLOW_HOME",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC",
    }
