"""Files of a join that was closed, killed or stopped: which stay, and who goes on with them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import epsjoin
from epsjoin import JoinKind, Similarity, progressive_join
from epsjoin.errors import ArgumentError, EpsjoinError
from tests.local.progressive.cases import gathered
from tests.progressive.points import EPS, POINTS, N, left_by_a_kill


def test_close__halfway_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    for spill in (None, tmp_path / "spill"):
        found = progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=spill)
        while next(found).phase != "merges":
            pass
        assert list((tmp_path / "tmp").iterdir()) if spill is None else list(spill.iterdir())
        rows = found.counters["rows"]
        found.close()
        assert found.counters["rows"] == rows == N
        assert not list((tmp_path / "tmp").iterdir())
        assert spill is None or not spill.exists()
        with pytest.raises(StopIteration):
            next(found)


def test_close__leaves_whole_counters():
    found = progressive_join(POINTS, on=Similarity(EPS), memory="2MB")
    given = len(next(found).pairs.left)
    found.close()
    counters = found.counters
    assert counters["pairs_in_runs"] == given
    assert counters["candidates"] >= counters["distance_computations"] >= given


def test_close__leaves_a_folder_that_was_there(tmp_path):
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=tmp_path) as found:
        list(found)
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ArgumentError, match=r"spill must be an empty folder.*mine\.txt"):
        progressive_join(POINTS, on=Similarity(EPS), spill=tmp_path)


def test_close__leaves_files_of_others_in_a_folder_that_the_join_made(tmp_path):
    spill = tmp_path / "spill"
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=spill) as found:
        next(found)
        for name in ("pairs.csv", "first.run"):
            (spill / name).write_text("mine")
        (spill / "more").mkdir()
        while next(found).phase != "merges":  # which deletes runs that are merged
            pass
    assert sorted(path.name for path in spill.iterdir()) == ["first.run", "more", "pairs.csv"]


def test_spill__that_has_no_room_says_so_and_the_same_join_goes_on(tmp_path):
    def join(pairs, spill):
        with progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=spill) as found:
            for batch in found:
                pairs += zip(batch.pairs.left.tolist(), batch.pairs.right.tolist(), strict=True)

    whole, some, rest = [], [], []
    join(whole, tmp_path / "whole")
    resource = pytest.importorskip("resource")  # Windows has none
    _, most = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    where = re.escape(
        f"sorted runs cannot be written to {tmp_path / 'spill'} (File too large); make room there"
    )
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, most))  # as a disk that is full
        with pytest.raises(EpsjoinError, match=f"^{where}, and the same join goes on from the runs that are"):
            join(some, tmp_path / "spill")
        with pytest.raises(EpsjoinError, match="make room there, or give a folder on another disk as spill$"):
            join([], None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    join(rest, tmp_path / "spill")
    assert sorted({*some, *rest}) == sorted(whole)


KILLED = """
import os, signal, sys
import numpy as np
from epsjoin import Similarity, progressive_join
points = np.random.default_rng(0).random((20_000, 2))
with open(sys.argv[2], "w") as out:
    for pairs, phase, _ in progressive_join(
        points, on=Similarity(0.006), how=sys.argv[4], memory="2MB", spill=sys.argv[1]
    ):
        np.savetxt(out, np.stack(pairs[:2] if len(pairs) > 1 else pairs, axis=1), "%d")
        out.flush()
        if phase == sys.argv[3]:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("phase", "how"), [("merges", "inner"), ("runs", "semi")])
def test_spill__goes_on_after_a_kill(tmp_path, expected, phase, how):
    spill, out = tmp_path / "spill", tmp_path / "pairs"
    command = [sys.executable, "-c", KILLED, str(spill), str(out), phase, how]
    jobs = str(Path(epsjoin.__file__).parents[1])
    killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": jobs}, check=False)
    assert killed.returncode == -signal.SIGKILL
    before = np.loadtxt(out, np.int64, ndmin=2).tolist()
    with progressive_join(POINTS, on=Similarity(EPS), how=how, memory="2MB", spill=spill) as found:
        after = gathered(list(found))
    if how == "semi":
        rows = {row for (row,) in before} | set(after)
        assert rows == {row for pair in expected for row in pair}
    else:
        assert {(a, b) for a, b in before} | set(after) == set(expected)
        if phase == "merges":  # the runs were finished: their pairs do not come again
            assert len(after) < len(expected)
    assert found.counters["rows"] == N
    assert not (spill.exists() and list(spill.iterdir()))


