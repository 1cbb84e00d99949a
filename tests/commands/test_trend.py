"""What runs found over time: from stored tables to a table of text and a picture."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from epsjoin.commands import cli
from epsjoin.commands.trend import RunResult, draw, read_runs
from epsjoin.contracts.odcs import load_source
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice

CONTRACTS = Path(__file__).resolve().parents[2] / "data_contracts"
RUNS = {"2022-03-01": (5, 3, 2, 20.0), "2021-12-01": (4, 2, 1, 19.5), "2022-04-01": (3, 0, 0, 21.25)}
FOUND = [RunResult(date.fromisoformat(run), *RUNS[run]) for run in sorted(RUNS)]


def row(lake: Lake, table: str, **values: Any) -> dict[str, Any]:
    """A row of a table in which all columns have a value."""
    kinds = {"string": "x", "double": 0.5, "int64": 1, "bool": True, "int32": 1, "binary": b"x"}
    return {field.name: kinds.get(str(field.type)) for field in lake.schema(table)} | values


def write(lake: Lake, table: str, run: str, rows: list[dict[str, Any]]) -> None:
    slices.write_slice(lake, Fingerprints(lake, run).slice(table), slices.table_of(lake, table, rows))


def write_run(lake: Lake, run: str, points: int, pairs: int, clusters: int, eps: float) -> None:
    rows = [row(lake, "points", id=i, run=run) for i in range(points)]
    slices.write_slice(lake, Slice("points", run), slices.table_of(lake, "points", rows))
    write(lake, "epsilon", run, [row(lake, "epsilon", eps=eps, method="given", run=run)])
    write(lake, "join_plan", run, [row(lake, "join_plan", eps=eps, kind="planned", plan="{}", run=run)])
    write(lake, "pairs", run, [row(lake, "pairs", left_id=0, run=run)] * pairs)
    members = [row(lake, "clusters", id=i, cluster_id=i, role="core", run=run) for i in range(clusters)]
    members += [
        row(lake, "clusters", id=i, cluster_id=-1, role="noise", run=run) for i in range(clusters, points)
    ]
    write(lake, "clusters", run, members)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake((tmp_path / "lake").as_uri(), CONTRACTS, load_source(CONTRACTS, "navaids"))
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
        ["2021-12-01", "4", "2", "1", "19.5"],
        ["2022-03-01", "5", "3", "2", "20"],
        ["2022-04-01", "3", "0", "0", "21.25"],
    ]
    picture = tmp_path / "lake" / "navaids" / "reports" / "trend.png"
    assert lines[-1] == ["picture", str(picture)]
    assert np.ptp(imread(picture)) > 0.5


def test_trend__of_a_data_set_without_runs_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["trend", "--lake", str(tmp_path), "--dataset", "navaids"]) == 1
    assert "navaids has no finished run" in capsys.readouterr().err


def test_picture__shows_every_run_at_its_date_and_its_value() -> None:
    fig = draw(FOUND, "Somewhere $x$", "km")
    assert [ax.get_title("left") for ax in fig.axes] == ["points", "pairs", "clusters", "eps, km"]
    for ax, name in zip(fig.axes, ("points", "pairs", "clusters", "eps"), strict=True):
        (line,) = ax.lines
        assert list(line.get_xdata(orig=True)) == [found.run for found in FOUND]
        assert list(line.get_ydata(orig=True)) == [getattr(found, name) for found in FOUND]


def test_picture__of_one_run_can_be_drawn() -> None:
    fig = draw(FOUND[:1], "Somewhere", "")
    fig.canvas.draw()
    assert fig.axes[-1].get_title("left") == "eps"
