"""Points with ties and duplicates as frames, and the pairs of a frame, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from oracles import join as slow

Found = dict[tuple[int, int], float]
LATTICE, LATTICE_EPS = slow.awkward_points("lattice", 90, 3, 1)


def frame_of(spark: SparkSession, points: NDArray[np.float64], ids: list[int] | None = None) -> DataFrame:
    """Columns id, x0, x1, ..., in four partitions."""
    rows = zip(ids if ids is not None else range(len(points)), points.tolist(), strict=True)
    names = ", ".join(f"x{j} double" for j in range(points.shape[1]))
    return spark.createDataFrame([(i, *row) for i, row in rows], f"id long, {names}").repartition(4)


def columns_of(points: NDArray[np.float64]) -> list[str]:
    return [f"x{j}" for j in range(points.shape[1])]


def pairs_of(pairs: DataFrame) -> Found:
    rows = pairs.collect()
    found = {(row["left_id"], row["right_id"]): row["distance"] for row in rows}
    assert len(found) == len(rows), "a pair came twice"
    return found


def no_pairs(spark: SparkSession) -> DataFrame:
    """A frame of pairs with one partition, which is empty."""
    one = spark.range(0, 1, 1, 1).selectExpr("id left_id", "id right_id", "cast(id as double) distance")
    return one.where("left_id < 0")


def shrinking_frame(spark: SparkSession, readings: Path, n: int = 10) -> DataFrame:
    """Ids from 0 to n - 1 in one partition, of which each reading leaves out one more, as the file counts."""

    def fewer_each_time(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with readings.open("a") as file:
            file.write("+")
        for batch in batches:
            yield batch.slice(len(readings.read_text()))

    return spark.range(0, n, 1, 1).mapInArrow(fewer_each_time, "id long")
