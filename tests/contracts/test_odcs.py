"""Files of contracts: what is no contract by the standard is refused, with the name of the file and why."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import project
from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.names import DATA_SET
from epsjoin.contracts.odcs import custom_properties, read_contract
from epsjoin.errors import ContractError
from tests.contracts.broken import broken


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"apiVersion": "v9"}, r"broken\.odcs\.yaml: \$\.apiVersion: 'v9' is not one of"),
        (
            {"schema.0.properties.0.logicalType": "float"},
            r"properties\[0\]\.logicalType: must be one of integer, number, .*, array, not 'float'$",
        ),
        (
            {"schema.0.properties.1": {"name": "lat", "logcalType": "number"}},
            r"broken\.odcs\.yaml: column lat: it has no logicalType; is 'logcalType' meant to be "
            r"'logicalType'\?$",
        ),
        (
            {"schema.0.properties.1.requird": True},
            r"broken\.odcs\.yaml: column lat: \$\.schema\[0\]\.properties\[1\]: .*'requird' was "
            r"unexpected\); "
            r"is 'requird' meant to be 'required'\?$",
        ),
        (
            {"schema.0.properties.1.primarykey": True},
            r"'primarykey' was unexpected\); is 'primarykey' meant to be 'primaryKey'\?$",
        ),
        ({"schema.0.properties.1.colour": "red"}, r"'colour' was unexpected\)$"),
        (
            {"customProperties": {"unit": "km"}},
            r"customProperties: must be a list, .*, not \{'unit': 'km'\}$",
        ),
        (
            {"schema.0.properties.1.name": False},
            "name: must be a text, not False; YAML reads NO, 1.10 and others as something else unless",
        ),
        ({"schema.0.properties.1.required": "yes"}, r"required: must be true or false, not 'yes'$"),
        ({"schema": []}, r"broken\.odcs\.yaml: schema must describe exactly one object"),
    ],
)
def test_read_contract__says_what_is_wrong_and_where(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ContractError, match=sentence):
        read_contract(broken(tmp_path, change) / "broken.odcs.yaml")


def test_read_contract__names_the_file_that_is_no_yaml(tmp_path: Path) -> None:
    file = tmp_path / "no.odcs.yaml"
    file.write_text("a: [", encoding="utf-8")
    with pytest.raises(ContractError, match=r"no\.odcs\.yaml: line 2, column 1: not YAML: "):
        read_contract(file)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a: 1\nb:\n  c: 1\n  c: 2\n", "line 4, column 3: not YAML: c stands twice"),
        (b"a: 1\nname: W\xe9lls\n", "line 2: not UTF-8; save it in that encoding"),
        (b"version: 2024-13-45\n", "not YAML: month must be in 1..12"),
        (b"a: " + b"[" * 5000 + b"]" * 5000, "not YAML: maximum recursion depth exceeded"),
        (b"", "the file is empty"),
    ],
)
def test_read_contract__says_where_a_file_cannot_be_read(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    file = tmp_path / "no.odcs.yaml"
    file.write_bytes(content)
    with pytest.raises(ContractError, match=rf"no\.odcs\.yaml: .*{re.escape(sentence)}"):
        read_contract(file)


def test_read_contract__of_a_file_that_this_user_may_not_read_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "wells.odcs.yaml"
    file.touch()

    def forbid(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", forbid)
    with pytest.raises(ContractError, match=r"wells\.odcs\.yaml cannot be read .*; let this user read it$"):
        read_contract(file)


def test_read_contract__names_the_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"no contract .*nothing\.odcs\.yaml; .* of that name$"):
        read_contract(tmp_path / "nothing.odcs.yaml")
    for name in ("wells.odcs.yaml", "roads.odcs.yaml", "notes.yaml"):
        (tmp_path / name).touch()
    with pytest.raises(ContractError, match=r"of that name; there are roads, wells$"):
        read_contract(tmp_path / "nothing.odcs.yaml")


def test_custom_properties__takes_none_twice() -> None:
    twice = {"customProperties": [{"property": "unit", "value": "m"}, {"property": "unit", "value": "km"}]}
    with pytest.raises(ContractError, match=r"a\.odcs\.yaml: the customProperty 'unit' occurs twice"):
        custom_properties(Path("a.odcs.yaml"), twice)


def test_names_of_data_sets__are_those_that_dags_and_reports_take_up_to_their_length() -> None:
    assert project.DATA_SET == DATA_SET


def test_names_of_data_sets__may_be_as_long_as_the_name_of_a_file(tmp_path: Path) -> None:
    for name, sentence in (("a" * 245, "no contract .*a.odcs.yaml; "), ("a" * 246, "a letter first, 245 at")):
        with pytest.raises(ContractError, match=sentence):
            load_source(tmp_path, name)
