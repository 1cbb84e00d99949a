"""The hash that samples are drawn by is Spark's own, so that a sample is the same with a query or without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from epsjoin.spark.ingest import ingest
from epsjoin.spark.points import hashes
from epsjoin.spark.points.hashes import hash_ids, sample_of
from epsjoin.spark.points.points import stored_points
from epsjoin.spark.rows import stored
from tests.spark.conftest import JobMaker
from tests.spark.two_runs import job_on, snapshot
from tests.tiny import RUN


def test_hash_ids__is_sparks_xxhash64(spark: SparkSession) -> None:
    rng = np.random.default_rng(1)
    ids = np.concatenate([rng.integers(-(2**63), 2**63 - 1, 500), [0, 1, -1, 2**63 - 1, -(2**63)]])
    seeds = [0, 1, -1, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**62]
    hashes = [F.xxhash64(F.lit(seed), F.col("id")).alias(f"h{i}") for i, seed in enumerate(seeds)]
    rows = spark.createDataFrame([(int(each),) for each in ids], "id long").select("id", *hashes).collect()
    found = np.array([row["id"] for row in rows])
    for i, seed in enumerate(seeds):
        assert hash_ids(seed, found).tolist() == [row[f"h{i}"] for row in rows], seed


def test_sample__of_files_is_that_of_the_frame(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = np.random.default_rng(2).random((3000, 2))
    snapshot(tmp_path, RUN, {7 * i: ("a", float(x), float(y)) for i, (x, y) in enumerate(places)})
    job = job_on(make_job, RUN)
    ingest.run(job)
    points = stored_points(job)
    monkeypatch.setattr(stored, "MAX_BATCH_ROWS", 100)
    for rows, seed in ((50, 0), (900, 3), (5000, 3)):  # of the first a bound on the hash is known
        of_frame = replace(points, files=None).sample(rows, seed)
        assert len(of_frame[0]) == min(rows, 3000)
        for one, other in zip(points.sample(rows, seed), of_frame, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rows", [0, 5, 2000, 10_000, 20_000])
def test_sample_of__is_the_rows_with_the_smallest_hashes(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """However many ids are hashed at a time; of 10,000 and more rows there is no bound."""
    ids = np.random.default_rng(rows).permutation(20_000) - 10_000
    monkeypatch.setattr(hashes, "_HASHED_AT_ONCE", 777)
    assert sample_of(ids, rows, 3).tolist() == np.lexsort((ids, hash_ids(3, ids)))[:rows].tolist()
