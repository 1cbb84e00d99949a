from __future__ import annotations

import csv
import functools
import gzip
from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.local.versions.ranges import NO_RANGES, OPEN, Ranges, apply_run, find_eras, lay_out
from oracles import examples, seeds
from oracles import versions as oracle
from tests.open_sets import DATA

States = Mapping[int, Mapping[int, int]]


def apply_all(states: States, order: Sequence[int]) -> Ranges:
    ranges, runs = NO_RANGES, np.empty(0, np.int64)
    for run in order:
        rows = np.array(list(states[run].items()), np.int64).reshape(-1, 2)
        ranges = apply_run(ranges, runs, run, rows[:, 0], rows[:, 1])
        runs = np.union1d(runs, [run])
    return ranges


def as_set(ranges: Ranges) -> set[tuple[int, int, int, int | None]]:
    rows = zip(*(column.tolist() for column in ranges), strict=True)
    return {(key, value, begin, None if end == OPEN else end) for key, value, begin, end in rows}


runs_of_records = st.dictionaries(
    st.integers(0, 40), st.dictionaries(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=9
)


@examples(100)
@given(runs_of_records, st.randoms())
def test_apply_run__gives_the_maximal_ranges_in_any_order(states: States, random: object) -> None:
    order = list(states)
    random.shuffle(order)
    ranges = apply_all(states, order)
    assert as_set(ranges) == oracle.ranges(states)
    assert len(ranges.keys) == len(as_set(ranges))
    for column, expected in zip(ranges, apply_all(states, sorted(order)), strict=True):
        np.testing.assert_array_equal(column, expected)


@examples(100)
@given(runs_of_records, st.data())
def test_apply_run__replaces_a_run_that_is_there(states: States, data: st.DataObject) -> None:
    run = data.draw(st.sampled_from(sorted(states)))
    other = data.draw(st.dictionaries(st.integers(0, 4), st.integers(0, 2)))
    changed = {**states, run: other}
    order = list(states)
    rows = np.array(list(other.items()), np.int64).reshape(-1, 2)
    ranges = apply_run(apply_all(states, order), np.array(order), run, rows[:, 0], rows[:, 1])
    assert as_set(ranges) == oracle.ranges(changed)


@examples(100)
@given(runs_of_records)
def test_ranges__hold_at_every_run_what_the_run_holds(states: States) -> None:
    ranges = apply_all(states, list(states))
    for run, state in states.items():
        holds = ranges.at(run)
        assert dict(zip(ranges.keys[holds].tolist(), ranges.values[holds].tolist(), strict=True)) == state


@functools.cache
def navaids() -> dict[int, dict[int, int]]:
    """Twelve months of the open set: run to key to a number of the record's text."""
    numbers: dict[str, int] = {}
    states = {}
    for file in sorted((DATA / "navaids").glob("*.csv.gz")):
        with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
            records = {int(row["id"]): repr(row) for row in csv.DictReader(lines)}
        run = date.fromisoformat(file.name.partition(".")[0]).toordinal()
        states[run] = {key: numbers.setdefault(text, len(numbers)) for key, text in records.items()}
    return states


@functools.cache
def ranges_of_navaids() -> set[tuple[int, object, int, int | None]]:
    return oracle.ranges(navaids())


@seeds(5, 20)
def test_apply_run__of_twelve_months_gives_the_same_ranges_in_any_order(seeds: range) -> None:
    states = navaids()
    assert (len(states), sum(map(len, states.values()))) == (12, 132_230)
    for seed in seeds:
        ranges = apply_all(states, np.random.default_rng(seed).permutation(sorted(states)).tolist())
        assert len(ranges.keys) == 11_059
        assert as_set(ranges) == ranges_of_navaids(), seed
        for run, state in states.items():
            holds = ranges.at(run)
            found = zip(ranges.keys[holds].tolist(), ranges.values[holds].tolist(), strict=True)
            assert dict(found) == state, (seed, run)


@examples(100)
@given(runs_of_records)
def test_find_eras__have_at_most_twice_what_holds_at_any_of_their_runs(states: States) -> None:
    ranges, runs = apply_all(states, list(states)), np.array(list(states))
    firsts = find_eras(ranges, runs)
    layout = lay_out(ranges, firsts)
    era_of = np.searchsorted(firsts, runs, side="right") - 1
    for run, era in zip(runs.tolist(), era_of.tolist(), strict=True):
        rows = layout.rows[layout.eras == era]
        holds = set(np.flatnonzero(ranges.at(run)).tolist())
        assert holds <= set(rows.tolist())
        assert len(rows) == len(set(rows.tolist())) <= 2 * len(holds)
    assert len(layout.rows) <= 5 * len(ranges.keys)


def updated_at_random(rows: int, runs: int, fraction: float) -> Ranges:
    """Ranges of records of which a fraction is updated in each run."""
    rng = np.random.default_rng(0)
    ranges, values = NO_RANGES, np.zeros(rows, np.int64)
    for run in range(runs):
        ranges = apply_run(ranges, np.arange(run), run, np.arange(rows), values)
        values = values + (rng.random(rows) < fraction)
    return ranges


def test_eras__of_a_tenth_updated_in_each_run_cost_less_than_slices_and_are_read_quickly() -> None:
    ranges = updated_at_random(1000, 200, 0.1)
    firsts = find_eras(ranges, np.arange(200))
    layout = lay_out(ranges, firsts)
    assert len(ranges.keys) == pytest.approx(1000 + 199 * 100, rel=0.02)
    assert 15 <= len(firsts) <= 25
    assert len(layout.rows) < 2 * len(ranges.keys)
    assert np.bincount(layout.eras).max() <= 2 * 1000


def test_find_eras__of_a_table_that_grows_do_not_let_its_first_run_read_all() -> None:
    """As many come in every run as there are: nothing ends, yet the last run has 512 times the first."""
    states = {run: dict.fromkeys(range(2**run), 0) for run in range(10)}
    ranges = apply_all(states, range(10))
    assert find_eras(ranges, np.arange(10)).tolist() == [0, 2, 4, 6, 8]
