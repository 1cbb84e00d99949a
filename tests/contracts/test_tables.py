"""Contracts of tables: those of the project are valid; points have the columns of their source."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from epsjoin.contracts import odcs
from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.odcs import read_contract
from epsjoin.contracts.tables import load_table
from epsjoin.errors import ContractError
from epsjoin.paths import CONTRACTS
from epsjoin.vocabulary import CHANGES, EVENTS, ROLES

TABLES = sorted(file.name.split(".")[0] for file in (CONTRACTS / "tables").glob("*.odcs.yaml"))


@pytest.mark.parametrize("name", TABLES)
def test_load_table__takes_the_projects_own(name: str) -> None:
    read_contract(CONTRACTS / "tables" / f"{name}.odcs.yaml")
    table = load_table(CONTRACTS, name)
    assert table.partitioned[0] == table.columns[0].name == "run"
    assert all(column.description for column in table.columns)


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [("clusters", "role", ROLES), ("changes", "what", CHANGES), ("cluster_events", "event", EVENTS)],
)
def test_vocabulary__is_what_the_contracts_allow(table: str, column: str, words: tuple[str, ...]) -> None:
    columns = {each.name: each for each in load_table(CONTRACTS, table).columns}
    assert columns[column].values == words


def test_load_table__gives_points_the_columns_of_its_source() -> None:
    names = [
        column.name for column in load_table(CONTRACTS, "points", load_source(CONTRACTS, "navaids")).columns
    ]
    assert names[:3] == ["run", "id", "ident"]
    assert names[-1] == "point"
    assert names.count("id") == 1


def test_load_table__gives_points_the_ranges_of_its_source() -> None:
    points = load_table(CONTRACTS, "points", load_source(CONTRACTS, "navaids"))
    latitude = next(column for column in points.columns if column.name == "latitude_deg")
    assert (latitude.type, latitude.required, latitude.minimum, latitude.maximum) == ("double", True, -90, 90)


def test_load_table__is_not_held_against_the_standard_by_each_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odcs, "_check", lambda *_: pytest.fail("the file is checked"))
    assert load_table(CONTRACTS, "pairs").key == ("run", "left_id", "right_id")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("- name: left_id", "- names: left_id", r"\$\.schema\[0\]\.properties\[1\]"),
        ("properties:", "properties: 7\n    x:", r"\$\.schema\[0\]"),
        ("schema:", "schema: x\nx:", r"\$: .*'x' was unexpected"),
    ],
)
def test_load_table__that_cannot_be_read_says_what_the_standard_says(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    shutil.copytree(CONTRACTS / "tables", tmp_path / "tables")
    file = tmp_path / "tables" / "pairs.odcs.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ContractError, match=rf"pairs\.odcs\.yaml: {sentence}"):
        load_table(tmp_path, "pairs")
