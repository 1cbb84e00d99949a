"""Jobs: one sentence and the right exit code, whatever happens."""

from __future__ import annotations

import gzip
import json
import logging
import os
import runpy
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from epsjoin.errors import BudgetError, TableError
from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job, Step, run_job
from tests.spark.conftest import REPO, JobMaker
from tests.tiny import RUN, coordinate, has_slice, key

GOOD = "id,x\n" + "".join(f"{i},{i}.5\n" for i in range(10))
BAD = "id,x\n" + "".join(f"{i},{'?' if i < 3 else i}\n" for i in range(10))


@pytest.fixture
def job(make_job: JobMaker) -> Job:
    return make_job(
        [key(), coordinate("x")], path="{date}.csv.gz", interval="month", max_quarantine_share=0.1
    )


def run(job: Job, step: Step = ingest.run, *more: str) -> int:
    arguments = [
        "--lake",
        job.lake.uri,
        "--dataset",
        "tiny",
        "--run",
        RUN,
        "--contracts",
        str(job.lake.contracts),
    ]
    return run_job("ingest", step, [*arguments, *more])


def put(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "2023-06-04.csv.gz").write_bytes(content)


def test_run_job__ends_with_0_and_its_counters(job: Job, tmp_path: Path) -> None:
    put(tmp_path, gzip.compress(GOOD.encode()))
    assert run(job, ingest.run, "--metrics-out", str(tmp_path / "metrics.json")) == 0
    counters = json.loads((tmp_path / "metrics.json").read_text())
    assert (counters["rows_read"], counters["rows_ok"]) == (10, 10)
    table = {
        row["counter"]: row["value"]
        for row in slices.read_slice(job.lake, Slice("job_metrics", RUN)).to_pylist()
    }
    assert table == counters


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a device that is always full")
def test_run_job__names_the_file_of_counters_that_has_no_room(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, gzip.compress(GOOD.encode()))
    file = tmp_path / "metrics.json"
    file.symlink_to("/dev/full")
    assert run(job, ingest.run, "--metrics-out", str(file)) == 1
    said = f"ingest: --metrics-out: {file} cannot be written ([Errno 28] No space left on device); make room"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("turned_into", [None, OSError, TableError])
def test_run_job__that_is_interrupted_ends_with_130_and_one_sentence(
    job: Job, capfd: pytest.CaptureFixture[str], turned_into: type[Exception] | None
) -> None:
    """Py4J's tidying up may raise something else, and a step may make a sentence of that."""

    def step(job: Job) -> dict[str, float]:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            if turned_into is None:
                raise
            raise turned_into("the socket is closed") from None
        return {}

    before = signal.getsignal(signal.SIGINT)
    try:
        assert run(job, step) == 130
        os.kill(os.getpid(), signal.SIGINT)  # it ends already
    finally:
        signal.signal(signal.SIGINT, before)
        logging.disable(logging.NOTSET)
    assert capfd.readouterr().err == "ingest: interrupted; the same command again makes the run anew\n"


@pytest.mark.parametrize("starts_session", [True, False])
def test_run_job__starts_the_session_before_the_step_or_when_it_is_needed(
    job: Job, monkeypatch: pytest.MonkeyPatch, starts_session: bool
) -> None:
    started = []
    monkeypatch.setattr("epsjoin.spark.job.job.get_session", started.append)

    def step(job: Job) -> dict[str, float]:
        before = len(started)
        assert job.spark is None
        return {"before": before, "after": len(started)}

    arguments = ["--lake", job.lake.uri, "--dataset", "tiny", "--run", RUN]
    contracts = ["--contracts", str(job.lake.contracts)]
    assert run_job("report", step, [*arguments, *contracts], starts_session=starts_session) == 0
    stored = slices.read_counters(job.lake, RUN)["report"]
    assert (stored["before"], stored["after"]) == ((1, 2) if starts_session else (0, 1))
    assert set(started) == {f"tiny report {RUN}"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (gzip.compress(GOOD.encode(), mtime=0)[:-12], "2023-06-04.csv.gz: broken gzip after"),
        (b"", "2023-06-04.csv.gz: the file has nothing in it"),
        (gzip.compress(b"id,x\n", mtime=0), "the file has a header but no record"),
        (
            gzip.compress(GOOD.replace("x", "X", 1).encode(), mtime=0),
            "column 'x' is missing; the file has id, X",
        ),
        (
            gzip.compress(BAD.encode(), mtime=0),
            "3 of 10 rows (30%) are bad, 10% are allowed; most often: x: not a number",
        ),
    ],
)
def test_run_job__ends_with_3_when_the_data_is_refused(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, sentence: str
) -> None:
    put(tmp_path, content)
    assert run(job) == 3
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("ingest: ")
    assert sentence in last
    assert slices.count_rows(job.lake, Slice("quarantine", RUN)) > 0
    assert not has_slice(job.lake, "points", RUN)


def test_run_job__ends_with_5_when_there_is_nothing_to_do(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(job) == 5
    assert "nothing to do: no snapshot of tiny is dated 2023-06-01" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--params", '{"epsilon": 1}'], "unknown parameter 'epsilon'"),
        (["--params", '{"eps": -1}'], "eps must be a number above 0"),
        (["--run", "June"], "--run must be a date like 2023-06-01, not 'June'"),
        (["--dataset", "nothing"], "no contract"),
        (["--lake", "here"], "--lake must be a URI"),
        (
            ["--lake", f"{__file__}/lake"],
            f"--lake: {__file__} is a file, so {__file__}/lake/tiny cannot be a folder",
        ),
        (["--lake", __file__], f"--lake: {__file__} is a file"),
        (["--metrics-out", "/nowhere/x.json"], "--metrics-out: /nowhere/x.json cannot be written; name"),
        (["--run", "9999-01-01"], "--run must be a date before the year 9999"),
    ],
)
def test_run_job__ends_with_2_when_arguments_are_wrong(
    job: Job, capsys: pytest.CaptureFixture[str], more: list[str], sentence: str
) -> None:
    assert run(job, ingest.run, *more) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(("is_there", "code"), [(True, 2), (False, 1)])
