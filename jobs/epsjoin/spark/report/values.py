"""The values of columns over the last runs, as a report shows them: new, gone, more or less frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epsjoin.findings import ValueChanges
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake
from epsjoin.local.windows.batches import Counts
from epsjoin.local.windows.value_window import ValueWindow
from epsjoin.spark.windows import read_batches

MAX_SHOWN = 20
"""Maximum number of new values, and of gone ones, that are shown of a column."""

MAX_MOVED = 5
"""Maximum number of values whose fraction has moved that are shown of a column."""


def gather_values(lake: Lake, run: str) -> list[ValueChanges]:
    """Compare the values of each windowed column with those of the runs before.

    For a run that was made before values were counted, there is nothing to compare.
    """
    if run not in slices.list_runs(lake, "value_counts"):
        return []
    n = lake.source.window_runs
    return [_compare(column, n, read_batches(lake, run, column, n + 1)) for column in lake.source.windowed]


def _compare(column: str, n: int, batches: Sequence[Counts]) -> ValueChanges:
    """Compare the last batch with those before; the first of n + 1 batches has left the window by now."""
    left, earlier, now = batches[:-n], batches[-n:-1], batches[-1]
    window, before = ValueWindow(n), ValueWindow(n)
    for batch in batches:
        window.push(batch)
    for batch in earlier:
        before.push(batch)
    points = dict(zip(now.values.tolist(), now.rows.tolist(), strict=True))
    counts = before.counts()
    points_before = dict(zip(counts.values.tolist(), counts.rows.tolist(), strict=True))
    points_left = dict(zip(left[0].values.tolist(), left[0].rows.tolist(), strict=True)) if left else {}
    new = window.new().tolist() if points_before else []  # of the first run everything is new, and nothing
    gone = window.gone().tolist()
    return ValueChanges(
        column=column,
        n_intervals=len(batches) - len(left),
        n_runs=sum(bool(len(batch.values) or batch.missing) for batch in batches[-n:]),
        n_values=len(points),
        new=_most(new, points),
        gone=_most(gone, points_left),
        moved=_find_moved(points, points_before),
        n_new=len(new),
        n_gone=len(gone),
    )


def _most(values: Sequence[str], points: dict[str, int]) -> list[dict[str, Any]]:
    ordered = sorted(values, key=lambda value: (-points[value], value))
    return [{"value": value, "points": points[value]} for value in ordered[:MAX_SHOWN]]


def _find_moved(points: dict[str, int], before: dict[str, int]) -> list[dict[str, Any]]:
    """Find the values that both have and whose fraction of the points has changed most."""
    n, n_before = sum(points.values()), sum(before.values())
    rows: list[dict[str, Any]] = [
        {
            "value": value,
            "points": points[value],
            "fraction": points[value] / n,
            "fraction_before": count / n_before,
        }
        for value, count in before.items()
        if value in points and points[value] * n_before != count * n
    ]
    rows.sort(key=lambda row: (-abs(row["fraction"] - row["fraction_before"]), row["value"]))
    return rows[:MAX_MOVED]
