"""The join of strings on DataFrames: all pairs of the whole table, and refusals that name the string."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from epsjoin import string_join as join_strings
from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.spark import string_join
from oracles.strings import levenshtein
from tests.local.test_strings import some


def frame_of(spark: SparkSession, strings: list[str | None]) -> DataFrame:
    """The strings with ids from 1000 down."""
    rows = [(1000 - number, text) for number, text in enumerate(strings)]
    return spark.createDataFrame(rows, "number int, name string").repartition(2)


def test_string_join__is_all_pairs_of_the_whole_table_and_those_on_arrays(
    spark: SparkSession, tmp_path: Path
) -> None:
    strings = some(3, 90)
    frame = frame_of(spark, list(strings))
    found = string_join(frame, 2, string="name", id="number", to=str(tmp_path / "pairs"))
    pairs = sorted((row["left_id"], row["right_id"], row["distance"]) for row in found.collect())
    assert pairs == sorted(
        (1000 - j, 1000 - i, distance)
        for j, b in enumerate(strings)
        for i, a in enumerate(strings[:j])
        if (distance := levenshtein(a, b)) <= 2
    )
    columns = (column.tolist() for column in join_strings(strings, 2))
    assert pairs == sorted((1000 - j, 1000 - i, d) for i, j, d in zip(*columns, strict=True))
    assert {0, 1, 2} == {distance for _, _, distance in pairs}


@pytest.mark.parametrize("k", [2**31, 10**18, 2**63 - 1])
def test_string_join__takes_any_k_as_on_arrays(spark: SparkSession, k: int) -> None:
    strings = ["abc", "", "xy", "abd"]
    found = string_join(frame_of(spark, list(strings)), k, string="name", id="number").collect()
    pairs = sorted((1000 - row["right_id"], 1000 - row["left_id"], row["distance"]) for row in found)
    assert pairs == sorted(zip(*(column.tolist() for column in join_strings(strings, k)), strict=True))
    assert len(pairs) == 6


def test_string_join__refuses_nulls_by_their_id_and_wrong_arguments(spark: SparkSession) -> None:
    frame = frame_of(spark, ["a", None])
    with pytest.raises(PySparkException, match="the string of id 999 is null"):
        string_join(frame, 1, string="name", id="number")
    no_text = frame.union(spark.sql("SELECT 7, cast(X'61FF' AS string)")).where("name IS NOT NULL")
    with pytest.raises(PySparkException, match="the text of id 7 is not UTF-8"):
        string_join(no_text, 1, string="name", id="number")
    with pytest.raises(ArgumentError, match="a column must be given by its name, not by 5"):
        string_join(frame, 1, string=5, id="number")
    with pytest.raises(ArgumentError, match="the column 'number' must hold strings, not int; cast it"):
        string_join(frame, 1, string="number", id="number")
    with pytest.raises(ArgumentError, match="k must be a whole number"):
        string_join(frame, 1.5, string="name", id="number")
    for wrong in ("name", "nowhere"):
        with pytest.raises(ArgumentError, match=f"(id column '{wrong}' must hold|no column '{wrong}')"):
            string_join(frame, 1, string="name", id=wrong)


def test_string_join__of_too_many_candidates_speaks_of_k(spark: SparkSession) -> None:
    frame = frame_of(spark, ["a"] * 30)
    with pytest.raises(BudgetError, match=r"too many candidates; take a smaller k .*1 are allowed"):
        string_join(frame, 1, string="name", id="number", max_pairs=1)
