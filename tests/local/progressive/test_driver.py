"""One driver for every kind of join: the set that an oracle finds, nothing twice, in any memory and order."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from epsjoin.local.progressive.options import TRAVERSALS
from oracles import examples, progressive
from oracles import join as twin
from tests.local.progressive.cases import KINDS, drive, gathered, make_case

SEEDS = st.integers(0, 2**16)
HOWS = ["inner", "semi", "anti", "left", "right", "outer"]


@examples(40)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(HOWS),
    st.sampled_from([2, 7, 1000]),
    st.sampled_from([2, 3, 8]),
    st.sampled_from(TRAVERSALS),
    st.sampled_from(twin.KINDS),
    st.integers(0, 40),
    SEEDS,
)
def test_two_tables__are_joined_as_the_oracle_does(name, how, run_rows, fan_in, traversal, points, n, seed):
    case = make_case(name, n, seed, points)
    found = drive(case, how=how, run_rows=run_rows, fan_in=fan_in, traversal=traversal)
    pairs = progressive.pairs(case.joins, case.rows, case.others)
    assert gathered(found) == progressive.answer(pairs, len(case.rows), len(case.others), how)


@examples(30)
@given(
    st.sampled_from(sorted({*KINDS} - {"band of two limits"})),
    st.sampled_from(["inner", "semi", "anti"]),
    st.sampled_from([2, 7, 1000]),
    st.sampled_from([2, 3, 8]),
    st.sampled_from(TRAVERSALS),
    st.sampled_from(twin.KINDS),
    st.integers(0, 40),
    SEEDS,
)
def test_one_table__is_joined_as_the_oracle_does(name, how, run_rows, fan_in, traversal, points, n, seed):
    case = make_case(name, n, seed, points)
    found = drive(case, two=False, how=how, run_rows=run_rows, fan_in=fan_in, traversal=traversal)
    pairs = progressive.pairs(case.joins, case.rows, None)
    assert gathered(found) == progressive.answer(pairs, len(case.rows), None, how)
    if how == "inner":
        distances = {}
        for batch, *_ in found:
            distances.update(
                zip(zip(*(c.tolist() for c in batch[:2]), strict=True), batch[2].tolist(), strict=True)
            )
        assert distances == pairs


@examples(40)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(HOWS),
    st.sampled_from([2, 7]),
    st.sampled_from([2, 3]),
    st.sampled_from(TRAVERSALS),
    st.integers(1, 30),
    SEEDS,
)
def test_join__whose_process_dies_anywhere_goes_on_and_misses_nothing(
    name, how, run_rows, fan_in, traversal, dies_after, seed
):
    case = make_case(name, 30, seed)
    arguments = {"how": how, "run_rows": run_rows, "fan_in": fan_in, "traversal": traversal}
    with tempfile.TemporaryDirectory() as folder:
        before = drive(case, Path(folder), dies_after=dies_after, **arguments)
        after = gathered(drive(case, Path(folder), **arguments))
        assert not list(Path(folder).iterdir())
    pairs = progressive.pairs(case.joins, case.rows, case.others)
    expected = progressive.answer(pairs, len(case.rows), len(case.others), how)
    assert sorted({*gathered(before), *after}) == expected
    assert len(after) == len(set(after))
