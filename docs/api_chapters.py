"""The chapters of ``docs/api.md``: which public name stands where; a new one is added here."""

from __future__ import annotations

from typing import NamedTuple


class Chapter(NamedTuple):
    """A chapter.

    Parameters
    ----------
    title : its heading.
    text : a sentence below it.
    names : what it holds: names of ``epsjoin``, or dotted paths below it for what is only returned or raised.
    """

    title: str
    text: str
    names: tuple[str, ...]


CHAPTERS = (
    Chapter(
        "Joins",
        "Every pair of points within eps: [what that means](library.md#what-within-ε-means).",
        (
            *("self_join", "iter_self_join", "update_join", "join", "iter_join", "Pairs", "Rows", "NO_ROW"),
            *("row_pairs", "RowPairs", "degree", "as_graph", "Graph", "Index"),
            *("join_frames", "knn_frames", "knn_join"),
        ),
    ),
    Chapter(
        "Best matches",
        "The nearest rows of another table by several criteria at once, none weighed against another.",
        (
            *("bestmatch_join", "BestPairs", "Closest", "Own", "Subset", "OwnOrder"),
            *("bestmatch_files", "iter_bestmatch_files", "bestmatch_sql"),
            *("BestmatchStream", "Changes", "Sorted", "Within", "ReadAhead", "Punctuated"),
        ),
    ),
    Chapter(
        "Progressive joins",
        "Joins of tables larger than memory: first pairs at once, and an estimate of how many there will be.",
        (
            *("progressive_join", "ProgressiveJoin", "Found", "RunningEstimate"),
            *("Similarity", "Equi", "Band", "Temporal", "Spatial", "JoinKind"),
            # what a condition of one's own is made of, where JoinKind does not do
            *(f"local.progressive.kinds.kind.{name}" for name in ("JoinCondition", "Fitted", "SweepKind")),
            *(f"local.progressive.kinds.kind.{name}" for name in ("Keyed", "CutKind")),
            "local.progressive.kinds.sweep_areas.Decides",
        ),
    ),
    Chapter(
        "Trees and strings",
        "Records that are trees, as JSON is: pairs within k edits, and [how](near-duplicate-documents.md).",
        ("Trees", "tree_join", "tree_knn", "tree_distance", "tree_edits", "Edit", "string_join"),
    ),
    Chapter(
        "Clusters and outliers",
        "Density clusters, distances to the k-th neighbour, and what stands apart.",
        (
            *("dbscan", "dbscan_pairs", "Dbscan", "predict_clusters", "update_clusters", "NOISE"),
            *("hdbscan", "Hdbscan", "SpanningTree", "Lambdas", "predict_hdbscan", "Predicted"),
            *("describe_clusters", "Described"),
            *("k_distance", "lof", "Lof", "db_outliers", "KNearest"),
            *("sklearn.DBSCAN", "sklearn.HDBSCAN", "sklearn.LocalOutlierFactor"),
            *("sklearn.RadiusNeighborsTransformer", "sklearn.KNeighborsTransformer"),
        ),
    ),
    Chapter(
        "Clusters that keep their names",
        "The clusters of one labeling beside those of the next, by the records that both have.",
        (
            *("match_clusters", "name_clusters", "Matched", "local.compare.names.Names"),
            *("local.compare.flows.Flows", "local.compare.events.Events"),
        ),
    ),
    Chapter(
        "Differences between snapshots",
        "Of files or Arrow tables: what was inserted, updated, deleted, or got another key.",
        ("snapshot_diff", "SnapshotDiff"),
    ),
    Chapter(
        "Windows",
        "Over the last batches or runs: which values came and went, the rows of a value, the pairs of rows.",
        ("ValueWindow", "Counts", "RowWindow", "JoinWindow"),
    ),
    Chapter(
        "Choosing ε",
        "From the power law that pair counts follow.",
        (
            *("fit_epsilon", "EpsilonFit", "fit_box_count", "box_counts", "local_exponents"),
            "local.epsilon.local_exponents.LocalExponents",
            "local.epsilon.box_count.BoxCountFit",
            "local.epsilon.box_count.BoxCounts",
            "local.epsilon.k_distance.Knee",
            "local.epsilon.k_distance.PointExponents",
            "local.epsilon.power_law.Curve",
            "local.epsilon.power_law.PowerLawFit",
        ),
    ),
    Chapter(
        "Planning",
        "What a join will cost, and how it is cut into parts.",
        (
            *("estimate", "Estimate", "Cuts", "parts", "Parts"),
            *("max_splits_per_level", "max_split_level", "max_generation", "SplitRule", "OwnRule"),
        ),
    ),
    Chapter("Metrics", "What a distance is.", ("get_metric", "Metric")),
    Chapter(
        "On Spark DataFrames",
        "The same functions on any number of executors: `import epsjoin.spark`, with a session of your own.",
        (
            "spark.similarity_join",
            "spark.bestmatch_join",
            "spark.value_window",
            "spark.dbscan",
            "spark.dbscan_pairs",
            "spark.outliers",
            "spark.knn_join",
            "spark.tree_join",
            "spark.string_join",
            "spark.fit_epsilon",
            "spark.estimate",
            "spark.snapshot_diff",
            "spark.history",
            "spark.as_of",
        ),
    ),
    Chapter(
        "Boxes and balls",
        "Joins of objects with extent, and of points with an eps of their own.",
        ("box_join", "iter_box_join", "Boxes", "ball_join", "iter_ball_join"),
    ),
    Chapter(
        "Errors",
        "What epsjoin raises on purpose; the message of each says what to do.",
        (
            *("EpsjoinError", "ArgumentError", "DataRefusedError", "BudgetError", "TableError"),
            "MissingPackageError",
        ),
    ),
)
