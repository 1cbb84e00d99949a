"""Components on Spark: the definition in both ways, whatever the partitions; a million nodes in one tree."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from epsjoin.errors import ArgumentError
from epsjoin.spark.cluster import components
from epsjoin.spark.cluster.components import join_forests
from oracles import cluster as twin

Edges = NDArray[np.int64]
INT64 = np.iinfo(np.int64)
MILLION = 1_000_000


def frame(spark: SparkSession, edges: Edges, part: Edges, n_parts: int) -> DataFrame:
    edges = edges.reshape(-1, 2)
    columns = {"part": part.astype(np.int32), "node": edges[:, 0].copy(), "root": edges[:, 1].copy()}
    return spark.createDataFrame(pa.table(columns)).repartitionById(n_parts, "part").select("node", "root")


def joined(forests: DataFrame, most: int, few: int = 0) -> tuple[Edges, Edges]:
    """Rows of the result in the order of nodes; each node once."""
    rows = join_forests(forests, most, few)
    table = rows.toArrow()
    rows.unpersist()
    node, root = (table[name].to_numpy() for name in ("node", "root"))
    order = np.argsort(node)
    assert (np.diff(node[order]) != 0).all()
    return node[order], root[order]


def as_dict(rows: tuple[Edges, Edges]) -> dict[int, int]:
    return dict(zip(*(column.tolist() for column in rows), strict=True))


def smallest(edges: Edges) -> dict[int, int]:
    return {node: root for node, root in twin.components(edges.tolist()).items() if node != root}


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Edges of the largest part before each round."""
    largest: list[int] = []
    plain = components._run_round

    def watched(held: DataFrame, n_parts: int) -> DataFrame:
        parts = held.where("node <> root").select(F.spark_partition_id().alias("part")).toArrow()["part"]
        largest.append(int(np.bincount(parts).max(initial=0)))
        return plain(held, n_parts)

    monkeypatch.setattr(components, "_run_round", watched)
    return largest


def many_graphs(seed: int) -> Edges:
    """300 random graphs side by side, sparse to dense, with loops, repeats and both directions."""
    random = np.random.default_rng(seed)
    graphs = []
    for first in range(-3_000, 3_000, 20):
        n_nodes, n_edges = random.integers(1, 20), random.integers(1, 30)
        graphs.append(first + random.integers(0, n_nodes, (n_edges, 2)))
    return random.permutation(np.concatenate(graphs))


@pytest.mark.parametrize(
    ("is_tree", "n_parts"),
    [
        (True, 8),
        pytest.param(False, 8, marks=pytest.mark.long),  # rounds of few edges are tried below
        *(pytest.param(tree, n, marks=pytest.mark.long) for tree in (True, False) for n in (1, 3)),
    ],
)
def test_join_forests__finds_what_can_be_reached(
    spark: SparkSession, rounds: list[int], is_tree: bool, n_parts: int
) -> None:
    edges = many_graphs(n_parts)
    part = np.random.default_rng(0).integers(0, n_parts, len(edges))
    most = len(edges) if is_tree else 700
    found = as_dict(joined(frame(spark, edges, part, n_parts), most))
    assert found == smallest(edges)
    nodes, ends = np.unique(edges, return_inverse=True)
    matrix = coo_array((np.ones(len(edges)), ends.reshape(-1, 2).T), (len(nodes), len(nodes)))
    label = connected_components(matrix)[1]
    assert len({found.get(int(node), int(node)) for node in nodes}) == label.max() + 1
    trees = networkx.utils.groups({int(node): found.get(int(node), int(node)) for node in nodes})
    graph = networkx.Graph(edges.tolist())
    assert sorted(map(sorted, trees.values())) == sorted(map(sorted, networkx.connected_components(graph)))
    assert (rounds == []) == is_tree
    assert max(rounds, default=0) <= most


EXTREMES = [INT64.min, INT64.max, INT64.min + 1, INT64.max - 1, -1, 0]
CHAINS = [*((i, i + 1) for i in range(20, 28)), *((i, i + 1) for i in range(40, 48))]
EDGE_CASES = [
    *[(13, 13), (-13, -13), (13, 13)],  # loops alone
    *[(INT64.max, INT64.max), *zip(EXTREMES[1:], EXTREMES, strict=False)],
    *[(12, 11), (11, 12), (12, 11), (11, 11)],  # a pair, again and turned
    *[*CHAINS, *((i + 100, j + 100) for i, j in CHAINS), (28, 48)],  # two chains, and two with a last edge
]


@pytest.mark.parametrize("most", [7, 1_000])
def test_join_forests__of_edge_cases(spark: SparkSession, rounds: list[int], most: int) -> None:
    edges = np.array(EDGE_CASES, np.int64)
    found = as_dict(joined(frame(spark, edges, np.arange(len(edges)) % 4, 4), most))
    assert found == smallest(edges)
    assert {found[48], found[148], found[INT64.max]} == {20, 140, INT64.min}
    assert (rounds == []) == (most > len(edges))
    assert max(rounds, default=0) <= most


