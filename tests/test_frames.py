"""Frames in, frames out: the pairs of the arrays, with the ids, the index and the types of the frame."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

import epsjoin
from epsjoin.errors import ArgumentError

XY = np.random.default_rng(0).random((60, 2))
NAMES = [f"row {number}" for number in range(60)]
FRAME = pd.DataFrame({"name": NAMES, "x": XY[:, 0], "y": XY[:, 1]}, index=pd.RangeIndex(100, 160, name="key"))
PAIRS = epsjoin.self_join(XY, 0.1)
DECIMAL256 = pa.decimal256(60, 2)


class Stream:
    """What only hands out an Arrow stream."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def listed(column):
    return np.asarray(column).tolist()


def assert_pairs(found, left, right):
    assert (listed(found["left_id"]), listed(found["right_id"])) == (left, right)
    assert listed(found["distance"]) == PAIRS.distance.tolist()


def test_pandas__ids_are_the_index_or_a_column_of_any_type():
    found = epsjoin.join_frames(FRAME, eps=0.1, columns=["x", "y"])
    assert isinstance(found, pd.DataFrame)
    assert_pairs(found, (PAIRS.left + 100).tolist(), (PAIRS.right + 100).tolist())
    times = FRAME.assign(at=pd.date_range("2026-01-01", periods=60, tz="UTC"), kind=pd.Categorical(NAMES))
    for column in ("name", "at", "kind"):
        found = epsjoin.join_frames(times, eps=0.1, columns=["x", "y"], id=column)
        assert found["left_id"].dtype == found["right_id"].dtype == times[column].dtype
        assert found["left_id"].tolist() == times[column].iloc[PAIRS.left].tolist()
        assert found["right_id"].tolist() == times[column].iloc[PAIRS.right].tolist()


def test_polars__ids_are_rows_or_a_column():
    frame = polars.DataFrame({"name": NAMES, "x": XY[:, 0], "y": XY[:, 1]})
    found = epsjoin.join_frames(frame, eps=0.1, columns=["x", "y"])
    assert isinstance(found, polars.DataFrame)
    assert_pairs(found, PAIRS.left.tolist(), PAIRS.right.tolist())
    found = epsjoin.join_frames(frame, eps=0.1, columns=["x", "y"], id="name")
    assert_pairs(found, [NAMES[row] for row in PAIRS.left], [NAMES[row] for row in PAIRS.right])
    kinds = frame.with_columns(kind=polars.Series(NAMES, dtype=polars.Categorical))
    assert (
        epsjoin.join_frames(kinds, eps=0.1, columns=["x", "y"], id="kind").schema["left_id"]
        == polars.Categorical
    )
    alone = epsjoin.join_frames(frame, eps=0.1, columns=["x", "y"], how="anti")
    assert listed(alone["name"]) == [NAMES[row] for row in epsjoin.join(XY, None, 0.1, how="anti").left]


@pytest.mark.parametrize("wrap", [lambda table: table, Stream], ids=["table", "stream"])
def test_arrow__tables_and_streams_become_tables(wrap):
    table = pa.table({"name": pa.array(NAMES).dictionary_encode(), "x": XY[:, 0], "y": XY[:, 1]})
    found = epsjoin.join_frames(wrap(table), eps=0.1, columns=["x", "y"], id="name")
    assert isinstance(found, pa.Table)
    assert found.schema.field("left_id").type == table.schema.field("name").type
    left, right = found["left_id"].to_pylist(), found["right_id"].to_pylist()
    assert (left, right) == ([NAMES[row] for row in PAIRS.left], [NAMES[row] for row in PAIRS.right])


