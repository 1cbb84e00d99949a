"""The public functions on DataFrames, equal to the slow twins, in every form that a frame may have."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import epsjoin.spark
from epsjoin import Cuts, estimate, fit_epsilon, get_metric, join, self_join
from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.spark import dbscan, frames, outliers
from oracles import cluster as slow_cluster
from oracles import join as slow
from oracles import outliers as slow_outliers
from tests.spark.lattice import LATTICE, LATTICE_EPS, columns_of, frame_of, pairs_of


def shuffles(frame: DataFrame) -> int:
    jvm: Any = frame._jdf
    return str(jvm.queryExecution().executedPlan().toString()).count("Exchange")


def count_within(left: np.ndarray, right: np.ndarray, eps: float) -> int:
    return int(np.count_nonzero(np.linalg.norm(left[:, None] - right, axis=2) <= eps))


@pytest.mark.parametrize(
    ("kind", "n_parts", "metric"),
    [
        pytest.param("planned", 1, "euclidean", marks=pytest.mark.long),
        ("planned", 7, "euclidean"),
        ("planned", 7, "cosine"),
        pytest.param("regular", 7, "euclidean", marks=pytest.mark.long),
        ("regular", 7, "manhattan"),
    ],
)
def test_similarity_join__of_one_frame_is_brute_force(
    spark: SparkSession, kind: str, n_parts: int, metric: str
) -> None:
    points, eps = (LATTICE + 1.0, 0.02) if metric == "cosine" else (LATTICE, LATTICE_EPS)
    pairs = epsjoin.spark.similarity_join(
        frame_of(spark, points),
        eps=eps,
        columns=columns_of(points),
        metric=metric,
        cuts=Cuts(kind, n_parts, replication_budget=math.inf, sample_rows=40),
    )
    assert pairs_of(pairs) == slow.brute_force(points, eps, metric)


@pytest.mark.parametrize("n_frames", [1, 2])
def test_similarity_join__shuffles_once_between_points_and_pairs(spark: SparkSession, n_frames: int) -> None:
    frames = [frame_of(spark, LATTICE).coalesce(2) for _ in range(n_frames)]
    pairs = epsjoin.spark.similarity_join(
        *frames, eps=LATTICE_EPS, columns=columns_of(LATTICE), cuts=Cuts(n_parts=4)
    )
    assert shuffles(pairs) - sum(map(shuffles, frames)) == 1


def test_similarity_join__joins_nothing_before_the_pairs_are_used(spark: SparkSession) -> None:
    touched = spark.sparkContext.accumulator(0)

    def touch(x: float) -> float:
        touched.add(1)
        return x

    frame = frame_of(spark, LATTICE).withColumn("x0", F.udf(touch, "double")("x0"))
    pairs = epsjoin.spark.similarity_join(frame, eps=LATTICE_EPS, columns=columns_of(LATTICE))
    before = touched.value
    pairs.collect()
    assert touched.value == before + len(LATTICE)


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
def test_similarity_join__is_run_once_whatever_rows_it_returns(spark: SparkSession, how: str) -> None:
    frames = [frame_of(spark, LATTICE[rows]) for rows in (slice(50), slice(40, None))]
    found = epsjoin.spark.similarity_join(*frames, eps=0.75, columns=columns_of(LATTICE), how=how)
    plan = found._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("left_id#") >= 1
    assert len(re.findall(r"MapInArrow .*left_id#", plan)) == 1


def test_similarity_join__takes_other_metrics_scaled_dimensions_and_weights(spark: SparkSession) -> None:
    points = np.random.default_rng(3).random((80, 2)) * [1.0, 100.0]
    frame = frame_of(spark, points)
    kinds: dict[str, Any] = {"columns": ["x0", "x1"], "cuts": Cuts(n_parts=4)}
    far = 1.7e9 + np.random.default_rng(4).integers(0, 60, (80, 2))
    each = epsjoin.spark.similarity_join(frame_of(spark, far), eps=[7.0, 3.0], **kinds)
    assert pairs_of(each) == slow.scaled_pairs(far, [7.0, 3.0], None, "euclidean")
    weights, regular = [0.1, 0.3], {**kinds, "cuts": Cuts("regular", n_parts=3)}
    weighted = epsjoin.spark.similarity_join(
        frame_of(spark, far), eps=1.1, metric="manhattan", weights=weights, **regular
    )
    assert pairs_of(weighted) == slow.scaled_pairs(far, 1.1, weights, "manhattan")
    cubic = epsjoin.spark.similarity_join(frame, eps=9.0, metric=get_metric("minkowski", 3.0), **kinds)
    assert set(pairs_of(cubic)) == set(slow.brute_force(points, 9.0, "minkowski", 3.0))


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        *(("outer", "planned"), ("semi", "planned"), ("right", "regular")),
        *(pytest.param(how, "planned", marks=pytest.mark.long) for how in ("inner", "left", "anti")),
        pytest.param("outer", "regular", marks=pytest.mark.long),
    ],
)
def test_similarity_join__of_two_frames_is_brute_force(spark: SparkSession, how: str, kind: str) -> None:
    left, right, eps = LATTICE[:50], LATTICE[40:] + 0.25, 0.75
    others = frame_of(spark, right).withColumnsRenamed({"id": "key", "x0": "a", "x1": "b", "x2": "c"})
    found = epsjoin.spark.similarity_join(
        frame_of(spark, left).withColumn("payload", F.col("id") * 10),
        others,
        eps=eps,
        columns=columns_of(left),
        right_columns=["a", "b", "c"],
        right_id="key",
        how=how,
        cuts=Cuts(kind, 5, sample_rows=30),
    )
    within = slow.between(left, right, eps)
    wanted = slow.joined(within, len(left), len(right), how)
    assert 0 < len({i for i, _ in within}) < len(left), "somebody must be alone, but not everybody"
    rows = found.collect()
    if how in ("semi", "anti"):
        assert sorted(row["id"] for row in rows) == [i for i, _ in wanted]
        assert all(row["payload"] == row["id"] * 10 for row in rows)
        return
    nobody = {None: -1}
    assert sorted((nobody.get(row[0], row[0]), nobody.get(row[1], row[1])) for row in rows) == sorted(wanted)
    for row in rows:
        assert row["distance"] == within.get((row["left_id"], row["right_id"]))


def test_dbscan__of_a_frame_is_the_definition(spark: SparkSession) -> None:
    points = np.concatenate([LATTICE, LATTICE[:30] + 0.1])
    ids, eps = [7 * i - 100 for i in range(len(points))], [1.0, 1.5, 1.0]
    clusters = epsjoin.spark.dbscan(
        frame_of(spark, points, ids), eps=eps, min_pts=4, columns=columns_of(points), cuts=Cuts(n_parts=5)
    )
    within = slow.scaled_pairs(points, eps, None, "euclidean")
    pairs = [(ids[i], ids[j], distance) for (i, j), distance in within.items()]
    wanted = slow_cluster.dbscan(ids, pairs, 4)
    assert {role for _, role, _ in wanted.values()} == {"core", "border", "noise"}
    found = {row["id"]: (row["cluster_id"], row["role"], row["degree"]) for row in clusters.collect()}
    assert clusters.is_cached
    clusters.unpersist()
    assert found == wanted


@pytest.mark.parametrize(("find", "max_on_driver"), [(dbscan, 10**6), (outliers, 10**6), (outliers, 0)])
def test_dbscan_and_outliers__that_fail_keep_nothing_in_memory(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, find: Callable[..., DataFrame], max_on_driver: int
) -> None:
    """Outliers begin with the clusters of dbscan."""
    for name in ("cluster_pairs", "rank_points"):
        few = partial(getattr(frames, name), max_on_driver=max_on_driver)
        monkeypatch.setattr(frames, name, few)
    rows = [(i, [float(i), 0.0]) for i in range(60)] + [(1000, [math.nan, 0.0])]
    frame = spark.createDataFrame(rows, "id long, at array<double>").repartition(3)
    kinds: dict[str, Any] = {"eps": 1.0, "columns": "at", "min_pts": 3, "cuts": Cuts(sample_rows=10)}
    spark.catalog.clearCache()
    is_empty = spark._jsparkSession.sharedState().cacheManager().isEmpty
    with pytest.raises(PySparkException, match="coordinate 1 of 'at' is nan"):
        find(frame, **kinds)
    assert is_empty()
    found = find(frame.where("id < 1000"), **kinds)
    assert not is_empty()
    found.unpersist()
    assert is_empty()


def test_dbscan__refuses_the_id_of_noise(spark: SparkSession) -> None:
    points = np.array([[0.0], [1.0]])
    with pytest.raises(ArgumentError, match="the id -1 is kept for noise"):
        epsjoin.spark.dbscan(frame_of(spark, points, [-1, 5]), eps=1.0, min_pts=2, columns="x0")


def test_outliers__of_a_frame_are_the_definition(spark: SparkSession) -> None:
    points = np.concatenate([LATTICE, [[50.0, 0.0, 0.0]]])
    eps, k = 2.0, 3
    found = epsjoin.spark.outliers(
        frame_of(spark, points), eps=eps, min_pts=4, columns=columns_of(points), cuts=Cuts(n_parts=4)
    )
    pairs = [(i, j, distance) for (i, j), distance in slow.brute_force(points, eps).items()]
    ids = list(range(len(points)))
    all_pairs = [(i, j, distance) for (i, j), distance in slow.brute_force(points, 100.0).items()]
    scores, degree = slow_outliers.lof(ids, all_pairs, k), slow_cluster.degrees(ids, pairs)
    rank = slow_outliers.rank([(i, *scores[i]) for i in ids])
    rows = found.collect()
    assert [row["rank"] for row in rows] == list(range(1, len(points) + 1))
    assert {row["id"]: row["rank"] for row in rows} == rank
    for row in rows:
        assert row["degree"] == degree[row["id"]]
        assert (row["k_distance"], row["lof"]) == scores[row["id"]]
    assert rows[0]["id"] == len(LATTICE)
    assert rows[0]["is_noise"]
    assert rows[0]["dimensions"].startswith("x0 +")
    found.unpersist()


def test_outliers__of_the_largest_numbers_are_ranked(spark: SparkSession) -> None:
    """The mean of two of them overflows, and so does their difference."""
    points = np.concatenate(
        [np.arange(10.0), [-1.7e308, 1.7e308, 1.6e308, 1.5e308, 9.1e307], np.full(9, 9e307)]
    )
    found = epsjoin.spark.outliers(frame_of(spark, points[:, None]), eps=1.0, min_pts=3, columns="x0")
    rows = found.collect()
    assert sorted(row["id"] for row in rows) == list(range(24))
    assert all(row["dimensions"].startswith("x0 ") for row in rows)
    assert {row["id"] for row in rows if row["is_noise"]} == {10, 11, 12, 13, 14}
    found.unpersist()
    points = np.repeat([1.7e308, -1.7e308], 4)  # whose spread is larger than any number
    found = epsjoin.spark.outliers(frame_of(spark, points[:, None]), eps=1.0, min_pts=3, columns="x0")
    assert {row["dimensions"] for row in found.collect()} == {"x0 +0.9", "x0 -0.9"}
    found.unpersist()


def test_estimate_and_fit_epsilon__take_a_sample(spark: SparkSession) -> None:
    points = np.random.default_rng(4).random((3000, 2))
    frame = frame_of(spark, points)
    expected = epsjoin.spark.estimate(frame, eps=0.02, columns=["x0", "x1"])
    pairs = epsjoin.spark.similarity_join(frame, eps=0.02, columns=["x0", "x1"]).count()
    assert expected.n_rows == 3000
    assert expected.pairs == pairs, "all rows are in the sample"
    fit = epsjoin.spark.fit_epsilon(frame, columns=["x0", "x1"], sample_rows=1000)
    assert fit.n_rows == 3000
    assert fit.expected_pairs(0.02) == pytest.approx(pairs, rel=0.2)


def test_estimate_and_fit_epsilon__of_two_frames_are_those_of_their_rows(spark: SparkSession) -> None:
    random = np.random.default_rng(4)
    left, right = random.random((300, 2)), random.random((500, 2))
    sides = frame_of(spark, left), frame_of(spark, right).toDF("key", "u", "v")
    names: dict[str, Any] = {"columns": ["x0", "x1"], "right_columns": ["u", "v"], "right_id": "key"}
    expected = epsjoin.spark.estimate(sides[0], eps=0.05, right=sides[1], **names)
    pairs = count_within(left, right, 0.05)
    assert expected.pairs_low == expected.pairs == expected.pairs_high == pairs, "all rows are in the samples"
    assert (expected.n_rows, expected.right_rows) == (300, 500)
    assert expected.neighbours == estimate(left, 0.05, right=right).neighbours
    fit = epsjoin.spark.fit_epsilon(sides[0], right=sides[1], **names)
    assert fit.expected_pairs(0.05) == pairs
    in_another_order = fit_epsilon(left, right=right)
    assert fit.exponent == pytest.approx(in_another_order.exponent, rel=0.01)


def test_fit_epsilon__with_weights_expects_the_pairs_of_weighted_joins(spark: SparkSession) -> None:
    random, weights = np.random.default_rng(4), [4.0, 0.25]
    left, right = random.random((300, 2)), random.random((500, 2))
    names: dict[str, Any] = {"columns": ["x0", "x1"], "weights": weights}
    fit = epsjoin.spark.fit_epsilon(frame_of(spark, left), **names)
    assert fit.expected_pairs(0.05) == len(self_join(left, 0.05, weights=weights).left)
    between = epsjoin.spark.fit_epsilon(frame_of(spark, left), right=frame_of(spark, right), **names)
    assert between.expected_pairs(0.05) == len(join(left, right, 0.05, weights=weights).left)


def test_estimate_and_fit_epsilon__of_two_versions_of_a_frame_draw_their_samples_apart(
    spark: SparkSession,
) -> None:
    """Of a fifth of the rows, the same on both sides, each would stand for 25 pairs of equal rows, not 5."""
    points = np.random.default_rng(4).random((2500, 2))
    old, pairs = frame_of(spark, points), count_within(points, points, 0.01)
    given: dict[str, Any] = {"columns": ["x0", "x1"], "right": old}
    expected = epsjoin.spark.estimate(old, eps=0.01, cuts=Cuts(sample_rows=1000), **given)
    assert expected.pairs_low <= pairs <= expected.pairs_high
    assert expected.pairs_high < 2 * pairs
    fitted = epsjoin.spark.fit_epsilon(old, sample_rows=500, **given).expect(0.01)
    assert fitted.low <= pairs <= fitted.high < 2 * pairs


def test_estimate_and_fit_epsilon__of_two_frames_say_what_is_wrong(spark: SparkSession) -> None:
    frame, given = frame_of(spark, LATTICE), {"columns": columns_of(LATTICE)}
    narrow, none = frame.drop("x2"), frame.where("false")
    of_frame = partial(epsjoin.spark.estimate, frame, eps=1.0), partial(epsjoin.spark.fit_epsilon, frame)
    for function in of_frame:
        with pytest.raises(ArgumentError, match="no column 'x2'; it has id, x0, x1"):
            function(right=narrow, **given)
        with pytest.raises(ArgumentError, match="the same dimensions, not 3 and 2"):
            function(right=narrow, right_columns=["x0", "x1"], **given)
    with pytest.raises(ArgumentError, match="a power law needs rows in both frames, not 90 and 0; choose"):
        epsjoin.spark.fit_epsilon(frame, right=none, **given)
    nothing = epsjoin.spark.estimate(none, eps=1.0, right=frame, **given)
    assert nothing.pairs == nothing.pairs_high == 0.0


def test_similarity_join__that_would_be_too_large_is_refused_before_it_runs(spark: SparkSession) -> None:
    points = np.random.default_rng(5).random((2000, 2))
    frame = frame_of(spark, points)
    with pytest.raises(BudgetError, match=r"would give about .* pairs .* the largest eps that fits is") as no:
        epsjoin.spark.similarity_join(frame, eps=0.5, columns=["x0", "x1"], max_pairs=2000)
    fits = float(str(no.value).split("about ")[-1])
    assert slow.brute_force(points[:500], fits)  # of a sixteenth of the pairs
    assert epsjoin.spark.similarity_join(
        frame, eps=fits, columns=["x0", "x1"], max_pairs=2000
    ).count() == pytest.approx(2000, rel=0.25)


def test_similarity_join__with_a_few_rows_is_refused_before_it_runs_as_well(spark: SparkSession) -> None:
    """A share of the sample as small as theirs of all rows would see none of them."""
    many = np.random.default_rng(5).random((3000, 2))
    few = frame_of(spark, many[:10])
    for left, right in ((few, frame_of(spark, many)), (frame_of(spark, many), few)):
        with pytest.raises(
            BudgetError, match=r"would give about .* pairs .*, 4,999 are allowed .*eps that fits is about 0"
        ):
            epsjoin.spark.similarity_join(
                left, right, eps=0.5, columns=["x0", "x1"], max_pairs=4999, cuts=Cuts(sample_rows=100)
            )


def test_similarity_join__of_more_pairs_than_expected_breaks_its_task(spark: SparkSession) -> None:
    # the sample of 16 rows meets none of the pairs
    points = np.concatenate([np.arange(2000.0)[:, None] * 10.0, np.full((15, 1), 0.5)])
    cuts = Cuts(sample_rows=16)
    pairs = epsjoin.spark.similarity_join(
        frame_of(spark, points), eps=1.0, columns="x0", cuts=cuts, max_pairs=99
    )
    with pytest.raises(PySparkException, match="BudgetError: more than 99 pairs"):
        pairs.count()


def test_public_functions__find_nothing_in_an_empty_frame(spark: SparkSession) -> None:
    frame = frame_of(spark, LATTICE).where("id < 0")
    assert epsjoin.spark.similarity_join(frame, eps=1.0, columns=columns_of(LATTICE)).collect() == []
    of = {"eps": 1.0, "min_pts": 3, "columns": columns_of(LATTICE)}
    assert epsjoin.spark.dbscan(frame, **of).collect() == epsjoin.spark.outliers(frame, **of).collect() == []


def test_similarity_join__of_a_frame_without_rows_has_no_pairs(spark: SparkSession) -> None:
    """How many dimensions its points would have had nobody knows, unless eps or weights tell."""
    arrays, nothing = (spark.createDataFrame([], f"id long, at {at}") for at in ("array<double>", "binary"))
    some = spark.createDataFrame([(1, bytes(24)), (2, bytes(24))], "id long, at binary")
    for frame, metric in ((arrays, "haversine"), (nothing, "euclidean")):
        found = epsjoin.spark.similarity_join(frame, eps=1.0, columns="at", metric=metric)
        assert pairs_of(found) == {}
    for sides in ((arrays, some), (some, nothing)):
        assert pairs_of(epsjoin.spark.similarity_join(*sides, eps=1.0, columns="at")) == {}
    for told in ({"eps": [1.0]}, {"eps": [1.0, 2.0, 3.0]}, {"eps": 1.0, "weights": [1.0, 0.5, 2.0]}):
        assert pairs_of(epsjoin.spark.similarity_join(arrays, columns="at", **told)) == {}
        assert pairs_of(epsjoin.spark.similarity_join(arrays, nothing, columns="at", **told)) == {}
        assert epsjoin.spark.dbscan(arrays, min_pts=2, columns="at", **told).collect() == []
        assert epsjoin.spark.estimate(arrays, columns="at", **told).pairs == 0.0
    for wrong in ([], [1.0, -2.0], [[1.0], [2.0, 3.0]]):
        with pytest.raises(ArgumentError, match="eps"):
            epsjoin.spark.similarity_join(arrays, columns="at", eps=wrong)
    with_one = epsjoin.spark.similarity_join(
        some.where("id = 1"), some.where("id = 2"), eps=1.0, columns="at", cuts=Cuts(sample_rows=1)
    )
    assert pairs_of(with_one) == {(1, 2): 0.0}, "whichever the sample has"


def test_public_functions__are_not_hidden_by_files_of_steps() -> None:
    from epsjoin.spark.epsilon import fit_epsilon
    from epsjoin.spark.neighbours import outliers as neighbours_outliers

    assert callable(fit_epsilon.run)
    assert callable(neighbours_outliers.run)
    assert callable(epsjoin.spark.outliers)
    assert callable(epsjoin.spark.fit_epsilon)
    with pytest.raises(AttributeError, match=r"module 'epsjoin.spark' has no attribute 'nothing'"):
        epsjoin.spark.nothing  # noqa: B018  # reading it is the test
