"""The only floor that uses Spark, and the public functions on DataFrames.

A function is imported when it is first used, so that a task does not load the compiled kernels of all steps.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from epsjoin.errors import needing_extra

if TYPE_CHECKING:
    from epsjoin.spark.bestmatch.frames import bestmatch_join
    from epsjoin.spark.cluster.of_pairs import dbscan_pairs
    from epsjoin.spark.differences import snapshot_diff
    from epsjoin.spark.epsilon.frames import estimate, fit_epsilon
    from epsjoin.spark.frames import dbscan, knn_join, outliers, similarity_join
    from epsjoin.spark.ranges import as_of, history
    from epsjoin.spark.strings import string_join
    from epsjoin.spark.trees import tree_join
    from epsjoin.spark.windows import value_window

_HOMES = {
    "bestmatch.frames": "bestmatch_join",
    "cluster.of_pairs": "dbscan_pairs",
    "differences": "snapshot_diff",
    "epsilon.frames": "estimate fit_epsilon",
    "frames": "dbscan knn_join outliers similarity_join",
    "ranges": "as_of history",
    "strings": "string_join",
    "trees": "tree_join",
    "windows": "value_window",
}
"""Modules and their public functions."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "as_of",
    "bestmatch_join",
    "dbscan",
    "dbscan_pairs",
    "estimate",
    "fit_epsilon",
    "history",
    "knn_join",
    "outliers",
    "similarity_join",
    "snapshot_diff",
    "string_join",
    "tree_join",
    "value_window",
]


def __getattr__(name: str) -> Any:
    """Import a public function."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing_extra(__name__):
        home = importlib.import_module(f"{__name__}.{_HOME_OF[name]}")
    return getattr(home, name)
