"""The join of trees on DataFrames: the same pairs as on arrays, and refusals that name the document."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from epsjoin import Trees
from epsjoin import tree_join as join_trees
from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.spark import tree_join
from tests.local.trees.cases import specs_as_text

NEWEST = "2026-07-01"
Pair = tuple[int, int, float]


def pairs_of(frame: DataFrame) -> list[Pair]:
    return sorted((row["left_id"], row["right_id"], row["distance"]) for row in frame.collect())


def frame_of(spark: SparkSession, texts: list[str | None], parts: int = 2) -> DataFrame:
    """The texts with ids from 1000 down."""
    rows = [(1000 - number, text) for number, text in enumerate(texts)]
    return spark.createDataFrame(rows, "number int, spec string").repartition(parts)


def expected_of(texts: list[str], k: int, **options: object) -> list[Pair]:
    found = join_trees(Trees.from_json(texts), k, **options)
    return sorted((1000 - j, 1000 - i, d) for i, j, d in zip(*(c.tolist() for c in found), strict=True))


@pytest.mark.long  # their pairs by the library and by the pipeline's tasks are tried elsewhere
def test_tree_join__of_chart_specifications_is_that_of_arrays(spark: SparkSession, tmp_path: Path) -> None:
    texts = specs_as_text(NEWEST)
    found = tree_join(frame_of(spark, list(texts)), 5, tree="spec", id="number", to=str(tmp_path / "pairs"))
    pairs = pairs_of(found)
    assert pairs == expected_of(texts, 5)
    assert [sum(d <= k for _, _, d in pairs) for k in (1, 2, 3, 5)] == [53, 111, 142, 298]


def random_documents(seed: int, number: int) -> list[str]:
    random = Random(seed)

    def value(depth: int) -> object:
        kind = random.random() if depth else 1.0
        if kind < 0.4:
            return {random.choice("abcd"): value(depth - 1) for _ in range(random.randint(0, 3))}
        if kind < 0.6:
            return [value(depth - 1) for _ in range(random.randint(0, 3))]
        return random.randint(0, 3)

    return [json.dumps(value(3)) for _ in range(number)]


@pytest.mark.parametrize(
    ("k", "options"),
    [(0, {}), (3, {"ordered": "arrays", "relabel": 1, "insert": 2})],
)
def test_tree_join__takes_the_options_of_arrays_and_keeps_equal_trees(
    spark: SparkSession, tmp_path: Path, k: int, options: dict[str, object]
) -> None:
    """With ``to`` where k is above 0."""
    texts = random_documents(k, 60)
    to = str(tmp_path / "pairs") if k else None
    found = tree_join(frame_of(spark, list(texts), 3), k, tree="spec", id="number", to=to, **options)
    expected = expected_of(texts, k, **options)
    assert pairs_of(found) == expected
    assert any(distance == 0 for _, _, distance in expected)
    found.unpersist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": NaN}', "the document of id 999 is not JSON: expected a value at character 6"),
        (None, "the document of id 999 is null"),
        ("[1, 2, 3]", "the document of id 999 has more than max_nodes = 3 nodes; leave such rows out"),
    ],
)
def test_tree_join__names_the_document_that_it_refuses(
    spark: SparkSession, text: str | None, message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        tree_join(frame_of(spark, ["[]", text, "{}"]), 1, tree="spec", id="number", max_nodes=3)


def test_tree_join__refuses_wrong_arguments_and_too_many_pairs(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, ["[]", "{}", "1", "2"])
    with pytest.raises(ArgumentError, match="the frame has no column 'json'; it has number, spec"):
        tree_join(frame, 1, id="number")
    with pytest.raises(ArgumentError, match="the column 'number' must hold JSON texts, not int"):
        tree_join(frame, 1, tree="number", id="number")
    with pytest.raises(ArgumentError, match="k must be a whole number"):
        tree_join(frame, -1, tree="spec", id="number")
    with pytest.raises((BudgetError, PySparkException), match="max_pairs"):
        tree_join(frame, 4, tree="spec", id="number", max_pairs=5, to=str(tmp_path / "pairs"))
    assert not (tmp_path / "pairs" / "_delta_log").exists()
