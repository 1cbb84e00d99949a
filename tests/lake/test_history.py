"""Ranges of runs, from the slices in a lake."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from epsjoin.errors import ArgumentError, TableError
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.history import KEYS, open_view, read_ranges, read_rows
from epsjoin.lake.lake import Lake, Slice
from oracles import versions as oracle
from tests.histories import RUNS, as_oracle, draw_states, split, states_of, write_group, write_states
from tests.tiny import coordinate, key, new_lake

STATES = draw_states(1)


@pytest.fixture(scope="module")
def in_order(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """All runs of ``STATES``; not to be changed."""
    return write_states(tmp_path_factory.mktemp("in_order"), STATES, RUNS)


@pytest.fixture
def mine(in_order: Lake, tmp_path: Path) -> Lake:
    """The same, to be changed."""
    shutil.copytree(Path(in_order.uri.removeprefix("file://")), tmp_path / "lake")
    return replace(in_order, uri=(tmp_path / "lake").as_uri())


@pytest.mark.parametrize("seed", [0, *(pytest.param(other, marks=pytest.mark.long) for other in (1, 2))])
def test_read_ranges__are_the_maximal_ones_in_whatever_order_the_runs_came(tmp_path: Path, seed: int) -> None:
    states = draw_states(seed)
    order = np.random.default_rng(seed).permutation([*RUNS, *RUNS[:3]]).tolist()
    lake = write_states(tmp_path, states, order)
    for table in KEYS:
        rows = [row for part in read_ranges(lake, open_view(lake, table)) for row in part.to_pylist()]
        found = as_oracle(table, rows)
        assert len(found) > 12
        assert len(found) == len(set(found))
        assert set(found) == oracle.ranges(states_of(states, table))


def test_read_ranges__at_every_run_are_the_slice(in_order: Lake) -> None:
    for table in KEYS:
        view = open_view(in_order, table)
        rows = [row for part in read_ranges(in_order, view) for row in part.to_pylist()]
        for run in RUNS:
            holds = [
                {name: row[name] for name in view.columns.names}
                for row in rows
                if row["from_run"] <= run and (row["to_run"] is None or run < row["to_run"])
            ]
            expected = read_rows(in_order, view, run).to_pylist()
            assert sorted(map(repr, holds)) == sorted(map(repr, expected))
            assert dict(split(table, row) for row in expected).keys() == getattr(STATES[run], table).keys()


def test_read_ranges__of_an_id_are_those_of_all_with_this_id(in_order: Lake) -> None:
    for table, keys in KEYS.items():
        view = open_view(in_order, table)
        whole = [row for part in read_ranges(in_order, view) for row in part.to_pylist()]
        for id_ in (0, 5, 999):
            found = [row for part in read_ranges(in_order, view, id_) for row in part.to_pylist()]
            expected = [row for row in whole if id_ in (row[name] for name in keys)]
            assert sorted(map(repr, found)) == sorted(map(repr, expected))
        assert any(5 in (row[name] for name in keys) for row in whole)


def test_read_ranges__look_at_each_log_once(in_order: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    view = open_view(in_order, "clusters")
    looked = []
    log_files = slices.log_files
    monkeypatch.setattr(slices, "log_files", lambda place: looked.append(place) or log_files(place))
    assert len(list(read_ranges(in_order, view))) == len(RUNS) + 1
    assert len(looked) == len(set(looked)) > 3


def test_read_ranges__refuse_a_slice_that_does_not_fit_its_run(mine: Lake) -> None:
    points = slices.read_slice(mine, Slice("points", RUNS[3]))
    slices.write_slice(mine, Slice("points", RUNS[3]), points)
    assert len(list(read_ranges(mine, open_view(mine, "points")))) == len(RUNS) + 1
    with pytest.raises(TableError, match=f"of run {RUNS[3]} was made from other tables than these"):
        list(read_ranges(mine, open_view(mine, "pairs")))
    write_group(mine, {RUNS[3]: STATES[RUNS[3]]})
    assert len(list(read_ranges(mine, open_view(mine, "pairs")))) == len(RUNS) + 1


def test_read_ranges__refuse_clusters_without_a_name(mine: Lake) -> None:
    for run in RUNS[3:]:  # names go on from those of the run before
        where = Fingerprints(mine, run).slice("cluster_names")
        slices.write_slice(mine, where, slices.table_of(mine, "cluster_names", []))
    with pytest.raises(TableError, match="that cluster_names does not have; run compare again"):
        list(read_ranges(mine, open_view(mine, "clusters")))


def test_open_view__says_what_has_no_history(tmp_path: Path) -> None:
    lake = new_lake(tmp_path, [key(), coordinate("x"), coordinate("to_run")])
    with pytest.raises(ArgumentError, match="table must be one of points, pairs, clusters, not outliers"):
        open_view(lake, "outliers")
    with pytest.raises(ArgumentError, match="tiny has a column to_run, which a history calls"):
        open_view(lake, "points")
    with pytest.raises(TableError, match="pairs has no slice; run merge_join for a run first"):
        open_view(lake, "pairs")
