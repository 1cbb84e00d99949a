"""The archive for a cluster's workers: one per content, the same bytes for the same files."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

import pytest

import ship
from epsjoin.spark.startup import warm


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two files in place of epsjoin, and a compiler that leaves one file."""
    package = tmp_path / "epsjoin"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "kernels.py").write_text("x = 1\n")
    (package / "__pycache__" / "old.nbc").write_text("of other sources")
    monkeypatch.setattr(ship, "PACKAGE", package)

    def compile_kernels(copy: Path) -> None:
        (copy / "__pycache__").mkdir()
        (copy / "__pycache__" / "kernels.nbc").write_text("compiled")

    monkeypatch.setattr(ship, "compile_kernels", compile_kernels)
    return package


def test_archive__holds_the_package_and_what_was_compiled_for_it(package: Path, tmp_path: Path) -> None:
    made = ship.make_archive(tmp_path / "ship")
    assert [file.name for file in (tmp_path / "ship").iterdir()] == [made.name]
    with tarfile.open(made) as archive:
        members = {member.name: member for member in archive.getmembers()}
        files = {name for name, member in members.items() if member.isfile()}
        assert files == {"epsjoin/__init__.py", "epsjoin/kernels.py", "epsjoin/__pycache__/kernels.nbc"}
        # Python recompiles a module whose time is not the one that its compiled form names
        assert {member.mtime for member in members.values()} == {ship.FILE_TIME}


def test_archive__is_made_once_per_content(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ship.make_archive(tmp_path / "ship")
    made = first.stat().st_mtime_ns
    assert ship.make_archive(tmp_path / "ship") == first
    assert first.stat().st_mtime_ns == made
    said = capsys.readouterr().err
    assert said == "compiling the kernels, once: this takes up to a minute\n", (
        "and a person knows why it takes so long"
    )

    (package / "kernels.py").write_text("x = 2\n")
    second = ship.make_archive(tmp_path / "ship")
    assert second != first
    monkeypatch.setattr(ship, "describe_processor", lambda: ("another",))
    assert ship.make_archive(tmp_path / "ship") not in (first, second)


def test_pack__gives_the_same_bytes_for_the_same_files(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship.pack(package, tmp_path / "one")
    (package / "kernels.py").touch()
    monkeypatch.setattr("time.time", lambda: 1e9)  # gzip's header has room for the hour
    ship.pack(package, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_compile_in__leaves_nothing_of_the_callers_numba_and_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: dict[str, dict[str, str]] = {}
    monkeypatch.setattr(ship.subprocess, "run", lambda _, env, **__: called.update(env=env))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/elsewhere")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    ship.compile_kernels(tmp_path / "epsjoin")
    found = {name: value for name, value in called["env"].items() if name.startswith(("NUMBA_", "PYTHON"))}
    assert found == {"NUMBA_CACHE_DIR": str(ship.CACHE), "PYTHONPATH": str(tmp_path)}


@pytest.mark.parametrize("prefix", ["", "bytecode"])
def test_compile_in__leaves_bytecode_beside_the_sources_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", prefix and str(tmp_path / prefix))
    package = tmp_path / "epsjoin"
    (package / "spark" / "startup").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "kernels.py").touch()
    (package / "spark" / "startup" / "warm.py").write_text("import epsjoin.kernels\n")
    ship.compile_kernels(package)
    found = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("epsjoin/**/*.pyc")}
    compiled = ("__pycache__/__init__", "__pycache__/kernels", "spark/startup/__pycache__/warm")
    assert found == {f"epsjoin/{name}.{sys.implementation.cache_tag}.pyc" for name in compiled}
    assert list(tmp_path.rglob("epsjoin")) == [package]


def test_copy_compiled__lays_what_this_python_needs_beside_its_sources(tmp_path: Path) -> None:
    kept, kernels = tmp_path / "kept", tmp_path / "epsjoin" / "kernels"
    for folder in (kept, kernels):
        (folder / "join").mkdir(parents=True)
    mine = f"py{sys.version_info.major}{sys.version_info.minor}"
    for name in (
        f"ids.f-1.{mine}.nbi",
        f"ids.f-1.{mine}.1.nbc",
        "ids.f-1.py39.nbi",
        f"join/cut.g-2.{mine}.nbi",
    ):
        (kept / name).write_text(name)
    warm.copy_compiled(kept, tmp_path / "epsjoin")
    found = {
        str(file.relative_to(kernels)): file.read_text() for file in kernels.rglob("*") if file.is_file()
    }
    assert found == {
        f"__pycache__/ids.f-1.{mine}.nbi": f"ids.f-1.{mine}.nbi",
        f"__pycache__/ids.f-1.{mine}.1.nbc": f"ids.f-1.{mine}.1.nbc",
        f"join/__pycache__/cut.g-2.{mine}.nbi": f"join/cut.g-2.{mine}.nbi",
    }


def test_main__asked_for_help_packs_nothing(
    package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del package
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    with pytest.raises(SystemExit) as ended:
        ship.main(["--help"])
    assert ended.value.code == 0
    assert set(tmp_path.iterdir()) == before