def test_join_frames__of_two_kinds_has_the_kind_of_the_left_one():
    others = pa.table({"x": XY[:20, 0] + 0.01, "y": XY[:20, 1]})
    found = epsjoin.join_frames(FRAME, others, eps=0.05, columns=["x", "y"])
    pairs = epsjoin.join(XY, XY[:20] + np.array([0.01, 0.0]), 0.05)
    assert isinstance(found, pd.DataFrame)
    assert listed(found["left_id"]) == (pairs.left + 100).tolist()
    assert listed(found["right_id"]) == pairs.right.tolist()
    near = epsjoin.join_frames(FRAME, others, eps=0.05, columns=["x", "y"], how="semi")
    pd.testing.assert_frame_equal(near, FRAME.iloc[np.unique(pairs.left)])
    mirrored = epsjoin.join_frames(polars.DataFrame(others.to_pydict()), FRAME, eps=0.05, columns=["x", "y"])
    assert isinstance(mirrored, polars.DataFrame)
    assert sorted(mirrored["right_id"].to_list()) == sorted(listed(found["left_id"]))


TIMES = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in range(20)]
IDS = {
    "times of a zone": TIMES,
    "dates": [date(2026, 1, 1 + number) for number in range(20)],
    "integers and nulls": [None, *range(2**60, 2**60 + 19)],
    "integers": list(range(2**60, 2**60 + 20)),
    "decimals": [Decimal(number) / 4 for number in range(20)],
    "lists": [[number] for number in range(20)],
    "structs": [{"number": number} for number in range(20)],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS.keys())
