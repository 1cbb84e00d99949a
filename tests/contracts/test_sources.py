"""Contracts of sources: those of the project are valid; what is read of one, and what it does not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.sources import SourceContract
from epsjoin.params import RunParams
from epsjoin.paths import CONTRACTS
from tests.contracts.broken import broken, decimals, where

SOURCES = sorted(file.name.split(".")[0] for file in CONTRACTS.glob("*.odcs.yaml"))


@pytest.mark.parametrize("name", SOURCES)
def test_load_source__takes_the_projects_own(name: str) -> None:
    source = load_source(CONTRACTS, name)
    RunParams(**source.defaults)
    assert all(column.description for column in source.columns)


def test_load_source__what_a_contract_does_not_say_has_the_default_of_its_field(tmp_path: Path) -> None:
    """A source made in code and one whose file says no more are the same."""
    source = load_source(broken(tmp_path, {"customProperties": [], "name": ""}), "broken")
    assert source == SourceContract(
        name="broken",
        title="broken",
        path=source.path,
        format="csv",
        columns=source.columns,
        coordinates=("lon", "lat"),
        latitude="lat",
        longitude="lon",
    )


def test_load_source__gives_latitude_and_longitude_their_range() -> None:
    source = load_source(CONTRACTS, "landmarks")
    assert (source.column("lat").minimum, source.column("lat").maximum) == (-90, 90)
    assert (source.column("lon").minimum, source.column("lon").maximum) == (-180, 180)


def test_load_source__leaves_out_what_lacks_a_coordinate_that_is_not_required(tmp_path: Path) -> None:
    """No point lacks one: it would be NaN, and NaN is on no side of a cut."""
    source = load_source(broken(tmp_path, {"schema.0.properties.0.required": False}), "broken")
    assert (source.optional, source.condition) == (("lon",), "`lon` IS NOT NULL")
    assert source.column("lon").required
    assert load_source(CONTRACTS, "landmarks").condition == ""


def test_load_source__a_coordinate_is_required_where_nothing_is_said(tmp_path: Path) -> None:
    folder = broken(tmp_path, {"schema.0.properties.0.required": None})
    file = folder / "broken.odcs.yaml"
    file.write_text(file.read_text().replace("required: null", "businessName: x"))
    assert load_source(folder, "broken").optional == ()


def test_load_source__reads_a_column_by_another_name_and_rounds_it(tmp_path: Path) -> None:
    source = load_source(
        broken(tmp_path, decimals(6, **{"schema.0.properties.0.physicalName": "Längd"})), "broken"
    )
    lon, lat = source.columns
    assert (lon.name, lon.in_file, lon.decimals) == ("lon", "Längd", 6)
    assert (lat.name, lat.in_file, lat.decimals) == ("lat", "lat", None)


def test_load_source__joins_its_conditions(tmp_path: Path) -> None:
    change = where("lat > 0 OR lon > 0", **{"schema.0.properties.1.required": False})
    source = load_source(broken(tmp_path, change), "broken")
    assert source.condition == "`lat` IS NOT NULL AND (lat > 0 OR lon > 0)"
    assert source.filter is not None
    assert source.filter.takes({"lon": [1, 1, None], "lat": [None, -1, 1]}) == [False, True, True]
    change = where("lat > 0 -- north", **{"schema.0.properties.1.required": False})
    remarked = load_source(broken(tmp_path, change), "broken").filter
    assert remarked is not None
    assert remarked.takes({"lon": [1, 1, 1], "lat": [None, -1, 1]}) == [False, False, True]


def test_load_source__haversine_has_latitude_first_and_kilometres_whatever_the_file_says(
    tmp_path: Path,
) -> None:
    unit = {"customProperties.2": {"property": "guard", "value": {"lost": 1}}}
    source = load_source(broken(tmp_path, {"customProperties.1.value": "haversine", **unit}), "broken")
    assert (source.coordinates, source.unit) == (("lat", "lon"), "km")
    assert [column.name for column in source.columns] == ["lon", "lat"]
    assert load_source(CONTRACTS, "landmarks").coordinates == ("lon", "lat"), "in the order of the contract"