def test_run_job__ends_before_a_session_where_it_may_not_write(
    job: Job,
    is_there: bool,
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A folder that is not there may be one of a disk that is mounted at the next try."""
    place = tmp_path / "lake" / "tiny"
    place = place if is_there else tmp_path
    place.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr("epsjoin.spark.job.job.get_session", lambda _: pytest.fail("a session"))
    monkeypatch.setattr("os.access", lambda where, _: where != place)  # a superuser may write everywhere
    assert run(job, ingest.run, "--lake", str(tmp_path / "lake")) == code
    last = capsys.readouterr().err.splitlines()[-1]
    assert (
        last == f"ingest: --lake: this user may not write in {place}; allow it there, or name another folder"
    )


def test_run_job__says_that_a_file_system_is_read_only(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Path(job.lake.uri.removeprefix("file://"))
    place.mkdir(exist_ok=True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert run(job) in (1, 2)
    assert f"ingest: --lake: the file system of {place}" in capsys.readouterr().err


@pytest.mark.parametrize("below", ["", "/more"])
def test_run_job__ends_before_a_session_where_a_link_leads_nowhere(
    job: Job,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    below: str,
) -> None:
    """As to a disk that is not mounted: the first write would fail after a minute of work."""
    link, disk = tmp_path / "lake", tmp_path / "disk"
    link.symlink_to(disk)
    monkeypatch.setattr("epsjoin.spark.job.job.get_session", lambda _: pytest.fail("a session"))
    assert run(job, ingest.run, "--lake", f"{link}{below}") == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"ingest: --lake: the link {link} leads to {disk}, where this user finds nothing; mount its disk, "
        "or make the folder"
    )


def test_run_job__ends_with_2_when_an_argument_is_missing() -> None:
    with pytest.raises(SystemExit) as ended:
        run_job("ingest", ingest.run, ["--dataset", "tiny"])
    assert ended.value.code == 2


def failing(job: Job) -> dict[str, float]:
    """A step that fails in a Spark task, as a broken machine does."""

    def fail(batches: object) -> object:
        raise TableError("a part file is broken")

    job.spark.range(1).mapInArrow(fail, "id long").collect()
    return {}


def refused(job: Job) -> dict[str, float]:
    raise BudgetError("too many pairs")


def forbidden(job: Job) -> dict[str, float]:
    raise PermissionError(13, "Permission denied", "/data/snapshot.csv")


def unanswered(job: Job) -> dict[str, float]:
    """As deltalake says it."""
    raise OSError("Kernel error -> Generic store error\n \x1b[31m↳\x1b[0m No NameNode hosts found")


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (forbidden, "ingest: [Errno 13] Permission denied: '/data/snapshot.csv'"),
        (unanswered, "ingest: Kernel error -> Generic store error: No NameNode hosts found"),
    ],
)
def test_run_job__of_a_file_that_cannot_be_opened_says_one_sentence(
    job: Job, capsys: pytest.CaptureFixture[str], step: Step, sentence: str
) -> None:
    assert run(job, step) == 1
    assert capsys.readouterr().err.strip() == sentence


@pytest.mark.parametrize(
    ("step", "code", "sentence"), [(failing, 1, "a part file is broken"), (refused, 4, "too many")]
)
def test_run_job__says_why_in_the_last_line(
    job: Job, capsys: pytest.CaptureFixture[str], step: Step, code: int, sentence: str
) -> None:
    assert run(job, step) == code
    (last,) = capsys.readouterr().err.strip().splitlines()  # and no trace of what was raised on purpose
    assert last.startswith("ingest: ")
    assert sentence in last


def test_run_job__of_an_error_that_nobody_has_foreseen_has_its_trace(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(batches: object) -> object:
        raise KeyError("x")

    def broken(job: Job) -> dict[str, float]:
        job.spark.range(1).mapInArrow(fail, "id long").collect()
        return {}

    assert run(job, broken) == 1
    first, *_, last = capsys.readouterr().err.strip().splitlines()
    assert (first, last) == ("Traceback (most recent call last):", "ingest: KeyError: 'x'")


JOBS = {file.stem: file for file in (REPO / "jobs").glob("*.py")}


@pytest.mark.parametrize("name", sorted(JOBS.keys() - {"rehearse", "verify"}))
def test_help__of_a_job_says_what_it_does_and_how_it_ends(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``verify`` has a help of its own, with a test; ``rehearse`` takes no arguments."""
    monkeypatch.setattr("sys.argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit, match="^0$"):
        runpy.run_path(str(JOBS[name]), run_name="__main__")
    said = " ".join(capsys.readouterr().out.split())
    (first,) = JOBS[name].read_text(encoding="utf-8").splitlines()[:1]
    what = first.removeprefix(f'"""spark-submit jobs/{name}.py: ').removesuffix('"""')
    assert f"{what[0].upper()}{what[1:]} options: " in said
    assert "Exit codes: 0 done;" in said