@pytest.mark.parametrize("of", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("into", ["pandas", "polars", "pyarrow"])
def test_frames__ids_of_another_kind_stay_as_they_are(into, of, ids):
    given = pd.array(ids, dtype="Int64") if of == "pandas" and None in ids else ids
    columns = {"id": given, "x": XY[:20, 0], "y": XY[:20, 1]}
    make = {"pandas": pd.DataFrame, "polars": partial(polars.DataFrame, strict=False), "pyarrow": pa.table}
    left = make[into]({**columns, "id": list(range(20))})
    found = epsjoin.knn_frames(left, make[of](columns), 2, columns=["x", "y"], id="id")
    assert isinstance(found, type(left))
    expected = [ids[row] for row in epsjoin.knn_join(XY[:20], XY[:20], 2).neighbour.reshape(-1)]
    right = found["right_id"].to_pylist() if into == "pyarrow" else found["right_id"].to_list()
    assert [None if each is pd.NA else each for each in right] == expected


@pytest.mark.parametrize("into", [pd.DataFrame, pa.table])
def test_frames__objects_of_polars_are_ids_of_another_kind(into):
    left = into({"id": [1, 2], "x": [0.0, 1.0]})
    ids = [Decimal("1.5"), Decimal("2.5")]
    right = polars.DataFrame({"id": polars.Series(ids, dtype=polars.Object), "x": polars.Series([0.0, 1.0])})
    found = epsjoin.join_frames(left, right, eps=0.5, columns=["x"], id="id")["right_id"]
    assert (found.to_pylist() if into is pa.table else found.to_list()) == ids


@pytest.mark.parametrize(
    ("into", "right"),
    [
        (pd.DataFrame, polars.DataFrame({"id": polars.Series([2**100], dtype=polars.Int128), "x": [0.0]})),
        (pa.table, polars.DataFrame({"id": polars.Series([2**100], dtype=polars.Int128), "x": [0.0]})),
        (pa.table, polars.DataFrame({"id": polars.Series([object()], dtype=polars.Object), "x": [0.0]})),
        (pa.table, pd.DataFrame({"id": [object()], "x": [0.0]})),
        (polars.DataFrame, pa.table({"id": pa.array([[1]], pa.list_view(pa.int64())), "x": [0.0]})),
        (polars.DataFrame, pa.table({"id": pa.array([Decimal(10**50)], DECIMAL256), "x": [0.0]})),
        (polars.DataFrame, pa.table({"id": pa.array([[Decimal(1)]], pa.list_(DECIMAL256)), "x": [0.0]})),
    ],
)
def test_frames__ids_that_another_kind_has_not_are_refused_in_one_sentence(into, right):
    says = r"the right ids, of \w+, cannot stand in a frame of \w+; cast them, for example to texts"
    with pytest.raises(ArgumentError, match=says):
        epsjoin.join_frames(into({"id": [1], "x": [0.0]}), right, eps=0.5, columns=["x"], id="id")


def test_frames__decimals_of_256_bits_are_ids_in_polars_where_they_have_38_digits():
    right = pa.table({"id": pa.array([Decimal("-9" + "9" * 35 + ".25")], DECIMAL256), "x": [0.0]})
    left = polars.DataFrame({"id": [1], "x": [0.0]})
    found = epsjoin.join_frames(left, right, eps=0.5, columns=["x"], id="id")
    assert found["right_id"].to_list() == right["id"].to_pylist()


@pytest.mark.filterwarnings("error")  # of an overflow
@pytest.mark.parametrize("k", [np.uint8(255), np.int8(127)])
def test_knn_frames__take_a_short_integer_for_k(k):
    frame = pd.DataFrame({"x": np.arange(300.0)})
    found = epsjoin.knn_frames(frame, k=k, columns=["x"])
    assert found["nth"].tolist() == list(range(1, int(k) + 1)) * 300


def test_pandas__an_index_of_several_levels_gives_tuples():
    frame = FRAME.set_index(["name", FRAME.index])
    found = epsjoin.join_frames(frame, eps=0.1, columns=["x", "y"])
    assert_pairs(found, *([(NAMES[row], 100 + row) for row in side] for side in PAIRS[:2]))


@pytest.mark.parametrize("make", [pd.DataFrame, polars.DataFrame, pa.table])
def test_join_frames__takes_one_column_of_vectors_or_of_numbers(make):
    frame = make({"at": XY.tolist(), "x": XY[:, 0]})
    assert_pairs(epsjoin.join_frames(frame, eps=0.1, columns="at"), PAIRS.left.tolist(), PAIRS.right.tolist())
    found = epsjoin.join_frames(frame, eps=0.01, columns="x")
    assert listed(found["left_id"]) == epsjoin.self_join(XY[:, :1], 0.01).left.tolist() != []
    nothing = frame[:0]
    assert len(epsjoin.join_frames(nothing, eps=0.1, columns="at")) == 0
    assert len(epsjoin.join_frames(frame, nothing, eps=0.1, columns="at", how="anti")) == 60
    assert len(epsjoin.knn_frames(nothing, frame, 2, columns="at")) == 0


def test_knn_frames__number_the_neighbours():
    found = epsjoin.knn_frames(FRAME, k=3, columns=["x", "y"], id="name")
    expected = epsjoin.knn_join(None, XY, 3)
    assert found["left_id"].tolist() == [name for name in NAMES for _ in range(3)]
    assert found["right_id"].tolist() == [NAMES[row] for row in expected.neighbour.reshape(-1)]
    assert found["distance"].tolist() == expected.distance.reshape(-1).tolist()
    assert found["nth"].tolist() == [1, 2, 3] * 60
    of_two = epsjoin.knn_frames(FRAME.iloc[:5], FRAME, 1, columns=["x", "y"])
    assert of_two["right_id"].tolist() == of_two["left_id"].tolist() == list(range(100, 105))


@pytest.mark.parametrize("others", [None, FRAME])
def test_knn_frames__take_weights(others):
    found = epsjoin.knn_frames(FRAME, others, 2, columns=["x", "y"], weights=[9, 0.5])
    expected = epsjoin.knn_join(None if others is None else XY, XY, 2, weights=[9, 0.5])
    assert found["distance"].tolist() == expected.distance.reshape(-1).tolist()
    assert (found["right_id"] - FRAME.index[0]).tolist() == expected.neighbour.reshape(-1).tolist()
    assert (
        expected.neighbour.tolist()
        != epsjoin.knn_join(None if others is None else XY, XY, 2).neighbour.tolist()
    )


def test_frames__read_a_stream_once_that_is_both_of_them():
    table = pa.table({"x": [0.0, 1.0, 5.0]})
    for function, given in ((epsjoin.join_frames, {"eps": 1.0}), (epsjoin.knn_frames, {"k": 2})):
        reader = table.to_reader()
        found = function(reader, reader, columns=["x"], **given)
        assert found.equals(function(table, table, columns=["x"], **given))


VIEWS = pa.array(NAMES, pa.string_view())
REPEATED = pa.RunEndEncodedArray.from_arrays(pa.array([20, 60], pa.int32()), pa.array(["a", "b"]))


@pytest.mark.parametrize("ids", [VIEWS, VIEWS.cast(pa.binary_view()), REPEATED])
def test_arrow__ids_and_payload_may_be_views_or_repeated(ids):
    table = pa.table({"id": ids, "x": XY[:, 0], "y": XY[:, 1]})
    given = {"eps": 0.1, "columns": ["x", "y"]}
    expected = ids.to_pylist()
    assert_pairs(
        epsjoin.join_frames(table, id="id", **given).to_pandas(),
        [expected[row] for row in PAIRS.left],
        [expected[row] for row in PAIRS.right],
    )
    taken = epsjoin.join_frames(table, how="semi", **given)["id"].to_pylist()
    assert taken == [expected[row] for row in np.unique(np.concatenate((PAIRS.left, PAIRS.right)))]
    nearest = epsjoin.knn_frames(Stream(table), columns=["x", "y"], id="id")
    assert nearest["left_id"].to_pylist() == expected


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.list_(pa.string_view()), [[name, None] for name in NAMES]),
        (pa.large_list(pa.binary_view()), [[name.encode()] for name in NAMES]),
        (pa.list_(pa.string_view(), 1), [[name] for name in NAMES]),
        (pa.list_view(pa.string_view()), [[name] for name in NAMES]),
        (pa.struct([("names", pa.list_(pa.string_view()))]), [{"names": [name]} for name in NAMES]),
        (pa.map_(pa.string_view(), pa.string_view()), [[(name, name)] for name in NAMES]),
    ],
)
def test_arrow__payload_may_have_views_within_other_values(kind, values):
    table = pa.table({"x": XY[:, 0], "y": XY[:, 1], "more": pa.array(values, kind)})
    taken = epsjoin.join_frames(table, eps=0.1, columns=["x", "y"], how="semi")["more"].to_pylist()
    assert taken == [values[row] for row in np.unique(np.concatenate((PAIRS.left, PAIRS.right)))]


