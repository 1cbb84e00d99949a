"""Differences between real snapshots: what other programs have found between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from epsjoin import snapshot_diff

NAVAIDS = Path(__file__).parents[1] / "data" / "navaids"
HISTORIES = Path(__file__).parents[1] / "data" / "histories"


def _months() -> list[Any]:
    expected = json.loads((HISTORIES / "expected_differences.json").read_text())["tables"]
    return [(table, step) for table, of in expected.items() for step in of["steps"]]


@pytest.mark.parametrize(
    ("method", "every"), [("auto", 1), ("SMC2", 4), pytest.param("SMC2", 1, marks=pytest.mark.long)]
)
def test_snapshot_diff__of_every_real_month_is_what_other_programs_found(method: str, every: int) -> None:
    months = [month for month in _months() if month[0] != "airport-frequencies"]
    assert len(months) == 11 + 8 + 21
    for table, step in months[::every]:
        folder = NAVAIDS if table == "navaids" else HISTORIES / table
        files = [folder / f"{step[end]}.csv.gz" for end in ("from", "to")]
        found = snapshot_diff(*files, key="id", method=method)
        before, now = (found.rekeyed[name].to_pylist() for name in ("before", "now"))
        rows = [
            [*found.inserted.to_pylist(), *now],
            found.updated.to_pylist(),
            [*found.deleted.to_pylist(), *before],
        ]
        counts = [step[kind] for kind in ("inserts", "updates", "deletes")]
        assert [len(each) for each in rows] == counts, (table, step)
        assert [sum(int(row["id"]) for row in each) for each in rows] == step["id_sums"]
        assert found.distance <= 0.011
        assert found.waiting <= 71


def test_snapshot_diff__of_two_years_is_what_other_programs_found() -> None:
    expected = json.loads((HISTORIES / "expected_differences.json").read_text())["tables"]
    step = expected["airport-frequencies"]["first_to_last"]
    files = [HISTORIES / "airport-frequencies" / f"{step[end]}.csv.gz" for end in ("from", "to")]
    found = snapshot_diff(*files, key="id")
    assert len(found.inserted) + len(found.rekeyed) == step["inserts"]
    assert len(found.deleted) + len(found.rekeyed) == step["deletes"]
    assert len(found.updated) + found.n_reformatted == step["updates"]
