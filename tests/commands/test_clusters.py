"""The clusters of all runs by their names, from stored tables and without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsjoin.commands import cli
from epsjoin.commands import clusters as command
from epsjoin.commands.history import find_id
from epsjoin.commands.runs import texts_of
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake, Slice
from epsjoin.spark.points.hashes import hash_ids
from epsjoin.spark.report import members
from oracles.deviations import z_score
from tests.stored_runs import new_lake, row, write, write_run

RUNS = ("2022-03-01", "2022-04-01", "2022-05-01")


NOTHING = dict.fromkeys(["stayed", "from_clusters", "from_noise", "to_clusters", "to_noise", "deleted"], 0)


def name_clusters(lake: Lake, run: str, names: list[dict[str, int]], *events: tuple[Any, ...]) -> None:
    """Store names and events of a run; what a cluster's row does not say is 0, or all of it."""
    write(lake, "cluster_flows", run, [row(lake, "cluster_flows", run=run)])
    known = {"first_run": RUNS[0], "core": 1, "runs": 1, **NOTHING}
    rows = [{**known, "inserted": each["size"], **each} for each in names]
    write(lake, "cluster_names", run, rows)
    keys = ("event", "name", "other", "members", "ends")
    happened = [{**dict(zip(keys, event, strict=True)), "against": RUNS[0]} for event in events]
    write(lake, "cluster_events", run, happened)


def cluster(id_: int, name: int, size: int, **more: int) -> dict[str, int]:
    return {"cluster_id": id_, "name": name, "size": size, **more}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Clusters 4 and 7; 7 merges into 4, which then loses its smallest core point and a record."""
    lake = new_lake(tmp_path)
    for run in RUNS:
        write_run(lake, run, points=60, pairs=3, clusters=8, eps=20.0)
    name_clusters(lake, RUNS[0], [cluster(4, 4, 30), cluster(7, 7, 1200)])
    merged = cluster(4, 4, 1225, runs=2, stayed=30, inserted=0, from_clusters=1195)
    events = ("merged", 7, 4, 1195, True), ("grown", 4, None, 1195, False)
    name_clusters(lake, RUNS[1], [merged], *events)
    name_clusters(lake, RUNS[2], [cluster(5, 4, 1224, runs=3, stayed=1224, inserted=0, deleted=1)])
    return lake


def clusters(lake: Lake, *arguments: str) -> int:
    return cli.main(["clusters", "--lake", lake.uri, "--dataset", "navaids", *arguments])


def said(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_clusters__lists_runs_with_their_events_and_the_largest_clusters(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert clusters(lake) == 0
    lines = said(capsys)
    assert lines[0] == ["Navigation", "aids", "of", "the", "world,", "3", "runs"]
    assert lines[2:5] == [[RUNS[0], "2"], [RUNS[1], "1", "1", "merged,", "1", "grown"], [RUNS[2], "1"]]
    assert " ".join(lines[5]) == f"name since runs size what deviates named by (the largest of {RUNS[2]})"
    words = ["latitude_deg", "+0.0,", "longitude_deg", "+0.0"]  # all points are equal
    assert lines[6:] == [["4", RUNS[0], "3", "1,224", *words, "x", "x", "x"]]


def words_by_hand(places: Any, usual: Any, mine: Any) -> str:
    """In which dimensions a cluster's median deviates, from the medians of these points."""
    z = {
        name: z_score(np.median(places[mine][:, axis]), places[usual][:, axis].tolist())
        for axis, name in enumerate(("latitude_deg", "longitude_deg"))
    }
    return ", ".join(f"{name} {z[name]:+.1f}" for name in sorted(z, key=lambda name: -abs(z[name])))