def test_arrow__rows_that_are_taken_keep_the_schema_of_their_table():
    table = pa.Table.from_pandas(FRAME).append_column("view", VIEWS)
    found = epsjoin.join_frames(table, eps=0.1, columns=["x", "y"], how="anti")
    assert found.schema.metadata == table.schema.metadata
    assert found.drop_columns("view").schema.equals(table.drop_columns("view").schema, check_metadata=True)


@pytest.mark.parametrize("as_given", [tuple, iter, pd.Index, np.array])
def test_frames__take_names_of_columns_in_any_list(as_given):
    found = epsjoin.join_frames(FRAME, FRAME, eps=0.3, columns=as_given(["x", "y"]))
    assert found.equals(epsjoin.join_frames(FRAME, FRAME, eps=0.3, columns=["x", "y"]))
    assert len(epsjoin.knn_frames(FRAME, FRAME, columns=as_given(["x", "y"]))) == len(FRAME)


@pytest.mark.parametrize("how", [{"metric": "haversine"}, {"eps": [0.5, 0.6]}, {"weights": [1, 2]}])
def test_join_frames__of_vectors_without_rows_has_no_pairs(how):
    empty = pd.DataFrame({"at": []})
    assert not len(epsjoin.join_frames(empty, **{"columns": "at", "eps": 0.5} | how))


