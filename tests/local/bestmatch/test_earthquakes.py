"""Two catalogues of earthquakes, matched by time, place and size: the numbers counted without us."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from epsjoin import BestmatchStream, Closest, bestmatch_join
from tests.earthquakes import EXPECTED, ORDERS, read_catalogues

KINDS = {"all": False, "without_source_iscgem": True}


@pytest.fixture(scope="module")
def catalogues():
    return read_catalogues(since=1970)


@pytest.mark.parametrize("kind", KINDS)
def test_earthquakes__have_the_numbers_that_were_counted_without_us(catalogues, kind):
    left, right, is_copied = catalogues
    if KINDS[kind]:
        left = left[~is_copied]
    counts = EXPECTED[kind]["float64"]
    counters = {}
    outer = bestmatch_join(left, right, how="outer", orders=ORDERS, counters=counters)
    bits = outer.best_for
    found = {
        "left_rows": len(left),
        "right_rows": len(right),
        "pairs_within": counters["within"],
        "left_rows_matched": len(left) - counters["unmatched_left"],
        "left_rows_unmatched": int((outer.right == -1).sum()),
        "right_rows_matched": len(right) - counters["unmatched_right"],
        "right_rows_unmatched": int((outer.left == -1).sum()),
        "best_for_left": int((bits & 1 > 0).sum()),
        "left_rows_with_several_best": int((np.bincount(outer.left[bits & 1 > 0]) > 1).sum()),
        "best_for_right": int((bits & 2 > 0).sum()),
        "outer": int((bits > 0).sum()),
        "mutual": int((bits == 3).sum()),
        "inner": len(bestmatch_join(left, right, how="inner", orders=ORDERS).left),
    }
    assert found == counts
    assert counters["candidates"] <= 1.2 * counters["within"]
    sums = EXPECTED[kind]["sums_over_best_for_left"]
    of_left = bestmatch_join(left, right, orders=ORDERS)
    values = of_left.values[of_left.right >= 0].sum(axis=0)
    assert values == pytest.approx([sums["seconds"], sums["km"], sums["magnitudes"]], abs=0.005)


@pytest.mark.parametrize("kind", KINDS)
def test_earthquakes__nearest_in_time_alone_are_those_of_merge_asof(catalogues, kind):
    left, right, is_copied = catalogues
    if KINDS[kind]:
        left = left[~is_copied]
    counts = EXPECTED[kind]["time_only_nearest"]
    best = bestmatch_join(left, right, orders=[Closest(0, eps=30.0003)])
    is_pair = best.right >= 0
    assert int(is_pair.sum()) == counts["nearest_pairs_with_ties"]
    assert best.values[is_pair].sum() == pytest.approx(counts["sum_of_nearest_seconds"], abs=0.005)
    frames = [pd.DataFrame({"t": side[:, 0], "row": np.arange(len(side))}) for side in (left, right)]
    asof = pd.merge_asof(*frames, on="t", direction="nearest", tolerance=30.0003)
    one = bestmatch_join(left, right, orders=[Closest(0, eps=30.0003)], take="one")
    by_left = np.argsort(one.left)
    assert one.right[by_left].tolist() == asof["row_y"].fillna(-1).astype(int).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_earthquakes__that_come_as_two_streams_have_the_same_numbers(catalogues, kind):
    left, right, is_copied = catalogues
    if KINDS[kind]:
        left = left[~is_copied]
    left, right = (side[np.argsort(side[:, 0], kind="stable")] for side in (left, right))
    counts = EXPECTED[kind]["float64"]
    counters = {}
    stream = BestmatchStream(how="outer", orders=ORDERS, counters=counters)
    standing = BestmatchStream(how="inner", orders=ORDERS)
    parts = []
    edges = np.quantile(np.concatenate((left[:, 0], right[:, 0])), np.linspace(0, 1, 26))
    edges[-1] = np.inf
    for begin, end in pairwise(edges):
        for name, side in (("left", left), ("right", right)):
            rows = side[(begin <= side[:, 0]) & (side[:, 0] < end)]
            parts.append(getattr(stream, f"push_{name}")(rows))
            getattr(standing, f"push_{name}")(rows)
    parts.append(stream.finish())
    bits = np.concatenate([part.best_for for part in parts])
    best_of_left = np.concatenate([part.left[part.best_for & 1 > 0] for part in parts])
    found = {
        "left_rows": len(left),
        "right_rows": len(right),
        "pairs_within": counters["within"],
        "left_rows_matched": len(left) - counters["unmatched_left"],
        "left_rows_unmatched": sum(int((part.right == -1).sum()) for part in parts),
        "right_rows_matched": len(right) - counters["unmatched_right"],
        "right_rows_unmatched": sum(int((part.left == -1).sum()) for part in parts),
        "best_for_left": int((bits & 1 > 0).sum()),
        "left_rows_with_several_best": int((np.bincount(best_of_left) > 1).sum()),
        "best_for_right": int((bits & 2 > 0).sum()),
        "outer": int((bits > 0).sum()),
        "mutual": int((bits == 3).sum()),
        "inner": len(standing.finish().left),
    }
    assert found == counts
    # ISC-GEM ends four years before the USGS: only those that its next event could match wait for the end
    waits = right[-1, 0] - left[:, 0] <= 30.0003
    assert sorted(set(parts[-1].left.tolist())) == np.flatnonzero(waits).tolist()
