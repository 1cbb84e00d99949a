"""The only floor that uses Spark, and the public functions on DataFrames.

A function is imported when it is first used, so that a task does not load the compiled kernels of all steps.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from epsjoin.errors import needing_extra

if TYPE_CHECKING:
    from epsjoin.spark.frames import dbscan, estimate, fit_epsilon, knn_join, outliers, similarity_join

__all__ = ["dbscan", "estimate", "fit_epsilon", "knn_join", "outliers", "similarity_join"]


def __getattr__(name: str) -> Any:
    """Import a public function."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing_extra(__name__):
        frames = importlib.import_module(f"{__name__}.frames")
    return getattr(frames, name)
