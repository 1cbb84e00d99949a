"""Candidates with the trees of both sides, and their comparison."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.local.trees.packed import unpack
from epsjoin.local.trees.prepared import TreeOptions, prepare
from epsjoin.local.trees.refine import refine

SIDES = ("left", "right")


def join_trees(candidates: DataFrame, trees: DataFrame) -> DataFrame:
    """Bring the trees of both sides to candidates, by two joins; lazy.

    Parameters
    ----------
    candidates : with the columns left_id and right_id.
    trees : columns id and tree (binary, packed).

    Returns
    -------
    DataFrame
        left_id, right_id, left_tree, right_tree, in no particular order.
    """
    both = candidates.select("left_id", "right_id")
    for side in SIDES:
        of_side = trees.select(F.col("id").alias(f"{side}_id"), F.col("tree").alias(f"{side}_tree"))
        both = both.join(of_side, f"{side}_id")
    return both.select("left_id", "right_id", "left_tree", "right_tree")


def refine_batch(
    batch: pa.RecordBatch, k: int, options: TreeOptions, counters: dict[str, float] | None = None
) -> pa.RecordBatch:
    """Compare the trees of candidates; equal ones are at distance 0.

    Parameters
    ----------
    batch : left_id, right_id, left_tree, right_tree.
    k : maximum distance.
    counters : to which candidates, refinements and subtree_pairs are added, see :func:`epsjoin.tree_join`.

    Returns
    -------
    Of the candidates within k, in their order: left_id, right_id, distance.
    """
    sides = [batch.column(f"{side}_tree").dictionary_encode() for side in SIDES]
    left, right = (prepare(unpack(side.dictionary.to_pylist()), options) for side in sides)
    rows = [side.indices.to_numpy().astype(np.int64) for side in sides]
    found = refine(left, rows[0], right, rows[1], k, options, with_equal=True)
    if counters is not None:
        for name in ("candidates", "refinements", "subtree_pairs"):
            counters[name] = counters.get(name, 0) + getattr(found, name)
    near = batch.select(["left_id", "right_id"]).take(pa.array(found.rows))
    return near.append_column("distance", pa.array(found.pairs.distance))
