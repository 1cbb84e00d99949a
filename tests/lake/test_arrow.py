"""Arrow columns and arrays: the same bytes, whatever the chunks and offsets."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from epsjoin.errors import TableError
from epsjoin.lake.arrow import are_same, retype, to_binary, to_codes, to_matrix

POINTS = np.random.default_rng(0).normal(size=(50, 3))


def test_to_matrix__gives_back_what_to_binary_took() -> None:
    np.testing.assert_array_equal(to_matrix(to_binary(POINTS), 3), POINTS)
    assert to_binary(POINTS)[7].as_py() == POINTS[7].astype("<f8").tobytes()


def test_to_matrix__honours_offsets_and_chunks() -> None:
    column = to_binary(POINTS)
    np.testing.assert_array_equal(to_matrix(column.slice(11, 20), 3), POINTS[11:31])
    chunks = pa.chunked_array([column.slice(5, 10), column.slice(15, 0), column.slice(15, 30)])
    np.testing.assert_array_equal(to_matrix(chunks, 3), POINTS[5:45])
    assert to_matrix(pa.chunked_array([], pa.binary()), 3).shape == (0, 3)
    assert to_matrix(pa.array([], pa.binary()), 3).shape == (0, 3)


@pytest.mark.parametrize("values", [[POINTS[0].tobytes(), None], [POINTS[0].tobytes(), b"short"], [b""]])
def test_to_matrix__refuses_what_is_no_point(values: list[bytes | None]) -> None:
    with pytest.raises(TableError, match="a point is not 3 float64 values long"):
        to_matrix(pa.array(values, pa.binary()), 3)


def test_to_codes__gives_back_what_to_binary_took() -> None:
    codes = np.random.default_rng(1).integers(0, 256, (40, 7), np.uint8)
    column = to_binary(codes)
    np.testing.assert_array_equal(to_codes(column.slice(3, 30)), codes[3:33])
    assert to_codes(column.slice(0, 0)).shape == (0, 2)


@pytest.mark.parametrize("values", [[b"12", b"123"], [None, b"12"], [None, None]])
def test_to_codes__refuses_what_is_no_code(values: list[bytes | None]) -> None:
    with pytest.raises(TableError, match="the codes of one plan have one width"):
        to_codes(pa.array(values, pa.binary()))


def test_are_same__takes_two_nulls_and_two_nans_for_the_same_and_nothing_else() -> None:
    old = pa.chunked_array([[1.0, None, math.nan, None], [math.nan, 1.0, 0.0]])
    new = pa.chunked_array([[1.0, None, math.nan], [1.0, None, 2.0, -0.0]])
    assert are_same(old, new).tolist() == [True, True, True, False, False, False, True]
    texts = pa.chunked_array([["a", "", None, None]]), pa.chunked_array([["a", None, None, "b"]])
    assert are_same(*texts).tolist() == [True, False, True, False]
    empty = pa.chunked_array([], pa.float64())
    assert are_same(empty, empty).tolist() == []


def test_retype__makes_null_of_the_values_alone_that_become_none_of_the_type() -> None:
    texts = pa.chunked_array([["1", "two"], [None, "3", "1"]])
    rows = pa.table({"n": texts, "x": [0.5, 1.0, 1.5, math.nan, 2.0], "day": [1.5] * 5})
    columns = pa.schema([("n", pa.int64()), ("x", pa.int64()), ("day", pa.date32())])
    found = retype(rows, columns)
    assert found.schema == columns
    expected = {"n": [1, None, None, 3, 1], "x": [None, 1, None, None, 2], "day": [None] * 5}
    assert found.to_pydict() == expected
    assert retype(rows.combine_chunks().to_batches()[0], columns).to_pydict() == expected
    large = pa.table({"n": [2**62, 2**53 + 1, 2**53 + 2, None, 5]})
    found = retype(large, pa.schema([("n", pa.float64())])).to_pydict()
    assert found == {"n": [2.0**62, None, 2.0**53 + 2, None, 5.0]}, "float64 holds all but one"
