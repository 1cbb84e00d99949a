"""Candidates with the records of both sides, and their comparison: the last step of every join by edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.kernels.arrays import Floats, Ints

SIDES = ("left", "right")


class Near(NamedTuple):
    """Which candidates are pairs.

    Parameters
    ----------
    rows : (m,) int64, their numbers, ascending.
    distance : (m,) float64.
    """

    rows: Ints
    distance: Floats


Compare = Callable[[list[Any], Ints, list[Any], Ints], Near]
"""From different records of both sides, and which two each candidate has, to the pairs among them."""


def bring_records(candidates: DataFrame, records: DataFrame) -> DataFrame:
    """Bring the records of both sides to candidates, by two joins; lazy.

    Parameters
    ----------
    candidates : with the columns left_id and right_id.
    records : with the columns id and record.

    Returns
    -------
    DataFrame
        left_id, right_id, left_record, right_record, in no particular order.
    """
    both = candidates.select("left_id", "right_id")
    for side in SIDES:
        of_side = records.select(F.col("id").alias(f"{side}_id"), F.col("record").alias(f"{side}_record"))
        both = both.join(of_side, f"{side}_id")
    return both.select("left_id", "right_id", "left_record", "right_record")


def compare_records(batch: pa.RecordBatch, compare: Compare) -> pa.RecordBatch:
    """Compare the records of candidates: columns as of :func:`bring_records`.

    Returns
    -------
    Of the candidates that are pairs, in their order: left_id, right_id, distance.
    """
    left, right = (batch.column(f"{side}_record").dictionary_encode() for side in SIDES)
    i, j = (side.indices.to_numpy().astype(np.int64) for side in (left, right))
    near = compare(left.dictionary.to_pylist(), i, right.dictionary.to_pylist(), j)
    pairs = batch.select(["left_id", "right_id"]).take(pa.array(near.rows))
    return pairs.append_column("distance", pa.array(near.distance))
