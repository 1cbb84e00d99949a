"""Rows with another key, matched by their content, by nearness and by several criteria."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epsjoin import ArgumentError, snapshot_diff


def test_snapshot_diff__matches_rows_with_another_key_by_their_content_and_by_nearness() -> None:
    old = pa.table({"id": [1, 2, 3, 4, 5, 6], "x": [0.0, 1.0, 2.0, 3.0, 9.0, 9.0]})
    new = pa.table({"id": [1, 12, 13, 14, 15, 16], "x": [0.0, 1.0, 2.1, 3.4, 9.0, 9.0]})
    found = snapshot_diff(old, new, key="id")
    assert [(row["before"]["id"], row["now"]["id"]) for row in found.rekeyed.to_pylist()] == [(2, 12)]
    assert found.deleted["id"].to_pylist() == [3, 4, 5, 6]  # 5 and 6 are alike, so nobody knows which is 15
    found = snapshot_diff(old, new, key="id", near=0.35)
    rekeyed = [(row["before"]["id"], row["now"]["id"], row["distance"]) for row in found.rekeyed.to_pylist()]
    # of equally near ones the first: 5 and 15; what is left is not asked again
    assert rekeyed == [(2, 12, None), (3, 13, pytest.approx(0.1)), (5, 15, 0.0)]
    assert found.inserted["id"].to_pylist() == [14, 16]


def test_snapshot_diff__near_needs_mutual_nearest_rows() -> None:
    old = pa.table({"id": [1, 2], "x": [0.0, 1.0], "name": ["a", "b"]})
    new = pa.table({"id": [11], "x": [0.4], "name": ["c"]})
    found = snapshot_diff(old, new, key="id", near=0.7)
    assert [row["before"]["id"] for row in found.rekeyed.to_pylist()] == [1]
    with pytest.raises(ArgumentError, match="near needs columns of numbers; none of name is one"):
        snapshot_diff(old, new, key="id", columns=["name"], near=0.7)


def test_snapshot_diff__matches_rows_with_another_key_by_several_criteria(tmp_path: Path) -> None:
    old = pa.table(
        {
            "id": [1, 2, 3, 4, 5],
            "lat": [50.0, 50.0, -10.0, 0.0, 70.0],
            "lon": [8.0, 8.0, 179.99, 0.0, 0.0],
            "name": ["Frankfurt", "Mainz Finthen", "Fiji", "Null Island", None],
            "khz": [114.2, 114.2, 300.0, 100.0, 100.0],
        }
    )
    new = pa.table(
        {
            "id": [11, 12, 13, 14, 15],
            "lat": [50.001, 50.0, -10.0, 0.0, 70.001],
            "lon": [8.0, 8.0, -179.99, 0.0, 0.0],
            "name": ["MAINZ-FINTHEN", "Frankfurt Main", "Fiji VOR", "Elsewhere", None],
            "khz": ["114.2", "114.2", "300", "100", "100"],
        }
    )
    near: dict[Any, float] = {("lat", "lon"): 3.0, "name": 0.6, "khz": 0.05}
    found = snapshot_diff(old, new, key="id", near=near)
    rekeyed = {row["before"]["id"]: row["now"]["id"] for row in found.rekeyed.to_pylist()}
    # 2 lies nearer to 12, whose name is another one; 4 has no namesake, and no name is no name in common
    assert rekeyed == {1: 12, 2: 11, 3: 13}
    kilometres = 0.02 * 111.195 * math.cos(math.radians(10))
    (fiji,) = (row["distance"] for row in found.rekeyed.to_pylist() if row["before"]["id"] == 3)
    shared = {"  f", " fi", "fij", "iji", "ji "}, {"ji ", "i v", " vo", "vor", "or "}
    alike = len(shared[0]) / len(shared[0] | shared[1])
    assert fiji == pytest.approx(kilometres / 3.0 + (1 - alike) / 0.6, rel=1e-4)
    two = pa.concat_tables([new, pa.table({**new.slice(2, 1).to_pydict(), "id": [16], "lat": [-10.001]})])
    doubtful = snapshot_diff(
        old, two.set_column(3, "name", [[*new["name"].to_pylist(), "Fiji"]]), key="id", near=near
    )
    left = {row["before"]["id"]: row["now"]["id"] for row in doubtful.rekeyed.to_pylist()}
    assert left == {1: 12, 2: 11}, "13 is nearer to 3, 16 has the better name"
    by_place = snapshot_diff(old, new, key="id", near={("lat", "lon"): 3.0})
    assert {row["before"]["id"]: row["now"]["id"] for row in by_place.rekeyed.to_pylist()}[4] == 14


@pytest.mark.parametrize(
    ("near", "words"),
    [
        ({"name": 0.5}, "near needs a column of numbers or a place"),
        ({"color": 1.0}, "near: 'color' is no column that both snapshots have"),
        ({("name", "x"): 1.0}, "near: name and x are no place"),
        ({"x": -1.0}, "near must be a distance, at least 0, or several"),
        ({}, "near must be a distance, at least 0, or several"),
    ],
)
def test_snapshot_diff__refuses_criteria_that_say_nothing(near: Any, words: str) -> None:
    old = pa.table({"id": [1], "x": [0.0], "name": ["a"]})
    new = pa.table({"id": [11], "x": [0.4], "name": ["c"]})
    with pytest.raises(ArgumentError, match=words):
        snapshot_diff(old, new, key="id", near=near)


@pytest.mark.parametrize("kind", [pa.int64(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_snapshot_diff__near_takes_numbers_of_any_type(kind: pa.DataType) -> None:
    """Whole numbers that float64 rounds, too: near is a distance."""
    if kind == pa.int64():
        old, new = [2**60 + 1], [2**60 + 3]
    else:
        old, new = ["7.5"], ["8.0"]
    made = [pa.table({"id": [id_], "x": pa.array(x).cast(kind)}) for id_, x in ((1, old), (2, new))]
    found = snapshot_diff(*made, key="id", near={"x": 5.0})
    assert [row["now"]["id"] for row in found.rekeyed.to_pylist()] == [2]


@pytest.mark.parametrize("y", [("1", "a"), (date(2024, 1, 1), date(2024, 1, 2))])
def test_snapshot_diff__measures_no_distance_of_what_is_no_number(y: tuple[Any, Any]) -> None:
    old, new = (pa.table({"id": [id_], "x": [f"1.{id_}"], "y": [y[id_]]}) for id_ in (0, 1))
    with pytest.raises(ArgumentError, match="near needs columns of numbers; not all values of y are numbers"):
        snapshot_diff(old, new, key="id", near=9, near_columns=["x", "y"])
    assert snapshot_diff(old, new, key="id", near=9, near_columns="x").rekeyed.num_rows == 1
    old, new = (pa.table({"id": [id_], "x": [id_], "y": pa.nulls(1, pa.string())}) for id_ in (0, 1))
    assert snapshot_diff(old, new, key="id", near=9, near_columns=["x", "y"]).inserted.num_rows == 1
