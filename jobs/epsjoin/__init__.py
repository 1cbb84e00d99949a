"""Exact similarity joins, and from the pairs density clusters and outliers.

Every name below is imported when it is first used: a job that needs part of the package does not load the
compiled kernels of the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # type checkers read these lines, a test keeps them equal to the table below
    from epsjoin.bestmatch.files import bestmatch_files as bestmatch_files
    from epsjoin.bestmatch.files import iter_bestmatch_files as iter_bestmatch_files
    from epsjoin.bestmatch.sql import bestmatch_sql as bestmatch_sql
    from epsjoin.differ.differences import SnapshotDiff as SnapshotDiff
    from epsjoin.differ.differences import snapshot_diff as snapshot_diff
    from epsjoin.errors import ArgumentError as ArgumentError
    from epsjoin.errors import BudgetError as BudgetError
    from epsjoin.errors import DataRefusedError as DataRefusedError
    from epsjoin.errors import EpsjoinError as EpsjoinError
    from epsjoin.errors import MissingPackageError as MissingPackageError
    from epsjoin.errors import TableError as TableError
    from epsjoin.frames.joins import join_frames as join_frames
    from epsjoin.frames.joins import knn_frames as knn_frames
    from epsjoin.local.bestmatch.answers import Changes as Changes
    from epsjoin.local.bestmatch.batch import BestPairs as BestPairs
    from epsjoin.local.bestmatch.batch import bestmatch_join as bestmatch_join
    from epsjoin.local.bestmatch.orders import Closest as Closest
    from epsjoin.local.bestmatch.orders import Own as Own
    from epsjoin.local.bestmatch.orders import OwnOrder as OwnOrder
    from epsjoin.local.bestmatch.orders import Subset as Subset
    from epsjoin.local.bestmatch.stream import BestmatchStream as BestmatchStream
    from epsjoin.local.bestmatch.watermarks import Punctuated as Punctuated
    from epsjoin.local.bestmatch.watermarks import ReadAhead as ReadAhead
    from epsjoin.local.bestmatch.watermarks import Sorted as Sorted
    from epsjoin.local.bestmatch.watermarks import Within as Within
    from epsjoin.local.cluster.batches import Dbscan as Dbscan
    from epsjoin.local.cluster.dbscan import dbscan as dbscan
    from epsjoin.local.cluster.describe import Described as Described
    from epsjoin.local.cluster.describe import describe_clusters as describe_clusters
    from epsjoin.local.cluster.hdbscan import Hdbscan as Hdbscan
    from epsjoin.local.cluster.hdbscan import Lambdas as Lambdas
    from epsjoin.local.cluster.hdbscan import hdbscan as hdbscan
    from epsjoin.local.cluster.of_pairs import dbscan_pairs as dbscan_pairs
    from epsjoin.local.cluster.predict import predict_clusters as predict_clusters
    from epsjoin.local.cluster.predict_hdbscan import Predicted as Predicted
    from epsjoin.local.cluster.predict_hdbscan import predict_hdbscan as predict_hdbscan
    from epsjoin.local.cluster.spanning import SpanningTree as SpanningTree
    from epsjoin.local.cluster.update import update_clusters as update_clusters
    from epsjoin.local.compare.match import Matched as Matched
    from epsjoin.local.compare.match import match_clusters as match_clusters
    from epsjoin.local.compare.match import name_clusters as name_clusters
    from epsjoin.local.epsilon.box_count import box_counts as box_counts
    from epsjoin.local.epsilon.box_count import fit_box_count as fit_box_count
    from epsjoin.local.epsilon.epsilon_fit import EpsilonFit as EpsilonFit
    from epsjoin.local.epsilon.estimate import Estimate as Estimate
    from epsjoin.local.epsilon.estimate import estimate as estimate
    from epsjoin.local.epsilon.fit import fit_epsilon as fit_epsilon
    from epsjoin.local.epsilon.local_exponents import local_exponents as local_exponents
    from epsjoin.local.graph import Graph as Graph
    from epsjoin.local.graph import as_graph as as_graph
    from epsjoin.local.index.index import Index as Index
    from epsjoin.local.join.arrays import NO_ROW as NO_ROW
    from epsjoin.local.join.arrays import Rows as Rows
    from epsjoin.local.join.arrays import iter_join as iter_join
    from epsjoin.local.join.arrays import iter_self_join as iter_self_join
    from epsjoin.local.join.arrays import join as join
    from epsjoin.local.join.arrays import self_join as self_join
    from epsjoin.local.join.boxes import Boxes as Boxes
    from epsjoin.local.join.boxes import ball_join as ball_join
    from epsjoin.local.join.boxes import box_join as box_join
    from epsjoin.local.join.boxes import iter_ball_join as iter_ball_join
    from epsjoin.local.join.boxes import iter_box_join as iter_box_join
    from epsjoin.local.join.row_pairs import row_pairs as row_pairs
    from epsjoin.local.join.update import update_join as update_join
    from epsjoin.local.metric import Metric as Metric
    from epsjoin.local.metric import get_metric as get_metric
    from epsjoin.local.neighbours.db_outliers import db_outliers as db_outliers
    from epsjoin.local.neighbours.knn import k_distance as k_distance
    from epsjoin.local.neighbours.knn import knn_join as knn_join
    from epsjoin.local.neighbours.lof import Lof as Lof
    from epsjoin.local.neighbours.lof import lof as lof
    from epsjoin.local.neighbours.nearest import KNearest as KNearest
    from epsjoin.local.neighbours.within import degree as degree
    from epsjoin.local.plan.blocking import Parts as Parts
    from epsjoin.local.plan.blocking import parts as parts
    from epsjoin.local.plan.cuts import Cuts as Cuts
    from epsjoin.local.plan.split_rules.own_rule import OwnRule as OwnRule
    from epsjoin.local.plan.split_rules.rules import SplitRule as SplitRule
    from epsjoin.local.plan.split_rules.rules import max_generation as max_generation
    from epsjoin.local.plan.split_rules.rules import max_split_level as max_split_level
    from epsjoin.local.plan.split_rules.rules import max_splits_per_level as max_splits_per_level
    from epsjoin.local.progressive.kinds.columns import Band as Band
    from epsjoin.local.progressive.kinds.columns import Equi as Equi
    from epsjoin.local.progressive.kinds.columns import Spatial as Spatial
    from epsjoin.local.progressive.kinds.columns import Temporal as Temporal
    from epsjoin.local.progressive.kinds.kind import JoinKind as JoinKind
    from epsjoin.local.progressive.kinds.similarity import Similarity as Similarity
    from epsjoin.local.progressive.results import Found as Found
    from epsjoin.local.progressive.running import RunningEstimate as RunningEstimate
    from epsjoin.local.strings import string_join as string_join
    from epsjoin.local.sweep.pairs import Pairs as Pairs
    from epsjoin.local.sweep.pairs import RowPairs as RowPairs
    from epsjoin.local.trees.distance import tree_distance as tree_distance
    from epsjoin.local.trees.edits import Edit as Edit
    from epsjoin.local.trees.edits import tree_edits as tree_edits
    from epsjoin.local.trees.join import tree_join as tree_join
    from epsjoin.local.trees.knn import tree_knn as tree_knn
    from epsjoin.local.trees.trees import Trees as Trees
    from epsjoin.local.windows.batches import Counts as Counts
    from epsjoin.local.windows.join_window import JoinWindow as JoinWindow
    from epsjoin.local.windows.row_window import RowWindow as RowWindow
    from epsjoin.local.windows.value_window import ValueWindow as ValueWindow
    from epsjoin.progressive.join import ProgressiveJoin as ProgressiveJoin
    from epsjoin.progressive.join import progressive_join as progressive_join
    from epsjoin.vocabulary import NOISE as NOISE

_HOMES = {
    "bestmatch.files": "bestmatch_files iter_bestmatch_files",
    "bestmatch.sql": "bestmatch_sql",
    "differ.differences": "SnapshotDiff snapshot_diff",
    "errors": "ArgumentError BudgetError DataRefusedError EpsjoinError MissingPackageError TableError",
    "frames.joins": "join_frames knn_frames",
    "local.bestmatch.answers": "Changes",
    "local.bestmatch.batch": "BestPairs bestmatch_join",
    "local.bestmatch.orders": "Closest Own OwnOrder Subset",
    "local.bestmatch.stream": "BestmatchStream",
    "local.bestmatch.watermarks": "Punctuated ReadAhead Sorted Within",
    "local.cluster.batches": "Dbscan",
    "local.cluster.dbscan": "dbscan",
    "local.cluster.describe": "Described describe_clusters",
    "local.cluster.hdbscan": "Hdbscan Lambdas hdbscan",
    "local.cluster.of_pairs": "dbscan_pairs",
    "local.cluster.predict": "predict_clusters",
    "local.cluster.predict_hdbscan": "Predicted predict_hdbscan",
    "local.cluster.spanning": "SpanningTree",
    "local.cluster.update": "update_clusters",
    "local.compare.match": "Matched match_clusters name_clusters",
    "local.epsilon.box_count": "box_counts fit_box_count",
    "local.epsilon.epsilon_fit": "EpsilonFit",
    "local.epsilon.fit": "fit_epsilon",
    "local.epsilon.local_exponents": "local_exponents",
    "local.index.index": "Index",
    "local.join.arrays": "NO_ROW Rows iter_join iter_self_join join self_join",
    "local.join.update": "update_join",
    "local.graph": "Graph as_graph",
    "local.join.row_pairs": "row_pairs",
    "local.join.boxes": "Boxes ball_join box_join iter_ball_join iter_box_join",
    "local.epsilon.estimate": "Estimate estimate",
    "local.metric": "Metric get_metric",
    "local.neighbours.db_outliers": "db_outliers",
    "local.neighbours.knn": "k_distance knn_join",
    "local.neighbours.lof": "Lof lof",
    "local.neighbours.nearest": "KNearest",
    "local.neighbours.within": "degree",
    "local.plan.blocking": "Parts parts",
    "local.plan.cuts": "Cuts",
    "local.plan.split_rules.own_rule": "OwnRule",
    "local.plan.split_rules.rules": "SplitRule max_generation max_split_level max_splits_per_level",
    "local.progressive.kinds.columns": "Band Equi Spatial Temporal",
    "local.progressive.kinds.kind": "JoinKind",
    "local.progressive.results": "Found",
    "local.progressive.running": "RunningEstimate",
    "local.progressive.kinds.similarity": "Similarity",
    "local.strings": "string_join",
    "local.sweep.pairs": "Pairs RowPairs",
    "local.windows.batches": "Counts",
    "local.windows.join_window": "JoinWindow",
    "local.windows.row_window": "RowWindow",
    "local.windows.value_window": "ValueWindow",
    "local.trees.distance": "tree_distance",
    "local.trees.edits": "Edit tree_edits",
    "local.trees.join": "tree_join",
    "local.trees.knn": "tree_knn",
    "local.trees.trees": "Trees",
    "progressive.join": "ProgressiveJoin progressive_join",
    "vocabulary": "NOISE",
}
"""Modules and their public names."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

globals()["__all__"] = sorted(_HOME_OF)  # a plain assignment would hide all names from type checkers


def __getattr__(name: str) -> Any:
    """Import a public name, the functions on DataFrames, or the estimators with scikit-learn's interface."""
    if name in ("spark", "sklearn"):
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
