"""Every method against two dictionaries, with memory for a single row and with enough of it."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.local.differ import window, window_then_hash
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import to_entries
from epsjoin.local.differ.methods import METHODS, differ
from epsjoin.local.differ.order import distance, missed_probability, waiting
from oracles import differ as oracle
from oracles import examples
from tests.local.differ.files import entries_of, keys_of, words

EXACT = [method for method in METHODS if method != "window"]
FILE = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=40, unique_by=lambda row: row[0])
MEMORY = st.sampled_from([1, 200, 2000, 1 << 20])


@pytest.mark.parametrize("method", EXACT)
@examples(120)
@given(old=FILE, new=FILE, memory=MEMORY, block=st.sampled_from([64, 500]), batch=st.integers(1, 50))
def test_differ__equals_two_dictionaries_with_any_memory(method, old, new, memory, block, batch):
    found = differ(method, entries_of(old, batch), entries_of(new, batch), Disk(memory, 90, block))
    assert keys_of(found, old, new) == oracle.difference(old, new)
    assert all(old[i][0] == new[j][0] for i, j in [*found.same.tolist(), *found.updated.tolist()])


@examples(120)
@given(
    old=FILE, new=FILE, places=st.integers(1, 8), batch=st.integers(1, 50), step=st.sampled_from([1, 7, 100])
)
def test_window__reports_what_the_paper_s_algorithm_does(old, new, places, batch, step):
    with mock.patch.object(window, "STEP_ROWS", step):
        found = differ("window", entries_of(old, batch), entries_of(new, batch), Disk(1), places=places)
    deleted, inserted = oracle.window([key for key, _ in old], [key for key, _ in new], places)
    kinds = keys_of(found, old, new)
    assert (kinds["deleted"], kinds["inserted"]) == (set(deleted), set(inserted))
    assert kinds["updated"] <= oracle.difference(old, new)["updated"]


@examples(60)
@given(old=FILE, new=FILE)
def test_window__with_the_buffer_that_is_told_is_exact(old, new):
    truth = differ("auto", entries_of(old), entries_of(new), Disk(1 << 20))
    need = waiting(np.vstack([truth.same, truth.updated]), len(old), len(new))
    # rows without a partner wait, too
    places = need + 1 + len(truth.deleted) + len(truth.inserted)
    found = differ("window", entries_of(old), entries_of(new), Disk(1), places=places)
    assert keys_of(found, old, new) == oracle.difference(old, new)


def test_window__needs_a_place_more_for_the_row_that_is_read_first():
    """After each step one row waits in each buffer; but 2 is read before 0 has met its partner."""
    old, new = ([(key, 0) for key in keys] for keys in ((0, 2, 1), (1, 0, 2)))
    truth = differ("auto", entries_of(old), entries_of(new), Disk(1 << 20))
    assert waiting(truth.same, 3, 3) == 1
    useless = [
        len(differ("window", entries_of(old), entries_of(new), Disk(1), places=places).deleted)
        for places in (1, 2)
    ]
    assert useless == [3, 0], "no row meets its partner"


@examples(200)
@given(old=FILE, new=FILE)
def test_waiting_and_distance__are_those_that_are_counted(old, new):
    found = differ("auto", entries_of(old), entries_of(new), Disk(1 << 20))
    pairs = np.vstack([found.same, found.updated])
    keys = [[key for key, _ in rows] for rows in (old, new)]
    assert waiting(pairs, len(old), len(new)) == oracle.most_waiting(*keys)
    assert distance(pairs, len(old), len(new)) == pytest.approx(oracle.distance(*keys), rel=1e-12)


@pytest.mark.parametrize(
    ("order", "least", "most"), [("same", 0, 0), ("reversed", 0.999, 1), ("random", 0.65, 0.68)]
)
def test_distance__is_0_in_order_1_reversed_and_two_thirds_at_random(order, least, most):
    n = 20_000
    places = {
        "same": np.arange(n),
        "reversed": np.arange(n)[::-1],
        "random": np.random.default_rng(1).permutation(n),
    }
    assert least <= distance(np.column_stack([np.arange(n), places[order]]), n, n) <= most


@pytest.mark.parametrize(("waiting_rows", "is_cut"), [(20, True), (850, False), (4000, False)])
def test_auto__is_exact_where_far_more_rows_are_pushed_out_than_fit(waiting_rows, is_cut, monkeypatch):
    monkeypatch.setattr(window_then_hash, "MIN_ROWS", 16)
    random = np.random.default_rng(7)
    old = [(int(key), int(key) % 5) for key in random.permutation(4000)]
    new = [(key, rest if key % 50 else 9) for key, rest in (old[i] for i in random.permutation(3900))]
    disk = Disk(40 * 8 * waiting_rows, block_bytes=256)
    found = differ("auto", entries_of(old, 100), entries_of(new, 100), disk)
    assert keys_of(found, old, new) == oracle.difference(old, new)
    assert (disk.blocks_written > 0) == is_cut  # buckets where memory is too small, else none


def test_auto__reads_files_in_kept_order_once_and_writes_nothing():
    rows = [(i, i) for i in range(1000)]
    disk = Disk(40 * 64, row_bytes=100, block_bytes=100)
    found = differ("auto", entries_of(rows, 10), entries_of(rows[3:], 10), disk)
    assert (len(found.deleted), len(found.same)) == (3, 997)
    assert (disk.blocks_read, disk.blocks_written) == (1000 + 997, 0)


@examples(100)
@given(st.lists(st.integers(0, 5), max_size=40), st.lists(st.integers(0, 5), max_size=40), st.integers(1, 9))
def test_differ__without_a_key_compares_multisets(old, new, batch):
    found = differ(
        "auto",
        entries_of([(0, row) for row in old], batch),
        entries_of([(0, row) for row in new], batch),
        Disk(1 << 20),
        has_key=False,
    )
    went, came = oracle.multiset_difference(old, new)
    assert sorted(old[i] for i in found.deleted) == sorted(went.elements())
    assert sorted(new[i] for i in found.inserted) == sorted(came.elements())
    assert len(found.updated) == 0


def test_differ__with_8_bits_misses_as_many_updates_as_the_formula_says():
    """In 1,000 histories of U updates each: how many miss at least one."""
    updates, histories = 60, 1000
    keys = words(range(updates))
    digests = [np.random.default_rng(seed).bytes(16 * updates) for seed in range(histories + 1)]
    old, *new = (to_entries(keys, np.frombuffer(each, "<u8").reshape(-1, 2), 0, 8) for each in digests)
    found = (differ("auto", [old], [each], Disk(1 << 20)) for each in new)
    missed = sum(len(each.updated) < updates for each in found)
    expected = missed_probability(updates, 8)
    assert expected == pytest.approx(1 - (1 - 2**-8) ** updates)
    assert abs(missed - histories * expected) <= 3 * math.sqrt(histories * expected * (1 - expected))


def test_missed_probability__of_128_bits_is_no_rounding_to_0():
    assert missed_probability(10**6, 128) == pytest.approx(10**6 / 2**128)
    assert missed_probability(0, 8) == 0


@pytest.mark.parametrize("method", ["SMC2", "PHC2"])
def test_differ__writes_the_whole_new_file_for_the_next_differential(method):
    """The new file is longer than the old one: its rest is kept, too."""
    old, new = [(1, 0)], [(i, 0) for i in range(200)]
    disk = Disk(1 << 12, block_bytes=40)  # a row is a block; too little memory to hold either
    differ(method, entries_of(old, 50), entries_of(new, 50), disk)
    copies = 2 if method == "SMC2" else 1  # runs, then the sorted file
    assert disk.blocks_written == copies * (len(old) + len(new))
