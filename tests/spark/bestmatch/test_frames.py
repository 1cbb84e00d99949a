"""Best matches of frames: those of the library and of the definition, however the frames are divided."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import epsjoin.spark
from epsjoin import Closest, Cuts, Own, OwnOrder, Subset
from epsjoin.errors import ArgumentError, BudgetError, TableError
from epsjoin.lake.schemas import unquoted
from epsjoin.spark.bestmatch.frames import name_columns
from oracles import bestmatch as slow
from oracles import join as slow_join
from tests.spark.bestmatch.results import Row, of_library
from tests.spark.test_frames import shuffles

N = 150
NAMES = ["time", "lat", "lon", "size"]
ORDERS = [Closest(0, eps=3.0), Closest((1, 2), eps=60.0, metric="haversine"), Closest(3, eps=0.3)]


def table(n: int, seed: int) -> NDArray[np.float64]:
    """Times, places on both sides of the antimeridian, sizes in tenths: ties, and values at exactly eps."""
    random = np.random.default_rng(seed)
    lon = 180.0 + random.integers(-9, 10, n) / 10.0
    time, lat, size = (
        random.integers(0, 120, n),
        random.integers(-5, 6, n) / 10.0,
        random.integers(0, 9, n) / 10.0,
    )
    return np.column_stack((time, lat, np.where(lon > 180.0, lon - 360.0, lon), size))


LEFT, RIGHT = table(N, 1), table(N + 20, 2)
LEFT_IDS, RIGHT_IDS = (
    np.random.default_rng(3).permutation(3 * len(rows))[: len(rows)] - 50 for rows in (LEFT, RIGHT)
)


def frame_of(
    spark: SparkSession, rows: NDArray[np.float64], ids: NDArray[np.int64], parts: int = 3, names: Any = NAMES
) -> DataFrame:
    values = [(i, *row) for i, row in zip(ids.tolist(), rows.tolist(), strict=True)]
    return spark.createDataFrame(
        values, "id long, " + ", ".join(f"{name} double" for name in names)
    ).repartition(parts)


def rows_of(found: DataFrame, *, has_own: bool = False) -> list[Row]:
    rows = []
    for row in found.collect():
        left, right, *values, best_for = row
        is_pair = left is not None and right is not None
        assert has_own or all((value is None) != is_pair for value in values)
        rows.append((left, right, best_for, tuple(values) if is_pair else ()))
    return sorted(rows, key=repr)


def cuts_of(kind: Any, n_parts: int) -> Cuts:
    return Cuts(kind, n_parts, replication_budget=math.inf)


def expected(how: str, take: str = "all", orders: Any = ORDERS) -> list[Row]:
    return sorted(of_library(LEFT, RIGHT, LEFT_IDS, RIGHT_IDS, orders, how, take), key=repr)


@pytest.mark.parametrize(
    ("how", "take", "kind", "n_parts"),
    [
        pytest.param("left", "all", "planned", 2, marks=pytest.mark.long),
        pytest.param("left", "one", "planned", 16, marks=pytest.mark.long),
        ("right", "all", "regular", 7),
        pytest.param("outer", "all", "planned", 16, marks=pytest.mark.long),
        ("outer", "one", "regular", 2),
        pytest.param("inner", "all", "planned", 16, marks=pytest.mark.long),
        ("inner", "one", "planned", 16),
        pytest.param("inner", "one", "planned", 1, marks=pytest.mark.long),
    ],
)
def test_bestmatch_join__of_frames_is_that_of_arrays(
    spark: SparkSession, how: Any, take: Any, kind: str, n_parts: int
) -> None:
    found = epsjoin.spark.bestmatch_join(
        frame_of(spark, LEFT, LEFT_IDS),
        frame_of(spark, RIGHT, RIGHT_IDS).withColumnRenamed("size", "mw").withColumnRenamed("id", "event"),
        columns=NAMES,
        right_columns=[*NAMES[:3], "mw"],
        right_id="event",
        orders=ORDERS,
        how=how,
        take=take,
        cuts=cuts_of(kind, n_parts),
    )
    assert found.columns == ["left_id", "right_id", "d_time", "d_lat_lon", "d_size", "best_for"]
    wanted = expected(how, take)
    assert rows_of(found) == wanted
    assert how == "inner" or {len(row[3]) for row in wanted} == {0, 3}, "somebody must be alone"


def test_bestmatch_join__of_frames_is_the_definition(spark: SparkSession) -> None:
    def far(i: int, j: int) -> float:
        return slow_join.distance(LEFT[i, 1:3].tolist(), RIGHT[j, 1:3].tolist(), "haversine")

    criteria = [
        slow.closest(lambda i, j: abs(LEFT[i, 0] - RIGHT[j, 0]), 3.0),
        slow.closest(far, 60.0),
        slow.closest(lambda i, j: abs(LEFT[i, 3] - RIGHT[j, 3]), 0.3),
    ]
    best = slow.best_matches(len(LEFT), len(RIGHT), criteria)
    found = epsjoin.spark.bestmatch_join(
        frame_of(spark, LEFT, LEFT_IDS),
        frame_of(spark, RIGHT, RIGHT_IDS),
        columns=NAMES,
        orders=ORDERS,
        how="outer",
        cuts=cuts_of("planned", 5),
    )
    wanted = {
        (None if i < 0 else LEFT_IDS[i], None if j < 0 else RIGHT_IDS[j], best_for)
        for i, j, best_for in slow.joined(best, len(LEFT), len(RIGHT), "outer")
    }
    assert {row[:3] for row in rows_of(found)} == wanted
    at_eps = [worths for worths in best.within.values() if worths[0] == 3.0 or worths[2] == 0.3]
    assert len(at_eps) > 20


@pytest.mark.parametrize(("kind", "n_bits"), [("byte", 8), ("short", 16), ("int", 32), ("long", 64)])
def test_bestmatch_join__takes_as_many_marks_from_a_number_as_its_type_has_bits(
    spark: SparkSession, kind: str, n_bits: int
) -> None:
    frame = spark.createDataFrame([(1, 0.0, -1)], f"id int, x double, tags {kind}")
    orders = [Closest(0, eps=1.0), Subset("tags", "tags")]
    (row,) = epsjoin.spark.bestmatch_join(frame, frame, columns="x", orders=orders).collect()
    assert row["d_tags"] == n_bits


@pytest.mark.parametrize("how", ["left", pytest.param("outer", marks=pytest.mark.long)])
def test_bestmatch_join__does_not_depend_on_the_order_and_partitions_of_rows(
    spark: SparkSession, how: Any
) -> None:
    left, right = frame_of(spark, LEFT, LEFT_IDS, 1).coalesce(1), frame_of(spark, RIGHT, RIGHT_IDS, 9)
    found = epsjoin.spark.bestmatch_join(
        left.orderBy(F.desc("id")), right, columns=NAMES, orders=ORDERS, how=how, cuts=cuts_of("planned", 4)
    )
    assert rows_of(found) == expected(how)


OWN: dict[str, Any] = {
    "own": [
        Closest(0, eps=3.0),
        Own(lambda _, right: -right[:, 3]),
        Own(lambda left, right: left[:, 1] - right[:, 1]),
    ],
    "own order": [Closest(0, eps=3.0), OwnOrder(lambda x, y: x[1][:, 3] >= y[1][:, 3])],
}


@pytest.mark.parametrize(("case", "how"), [("own", "outer"), ("own order", "left")])
def test_bestmatch_join__takes_own_functions_along(spark: SparkSession, case: str, how: Any) -> None:
    found = epsjoin.spark.bestmatch_join(
        frame_of(spark, LEFT, LEFT_IDS),
        frame_of(spark, RIGHT, RIGHT_IDS),
        columns=NAMES,
        orders=OWN[case],
        how=how,
        cuts=cuts_of("planned", 6),
    )
    names = {"own": ["d_time", "d_own_2", "d_own_3"], "own order": ["d_time", "d_own"]}
    assert found.columns == ["left_id", "right_id", *names[case], "best_for"]
    wanted = [
        (i, j, best_for, tuple(None if math.isnan(value) else value for value in values))
        for i, j, best_for, values in expected(how, orders=OWN[case])
    ]
    assert rows_of(found, has_own=True) == wanted


def test_bestmatch_join__takes_marks_from_columns(spark: SparkSession) -> None:
    random = np.random.default_rng(5)
    low = [random.integers(0, 2**20, len(rows)) & 0x30007 for rows in (LEFT, RIGHT)]
    high = [random.integers(0, 8, len(rows)).astype(np.uint64) << np.uint64(61) for rows in (LEFT, RIGHT)]
    frames = []
    for rows, ids, one, other in zip((LEFT, RIGHT), (LEFT_IDS, RIGHT_IDS), low, high, strict=True):
        whole = np.column_stack((rows[:, 0], one))
        frame = frame_of(spark, whole, ids, names=["time", "tags"]).withColumn(
            "tags", F.col("tags").cast("int")
        )
        words = spark.createDataFrame(
            list(zip(ids.tolist(), other.view(np.int64).tolist(), strict=True)), "id long, more long"
        )
        frames.append(frame.join(words, "id"))
    found = epsjoin.spark.bestmatch_join(
        *frames,
        columns=["time"],
        orders=[Closest(0, eps=3.0), Subset(["tags", "more"], ["tags", "more"])],
        cuts=cuts_of("planned", 4),
    )
    assert found.columns == ["left_id", "right_id", "d_time", "d_tags_more", "best_for"]
    masks = [np.column_stack((one.astype(np.uint64), other)) for one, other in zip(low, high, strict=True)]
    orders = [Closest(0, eps=3.0), Subset(*masks)]
    assert rows_of(found) == expected("left", orders=orders)


@pytest.mark.parametrize(("how", "eps"), [("left", math.inf), ("outer", 2.0)])
def test_bestmatch_join__of_one_column_is_the_nearest(spark: SparkSession, how: Any, eps: float) -> None:
    left, right = frame_of(spark, LEFT, LEFT_IDS), frame_of(spark, RIGHT, RIGHT_IDS)
    found = epsjoin.spark.bestmatch_join(
        left,
        right,
        columns="time",
        eps=eps,
        how=how,
        cuts=cuts_of("planned", 5),
        max_candidates=len(RIGHT) * 9,
    )
    assert rows_of(found) == expected(how, orders=[Closest(0, eps=eps)])


def test_bestmatch_join__of_whole_points_is_that_of_columns(spark: SparkSession) -> None:
    whole = [
        frame_of(spark, rows, ids).select("id", F.array("time", "size").alias("at"))
        for rows, ids in ((LEFT, LEFT_IDS), (RIGHT, RIGHT_IDS))
    ]
    found = epsjoin.spark.bestmatch_join(
        *whole, columns="at", eps=[3.0, 0.0], how="right", cuts=cuts_of("planned", 3)
    )
    assert found.columns == ["left_id", "right_id", "d_at_0", "d_at_1", "best_for"]
    assert rows_of(found) == expected("right", orders=[Closest(0, eps=3.0), Closest(3, eps=0.0)])


@pytest.mark.parametrize(
    ("how", "times"), [pytest.param("left", 2, marks=pytest.mark.long), ("outer", 3), ("inner", 2)]
)
def test_bestmatch_join__shuffles_rows_once_and_what_is_best_once_for_each_side(
    spark: SparkSession, how: Any, times: int
) -> None:
    sides = [frame_of(spark, rows, ids).coalesce(2) for rows, ids in ((LEFT, LEFT_IDS), (RIGHT, RIGHT_IDS))]
    given: dict[str, Any] = {"columns": NAMES, "orders": ORDERS, "how": how}
    found = epsjoin.spark.bestmatch_join(*sides, cuts=cuts_of("planned", 4), **given)
    assert shuffles(found) - sum(map(shuffles, sides)) == times
    in_one_part = epsjoin.spark.bestmatch_join(*sides, cuts=cuts_of("planned", 1), **given)
    assert shuffles(in_one_part) - sum(map(shuffles, sides)) == (2 if how == "inner" else 1)


def test_bestmatch_join__matches_nothing_before_the_result_is_used(spark: SparkSession) -> None:
    touched = spark.sparkContext.accumulator(0)

    def touch(x: float) -> float:
        touched.add(1)
        return x

    left = frame_of(spark, LEFT, LEFT_IDS).withColumn("time", F.udf(touch, "double")("time"))
    found = epsjoin.spark.bestmatch_join(
        left, frame_of(spark, RIGHT, RIGHT_IDS), columns=NAMES, orders=ORDERS
    )
    before = touched.value
    found.collect()
    assert touched.value == before + len(LEFT), "rows are read once, those without a partner, too"


def test_bestmatch_join__writes_the_result_to_a_table(spark: SparkSession, tmp_path: Path) -> None:
    sides = [frame_of(spark, rows, ids) for rows, ids in ((LEFT, LEFT_IDS), (RIGHT, RIGHT_IDS))]
    given: dict[str, Any] = {"columns": NAMES, "orders": ORDERS, "cuts": cuts_of("planned", 4)}
    to = str(tmp_path / "matches")
    epsjoin.spark.bestmatch_join(*sides, how="inner", to=to, **given)
    written = epsjoin.spark.bestmatch_join(*sides, how="outer", to=to, **given)
    assert rows_of(written) == expected("outer")
    assert rows_of(spark.read.format("delta").load(to)) == expected("outer"), "what was there is replaced"
    lazy = epsjoin.spark.bestmatch_join(*sides, how="outer", **given)
    assert written.schema == lazy.schema
    with pytest.raises(TableError, match="is a table of other columns"):
        epsjoin.spark.bestmatch_join(*sides, columns=["time"], eps=1.0, to=to)
    assert rows_of(spark.read.format("delta").load(to)) == expected("outer")


def test_bestmatch_join__of_a_frame_without_rows_has_no_pairs(spark: SparkSession) -> None:
    some, others = frame_of(spark, LEFT[:5], LEFT_IDS[:5]), frame_of(spark, RIGHT, RIGHT_IDS)
    given: dict[str, Any] = {"columns": NAMES, "orders": ORDERS, "how": "outer"}
    alone = sorted([(int(i), None, 0, ()) for i in LEFT_IDS[:5]], key=repr)
    assert rows_of(epsjoin.spark.bestmatch_join(some, others.where("id < -999"), **given)) == alone
    nobody = some.where("id < -999")
    assert rows_of(epsjoin.spark.bestmatch_join(nobody, nobody, **given)) == []
    whole = spark.createDataFrame([], "id long, at array<double>")
    for criteria in ({"eps": [1.0, 2.0, 3.0]}, {"orders": ORDERS}):
        assert rows_of(epsjoin.spark.bestmatch_join(whole, whole, columns="at", **criteria)) == []


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"columns": ["time", "y"]}, "no column 'y'"),
        ({"id": "word"}, "'word' must hold whole numbers, not string"),
        ({"eps": 1.0}, "pass either eps, .* or orders"),
        ({"orders": [Closest(4, eps=1.0)]}, "needs column 4, the last one is 3"),
        (
            {"orders": [Closest(0, eps=1.0), Subset("word", "word")]},
            "column of marks 'word' must hold whole numbers",
        ),
        (
            {"orders": [Closest(0, eps=1.0), Subset([1], [2])]},
            r'marks of frames are columns: Subset\("tags", "tags"\)',
        ),
        ({"how": "full"}, "how must be one of inner, left, right, outer"),
        ({"take": "two"}, "take must be one of all, one"),
        ({"right_columns": ["time"]}, "the same dimensions, not 4 and 1"),
        ({"max_candidates": -1}, "max_candidates must be a whole number"),
    ],
)
def test_bestmatch_join__names_the_wrong_argument(
    spark: SparkSession, bad: dict[str, Any], message: str
) -> None:
    frame = frame_of(spark, LEFT, LEFT_IDS).withColumn("word", F.lit("w"))
    given: dict[str, Any] = {"columns": NAMES, "orders": ORDERS, **bad}
    with pytest.raises(ArgumentError, match=message):
        epsjoin.spark.bestmatch_join(frame, frame, **given)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("null", "'time' is null where the id is 77777|the column 'time' is null where the id is 77777"),
        ("nan", "'size' is nan where the id is 77777; it must be finite"),
        ("pole", "haversine needs a latitude"),
        ("twice", "two rows of the right frame have the id 77777"),
    ],
)
def test_bestmatch_join__refuses_rows_that_cannot_be_matched(
    spark: SparkSession, what: str, message: str
) -> None:
    wrong = {
        "null": [(77777, None, 0.0, 0.0, 0.0)],
        "nan": [(77777, 1.0, 0.0, 0.0, math.nan)],
        "pole": [(77777, 1.0, 91.0, 0.0, 0.0)],
        "twice": [(77777, 1.0, 0.0, 0.0, 0.0)] * 2,
    }[what]
    left, right = frame_of(spark, LEFT, LEFT_IDS), frame_of(spark, RIGHT, RIGHT_IDS)
    worse = right.union(spark.createDataFrame(wrong, right.schema))
    found = epsjoin.spark.bestmatch_join(
        left, worse, columns=NAMES, orders=ORDERS, cuts=Cuts(n_parts=1, sample_rows=8, seed=1)
    )
    with pytest.raises(PySparkException, match=message):
        found.collect()


def test_bestmatch_join__of_too_many_candidates_is_refused(spark: SparkSession) -> None:
    left, right = frame_of(spark, LEFT, LEFT_IDS), frame_of(spark, RIGHT, RIGHT_IDS)
    given: dict[str, Any] = {"columns": NAMES, "orders": [Closest(0, eps=3.0), Closest(3, eps=0.3)]}
    with pytest.raises(
        BudgetError, match=r"these eps would give about .* pairs .*, 99 are allowed \(max_candidates\)"
    ):
        epsjoin.spark.bestmatch_join(left, right, max_candidates=99, **given)
    everything = [Closest(0), Closest(3)]
    with pytest.raises(BudgetError, match=r"about 25,500 pairs \(of all rows\), 25,499 are allowed"):
        epsjoin.spark.bestmatch_join(
            left, right, columns=NAMES, orders=everything, max_candidates=N * (N + 20) - 1
        )


def test_bestmatch_join__names_its_columns_apart_and_without_backticks(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = frame_of(spark, LEFT[:9], LEFT_IDS[:9]).toDF("id", "a.b", "y", "Y_1", "size")
    given = {"eps": [3.0, 1.0, 1.0, 1.0], "columns": ["`a.b`", "y", "y", "Y_1"]}
    to = str(tmp_path / "matches")
    for found in (epsjoin.spark.bestmatch_join(frame, frame, **given, **to_) for to_ in ({}, {"to": to})):
        assert found.columns[2:-1] == ["d_a.b", "d_y_2", "d_y_3", "d_Y_1"]
        assert found.count() >= 9
    assert unquoted("`p`.`y``z`") == "p.y`z"
    assert name_columns(["y", "y", "y_1", "Y"]) == ["d_y_1", "d_y_2", "d_y_1_", "d_Y_4"]
