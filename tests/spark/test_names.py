"""Names that come from data: none of them becomes a path, SQL, a page's code or a terminal's command."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from epsjoin.commands import show
from epsjoin.errors import TableError
from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.report.publish import publish
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job, run_job
from epsjoin.spark.rows import scan
from tests.spark.conftest import STEPS, JobMaker
from tests.tiny import RUN, coordinate, key

NASTY = (
    *("a..%2f..%2fx", "%2e%2e", "a b", "a'b", 'a"b', "a`b; DROP TABLE points", "a--", "${HOME}", "{date}"),
    *(
        "run=2023-06-02",
        "<script>alert(1)<script>",
        "ä\u202e",
        "a\nb",
        "\x1b[2J",
        "a\\b",
        "?x=1#y",
        "*",
        "-rf",
    ),
)
"""Names that a folder can hold and a header can say."""


@pytest.mark.parametrize(
    "run", ["../../x", "2023-06-01/../..", "2023-06-01' OR '1'='1", "", "2023-13-01", "2023-06-01\n", "run"]
)
def test_run_job__takes_no_run_that_is_no_date(
    make_job: JobMaker, tmp_path: Path, capsys: pytest.CaptureFixture[str], run: str
) -> None:
    job = make_job([key(), coordinate("x")])
    started: list[Job] = []

    def step(job: Job) -> dict[str, float]:
        started.append(job)
        return {}

    where = ["--lake", job.lake.uri, "--dataset", "tiny", "--contracts", str(job.lake.contracts)]
    assert run_job("ingest", step, [*where, "--run", run]) == 2
    assert "--run must be a date like 2023-06-01" in capsys.readouterr().err
    assert not started
    assert not (tmp_path / "lake").exists()


def test_ingest__reads_files_of_any_name(make_job: JobMaker, tmp_path: Path) -> None:
    folder = tmp_path / "snapshot"
    folder.mkdir()
    for number, name in enumerate(NASTY):
        (folder / f"{name}.csv").write_text(f"id,x\n{number},0.5\n", encoding="utf-8")
    job = make_job([key(), coordinate("x")], path="snapshot")
    assert ingest.run(job)["rows_ok"] == len(NASTY)
    snapshots = slices.read_slice(job.lake, Slice("snapshots", RUN))
    assert set(snapshots["source"].to_pylist()) == {f"snapshot/{name}.csv" for name in NASTY}
    written = {path.relative_to(tmp_path / "lake").parts[0] for path in (tmp_path / "lake").rglob("*")}
    assert written == {"tiny"}


def test_chain__shows_names_and_texts_and_does_nothing_else(
    make_job: JobMaker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # the coordinates are called as columns that the steps make themselves
    names = ["cluster_id", "degree", "lof"]
    header = ["id", *names, "name", "role", *NASTY]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for number in range(60):
        name = "\x1b[2J" if number == 59 else NASTY[number % len(NASTY)]
        writer.writerow([number, number % 7, number % 5 / 2, 40 if number == 59 else 0, name, name, *NASTY])
    (tmp_path / "snapshot.csv").write_text(text.getvalue(), encoding="utf-8")
    payload: list[dict[str, Any]] = [{"name": name, "logicalType": "string"} for name in ("name", "role")]
    job = make_job([key(), *map(coordinate, names), *payload], params={"eps": 1.0, "min_pts": 3})
    where = ["--lake", job.lake.uri, "--dataset", "tiny", "--contracts", str(job.lake.contracts)]
    assert run_job("ingest", ingest.run, [*where, "--run", RUN]) == 0
    for step in list(STEPS.values())[1:]:
        step(job)
    publish(job)
    columns = json.loads(slices.read_slice(job.lake, Slice("snapshots", RUN))["columns"][0].as_py())
    assert columns == header
    page = (tmp_path / "lake" / "tiny" / "reports" / f"run={RUN}" / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    capsys.readouterr()
    assert show.main([*where, "--run", RUN]) == 0
    said = capsys.readouterr().out
    assert r"59 \x1b[2J" in said, "the furthest out"
    assert all(line.isprintable() for line in said.split("\n"))


def test_read_small__of_a_run_that_is_a_path_finds_nothing(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job([key(), coordinate("x")])
    (tmp_path / "snapshot.csv").write_text("id,x\n1,0.5\n")
    ingest.run(job)
    for run in ("../2023-06-01", f"{RUN}/../run={RUN}", f"{RUN}' OR '1'='1"):
        with pytest.raises(TableError, match="has no slice of run"):
            slices.read_slice(job.lake, Slice("points", run))
        with pytest.raises(TableError, match="has no slice of run"):
            scan.read(job.spark, job.lake, Slice("points", run))