@pytest.mark.parametrize("how", [{}, {"metric": "haversine"}, {"weights": [1, 2]}])
def test_knn_frames__of_vectors_without_rows_has_no_neighbours(how):
    assert not len(epsjoin.knn_frames(pd.DataFrame({"at": []}), columns="at", **how))


VECTORS = polars.DataFrame(
    {
        "at": [[0.0, 9.0], [9.0, 0.0]],
        "x": [1.0, 2.0],
        "long": [2**70, 0],
        "exact": [Decimal("0.1"), Decimal(1)],
    },
    schema_overrides={"at": polars.Array(polars.Float64, 2), "long": polars.Int128},
).with_columns(both=polars.struct("x", y="x"))


@pytest.mark.parametrize(
    ("frame", "how", "says"),
    [
        (XY, {}, "left must be a DataFrame of pandas or polars, or an Arrow table or stream, not ndarray"),
        (FRAME, {"columns": ["x", "z"]}, "left must have one column 'z'; its columns are name, x, y"),
        (FRAME, {"columns": []}, "columns must name at least one column"),
        (FRAME, {"columns": ["name"]}, "left, column 'name', must be numbers"),
        (FRAME, {"id": "key"}, "left must have one column 'key'"),
        (FRAME, {"id": "key", "how": "semi"}, "left must have one column 'key'"),
        (FRAME, {"columns": 0}, "columns must be the name of a column, or a list of names, not 0"),
        (polars.Series([1, 2]), {}, "left must be a DataFrame of pandas or polars, or an Arrow table"),
        (FRAME, {"how": "left"}, "how must be one of inner, semi, anti, not 'left'"),
        (
            pd.DataFrame({"x": [2**53 + 1], "y": [0.5]}),
            {},
            "'x', must be integers that float64 can hold",
        ),
        (
            pd.DataFrame({"x": [2**53, 2**53 + 1, 0.5]}, dtype=object),
            {"columns": "x"},
            "integers that float64 can hold; row 1",
        ),
        (pd.DataFrame({"x": [1.0, None], "y": [0.5, 1.0]}), {}, "column 'x', must be finite; row 1"),
        (
            pd.DataFrame({"at": [[1.0, 2.0], [3.0]]}),
            {"columns": "at"},
            "left, column 'at', must have vectors of one length, none of them missing",
        ),
        (VECTORS, {"columns": ["at"]}, "left, column 'at', must be numbers, not vectors; .* as columns='at'"),
        (VECTORS, {"columns": ["at", "x"]}, "left, column 'at', must be numbers, not vectors"),
        (VECTORS, {"columns": "both"}, "left, column 'both', must be numbers or vectors, not Struct"),
        (VECTORS, {"columns": "long"}, "left, column 'long', must be numbers or vectors, not Int128"),
        (VECTORS, {"columns": ["long"]}, "left, column 'long', must be numbers or vectors, not Int128"),
        (
            VECTORS,
            {"columns": ["exact"]},
            r"floats or integers \(cast decimals to float64\); row 0, column 0 is",
        ),
        (FRAME, {"columns": ["x", "x"]}, "columns names a column twice: x, x"),
        (FRAME, {"columns": [["x", "y"]]}, r"left must have one column \['x', 'y'\]"),
        (FRAME, {"columns": np.array("x")}, "columns must be the name of a column, or a list of names"),
        (FRAME, {"columns": [FRAME["x"], FRAME["y"]]}, "left must have one column Series; its columns are"),
        (FRAME, {"id": FRAME["name"]}, "left must have one column Series; its columns are name, x, y"),
        (FRAME, {"id": np.arange(60)}, "left must have one column ndarray"),
        (FRAME, {"eps": [[1.0], [1.0, 2.0]]}, "eps must have rows of one length"),
        (FRAME, {"weights": [[1.0], [1.0, 2.0]]}, "weights must have rows of one length"),
    ],
)
def test_join_frames__refuses(frame, how, says):
    with pytest.raises(ArgumentError, match=says):
        epsjoin.join_frames(frame, **{"eps": 0.1, "columns": ["x", "y"], **how})


