"""A threshold that is lowered while a join runs holds for all pairs to come, also after a stop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from epsjoin import Similarity, progressive_join, self_join
from epsjoin.errors import ArgumentError
from epsjoin.local.join.arrays import NO_ROW
from tests.local.progressive.cases import gathered
from tests.progressive.points import EPS, POINTS, N, left_by_a_kill


def test_lower_eps__holds_for_all_pairs_that_come_later(expected):
    pairs = self_join(POINTS, EPS)
    distances = dict(
        zip(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True), pairs.distance, strict=True)
    )
    for phase in ("runs", "merges"):
        with progressive_join(POINTS, on=Similarity(EPS), memory="2MB") as found:
            before = []
            for batch in found:
                before.append(batch)
                if batch.phase == phase:
                    break
            found.lower_eps(EPS / 2)
            with pytest.raises(ArgumentError, match="eps can only be lowered"):
                found.lower_eps(EPS)
            given = gathered(before)
            after = gathered(list(found))
        near = {pair for pair, distance in distances.items() if distance <= EPS / 2}
        assert set(after) == near - set(given)
        assert len(after) == len(set(after))


def test_lower_eps__holds_after_a_stop(tmp_path):
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=tmp_path / "spill") as first:
        while first.counters["runs"] < 2:
            next(first)
        first.lower_eps(EPS / 2)
        while next(first).phase != "merges":
            pass
        killed = left_by_a_kill(tmp_path / "spill")
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=killed) as again:
        for pairs, *_ in again:
            assert pairs.distance.max() <= EPS / 2
    assert again.counters["pairs_in_merges"] > 0


@pytest.mark.parametrize("n_runs", [0, 2])
def test_lower_eps__holds_after_a_stop_at_once(tmp_path, n_runs):
    """Before a run is finished, and before the next one is: nothing else would have written it down."""
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=tmp_path / "spill") as first:
        next(first)
        while first.counters["runs"] < n_runs:
            next(first)
        first.lower_eps(EPS / 2)
        killed = left_by_a_kill(tmp_path / "spill")
        first.lower_eps(EPS / 3)
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB", spill=killed) as again:
        far = max(pairs.distance.max() for pairs, *_ in again)
    assert EPS / 3 < far <= EPS / 2


def test_lower_eps__before_the_first_pairs_is_no_other_join(tmp_path):
    given = {"on": Similarity(EPS), "memory": "2MB"}
    with progressive_join(POINTS, **given, spill=tmp_path / "spill") as first:
        first.lower_eps(EPS / 2)
        before = []
        while first.counters["runs"] < 2:
            before.append(next(first))
        killed = left_by_a_kill(tmp_path / "spill")
    with progressive_join(POINTS, **given, spill=killed) as again:
        again.lower_eps(EPS / 1.5)
        after = list(again)
    assert len(after) > 0
    expected = self_join(POINTS, EPS / 2)
    assert set(gathered(before)) | set(gathered(after)) == set(
        zip(expected.left.tolist(), expected.right.tolist(), strict=True)
    )


def test_lower_eps__of_a_join_that_has_ended_leaves_no_folder(tmp_path):
    with progressive_join(POINTS, on=Similarity(EPS), spill=tmp_path / "spill") as found:
        next(found)
    found.lower_eps(EPS / 2)
    assert not (tmp_path / "spill").exists()


def rows_alone(batches):
    """The rows that came without a partner: pairs with nobody, or rows of an anti join."""
    pairs = [row for batch in batches for row in zip(*(ids.tolist() for ids in batch.pairs[:2]), strict=True)]
    return {row for row in pairs if len(row) == 1 or NO_ROW in row}


@pytest.mark.parametrize(
    ("how", "stop"),
    [
        *itertools.product(["left", "right", "outer"], ["first run", "third run", "merge"]),
        ("anti", "merge"),  # before, it gives nothing that eps could be judged by
    ],
)
def test_lower_eps__leaves_no_row_alone_that_had_found_a_partner_before_a_stop(tmp_path, how, stop):
    """Its pair lies beyond the new eps, so that it does not come again."""
    tables = {"left": POINTS[: N // 2], "right": POINTS[N // 2 :]}
    arguments = tables | {"on": Similarity(EPS), "how": how, "memory": "2MB"}
    n_runs = {"first run": 0, "third run": 2, "merge": 5}[stop]
    with progressive_join(**arguments, spill=tmp_path / "spill") as first:
        before = [next(first)]
        while first.counters["runs"] < n_runs or (before[-1].phase == "merges") != (stop == "merge"):
            before.append(next(first))
        first.lower_eps(EPS / 3)
        killed = left_by_a_kill(tmp_path / "spill")
        in_one_go = rows_alone([*before, *first])
    with progressive_join(**arguments, spill=killed) as again:
        assert rows_alone([*before, *again]) == in_one_go
    assert len(in_one_go) > N // 10


def test_lower_eps__after_which_a_stopped_join_reads_other_rows_is_refused(tmp_path):
    """Those of no run yet, too: it is known of them which have a partner."""
    left = POINTS[: N // 2]
    arguments = {"right": POINTS[N // 2 :], "on": Similarity(EPS), "how": "left", "memory": "2MB"}
    with progressive_join(iter([left]), **arguments, spill=tmp_path / "spill") as first:
        next(first)
        assert first.counters["runs"] == 0
        first.lower_eps(EPS / 2)
        killed = left_by_a_kill(tmp_path / "spill")
    moved = left + np.repeat([[1e-9], [0.0]], [1, len(left) - 1], axis=0)
    for other, sentence in ((moved, "of the input are others now"), (left[:1], "the input has fewer now")):
        with pytest.raises(ArgumentError, match=sentence):
            list(progressive_join(iter([other]), **arguments, spill=killed))
