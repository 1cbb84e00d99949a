from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin import (
    BestPairs,
    Closest,
    Own,
    Subset,
    bestmatch_files,
    bestmatch_join,
    iter_bestmatch_files,
)
from epsjoin.errors import ArgumentError, BudgetError, DataRefusedError
from epsjoin.kernels.arrays import Floats
from oracles.grid_order import in_grid_order

HOWS = ("inner", "left", "right", "outer")
NAMES = ["t", "x", "y"]


def write(path: Path, points: Floats, page_rows: int, names: list[str] | None = None) -> Path:
    columns = names or NAMES[: points.shape[1]]
    table = pa.table(dict(zip(columns, points.T, strict=True)))
    pq.write_table(table, path, row_group_size=page_rows)
    return path


def some(seed: int, n: int, d: int) -> Floats:
    """Points on a grid of tenths, so that ties abound."""
    return np.random.default_rng(seed).integers(0, 15, (n, d)) * 0.1


def assert_same(found: BestPairs, expected: BestPairs) -> None:
    for name, mine, theirs in zip(BestPairs._fields, found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs, name)
        assert mine.dtype == theirs.dtype


@pytest.mark.parametrize("take", ["all", "one"])
@pytest.mark.parametrize("how", HOWS)
def test_bestmatch_files__is_bestmatch_join_of_the_same_rows(tmp_path: Path, how: Any, take: Any) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        d, page_rows, buffers = (int(rng.integers(*bounds)) for bounds in ((1, 4), (1, 9), (2, 6)))
        left, right = (some(2 * seed + side, int(rng.integers(0, 70)), d) for side in (0, 1))
        eps = rng.choice([0.0, 0.1, 0.3, 0.5, math.inf], d)
        if seed % 2:
            left, right = (in_grid_order(side, eps) for side in (left, right))
        files = (
            write(tmp_path / "l.parquet", left, page_rows),
            write(tmp_path / "r.parquet", right, page_rows),
        )
        memory_mb = 4 * buffers * page_rows * d * 8 / 2**20
        counters: dict[str, int] = {}
        try:
            found = bestmatch_files(
                *files, eps, how, columns=NAMES[:d], take=take, memory_mb=memory_mb, counters=counters
            )
        except BudgetError:
            assert memory_mb < 0.02
            found = bestmatch_files(*files, eps, how, columns=NAMES[:d], take=take, memory_mb=1)
        assert_same(found, bestmatch_join(left, right, eps, how, take=take))
        assert counters["peak_pages"] <= buffers


