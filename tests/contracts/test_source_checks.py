"""Contracts of sources that are wrong: what is wrong is said with file and key."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from epsjoin.contracts.load_source import load_source
from epsjoin.errors import ContractError
from epsjoin.paths import CONTRACTS
from tests.contracts.broken import broken, decimals, where

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


def delimited(value: object, **more: object) -> dict[str, Any]:
    return {"customProperties.0": {"property": "delimiter", "value": value}, **more}


def windowed(value: object) -> dict[str, Any]:
    role = {"property": "role", "value": "longitude"}
    return {"schema.0.properties.0.customProperties": [role, {"property": "windowed", "value": value}]}


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
        ({"servers.0.path": "{date}-{date:yyyyMMdd}.csv"}, r"servers\[0\].path may have {date} once"),
        ({"servers.0.path": "{date:%Y%m%d}.csv"}, r"servers\[0\].path: a form has yyyy, MM and dd once each"),
        ({"servers.0.path": "{date:yyyyMM}.csv"}, r"servers\[0\].path: a form has .* not 'yyyyMM'"),
        ({"servers.0.path": "{date:}.csv"}, r"servers\[0\].path: {date:} stands for nothing"),
        (
            {"servers.0.path": "a/{date:yyyy/MM/dd}"},
            r"servers\[0\].path may have {date} in its last part only",
        ),
        (
            {"servers.0.path": "{date}/a.csv"},
            r"servers\[0\].path may have {date} in its last part only, not in",
        ),
        (
            {"servers.0.path": "s3://KEY:se/cret@b/{date}"},
            r"servers\[0\].path seems to hold a password, which",
        ),
        (
            {"servers.0.path": "s3://b[ucket/{date}"},
            r"servers\[0\].path has a character that no host may have, such as a \[, .* next /; correct it$",
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
        (where("lat > 'a'"), "is not understood: lat > 'a' is not for number and string; it may"),
        (where("NOT lat"), "is not understood: NOT lat is not for number; it may"),
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


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            ";;",
            "\\t",
            "tab",
            '"',
            "'",
            "\n",
            "\r",
            "\0",
            " ",
            "1",
            "x",
            "_",
            "é",
            "-",
            "+",
            ".",
            ":",
            "/",
        ),
        *(None, 1, True, [";"]),
    ],
)
def test_load_source__says_which_delimiters_there_are(tmp_path: Path, value: object) -> None:
    said = (
        f'delimiter must be one of ",", ";", "|", "\\t", "^", "~", "#", "$", in double quotes, not {value!r}'
    )
    with pytest.raises(ContractError, match=re.escape(said)):
        load_source(broken(tmp_path, delimited(value)), "broken")


@pytest.mark.parametrize("value", [",", ";", "|", "\t", "^", "~", "#", "$"])
def test_load_source__takes_a_delimiter_of_csv_only(tmp_path: Path, value: str) -> None:
    assert load_source(broken(tmp_path, delimited(value)), "broken").delimiter == value
    for format_ in ("json", "parquet") if value != "," else ():
        of_format = broken(tmp_path, delimited(value, **{"servers.0.format": format_}))
        with pytest.raises(ContractError, match=f"delimiter is for files of the format csv, not {format_}"):
            load_source(of_format, "broken")
