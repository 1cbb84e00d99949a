"""The guard on real histories: what differs is counted, and nothing is held."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from epsjoin.spark.ingest import ingest
from tests.accidents import Snapshot, read_snapshot
from tests.spark.ingest.guarded import DATA, TEXT, findings, verdicts, write
from tests.spark.ingest.here import new_job
from tests.tiny import coordinate, key

REAL = {
    "navaids": ("latitude_deg", "longitude_deg"),
    "airport-frequencies": ("frequency_mhz",),
    "regions": ("letters",),
    "countries": ("letters",),
}
"""Real monthly snapshots: their coordinates. Some have none: one is added."""

Rows = dict[str, tuple[str | float, ...]]


def snapshots_of(name: str) -> list[Path]:
    """The files that ``EPSJOIN_SNAPSHOTS`` has, or those among the tests' data."""
    whole = os.environ.get("EPSJOIN_SNAPSHOTS")
    folder = Path(whole) if whole else DATA if name == "navaids" else DATA / "histories"
    return sorted((folder / name).glob("*.csv.gz"))


def read_real(file: Path, coordinates: tuple[str, ...]) -> Snapshot:
    found = read_snapshot(file, "id", coordinates)
    if coordinates != ("letters",):
        return found
    name = found.header.index("name")
    rows = [[*row, str(len(row[name]))] for row in found.rows]
    return Snapshot([*found.header, "letters"], rows, "id", coordinates)


def by_id(snapshot: Snapshot) -> Rows:
    """The oracle's view: values by id, of coordinates as numbers."""
    is_number = [name in snapshot.coordinates for name in snapshot.header]
    at = snapshot.header.index("id")
    return {
        row[at]: tuple(float(v) if is_ else v for v, is_ in zip(row, is_number, strict=True))
        for row in snapshot.rows
        if all(v for v, is_ in zip(row, is_number, strict=True) if is_)
    }


@pytest.mark.parametrize(
    ("name", "n_files"),
    [
        *(("navaids", 4), ("countries", None)),
        *(pytest.param(name, None, marks=pytest.mark.long) for name in REAL if name != "countries"),
    ],
)
def test_guard__counts_the_real_differences_and_holds_none(
    here: None, tmp_path: Path, name: str, n_files: int | None
) -> None:
    """``make test-snapshots FOLDER=...`` asks it of all 65."""
    files, coordinates = snapshots_of(name)[:n_files], REAL[name]
    assert len(files) > 1
    header = read_real(files[0], coordinates).header
    others = [{"name": column, **TEXT} for column in header if column not in ("id", *coordinates)]
    columns = [key(), *others, *map(coordinate, coordinates)]
    job = new_job(tmp_path, columns, interval="day", max_quarantine_share=0.01)
    before: Rows = {}
    for file in files:
        run, snapshot = file.name[:10], read_real(file, coordinates)
        now = by_id(snapshot)
        write(job, run, snapshot.text())
        ingest.run(replace(job, run=run))
        found = findings(job, run)
        if before:
            kept = before.keys() & now.keys()
            assert found["lost"]["observed"] == (len(before) - len(kept)) / len(before), run
            assert found["new"]["observed"] == (len(now) - len(kept)) / len(now), run
            assert found["updated"]["observed"] == sum(before[i] != now[i] for i in kept) / len(kept), run
        warned = verdicts(job, run, "warned")
        assert warned <= {"updated", "lost"}, run
        if (name, run) == ("regions", "2022-06-27"):
            assert warned == {"updated"}, "a column of text was filled"
            assert "of 3,405 that were looked at: keywords in 3,4" in found["updated"]["words"]
        before = now
