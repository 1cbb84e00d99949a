"""The step merge_join: the same pairs however the space is cut; what does not fit together is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree

from epsjoin.errors import BudgetError, TableError
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake, Slice
from epsjoin.spark import tasks
from epsjoin.spark.join import merge_join, replicate
from tests.spark.conftest import JobMaker
from tests.spark.real_data import EXPECTED, JOIN_STEPS, job_on, pair_set, pendigits, skin
from tests.tiny import RUN, has_slice


@pytest.mark.long
def test_merge_join__joins_heavy_duplicates(make_job: JobMaker, tmp_path: Path) -> None:
    """21 million pairs of equal rows: no part and no batch may grow with them."""
    expected = EXPECTED["skin"]["joins"][1]
    job = job_on(make_job, tmp_path, skin(), {"eps": expected["eps"]})
    for step in JOIN_STEPS:
        step(job)
    assert slices.count_rows(job.lake, Slice("pairs", RUN)) == expected["self_pairs_i_lt_j"]


@pytest.mark.parametrize(
    "params",
    [
        {"n_parts": 1},
        {"n_parts": 7},
        {"n_parts": 64, "replication_budget": 50.0},
        {"cuts": "regular", "k": 0},
        {"cuts": "regular", "k": 3, "msl": 2, "n_parts": 7},
        {"cuts": "regular", "n_parts": 7},
        {"cuts": "regular", "k": 2, "msl": 62, "n_parts": 64, "replication_budget": 50.0},
    ],
)
def test_merge_join__finds_the_same_pairs_however_the_space_is_cut(
    make_job: JobMaker, tmp_path: Path, params: dict[str, Any]
) -> None:
    points = pendigits()[:3000, :5]
    job = job_on(make_job, tmp_path, points, {"eps": 0.11, **params})
    for step in JOIN_STEPS:
        step(job)
    by_scipy = cKDTree(points).query_pairs(0.11, output_type="ndarray")
    np.testing.assert_array_equal(pair_set(job), by_scipy[np.lexsort((by_scipy[:, 1], by_scipy[:, 0]))])


def test_merge_join__takes_no_replicas_of_another_plan(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if replicate had been killed between its two tables."""
    job = job_on(make_job, tmp_path, pendigits()[:500], {"eps": 0.3})
    for step in JOIN_STEPS:
        step(job)

    def killed(lake: Lake, table: str, *rest: object, **also: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(slices, "write_slice", killed)
    with pytest.raises(KeyboardInterrupt):
        replicate.run(replace(job, params=replace(job.params, n_parts=3)))
    monkeypatch.undo()
    with pytest.raises(
        TableError, match="replicas of run 2023-06-01 was made from other tables .* run replicate again"
    ):
        merge_join.run(job)


def test_replicate_and_merge_join__notice_rows_lost_on_the_way(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a task's report had not arrived, or a file had been read twice."""
    job = job_on(make_job, tmp_path, pendigits()[:500], {"eps": 0.3})
    for step in JOIN_STEPS[:3]:
        step(job)
    read = tasks.reports_of
    monkeypatch.setattr(tasks, "reports_of", lambda batches: read(batches)[1:])
    with pytest.raises(TableError, match="the parts joined another number of rows than replicas have"):
        merge_join.run(job)
    monkeypatch.setattr(tasks, "reports_of", lambda batches: read(batches) * 2)
    with pytest.raises(TableError, match="1,000 points were read, the log says 500"):
        replicate.run(job)


def test_merge_join__stops_when_more_pairs_appear_than_allowed(make_job: JobMaker, tmp_path: Path) -> None:
    job = job_on(make_job, tmp_path, pendigits()[:1000], {"eps": 0.3})
    for step in JOIN_STEPS[:3]:
        step(job)
    small = replace(job, params=replace(job.params, max_pairs=100))
    with pytest.raises(
        BudgetError,
        match=r"eps 0.3 would give about .* 100 are allowed .* the largest eps that fits is about 0.17",
    ):
        merge_join.run(small)
    plan = slices.read_row(job.lake, Slice("join_plan", RUN)) | {"expected_pairs": 99.0}
    slices.write_slice(job.lake, Slice("join_plan", RUN), slices.table_of(job.lake, "join_plan", [plan]))
    with pytest.raises(
        BudgetError,
        match=r"more than 100 pairs \(max_pairs\) lie within eps 0.3, [\d,]+ were expected; .* is about 0.1",
    ):
        merge_join.run(small)
    assert not has_slice(job.lake, "pairs", RUN)
