"""The bench of increments: what it changes, and what it says."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.spark import increments


@pytest.mark.parametrize(("fraction", "is_local"), increments.CHANGES.values(), ids=increments.CHANGES)
def test_increments__change_as_many_rows_as_they_say(fraction: float, is_local: bool) -> None:
    points, ids = np.random.default_rng(0).random((4000, 3)), np.arange(4000)
    now, ids_now = increments.change(points, ids, fraction, is_local=is_local)
    assert len(now) == len(ids_now) == len({*ids_now.tolist()}) == 4000
    kept = ids_now[ids_now < 4000]
    is_moved = (now[ids_now < 4000] != points[kept]).any(axis=1)
    n = round(fraction * 4000)
    assert (4000 - len(kept), int(is_moved.sum())) == (n // 4, n // 2)
    was = points[np.setdiff1d(ids, kept[~is_moved]), 0]
    assert not n or (np.ptp(was) < 0.1) == is_local


def test_increments__say_whether_the_join_meets_its_goal(capsys) -> None:
    steps = {"ingest": [3.0] * 3, "replicate": [1.0] * 3, "merge_join": [9.0] * 3}
    cheap = {"ingest": [3.0] * 3, "replicate": [0.5] * 3, "merge_join": [1.0] * 3}
    cpu = {increments.WHOLE: steps} | dict.fromkeys(increments.CHANGES, cheap)
    found = (1_000_000, "it", cpu, dict.fromkeys(cpu, 7.0))
    for dear, verdict in (
        ([1.0, 9.0, 0.5], "0.15 (0.10 – 0.95) of whole; goal: at most 0.2, met."),
        ([1.0, 9.0, 4.0], "goal: at most 0.2, **missed**."),
    ):
        cheap["merge_join"] = dear
        assert increments.main(["--only", "uni8"], lambda *_: found) == 0
        assert verdict in capsys.readouterr().out


@pytest.mark.long
def test_increments__of_clusters_say_how_many_pairs_were_looked_at(capsys, monkeypatch) -> None:
    """In this process, and at a small size: where nothing has changed, no pair is looked at."""
    monkeypatch.setattr(increments, "CLUSTERED", "cad16")
    found = increments.main(["--only", "clusters", "--rows", "3000", "--rounds", "1"], lambda f, *a: f(*a))
    out = capsys.readouterr().out
    assert found == 0
    assert "clusters of cad16, arrays, 3,000 rows" in out
    cells = {line.split(" | ")[0][2:]: line.split(" | ")[1:] for line in out.splitlines() if " | " in line}
    assert cells["nothing"][2:4] == ["0", "0"]
    assert set(increments.CHANGES) < set(cells)
