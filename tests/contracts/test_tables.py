"""Contracts of tables: those of the project are valid; points have the columns of their source."""

from __future__ import annotations

import pytest

from epsjoin.contracts.sources import load_source
from epsjoin.contracts.tables import load_table
from tests.contracts.broken import CONTRACTS

TABLES = sorted(file.name.split(".")[0] for file in (CONTRACTS / "tables").glob("*.odcs.yaml"))


@pytest.mark.parametrize("name", TABLES)
def test_load_table__takes_the_projects_own(name: str) -> None:
    table = load_table(CONTRACTS, name)
    assert table.partitioned[0] == table.columns[0].name == "run"
    assert all(column.description for column in table.columns)


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
