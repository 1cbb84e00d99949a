"""Contracts of sources: those of the project are valid; what is wrong with one is said with file and key."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from epsjoin.contracts.sources import SourceContract, load_source
from epsjoin.errors import ContractError
from epsjoin.params import RunParams
from epsjoin.paths import CONTRACTS
from tests.contracts.broken import broken

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


VALUES = {
    "type": "library",
    "metric": "invalidValues",
    "mustBe": 0,
    "severity": "error",
    "arguments": {"validValues": ["a"]},
}
HAVERSINE = {
    "customProperties.1.value": "haversine",
    "schema.0.properties.0.customProperties.0.value": "latitude",
    "schema.0.properties.1.customProperties.0.value": "longitude",
}


def decimals(value: object, **more: object) -> dict[str, Any]:
    role = {"property": "role", "value": "longitude"}
    return {
        "schema.0.properties.0.customProperties": [role, {"property": "decimals", "value": value}],
        **more,
    }


def windowed(value: object) -> dict[str, Any]:
    role = {"property": "role", "value": "longitude"}
    return {"schema.0.properties.0.customProperties": [role, {"property": "windowed", "value": value}]}


def where(condition: object, **more: object) -> dict[str, Any]:
    return {"customProperties.0": {"property": "where", "value": condition}, **more}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"servers.0.format": "xml"}, "format must be one of csv, json, parquet, not 'xml'"),
        ({"servers": []}, "servers must name exactly one place, it names 0"),
        (
            {"customProperties.0.value": "fortnight"},
            "interval must be one of day, week, month, quarter, year",
        ),
        ({"customProperties.0.property": "intervall"}, r"unknown customProperties \['intervall'\]"),
        ({"customProperties.3.value": 1.5}, r"max_quarantine_share must be a number in \[0, 1\), not 1.5"),
        (
            {"customProperties.3.value": "lots"},
            r"max_quarantine_share must be a number in \[0, 1\), not 'lots'",
        ),
        (
            {"customProperties.2.value": "miles", **HAVERSINE},
            "haversine distances are in km, unit cannot be 'miles'",
        ),
        (
            {"schema.0.properties.0.logicalTypeOptions": {"minimum": 2, "maximum": 1}},
            "column lon: minimum and maximum must be finite, and in that order, not 2 and 1",
        ),
        ({"schema.0.properties.0.logicalTypeOptions": {"maximum": math.nan}}, "lon: .* not -180.0 and nan"),
        ({"schema.0.properties.0.logicalTypeOptions": {"minimum": -math.inf}}, "lon: .* not -inf and 180.0"),
        (
            {"servers.0.path": "{dat}.csv"},
            r"servers\[0\].path: \{dat\} stands for nothing, only \{date\} does",
        ),
        ({"servers.0.path": "{date}/{date}.csv"}, r"servers\[0\].path may have {date} once"),
        (
            {"servers.0.path": "{date}/a.csv"},
            r"servers\[0\].path may have {date} in its last part only, not in",
        ),
        (
            {"servers.0.path": "s3://KEY:se/cret@b/{date}"},
            r"servers\[0\].path seems to hold a password, which",
        ),
        ({"customProperties.4.value": "eps"}, "defaults must map parameters to values, not 'eps'"),
        (
            {"customProperties.1.value": "euclid"},
            "metric must be one of euclidean, manhattan, chebyshev, cosine, haversine",
        ),
        ({"schema.0.properties.0.name": "Lat"}, "two columns have the name 'lat'"),
        (windowed("yes"), "column lon: windowed must be true or false, not 'yes'"),
        (windowed(True), "column lon: windowed is for string, integer, boolean, date, not for a coordinate"),
        (
            {"customProperties.0": {"property": "window_runs", "value": 1}},
            "window_runs must be a whole number, at least 2, not 1",
        ),
        ({"schema.0.properties.0.name": "RUN"}, "column RUN: the points table has a column of that name"),
        (
            {"schema.0.properties.0.name": "sepal.length"},
            "column 'sepal.length': a name begins with a letter",
        ),
        ({"schema.0.properties.0.name": "_line"}, "column '_line': a name begins with a letter"),
        (
            {"schema.0.properties.0.customProperties.0.value": "latitude"},
            "two columns have the role latitude",
        ),
        ({"schema.0.properties.0.name": "point"}, "column point: the points table has a column of that name"),
        ({"schema.0.properties.0.name": "lat"}, "two columns have the name 'lat'"),
        ({"schema.0.properties.0.primaryKey": True}, "lon cannot be key and coordinate at once"),
        (
            {
                "schema.0.properties.0.customProperties.0.value": "payload",
                "schema.0.properties.0.logicalType": "date",
                "schema.0.properties.0.logicalTypeOptions": {"minimum": "2020-01-01"},
                "schema.0.properties.1.customProperties.0.value": "coordinate",
            },
            "column lon: minimum and maximum are for numbers, not for a date",
        ),
        (
            {"schema.0.properties.0.quality": [VALUES]},
            "column lon: invalidValues is for strings and of severity error",
        ),
        *(
            (
                {
                    "schema.0.properties.0.logicalType": "string",
                    "schema.0.properties.0.quality": [VALUES | {"arguments": arguments}],
                },
                "column lon: validValues must be a list of texts, not ",
            )
            for arguments in (
                *({"validValues": values} for values in ([False, "SE"], [1.1], "NO", [])),
                {"values": ["a"]},
            )
        ),
        (
            {
                "schema.0.properties.0.logicalType": "string",
                "schema.0.properties.0.quality": [VALUES, VALUES],
            },
            "column lon has more than one rule invalidValues",
        ),
        (
            {"schema.0.properties.0.customProperties.0.value": ["coordinate"]},
            "role must be one of payload, coord",
        ),
        ({"schema.0.properties.0.logicalType": "string"}, "coordinate lon must be a number or an integer"),
        ({"schema.0.properties.0.customProperties.0.value": "x"}, "role must be one of payload, coordinate"),
        (
            {"schema.0.properties.0.customProperties.0.value": "coordinate"},
            "latitude and longitude come together",
        ),
        (
            {
                **HAVERSINE,
                "schema.0.properties.1.customProperties.0.value": "coordinate",
                "schema.0.properties.0.customProperties.0.value": "coordinate",
            },
            "one of the role latitude and one of the role longitude .*, not lon: coordinate, lat: coor",
        ),
        (
            {"customProperties.0": {"property": "missing_values", "value": "NA"}},
            r"missing_values must be a list of texts \(in quotes\), not 'NA'",
        ),
        ({"schema.0.properties.0.physicalName": "lat"}, "columns lon and lat are both column 'lat' of the"),
        ({"schema.0.properties.0.physicalName": "a\nb"}, r"physicalName 'a\\nb' has a sign that cannot be"),
        ({"schema.0.properties.0.physicalName": "a: 'b'"}, "has a sign that cannot be printed, or a quote"),
        (decimals(16), "column lon: decimals must be a whole number from 0 to 15, not 16"),
        (decimals(True), "column lon: decimals must be a whole number from 0 to 15, not True"),
        (decimals("6"), "column lon: decimals must be a whole number from 0 to 15, not '6'"),
        (
            decimals(6, **{"schema.0.properties.0.logicalType": "integer"}),
            "column lon: decimals are for a number, not for integer",
        ),
        (
            {"schema.0.properties.0.customProperties.0.property": "rôle"},
            r"column lon: unknown customProperties \['rôle'\]; known are role, decimals",
        ),
        (where("lat >"), "where 'lat >' is not understood: lat >; it may compare columns with columns"),
        (
            where("lat = 'food"),
            'where "lat = \'food" is not understood: a quote or a comment in it does not end',
        ),
        (
            where("lat", **{"schema.0.properties.1.required": False}),
            "where 'lat' is not understood: it is no condition on a record: lat;",
        ),
        (
            {"customProperties.4.value": {"eps": -1}},
            r"broken\.odcs\.yaml: defaults: eps must be a number above 0",
        ),
        (
            {"customProperties.4.value": {"min_ptss": 5}},
            r"broken\.odcs\.yaml: defaults: unknown parameter 'min_ptss'",
        ),
        (where("latitude > 0"), "there is no column latitude; it may"),
        (where("lat > 'a'"), "no kernel matching input types"),
        (where("lat"), "it is no condition on a record: lat"),
        (where(7), "where must be a condition in SQL, not 7"),
        (
            {"customProperties.0": {"property": "guard", "value": {"left_out": 2}}},
            r"guard: left_out must be a number in \[0, 1\] or null, not 2",
        ),
        (
            {"customProperties.0": {"property": "guard", "value": {"lost": True}}},
            r"guard: lost must be a number in \[0, 1\] or null, not True",
        ),
        (
            {"customProperties.0": {"property": "guard", "value": {"order": 0.3}}},
            "guard has no check 'order'; known are lost, new, updated",
        ),
        (
            {"customProperties.0": {"property": "guard", "value": 0.3}},
            "guard must map checks to limits, not 0.3",
        ),
    ],
)
def test_load_source__says_what_is_wrong_and_where(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ContractError, match=sentence):
        load_source(broken(tmp_path, change), "broken")


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


NASTY = (
    *("../x", "..", ".", "/etc/passwd", "a/b", "a\\b", "a.b", "a b", " a", "a\n", "a\x00b", "~", "-rf", ""),
    *(
        "a;DROP TABLE points",
        "a'b",
        'a"b',
        "a`b",
        "a) OR (1=1",
        "${a}",
        "{a}",
        "{{a}}",
        "$(id)",
        "%2e%2e",
    ),
    *("<script>", "ä", "\u202ea", "\ud800", "９", "a" * 300 + "/"),
)
"""What must become neither a path nor SQL, whoever says it is a name."""


@pytest.mark.parametrize("name", [*NASTY, "../navaids", "Navaids"], ids=ascii)
def test_load_source__takes_no_name_that_is_a_path(name: str) -> None:
    with pytest.raises(ContractError, match="a name is lower-case letters, digits and _"):
        load_source(CONTRACTS, name)


@pytest.mark.parametrize("name", NASTY, ids=ascii)
def test_load_source__takes_no_column_of_a_nasty_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ContractError, match=r"broken\.odcs\.yaml: .*(a name begins with a letter|not YAML)"):
        load_source(broken(tmp_path, {"schema.0.properties.0.name": name}), "broken")


def test_load_source__haversine_has_latitude_first_and_kilometres_whatever_the_file_says(
    tmp_path: Path,
) -> None:
    unit = {"customProperties.2": {"property": "guard", "value": {"lost": 1}}}
    source = load_source(broken(tmp_path, {"customProperties.1.value": "haversine", **unit}), "broken")
    assert (source.coordinates, source.unit) == (("lat", "lon"), "km")
    assert [column.name for column in source.columns] == ["lon", "lat"]
    assert load_source(CONTRACTS, "landmarks").coordinates == ("lon", "lat"), "in the order of the contract"


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
