"""The page about contracts of sources: every key that the program reads is on it, and its example is one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from epsjoin.contracts import odcs
from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.odcs import read_contract
from epsjoin.contracts.source_columns import TYPES
from epsjoin.contracts.sources import CUSTOM, DELIMITERS, FORMATS, METRICS, OF_COLUMNS, ROLES
from epsjoin.contracts.times import INTERVALS

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "source-contract.md").read_text(encoding="utf-8")
EXAMPLE, VECTOR = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
TABLES = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
READ = "epsjoin.contracts.load_source.read_contract"
NAMED = {word for code in re.findall("`([^`]+)`", TABLES) for word in re.findall(r"\w+", code)}

ITEM = {"item"}
"""A key that no contract has: the program itself gives it to the numbers of a list."""


class Recorded(dict[str, Any]):
    """A mapping that knows which of its keys were asked for."""

    asked: set[str]

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def recorded(value: Any, asked: set[str]) -> Any:
    if isinstance(value, dict):
        found = Recorded({key: recorded(each, asked) for key, each in value.items()})
        found.asked = asked
        return found
    return [recorded(each, asked) for each in value] if isinstance(value, list) else value


def keys_of(value: Any) -> Iterator[str]:
    for key, each in value.items() if isinstance(value, dict) else ():
        yield key
        yield from keys_of(each)
    for each in value if isinstance(value, list) else ():
        yield from keys_of(each)


@pytest.fixture
def contracts(tmp_path: Path) -> Path:
    (tmp_path / "wells.odcs.yaml").write_text(EXAMPLE, encoding="utf-8")
    return tmp_path


def test_page__its_example_is_a_contract(contracts: Path) -> None:
    source = load_source(contracts, "wells")
    assert source.condition == (
        "`lat` IS NOT NULL AND `lon` IS NOT NULL AND (kind = 'water' AND depth_m BETWEEN 1 AND 400)"
    )
    given = {each["property"] for each in yaml.safe_load(EXAMPLE)["customProperties"]}
    assert given == CUSTOM.keys() - {"unit"}, "all but the unit, which is known"


def test_page__has_every_key_that_the_program_reads(contracts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    monkeypatch.setattr(READ, lambda file: recorded(read_contract(file), asked))
    load_source(contracts, "wells")
    assert {"servers", "primaryKeyPosition", "validValues", "minimum", "required"} <= asked, "it records"
    columns = {"well_id", "lat", "lon", "depth_m", "kind"}
    assert asked - NAMED - columns - set(CUSTOM) == ITEM


def test_page__its_vector_is_a_column_of_which_it_has_every_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = yaml.safe_load(EXAMPLE)
    key, *_ = body["schema"][0]["properties"]
    body["schema"][0]["properties"] = [key, *yaml.safe_load(VECTOR)]
    body["servers"][0]["format"] = "json"
    body["customProperties"] = [{"property": "metric", "value": "cosine"}]
    (tmp_path / "vectors.odcs.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    asked: set[str] = set()
    monkeypatch.setattr(READ, lambda file: recorded(read_contract(file), asked))
    source = load_source(tmp_path, "vectors")
    assert source.coordinates == tuple(f"embedding_{number}" for number in range(1, 385))
    assert {"items", "minItems", "maxItems"} <= asked, "it records"
    assert asked - NAMED - {"well_id", "embedding"} - set(CUSTOM) == ITEM


def test_page__has_every_key_that_the_standard_demands(contracts: Path) -> None:
    demanded = odcs._validator().schema["required"]
    assert demanded
    assert set(demanded) <= NAMED
    assert set(keys_of(yaml.safe_load(EXAMPLE))) - {"eps"} <= NAMED


def test_page__has_every_property_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", TABLES, re.MULTILINE))
    words = {"where": "all are taken", "decimals": "not rounded", "windowed": "`false`"}
    words["guard"] = "those [below](#the-guard)"
    for name, default in {**CUSTOM, **OF_COLUMNS}.items():
        shown = words.get(name) or (f"`{default}`" if default not in ("", [], {}, None) else "none")
        assert rows[name] == shown, name


@pytest.mark.parametrize("word", [*ROLES, *TYPES, *FORMATS, *INTERVALS, *METRICS])
def test_page__has_every_word_that_is_allowed(word: str) -> None:
    assert word in NAMED


def test_page__has_every_delimiter_as_it_is_written() -> None:
    (row,) = (line for line in TABLES.splitlines() if line.startswith("| `delimiter` |"))
    said = [text.replace(r"\|", "|") for text in re.findall('`(".*?")`', row)]
    assert said == [json.dumps(delimiter) for delimiter in DELIMITERS]
