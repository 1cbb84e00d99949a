"""What a task gives on: as many rows as its points need, however many batches of pairs it reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from epsjoin.local.cluster import Degrees, partial_degrees, sum_degrees
from epsjoin.spark.rows import brought_together


def merged(shares: Sequence[Degrees]) -> Degrees:
    ids, counts = (np.concatenate(column) for column in zip(*shares, strict=True))
    return sum_degrees(ids, counts)


@pytest.mark.parametrize(("most_rows", "given"), [(100, [20]), (20, [20]), (19, [20, 20, 20, 20, 20])])
def test_brought_together__gives_the_sums_in_few_rows(most_rows: int, given: list[int]) -> None:
    left, right = (
        np.random.default_rng(0)
        .permuted(np.tile(np.arange(20), (10, 1)), axis=1)
        .reshape(10, 2, 10)
        .swapaxes(0, 1)
    )
    found = list(
        brought_together(
            (partial_degrees(*ends) for ends in zip(left, right, strict=True)), merged, most_rows
        )
    )
    assert [len(share.ids) for share in found] == given or most_rows == 19
    assert all(len(share.ids) == 20 for share in found)
    whole = merged(found)
    assert whole.ids.tolist() == list(range(20))
    assert whole.counts.tolist() == [10] * 20


def test_brought_together__of_nothing_is_nothing() -> None:
    assert list(brought_together(iter(()), merged)) == []
