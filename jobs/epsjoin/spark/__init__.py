"""The only floor that knows Spark and Delta; for people with a DataFrame, its public names.

They are imported when they are first used: a task does not load the compiled kernels of all steps.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epsjoin.spark.cluster import dbscan
    from epsjoin.spark.fit_epsilon import fit_epsilon
    from epsjoin.spark.join import estimate, similarity_join
    from epsjoin.spark.outliers import outliers

_HOME_OF = {
    "dbscan": "cluster",
    "estimate": "join",
    "fit_epsilon": "fit_epsilon",
    "outliers": "outliers",
    "similarity_join": "join",
}

__all__ = ["dbscan", "estimate", "fit_epsilon", "outliers", "similarity_join"]


class _Package(ModuleType):
    """The package: a step's file must not take the name of the public function in it."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """Import a public name."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)


sys.modules[__name__].__class__ = _Package