def test_spill__keeps_what_is_known_of_the_order(tmp_path):
    in_order = POINTS[np.argsort(POINTS[:, 0])]
    with progressive_join(in_order, on=Similarity(EPS), memory="2MB", spill=tmp_path / "spill") as first:
        while next(first).estimate.note == "":
            pass
        killed = left_by_a_kill(tmp_path / "spill")
    with progressive_join(in_order, on=Similarity(EPS), memory="2MB", spill=killed) as again:
        assert next(again).estimate.note == "rows do not come in random order"


def test_spill__of_another_join_is_refused(tmp_path):
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=tmp_path / "spill") as found:
        while next(found).phase != "merges":
            pass
        killed = left_by_a_kill(tmp_path / "spill")
    for table, eps, shuffle in ((POINTS, EPS / 2, None), (POINTS, EPS, 3), (POINTS[:-1], EPS, None)):
        other = progressive_join(table, on=Similarity(eps), memory="2MB", spill=killed, shuffle=shuffle)
        with pytest.raises(ArgumentError, match="spill holds the runs of another join"):
            next(other)
    moved = POINTS + np.repeat([[0.0], [1e-9]], [100, N - 100], axis=0)
    with pytest.raises(ArgumentError, match="the first 20,000 of the input are others now"):
        next(progressive_join(moved, on=Similarity(EPS), memory="2MB", spill=killed))


class Near(JoinKind):
    """A kind of a caller's own that is no dataclass."""

    def __init__(self, eps):
        self.eps = eps

    def key(self, values):
        return values[:, 0]

    def expire(self, values, is_right):  # noqa: ARG002  # as of JoinKind
        return values[:, 0] + self.eps

    def joins(self, left, right):
        return np.abs(left[:, 0] - right[:, 0]) <= self.eps


class NearInColumns(Near):
    """A kind that answers by a column."""

    def joins(self, left, right):
        return super().joins(left, right)[:, None]


def test_kind_of_ones_own__that_answers_in_another_shape_is_refused():
    with pytest.raises(ArgumentError, match="NearInColumns.joins must return a bool or a distance of each"):
        next(progressive_join(POINTS, on=NearInColumns(EPS), memory="2MB"))


@pytest.mark.parametrize("method", ["key", "expire"])
@pytest.mark.parametrize(
    "given", [lambda n: np.full(n, np.nan), lambda n: ["a"] * n, lambda _: 1.0, lambda n: np.ones(n + 1)]
)
def test_own_kinds__of_which_a_key_is_no_number_are_refused(method, given):
    """Rows whose keys are NaN would meet nobody, and nobody would know."""
    wrong = type("Wrong", (Near,), {method: lambda _, values, *__: given(len(values))})
    with pytest.raises(ArgumentError, match=f"Wrong.{method} must return a number, and not NaN, for each of"):
        list(progressive_join([[1.0], [1.0], [1.0]], on=wrong(0.5)))


class NearBySlots(Near):
    """A kind whose number is in a slot."""

    __slots__ = ("eps",)


@pytest.mark.parametrize("near", [Near, NearBySlots])
def test_spill__of_a_kind_of_ones_own_with_other_numbers_is_refused(tmp_path, near):
    with progressive_join(POINTS, on=near(1e-5), memory="1.5MB", spill=tmp_path / "spill") as found:
        while not found.counters["runs"]:
            next(found)
        killed = left_by_a_kill(tmp_path / "spill")
    with pytest.raises(ArgumentError, match="spill holds the runs of another join"):
        next(progressive_join(POINTS, on=near(2e-5), memory="1.5MB", spill=killed))
    with progressive_join(POINTS, on=near(1e-5), memory="1.5MB", spill=killed) as again:
        assert next(again).pairs.left.size


def test_spill__in_which_a_join_works_is_refused_to_others(tmp_path, expected):
    arguments = {"left": POINTS, "on": Similarity(EPS), "memory": "2MB", "spill": tmp_path}
    with progressive_join(**arguments) as found:
        batches = [next(found)]
        for _ in range(2):
            with (
                pytest.raises(ArgumentError, match="another join that has not been closed works in"),
                progressive_join(**arguments) as other,
            ):
                next(other)
        batches.extend(found)
    assert gathered(batches) == expected
    with progressive_join(**arguments) as again:
        assert gathered(list(again)) == expected


