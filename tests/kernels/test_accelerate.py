"""Compiled kernels are kept in the folder of exactly their sources; nobody else's compiled functions move."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import epsjoin
from epsjoin.kernels import accelerate
from epsjoin.kernels.accelerate import digest_sources, open_folder
from epsjoin.kernels.neighbours.boxes import child_gaps
from epsjoin.kernels.pairs.sort_pairs import count
from tests.bytecode import BYTECODE


@pytest.mark.parametrize("changed", ["top.py", "join/sweep.py", "join/deeper/loop.py"])
def test_digest__is_another_when_a_file_of_any_folder_changes(tmp_path: Path, changed: str) -> None:
    for name in ("top.py", "join/sweep.py", "join/deeper/loop.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    before = digest_sources(tmp_path)
    assert digest_sources(tmp_path) == before
    (tmp_path / changed).write_text("x = 2\n")
    assert digest_sources(tmp_path) != before


def test_digest__is_another_when_a_file_moves(tmp_path: Path) -> None:
    (tmp_path / "join").mkdir()
    (tmp_path / "loop.py").write_text("x = 1\n")
    before = digest_sources(tmp_path)
    (tmp_path / "loop.py").rename(tmp_path / "join" / "loop.py")
    assert digest_sources(tmp_path) != before


@pytest.mark.parametrize("library", ["numba", "np"])
def test_digest__is_another_for_another_numba_or_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    before = digest_sources(tmp_path)
    monkeypatch.setattr(getattr(accelerate, library), "__version__", "99.0")
    assert digest_sources(tmp_path) != before


def test_folder__lies_in_the_first_base_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    bases = [tmp_path / "file" / "below", tmp_path / "second" / "deep", tmp_path / "third"]
    assert open_folder("0" * 16, bases) == tmp_path / "second" / "deep" / f"kernels-{'0' * 16}"
    assert not (tmp_path / "third").exists()
    assert open_folder("0" * 16, bases[:1]) is None


def test_folder__of_other_sources_goes_when_eight_were_used_since(tmp_path: Path) -> None:
    (tmp_path / "other.pyc").touch()
    (tmp_path / "kernels-of-somebody").mkdir()
    for number in range(8):
        folder = open_folder(f"{number:016x}", [tmp_path])
        assert folder is not None
        (folder / "kernel.nbc").touch()
        os.utime(folder, (number, number))
    first = open_folder(f"{0:016x}", [tmp_path])  # used again: the second is now the oldest
    assert len(list(tmp_path.glob("kernels-0*"))) == 8
    last = open_folder(f"{8:016x}", [tmp_path])
    assert {path.name for path in tmp_path.iterdir()} == {
        "other.pyc",
        "kernels-of-somebody",
        *(f"kernels-{number:016x}" for number in (0, 2, 3, 4, 5, 6, 7, 8)),
    }
    assert first is not None
    assert (first / "kernel.nbc").exists()
    assert last is not None
    assert list(last.iterdir()) == []


# ---------------------------------------------------------------------------------- in a package of their own

PROGRAM = """
import json, warnings
import numba
before = dict(vars(numba.config))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import numpy as np
    from epsjoin.kernels import ids
    ids.index_ids(2 * np.arange(10))  # ids that count up need no index
