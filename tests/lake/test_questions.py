"""SQL about slices: only their rows, in the version that was named; what cannot be answered is said."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from epsjoin.contracts.portable import to_datafusion
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.questions import Questions, Stored, UnansweredError
from tests.lake.rows import pairs
from tests.tiny import RUN


def questions(lake: Lake) -> Questions:
    where = Slice("pairs", RUN)
    log, _ = slices.log_and_files(lake, where)
    return Questions({"pairs": Stored(log, where.partition)})


def test_questions__are_about_the_slice_in_the_version_that_is_named(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((1, 2, 0.5), (3, 4, 0.5)))
    slices.write_slice(lake, Slice("pairs", RUN), pairs((5, 6, 0.25)))
    before = questions(lake)
    slices.write_slice(lake, Slice("pairs", RUN), pairs((5, 6, 0.25), (7, 8, 0.0), (7, 9, 0.0)))
    count, largest = "SELECT COUNT(*) FROM pairs", "SELECT MAX(right_id) FROM pairs"
    assert [questions(lake).number(query) for query in (count, largest)] == [3.0, 9.0]
    assert [before.number(query) for query in (count, largest)] == [1.0, 6.0]
    assert questions(lake).number("SELECT MAX(right_id) FROM pairs WHERE left_id = 0") is None


@pytest.mark.parametrize("foreign", ['inch"es', 'x"FROM"all_pairs"WHERE"left_id"IS/**/NULL--'])
def test_questions__take_the_name_of_no_column_for_sql(lake: Lake, foreign: str) -> None:
    """A column that somebody adds to a table may have any name."""
    slices.write_slice(lake, Slice("pairs", RUN), pairs((5, 6, 0.25)))
    DeltaTable(lake.location("pairs")).alter.add_columns(Field(foreign, PrimitiveType("string")))
    assert questions(lake).number("SELECT COUNT(*) FROM pairs") == 1.0
    assert questions(lake).number("SELECT MAX(right_id) FROM pairs") == 6.0


def test_questions__take_a_table_for_no_column_of_its_name(lake: Lake) -> None:
    """Rules call their tables t and o, and so may a data set its columns."""
    slices.write_slice(lake, Slice("pairs", RUN), pairs((5, 6, 0.25)))
    DeltaTable(lake.location("pairs")).alter.add_columns(
        [Field(name, PrimitiveType("string")) for name in "to"]
    )
    types = {"pairs": {"left_id": "long", "right_id": "long", "t": "string", "o": "string"}}
    query = "SELECT COUNT(*) FROM pairs AS t LEFT ANTI JOIN pairs AS o ON t.left_id = o.right_id"
    translated = to_datafusion(query, types)
    assert translated is not None
    assert questions(lake).number(translated) == 1.0


def test_questions__that_cannot_be_answered_say_so(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((5, 6, 0.25)))
    with pytest.raises(UnansweredError, match="no_column"):
        questions(lake).number("SELECT COUNT(*) FROM pairs WHERE no_column = 1")


def test_questions__read_a_column_once_that_several_of_them_name(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((5, 6, 0.25), (7, 8, 0.0), (7, 9, 0.5)))
    names = ["left_id", "right_id", "distance"]
    queries = {
        'SELECT SUM("left_id") FROM "pairs" WHERE "left_id" > 5': 14.0,
        'SELECT COUNT(*) FROM "pairs" WHERE "left_id" = 7 AND "distance" > 0.3': 1.0,
    }
    for n_named, n_reading in ((2, 0), (1, 2)):
        asked = questions(lake)
        asked.hold(list(queries)[:n_named], {"pairs": names, "pairs_before": names})
        plans = [str(asked._ask(f"EXPLAIN {query}").to_pylist()) for query in queries]
        assert sum(".parquet" in plan for plan in plans) == n_reading
        assert {query: asked.number(query) for query in queries} == queries
