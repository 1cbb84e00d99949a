"""What is loaded when modules are imported: below Spark neither Spark nor Java, by a job what it needs."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import epsjoin
from tests.bytecode import BYTECODE
from tests.tiny import RUN, coordinate, has_slice, key, new_lake

PACKAGE = Path(epsjoin.__file__).parent
FLOORS = ("kernels", "local", "contracts", "source", "lake")


def modules_of(floor: str) -> list[str]:
    folder = PACKAGE / floor
    found = pkgutil.walk_packages([str(folder)], f"epsjoin.{floor}.")
    modules = [f"epsjoin.{floor}", *(module.name for module in found)]
    assert len(modules) == len(list(folder.rglob("*.py"))), "every module is imported"
    return modules


def test_imports__below_spark_load_no_spark_and_start_no_java(tmp_path: Path) -> None:
    program = f"""
import importlib, sys
for floor, modules in {[(floor, modules_of(floor)) for floor in FLOORS]}:
    for name in modules:
        importlib.import_module(name)
    print(floor, *(name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j", "delta")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**BYTECODE, "PYTHONPATH": str(PACKAGE.parent), "JAVA_HOME": "/nowhere", "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == list(FLOORS)


HEAVY = ("jinja2", "jsonschema", "matplotlib", "numba", "pandas", "pyspark.ml", "scipy", "sklearn")
JOBS = {
    "ingest": ["numba", "scipy"],
    "merge_join": ["numba", "scipy"],
    "quality": ["pandas"],
    "report": ["jinja2", "matplotlib", "numba", "scipy"],
}
"""What jobs load of the heavy modules before they start; Great Expectations needs pandas, numba SciPy."""


def loaded_after(program: str, heavy: tuple[str, ...] = HEAVY) -> list[str]:
    """Which of the heavy modules a process has loaded when it has run a program."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys\n{program}\nprint(*(name for name in {heavy} if name in sys.modules))",
        ],
        env={**BYTECODE, "PYTHONPATH": str(PACKAGE.parent), "JAVA_HOME": "/nowhere", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1].split()


@pytest.mark.parametrize("job", JOBS)
def test_imports__of_a_job_are_those_that_it_needs(job: str) -> None:
    assert loaded_after(f"import {job}") == JOBS[job]


def test_imports__a_job_that_makes_arrays_does_not_load_pandas_for_them(tmp_path: Path) -> None:
    lake = new_lake(tmp_path, [key(), coordinate("x")])
    arguments = ["--lake", lake.uri, "--contracts", str(lake.contracts), "--dataset", "tiny", "--run", RUN]
    program = f"""
import pyarrow as pa
from epsjoin.spark.job.job import run_job
step = lambda job: {{"rows": len(pa.array([1, 2]))}}
assert run_job("report", step, {arguments}, starts_session=False) == 0
"""
    assert loaded_after(program) == ["jsonschema"], "by which the contract of the source is checked"
    assert has_slice(lake, "job_metrics", RUN), "the job wrote its counters"


def test_imports__a_progressive_join_of_csv_loads_no_parser_of_conditions(tmp_path: Path) -> None:
    """It takes a third of the memory that such a join needs besides its rows."""
    (tmp_path / "a.csv").write_text("x;y\n1;2\n1;2\n")
    program = f"""
from epsjoin import Band, progressive_join
found = progressive_join({str(tmp_path / "a.csv")!r}, on=Band(1.0), columns=["x"])
assert sum(len(batch.pairs.left) for batch in found) == 1
"""
    assert loaded_after(program, ("pyarrow.csv", "pyarrow.compute", "sqlglot")) == ["pyarrow.csv"]


def test_imports__pandas_is_there_for_who_asks_though_pyarrow_was_kept_from_it() -> None:
    program = """
import pyarrow as pa
from epsjoin.spark.tasks.arrow import keep_pandas_out
keep_pandas_out()
assert pa.array([1.5, None]).null_count == 1
assert "pandas" not in sys.modules
frame = pa.table({"x": [1, 2]}).to_pandas()
assert pa.table(frame).equals(pa.table({"x": [1, 2]})), "and pyarrow knows a frame again"
assert pa.array(frame["x"].where(frame["x"] > 1)).null_count == 1, "and a series"
"""
    assert loaded_after(program) == ["pandas"]


def test_imports__a_gate_judges_without_what_its_expectations_do_not_use(tmp_path: Path) -> None:
    """Great Expectations imports these when it is imported; they are there for who asks afterwards."""
    program = tmp_path / "judging.py"  # pyspark ends a program without a file that imports Spark Connect
    program.write_text(f"""
import sys
from pathlib import Path
from epsjoin.contracts.expected import expected_of
from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.tables import load_table
from epsjoin.lake.measure import Measured
from epsjoin.spark.checks.judge import judge
contracts = Path({str(PACKAGE.parents[1] / "data_contracts")!r})
contract = load_table(contracts, "epsilon", load_source(contracts, "navaids"))
numbers = {{each.name: Measured(each.must_be) for each in expected_of(contract)}}
found = judge([contract], {{"epsilon": numbers}})["epsilon"]
assert [each.success for each in found] == [True] * len(numbers)
print(sum(name.startswith("great_expectations.") for name in sys.modules))
print(*sorted({{"altair", "jinja2", "pyspark.ml", "scipy"}} & sys.modules.keys()))
from great_expectations.expectations import ExpectColumnToExist
try:
    ExpectColumnToExist(column="x")
except ImportError as error:
    print(error)
from great_expectations.expectations.core.expect_column_to_exist import ExpectColumnToExist
print(ExpectColumnToExist(column="x").column)
""")
    command = [sys.executable, str(program)]
    done = subprocess.run(
        command,
        env={**BYTECODE, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    n_modules, heavy, refused, column = done.stdout.splitlines()
    assert int(n_modules) < 300, "not five hundred"
    assert heavy == ""
    assert refused.startswith(
        "great_expectations.expectations.core.expect_column_to_exist.ExpectColumnToExist is"
    )
    assert column == "x"
