"""The wheel in an environment of its own: what it holds, its commands, what they say of a missing package."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

import epsjoin
from tests.bytecode import BYTECODE

PROJECT = Path(epsjoin.__file__).resolve().parents[2]
COMPILED = os.environ.get("NUMBA_CACHE_DIR", str(PROJECT / "jobs" / "epsjoin" / "kernels" / "__pycache__"))
"""Base of the kernels that other tests have compiled from the same sources."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=PROJECT, capture_output=True, check=True)
    (file,) = folder.iterdir()
    return file


class Installed:
    """An environment that holds the wheel; it sees other packages in one more folder."""

    def __init__(self, home: Path, wheel: Path, packages: Path) -> None:
        self.home = home
        venv.create(home / "venv", symlinks=True)
        python = str(home / "venv" / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install"]
        options = ["--quiet", "--no-index", "--no-deps", "--no-compile"]  # what is not run needs no bytecode
        subprocess.run([*pip, *options, str(wheel)], capture_output=True, check=True)
        (site,) = (home / "venv").glob("lib/python3*/site-packages")
        (site / "others.pth").write_text(f"{packages}\n")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in a folder that has nothing to do with the project."""
        (self.home / "elsewhere").mkdir(exist_ok=True)
        environment = {**BYTECODE, "HOME": str(self.home), "PATH": os.environ["PATH"]}
        environment |= {"NUMBA_CACHE_DIR": COMPILED}
        return subprocess.run(
            [str(self.home / "venv" / "bin" / command[0]), *command[1:]],
            cwd=self.home / "elsewhere",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """All packages of the environment that runs this test are there."""
    return Installed(tmp_path_factory.mktemp("full"), wheel, Path(sysconfig.get_path("purelib")))


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Only what the wheel requires is there: NumPy and numba."""
    home = tmp_path_factory.mktemp("bare")
    (home / "packages").mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if package.name.partition(".")[0] in ("numpy", "numba", "llvmlite"):
            (home / "packages" / package.name).symlink_to(package)
    return Installed(home, wheel, home / "packages")


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("points") / "points.csv"
    rows = np.random.default_rng(0).random((300, 2))
    np.savetxt(file, rows, delimiter=",", header="x,y", comments="")
    return file


def test_wheel__holds_contracts_templates_and_the_licence_and_no_test(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = email.message_from_bytes(archive.read(about))
    folder = about.rpartition("/")[0]
    tables = [path.name for path in (PROJECT / "data_contracts" / "tables").iterdir()]
    assert {f"epsjoin/data_contracts/tables/{name}" for name in tables} <= set(names)
    assert {
        "epsjoin/data_contracts/published.json",
        "epsjoin/data_contracts/navaids.odcs.yaml",
        "epsjoin/report/run.html.j2",
        "epsjoin/report/coastlines/land_110m.json",
        "epsjoin/report/coastlines/README.md",
        "epsjoin/params.schema.json",
        "epsjoin/py.typed",
        f"{folder}/licenses/LICENSE",
    } <= set(names)
    assert {name.partition("/")[0] for name in names} == {"epsjoin", folder}
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Author"] == "epsjoin developers"
    assert said["Version"] == epsjoin.__version__
    assert said["Requires-Python"] == "<3.14,>=3.11"
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)} <= set(
        said.get_all("Classifier", [])
    )


def test_epsjoin__is_a_command_and_a_module(bare: Installed) -> None:
    by_name, by_module = bare.run("epsjoin", "--help"), bare.run("python", "-m", "epsjoin", "--help")
    assert by_name.returncode == by_module.returncode == 0, by_name.stderr + by_module.stderr
    assert by_name.stdout == by_module.stdout
    assert "usage: epsjoin COMMAND" in by_name.stdout


def test_estimate__runs_where_the_wheel_is_installed(full: Installed, points: Path) -> None:
    done = full.run("epsjoin", "estimate", str(points), "--columns", "x,y", "--eps", "0.05")
    assert done.returncode == 0, done.stderr
    assert "  rows                   300" in done.stdout
    assert re.search(r"^  pairs +\d+", done.stdout, re.MULTILINE), done.stdout


def test_contract__finds_the_contracts_of_the_wheel(full: Installed, points: Path) -> None:
    done = full.run("epsjoin", "contract", "check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = full.run("epsjoin", "contract", "new", str(points))
    assert done.returncode == 0, done.stderr
    assert f"path: {points}\n" in done.stdout
    done = full.run("epsjoin", "show", "--lake", "/nowhere", "--dataset", "unknown", "--run", "2023-06-01")
    assert done.returncode == 2
    assert "site-packages/epsjoin/data_contracts/unknown.odcs.yaml" in done.stderr


def test_doctor__says_what_is_there_and_which_extras_are_not(bare: Installed) -> None:
    done = bare.run("epsjoin", "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok    numba: found" in done.stdout
    assert "tqdm not installed; where you need it: pip install 'epsjoin[progress]'" in done.stdout
    assert "make setup" not in done.stdout
    assert "java" not in done.stdout


def test_doctor__tries_a_lake_where_the_wheel_is_installed(full: Installed, tmp_path: Path) -> None:
    done = full.run("epsjoin", "doctor", "--lake", str(tmp_path))
    assert (
        f"ok    lake: a file and a Delta table written, read and deleted in file://{tmp_path}" in done.stdout
    )


@pytest.mark.parametrize("command", ["contract", "estimate", "show", "trend"])
def test_command__without_its_packages_names_the_extra(bare: Installed, command: str) -> None:
    done = bare.run("epsjoin", command, "--help")
    assert done.returncode == 2
    assert done.stderr.startswith(f"epsjoin {command}: the command needs ")
    extra = "report" if command == "trend" else "commands"
    assert done.stderr.endswith(f": pip install 'epsjoin[{extra}]'\n")


@pytest.mark.parametrize(
    ("code", "what", "extra"),
    [
        ("epsjoin.self_join([[0.0]], 1.0, progress=True)", "progress=True needs tqdm", "progress"),
        ("epsjoin.sklearn.DBSCAN", "epsjoin.sklearn needs ", "sklearn"),
        ("epsjoin.spark.dbscan", "epsjoin.spark needs p", "spark"),
    ],
)
def test_library__without_its_packages_names_the_extra(
    bare: Installed, code: str, what: str, extra: str
) -> None:
    done = bare.run("python", "-c", f"import epsjoin; {code}")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"epsjoin.errors.MissingPackageError: {what}")
    assert last.endswith(f": pip install 'epsjoin[{extra}]'")


def test_join__needs_no_extra(bare: Installed) -> None:
    code = "import epsjoin; print(epsjoin.self_join([[0.0], [0.5], [2.0]], 1.0).right.tolist())"
    done = bare.run("python", "-c", code)
    assert done.stdout == "[1]\n", done.stderr
