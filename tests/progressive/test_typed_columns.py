"""Joins of columns whose values are not plain numbers: integers with nulls, times of several units."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from epsjoin import Band, Equi, Similarity, Spatial, Temporal, bestmatch_files, progressive_join
from epsjoin.errors import ArgumentError, DataRefusedError
from tests.local.progressive.cases import gathered
from tests.progressive.points import left_by_a_kill


def with_nulls(n: int, seed: int) -> pa.Table:
    """Whole numbers beyond 2**53, of which some are missing, but none in the first 4,000 rows."""
    random = np.random.default_rng(seed)
    numbers = random.integers(2**53, 2**53 + 9 * n, n)
    is_null = (random.random(n) < 0.3) & (np.arange(n) >= 4000)
    return pa.table({"a": pa.array(numbers, mask=is_null), "name": np.arange(n) * 3})


@pytest.mark.parametrize("how", ["inner", "semi", "anti", "left", "outer"])
def test_equi__of_integers_with_nulls_is_that_of_sql(tmp_path, how):
    left, right = with_nulls(30_000, 1), with_nulls(20_000, 2)
    rows_of: dict[int, list[int]] = {}
    for row, value in enumerate(right["a"].to_pylist()):
        rows_of.setdefault(value, []).append(row)
    rows_of.pop(None)
    partners = [rows_of.get(value, []) for value in left["a"].to_pylist()]
    met = {other for some in partners for other in some}
    expected = [row for row, some in enumerate(partners) if bool(some) == (how == "semi")]
    if how in ("inner", "left", "outer"):
        expected = [(row, other) for row, some in enumerate(partners) for other in some]
        expected += [(row, -1) for row, some in enumerate(partners) if not some and how != "inner"]
        expected += [(-1, row) for row in range(20_000) if row not in met and how == "outer"]
    assert len(expected) > 1000
    for side, table in (("left", left), ("right", right)):
        pq.write_table(table, tmp_path / f"{side}.parquet", row_group_size=3000)
        pyarrow.csv.write_csv(table, tmp_path / f"{side}.csv")
    files = [tmp_path / f"{side}.parquet" for side in ("left", "right")]
    inputs = {
        "Parquet": (files, {}),
        "shuffled": (files, {"shuffle": 3}),
        "CSV": ([tmp_path / f"{side}.csv" for side in ("left", "right")], {}),
        "batches": ([iter(table.to_batches(700)) for table in (left, right)], {}),
    }
    for name, (tables, options) in inputs.items():
        options |= {"columns": ["a"], "right_columns": ["a"], "memory": "1.5MB"}
        with progressive_join(*tables, Equi(), how, **options) as found:
            assert gathered(list(found)) == sorted(expected), name
        assert found.counters["runs"] > 1


def test_equi__of_integers_with_nulls_goes_on_only_with_the_same_ones(tmp_path):
    numbers = np.arange(60_000) % 30_000
    tables = [pa.table({"a": pa.array(numbers, mask=np.arange(60_000) == null)}) for null in (70, 71)]
    tables.append(pa.table({"a": np.where(np.arange(60_000) == 70, 0, numbers)}))
    options = {"on": Equi(), "memory": "1.5MB"}
    batches = [table.to_batches(1000) for table in tables]
    with progressive_join(iter(batches[0]), spill=tmp_path / "spill", **options) as first:
        given = []
        while first.counters["runs"] < 2:
            given.append(next(first))
        killed = [left_by_a_kill(tmp_path / "spill").rename(tmp_path / f"copy {copy}") for copy in range(3)]
    for other, spill in zip(batches[1:], killed[1:], strict=True):
        with pytest.raises(ArgumentError, match="are others now"):
            list(progressive_join(iter(other), spill=spill, **options))
    with progressive_join(iter(batches[0]), spill=killed[0], **options) as again:
        found = set(gathered(given)) | set(gathered(list(again)))
    assert found == {(row, row + 30_000) for row in range(30_000) if row != 70}


def test_progressive_join__refuses_nulls_of_integers_and_numbers_beyond_int64(tmp_path):
    table = pa.table({"x": pa.array([1, 2, None]), "y": pa.array([1, 2, 2**64 - 1], pa.uint64())})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    sentence = "must have no missing values to be joined on Band; row 2 has one"
    with pytest.raises(DataRefusedError, match=rf"a\.parquet: its rows {sentence}"):
        list(progressive_join(tmp_path / "a.parquet", on=Band(1.0), columns=["x"]))
    with pytest.raises(ArgumentError, match=f"points {sentence}"):
        list(progressive_join(iter(table.to_batches(1)), on=Band(1.0), columns=["x"]))
    for rows in (tmp_path / "a.parquet", iter(table.to_batches(1))):
        with pytest.raises(
            DataRefusedError, match="a column has a number that int64 cannot hold: .*18446744"
        ):
            list(progressive_join(rows, on=Equi(), columns=["y"]))


DAYS = np.array([["1970-01-01", "1970-01-02"]], "M8[D]")

STAMPS = {
    unit: pa.table({name: pa.array([at], pa.timestamp(unit)) for at, name in enumerate("ab")})
    for unit in ("us", "ns")
}


@pytest.mark.parametrize(
    ("left", "right", "kinds"),
    [
        (DAYS, DAYS.astype(np.int64), "times in ns and numbers"),
        (DAYS.astype(np.int64), DAYS, "numbers and times in ns"),
        (DAYS, DAYS - np.datetime64(0, "D"), "times in ns and durations in ns"),
        (STAMPS["us"], DAYS, "times in us and times in ns"),
        (STAMPS["us"], STAMPS["ns"], "times in us and times in ns"),
        (STAMPS["us"], DAYS.astype(np.int64), "times in us and numbers"),
    ],
)
def test_temporal__does_not_compare_times_with_what_is_none_or_in_another_unit(left, right, kinds):
    tables = [iter(table.to_batches()) if isinstance(table, pa.Table) else table for table in (left, right)]
    with (
        pytest.raises(ArgumentError, match=f"all rows must be of one kind, not {kinds}"),
        progressive_join(*tables, Temporal()) as found,
    ):
        list(found)


def test_temporal__compares_times_of_one_unit_wherever_they_come_from():
    for left, right in ((DAYS, DAYS.astype("M8[ns]")), (iter(STAMPS["ns"].to_batches()), DAYS)):
        with progressive_join(left, right, Temporal()) as found:
            assert gathered(list(found)) == [(0, 0)]
    times = [iter(STAMPS["us"].select(["b"]).to_batches()), np.array([1, 5])]
    with progressive_join(*times, Equi()) as found:  # which takes no datetime64
        assert gathered(list(found)) == [(0, 0)]


@pytest.mark.parametrize("kind", [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")], ids=str)
def test_progressive_join__takes_times_of_day_of_any_unit(kind):
    batches = [
        pa.table({"at": pa.array(at, kind)}).to_batches() for at in ([5, None, 86_399], [None, 86_399])
    ]
    with progressive_join(*map(iter, batches), Equi()) as found:
        assert gathered(list(found)) == [(2, 1)]


def test_progressive_join__refuses_a_span_of_months_and_days():
    batch = pa.record_batch({"x": pa.array([pa.MonthDayNano([1, 2, 3])])})
    with pytest.raises(
        DataRefusedError, match="'x' must be of numbers or times, not month_day_nano_interval"
    ):
        list(progressive_join(iter([batch]), on=Equi()))


def test_progressive_join__refuses_what_files_hold(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1.0, None], "name": ["a", "b"], "n": [1, None]}), path)
    with pytest.raises(ArgumentError, match="has no column 'z'"):
        progressive_join(path, on=Band(1.0), columns=["z"])
    with pytest.raises(DataRefusedError, match="column 'name' must be of numbers"):
        progressive_join(path, on=Band(1.0))
    with pytest.raises(
        DataRefusedError, match=r"a\.parquet: its rows must be finite; row 1, column 'x' is n"
    ):
        list(progressive_join(path, on=Band(1.0), columns=["x"]))
    with pytest.raises(DataRefusedError, match="column 'n' must be of whole numbers, without missing"):
        list(progressive_join(path, on=Band(1.0), columns=["x"], id="n"))
    with progressive_join(path, path, Equi(), "left", columns=["x"]) as found:
        assert gathered(list(found)) == [(0, 0), (1, -1)]
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataRefusedError, match="b.parquet: cannot be read: "):
        progressive_join(tmp_path / "b.parquet", on=Band(1.0))
    (tmp_path / "b.tsv").write_text("x\n1\n")
    with pytest.raises(DataRefusedError, match=r"b.tsv: cannot be read as Parquet \(a CSV file ends"):
        progressive_join(tmp_path / "b.tsv", on=Band(1.0))


def test_progressive_join__names_the_row_of_the_file_whose_number_is_none(tmp_path):
    """Not that of the batch in which it came."""
    x = np.arange(40_000.0)
    x[30_123] = np.nan
    pq.write_table(pa.table({"a": np.zeros(len(x)), "x": x}), tmp_path / "a.parquet")
    pyarrow.csv.write_csv(pa.table({"a": np.zeros(len(x)), "x": x}), tmp_path / "a.csv")
    sentences = {"a.parquet": "be finite; row 30,123, column 'x' is", "a.csv": "have no .*; row 30,123 has"}
    for name, what in sentences.items():
        with pytest.raises(DataRefusedError, match=f"{name}: its rows must {what}"):
            list(progressive_join(tmp_path / name, on=Similarity(0.1)))
    with pytest.raises(DataRefusedError, match="the row with the id 30123, column 'x' is nan"):
        list(progressive_join(tmp_path / "a.parquet", on=Similarity(0.1), shuffle=1))
    with pytest.raises(ArgumentError, match="points must be finite; row 30,123, column 0 is nan"):
        list(progressive_join(np.column_stack((x, x)), on=Similarity(0.1)))


def test_progressive_join__takes_whole_numbers_that_have_decimals_farther_down(tmp_path):
    """The types of a CSV file are those of its first megabyte."""
    path, n = tmp_path / "a.csv", 200_000
    path.write_text("x,n\n" + "".join(f"{i},{i}\n" for i in range(n)) + f"5.25,{n}\n")
    found = gathered(list(progressive_join(path, on=Similarity(0.3), columns=["x"], id="n")))
    assert found == [(5, n)]
    assert gathered(list(progressive_join(path, on=Band(0.3), columns=["x"]))) == [(5, n)]
    path.write_text(path.read_text() + "here,1\n")
    with pytest.raises(DataRefusedError, match="a.csv: cannot be read: .*here"):
        list(progressive_join(path, on=Similarity(0.3), columns=["x"]))


@pytest.mark.parametrize("columns", [["x", "n"], None, ["n"]])
def test_progressive_join__takes_the_same_columns_of_every_kind_of_file(tmp_path, columns):
    """The column of ids may be a coordinate, too."""
    table = pa.table({"x": [0.0, 0.5, 9.0], "n": [3, 4, 5], "y": [0.0, 0.0, 0.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "a.csv")
    on = Band(1.0) if columns == ["n"] else Similarity(1.2)
    found = [
        gathered(list(progressive_join(tmp_path / name, on=on, columns=columns, id="n")))
        for name in ("a.parquet", "a.csv")
    ]
    assert found[0] == found[1] == ([(3, 4), (4, 5)] if columns == ["n"] else [(3, 4)])


def test_progressive_join__refuses_a_column_whose_name_comes_twice(tmp_path):
    (tmp_path / "a.csv").write_text("x,x,y\n1.0,2.0,3.0\n")
    twice = pa.table([[1.0], [2.0], [3.0]], names=["x", "x", "y"])
    pq.write_table(twice, tmp_path / "a.parquet")
    for rows in (tmp_path / "a.csv", tmp_path / "a.parquet", iter(twice.to_batches())):
        with pytest.raises(DataRefusedError, match="column 'x' occurs more than once"):
            list(progressive_join(rows, on=Band(1.0), columns=["x"]))
    assert list(progressive_join(tmp_path / "a.csv", on=Band(1.0), columns=["y"])) == []
    with pytest.raises(ArgumentError, match="column 'x' occurs more than once"):
        bestmatch_files(tmp_path / "a.parquet", tmp_path / "a.parquet", eps=1.0, columns=["x"])


def test_progressive_join__refuses_whole_numbers_that_float64_would_round_beside_floats(tmp_path):
    """Two of them would become one."""
    table = pa.table({"x": [2**53, 2**53 + 1], "y": [0.5, 0.5]})
    pq.write_table(table, tmp_path / "a.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "a.csv")
    for rows in (tmp_path / "a.parquet", tmp_path / "a.csv", iter(table.to_batches())):
        with pytest.raises(DataRefusedError, match=f"column 'x' has {2**53 + 1}, which float64 cannot hold"):
            list(progressive_join(rows, on=Similarity(0.5)))
    near = table.set_column(0, "x", [[2**53, 2**53 + 2]])
    assert gathered(list(progressive_join(iter(near.to_batches()), on=Similarity(2.0)))) == [(0, 1)]


@pytest.mark.parametrize("on", [Temporal(), Spatial()])
@pytest.mark.parametrize(
    ("begin", "end", "kinds"),
    [
        (pa.timestamp("s"), pa.timestamp("ns"), "times in s and times in ns"),
        (pa.date32(), pa.timestamp("s"), "times in ns and times in s"),
        (pa.timestamp("s"), pa.int64(), "times in s and numbers"),
        (pa.timestamp("s"), pa.duration("s"), "times in s and durations in s"),
    ],
)
def test_progressive_join__does_not_compare_two_ends_of_different_kinds(on, begin, end, kinds):
    """A second of January would meet one of March."""
    table = pa.table({"a": pa.array([0, 60], begin), "b": pa.array([10**15, 10**15], end)})
    with pytest.raises(ArgumentError, match=f"a row must begin and end in values of one kind, not {kinds}"):
        list(progressive_join(iter(table.to_batches()), on=on))


def test_spatial__takes_boxes_of_places_and_times():
    ends = {"x": [0.0, 1.0], "t": pa.array([0, 5], pa.timestamp("s"))}
    table = pa.table([*ends.values(), [1.0, 2.0], ends["t"]], names=["x0", "t0", "x1", "t1"])
    assert gathered(list(progressive_join(iter(table.to_batches()), on=Spatial()))) == []
    met = table.set_column(3, "t1", pa.array([5, 5], pa.timestamp("s")))
    assert gathered(list(progressive_join(iter(met.to_batches()), on=Spatial()))) == [(0, 1)]


@pytest.mark.parametrize(
    ("on", "rows"),
    [
        (Equi(), [2**53, 2**53 + 1, 0.5]),
        (Similarity(0.1), [[2**53, 0.5], [2**53 + 1, 0.5]]),
        (Temporal(), [[2**53, 2**53 + 0.5], [2**53 + 1, 2**53 + 2]]),
    ],
)
def test_progressive_join__refuses_lists_of_whole_numbers_that_float64_would_round(on, rows):
    for table in (rows, iter([rows])):
        with pytest.raises(ArgumentError, match=f"a table must be integers .*row 1, column 0 is {2**53 + 1}"):
            list(progressive_join(table, on=on))
