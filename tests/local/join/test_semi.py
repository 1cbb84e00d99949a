"""Semi and anti joins: the rows that brute force finds, with little work and no pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from epsjoin import Cuts, get_metric, join
from epsjoin.errors import ArgumentError
from epsjoin.local.join import partners
from epsjoin.local.sweep import sweeping
from oracles import examples
from oracles import join as twin
from tests import open_sets

CUTS = {"none": None, "planned": Cuts(n_parts=7, replication_budget=1e9), "regular": Cuts("regular", 3)}
SKIN_EPS = 0.01


@pytest.mark.parametrize("name", ["landmarks", "pendigits", "digits"])
@pytest.mark.parametrize("cuts", CUTS)
def test_join__semi_of_real_sets_has_the_rows_whose_nearest_is_within_eps(name: str, cuts: str) -> None:
    points, expected = open_sets.read(name), open_sets.EXPECTED[name]
    even, odd, eps = points[::2], points[1::2], expected["two_set_even_odd"]["eps"]
    found = join(even, odd, eps, how="semi", cuts=CUTS[cuts]).left
    assert len(found) == expected["bestmatch_even_to_odd"]["within_eps"]
    assert len(join(even, odd, eps, how="anti", cuts=CUTS[cuts]).left) == len(even) - len(found)


@pytest.mark.parametrize("eps", [SKIN_EPS, 0.1, 1.5])
def test_join__anti_of_a_dense_set_is_a_check_of_nearest_neighbours_and_makes_no_pairs(eps: float) -> None:
    even, odd = open_sets.read("skin")[::2], open_sets.read("skin")[1::2]
    counters: dict[str, int] = {}
    found = join(even, odd, eps, how="anti", n_jobs=2, max_pairs=0, counters=counters).left
    nearest, _ = cKDTree(odd).query(even)
    assert np.abs(nearest - eps).min() > 1e-9
    assert found.tolist() == np.flatnonzero(nearest > eps).tolist()
    assert counters["pairs"] == len(even) - len(found)
    assert counters["candidates"] <= 36 * len(even), "at eps 1.5 there are 5,159,105,997 pairs"


def test_join__semi_of_a_dense_set_compares_less_than_a_third_of_the_inner_join() -> None:
    even, odd = open_sets.read("skin")[::2], open_sets.read("skin")[1::2]
    semi: dict[str, int] = {}
    inner: dict[str, int] = {}
    join(even, odd, SKIN_EPS, how="semi", counters=semi)
    join(even, odd, SKIN_EPS, counters=inner)
    assert semi["candidates"] <= 0.3 * inner["candidates"]
    assert semi["distance_computations"] <= 0.05 * inner["distance_computations"]


@examples(200)
@given(
    st.sampled_from([(kind, "euclidean") for kind in twin.KINDS])
    | st.tuples(
        st.sampled_from(["uniform", "lattice", "dyadic", "few", "hot", "constant"]),
        st.sampled_from(["manhattan", "chebyshev", "minkowski", "cosine"]),
    ),
    st.integers(0, 60),
    st.integers(1, 4),
    st.sampled_from(sorted(CUTS)),
    st.sampled_from([1, 2]),
    st.integers(0, 10**6),
)
def test_join__semi_of_one_table_has_the_ends_of_its_pairs(
    kind: tuple[str, str], n: int, d: int, cuts: str, n_jobs: int, seed: int
) -> None:
    (name, metric), p = kind, 3.0
    points, eps = twin.awkward_points(name, n, d, seed)
    if metric == "cosine":
        points, eps = points + 0.01, eps / 100
    chosen = get_metric("minkowski", p) if metric == "minkowski" else metric
    ends = {row for pair in twin.brute_force(points, eps, metric, p) for row in pair}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeping, "_CHUNK_ROWS", 7)
        found = [
            join(points, None, eps, chosen, how=how, cuts=CUTS[cuts], n_jobs=n_jobs).left
            for how in ("semi", "anti")
        ]
    assert found[0].tolist() == sorted(ends)
    assert found[1].tolist() == sorted(set(range(n)) - ends)


@pytest.mark.parametrize("cuts", CUTS)
def test_join__semi_decides_ties_zeros_and_scaled_dimensions_as_pairs_do(cuts: str) -> None:
    semi = {"how": "semi", "cuts": CUTS[cuts]}
    assert join([[0.0, 0.0]], [[3.0, 4.0]], 5.0, **semi).left.tolist() == [0]
    assert join([[0.0, 0.0]], [[3.0, 4.0]], math.nextafter(5.0, 0.0), **semi).left.tolist() == []
    assert join([[-0.0], [1.0]], [[0.0]], 1e-9, **semi).left.tolist() == [0]
    random = np.random.default_rng(5)
    left, right, eps = random.integers(0, 40, (60, 3)), random.integers(0, 40, (50, 3)), [4.0, 1.5, 8.0]
    pairs = twin.between(left / np.array(eps), right / np.array(eps), 1.0)
    assert join(left, right, eps, **semi).left.tolist() == sorted({row for row, _ in pairs})
    assert 0 < len(pairs) < 60
    weights = [1.0, 0.0, 4.0]
    pairs = twin.between(left * [1.0, 0.0, 2.0], right * [1.0, 0.0, 2.0], 7.0)
    assert join(left, right, 7.0, weights=weights, **semi).left.tolist() == sorted({row for row, _ in pairs})
    sphere = np.stack((90.0 - np.abs(random.normal(size=80)) * 5, random.uniform(-180, 180, 80)), 1)
    pairs = twin.between(sphere[:50], sphere[50:], 150.0, "haversine")
    found = join(sphere[:50], sphere[50:], 150.0, "haversine", **semi).left
    assert found.tolist() == sorted({row for row, _ in pairs})
    assert 0 < len(found) < 50


def test_join__semi_counts_and_finds_the_same_with_any_number_of_threads() -> None:
    points = np.random.default_rng(2).random((60_000, 2))
    done = []
    for n_jobs in (1, 3):
        counters: dict[str, int] = {}
        shown: list[float] = []
        found = join(points, None, 0.002, how="anti", n_jobs=n_jobs, counters=counters, progress=shown.append)
        done.append((found.left.tolist(), counters))
        assert shown == sorted(shown)
        assert len(shown) > 4
    assert done[0] == done[1]
    assert 0 < len(done[0][0]) < 60_000


def test_find_partners__goes_on_where_a_long_sweep_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    sweep = partners.partner_sweep
    monkeypatch.setattr(partners, "partner_sweep", lambda *given: calls.append(1) or sweep(*given))
    left, right = np.zeros((1000, 2)), np.full((200_000, 2), 0.8)  # all in the window, at a distance of 1.13
    left[::10] = 0.7
    counters: dict[str, int] = {}
    assert join(left, right, 1.0, how="semi", counters=counters).left.tolist() == list(range(0, 1000, 10))
    assert counters["candidates"] >= 900 * 200_000
    assert len(calls) > 1


def test_join__of_one_table_has_no_pairs() -> None:
    with pytest.raises(ArgumentError, match="how = 'left' needs two tables; self_join finds"):
        join([[0.0]], None, 1.0, how="left")
    assert join(np.empty((0, 2)), None, 1.0, how="anti").left.tolist() == []


@pytest.mark.parametrize("d", [2, 20])
def test_join__semi_of_one_table_calls_it_left(d: int) -> None:
    points = np.ones((2000, d))
    points[5, 1] = math.nan
    with pytest.raises(ArgumentError, match="^left must be finite; row 5, column 1 is nan"):
        join(points, None, 1.0, how="semi")
    points[5] = 0.0
    with pytest.raises(ArgumentError, match="^left: cosine needs vectors .*; row 5 breaks this"):
        join(points, None, 1.0, "cosine", how="anti")
