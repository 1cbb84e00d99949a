"""Lists of numbers in contracts of sources: each number is a column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epsjoin.contracts.load_source import load_source
from epsjoin.errors import ContractError
from tests.contracts.broken import broken


def list_of(n: object, **more: object) -> dict[str, Any]:
    role = {"property": "role", "value": "coordinate"}
    column = {
        "name": "v",
        "logicalType": "array",
        "items": {"logicalType": "number", "logicalTypeOptions": {"minimum": -1}},
        "logicalTypeOptions": {"minItems": n, "maxItems": n},
        "customProperties": [role, {"property": "decimals", "value": 3}],
        **more,
    }
    return {"schema.0.properties.0": column, "servers.0.format": "json"}


@pytest.mark.parametrize("key", ["minItems", "maxItems"])
def test_load_source__says_which_length_of_a_list_is_no_whole_number(tmp_path: Path, key: str) -> None:
    change = list_of(3, logicalTypeOptions={"minItems": 3, "maxItems": 3, key: "3"})
    sentence = rf"column v: .*\.logicalTypeOptions\.{key}: must be a whole number, not '3'$"
    with pytest.raises(ContractError, match=sentence):
        load_source(broken(tmp_path, change), "broken")


ALONE = {"schema.0.properties.1.customProperties": []}
"""The second column is no coordinate."""


def test_load_source__takes_each_number_of_a_list_for_a_column(tmp_path: Path) -> None:
    change = list_of(3, physicalName="the vector", description="A vector.") | ALONE
    source = load_source(broken(tmp_path, change), "broken")
    assert source.coordinates == ("v_1", "v_2", "v_3")
    first, second = source.column("v_1"), source.column("v_2")
    assert (first.in_file, first.item, second.in_file, second.item) == ("the vector", 0, "the vector", 1)
    assert (second.type, second.minimum, second.decimals, second.required) == ("number", -1, 3, True)
    assert second.description == "Number 2 of the list the vector. A vector."
    left_out = load_source(broken(tmp_path, list_of(2, required=False) | ALONE), "broken")
    assert left_out.optional == ("v_1", "v_2")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            list_of(2, logicalTypeOptions={"maxItems": 2}),
            r"column v: a list needs logicalTypeOptions: \{minIt",
        ),
        (list_of(0), "column v: a list needs logicalTypeOptions"),
        (
            list_of(2, items={"logicalType": "string"}),
            "column v: logicalType of the items must be one of num",
        ),
        (list_of(2, customProperties=[]), "column v: a list can only be the coordinates of a point"),
        (
            list_of(2, primaryKey=True),
            "column v: a list cannot have primaryKey; known are businessName, ",
        ),
        (list_of(2, quality=[]), "column v: a list cannot have quality"),
        (
            list_of(2, items={"logicalType": "number", "primaryKey": True}),
            "column v: its items cannot have primaryKey",
        ),
        (list_of(2.0), "column v: a list needs logicalTypeOptions"),
        (list_of(10_001), "column v: a list can have 10,000 numbers, not 10,001"),
        (
            list_of(2) | {"servers.0.format": "csv"},
            "column v: csv has no lists; make a column of each number",
        ),
        (list_of(2, physicalName="lat"), "columns v_1 and lat are both column 'lat' of the files"),
    ],
)
def test_load_source__says_what_is_wrong_with_a_list(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ContractError, match=sentence):
        load_source(broken(tmp_path, change | ALONE), "broken")
