"""progressive_join as it is called: inputs, memory, the first pairs, estimates."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from benchmarks.sets import cad
from epsjoin import Band, Cuts, Similarity, progressive_join, self_join
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.local.progressive.sources import PAUSE
from oracles.papers import spilled_bytes
from tests.local.progressive.cases import gathered
from tests.progressive.points import EPS, POINTS, STORED, N, left_by_a_kill, parquet


def test_progressive_join__of_two_megabytes_gives_what_self_join_does(expected):
    with progressive_join(POINTS, on=Similarity(EPS), memory="2MB") as found:
        batches = list(found)
    assert gathered(batches) == expected
    counters = found.counters
    assert counters["runs"] == 5
    assert counters["rows"] == N
    assert counters["pairs_in_runs"] + counters["pairs_in_merges"] == len(expected)
    assert counters["first_pair_rows"] < N / 10
    assert counters["largest_area"] <= 2**20 // 258  # half of the memory
    by_formula = spilled_bytes(counters["replicas"], STORED, 5, 2)
    assert counters["bytes_written"] == counters["bytes_read"]
    assert counters["passes"] == 3
    assert counters["bytes_written"] <= by_formula  # the first merge takes no more runs than it must
    assert found.estimate.pairs == found.estimate.low == found.estimate.high == len(expected)


def test_progressive_join__writes_every_row_once_where_one_merge_takes_all_runs(expected):
    with progressive_join(POINTS, on=Similarity(EPS), memory="4MB") as found:
        assert gathered(list(found)) == expected
    counters = found.counters
    assert counters["runs"] == 3
    assert counters["bytes_written"] == spilled_bytes(counters["replicas"], STORED, 3, 4)


def test_progressive_join__has_an_estimate_with_its_first_pairs(tmp_path):
    held = []
    for seed in range(40):
        points = np.random.default_rng(seed).random((6000, 2)) ** 2  # denser in a corner
        with progressive_join(points, on=Similarity(0.02), memory="2MB") as found:
            _, phase, estimate = next(found)
            assert phase == "runs"
            assert found.counters["rows"] < 100
        n_pairs = len(self_join(points, 0.02).left)
        assert estimate.pairs == pytest.approx(n_pairs, rel=0.2)
        held.append(estimate.low <= n_pairs <= estimate.high)
    assert np.mean(held) >= 0.93
    with progressive_join(parquet(tmp_path), on=Similarity(EPS), memory="2MB") as found:
        estimate = next(found).estimate
    assert estimate.pairs == pytest.approx(22692, rel=0.3)
    assert estimate[1:] == (None, None, "from a sample of some parts of the table")


def test_progressive_join__reads_as_many_rows_first_as_the_wished_pairs_need():
    dense = np.random.default_rng(1).random((5000, 2))
    for tables, wished in (((POINTS,), 300), ((POINTS,), 1000), ((POINTS, dense), 300)):
        with progressive_join(*tables, on=Similarity(EPS), memory="8MB", first_pairs=wished) as found:
            assert len(next(found).pairs.left) == pytest.approx(wished, rel=0.35)
            assert found.counters["first_pair_rows"] < 0.3 * sum(map(len, tables))
    # a run at most; no sample
    for table, wished, rows in ((POINTS, 10**6, 4064), (iter([POINTS]), 1000, 63)):
        with progressive_join(table, on=Similarity(EPS), memory="2MB", first_pairs=wished) as found:
            next(found)
        assert rows <= found.counters["first_pair_rows"] <= 4.1 * rows


def test_progressive_join__of_codes_compares_what_self_join_does(expected):
    counted: dict[str, int] = {}
    self_join(POINTS, EPS, cuts=Cuts("regular"), counters=counted)
    with progressive_join(POINTS, on=Similarity(EPS, cuts="regular"), memory="2MB") as found:
        assert gathered(list(found)) == expected
    assert found.counters["runs"] == 5
    assert found.counters["candidates"] <= 1.05 * counted["candidates"]
    assert found.counters["distance_computations"] <= 1.05 * counted["distance_computations"]


def far_from_its_beginning() -> np.ndarray:
    """Rows in the order of two places: a plan on the first run has one part for most of them."""
    points = np.random.default_rng(0).random((40_000, 2))
    points[5000:] += 100.0
    return points


def test_progressive_join__whose_first_rows_mislead_the_plan_makes_another(monkeypatch):
    points, bytes_read = far_from_its_beginning(), []
    pairs = self_join(points, 0.004)
    expected = sorted(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    for passes in (3, 10**9):
        monkeypatch.setattr("epsjoin.local.progressive.plans._REPLAN_PASSES", passes)
        table = iter(np.array_split(points, 50))
        with progressive_join(table, on=Similarity(0.004), memory="2MB") as found:
            assert gathered(list(found)) == expected
        counters = found.counters
        assert counters["replans"] == int(passes == 3)
        bytes_read.append(counters["bytes_read"])
        if passes == 3:  # the pairs of the runs lie at the keys of the other plan
            assert counters["estimate_at_50"] == pytest.approx(len(pairs.left), rel=0.05)
    assert bytes_read[0] < 0.65 * bytes_read[1]
    with progressive_join(points, on=Similarity(0.004), memory="2MB") as found:  # planned on a sample of all
        list(found)
    assert found.counters["replans"] == 0


@pytest.mark.parametrize("of", [lambda n: n - 1 - np.arange(n), lambda n: -np.arange(n) * 2**40])
def test_progressive_join__of_rows_with_ids_makes_another_plan_and_estimates_as_well(of):
    points, ids = far_from_its_beginning(), of(40_000)
    pairs = self_join(points, 0.004)
    chunks = zip(np.array_split(ids, 50), np.array_split(points, 50), strict=True)
    with progressive_join(chunks, on=Similarity(0.004), memory="2MB") as found:
        first, second = (
            np.concatenate(ends) for ends in zip(*(pairs[:2] for pairs, *_ in found), strict=True)
        )
    assert found.counters["replans"] == 1
    expected = np.sort(np.column_stack([ids[pairs.left], ids[pairs.right]]), axis=1)
    both = np.sort(np.column_stack([first, second]), axis=1)
    assert (both[np.lexsort(both.T)] == expected[np.lexsort(expected.T)]).all()
    assert found.counters["estimate_at_50"] == pytest.approx(len(pairs.left), rel=0.05)


def test_progressive_join__waits_for_an_iterator_that_has_nothing_yet(monkeypatch):
    waits = []
    monkeypatch.setattr("epsjoin.local.progressive.sources.time.sleep", waits.append)
    with progressive_join(iter([None, None, POINTS[:10]]), on=Similarity(2.0)) as found:
        assert len(gathered(list(found))) == 45
    assert waits == [PAUSE, PAUSE]


def test_progressive_join__of_another_plan_has_the_last_eps_and_outlives_a_stop(tmp_path):
    points = far_from_its_beginning()

    def join_again(spill):
        table = iter(np.array_split(points, 50))
        return progressive_join(table, on=Similarity(0.004), memory="2MB", spill=spill)

    first, before = join_again(tmp_path / "spill"), []
    while first.counters["runs"] < 3:
        before.append(next(first))
    first.lower_eps(0.003)
    while not before or before[-1].phase != "merges":
        before.append(next(first))
    assert first.counters["replans"] == 1
    killed = left_by_a_kill(tmp_path / "spill")
    first.close()
    again = join_again(killed)
    after = list(again)
    assert again.counters["replans"] == 1
    pairs = self_join(points, 0.004)
    distances = zip(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True), pairs.distance, strict=True)
    near = {pair for pair, distance in distances if distance <= 0.003}
    found = set(gathered(before)) | set(gathered(after))
    assert near <= found
    assert all(batch.pairs.distance.max() <= 0.003 for batch in after)
    assert len(gathered(after)) == len(set(gathered(after))) > 1000


def test_progressive_join__keeps_within_its_memory():
    points = cad(40_000)
    list(progressive_join(points[::5], on=Similarity(0.012), memory="2MB"))  # loads what is compiled
    tracemalloc.start()  # sees all arrays of NumPy, whose are all rows, but none of compiled code
    try:
        with progressive_join(points, on=Similarity(0.012), memory="8MB") as found:
            n_pairs = sum(len(pairs.left) for pairs, *_ in found)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert n_pairs == len(self_join(points, 0.012).left)
    assert found.counters["runs"] == 5
    assert found.counters["replicas"] * 149 > 6e6  # bytes of all rows
    assert peak < 5 * 2**20


def test_progressive_join__takes_every_kind_of_input(tmp_path, expected):
    path = parquet(tmp_path)
    table = pq.read_table(path)
    pyarrow.csv.write_csv(table, tmp_path / "points.csv")

    def batches():
        yield None
        yield from table.to_batches(700)

    inputs = {
        "arrays with ids": (np.arange(N), POINTS),
        "iterator of arrays": iter(np.array_split(POINTS, 9)),
        "iterator with ids": ((np.arange(a, b), POINTS[a:b]) for a, b in [(0, 7), (7, 11_000), (11_000, N)]),
        "Arrow batches": batches(),
        "Parquet": path,
        "CSV": str(tmp_path / "points.csv"),
    }
    for name, table_like in inputs.items():
        with progressive_join(table_like, on=Similarity(EPS), memory="2MB", traversal="idle") as found:
            assert gathered(list(found)) == expected, name
        assert found.counters["first_pair_rows"] < N / 10, name


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, polars.DataFrame])
def test_progressive_join__takes_columns_of_frames(make):
    places = np.random.default_rng(1).random((500, 2))
    names = np.arange(500)[::-1] * 3
    frame = make({"y": places[:, 1], "id": names, "x": places[:, 0]})
    near = Similarity(0.05)
    expected = gathered(list(progressive_join((names, places), on=near)))
    given = {"on": near, "columns": ["x", "y"], "id": "id"}
    assert gathered(list(progressive_join(frame, **given))) == expected
    between = gathered(list(progressive_join((names, places), (names, places), near)))
    assert gathered(list(progressive_join(frame, frame, **given))) == between
    with pytest.raises(ArgumentError, match="points is a frame: beside id, name the columns"):
        progressive_join(frame, on=near, id="id")


def test_progressive_join__says_that_the_header_of_a_file_is_not_utf_8(tmp_path):
    (tmp_path / "a.csv").write_bytes("x,né\n1,2\n".encode("latin-1"))
    with pytest.raises(DataRefusedError, match="a.csv: the names of its columns are not UTF-8; convert the"):
        progressive_join(tmp_path / "a.csv", on=Band(1.0), columns=["x"])


def test_progressive_join__keeps_rows_and_ids_of_chunks_that_are_filled_again(expected):
    def refilled():
        points, names = np.empty((100, POINTS.shape[1])), np.empty(100, np.int64)
        for begin in range(0, N, 100):
            points[:], names[:] = POINTS[begin : begin + 100], np.arange(begin, begin + 100)
            yield names, points

    assert N % 100 == 0
    with progressive_join(refilled(), on=Similarity(EPS)) as found:
        assert gathered(list(found)) == expected


@pytest.mark.parametrize("how", ["inner", "semi", "left"])
def test_progressive_join__gives_ids(how):
    points, names = POINTS[:9000], np.random.default_rng(1).permutation(9000) * 3
    arguments = {"on": Similarity(0.006), "how": how, "memory": "1.5MB"}
    with progressive_join(points, points[:5000], **arguments) as found:
        of_rows = gathered(list(found))
        assert found.counters["runs"] == (4 if how == "semi" else 5)
    with progressive_join((names, points), (names[:5000], points[:5000]), **arguments) as found:
        of_names = gathered(list(found))
    named = [*names.tolist(), -1]
    if how == "semi":
        assert of_names == sorted(named[row] for row in of_rows)
    else:
        assert of_names == sorted((named[a], named[b]) for a, b in of_rows)


def test_progressive_join__reads_ids_from_a_column(tmp_path):
    names = np.random.default_rng(1).permutation(3000) * 7
    path = parquet(tmp_path, POINTS[:3000], names)
    with progressive_join(path, on=Similarity(0.01), id="name") as found:
        pairs = gathered(list(found))
    rows = self_join(POINTS[:3000], 0.01, ids=names)
    assert pairs == sorted(zip(rows.left.tolist(), rows.right.tolist(), strict=True))


def test_progressive_join__shuffled_reads_all_rows(tmp_path, expected):
    for table in (POINTS, parquet(tmp_path)):
        with progressive_join(table, on=Similarity(EPS), memory="2MB", shuffle=3) as found:
            assert gathered(list(found)) == expected


def test_progressive_join__sorted_rows_have_no_interval_until_they_are_merged():
    in_order = POINTS[np.argsort(POINTS[:, 0])]
    for table, is_random in ((POINTS, True), (in_order, False)):
        with progressive_join(table, on=Similarity(EPS), memory="2MB") as found:
            notes = [estimate.note for _, phase, estimate in found if phase == "runs"]
            assert (notes[-1] == "") == is_random
            assert is_random or notes[-1] == "rows do not come in random order"
            assert found.estimate.note == ""
        true = found.estimate.pairs
        assert abs(found.counters["estimate_at_50"] - true) < 0.1 * true


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on": None}, "on must be a kind of join"),
        ({"how": "cross"}, "how must be one of"),
        ({"how": "left"}, "of one table with itself, how must be"),
        ({"traversal": "first"}, "traversal must be one of"),
        ({"memory": "1MB"}, "memory must be 1.5 MB at least"),
        ({"memory": "much"}, "memory must be a size"),
        ({"memory": "2MB", "first_memory": "3MB"}, "first_memory must be"),
        ({"first_memory": "1MB", "first_pairs": 9}, "give first_memory or first_pairs, not both"),
        ({"first_pairs": 0}, "first_pairs must be"),
        ({"columns": ["x"]}, "columns and id are of files"),
        ({"columns": 5}, "columns must be a column's name or a list of names, not 5"),
        ({"left": iter([]), "columns": []}, "columns must name at least one column"),
        ({"left": iter([]), "right_columns": ["x"]}, "right_columns are those of right, which is not given"),
        ({"spill": 5}, "spill must be a folder's path, not 5"),
        ({"left": "nowhere.parquet"}, "nowhere.parquet is no file"),
        ({"left": iter([POINTS]), "shuffle": 1}, "an iterator is read as it comes"),
        ({"left": POINTS[:10], "shuffle": -1}, "shuffle must be a whole number, at least 0, not -1"),
        ({"left": 3.0}, "a table must be an array"),
        ({"left": iter(["abc"])}, "a table must be an array"),
        ({"left": [[1.0], [1.0, 2.0]]}, "a table must have rows of one length"),
        ({"left": np.ma.array([[1.0], [2.0]], mask=[[True], [False]])}, "must have no masked values, not 1"),
        ({"left": iter([(np.arange(9), POINTS[:10])])}, "ids must be one per row, 10, not 9"),
        ({"counters": []}, "counters must be a dictionary"),
    ],
)
def test_progressive_join__refuses(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        progressive_join(**{"left": POINTS[:10], "on": Similarity(EPS), **arguments})


def test_progressive_join__takes_one_name_as_columns(tmp_path):
    path = str(tmp_path / "points.parquet")
    pq.write_table(pyarrow.table({"lat": [0.0, 1.0], "a": ["", ""]}), path)
    with progressive_join(path, on=Similarity(1.0), columns="lat") as found:
        assert [batch.pairs.left.tolist() for batch in found] == [[0]]


def test_progressive_join__refuses_chunks_of_which_some_have_ids():
    """Row numbers are no ids: of runs on disk the one would stand for the other."""
    for chunks in ([POINTS[:9], (np.arange(9), POINTS[9:18])], [(np.arange(9), POINTS[:9]), POINTS[9:18]]):
        with (
            pytest.raises(ArgumentError, match="chunks must all have ids, or none"),
            progressive_join(iter(chunks), on=Similarity(EPS)) as found,
        ):
            list(found)
