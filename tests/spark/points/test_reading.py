"""Batches of points become arrays, and what is no point is refused by its id."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from epsjoin.errors import DataRefusedError
from epsjoin.local.metric import get_metric
from epsjoin.spark.points.reading import Reading


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((5, [1.0, math.nan]), "coordinate 2 of 'at' is nan where the id is 5"),
        ((5, [-math.inf, 1.0]), "coordinate 1 of 'at' is -inf where the id is 5"),
        ((5, [1.0, None]), "a coordinate in 'at' is null where the id is 5"),
        ((5, None), "the column 'at' is null where the id is 5"),
        ((5, [1.0]), "the point with the id 5 has 1 dimensions in 'at', another has 2"),
        (
            (5, [91.0, 1.0]),
            "haversine needs a latitude from -90 to 90 .*; the point with the id 5 breaks this",
        ),
        ((None, [1.0, 2.0]), "a point's id is null"),
    ],
)
def test_reading__names_the_id_of_a_bad_row(row: tuple[Any, ...], message: str) -> None:
    ids, places = zip((1, [0.0, 0.0]), (2, [1.0, 0.0]), row, strict=True)
    batch = pa.record_batch({"id": pa.array(ids, pa.int64()), "point": pa.array(places)})
    with pytest.raises(DataRefusedError, match=message):
        Reading(("at",), 2, metric=get_metric("haversine")).arrays(batch)
