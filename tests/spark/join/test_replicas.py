"""Rows of the table replicas: each has the key of its plan, and no other."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.keys import CodeKey, MaskKey
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.spread import replicate
from epsjoin.spark.join.replicas import KEY_COLUMNS, replicas_of


def test_key_columns__are_those_of_all_kinds_of_plans() -> None:
    assert set(KEY_COLUMNS) == {MaskKey.column, CodeKey.column}


@pytest.mark.parametrize(
    ("kind", "used", "empty"), [("planned", "mask", "code"), ("regular", "code", "mask")]
)
def test_replicas_of__writes_the_keys_of_the_plan_and_reads_them_again(
    kind: str, used: str, empty: str
) -> None:
    points, ids = np.random.default_rng(0).random((3000, 2)), np.arange(3000)
    cuts = Cuts(kind, n_parts=4)
    plan = plan_join(points, ids, len(points), 0.05, get_metric("euclidean"), cuts)
    assert plan.key.column == used
    expected = replicate(points, ids, plan)
    assert plan.n_parts > 1
    counters: Counter[str] = Counter()
    found = dict(replicas_of(ids, points, plan, counters))
    assert sorted(found) == np.unique(expected.part).tolist()
    for part, rows in found.items():
        here = expected.part == part
        assert rows["id"].to_pylist() == expected.row[here].tolist()
        assert rows[empty].null_count == len(rows)
        keys = plan.key.empty(len(rows))
        keys[:] = KEY_COLUMNS[used].read(rows[used].combine_chunks())
        assert (keys == expected.key[here]).all()
        assert keys.dtype == expected.key.dtype
    assert counters["rows"] == len(expected.row) > counters["points"] == 3000