after = dict(vars(numba.config))
can_compile = bool(numba.core.registry.cpu_target.target_context._registries)
import own
own.double(2.0)
print(json.dumps({
    "changed": [name for name in after if after[name] is not before[name]],
    "can compile": can_compile,
    "kept in": ids._insert.stats.cache_path,
    "hits": sum(ids._insert.stats.cache_hits.values()),
    "own kept in": own.double.stats.cache_path,
    "warned": [str(one.message) for one in caught],
}))
"""
"""It compiles a kernel of ours, then a function of the user's."""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package beside a module of the user's; nothing of it has been compiled."""
    shutil.copytree(
        Path(epsjoin.__file__).parent, tmp_path / "epsjoin", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "own.py").write_text(
        "import numba\n@numba.njit(cache=True)\ndef double(x):\n    return 2 * x\n"
    )
    return tmp_path / "epsjoin"


def run(package: Path, **settings: str) -> dict[str, Any]:
    """What ``PROGRAM`` says in a new process whose home is a folder of the test's own."""
    home = package.parent / "home"
    environment = {
        **BYTECODE,
        "PYTHONPATH": str(package.parent),
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        **settings,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def close(package: Path) -> None:
    """Leave no place for compiled kernels beside the sources: as root, everything may be written."""
    (package / "kernels" / "__pycache__").touch()


def test_kernels__are_kept_beside_the_sources_without_a_change_of_numbas_settings(package: Path) -> None:
    first, second = run(package), run(package)
    assert first["changed"] == []
    assert re.fullmatch(f"{package}/kernels/__pycache__/kernels-[0-9a-f]{{16}}", first["kept in"])
    assert (first["hits"], second["hits"]) == (0, 1)
    assert first["can compile"]
    assert not second["can compile"], "what only loads kernels gets ready for nothing else"
    assert "kernels-" not in first["own kept in"]
    assert Path(first["own kept in"]).is_relative_to(package.parent / "__pycache__")
    assert not (package.parent / "home").exists()


def test_kernels__are_compiled_once_for_equal_sources_wherever_they_lie(package: Path) -> None:
    said = package.parent / "said"
    copy = package.parent / "copy" / "epsjoin"
    shutil.copytree(package, copy)
    shutil.copy(package.parent / "own.py", copy.parent)
    first, second = (run(each, NUMBA_CACHE_DIR=str(said)) for each in (package, copy))
    assert first["changed"] == []
    assert re.fullmatch(f"{said}/kernels-[0-9a-f]{{16}}", first["kept in"])
    assert (first["hits"], second["hits"]) == (0, 1)
    assert "kernels-" not in first["own kept in"]
    assert Path(first["own kept in"]).is_relative_to(said)
    assert not (package.parent / "home").exists()


def test_kernels__are_kept_with_the_user_where_the_package_is_read_only(package: Path) -> None:
    close(package)
    found = run(package)
    assert Path(found["kept in"]).is_relative_to(package.parent / "home")
    assert list(Path(found["kept in"]).rglob("*.nbc"))
    assert found["warned"] == []


def test_kernels__that_nobody_can_keep_are_compiled_with_one_warning(package: Path) -> None:
    close(package)
    (package.parent / "home").touch()
    found = run(package)
    assert found["kept in"] is None
    (sentence,) = found["warned"]
    assert "set NUMBA_CACHE_DIR to one that can" in sentence
    assert f"{package}/kernels/__pycache__, {package.parent}/home" in sentence


def test_kernel__of_other_types_is_not_run_when_two_processes_number_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes have read an empty index; both write, and the index is one's, the code the other's."""
    one, other = (accelerate._Files(str(tmp_path), "f", "stamp") for _ in range(2))
    one.save("floats", "code for floats")
    monkeypatch.setattr(other, "_load_index", dict)
    monkeypatch.setattr(other, "_save_index", lambda _: None)
    other.save("integers", "code for integers")
    assert one.load("floats") is None
    one.save("floats", "code for floats")
    assert one.load("floats") == "code for floats"


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize("kernel", [count, child_gaps])
def test_kernels__have_no_way_in_for_callers_in_c(kernel: Any) -> None:
    """There are none, and it would be an eighth of the CPU of a compilation."""
    arguments = {
        count: (np.zeros(1, np.int64), np.zeros(1, np.int64)),
        child_gaps: (0, np.zeros((1, 2)), 0, np.zeros((3, 2)), np.ones((3, 2)), 0),
    }
    found = []
    ours = {name: value for name, value in kernel.targetoptions.items() if name != "nopython"}  # njit's own
    for options in (ours, {**ours, "no_cfunc_wrapper": False}):
        compiled = numba.njit(**options)(kernel.py_func)
        compiled(*arguments[kernel])
        (text,) = compiled.inspect_llvm().values()
        found.append(len(re.findall(r"^define .*@cfunc\.", text, re.MULTILINE)))
    assert found == [0, 1]


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_njit_inner__counts_no_references_to_arrays() -> None:
    """Where numba counts them, threads of a search wait for one another in each box and leaf."""
    counts = []
    for options in (child_gaps.targetoptions, {"nogil": True}):
        compiled = numba.njit(**options)(child_gaps.py_func)
        compiled(0, np.zeros((1, 2)), 0, np.zeros((3, 2)), np.ones((3, 2)), 0)
        (text,) = compiled.inspect_llvm().values()
        counts.append(len(re.findall("call void @NRT_incref", text)))
    assert counts[0] == 0
    assert counts[1] > 0, "what is compiled otherwise counts them"
