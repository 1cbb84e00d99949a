"""What runs found over time: from stored tables to a table of text and a picture."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.dates import date2num
from matplotlib.image import imread

from epsjoin.commands import cli, trend
from epsjoin.commands.trend import RunResult, draw, read_runs
from epsjoin.lake.lake import Lake
from epsjoin.report.figures.figure import to_png
from tests.stored_runs import new_lake, row, write, write_run

RUNS = {"2022-03-01": (5, 3, 2, 20.0), "2021-12-01": (4, 2, 1, 19.5), "2022-04-01": (3, 0, 0, 21.25)}
FOUND = [RunResult(date.fromisoformat(run), *RUNS[run]) for run in sorted(RUNS)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = new_lake(tmp_path)
    for run, numbers in RUNS.items():
        write_run(lake, run, *numbers)
    return lake


def test_read_runs__has_every_run_once_the_oldest_first(lake: Lake) -> None:
    assert read_runs(lake) == FOUND


def test_read_runs__leaves_out_a_run_whose_tables_do_not_belong_together(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    run = "2022-03-01"
    write(lake, "points", run, [row(lake, "points", id=9, run=run)])
    assert read_runs(lake) == [found for found in FOUND if found.run != date(2022, 3, 1)]
    assert "trend: run 2022-03-01 is left out: epsilon of run 2022-03-01 was made from other tables" in (
        capsys.readouterr().out
    )


def test_trend__prints_the_runs_and_writes_the_picture(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["trend", "--lake", str(tmp_path / "lake"), "--dataset", "navaids"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[0] == ["Navigation", "aids", "of", "the", "world,", "3", "runs"]
    assert lines[2:-1] == [
        ["2021-12-01", "4", "2", "1", "–", "–", "19.5"],
        ["2022-03-01", "5", "3", "2", "–", "–", "20"],
        ["2022-04-01", "3", "0", "0", "–", "–", "21.25"],
    ]
    picture = tmp_path / "lake" / "navaids" / "reports" / "trend.png"
    assert lines[-1] == ["picture", str(picture)]
    assert np.ptp(imread(picture)) > 0.5


def test_trend__of_distances_without_a_unit_keeps_its_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = new_lake(tmp_path)
    write_run(lake, "2022-03-01", *RUNS["2022-03-01"])
    monkeypatch.setattr(trend, "open_stored", lambda _: replace(lake, source=replace(lake.source, unit="")))
    assert cli.main(["trend", "--lake", str(tmp_path / "lake"), "--dataset", "navaids"]) == 0
    _, _, _, heads, run, *_ = capsys.readouterr().out.splitlines()
    assert heads.endswith("  eps")
    assert len(heads) == len(run)


@pytest.mark.parametrize("place", [".", "nowhere/trend.png"])
def test_trend__refuses_a_picture_that_cannot_be_written_before_it_reads_a_run(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    picture = tmp_path / place
    of = ["--lake", lake.uri, "--dataset", "navaids"]
    assert cli.main(["trend", *of, "--picture", str(picture)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    told = f"--picture: {picture} cannot be written; name a file in a folder of this user's"
    assert said.err == f"epsjoin trend: {told}\n"


def test_trend__writes_the_picture_where_it_is_asked_to_and_nothing_into_the_lake(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = tmp_path / "mine.png"
    of = ["--lake", str(tmp_path / "lake"), "--dataset", "navaids"]
    assert cli.main(["trend", *of, "--picture", str(picture)]) == 0
    assert capsys.readouterr().out.rstrip().endswith(f"picture     {picture}")
    assert np.ptp(imread(picture)) > 0.5
    assert not (tmp_path / "lake" / "navaids" / "reports").exists()

    def fill(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    assert cli.main(["trend", *of, "--picture", str(picture)]) == 1
    assert f"{picture} cannot be written ([Errno 28] No space" in capsys.readouterr().err


def test_trend__of_a_data_set_without_runs_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["trend", "--lake", str(tmp_path), "--dataset", "navaids"]) == 3
    assert "navaids has no finished run" in capsys.readouterr().err


def test_trend__of_runs_that_cannot_be_read_does_not_say_that_there_are_none(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    for found in FOUND:
        run = f"{found.run}"
        write(lake, "points", run, [row(lake, "points", id=9, run=run)])
    given = ["--lake", lake.uri, "--dataset", lake.source.name, "--contracts", str(lake.contracts)]
    assert cli.main(["trend", *given]) == 3
    assert f"no run of {lake.source.name} can be shown, for the reasons above" in capsys.readouterr().err


def test_picture__shows_every_run_at_its_date_and_its_value() -> None:
    fig = draw(FOUND, "Somewhere $x$", "km")
    assert [ax.get_title("left") for ax in fig.axes] == ["points", "pairs", "clusters", "eps, km"]
    for ax, name in zip(fig.axes, ("points", "pairs", "clusters", "eps"), strict=True):
        (line,) = ax.lines
        assert list(line.get_xdata(orig=True)) == [found.run for found in FOUND]
        assert list(line.get_ydata(orig=True)) == [getattr(found, name) for found in FOUND]


@pytest.mark.parametrize("others", [(), ("0001-01-02",), ("0003-06-01",), ("9998-12-31",)])
def test_picture__of_the_first_and_last_days_that_there_are_is_drawn(others: tuple[str, ...]) -> None:
    """No date is before the year 1, where a margin would begin."""
    runs = [RunResult(date.fromisoformat(run), 5, 3, 2, 20.0, 1, 0) for run in ("0001-01-01", *others)]
    fig = draw(runs, "Somewhere", "km")
    assert np.ptp(imread(BytesIO(to_png(fig)))) > 0.5
    for ax in fig.axes:
        begin, end = ax.get_xlim()
        assert begin <= date2num(runs[0].run) <= date2num(runs[-1].run) < end


def compare(lake: Lake, run: str, against: str | None, *events: tuple[str, int, bool]) -> None:
    """Store what the job compare finds: events with a name, and whether it ended."""
    write(
        lake,
        "cluster_flows",
        run,
        [{**row(lake, "cluster_flows", run=run), "against": against, "cluster_before": against and 1}],
    )
    write(lake, "cluster_names", run, [])
    rows = [
        {
            **row(lake, "cluster_events", event=event, name=name, ends=ends, run=run),
            "other": 1 if event.startswith("split") else None,
        }
        for event, name, ends in events
    ]
    write(lake, "cluster_events", run, rows)


def test_read_runs__counts_names_that_began_and_ended(lake: Lake) -> None:
    first, second, third = sorted(RUNS)
    compare(lake, first, None)
    compare(lake, second, first, ("born", 7, False), ("split_off", 8, False), ("split", 9, True))
    assert [(found.born, found.ended) for found in read_runs(lake)] == [(None, None), (2, 1), (None, None)]
    compare(lake, third, second, ("split", 7, True), ("split", 7, True), ("grown", 8, False))
    assert [(found.born, found.ended) for found in read_runs(lake)][-1] == (0, 1), "a name ends once"


def test_read_runs__does_not_count_names_since_a_run_that_was_replaced(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, _ = sorted(RUNS)
    compare(lake, first, None)
    compare(lake, second, first, ("born", 7, False))
    write_run(lake, first, *RUNS[first])
    assert [(found.run.isoformat(), found.born, found.ended) for found in read_runs(lake)][:2] == [
        (first, None, None),
        (second, None, None),
    ]
    assert (
        f"trend: what was born and ended with run {second} is left out: cluster_flows of run {second} was"
        in (capsys.readouterr().out)
    )


def test_picture__shows_births_above_and_ends_below() -> None:
    numbers = [(None, None), (2, 1), (0, 3)]
    fig = draw(
        [found._replace(born=b, ended=e) for found, (b, e) in zip(FOUND, numbers, strict=True)], "", ""
    )
    (ax,) = (ax for ax in fig.axes if ax.get_title("left") == "clusters born (up) and ended (down)")
    assert [[bar.get_height() for bar in bars] for bars in ax.containers] == [[2, 0], [-1, -3]]
    fig.canvas.draw()
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert "3" in shown
    assert not any("-" in text or "−" in text for text in shown)


def test_picture__of_runs_without_a_birth_or_an_end_has_a_line() -> None:
    fig = draw([found._replace(born=0, ended=0) for found in FOUND], "", "")
    ax = fig.axes[3]
    assert ax.get_ylim() == (-1, 1)


def test_picture__of_one_run_can_be_drawn() -> None:
    fig = draw(FOUND[:1], "Somewhere", "")
    fig.canvas.draw()
    assert fig.axes[-1].get_title("left") == "eps"
