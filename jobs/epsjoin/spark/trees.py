"""The join of trees on DataFrames: documents within k edits."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from epsjoin.errors import ArgumentError, BudgetError, DataRefusedError, EpsjoinError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.arguments import check_count
from epsjoin.local.trees.packed import pack
from epsjoin.local.trees.prepared import (
    BINS,
    MAX_NODES,
    Order,
    TreeOptions,
    check_options,
    check_sizes,
    prepare,
)
from epsjoin.local.trees.trees import Trees
from epsjoin.spark.edit_join import EditMetric, Pack, edit_join
from epsjoin.spark.join.frames import MAX_PAIRS
from epsjoin.spark.join.trees import tree_comparer
from epsjoin.spark.points.columns import type_of


def tree_join(
    frame: DataFrame,
    k: int,
    *,
    tree: str = "json",
    id: str = "id",
    ordered: Order = False,
    relabel: int = 1,
    insert: int = 1,
    max_nodes: int = MAX_NODES,
    max_pairs: int = MAX_PAIRS,
    to: str | None = None,
) -> DataFrame:
    """Find every pair of documents within k edits.

    Parameters
    ----------
    frame : a frame of a classic session that has the same rows whenever it is read.
    k : maximum cost of the edits that turn one document into the other; see :func:`epsjoin.tree_join`.
    tree : name of a column of JSON texts; see :meth:`epsjoin.Trees.from_json`.
    id : name of a column of whole numbers, which must be distinct (this is not checked).
    ordered, relabel, insert, max_nodes : see :func:`epsjoin.tree_join`.
    max_pairs : the join is refused if more candidates are expected, and stops if more are found in one part.
    to : folder of a Delta table, as a URI or an absolute path, that the tasks write the pairs to. Its whole
        content is replaced in one transaction; a table with other columns than those of pairs is refused.

    Returns
    -------
    DataFrame
        ``left_id``, ``right_id`` (long) and ``distance`` (double), in no particular order; ``left_id <
        right_id``. The frame is persisted: call ``unpersist()`` on it when you no longer need it. With
        ``to``: the pairs as read from the table.

    Raises
    ------
    ArgumentError
        An argument or column is wrong, or the frame belongs to Spark Connect.
    BudgetError
        More than ``max_pairs`` candidates are expected, or with ``to`` more pairs were found.
    DataRefusedError
        See :func:`epsjoin.spark.frames.similarity_join`.
    TableError
        ``to`` holds a table with other columns or with partitions, or cannot be read or written. It stays as
        it was.

    See Also
    --------
    epsjoin.tree_join : the same on arrays, with the counters of its work.
    epsjoin.tree_edits : the edits between two documents.

    Notes
    -----
    Everything is computed at the call. One map turns each text into a packed tree of 13 bytes per node and a
    point of 48 coordinates, which are persisted; :func:`epsjoin.spark.frames.similarity_join` of the points
    finds the candidates, two joins by id bring their trees, and one map compares them. A text that is not
    JSON, is null, or has too many nodes fails a task, and Spark's error contains our sentence, with the id.
    Unlike on arrays, equal documents are not grouped: n of them are n² / 2 candidates, which cost no
    comparison of subtrees, but move two trees each.
    """
    check_count("k", k, 0)
    check_count("max_nodes", max_nodes)
    options = check_options(ordered, relabel, insert, BINS)
    if not isinstance(type_of(frame, tree), T.StringType):
        kind = type_of(frame, tree).simpleString()
        raise ArgumentError(f"the column {tree!r} must hold JSON texts, not {kind}; F.to_json makes them")
    metric = EditMetric("binary", 2 * k, _packer(options, max_nodes), tree_comparer(k, options))
    return edit_join(frame, tree, id, metric, max_pairs, to)


def _packer(options: TreeOptions, max_nodes: int) -> Pack:
    """Turn texts into packed trees and points."""

    def work(texts: list[str | None], ids: list[int]) -> tuple[pa.Array, Floats]:
        trees = _read(texts, ids, max_nodes)
        return pa.array(pack(trees), pa.binary()), prepare(trees, options).points(options.costs)

    return work


def _read(texts: list[str | None], ids: list[int], max_nodes: int) -> Trees:
    """Read JSON texts; what is refused is named by its id."""
    try:
        trees = Trees.from_json(texts)  # type: ignore[arg-type]  # a null is refused below
        check_sizes(trees, max_nodes)
    except EpsjoinError:
        for number, text in zip(ids, texts, strict=True):
            if text is None:
                raise DataRefusedError(f"the document of id {number} is null") from None
            try:
                check_sizes(Trees.from_json([text]), max_nodes)
            except ArgumentError as error:
                why = str(error).removeprefix("text number 0 ")
                raise DataRefusedError(f"the document of id {number} {why}") from None
            except BudgetError:
                raise BudgetError(
                    f"the document of id {number} has more than max_nodes = {max_nodes} nodes; leave such "
                    "rows out, or raise max_nodes: two trees take memory and time for each pair of their "
                    "different subtrees"
                ) from None
        raise
    return trees