def test_frames__of_other_names_are_joined_as_of_the_same():
    same = FRAME.iloc[:20].set_index("name", drop=False)
    other = same.rename(columns={"name": "shop", "x": "lon", "y": "lat"})
    names = {"right_columns": ["lon", "lat"], "right_id": "shop"}
    for frame in (other, polars.from_pandas(other)):
        for function, given in ((epsjoin.join_frames, {"eps": 0.2}), (epsjoin.knn_frames, {"k": 3})):
            expected = function(FRAME, same, columns=["x", "y"], id="name", **given)
            assert len(expected) > 20
            found = function(FRAME, frame, columns=["x", "y"], id="name", **given, **names)
            assert found.map(str).equals(expected.map(str))
    alone = epsjoin.join_frames(FRAME, other, eps=0.1, columns=["x", "y"], how="anti", **names)
    expected = epsjoin.join_frames(FRAME, same, eps=0.1, columns=["x", "y"], how="anti")
    pd.testing.assert_frame_equal(alone, expected)
    found = epsjoin.join_frames(FRAME, other, eps=0.2, columns=["x", "y"], **names)
    assert set(found["left_id"]) <= set(FRAME.index), "the left frame's own index, as without right_id"


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ({"right_columns": ["lon", "lat"]}, "right must have one column 'lon'; its columns are name, x, y"),
        ({"right_columns": []}, "right_columns must name at least one column"),
        ({"right_columns": 0}, "right_columns must be the name of a column, or a list of names, not 0"),
        ({"right_columns": ["x"]}, "left and right must have the same dimensions, not 2 and 1"),
        ({"right_id": "shop"}, "right must have one column 'shop'"),
    ],
)
def test_names_in_the_right_frame__are_checked(names, says):
    with pytest.raises(ArgumentError, match=says):
        epsjoin.join_frames(FRAME, FRAME, eps=0.1, columns=["x", "y"], **names)
    with pytest.raises(ArgumentError, match=f"{next(iter(names))} is for two frames: give right, too"):
        epsjoin.join_frames(FRAME, eps=0.1, columns=["x", "y"], **names)
    with pytest.raises(ArgumentError, match=f"{next(iter(names))} is for two frames: give points, too"):
        epsjoin.knn_frames(FRAME, columns=["x", "y"], **names)


BAD = {
    "nan": ([1.0, np.nan], "euclidean", ", column 'at', must be finite; row 1, column 1 is nan"),
    "zero": ([0.0, 0.0], "cosine", ": cosine needs vectors .*; row 1 breaks this"),
    "beyond a pole": ([91.0, 0.0], "haversine", ": haversine needs a latitude .*; row 1 breaks this"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("side", ["alone", "left", "right"])
@pytest.mark.parametrize("how", ["inner", "semi"])
def test_join_frames__says_whose_vectors_are_wrong(bad, side, how):
    vector, metric, says = BAD[bad]
    wrong, right = (pd.DataFrame({"at": [[1.0, 1.0], each]}) for each in (vector, [1.0, 2.0]))
    frames = {"alone": (wrong,), "left": (wrong, right), "right": (right, wrong)}[side]
    with pytest.raises(ArgumentError, match=("right" if side == "right" else "left") + says):
        epsjoin.join_frames(*frames, eps=1.0, columns="at", metric=metric, how=how)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("side", ["alone", "queries", "points"])
def test_knn_frames__says_whose_vectors_are_wrong(bad, side):
    vector, metric, says = BAD[bad]
    wrong, right = (pd.DataFrame({"at": [[1.0, 1.0], each]}) for each in (vector, [1.0, 2.0]))
    frames = {"alone": (wrong,), "queries": (wrong, right), "points": (right, wrong)}[side]
    with pytest.raises(ArgumentError, match=("points" if side == "points" else "queries") + says):
        epsjoin.knn_frames(*frames, columns="at", metric=metric)
