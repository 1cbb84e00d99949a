"""The digests of points: equal where the rows are, whatever decides which rows there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsjoin.errors import TableError
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.params import RunParams
from epsjoin.spark.digests import key_of, to_digests
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from tests.spark.conftest import JobMaker
from tests.tiny import RUN, coordinate, key

COLUMNS = [
    key(),
    coordinate("x"),
    {"name": "y", "logicalType": "integer", "required": True, "role": "coordinate"},
    {"name": "name", "logicalType": "string"},
    {"name": "since", "logicalType": "timestamp"},
]
HEADER = "id,x,y,name,since"
LATER = "2023-07-01"


def write(folder: Path, run: str, lines: list[str]) -> None:
    (folder / f"{run}.csv").write_text("\n".join([HEADER, *lines]) + "\n")


def digests_of(job: Job, run: str = RUN) -> dict[int, tuple[tuple[int, ...], tuple[int, ...]]]:
    rows = slices.read_slice(job.lake, Fingerprints(job.lake, run).slice("digests"))
    found = to_digests(rows)
    pairs = zip(found.records.tolist(), found.places.tolist(), strict=True)
    return dict(zip(found.ids.tolist(), ((tuple(r), tuple(p)) for r, p in pairs), strict=True))


def values_of(job: Job, run: str) -> dict[int, tuple[tuple[Any, ...], tuple[float, int]]]:
    rows = slices.read_slice(job.lake, Slice("points", run)).to_pylist()
    return {r["id"]: ((r["x"], r["y"], r["name"], r["since"]), (r["x"], r["y"])) for r in rows}


@pytest.fixture
def job(make_job: JobMaker) -> Job:
    return make_job(COLUMNS, path="{date}.csv", interval="month")


def test_digests__are_equal_where_the_values_are(job: Job, tmp_path: Path) -> None:
    """Two runs, of which the second has other places, other names, and the same rows written otherwise."""
    rng = np.random.default_rng(1)
    times = ["", "2023-01-01T00:00:00Z", "2023-01-01T00:00:00.5+01:00"]
    for run in (RUN, LATER):
        write(
            tmp_path,
            run,
            [
                f"{i},{('1.50', '1.5', '0', '-0.0')[rng.integers(4)]},{rng.integers(2)},"
                f"{('', 'a', 'ä')[rng.integers(3)]},{times[rng.integers(3)]}"
                for i in rng.permutation(200)
            ],
        )
        ingest.run(replace(job, run=run, params=RunParams(accept=("keys", "moved"))))
    before, now = (digests_of(job, run) for run in (RUN, LATER))
    was, is_ = (values_of(job, run) for run in (RUN, LATER))
    assert before.keys() == now.keys() == was.keys() == is_.keys() == set(range(200))
    same = [[before[i][part] == now[i][part] for i in range(200)] for part in (0, 1)]
    assert same == [[was[i][part] == is_[i][part] for i in range(200)] for part in (0, 1)]
    assert all(0 < sum(each) < 200 for each in same), "both kinds were there"
    assert len({record for record, _ in now.values()}) == 200, "the id is a value of the row"


def test_digests__have_the_fingerprint_of_the_points(job: Job, tmp_path: Path) -> None:
    write(tmp_path, RUN, ["1,0,0,a,"])
    ingest.run(job)
    fingerprints = {
        file.path.rpartition("/")[2][:17]
        for table in ("points", "digests")
        for file in slices.files_of(job.lake, Slice(table, RUN))
    }
    assert len(fingerprints) == 1


def test_digests__of_a_source_without_key_are_an_empty_slice(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job([coordinate("x")], path="snapshot.csv")
    (tmp_path / "snapshot.csv").write_text("x\n1\n2\n")
    ingest.run(job)
    assert slices.count_rows(job.lake, Fingerprints(job.lake, RUN).slice("digests")) == 0


def test_places__stay_when_the_contract_says_something_else_and_records_when_the_columns_stay(
    job: Job, tmp_path: Path
) -> None:
    write(tmp_path, RUN, ["1,0.5,3,a,", "2,0.25,4,b,"])
    ingest.run(job)
    first = digests_of(job)
    source = job.lake.source
    ranges = tuple(replace(c, minimum=-9.0) if c.name == "x" else c for c in source.columns)
    ingest.run(replace(job, lake=replace(job.lake, source=replace(source, columns=ranges, where="x > 0"))))
    assert digests_of(job) == first
    fewer = replace(source, columns=source.columns[:-1])
    assert key_of(fewer) != key_of(source)
    assert key_of(replace(source, key=("name",))) != key_of(source)
    as_text = tuple(replace(c, type="string") if c.name == "since" else c for c in source.columns)
    assert key_of(replace(source, columns=as_text)) != key_of(source)


def test_to_digests__refuses_what_is_no_digest(job: Job, tmp_path: Path) -> None:
    rows = slices.table_of(job.lake, "digests", [{"id": 1, "record": b"x" * 16, "place": b"y" * 15}])
    with pytest.raises(TableError, match="a digest is not 16 bytes long; run ingest again"):
        to_digests(rows)
