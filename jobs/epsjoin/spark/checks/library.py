"""The import of Great Expectations without the parts that no gate uses, which take two thirds of its time.

The library imports all data sources, expectations, metrics and pages, so that its packages have their names.
A gate uses one expectation, on one number in a pandas frame. Modules that it does not use are imported as
placeholders: they have every name that the library asks for, and nothing behind it.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from types import ModuleType
from typing import Any

TRIED = "1.24."
"""Beginning of the versions with which the gates' tests pass like this; other versions are imported whole."""

_LEFT_OUT = re.compile(
    r"great_expectations\.(?:"
    r"datasource\.fluent\.(?!(?:pandas|invalid)_datasource\b)(?:\w+_datasource|fabric|dynamic_pandas)"
    r"|expectations\.core\.(?!expect_column_max_to_be_between\b)\w+"
    r"|expectations\.metrics\.(?:column_aggregate|column_map|column_pair_map|multicolumn_map|query)_metrics"
    r"|metrics\.(?:batch|column|column_pair|multi_column|query)"
    r"|render\.view"
    r"|render\.renderer\.(?!renderer\b)\w+"
    r")(?:\.|$)"
)
"""Modules that are left out, with all below them: sources except pandas frames, expectations except that of
the maximum of a column, metrics except those of a whole table, and pages."""


def import_library() -> None:
    """Import only those parts of Great Expectations that are needed to judge a number.

    Notes
    -----
    A version that was not tried is imported whole. Afterwards no placeholder is in ``sys.modules``: a later
    import of such a module gets the module itself. No garbage is collected meanwhile, since everything stays.
    """
    if "great_expectations" in sys.modules:
        return
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # the import reads this: send no usage statistics
    finders = [_Placeholders()] if version("great-expectations").startswith(TRIED) else []
    was_enabled = gc.isenabled()
    sys.meta_path[:0] = finders
    gc.disable()
    try:
        import great_expectations  # noqa: F401  # loaded here, used by callers
    finally:
        for finder in finders:
            sys.meta_path.remove(finder)
            for name in finder.loaded:
                del sys.modules[name]
        gc.freeze()
        if was_enabled:
            gc.enable()


class _Placeholders(MetaPathFinder, Loader):
    """Finds the modules that are left out, and loads each without its code."""

    def __init__(self) -> None:
        self.loaded: list[str] = []

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find only these modules, each as a package, since others may lie below it."""
        if fullname == "pyspark.ml":  # without it the library thinks that Spark is not installed
            raise ModuleNotFoundError(f"{fullname} is left out where a gate imports Great Expectations")
        return ModuleSpec(fullname, self, is_package=True) if _LEFT_OUT.match(fullname) else None

    def exec_module(self, module: ModuleType) -> None:
        """Give the module every name that is asked of it."""
        self.loaded.append(module.__name__)
        vars(module)["__getattr__"] = _placeholders_of(module.__name__)
        if module.__name__.endswith("dynamic_pandas"):  # it makes a class for each format of files
            vars(module)["_generate_pandas_data_asset_models"] = _no_formats


def _placeholders_of(module: str) -> Callable[[str], type]:
    """What a module has under any name: a class that says, when it is called, what it stands for."""

    def find(name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Placeholder,), {"__module__": module})

    return find


class _Placeholder:
    def __init__(self, *_: Any, **__: Any) -> None:
        kind = type(self)
        raise ImportError(
            f"{kind.__module__}.{kind.__name__} is left out where a gate imports Great Expectations; "
            f"{__name__} says what is"
        )


def _no_formats(*_: Any, **__: Any) -> dict[str, type]:
    """A function that the library calls while it is imported; it expects no classes."""
    return {}
