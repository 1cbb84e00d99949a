"""Files of contracts: what is no contract by the standard is refused, with the name of the file and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epsjoin.contracts.odcs import custom_properties, read_contract
from epsjoin.errors import ContractError
from tests.contracts.broken import broken


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"apiVersion": "v9"}, r"broken\.odcs\.yaml: \$\.apiVersion: 'v9' is not one of"),
        (
            {"schema.0.properties.0.logicalType": "float"},
            r"\$\.schema\[0\]\.properties\[0\]\.logicalType: 'float'",
        ),
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
    with pytest.raises(ContractError, match=r"no\.odcs\.yaml: not YAML: "):
        read_contract(file)


def test_read_contract__names_the_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"no contract .*nothing\.odcs\.yaml"):
        read_contract(tmp_path / "nothing.odcs.yaml")


def test_custom_properties__takes_none_twice() -> None:
    twice = {"customProperties": [{"property": "unit", "value": "m"}, {"property": "unit", "value": "km"}]}
    with pytest.raises(ContractError, match=r"a\.odcs\.yaml: a customProperty occurs twice"):
        custom_properties(Path("a.odcs.yaml"), twice)
