"""Numbers that differ by no more than a tolerance, measured in decimals."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import ArgumentError, snapshot_diff
from oracles import examples

NUMBER = st.none() | st.integers(-3, 3).map(lambda n: n / 10) | st.sampled_from([math.nan, math.inf, 1e30])


@given(
    st.lists(st.tuples(NUMBER, NUMBER, NUMBER, NUMBER), max_size=8),
    st.sampled_from([0.0, 0.1, 0.3]),
    st.booleans(),
)
@examples(200)
def test_snapshot_diff__with_a_tolerance_is_that_of_the_decimals(rows, most, is_text):
    def column(values):
        return pa.array([None if v is None else repr(v) for v in values] if is_text else values, type_)

    type_ = pa.string() if is_text else pa.float64()
    old, new = (
        pa.table(
            {"id": range(len(rows)), "x": column(row[a] for row in rows), "y": column(row[b] for row in rows)}
        )
        for a, b in ((0, 1), (2, 3))
    )
    found = snapshot_diff(old, new, key="id", tolerance={"x": most})
    expected, n_within = {}, 0
    for number, (x, y, x_now, y_now) in enumerate(rows):
        is_same = {"x": repr(x) == repr(x_now), "y": repr(y) == repr(y_now)}
        is_within = x is not None and x_now is not None and abs(x - x_now) <= most + 1e-9
        changed = [name for name in "xy" if not is_same[name] and not (name == "x" and is_within)]
        if changed:
            expected[number] = changed
        elif not is_same["x"]:
            n_within += 1
    assert (
        dict(zip(*(found.updated[name].to_pylist() for name in ("id", "columns")), strict=True)) == expected
    )
    assert (found.n_within, found.n_same) == (n_within, len(rows) - len(expected))
    assert found.n_by_column == Counter(name for names in expected.values() for name in names)


def test_snapshot_diff__measures_a_tolerance_to_the_last_digit():
    old = pa.table({"id": [1, 2, 3, 4], "x": ["1.1", "1" + "0" * 40, "9007199254740993", "a"]})
    new = pa.table({"id": [1, 2, 3, 4], "x": ["1.2", "1" + "0" * 39 + "1", "9007199254740992", "b"]})
    for most, ids in ((0.1, [2, 3, 4]), (0.9, [2, 3, 4]), (1, [4])):
        assert snapshot_diff(old, new, key="id", tolerance={"x": most}).updated["id"].to_pylist() == ids
    new = new.set_column(1, "x", pa.array(["1.2" + "0" * 40 + "1", *["0"] * 3]))
    assert snapshot_diff(old, new, key="id", tolerance={"x": 0.1}).updated["id"].to_pylist() == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("is_coded", [False, True])
def test_snapshot_diff__measures_a_tolerance_of_floats_of_few_bits_as_they_are_written(kind, is_coded):
    """As float64 the float32 nearest to 1.2 is more than 0.1 above that nearest to 1.1."""

    def table(values):
        column = pa.array(np.array(values, kind), mask=np.array([value is None for value in values]))
        return pa.table({"id": range(5), "x": column.dictionary_encode() if is_coded else column})

    old, new = table([1.1, 1.1, 0.5, math.nan, None]), table([1.2, 1.3, 0.5, 1.0, 1.0])
    found = snapshot_diff(old, new, key="id", tolerance={"x": 0.1})
    assert (found.n_within, found.n_same, found.updated["id"].to_pylist()) == (1, 2, [1, 3, 4])


def test_snapshot_diff__takes_for_a_number_what_a_contract_does():
    """Python's own would take more: 1_0 for 10, digits of other writings."""
    texts = ["1_0", "１", "1e9999999", "inf", "", "0x1"], ["10", "1.05", "1", "inf ", "0", "1"]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        old, new = (pa.table({"id": range(6), "x": pa.array(each).cast(kind)}) for each in texts)
        found = snapshot_diff(old, new, key="id", tolerance={"x": 0.1})
        assert (found.n_within, found.updated["id"].to_pylist()) == (0, [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"key": "id", "tolerance": {"z": 1}}, "tolerance: z is no compared column; those are x, day"),
        ({"key": "id", "tolerance": {"id": 1}}, "tolerance: id is no compared column"),
        ({"key": "id", "tolerance": {"day": 1}}, r"tolerance: column day holds date32\[day\], not numbers"),
        ({"key": "id", "tolerance": {"x": -1}}, "tolerance of x must be a finite number, at least 0, not -1"),
        ({"key": "id", "tolerance": {"x": math.nan}}, "tolerance of x must be a finite number"),
        ({"key": [], "tolerance": {"x": 1}}, "tolerance needs a key"),
        ({"key": "id", "tolerance": 0.1}, "tolerance must map columns to numbers, not 0.1"),
    ],
)
def test_snapshot_diff__refuses_a_tolerance_that_means_nothing(how, says):
    table = pa.table({"id": [1], "x": [1.0], "day": pa.array([0], pa.date32())})
    with pytest.raises(ArgumentError, match=says):
        snapshot_diff(table, table, **how)
