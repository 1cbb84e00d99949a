"""A snapshot that the guard holds, by real jobs: exit code, sentence, tables, and how a person goes on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.spark.ingest.here import new_job, reading_here
from tests.tiny import RUN, coordinate, key

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from survival import chain

HELD, NEXT = "2023-07-01", "2023-08-01"
pytestmark = [pytest.mark.end_to_end, pytest.mark.long]


def submit(job: Job, run: str, params: str = "{}") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(str(chain.REPO / "bin" / "spark-submit"), "--master", "local[2]"),
            *(str(chain.REPO / "jobs" / "ingest.py"), "--lake", job.lake.uri, "--dataset", "tiny"),
            *("--run", run, "--params", params, "--contracts", str(job.lake.contracts)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def write(job: Job, run: str, n: int) -> None:
    rows = [f"{i},{i % 89}.5,{i % 97}.25" for i in range(n)]
    (job.project / f"{run}.csv").write_text("\n".join(["id,x,y", *rows]) + "\n")


def verdicts(job: Job, run: str) -> dict[str, tuple[str, str]]:
    found = slices.read_slice(job.lake, Slice("guard", run)).to_pylist()
    return {row["check"]: (row["verdict"], row["against"]) for row in found}


def test_ingest__of_a_held_snapshot_ends_with_its_sentence_until_it_is_accepted(tmp_path: Path) -> None:
    job = new_job(tmp_path, [key(), coordinate("x"), coordinate("y")])
    for run, n in ((RUN, 1000), (HELD, 400), (NEXT, 410)):
        write(job, run, n)
    with reading_here():
        ingest.run(job)
    lake = tmp_path / "lake"
    before = chain.content(lake, "tiny")

    done = submit(job, HELD)
    assert done.returncode == 3, done.stdout
    # spark-submit puts a driver's stderr on its own stdout
    accept = '{"accept": ["lost"]}'
    assert done.stdout.strip().splitlines()[-1] == (
        f"ingest: 600 of 1,000 records of run {RUN} are missing in {HELD}.csv (60%, 5% are allowed); "
        f"mend the source, or if that is right, run again with {accept}"
    )
    after = chain.content(lake, "tiny")
    assert {place for place in after if before.get(place) != after[place]} == {
        ("guard", HELD),
        ("quarantine", HELD),
    }
    assert verdicts(job, HELD)["lost"] == ("held", RUN)

    done = submit(job, HELD, accept)
    assert done.returncode == 0, done.stdout
    assert "ingest: accepted: lost: 600 of 1,000" in done.stdout
    assert verdicts(job, HELD)["lost"] == ("accepted", RUN)

    done = submit(job, NEXT)
    assert done.returncode == 0, done.stdout
    assert set(verdicts(job, NEXT).values()) == {("ok", HELD)}
    assert slices.count_rows(job.lake, Slice("points", NEXT)) == 410
