"""The join of strings on DataFrames: texts within k edits of characters."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.arguments import check_count
from epsjoin.local.strings import BINS, Q, edits_within, encode
from epsjoin.spark.edit_join import EditMetric, edit_join
from epsjoin.spark.join.frames import MAX_PAIRS
from epsjoin.spark.join.records import Near
from epsjoin.spark.points.columns import type_of


def string_join(
    frame: DataFrame,
    k: int,
    *,
    string: str = "string",
    id: str = "id",
    max_pairs: int = MAX_PAIRS,
    to: str | None = None,
) -> DataFrame:
    """Find every pair of strings within k edits.

    Parameters
    ----------
    frame : see :func:`epsjoin.spark.tree_join`.
    k : maximum number of characters to insert, delete or replace; see :func:`epsjoin.string_join`.
    string : name of a column of strings.
    id, max_pairs, to : see :func:`epsjoin.spark.tree_join`.

    Returns
    -------
    DataFrame
        The pairs, as :func:`epsjoin.spark.tree_join` returns them.

    Raises
    ------
    ArgumentError, BudgetError, DataRefusedError, TableError
        As :func:`epsjoin.spark.tree_join` does.

    See Also
    --------
    epsjoin.string_join : the same on arrays, with the counters of its work.
    epsjoin.spark.tree_join : the same of documents.

    Notes
    -----
    Everything is computed at the call. One map counts the characters of each string in 13 bins, which are
    persisted with the strings; :func:`epsjoin.spark.frames.similarity_join` of the counts finds the
    candidates, two joins by id bring their strings, and one map compares them. A string that is null fails a
    task, and Spark's error contains our sentence, with the id. Unlike on arrays, equal strings are not
    grouped: n of them are n² / 2 candidates.
    """
    check_count("k", k, 0)
    if not isinstance(type_of(frame, string), T.StringType):
        kind = type_of(frame, string).simpleString()
        raise ArgumentError(f"the column {string!r} must hold strings, not {kind}; cast it")

    def compare(left: list[str], i: Ints, right: list[str], j: Ints) -> Near:
        distances = edits_within(encode(left), i, encode(right), j, k)
        rows = np.flatnonzero(distances <= k)
        return Near(rows, distances[rows].astype(np.float64))

    return edit_join(frame, string, id, EditMetric("string", 2 * Q * k, _pack, compare), max_pairs, to)


def _pack(strings: list[str | None], ids: list[int]) -> tuple[pa.Array, Floats]:
    """Count the characters of strings, which are passed on as they are."""
    if None in strings:
        raise DataRefusedError(f"the string of id {ids[strings.index(None)]} is null")
    given: list[str] = strings  # type: ignore[assignment]  # no null is left
    return pa.array(given, pa.string()), encode(given).counts(Q, BINS)
