"""The values of columns over the last runs, where there are fewer intervals than the window has."""

from __future__ import annotations

from pathlib import Path

import pytest

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.report.values import gather_values
from tests.tiny import coordinate, key, new_lake

RUNS = ["0001-01-01", "0002-01-01", "0003-01-01", "0004-01-01"]


@pytest.mark.parametrize("number", range(4))
def test_gather_values__of_the_first_years(tmp_path: Path, number: int) -> None:
    """The value of each run is one of its own; a window of 3 is left by that of the first in the fourth."""
    kind = {"name": "kind", "logicalType": "string", "windowed": True}
    lake = new_lake(tmp_path, [key(), coordinate("x"), kind], interval="year", window_runs=3)
    for run in RUNS:
        row = {"column_name": "kind", "value": run, "points": 2}
        slices.write_slice(lake, Slice("value_counts", run), slices.table_of(lake, "value_counts", [row]))
    (found,) = gather_values(lake, RUNS[number])
    assert (found.n_intervals, found.n_runs) == (min(number + 1, 3),) * 2
    assert found.new == [{"value": RUNS[number], "points": 2}] * (number > 0)
    assert found.gone == [{"value": RUNS[0], "points": 2}] * (number == 3)
