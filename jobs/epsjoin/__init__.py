"""Exact similarity joins, and from the pairs density clusters and outliers.

Every name below is imported when it is first used: a job that needs part of the package does not load the
compiled kernels of the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epsjoin.local.cluster.dbscan import Dbscan, dbscan
    from epsjoin.local.cluster.from_pairs import NOISE
    from epsjoin.local.epsilon.fit import EpsilonFit, fit_epsilon
    from epsjoin.local.epsilon.local_exponents import local_exponents
    from epsjoin.local.join.arrays import NO_ROW, Rows, iter_join, iter_self_join, join, self_join
    from epsjoin.local.join.boxes import Boxes, ball_join, box_join, iter_ball_join, iter_box_join
    from epsjoin.local.join.estimate import Estimate, estimate
    from epsjoin.local.metric import Metric, get_metric
    from epsjoin.local.neighbours.db_outliers import db_outliers
    from epsjoin.local.neighbours.knn import KNearest, k_distance, knn_join
    from epsjoin.local.neighbours.lof import Lof, lof
    from epsjoin.local.plan.cuts import Cuts
    from epsjoin.local.plan.rules import OwnRule, SplitRule, max_split_level, max_splits_per_level
    from epsjoin.local.sweep.pairs import Pairs

_HOMES = {
    "local.join.boxes": ("Boxes", "ball_join", "box_join", "iter_ball_join", "iter_box_join"),
    "local.cluster.from_pairs": ("NOISE",),
    "local.cluster.dbscan": ("Dbscan", "dbscan"),
    "local.join.estimate": ("Estimate", "estimate"),
    "local.epsilon.fit": ("EpsilonFit", "fit_epsilon"),
    "local.epsilon.local_exponents": ("local_exponents",),
    "local.join.arrays": ("NO_ROW", "Rows", "iter_join", "iter_self_join", "join", "self_join"),
    "local.neighbours.knn": ("KNearest", "k_distance", "knn_join"),
    "local.metric": ("Metric", "get_metric"),
    "local.neighbours.lof": ("Lof", "lof"),
    "local.neighbours.db_outliers": ("db_outliers",),
    "local.plan.cuts": ("Cuts",),
    "local.plan.rules": ("OwnRule", "SplitRule", "max_split_level", "max_splits_per_level"),
    "local.sweep.pairs": ("Pairs",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "NOISE",
    "NO_ROW",
    "Boxes",
    "Cuts",
    "Dbscan",
    "EpsilonFit",
    "Estimate",
    "KNearest",
    "Lof",
    "Metric",
    "OwnRule",
    "Pairs",
    "Rows",
    "SplitRule",
    "ball_join",
    "box_join",
    "db_outliers",
    "dbscan",
    "estimate",
    "fit_epsilon",
    "get_metric",
    "iter_ball_join",
    "iter_box_join",
    "iter_join",
    "iter_self_join",
    "join",
    "k_distance",
    "knn_join",
    "local_exponents",
    "lof",
    "max_split_level",
    "max_splits_per_level",
    "self_join",
]


def __getattr__(name: str) -> Any:
    """Import a public name, or the functions on DataFrames."""
    if name == "spark":
        return importlib.import_module(f"{__name__}.spark")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
