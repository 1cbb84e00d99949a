"""Pairs of a running join that go to a table, a folder or a function."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, write_deltalake

from epsjoin import Band, Similarity, progressive_join
from epsjoin.errors import ArgumentError, TableError
from epsjoin.lake.growing import GrowingTable
from epsjoin.lake.targets import Target
from epsjoin.progressive import sinks
from tests.progressive.points import EPS, POINTS

KINDS = ["delta", "parquet"]


def read(folder: Path, kind: str) -> pa.Table:
    if kind == "parquet":
        return ds.dataset(folder).to_table()
    return pa.table(DeltaTable(folder).to_pyarrow_table())


def pairs_in(folder: Path, kind: str) -> list[tuple[int, int, float]]:
    columns = read(folder, kind).select(["left_id", "right_id", "distance"])
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True))


def is_complete(folder: Path, kind: str) -> bool:
    if kind == "parquet":
        return (folder / sinks.SUCCESS).exists()
    return DeltaTable(folder).metadata().configuration["epsjoin.complete"] == "true"


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "epsjoin-drain"]


@pytest.mark.parametrize("kind", KINDS)
def test_drain__fills_a_table_with_all_pairs_while_the_join_goes_on(tmp_path, monkeypatch, kind, expected):
    monkeypatch.setattr(sinks, "MAX_FILE_ROWS", 4000)
    folder = tmp_path / "pairs"
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB") as found:
        assert found.drain(folder, kind) == len(expected)
    assert [(left, right) for left, right, _ in pairs_in(folder, kind)] == sorted(expected)
    assert is_complete(folder, kind)
    assert len(list(folder.rglob("*.parquet"))) > 3
    assert not (folder / "_unfinished").exists()
    assert threads() == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("left", [(-1, None), (5, 0), (7, None)]),
        ("right", [(None, -1), (5, 0)]),
        ("outer", [(-1, None), (5, 0), (7, None), (None, -1)]),
        ("semi", [5]),
        ("anti", [-1, 7]),
    ],
)
def test_drain__has_null_for_no_partner_and_ids_of_rows(tmp_path, kind, how, expected):
    """Also of rows whose id is that which arrays have for nobody."""
    left = np.array([5, -1, 7]), np.array([[0.0], [50.0], [9.0]])
    right = np.array([0, -1]), np.array([[0.0], [90.0]])
    with progressive_join(left, right, on=Band(0.5), how=how) as found:
        assert found.drain(tmp_path / "pairs", kind) == len(expected)
    rows = read(tmp_path / "pairs", kind).to_pylist()
    if how in ("semi", "anti"):
        assert sorted(row["id"] for row in rows) == expected
        return
    assert sorted(((row["left_id"], row["right_id"]) for row in rows), key=str) == sorted(expected, key=str)
    assert {row["left_id"] for row in rows if row["distance"] is not None} == {5}


@pytest.mark.parametrize("kind", KINDS)
def test_drain__of_no_pairs_is_a_whole_table(tmp_path, kind):
    with progressive_join([[0.0], [9.0]], on=Similarity(1.0)) as found:
        assert found.drain(tmp_path / "pairs", kind) == 0
    assert is_complete(tmp_path / "pairs", kind)
    assert kind == "parquet" or read(tmp_path / "pairs", kind).num_rows == 0


@pytest.mark.parametrize("kind", KINDS)
def test_drain__shows_pairs_before_all_are_there(tmp_path, kind):
    folder, seen = tmp_path / "pairs", []

    def rows():
        yield POINTS[:3000]
        until = time.monotonic() + 20
        while not seen and time.monotonic() < until:
            yield None  # nothing has come yet
            time.sleep(0.05)
            if list(folder.glob("*.parquet")):
                seen.extend(pairs_in(folder, kind))
                assert not is_complete(folder, kind)
        yield POINTS[3000:6000]

    with progressive_join(rows(), on=Similarity(EPS), memory="2MB") as found:
        found.drain(folder, kind, seconds=0.01)
    assert seen
    assert set(seen) <= set(pairs_in(folder, kind))
    assert is_complete(folder, kind)


def test_drain__of_a_table_replaces_what_was_in_it(tmp_path):
    folder = str(tmp_path / "pairs")
    for eps in (2.0, 1.0):
        with progressive_join([[0.0], [1.0], [3.0]], on=Similarity(eps)) as found:
            found.drain(folder)
    assert pairs_in(Path(folder), "delta") == [(0, 1, 1.0)]


@pytest.mark.parametrize("begin", [next, lambda found: found.close(), lambda found: found.drain(print)])
def test_drain__to_a_table_wants_a_join_that_has_not_begun(tmp_path, begin):
    with progressive_join([[0.0], [1.0], [3.0]], on=Similarity(1.0)) as found:
        begin(found)
        with pytest.raises(ArgumentError, match="the join has begun or ended, so that a table of the rest"):
            found.drain(tmp_path / "pairs")
    assert not (tmp_path / "pairs").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_drain__that_is_interrupted_at_its_end_waits_for_its_thread(tmp_path, monkeypatch, kind):
    """The last file is written then; it is not added."""
    folder, write, main = tmp_path / "pairs", Target.write, threading.main_thread()

    def interrupt(self, batches, **how):
        file = write(self, batches, **how)
        if threading.current_thread() is not main:
            signal.pthread_kill(main.ident, signal.SIGUSR1)  # what a shell has put aside ignores SIGINT
            time.sleep(0.5)
        return file

    monkeypatch.setattr(Target, "write", interrupt)
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), progressive_join([[0.0], [1.0]], on=Similarity(1.0)) as found:
            found.drain(folder, kind)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert threads() == []
    assert not list(folder.rglob("*.parquet"))
    assert kind == "parquet" or not is_complete(folder, kind)


def test_drain__calls_a_function_with_each_batch(expected):
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB") as found:
        first, phases = next(found), []
        assert found.drain(lambda batch: phases.append(batch.phase)) == len(expected) - len(first.pairs.left)
    assert {"runs", "merges"} == set(phases)


@pytest.mark.parametrize("kind", KINDS)
def test_drain__that_cannot_write_ends_with_the_error_and_is_not_complete(tmp_path, monkeypatch, kind):
    folder, write = tmp_path / "pairs", Target.write

    def fail(self, batches, **how):
        write(self, batches, **how)
        raise TableError("the disk is full")

    monkeypatch.setattr(Target, "write", fail)
    with (
        pytest.raises(TableError, match="the disk is full"),
        progressive_join(POINTS, on=Similarity(EPS), memory="2MB") as found,
    ):
        found.drain(folder, kind)
    assert threads() == []
    assert not (folder / sinks.SUCCESS).exists()
    assert kind == "parquet" or not is_complete(folder, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_drain__of_a_join_that_fails_leaves_no_file_that_is_not_added(tmp_path, kind):
    def rows():
        yield POINTS[:3000]
        raise KeyboardInterrupt

    folder = tmp_path / "pairs"
    with pytest.raises(KeyboardInterrupt), progressive_join(rows(), on=Similarity(EPS)) as found:
        found.drain(folder, kind)
    assert threads() == []
    assert not list(folder.rglob("*.parquet"))
    assert not (folder / "_unfinished").exists()
    assert kind == "parquet" or not is_complete(folder, kind)


def test_drain__lets_the_join_wait_for_what_writes(tmp_path, monkeypatch):
    goes_on, write, ahead, order = threading.Event(), Target.write, [], []

    def wait(self, batches, **how):
        def slow():
            for batch in batches:
                goes_on.wait(20)
                yield batch

        return write(self, slow(), **how)

    monkeypatch.setattr(Target, "write", wait)
    put = sinks.Writer.put

    def go_on():
        order.append("the table takes rows")
        goes_on.set()

    def count(self, batch, side=None):
        ahead.append(1)
        if len(ahead) == sinks.AHEAD + 2:
            threading.Timer(0.5, go_on).start()
            put(self, batch, side)
            order.append("the join goes on")
        else:
            put(self, batch, side)

    monkeypatch.setattr(sinks.Writer, "put", count)
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB") as found:
        found.drain(tmp_path / "pairs")
    assert len(ahead) > sinks.AHEAD + 2
    assert order == ["the table takes rows", "the join goes on"]


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        (("pairs",), ArgumentError, "to must be a URI .* or an absolute path, not 'pairs'"),
        ((7,), ArgumentError, "to"),
        (("/tmp/x", "csv"), ArgumentError, "kind must be"),
        ((__file__, "parquet"), ArgumentError, "to must be a folder, and .* is a file"),
    ],
)
def test_drain__refuses(given, error, says):
    with progressive_join([[0.0], [1.0]], on=Similarity(1.0)) as found, pytest.raises(error, match=says):
        found.drain(*given)


def test_drain__refuses_places_with_other_content_and_folders_to_go_on_from(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").touch()
    write_deltalake(tmp_path / "other", pa.table({"x": [1]}))
    for given, spill, error, says in (
        (
            {"to": tmp_path / "full", "kind": "parquet"},
            None,
            ArgumentError,
            "must be an empty folder, .* has a.txt",
        ),
        ({"to": tmp_path / "other"}, None, TableError, "is a table of other columns"),
        ({"to": tmp_path / "p", "seconds": 0}, None, ArgumentError, "seconds must be a number above 0"),
        ({"to": tmp_path / "p", "seconds": np.inf}, None, ArgumentError, "seconds must be a number above 0"),
        ({"to": tmp_path / "p"}, tmp_path / "spill", ArgumentError, "a join with a folder spill cannot be"),
    ):
        made = progressive_join([[0.0], [1.0]], on=Similarity(1.0), spill=spill)
        with made as found, pytest.raises(error, match=says):
            found.drain(**given)
    assert not (tmp_path / "p").exists()
    with progressive_join([[0.0], [1.0]], on=Similarity(1.0), spill=tmp_path / "spill") as found:
        assert found.drain(print) == 1, "a function may know what it has seen"


def test_growing_table__is_what_a_delta_table_is_drained_to(tmp_path, monkeypatch):
    added = []
    add = GrowingTable.add
    monkeypatch.setattr(GrowingTable, "add", lambda self, files: (added.extend(files), add(self, files))[1])
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB") as found:
        n = found.drain(tmp_path / "pairs")
    assert sum(file.rows for file in added) == n
