"""The index of ids against a dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels import ids as ids_kernels
from epsjoin.kernels.ids import are_row_numbers, index_ids, match_ids, rows_of
from epsjoin.local.neighbours import from_pairs
from oracles import examples

IDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)


@examples(200)
@given(st.lists(IDS, unique=True, max_size=100), st.lists(IDS, max_size=100))
def test_rows_of__finds_known_ids_and_no_others(ids, wanted):
    row = {each: place for place, each in enumerate(ids)}
    wanted = wanted + ids
    found = rows_of(index_ids(np.array(ids, dtype=np.int64)), np.array(wanted, dtype=np.int64))
    assert found.tolist() == [row.get(each, -1) for each in wanted]


@examples(200)
@given(st.lists(IDS, unique=True, max_size=100), st.lists(IDS, unique=True, max_size=20), st.randoms())
def test_match_ids__finds_ids_that_stay_move_come_and_go(before, new, random):
    row = {each: place for place, each in enumerate(before)}
    now = [each for each in before if random.random() < 0.8] + new
    now = list(dict.fromkeys(now))
    if now and random.random() < 0.5:
        cut = random.randrange(len(now))
        now = now[cut:] + now[:cut]
    found = match_ids(np.array(before, dtype=np.int64), np.array(now, dtype=np.int64))
    assert found.tolist() == [row.get(each, -1) for each in now]


def test_match_ids__hashes_only_what_is_out_of_order(monkeypatch):
    hashed = []
    monkeypatch.setattr(ids_kernels, "index_ids", lambda ids: hashed.append(ids.size) or index_ids(ids))
    before = np.arange(1000) * 3
    now = np.delete(before, [10, 11, 500])
    now[700] = 1  # one is new
    assert match_ids(before, now)[[9, 10, 700, 996]].tolist() == [9, 12, -1, 999]
    assert hashed == [4], "those that are gone and the one that is replaced"


@pytest.mark.parametrize("first", [-(2**63), -2, 0, 2**63 - 5])
def test_rows_of__of_ids_that_count_up_takes_no_index(first):
    ids = np.array([first + i for i in range(5)], dtype=np.int64)
    wanted = [-(2**63), -3, -2, 0, 4, 5, 2**63 - 6, 2**63 - 1, first, first + 4]
    index = index_ids(ids)
    assert not index.slots.size
    assert rows_of(index, np.array(wanted)).tolist() == [
        each - first if first <= each < first + 5 else -1 for each in wanted
    ]
    assert index_ids(ids[[0, 1, 3, 2, 4]].copy()).slots.size


@pytest.mark.parametrize("stride", [1, 2**20, 2**44, 2**56])
def test_rows_of__survives_ids_at_regular_strides(stride):
    ids = np.arange(200, dtype=np.int64) * stride
    assert rows_of(index_ids(ids), ids[::-1].copy()).tolist() == list(range(199, -1, -1))


@pytest.mark.parametrize("first", [0, 2**64 - 50])
def test_rows_of__finds_ids_that_share_one_slot(first):
    # Multiples of the multiplier's inverse hash to the first slot, or to the last, whence probing wraps.
    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
    ids = np.array([(first + i) * inverse % 2**64 for i in range(50)], dtype=np.uint64).view(np.int64)
    index = index_ids(ids[:40].copy())
    assert np.count_nonzero(index.slots[:40] >= 0) >= 39  # one after the other from there on
    assert rows_of(index, ids).tolist() == [*range(40), *[-1] * 10]


def test_rows_of__crosses_the_border_of_a_block():
    ids = np.random.default_rng(3).permutation(70_000) * 7_919
    assert (rows_of(index_ids(ids), ids) == np.arange(ids.size)).all()


def test_index_ids__names_the_id_that_comes_twice():
    with pytest.raises(ValueError, match="id 7 comes twice"):
        index_ids(np.array([3, 7, 5, 7], dtype=np.int64))


@pytest.mark.parametrize("ids", [[0], [0, 1, 2], [], [1, 2], [0, 2], [0, 1, 1], [-1, 0, 1]])
def test_are_row_numbers__is_so_of_those_that_count_up_from_0(ids):
    assert are_row_numbers(np.array(ids, np.int64)) == (len(ids) > 0 and ids == list(range(len(ids))))


@pytest.mark.parametrize("is_arrows", [True, False])
def test_rows_of_and_nearest_within__hand_kernels_one_kind_of_arrays(monkeypatch, is_arrows):
    """Columns of Arrow cannot be written, what was computed can: each kind would be compiled for itself."""
    called = set()

    def watch(module, name, *only_read):
        kernel = getattr(module, name)

        def watched(*given):
            called.add(name)
            arrays = given[0] if isinstance(given[0], tuple) else given
            assert not any(arrays[place].flags.writeable for place in only_read), name
            return kernel(*given)

        monkeypatch.setattr(module, name, watched)

    watch(ids_kernels, "_insert", 0)
    watch(ids_kernels, "_probe", 0, 2)
    watch(from_pairs, "keep_nearest", 1, 2)
    ids, distance = 3 * np.arange(20), np.ones(20)
    if is_arrows:
        ids, distance = pa.array(ids).to_numpy(), pa.array(distance).to_numpy()
    rows_of(index_ids(ids), ids)
    from_pairs.nearest_within(ids[:-1], ids[1:], distance[1:], 2)
    assert called == {"_insert", "_probe", "keep_nearest"}
    assert ids.flags.writeable != is_arrows, "a view is taken"