@pytest.mark.parametrize("is_sampled", [False, True])
def test_clusters__are_told_by_what_sets_them_apart(
    lake: Lake, is_sampled: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By all points, or of many by those with the smallest hashes by the run's own seed, as in the report."""
    random, n_usual, n_members, seed = np.random.default_rng(5), 10**6, 10**6, 2**40 + 1
    of = random.permutation(np.repeat([-1, 3, 50, 8], [4000, 20, 60, 40]))
    shift = np.select([of == 3, of == 50, of == 8], [5.0, -9.0, 2.0], 0.0)
    places = random.normal(size=(len(of), 2)) + np.column_stack([shift, 3 - shift * (of > 0)])
    write_run(lake, RUNS[2], len(of), 3, 0, 20.0, places, of.tolist())
    sizes = {3: 20, 50: 60, 8: 40}
    name_clusters(lake, RUNS[2], [cluster(each, each, size) for each, size in sizes.items()])
    if is_sampled:
        n_usual, n_members = 450, 30
        slices.write_counters(lake, RUNS[2], "outliers", {"sample_rows": n_usual, "seed": seed})
        for name, value in (("_MAX_NUMBERS", 10), ("MIN_USUAL", 500), ("MIN_MEMBERS", n_members)):
            monkeypatch.setattr(members, name, value)
        monkeypatch.setattr(slices, "_BATCH_ROWS", 333)
    assert clusters(lake) == 0
    hashes = hash_ids(seed, np.arange(len(of)))
    usual = np.argsort(hashes)[:n_usual]
    for line, each in zip(said(capsys)[-3:], (50, 8, 3), strict=True):
        mine = np.flatnonzero(of == each)
        mine = mine[np.argsort(hashes[mine])[:n_members]]
        words = words_by_hand(places, usual, mine)
        assert line[:4] == [str(each), RUNS[0], "1", str(sizes[each])]
        assert " ".join(line[4:]) == f"{words} x x x"


def test_clusters__of_more_points_than_are_read_say_where_it_is_told_what_deviates(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "MAX_BYTES", 59 * 24)
    assert clusters(lake) == 0
    *_, row_, why = said(capsys)
    assert row_ == ["4", RUNS[0], "3", "1,224", "x", "x", "x"]
    assert " ".join(why) == (
        f"what deviates is left out: run {RUNS[2]} has 60 points; of more than 59 only the report says it"
    )


def test_clusters__without_points_that_can_be_read_are_listed_all_the_same(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    name_clusters(lake, RUNS[2], [cluster(59, 4, 1224, runs=3)])
    assert clusters(lake) == 0
    *_, row_, why = said(capsys)
    assert row_ == ["4", RUNS[0], "3", "1,224", "x", "x", "x"]
    assert " ".join(why[:5]) == "what deviates is left out:"
    assert (
        " ".join(why[5:]) == f"clusters of run {RUNS[2]} does not have all that compare named; run it again"
    )


def test_clusters__of_a_name_tells_its_life(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert clusters(lake, "--name", "4") == 0
    lines = said(capsys)[2:]
    assert lines[0] == [RUNS[0], "4", "30", "30", "0"]
    assert lines[1][:5] == [RUNS[1], "4", "1,225", "1,195", "0"]
    assert " ".join(lines[1][5:]) == "grown by 1,195 points; 7 merged into 4, 1,195 points"
    assert lines[2] == [RUNS[2], "5", "1,224", "0", "1"]


def test_clusters__of_a_name_that_has_ended_says_how(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert clusters(lake, "--name", "7") == 0
    lines = said(capsys)[2:]
    assert lines == [
        [RUNS[0], "7", "1,200", "1,200", "0"],
        [RUNS[1], "–", "–", "merged", "into", "4,", "1,195", "points"],
    ]


def test_clusters__of_an_unknown_name_says_where_names_are(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert clusters(lake, "--name", "5") == 2
    assert capsys.readouterr().err == (
        "epsjoin clusters: no run has a cluster of the name 5 (it is a cluster_id, that of the cluster 4 in "
        "run 2022-05-01); without --name and --key the largest are listed\n"
    )
    assert clusters(lake, "--name", "6") == 2
    assert "no run has a cluster of the name 6; without" in capsys.readouterr().err
    assert clusters(lake, "--name", f"{2**63}") == 2
    assert f"no run has a cluster of the name {2**63}; without" in capsys.readouterr().err


def test_clusters__are_told_by_the_records_that_named_them(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = find_id(lake.source, ["85"])
    write(lake, "points", RUNS[0], [row(lake, "points", run=RUNS[0], id=id_, name="Lannion")])
    name_clusters(lake, RUNS[2], [cluster(id_, id_, 90, first_run=RUNS[0])])
    assert clusters(lake) == 0
    assert "Lannion" in next(line for line in said(capsys) if line[0] == str(id_))
    assert clusters(lake, "--key", "85") == 0
    assert said(capsys)[-1][:3] == [RUNS[2], str(id_), "90"]
    assert clusters(lake, "--key", "86") == 2
    with pytest.raises(SystemExit, match="2"):
        clusters(lake, "--key", "85", "--name", "1")


def test_clusters__are_told_by_all_columns_of_the_key_by_which_one_asks_for_them(
    lake: Lake,
) -> None:
    """A number, and a 0 as well: an id that is a hash says nothing, nor would texts alone."""
    rows = [row(lake, "points", id=4, run=RUNS[0], name="Fox", frequency_khz=0, latitude_deg=7.25)]
    slices.write_slice(lake, Slice("points", RUNS[0]), slices.table_of(lake, "points", rows))
    source = replace(lake.source, key=("frequency_khz", "name", "latitude_deg"))
    found = texts_of(replace(lake, source=source), Slice("points", RUNS[0]), [4])
    assert found[4].split()[:3] == ["0", "Fox", "7.25"]
    assert found[4].count("Fox") == 1
    assert "7.25" not in texts_of(lake, Slice("points", RUNS[0]), [4])[4]


def test_clusters__leaves_out_a_run_whose_tables_do_not_belong_together(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(lake, RUNS[2], points=60, pairs=3, clusters=1, eps=20.0)
    assert clusters(lake) == 0
    told = capsys.readouterr().out
    assert "clusters: run 2022-05-01 is left out: cluster_flows of run 2022-05-01 was made from other" in told
    assert "(the largest of 2022-04-01)" in told


def test_clusters__of_a_lake_without_names_says_which_job_makes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake").mkdir()
    assert clusters(new_lake(tmp_path)) == 3
    assert "navaids has no named clusters in" in capsys.readouterr().err
