"""Joins by edit distance on DataFrames: records to points, candidates by their join, distances last.

:class:`EditMetric` holds what differs between trees and strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.errors import BudgetError, DataRefusedError
from epsjoin.kernels.arrays import Floats
from epsjoin.lake import transactions
from epsjoin.spark.frames import similarity_join
from epsjoin.spark.join.frames import as_limit, target_at
from epsjoin.spark.join.pairs import PAIRS
from epsjoin.spark.join.records import Compare, bring_records, compare_records
from epsjoin.spark.points.columns import column_of_ids
from epsjoin.spark.rows.persist import materialize, persist_until
from epsjoin.spark.rows.rows import FrameRows
from epsjoin.spark.rows.write import Written, write_table
from epsjoin.spark.tasks.arrow import Task

Pack = Callable[[list[str | None], list[int]], tuple[pa.Array, Floats]]
"""Turns the texts of a batch and their ids into records, as tasks pass them on, and a point for each."""


class EditMetric(NamedTuple):
    """How records are filtered and compared.

    Parameters
    ----------
    record : Spark's type of a packed record.
    eps : maximum Manhattan distance of the points of two records within the limit; a whole number.
    pack, compare : run in tasks.
    """

    record: str
    eps: int
    pack: Pack
    compare: Compare


def edit_join(
    frame: DataFrame,
    column: str,
    id: str,
    metric: EditMetric,
    max_pairs: int,
    to: str | None,
) -> DataFrame:
    """Find every pair of records within the metric's limit.

    Parameters
    ----------
    frame, id, max_pairs, to : see :func:`epsjoin.spark.trees.tree_join`.
    column : name of the column of texts.
    metric : how records are filtered and compared.
    """
    into = None if to is None else target_at(to)
    if into is not None:
        transactions.check_replaceable(into)
    max_pairs = as_limit("max_pairs", max_pairs)
    texts = frame.select(column_of_ids(frame, id), F.col(column).alias("text"))
    with ExitStack() as done:
        packed = FrameRows(texts).map(_packer(metric.pack), f"id long, record {metric.record}, point binary")
        persist_until(packed, done)
        eps = max(float(metric.eps), 0.5)  # points are whole numbers: with 0, only those of equal points
        try:
            candidates = similarity_join(
                packed, eps=eps, columns="point", metric="manhattan", max_pairs=max_pairs
            )
        except BudgetError as error:  # in terms of points, which the caller does not know
            found, _, _ = str(error).partition(";")
            raise BudgetError(
                "the records have too many candidates; take a smaller k or a larger max_pairs "
                f"(of their points, {found})"
            ) from None
        both = bring_records(candidates, packed)
        pairs = FrameRows(both).map(_comparer(metric.compare), PAIRS)
        if into is None:
            return materialize(pairs)

        def check(written: Written) -> None:
            if written.rows > max_pairs:
                raise BudgetError(f"{written.rows:,} pairs were found, {max_pairs:,} are allowed (max_pairs)")

        return write_table(into, FrameRows(pairs), frame.sparkSession, check)


def _packer(pack: Pack) -> Task:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ids = batch.column("id")
            records, points = pack(_decode(batch.column("text"), ids), ids.to_pylist())
            coordinates = [point.tobytes() for point in points.astype("<f8")]
            yield pa.record_batch({"id": ids, "record": records, "point": pa.array(coordinates, pa.binary())})

    return work


def _decode(texts: pa.Array, ids: pa.Array) -> list[str | None]:
    """The texts of a batch; Spark does not check whether their bytes are UTF-8."""
    try:
        decoded: list[str | None] = texts.to_pylist()
    except UnicodeDecodeError:
        for number, data in zip(ids.to_pylist(), texts.cast(pa.large_binary()).to_pylist(), strict=True):
            if data is not None and data.decode(errors="replace").encode() != data:
                raise DataRefusedError(f"the text of id {number} is not UTF-8") from None
        raise
    return decoded


def _comparer(compare: Compare) -> Task:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield compare_records(batch, compare)

    return work