def test_bestmatch_files__takes_metrics_and_own_values(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    tables = [np.column_stack([rng.random(n) * 100, rng.random((n, 2)) * 20]) for n in (200, 300)]
    orders = [
        Closest(0, eps=10.0),
        Closest((1, 2), eps=300.0, metric="haversine"),
        Own(lambda _, right: -right[:, 0]),
    ]
    files = [write(tmp_path / f"{i}.parquet", table, 32) for i, table in enumerate(tables)]
    for how in HOWS:
        counters: dict[str, int] = {}
        found = bestmatch_files(
            *files, how=how, orders=orders, columns=NAMES, memory_mb=0.5, counters=counters
        )
        assert_same(found, bestmatch_join(*tables, how=how, orders=orders))
        assert len(found.left) > 0


def test_bestmatch_files__loads_few_pages_of_sorted_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.random((2, 1500, 2)) * 100
    eps = np.array([0.5, 0.5])
    loads = []
    for sort in (False, True):
        sides = [in_grid_order(side, eps) if sort else side for side in (left, right)]
        files = [write(tmp_path / f"{i}.parquet", side, 50) for i, side in enumerate(sides)]
        counters: dict[str, int] = {}
        memory_mb = 4 * 20 * 50 * 2 * 8 / 2**20  # 20 pages
        for _ in iter_bestmatch_files(
            *files, eps, columns=["t", "x"], memory_mb=memory_mb, counters=counters
        ):
            pass
        assert (counters["pages"], counters["peak_pages"]) == (60, 20)
        loads.append(counters["pages_loaded"])
    assert loads[1] == 60 < loads[0]  # each page once
    assert counters["page_pairs"] < 30 * 30 / 4


def test_iter_bestmatch_files__yields_batches_before_the_end_each_row_once(tmp_path: Path) -> None:
    points = np.arange(1000.0)[:, None]
    files = [write(tmp_path / f"{side}.parquet", points, 50) for side in "lr"]
    counters: dict[str, int] = {}
    batches = iter_bestmatch_files(*files, 0.5, "outer", columns=["t"], memory_mb=0.1, counters=counters)
    first = next(batches)
    assert first.left.tolist() == list(range(50))
    assert counters["pages_loaded"] < 5
    rest = [row for batch in batches for row in batch.left.tolist()]
    assert sorted(rest) == list(range(50, 1000))


def test_bestmatch_files__names_the_rows_through_the_file_and_passes_over_empty_pages(tmp_path: Path) -> None:
    schema = pa.schema([("when", pa.int32())])
    with pq.ParquetWriter(tmp_path / "l.parquet", schema) as writer:
        for values in ([], [5, 7], [], [100], []):
            writer.write_table(pa.table({"when": pa.array(values, pa.int32())}))
    right = write(tmp_path / "r.parquet", np.array([[7.5], [5.0]]), 1)
    found = bestmatch_files(
        tmp_path / "l.parquet", right, 1.0, columns=["when"], right_columns=["t"], memory_mb=1
    )
    assert found.left.tolist() == [0, 1, 2]
    assert found.right.tolist() == [1, 0, -1]


@pytest.mark.parametrize("how", [pytest.param("left", marks=pytest.mark.long), "outer"])
def test_bestmatch_files__needs_no_more_than_memory_mb(tmp_path: Path, how: Any) -> None:
    rng = np.random.default_rng(0)
    n, memory_mb = 150_000, 4
    files = []
    for side in "lr":  # 3.4 MiB each, sorted by time
        points = np.column_stack([np.sort(rng.random(n)) * n, rng.random((n, 2))])
        files.append(write(tmp_path / f"{side}.parquet", points, 1024))
    eps = [30.0, 0.2, 0.2]

    def run(counters: dict[str, int]) -> int:
        return sum(
            len(batch.left)
            for batch in iter_bestmatch_files(
                *files, eps, how, columns=NAMES, memory_mb=memory_mb, counters=counters
            )
        )

    small = [write(tmp_path / f"small_{side}.parquet", some(0, 50, 3), 10) for side in "lr"]
    list(iter_bestmatch_files(*small, eps, how, columns=NAMES))  # what is compiled and imported stays
    before = pa.default_memory_pool()
    arrow = pa.proxy_memory_pool(before)
    pa.set_memory_pool(arrow)
    tracemalloc.start()
    try:
        counters: dict[str, int] = {}
        n_rows = run(counters)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
    assert n_rows > 0
    assert counters["candidates"] > 4 * n  # which would take far more than the memory
    assert 0 < arrow.max_memory() < 2**20  # a column of a page
    assert peak + arrow.max_memory() <= (memory_mb + 16) * 2**20


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"columns": ["t", "z"]}, ArgumentError, "l.parquet has no column 'z'; it has t, x, name"),
        ({"columns": ["t", "name"]}, ArgumentError, "column 'name' must be of numbers, not string"),
        ({"columns": []}, ArgumentError, "one at least, not 0 and 0"),
        ({"right_columns": ["t"]}, ArgumentError, "not 2 and 1"),
        ({"how": "full"}, ArgumentError, "how must be one of inner, left, right, outer, not 'full'"),
        ({"take": "two"}, ArgumentError, "take must be one of all, one, not 'two'"),
        ({"memory_mb": 0}, ArgumentError, "memory_mb must be above 0, not 0"),
        (
            {"memory_mb": 1e-4},
            ArgumentError,
            "too little for row groups of 3 rows; two .* 0.000366 are needed",
        ),
        ({"left": "nowhere.parquet"}, ArgumentError, "nowhere.parquet is no file"),
        ({"eps": None}, ArgumentError, "either eps"),
        (
            {"eps": None, "orders": [Subset(np.zeros(3, np.uint64), np.zeros(3, np.uint64))]},
            ArgumentError,
            "of files, orders must be Closest or Own, not Subset",
        ),
    ],
)
def test_bestmatch_files__refuses_wrong_arguments(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    table = pa.table({"t": [0.0, 1.0, 2.0], "x": [0.0, 1.0, 2.0], "name": ["a", "b", "c"]})
    files = {side: tmp_path / f"{side[0]}.parquet" for side in ("left", "right")}
    for file in files.values():
        pq.write_table(table, file)
    given: dict[str, Any] = {**files, "eps": 1.0, "columns": ["t", "x"], **arguments}
    with pytest.raises(error, match=sentence):
        iter_bestmatch_files(**given)


def test_bestmatch_files__says_where_a_file_is_broken(tmp_path: Path) -> None:
    good = write(tmp_path / "good.parquet", some(0, 5, 1), 2)
    bad = tmp_path / "bad.parquet"
    for value in (None, math.nan, math.inf):
        pq.write_table(pa.table({"t": [0.0, 1.0, 2.0, value]}), bad, row_group_size=3)
        with pytest.raises(DataRefusedError, match="bad.parquet: row 3 has no finite number in column 't'"):
            bestmatch_files(good, bad, 1.0, columns=["t"])
    bad.write_bytes(b"nonsense")
    with pytest.raises(DataRefusedError, match="bad.parquet: cannot be read"):
        bestmatch_files(good, bad, 1.0, columns=["t"])
    latitude = write(tmp_path / "latitude.parquet", np.array([[1.0, 2.0], [91.0, 2.0]]), 1)
    orders = [Closest((0, 1), eps=1.0, metric="haversine")]
    with pytest.raises(DataRefusedError, match="latitude.parquet: page from row 1 on: haversine"):
        bestmatch_files(latitude, latitude, orders=orders, columns=["t", "x"])


def test_bestmatch_files__refuses_more_open_pairs_than_their_part_of_the_memory(tmp_path: Path) -> None:
    points = np.zeros((300, 1))
    files = [write(tmp_path / f"{side}.parquet", points, 100) for side in "lr"]
    with pytest.raises(BudgetError, match=r"take [0-9,]+ bytes, more than an eighth of memory_mb = 0.0199"):
        bestmatch_files(*files, 0.0, columns=["t"], memory_mb=0.02)
