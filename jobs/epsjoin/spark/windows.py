"""The values of columns over the last runs: a window whose batches are the runs, made on demand.

``value_counts`` has how many points of a run have each value. A window is a query over the slices of the last
intervals by date, so runs may come in any order, or again, and nothing that is stored becomes outdated. An
interval without a run is an empty batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.contracts.load_source import load_source
from epsjoin.errors import ArgumentError, DataRefusedError, MissingSliceError
from epsjoin.lake import slices, uris
from epsjoin.lake.arguments import parse_run
from epsjoin.lake.lake import Lake
from epsjoin.lake.windows import intervals_of_window, runs_of_window
from epsjoin.local.arguments import check_count
from epsjoin.local.windows.batches import TEXT, Counts
from epsjoin.local.windows.value_window import ValueWindow
from epsjoin.paths import CONTRACTS
from epsjoin.spark.rows.stored import StoredSlice

MAX_VALUES = 100_000
"""Maximum number of distinct values of a windowed column: it is meant for categories, not for names."""


def count_values(points: StoredSlice, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Count the points of each value of some columns: the rows of ``value_counts``, in order.

    Raises
    ------
    DataRefusedError
        A column has more than ``MAX_VALUES`` distinct values.
    """
    counts: Counter[tuple[str, str | None]] = Counter()

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: Counter[tuple[str, str | None]] = Counter()
        for batch in batches:
            for name in columns:
                _add(found, name, pc.value_counts(pc.cast(batch[name], pa.string())))
                _check(found, name)
        names, values = zip(*found, strict=True) if found else ((), ())
        yield pa.record_batch(
            {
                "column_name": pa.array(names, pa.string()),
                "value": pa.array(values, pa.string()),
                "points": pa.array(found.values(), pa.int64()),
            }
        )

    for batch in points.scan(columns, count) if columns else ():
        for row in batch.to_pylist():
            counts[row["column_name"], row["value"]] += row["points"]
    for name in columns:
        _check(counts, name)
    ordered = sorted(counts, key=lambda each: (each[0], each[1] is None, each[1] or ""))
    return [{"column_name": name, "value": value, "points": counts[name, value]} for name, value in ordered]


def _add(counts: Counter[tuple[str, str | None]], name: str, found: pa.StructArray) -> None:
    for value, points in zip(
        found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True
    ):
        counts[name, value] += points


def _check(counts: Counter[tuple[str, str | None]], name: str) -> None:
    if len(counts) > MAX_VALUES and sum(column == name for column, _ in counts) > MAX_VALUES:
        raise DataRefusedError(
            f"column {name} has more than {MAX_VALUES:,} distinct values; the contract's windowed is for "
            "columns with categories"
        )


def read_batches(lake: Lake, run: str, column: str, n: int) -> list[Counts]:
    """Read the values of a column in the last n intervals until that of a run, the earliest first."""
    intervals = intervals_of_window(lake.source.interval, run, n)
    rows = slices.read_runs(
        lake, "value_counts", runs_of_window(lake, run, n), ["run", "column_name", "value", "points"]
    )
    rows = rows.filter(pc.equal(rows["column_name"], column))
    batches = []
    for each in intervals:
        of_run = rows.filter(pc.equal(rows["run"], each))
        missing = of_run.filter(of_run["value"].is_null())
        there = of_run.filter(of_run["value"].is_valid())
        batches.append(
            Counts(
                np.array(there["value"].to_pylist(), TEXT),
                there["points"].to_numpy(),
                sum(missing["points"].to_pylist()),
            )
        )
    return batches


def value_window(
    lake: str,
    dataset: str,
    run: str,
    column: str,
    *,
    runs: int | None = None,
    contracts: str | Path | None = None,
) -> ValueWindow:
    """Return the values of a column over the last runs: which are new, which are gone, how frequent each is.

    Parameters
    ----------
    lake, dataset, contracts : see :func:`epsjoin.spark.history`.
    run : logical date of the last run of the window, ISO.
    column : a column that the contract declares ``windowed``; its values are texts here.
    runs : number of intervals, the run's own and those before it, with a run or without; by default the
        contract's ``window_runs``.

    Returns
    -------
    ValueWindow
        It has one batch for each interval, and needs no session.

    Raises
    ------
    ArgumentError
        The contract does not declare the column windowed; ``runs`` or ``run`` is not valid.
    TableError
        There is no lake, or it has no values of the data set.

    Notes
    -----
    *Source*: Golab, Garg and Özsu (EDBT 2004), sections 3.2 and 4.1: a run is a basic window,
    ``value_counts`` the store AGGR. Cost: the rows of ``value_counts`` of these runs.
    """
    folder = CONTRACTS if contracts is None else Path(contracts)
    opened = Lake(uris.parse_lake_uri(lake, "lake"), folder, load_source(folder, dataset))
    if column not in opened.source.windowed:
        known = ", ".join(opened.source.windowed) or "none"
        raise ArgumentError(
            f"column {column} of {dataset} is not windowed in its contract; windowed are: {known}"
        )
    run = parse_run(run, "run")
    n = opened.source.window_runs if runs is None else check_count("runs", runs, 1)
    if not slices.list_runs(opened, "value_counts"):
        raise MissingSliceError(f"value_counts of {dataset} has no run in {lake}; run ingest first")
    window = ValueWindow(n)
    for batch in read_batches(opened, run, column, n + 1):  # the first one leaves at once
        window.push(batch)
    return window
