"""The library's public names: which there are, what importing them costs, what their docstrings lack."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import docstrings
import epsjoin
from epsjoin import errors
from epsjoin.errors import ArgumentError
from tests.bytecode import BYTECODE

JOBS = Path(epsjoin.__file__).parents[1]
CALLABLES = [
    name
    for name in epsjoin.__all__
    if callable(value := getattr(epsjoin, name))
    if not (inspect.isclass(value) and issubclass(value, Exception))
]
FUNCTIONS = [name for name in CALLABLES if not inspect.isclass(getattr(epsjoin, name))]
RETURNED = " ".join(str(inspect.signature(getattr(epsjoin, name)).return_annotation) for name in FUNCTIONS)
SHOWN_BY = {"iter_join": "join", "iter_self_join": "self_join"}
"""Functions whose example is another's."""


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    command, environment = [sys.executable, "-c", code], {**BYTECODE, "PYTHONPATH": str(JOBS)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_licence__is_the_exact_text_of_the_one_that_the_package_names() -> None:
    project = tomllib.loads((JOBS.parent / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    (file,) = project["license-files"]
    published = (
        "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"  # apache.org's LICENSE-2.0.txt
    )
    assert hashlib.sha256((JOBS.parent / file).read_bytes()).hexdigest() == published


def test_version__and_rooms_are_attributes_without_an_import_of_their_own() -> None:
    code = (
        "import epsjoin; print(epsjoin.__version__, epsjoin.ArgumentError.__name__, epsjoin.sklearn.__name__)"
    )
    assert re.fullmatch(r"\d+\.\d+\.\d+ ArgumentError epsjoin.sklearn", python(code))


def test_errors__are_public() -> None:
    raised = {name for name, value in vars(errors).items() if inspect.isclass(value) and "Error" in name}
    of_jobs = {"ContractError", "MissingSliceError", "NothingToDoError", "UnfitTableError"}
    assert raised - set(epsjoin.__all__) == of_jobs


def test_extras__are_those_of_the_package_with_the_modules_of_their_packages() -> None:
    project = tomllib.loads((JOBS.parent / "pyproject.toml").read_text())["project"]
    extras = {
        extra: {re.split(r"[^\w.-]", each)[0].lower() for each in wanted if "epsjoin[" not in each}
        for extra, wanted in project["optional-dependencies"].items()
    }
    assert extras.keys() == errors.EXTRAS.keys()
    distributions = metadata.packages_distributions()
    for extra, modules in errors.EXTRAS.items():
        found = {name for module in modules.split() for name in distributions.get(module, ())}
        met = {name.lower().replace("_", "-") for name in found}
        installed = {name for name in extras[extra] if _is_installed(name)}
        assert installed <= met, extra
        others = set[str]().union(*(names for other, names in extras.items() if other != extra))
        assert not met & others, extra


def _is_installed(distribution: str) -> bool:
    try:
        return bool(metadata.version(distribution))
    except metadata.PackageNotFoundError:
        return False


def test_all__is_what_a_star_imports() -> None:
    names: dict[str, Any] = {}
    exec("from epsjoin import *", names)
    assert set(names) - {"__builtins__"} == set(epsjoin.__all__)
    assert len(set(epsjoin.__all__)) == len(epsjoin.__all__)


def test_all__has_one_home_for_each_name_and_dir_shows_it() -> None:
    names = " ".join(epsjoin._HOMES.values()).split()
    assert sorted(names) == epsjoin.__all__
    assert set(epsjoin.__all__) <= set(dir(epsjoin))


def test_all__is_what_type_checkers_see() -> None:
    tree = ast.parse(Path(epsjoin.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    homes = {
        (alias.name, alias.asname): str(node.module).removeprefix("epsjoin.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    # Only "name as name" is an export for them.
    assert homes == {(name, name): home for name, home in epsjoin._HOME_OF.items()}


def test_import__loads_neither_numpy_nor_numba_nor_pyspark() -> None:
    heavy = ["numpy", "numba", "pyspark", "scipy", "pandas", "matplotlib", "sklearn", "tqdm"]
    assert python(f"import sys, epsjoin; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_import__of_a_metric_loads_no_join() -> None:
    code = "import sys, epsjoin; epsjoin.get_metric; print('epsjoin.local.join' in sys.modules)"
    assert python(code) == "False"


@pytest.mark.parametrize(
    ("imports", "after"),
    [("epsjoin", 700), ("epsjoin.__main__", 50_000), ("epsjoin.spark.job.session", 50_000)],
    ids=["library", "commands", "jobs"],
)
def test_import__of_programs_alone_has_python_look_for_garbage_rarely(imports: str, after: int) -> None:
    code = f"import gc; gc.set_threshold(700); import {imports}; print(gc.get_threshold()[0])"
    assert python(code) == str(after)


def test_unknown_name__is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'epsjoin' has no attribute 'selfjoin'"):
        epsjoin.selfjoin  # noqa: B018  # looking it up is the test


def test_typed__says_so() -> None:
    assert (Path(epsjoin.__file__).parent / "py.typed").is_file()


# ---------------------------------------------------------------------------------------------- docstrings


def faults(described: Callable[..., Any]) -> list[str]:
    """What a public function's or class's docstring lacks or has too much."""
    docstring = docstrings.read(described)
    found = [] if docstring.summary else ["no summary"]
    if docstring.summary and not docstring.summary.endswith("."):
        found.append("the summary is no sentence")
    signature = list(inspect.signature(described).parameters)
    names = [name.lstrip("*") for entry in docstring.parameters for name in entry.names]
    found += [f"parameter {name} is not described" for name in signature if name not in names]
    found += [f"{name} is described but no parameter" for name in names if name not in signature]
    twice = sorted({name for name in names if names.count(name) > 1})
    found += [f"parameter {name} is described twice" for name in twice]
    found += [f"no text for {', '.join(e.names)}" for e in docstring.parameters if e.names and not e.text]
    if not inspect.isclass(described) and not {"Returns", "Yields"} & set(docstring.sections):
        found.append("neither Returns nor Yields")
    entries = docstrings.type_entries(docstring.sections.get("Raises", ""))
    documented = {name for entry in entries for name in entry.names}
    found += [f"raises {name}, which is not in Raises" for name in sorted(raised(described) - documented)]
    found += [f"Raises has an unknown {name}" for name in sorted(documented) if not hasattr(errors, name)]
    return found


def has_example(described: Any) -> bool:
    return docstrings.read(described).sections.get("Examples", "").startswith(">>>")


def raised(described: Any, seen: set[Any] | None = None) -> set[str]:
    """Whether ArgumentError is raised: here, or by what is called here and lies in epsjoin.

    Methods of arguments are not followed, as their class is not known.
    """
    seen = set() if seen is None else seen
    found: set[str] = set()
    for function in bodies(described):
        if function in seen:
            continue
        seen.add(function)
        raises, called = lines_of(function)
        found |= raises.union(*(raised(each, seen) for each in called))
    return found


@functools.cache  # most public functions call the same ones
def lines_of(function: Any) -> tuple[set[str], list[Any]]:
    """What a function's own lines raise and what they call, as :func:`raised` has them."""
    raises, called = set[str](), []
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(node, ast.Raise) and "ArgumentError" in ast.unparse(node).partition("(")[0]:
            raises.add("ArgumentError")
        elif isinstance(node, ast.Call):
            each = resolved(node.func, function.__globals__)
            if (getattr(each, "__module__", "") or "").startswith("epsjoin."):
                called.append(each)
    return raises, called


def bodies(described: Any) -> Iterator[Any]:
    """The functions that run when it is called."""
    if inspect.isclass(described):
        for name in ("__init__", "__post_init__", "__new__"):
            method = vars(described).get(name)
            if inspect.isfunction(method) and method.__code__.co_filename.endswith(".py"):
                yield method
        return
    function = getattr(described, "py_func", described)
    function = getattr(function, "__func__", function)
    if inspect.isfunction(function):
        yield function


def resolved(node: ast.expr, names: dict[str, Any]) -> Any:
    """What a dotted name in the source stands for, None where that is not known."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(resolved(node.value, names), node.attr, None)
    return None


@pytest.mark.parametrize("name", CALLABLES)
def test_docstring__is_whole(name: str) -> None:
    assert faults(getattr(epsjoin, name)) == []


@pytest.mark.parametrize("name", CALLABLES)
def test_docstring__has_an_example(name: str) -> None:
    described = getattr(epsjoin, name)
    is_result = hasattr(described, "_fields") and name in re.findall(r"\w+", RETURNED)
    assert has_example(described) or is_result or has_example(getattr(epsjoin, SHOWN_BY[name]))


@pytest.mark.parametrize("name", [name for name in CALLABLES if name not in FUNCTIONS])
def test_docstring__members_have_one(name: str) -> None:
    described = getattr(epsjoin, name)
    bare = [
        member
        for member, value in vars(described).items()
        if not member.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, (property, classmethod)))
        and not docstrings.read(value).summary
    ]
    assert bare == []


def _deep() -> None:
    raise ArgumentError("no")


def _through(whole: int, lacking: int) -> int:
    """Look fine

    Parameters
    ----------
    whole, other : numbers.
    whole : again.

    Raises
    ------
    OddError
        Never.
    """
    _deep()
    return whole + lacking


def test_faults__finds_each() -> None:
    _deep.__module__ = "epsjoin.of_this_test"  # the search stays in the package
    assert faults(_through) == [
        "the summary is no sentence",
        "parameter lacking is not described",
        "other is described but no parameter",
        "parameter whole is described twice",
        "neither Returns nor Yields",
        "raises ArgumentError, which is not in Raises",
        "Raises has an unknown OddError",
    ]
    assert not has_example(_through)
