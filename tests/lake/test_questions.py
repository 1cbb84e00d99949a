"""SQL about slices: only their rows, in the version that was named; what cannot be answered is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from epsjoin.lake import slices
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.questions import Questions, Stored, UnansweredError
from tests.lake.rows import pairs
from tests.tiny import RUN


def questions(lake: Lake, version: int | None = None) -> Questions:
    where = Slice("pairs", RUN)
    now, _ = slices.version_and_files(lake, where)
    stored = Stored(lake.location("pairs"), now if version is None else version, where.partition)
    return Questions({"pairs": stored})


def test_questions__are_about_the_slice_in_the_version_that_is_named(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((1, 2, 0.5), (3, 4, 0.5)))
    slices.write_slice(lake, Slice("pairs", RUN), pairs((5, 6, 0.25)))
    version, _ = slices.version_and_files(lake, Slice("pairs", RUN))
    slices.write_slice(lake, Slice("pairs", RUN), pairs((5, 6, 0.25), (7, 8, 0.0), (7, 9, 0.0)))
    count, largest = "SELECT COUNT(*) FROM pairs", "SELECT MAX(right_id) FROM pairs"
    assert [questions(lake).number(query) for query in (count, largest)] == [3.0, 9.0]
    assert [questions(lake, version).number(query) for query in (count, largest)] == [1.0, 6.0]
    assert questions(lake).number("SELECT MAX(right_id) FROM pairs WHERE left_id = 0") is None


def test_questions__that_cannot_be_answered_say_so(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(UnansweredError, match="there is no table"):
        Questions({"pairs": Stored((tmp_path / "none").as_uri(), 0, {"run": RUN})})
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


def test_whole_numbers__of_several_columns_stay_rows_and_of_others_are_refused(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((5, 6, 0.25), (7, 8, 0.0)))
    right, left = questions(lake).whole_numbers("pairs", ["right_id", "left_id"])
    assert sorted(zip(left.tolist(), right.tolist(), strict=True)) == [(5, 6), (7, 8)]
    for column in ("distance", "run", "no_column"):
        with pytest.raises(UnansweredError, match=column):
            questions(lake).whole_numbers("pairs", [column])
    null = 'SELECT CASE WHEN left_id = 5 THEN right_id END AS "left_id" FROM pairs'
    asked = questions(lake)
    asked._ask(f'CREATE VIEW "some" AS {null}')
    with pytest.raises(UnansweredError, match="not whole numbers in every row"):
        asked.whole_numbers("some", ["left_id"])
