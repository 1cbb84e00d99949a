"""A drafted contract: which columns are its key and its coordinates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epsjoin.errors import DataRefusedError
from epsjoin.source.draft.contract import draft
from tests.source.draft.drafts import drafted, reasons


def test_draft__of_numbers_without_a_key(tmp_path: Path) -> None:
    file = tmp_path / "vectors.jsonl"
    file.write_text("".join(json.dumps({"x": i / 4, "y": 0.5, "label": "a"}) + "\n" for i in range(9)))
    source, text = drafted(file, tmp_path)
    assert (source.key, source.coordinates, source.metric) == ((), ("x", "y"), "euclidean")
    assert source.format == "json"
    assert "# - key: none" in text
    assert "# - coordinates: x, y" in text


def test_draft__takes_no_key_that_comes_twice_or_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "k.csv"
    file.write_text("a_id,b_id,c,x\n1,,p,0.5\n1,2,q,1.5\n")
    assert drafted(file, tmp_path)[0].key == ("c",)


def test_draft__says_what_it_cannot_know_about_a_map(tmp_path: Path) -> None:
    file = tmp_path / "m.csv"
    file.write_text("id,start_lng,start_lat,end_lat,endLng,heading\n1,170.5,80.5,1,2,350\n2,-3.5,,3,4,10\n")
    source, text = drafted(file, tmp_path)
    assert (source.metric, source.unit, source.coordinates) == ("haversine", "km", ("start_lat", "start_lng"))
    assert (source.latitude, source.longitude, source.optional) == ("start_lat", "start_lng", ("start_lat",))
    assert (
        "a row has several positions (start_lat and start_lng, end_lat and endLng); the first is taken"
        in text
    )
    assert "# - of these rows, points: 1, left out: 1, bad: 0" in text


@pytest.mark.parametrize(
    ("header", "roles"),
    [
        ("id,lon,lat", ("lat", "lon")),
        ("id,LONG,LAT", ("LAT", "LONG")),
        ("id,b_longitude_deg,a_latitude_deg", ("a_latitude_deg", "b_longitude_deg")),
        ("id,decimalLatitude,decimalLongitude", ("decimalLatitude", "decimalLongitude")),
        ("id,platform,salon", ("", "")),
        ("id,latency,longest", ("", "")),
    ],
)
def test_draft__knows_degrees_by_the_words_in_a_name(
    tmp_path: Path, header: str, roles: tuple[str, str]
) -> None:
    (tmp_path / "m.csv").write_text(f"{header}\n1,2.5,3.5\n2,3.5,4.5\n")
    source, _ = drafted(tmp_path / "m.csv", tmp_path)
    assert (source.latitude, source.longitude) == roles


def test_draft__doubts_degrees_of_which_only_the_name_or_only_the_values_speak(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("lat,lon\n4512345.5,-3.5\n4512999.5,7.5\n")
    source, text = drafted(tmp_path / "m.csv", tmp_path)
    assert (source.metric, source.coordinates) == ("euclidean", ("lat", "lon"))
    assert "# - lat looks like degrees by its name, but has values such as 4.513e+06" in text
    (tmp_path / "m.csv").write_text("x,y\n171.5,45.5\n-17.5,-33.5\n")
    assert (
        "# - x and y look like degrees; if they are, give them the roles"
        in drafted(tmp_path / "m.csv", tmp_path)[1]
    )


def test_draft__does_not_take_kilometres_for_degrees(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("x_km,y_km\n171.5,45.5\n-17.5,-33.5\n")
    assert "degrees" not in drafted(tmp_path / "m.csv", tmp_path)[1]


@pytest.mark.parametrize(
    ("rows", "faults"),
    [
        (["s7,1,0.5", ",2,1.5"], "1 repeated value, 1 missing value"),
        (["NA,1,0.5", "NA,2,0.5"], "1 repeated value"),
    ],
)
def test_draft__says_which_column_is_a_key_but_for_a_few_records(
    tmp_path: Path, rows: list[str], faults: str
) -> None:
    good = [f"s{i},{i // 2},{i}.5" for i in range(398)]
    (tmp_path / "a.csv").write_text("\n".join(["Shop No,half,x", *good, *rows, ""]))
    source, text = drafted(tmp_path / "a.csv", tmp_path)
    assert source.key == ()
    said = "none; a record is known by its place in the file. Shop_No would be one but for"
    assert f"# - key: {said} {faults}\n" in text


def test_draft__counts_a_missing_key_of_numbers_once(tmp_path: Path) -> None:
    rows = [f"{i},{i}.5" for i in range(400)]
    (tmp_path / "a.csv").write_text("\n".join(["no,x", *rows, "NA,1.5", "NA,2.5", ""]))
    assert "no would be one but for 2 missing values\n" in drafted(tmp_path / "a.csv", tmp_path)[1]


def test_draft__says_that_a_key_cannot_be_that_of_noise(tmp_path: Path) -> None:
    rows = [f"{i},{i / 7:.3f}" for i in range(-1, 199)]
    (tmp_path / "a.csv").write_text("\n".join(["id,x", *rows]))
    text = draft(tmp_path / "a.csv", "a")
    assert "# - of these rows, points: 199, left out: 0, bad: 1" in text
    assert "# - bad, most often (1): id: -1 is kept for noise" in text


def test_draft__takes_a_list_of_numbers_for_the_coordinates(tmp_path: Path) -> None:
    rows = [
        {"doc": i, "price": i / 7, "vector": [i, 1.0, 0.5, 2.0] * 2, "pair": [1, 2], "vector_1": "a"}
        for i in range(200)
    ]
    rows[3]["vector"], rows[4]["vector"] = [1.0], None
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    source, text = drafted(file, tmp_path)
    assert source.coordinates == tuple(f"vector_2_{number}" for number in range(1, 9)), "vector_1 is taken"
    assert source.metric == "cosine"
    assert [column.name for column in source.columns if column.item is None] == ["doc", "price", "vector_1"]
    assert "# - coordinates: vector_2, a list of 8 numbers" in text
    assert "# - pair is left out: one list is taken" in text
    assert "# - numbers that count in no distance: price" in text
    assert "# - vector_2: 1 value of no list of 8 numbers, such as 'a list of 1'" in text
    assert reasons(file, source) == ["vector: not a list of 8 numbers: 'it has 1'"]


def test_draft__takes_a_position_rather_than_a_list(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    rows = [{"id": i, "lat": i / 7, "lon": 9.5, "box": [i, 1, 2, 3] * 3} for i in range(20)]
    file.write_text("\n".join(map(json.dumps, rows)))
    source, text = drafted(file, tmp_path)
    assert (source.coordinates, source.metric) == (("lat", "lon"), "haversine")
    assert "# - box is left out: a list can only be the coordinates, which are other columns" in text
    file.write_text("\n".join(json.dumps({"k": f"k{i}", "at": [9.5, i / 7]}) for i in range(20)))
    source, text = drafted(file, tmp_path)
    assert source.coordinates == ("at_1", "at_2")
    assert "# - if at is a position in degrees, make columns of latitude and longitude of it" in text


def test_draft__takes_lists_for_places_only_where_there_is_no_other_number(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(json.dumps({"k": f"k{i}", "at": [i, 2.5]}) for i in range(9)))
    source, _ = drafted(file, tmp_path)
    assert (source.coordinates, source.metric) == (("at_1", "at_2"), "euclidean")
    file.write_text("\n".join(json.dumps({"k": f"k{i}", "at": [i, 2.5], "x": i / 7}) for i in range(9)))
    source, text = drafted(file, tmp_path)
    assert source.coordinates == ("x",)
    assert "# - at is left out: a list can only be the coordinates, which" in text


def test_draft__says_that_texts_of_lists_could_be_coordinates(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('k,v\na,"[0.5, 1.5]"\nb,"[1.5, 2]"\n')
    with pytest.raises(DataRefusedError, match="'v' has lists of numbers as texts; in files of json or parq"):
        draft(tmp_path / "a.csv", "a")