def test_join_forests__of_a_session_without_a_limit_of_batches(
    spark: SparkSession,
) -> None:
    edges = np.array(EDGE_CASES, np.int64)
    forests = frame(spark, edges, np.arange(len(edges)) % 4, 4)
    limit = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(limit)
    spark.conf.set(limit, "0")
    try:
        assert as_dict(joined(forests, 7)) == smallest(edges)
    finally:
        spark.conf.set(limit, before)


def test_join_forests__of_no_edge(spark: SparkSession) -> None:
    assert as_dict(joined(spark.createDataFrame([], "node long, root long"), 1)) == {}


def test_join_forests__ends_with_parts_of_one_edge(spark: SparkSession) -> None:
    """No step contracts anything by itself: the rounds go to their own end."""
    edges = np.array([(5, 9), (9, 7), (7, 2), (4, 4), (2, 8), (5, 9)])
    assert as_dict(joined(frame(spark, edges, np.arange(6) % 2, 2), 1)) == dict.fromkeys((5, 7, 8, 9), 2)


def test_join_forests__joins_few_edges_in_one_task(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = many_graphs(4)
    monkeypatch.setattr(components, "_contract_partitions", None)  # the first step of both other ways
    assert as_dict(joined(frame(spark, edges, np.arange(len(edges)) % 5, 5), 10_000, 10_000)) == smallest(
        edges
    )
    for most, few in ((10_000, len(edges) - 1), (len(edges) - 1, 10_000)):
        with pytest.raises(TypeError):
            joined(frame(spark, edges, np.arange(len(edges)) % 5, 5), most, few)


@pytest.mark.long
def test_join_forests__takes_the_tree_as_long_as_a_task_may_hold_all(
    spark: SparkSession, rounds: list[int]
) -> None:
    edges = np.column_stack((np.arange(1, 40), np.arange(39)))
    forests = frame(spark, edges, np.arange(39) % 3, 3)
    expected = dict.fromkeys(range(1, 40), 0)
    assert as_dict(joined(forests, 39)) == expected
    assert rounds == []
    assert as_dict(joined(forests, 38)) == expected
    assert len(rounds) >= 2
    assert max(rounds) <= 38


@pytest.mark.long
def test_join_forests__ends_by_the_tree_when_repeats_are_gone(spark: SparkSession, rounds: list[int]) -> None:
    edges = np.tile(np.column_stack((np.arange(1, 40), np.arange(39))), (9, 1))
    forests = frame(spark, edges, np.repeat(np.arange(9), 39), 9)
    assert as_dict(joined(forests, 100)) == dict.fromkeys(range(1, 40), 0)
    assert len(rounds) == 1


@pytest.mark.long
def test_join_forests__leaves_nothing_in_memory_but_the_result(spark: SparkSession) -> None:
    held = spark.sparkContext._jsc.getPersistentRDDs
    edges = many_graphs(1)
    before = held().size()
    for most in (10_000, 500):
        result = join_forests(frame(spark, edges, np.arange(len(edges)) % 5, 5), most, max_edges_at_once=0)
        assert held().size() == before + 1
        result.unpersist(blocking=True)
        assert held().size() == before


@pytest.mark.parametrize("most", [0, 1.5, True])
def test_join_forests__refuses_a_task_that_may_hold_nothing(spark: SparkSession, most: Any) -> None:
    with pytest.raises(ArgumentError, match="max_in_one_task must be a whole number, at least 1"):
        join_forests(spark.createDataFrame([(1, 0)], "node long, root long"), most)


@pytest.mark.long
@pytest.mark.parametrize(("n", "most"), [(MILLION, 10 * MILLION), (MILLION, MILLION)])
def test_join_forests__joins_long_chains_and_large_stars(
    spark: SparkSession, rounds: list[int], n: int, most: int
) -> None:
    """A chain in no order of its nodes, a hub that is the smallest of its star, one that is the largest."""
    chain = np.random.default_rng(8).permutation(n) - n // 2
    leaves = np.arange(n)
    low, high = n, 3 * n + 1
    edges = np.concatenate(
        (
            np.column_stack((chain[1:], chain[:-1])),
            np.column_stack((low + 1 + leaves, np.full(n, low))),
            np.column_stack((np.full(n, high), low + n + 1 + leaves)),
        )
    )
    part = np.arange(len(edges)) * 5 // len(edges)
    part[::1_000] = 5  # some edges of all three lie far from their neighbours
    node, root = joined(frame(spark, edges, part, 6), most)
    assert node.size == 3 * n - 1
    in_chain, in_low = node < n // 2, node < low + n + 1
    assert (root[in_chain] == -(n // 2)).all()
    assert (root[in_low & ~in_chain] == low).all()
    assert (root[~in_low] == low + n + 1).all()
    if most == n:
        assert 2 <= len(rounds) <= np.ceil(np.log2(n)) + 2
        assert max(rounds) <= most
    else:
        assert rounds == []
