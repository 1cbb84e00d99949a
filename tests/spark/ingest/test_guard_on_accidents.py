"""The guard on real data sets with accidents: each is held until it is accepted, and good ones pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from epsjoin.errors import DataRefusedError
from epsjoin.lake import refusals
from epsjoin.local.guard.judge import CHECKS
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from tests.accidents import ACCIDENTS, Snapshot, read_snapshot
from tests.spark.conftest import copy_of
from tests.spark.ingest.guarded import (
    BEFORE,
    DATA,
    LAST_YEAR,
    NEXT,
    NOW,
    TEXT,
    accepting,
    findings,
    verdicts,
    write,
)
from tests.spark.ingest.here import new_job, reading_here
from tests.tiny import coordinate, has_slice, key


def navaids(date: str) -> Snapshot:
    return read_snapshot(DATA / "navaids" / f"{date}.csv.gz", "id", ("latitude_deg", "longitude_deg"))


def frequencies() -> list[Snapshot]:
    """Of two years ago, and of one day the whole file and the same without its last records."""
    folder = DATA / "histories" / "airport-frequencies"
    first, last = (read_snapshot(file, "id", ("frequency_mhz",)) for file in sorted(folder.glob("*.csv.gz")))
    return [first, last.of(last.rows[:-20]), last]


def landmarks() -> list[Snapshot]:
    """One snapshot as three: the last one with its last records, and a key, which the file has not."""
    found = read_snapshot(DATA / "landmarks" / "tiger_arealm_points.csv.gz", "number", ("lon", "lat"))
    rows = [[str(i), *row] for i, row in enumerate(found.rows)][::4]
    whole = Snapshot(["number", *found.header], rows, "number", ("lon", "lat"))
    return [whole.of(rows[:-300]), whole.of(rows[:-20]), whole]


SETS: dict[str, tuple[list[dict[str, Any]], Any]] = {
    "navaids": (
        [
            key(),
            {"name": "ident", **TEXT},
            {"name": "name", **TEXT},
            coordinate("latitude_deg", "latitude"),
            coordinate("longitude_deg", "longitude"),
        ],
        lambda: [navaids(date) for date in ("2021-11-22", "2023-05-08", "2023-06-04")],
    ),
    "frequencies": (
        [key(), {"name": "airport_ident", **TEXT}, {"name": "type", **TEXT}, coordinate("frequency_mhz")],
        frequencies,
    ),
    "landmarks": ([key("number"), coordinate("lon"), coordinate("lat")], landmarks),
}
HELD: dict[str, set[str] | str] = {
    "half lost": {"lost"},
    "tail cut": {"lost"},
    "header only": "the file has a header but no record",
    "0 bytes": "the file has nothing in it",
    "a block doubled": "are bad, 1% are allowed; most often: key: the same row again",
    "keys prefixed": {"keys", "lost", "new"},
    "keys renumbered": {"keys", "lost", "new"},
    "coordinates swapped": {"swapped", "moved"},
    "degrees to radians": {"scale", "moved"},
    "km to miles": {"scale", "moved"},
    "sign": {"sign", "moved"},
    "digits added": {"format", "moved"},
    "a column shifted": {"moved"},
}
"""Of each accident: the checks that hold the snapshot, or why it is refused before the guard looks at it."""
OTHERWISE: dict[tuple[str, str], set[str] | str] = {
    ("navaids", "coordinates swapped"): "are bad, 1% are allowed; most often: latitude_deg: below -90",
    ("landmarks", "keys renumbered"): {"keys", "lost", "new", "moved"},
    # many frequencies are in use at many airports, so most records have that of another one
    ("frequencies", "a column shifted"): {"keys", "moved"},
}
SENTENCES = {
    "half lost": "5,510 of 11,020 records of run 2023-05-01 are missing in 2023-06-01.csv "
    "(50%, 5% are allowed); "
    'mend the source, or if that is right, run again with {"accept": ["lost"]}',
    "sign": "longitude_deg has the other sign in 10,000 of 10,000 moved records (100%, 90% are allowed); "
    "held as well: moved 100%; mend the source, or if that is right, "
    'run again with {"accept": ["sign", "moved"]}',
}
"""Whole sentences, of navaids."""


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Job, list[Snapshot]]]:
    """Of a set: a job whose lake has a run of last year and the run before, and the three snapshots."""

    @cache
    def make(name: str) -> tuple[Job, list[Snapshot]]:
        columns, read = SETS[name]
        job = new_job(tmp_path_factory.mktemp(name), columns, max_quarantine_share=0.01)
        snapshots = read()
        with reading_here():
            for run, snapshot in zip((LAST_YEAR, BEFORE), snapshots, strict=False):
                write(job, run, snapshot.text())
                ingest.run(replace(job, run=run))
        return job, snapshots

    return make


@pytest.fixture
def before(
    two_runs: Callable[[str], tuple[Job, list[Snapshot]]], tmp_path: Path, name: str
) -> tuple[Job, list[Snapshot]]:
    """The same, to be changed: the job of the next run on a copy of the lake."""
    job, snapshots = two_runs(name)
    return replace(copy_of(job, tmp_path / "copy"), run=NOW), snapshots


def versions(job: Job) -> dict[str, int]:
    tables = ("snapshots", "digests", "points")
    return {table: DeltaTable(job.lake.location(table)).version() for table in tables}


def accidents() -> Iterator[Any]:
    """Every accident on one set, and where it is judged otherwise; on the others in long tests."""
    for number, accident in enumerate(ACCIDENTS):
        # frequencies have one coordinate
        sets = [name for name in SETS if (name, accident) != ("frequencies", "coordinates swapped")]
        home = "navaids" if accident in SENTENCES else sets[number % len(sets)]
        for name in sets:
            is_short = name == home or (name, accident) in OTHERWISE
            yield pytest.param(name, accident, marks=[pytest.mark.long] * (not is_short))


@pytest.mark.parametrize(("name", "accident"), list(accidents()))
def test_guard__holds_an_accident_until_it_is_accepted(
    here: None, before: tuple[Job, list[Snapshot]], name: str, accident: str
) -> None:
    job, (_, _, good) = before
    then = versions(job)
    write(job, NOW, ACCIDENTS[accident](good))
    with pytest.raises(DataRefusedError) as refused:
        ingest.run(job)
    assert versions(job) == then, "nothing else is touched"
    expected = OTHERWISE.get((name, accident), HELD[accident])
    if isinstance(expected, str):
        assert expected in str(refused.value)
        assert not has_slice(job.lake, "guard", NOW)
        return
    assert verdicts(job, NOW, "held") == expected
    assert refusals.read(job.lake, NOW) == str(refused.value)
    if name == "navaids" and accident in SENTENCES:
        assert str(refused.value) == SENTENCES[accident]
    first = findings(job, NOW)
    assert {row["against"] for row in first.values()} == {BEFORE}
    assert set(first) == set(CHECKS)

    one = sorted(expected)[0]
    if len(expected) > 1:
        with pytest.raises(DataRefusedError, match=" are allowed"):
            ingest.run(accepting(job, one))
        assert verdicts(job, NOW, "accepted") == {one}
        assert verdicts(job, NOW, "held") == expected - {one}
    ingest.run(accepting(job, *expected))
    assert verdicts(job, NOW, "accepted") == expected
    assert not verdicts(job, NOW, "held")
    assert refusals.read(job.lake, NOW) == ""
    assert {check: row["observed"] for check, row in findings(job, NOW).items()} == {
        check: row["observed"] for check, row in first.items()
    }, "the run is compared with the same earlier run, whatever it held itself"


@pytest.mark.parametrize("name", SETS)
def test_guard__warns_of_a_file_of_last_year(
    here: None, before: tuple[Job, list[Snapshot]], name: str
) -> None:
    job, (old, _, good) = before
    write(job, NOW, old.text())
    ingest.run(job)
    stale = findings(job, NOW)["stale"]
    assert (stale["verdict"], stale["observed"]) == ("warned", 1.0)
    assert stale["words"] == (
        f"2023-06-01.csv is the file of run {LAST_YEAR}, byte by byte, and run {BEFORE} had another"
    )
    write(job, NOW, (job.project / f"{BEFORE}.csv").read_text())
    ingest.run(job)
    assert findings(job, NOW)["stale"]["verdict"] == "ok", "nothing has changed since the run before"
    write(job, NOW, good.text())
    ingest.run(job)
    assert {row["verdict"] for row in findings(job, NOW).values()} == {"ok"}


@pytest.mark.parametrize("name", SETS)
def test_guard__the_next_good_snapshot_after_a_held_one_is_compared_with_the_last_that_came_in(
    here: None, before: tuple[Job, list[Snapshot]], name: str
) -> None:
    job, (_, _, good) = before
    write(job, NOW, ACCIDENTS["half lost"](good))
    with pytest.raises(DataRefusedError):
        ingest.run(job)
    write(job, NEXT, good.text())
    ingest.run(replace(job, run=NEXT))
    found = findings(job, NEXT)
    assert {row["against"] for row in found.values()} == {BEFORE}
    assert found["new"]["observed"] < 0.01, "no mass of records is new"
    assert {row["verdict"] for row in found.values()} == {"ok"}
