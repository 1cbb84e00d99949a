"""Contracts of documents: one column of trees, whole edits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.tables import load_table
from epsjoin.contracts.trees import AXES, HEIGHT_BINS, LABEL_BINS, is_whole
from epsjoin.errors import ContractError
from epsjoin.local.trees.prepared import BINS, MAX_NODES
from epsjoin.paths import CONTRACTS
from tests.contracts.broken import broken

OF_NAME, OF_SPEC = "schema.0.properties.0", "schema.0.properties.1"


def role(name: str) -> list[dict[str, Any]]:
    return [{"property": "role", "value": name}]


def max_nodes(number: object) -> list[dict[str, Any]]:
    return [*role("tree"), {"property": "max_nodes", "value": number}]


def test_load_source__of_documents_has_points_of_their_histograms() -> None:
    source = load_source(CONTRACTS, "vega_specs")
    assert (source.tree, source.coordinates, source.chain) == ("spec", (), "trees")
    assert (source.metric, source.point_metric, source.unit) == ("tree_edit", "manhattan", "edits")
    assert source.column("spec").max_nodes == 300
    assert source.axes == AXES
    assert (HEIGHT_BINS, LABEL_BINS) == BINS, "the points are of as many bins"


def test_load_source__a_document_has_as_many_nodes_as_the_library_takes(tmp_path: Path) -> None:
    folder = broken(tmp_path, {f"{OF_SPEC}.customProperties": role("tree")}, "vega_specs")
    assert load_source(folder, "broken").column("spec").max_nodes == MAX_NODES


def test_points__of_documents_have_their_trees() -> None:
    source = load_source(CONTRACTS, "vega_specs")
    columns = {column.name: column.type for column in load_table(CONTRACTS, "points", source).columns}
    assert list(columns) == ["run", "id", "name", "spec", "tree", "point"]
    assert (columns["spec"], columns["tree"]) == ("string", "binary")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"customProperties.1.value": "euclidean"},
            "the role tree is for the metric tree_edit, not for eucl",
        ),
        (
            {"customProperties.1.value": "euclidean", f"{OF_SPEC}.customProperties": []},
            "logicalType object is for a column of the role tree",
        ),
        (
            {f"{OF_NAME}.customProperties": role("tree"), f"{OF_NAME}.primaryKey": False},
            "one column of the role tree and no coordinates, not 2 and 0",
        ),
        (
            {f"{OF_NAME}.customProperties": role("coordinate"), f"{OF_NAME}.primaryKey": False},
            "one column of the role tree and no coordinates, not 1 and 1",
        ),
        (
            {"customProperties.2.value": "km"},
            "distances of the metric tree_edit are in edits, unit cannot be",
        ),
        ({"customProperties.5.value": {"eps": 2.5}}, "eps of the metric tree_edit must be a whole number of"),
        ({"customProperties.5.value": {"min_pts": 3}}, "a whole number of edits, 1 at least, not None"),
        ({"customProperties.5.value": {"eps": 0}}, "a whole number of edits, 1 at least, not 0"),
        ({f"{OF_SPEC}.logicalType": "number"}, "a tree is a string .* or an object .*, not number"),
        ({"servers.0.format": "csv"}, "column spec: an object is for files of the format json, not csv"),
        ({f"{OF_SPEC}.primaryKey": True}, "column spec: a tree can be neither key nor windowed"),
        (
            {f"{OF_SPEC}.customProperties": max_nodes(0)},
            "max_nodes must be a whole number, 1 at least, not 0",
        ),
        ({f"{OF_SPEC}.customProperties": max_nodes(True)}, "max_nodes must be a whole number, .* not True"),
        ({f"{OF_NAME}.customProperties": max_nodes(3)[1:]}, "max_nodes is for a column of the role tree"),
        ({f"{OF_NAME}.name": "Tree"}, "column tree: the points table has a column of that name"),
    ],
)
def test_load_source__says_what_documents_cannot_have(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    folder = broken(tmp_path, change, "vega_specs")
    with pytest.raises(ContractError, match=sentence):
        load_source(folder, "broken")


@pytest.mark.parametrize(
    ("eps", "expected"), [(1, True), (3.0, True), (0, False), (1.5, False), (True, False)]
)
def test_is_whole__is_a_number_of_edits(eps: object, expected: bool) -> None:
    assert is_whole(eps) is expected
