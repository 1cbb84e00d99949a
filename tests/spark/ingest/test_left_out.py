"""What a contract leaves out is counted and shown, and weakens no guard against a broken snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epsjoin.errors import DataRefusedError
from epsjoin.params import RunParams
from epsjoin.source.sampling import sample_files
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from tests.spark.conftest import JobMaker
from tests.spark.ingest.ingested import rows
from tests.tiny import coordinate, has_slice, key

N = 900
"""Records of a snapshot; two thirds have no position."""

NEXT = "2023-07-01"


def optional(name: str, role: str) -> dict[str, Any]:
    return coordinate(name, role) | {"required": False}


COLUMNS = [
    key(),
    optional("lat", "latitude"),
    optional("lon", "longitude"),
    {"name": "kind", "logicalType": "string"},
]


def lines_of(n: int = N) -> list[str]:
    """A header and records of which every third has a position."""
    places = ["," if i % 3 else f"{i % 80}.5,{i % 170}.25" for i in range(n)]
    return ["id,lat,lon,kind", *(f"{i},{place},{'ab'[i % 2]}" for i, place in enumerate(places))]


def write(folder: Path, run: str, lines: list[str]) -> None:
    (folder / f"{run}.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def job(make_job: JobMaker, tmp_path: Path) -> Job:
    """A job of the run after one that went well."""
    job = make_job(COLUMNS, path="{date}.csv", interval="month", max_quarantine_share=0.01)
    write(tmp_path, job.run, lines_of())
    ingest.run(job)
    return replace(job, run=NEXT)


def test_ingest__counts_what_is_left_out_and_refuses_none_of_it(
    make_job: JobMaker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = make_job(
        COLUMNS, path="{date}.csv", interval="month", where="kind = 'a'", max_quarantine_share=0.01
    )
    write(tmp_path, job.run, [*lines_of(), "9000,91,0,a", "9001,,91,b"])
    counters = ingest.run(job)
    assert (counters["rows_read"], counters["rows_ok"]) == (N + 2, N // 6)
    assert (counters["rows_left_out"], counters["rows_quarantined"]) == (N - N // 6 + 1, 1)
    (snapshot,) = rows(job, "snapshots")
    condition = "`lat` IS NOT NULL AND `lon` IS NOT NULL AND (kind = 'a')"
    assert (snapshot["rows_left_out"], snapshot["taken_where"]) == (N - N // 6 + 1, condition)
    assert [row["reason"] for row in rows(job, "quarantine")] == ["lat: above 90: '91'"]
    said = "902 rows read, 150 kept, 1 quarantined, 751 (83.3%) left out, for which this is not true: "
    assert said + condition in capsys.readouterr().out


def test_ingest__says_none_of_a_fraction_where_nothing_is_left_out(
    make_job: JobMaker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = make_job(COLUMNS, path="{date}.csv", interval="month", where="kind = 'a'")
    write(tmp_path, job.run, [*lines_of()[:1], "1,2,3,a", "2,3,4,a"])
    assert ingest.run(job)["rows_left_out"] == 0
    assert "quarantined, 0 left out, for which this is not true: " in capsys.readouterr().out


def test_ingest__and_estimate_leave_the_same_records_out(job: Job, tmp_path: Path) -> None:
    write(tmp_path, NEXT, [*lines_of(), "9000,,0,a", "9001,x,0,b", "9002, ,0,b"])
    counters = ingest.run(job)
    sampled = sample_files([tmp_path / f"{NEXT}.csv"], ["lat", "lon"], 10_000)
    assert sampled[:3] == (counters["rows_ok"], counters["rows_left_out"], counters["rows_quarantined"])


def test_ingest__a_record_without_a_required_coordinate_is_bad(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job(
        [key(), coordinate("lat"), coordinate("lon")], path="{date}.csv", max_quarantine_share=0.01
    )
    write(tmp_path, job.run, lines_of())
    with pytest.raises(DataRefusedError, match=r"600 of 900 rows \(66.7%\) are bad, 1% are allowed; most of"):
        ingest.run(job)


def blanked(lines: list[str]) -> list[str]:
    """8 % of all positions are gone."""
    header, *records = lines
    placed = [i for i, record in enumerate(records) if ",," not in record]
    gone = set(placed[:: len(placed) // (len(placed) * 8 // 100)])
    return [header, *(f"{i},,,a" if i in gone else record for i, record in enumerate(records))]


BROKEN: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "8 % of the positions blanked": (
        blanked,
        r"^69.4% of the records are left out, in run 2023-06-01 66.7%: a difference "
        r"\(2.78%, 1% are allowed\); held as well: lost 8.33%",
    ),
    "no position at all": (
        lambda lines: [lines[0], *(f"{i},,,a" for i in range(N))],
        "no row is left: of 900, 0 are in quarantine and 900 left out",
    ),
    "swapped headers": (
        lambda lines: [lines[0].replace("lat,lon", "lon,lat"), *lines[1:]],
        r"134 of 300 rows \(44.7%\) are bad, beside 600 that are left out, 1% are allowed; most of",
    ),
    "positions that are texts": (
        lambda lines: [line.replace(".5", "°") for line in lines],
        r"of 300 rows \(.*\) are bad, beside 600 that are left out, .* most often: lat: not a number",
    ),
    "half a file": (
        lambda lines: lines[: N // 2],
        r"150 of 300 records of run 2023-06-01 are missing in 2023-07-01.csv \(50%, 5% are allowed\)",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_ingest__refuses_a_snapshot_that_is_broken_although_much_is_left_out(
    job: Job, tmp_path: Path, what: str
) -> None:
    change, sentence = BROKEN[what]
    write(tmp_path, NEXT, change(lines_of()))
    with pytest.raises(DataRefusedError, match=sentence):
        ingest.run(job)
    assert not has_slice(job.lake, "snapshots", NEXT)
    write(tmp_path, NEXT, lines_of())
    assert ingest.run(job)["rows_ok"] == N // 3, "the right file is taken after it"


def test_ingest__refuses_a_snapshot_that_is_cut_off_in_a_record(job: Job, tmp_path: Path) -> None:
    (tmp_path / f"{NEXT}.csv").write_text("\n".join(lines_of())[:-4])
    with pytest.raises(DataRefusedError, match=r"line 901: the file ends within this record \(1 of 4 fields"):
        ingest.run(job)


def test_ingest__compares_what_is_left_out_with_the_run_before_and_no_other(job: Job, tmp_path: Path) -> None:
    far = "2023-09-01"
    write(tmp_path, far, [line.replace(",,,", ",1,1,") for line in lines_of()])
    guard = {**job.lake.source.guard, "new": None}
    job = replace(job, lake=replace(job.lake, source=replace(job.lake.source, guard=guard)))
    with pytest.raises(DataRefusedError, match="^0% of the records are left out, in run 2023-06-01 66.7%"):
        ingest.run(replace(job, run=far))
    ingest.run(replace(job, run=far, params=RunParams(accept=("left_out",))))
    write(tmp_path, NEXT, lines_of())
    ingest.run(job)  # filled in: the later run is not looked at
    with pytest.raises(DataRefusedError, match="^0% of the records are left out, in run 2023-07-01 66.7%"):
        ingest.run(replace(job, run=far))


def test_ingest__does_not_compare_what_is_left_out_by_another_condition(job: Job, tmp_path: Path) -> None:
    """What the new condition leaves out is lost, which a person accepts."""
    write(tmp_path, NEXT, lines_of())
    source = replace(job.lake.source, where="kind = 'a'")
    job = replace(job, lake=replace(job.lake, source=source))
    with pytest.raises(DataRefusedError, match=r'^150 of 300 records .* are missing .*"accept": \["lost"\]'):
        ingest.run(job)
    ingest.run(replace(job, params=RunParams(accept=("lost",))))
    assert rows(job, "snapshots")[0]["rows_left_out"] == N - N // 6
    (left_out,) = (row for row in rows(job, "guard") if row["check"] == "left_out")
    assert (left_out["observed"], left_out["verdict"]) == (None, "ok")
