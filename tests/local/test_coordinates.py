"""Points as they come: what is taken, and which value is refused."""

from __future__ import annotations

import math

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse

from epsjoin.errors import ArgumentError
from epsjoin.local import coordinates
from epsjoin.local.coordinates import check_points


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "i1", "u2", "i4", "i8", "u8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_check_points__takes_floats_and_integers_in_any_order(dtype, order):
    given = np.array([[1, 2, 3], [4, 5, 6]], dtype=dtype, order=order)
    before = given.copy()
    values = check_points("points", given)
    assert values.dtype == np.float64
    assert values.flags.c_contiguous
    assert values.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert (given == before).all()


def test_check_points__takes_booleans_and_what_a_frame_of_several_types_holds():
    assert check_points("points", [[True, False]]).tolist() == [[1.0, 0.0]]
    # What pandas' to_numpy makes of columns of floats, integers and booleans, as of get_dummies.
    rows = np.array([[1.5, 3, True], [np.float32(2.5), np.int64(2**53), np.bool_(False)]], object)
    assert check_points("points", rows).tolist() == [[1.5, 3.0, 1.0], [2.5, 2.0**53, 0.0]]


def test_check_points__takes_a_masked_array_without_masked_values():
    assert check_points("points", np.ma.array([[1.0]], mask=[[False]])).tolist() == [[1.0]]


def test_check_points__does_not_copy_what_is_right():
    given = np.ones((3, 2))
    given.setflags(write=False)
    assert check_points("points", given) is given
    assert check_points("points", np.empty((0, 2))).shape == (0, 2)


def test_check_points__holds_large_integers_that_are_floats():
    whole = [2**53, -(2**53), 2**53 + 2, -(2**63), 2**62, 3 * 2**60]
    assert check_points("points", np.array([whole])).tolist() == [[float(each) for each in whole]]
    top = np.array([[2**64 - 2**11, 2**63]], dtype=np.uint64)
    assert check_points("points", top).tolist() == [[2.0**64 - 2.0**11, 2.0**63]]


@pytest.mark.parametrize("row", [0, 2, 4, 5, 7, 9])
def test_check_points__looks_at_all_rows_range_by_range(row):
    points = np.ones((10, 2))
    points[row, 1] = np.nan
    with pytest.raises(ArgumentError, match=f"points must be finite; row {row}, column 1 is nan"):
        check_points("points", points, lambda n, work: [work(0, 0, n // 2), work(1, n // 2, n)])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([[1.0, 2.0], [3.0, np.nan]], "queries must be finite; row 1, column 1 is nan"),
        ([[1.0, 2.0], [-np.inf, np.nan]], "queries must be finite; row 1, column 0 is -inf"),
        (np.array([[0, 2**53 + 1]]), "float64 can hold; row 0, column 1 is 9007199254740993"),
        (np.array([[0], [-(2**53) - 1]]), "row 1, column 0 is -9007199254740993"),
        (np.array([[2**63 - 1]]), "row 0, column 0 is 9223372036854775807"),
        (np.array([[2**64 - 1]], dtype=np.uint64), "row 0, column 0 is 18446744073709551615"),
        ([1.0, 2.0], r"queries must have the shape \(n, d\) with d at least 1, not \(2,\)"),
        (np.empty((3, 0)), r"not \(3, 0\)"),
        ([[1.0, 2.0], [3.0]], r"queries must have rows of one length: "),
        ([["a"]], "queries must be floats of at most 64 bits or integers, not <U1"),
        ([[1j]], "not complex128"),
        ([[1.0, 2], [True, None]], "queries must be numbers; row 1, column 1 is None"),
        (np.array([[1.5], ["2"]], object), "queries must be numbers; row 1, column 0 is '2'$"),
        (np.array([[1.5], [2**53 + 1]], object), "float64 can hold; row 1, column 0 is 9007199254740993"),
        (np.array([[1.5], [10**400]], object), "queries must be integers that float64 can hold: "),
        (np.array([[1.5, math.nan]], object), "queries must be finite; row 0, column 1 is nan"),
        ([[2**53 + 1, 0.5], [0, 0.5]], "float64 can hold; row 0, column 0 is 9007199254740993"),
        ([[0, 0.5], [2**63 + 1, -1]], "float64 can hold; row 1, column 0 is 9223372036854775809"),
        (pandas.DataFrame({"i": [0, 2**53 + 1], "x": [0.5, 0.5]}), "row 1, column 0 is 9007199254740993"),
        (polars.DataFrame({"i": [0, 2**53 + 1], "x": [0.5, 0.5]}), "row 1, column 0 is 9007199254740993"),
        ([[2**53 + 2, math.nan]], "queries must be finite; row 0, column 1 is nan"),
        (np.ma.array([[1.0, 2.0]], mask=[[False, True]]), "queries must have no masked values, not 1"),
        (scipy.sparse.csr_matrix(np.eye(2)), r"must be a dense array, not a sparse one; queries.toarray\(\)"),
        (scipy.sparse.coo_array(np.eye(2)), "must be a dense array"),
    ],
)
def test_check_points__names_argument_row_and_column(given, says):
    with pytest.raises(ArgumentError, match=says):
        check_points("queries", given)


@pytest.mark.parametrize("make", [np.asarray, pandas.DataFrame, polars.DataFrame, np.ndarray.tolist])
def test_check_points__takes_large_floats_as_they_are(make, monkeypatch):
    """Of columns of floats alone nothing can have been rounded, and no object is made of any."""
    points = np.array([[1e16, 0.5], [-1e300, 2.0**60]])
    if make is not np.ndarray.tolist:
        monkeypatch.setattr(coordinates, "_numbers_of", None)
    assert (check_points("points", make(points)) == points).all()


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is float64 on this machine")
def test_check_points__refuses_floats_that_float64_cannot_hold():
    with pytest.raises(ArgumentError, match="at most 64 bits"):
        check_points("points", np.ones((1, 1), dtype=np.longdouble))