def test_spill__misses_no_row_that_was_read_while_an_idle_input_had_runs_merged(tmp_path, expected):
    def slow():
        for some in np.array_split(POINTS, 40):
            yield some
            yield None

    before = []
    arguments = {"on": Similarity(EPS), "memory": "2MB", "traversal": "idle"}
    with progressive_join(slow(), spill=tmp_path / "spill", **arguments) as first:
        while not first.counters["merges"]:
            before.append(next(first))
        killed = left_by_a_kill(tmp_path / "spill")
    with progressive_join(slow(), spill=killed, **arguments) as found:
        after = gathered(list(found))
    assert set(gathered(before)) | set(after) == set(expected)
    assert len(after) < len(expected)
    assert found.estimate.pairs == len(expected)


def test_spill__that_was_changed_is_no_result(tmp_path):
    found = progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=tmp_path)
    while next(found).phase != "merges":
        pass
    for path in tmp_path.glob("*.run"):
        data = bytearray(path.read_bytes())
        data[-1:] = bytes([data[-1] ^ 1]) if data else b""
        path.write_bytes(data)
    with pytest.raises(epsjoin.EpsjoinError, match="is not as it was written"):
        list(found)
    found.close()


def halfway(spill):
    """A join that has begun to merge, and the folder of its runs."""
    found = progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=spill)
    while next(found).phase != "merges":
        pass
    return found, found._spill.folder


@pytest.mark.parametrize("is_kept", [True, False])
def test_spill__whose_run_was_removed_is_no_result(tmp_path, is_kept):
    found, folder = halfway(tmp_path if is_kept else None)
    for path in folder.glob("*.run"):
        path.unlink()
    remedy = (
        "remove the folder and join" if is_kept else "join again, and give a folder that nothing else clears"
    )
    with pytest.raises(EpsjoinError, match=rf"\.run, a sorted run of this join, has been removed; {remedy}"):
        list(found)
    found.close()


@pytest.mark.parametrize("is_kept", [True, False])
def test_spill__whose_folder_was_removed_is_no_result(tmp_path, is_kept):
    found, folder = halfway(tmp_path / "spill" if is_kept else None)
    shutil.rmtree(folder)
    remedy = "join again$" if is_kept else "join again, and give a folder that nothing else clears as spill$"
    says = f"{re.escape(str(folder))}, the folder of this join's sorted runs, has been removed; {remedy}"
    with pytest.raises(EpsjoinError, match=says):
        list(found)
    found.close()


def test_spill__of_which_a_run_is_missing_is_not_gone_on_from(tmp_path):
    found, _ = halfway(tmp_path / "spill")
    killed = left_by_a_kill(tmp_path / "spill")
    found.close()
    for path in killed.glob("*.run"):
        path.unlink()
    with (
        pytest.raises(EpsjoinError, match="has been removed; remove the folder and join again"),
        progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=killed) as again,
    ):
        list(again)


def test_spill__whose_run_cannot_be_read_is_no_result(tmp_path):
    found, folder = halfway(tmp_path)
    later = [path for path in folder.glob("*.run") if path.name not in found._spill._open]
    for path in later:
        path.unlink()
        path.mkdir()  # root can read any file
    with pytest.raises(EpsjoinError, match=r"cannot be read \(Is a directory\); see that it can be read"):
        list(found)
    for path in later:
        path.rmdir()
    found.close()


def test_spill__outlives_an_error_of_who_takes_the_batches(tmp_path, expected):
    taken = []

    def take():
        with progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=tmp_path) as found:
            for batch in found:
                if batch.phase == "merges":
                    raise OSError("the disk is full")
                taken.append(batch)

    with pytest.raises(OSError, match="the disk is full"):
        take()
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=tmp_path) as found:
        after = gathered(list(found))
    assert sorted(gathered(taken) + after) == expected
    assert not list(tmp_path.iterdir())


def test_spill__outlives_an_error_of_the_input(tmp_path, expected):
    def failing():
        yield POINTS[:15_000]
        raise OSError("the line is dead")

    before = []
    with (
        pytest.raises(OSError, match="the line is dead"),
        progressive_join(failing(), on=Similarity(EPS), memory="2MB", spill=tmp_path) as found,
    ):
        before.extend(found)
    with progressive_join(iter([POINTS]), on=Similarity(EPS), memory="2MB", spill=tmp_path) as found:
        after = gathered(list(found))
    assert set(gathered(before)) | set(after) == set(expected)
    assert len(after) < len(expected)
    assert not list(tmp_path.iterdir())
