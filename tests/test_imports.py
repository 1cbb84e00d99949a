"""What the floors below Spark load when they are imported: neither Spark nor Java."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import epsjoin

PACKAGE = Path(epsjoin.__file__).parent
FLOORS = ("kernels", "local", "contracts", "source", "lake")


@pytest.mark.parametrize("floor", FLOORS)
def test_imports__below_spark_load_no_spark_and_start_no_java(floor: str, tmp_path: Path) -> None:
    folder = PACKAGE / floor
    found = pkgutil.walk_packages([str(folder)], f"epsjoin.{floor}.")
    modules = [f"epsjoin.{floor}", *(module.name for module in found)]
    assert len(modules) == len(list(folder.rglob("*.py"))), "every module is imported"
    program = f"""
import importlib, sys
for name in {modules}:
    importlib.import_module(name)
print(sorted(name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j", "delta")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(PACKAGE.parent), "JAVA_HOME": "/nowhere", "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "[]\n"
