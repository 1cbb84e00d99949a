"""Partial results: as many rows as the points need, whatever the batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from epsjoin.local.cluster.from_pairs import Degrees, partial_degrees, sum_degrees
from epsjoin.spark.rows.partials import combine_partials


def merged(partials: Sequence[Degrees]) -> Degrees:
    ids, counts = (np.concatenate(column) for column in zip(*partials, strict=True))
    return sum_degrees(ids, counts)


@pytest.mark.parametrize(("max_rows", "wanted"), [(100, [20]), (20, [20]), (19, [20] * 10)])
def test_combine_partials__gives_the_sums_in_few_rows(max_rows: int, wanted: list[int]) -> None:
    left, right = (
        np.random.default_rng(0)
        .permuted(np.tile(np.arange(20), (10, 1)), axis=1)
        .reshape(10, 2, 10)
        .swapaxes(0, 1)
    )
    found = list(
        combine_partials((partial_degrees(*ends) for ends in zip(left, right, strict=True)), merged, max_rows)
    )
    assert [len(each.ids) for each in found] == wanted
    whole = merged(found)
    assert whole.ids.tolist() == list(range(20))
    assert whole.counts.tolist() == [10] * 20


def test_combine_partials__of_nothing_is_nothing() -> None:
    assert list(combine_partials(iter(()), merged)) == []
