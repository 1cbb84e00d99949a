"""Versions of contracts: what breaks somebody needs a new major one, what adds something a new minor one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from epsjoin.contracts.versions import FILE, check, publish
from epsjoin.errors import ContractError
from epsjoin.paths import CONTRACTS
from tests.contracts.changes import (
    DOCUMENTS,
    SOURCE,
    TABLE,
    Body,
    change,
    column,
    custom,
    drop_custom,
    new_column,
    new_rule,
    put,
    rule,
    values,
    with_custom,
    without,
)

LATITUDE = {"property": "role", "value": "latitude"}
MAJOR = [
    (TABLE, without("properties", "degree"), "column degree is gone or has another name"),
    (TABLE, put(column, "degree", name="n"), "column degree is gone or has another name; column n is new"),
    (TABLE, put(column, "degree", physicalType="int"), "column degree: type was long and is int"),
    (TABLE, put(column, "degree", required=False), "column degree was required and is optional"),
    (TABLE, new_column(required=True), "column new is new, a required one"),
    (TABLE, put(column, "id", primaryKey=None, primaryKeyPosition=None), "key was run, id and is run"),
    (
        TABLE,
        put(column, "role", partitioned=True, partitionKeyPosition=2),
        "partitioned was run and is run, role",
    ),
    (
        TABLE,
        put(column, "degree", logicalTypeOptions={"minimum": 2}),
        "column degree: minimum was 1 and is 2",
    ),
    (
        TABLE,
        put(column, "degree", logicalTypeOptions={"minimum": 1, "maximum": 9}),
        "column degree: maximum was none and is 9",
    ),
    (TABLE, values("core", "noise"), "column role: values were core, border, noise and are core, noise"),
    (TABLE, new_rule("error"), "rule new is new"),
    (
        TABLE,
        put(rule, "noise_is_in_no_cluster", query="SELECT 0"),
        "rule noise_is_in_no_cluster has another query",
    ),
    (
        TABLE,
        put(rule, "not_all_points_are_in_one_cluster", severity="error"),
        "rule not_all_points_are_in_one_cluster has another severity",
    ),
    (SOURCE, without("properties", "ident"), "column ident is gone"),
    (SOURCE, put(column, "ident", logicalType="integer"), "column ident: type was string and is integer"),
    (SOURCE, put(column, "ident", required=True), "column ident was optional and is required"),
    (SOURCE, new_column(required=True), "column new is new, a required one"),
    (SOURCE, lambda body: custom(body, "metric", "euclidean"), "metric was haversine and is euclidean"),
    (
        SOURCE,
        put(column, "latitude_deg", logicalTypeOptions={"minimum": -60}),
        "column latitude_deg: minimum was -90.0 and is -60",
    ),
    (
        SOURCE,
        lambda body: custom(body, "max_quarantine_share", 0.0),
        "max_quarantine_share was 0.01 and is 0",
    ),
    (SOURCE, with_custom("where", "frequency_khz > 0"), "rule where is new"),
    (SOURCE, put(column, "ident", physicalName="code"), "column ident: physicalName was none and is code"),
    (
        SOURCE,
        put(column, "latitude_deg", customProperties=[LATITUDE, {"property": "decimals", "value": 6}]),
        "column latitude_deg: decimals was none and is 6",
    ),
    (SOURCE, with_custom("guard", {"new": 0.25}), "guard: new was 0.5 and is 0.25"),
    (SOURCE, lambda body: custom(body, "interval", "day"), "interval was month and is day"),
    (SOURCE, lambda body: body["servers"][0].update(format="json"), "format was csv and is json"),
    (
        SOURCE,
        lambda body: body["customProperties"].append({"property": "delimiter", "value": ";"}),
        'delimiter was "," and is ";"',
    ),
]
MINOR = [
    (TABLE, new_column(), "column new is new, an optional one"),
    (
        TABLE,
        put(column, "degree", logicalTypeOptions={"minimum": 0}),
        "column degree: minimum was 1 and is 0",
    ),
    (
        TABLE,
        put(column, "degree", logicalTypeOptions=None),
        "column degree: minimum was 1 and is none",
    ),
    (
        TABLE,
        values("core", "border", "noise", "edge"),
        "column role: values were core, border, noise and are",
    ),
    (TABLE, put(column, "role", quality=None), "column role: values were core, border, noise and are none"),
    (TABLE, new_rule("warning"), "rule new is new"),
    (TABLE, without("quality", "noise_is_in_no_cluster"), "rule noise_is_in_no_cluster is gone"),
    (
        TABLE,
        put(rule, "noise_is_in_no_cluster", severity="warning"),
        "rule noise_is_in_no_cluster has another severity",
    ),
    (SOURCE, new_column(), "column new is new, an optional one"),
    (SOURCE, put(column, "id", required=None), "column id was required and is optional"),
    (
        SOURCE,
        put(column, "latitude_deg", required=False),
        "column latitude_deg was required and is optional",
    ),
    (
        SOURCE,
        lambda body: custom(body, "max_quarantine_share", 0.5),
        "max_quarantine_share was 0.01 and is 0.5",
    ),
]
FREE = [
    (TABLE, put(column, "degree", description="Other words.")),
    (TABLE, lambda body: body["schema"][0].update(description="Other words.")),
    (TABLE, lambda body: body["schema"][0]["properties"].reverse()),
    (SOURCE, lambda body: body["servers"][0].update(path="elsewhere/{date}.csv")),
    (SOURCE, put(column, "ident", physicalName="ident")),
    (SOURCE, lambda body: body["customProperties"].append({"property": "delimiter", "value": ","})),
    (SOURCE, lambda body: custom(body, "defaults", {"min_pts": 6, "neighbours": 3})),
]


def said_of(contracts: Path, name: str, by: Callable[[Body], object], version: str) -> str:
    """What is said of one contract with a change and a version."""
    change(contracts, name, by)
    change(contracts, name, lambda body: body.update(version=version))
    for other in {SOURCE, TABLE} - {name}:  # it takes its time to be read
        (contracts / f"{other}.odcs.yaml").unlink(missing_ok=True)
    (sentence,) = (each for each in check(contracts) if "the contract is gone" not in each)
    return sentence


@pytest.mark.parametrize(
    ("name", "by", "words", "version", "why", "lowest"),
    [
        *((*case, "1.7.0", "this breaks what was published", "2.0.0") for case in MAJOR),
        *((*case, "1.0.9", "this adds to what was published", "1.1.0") for case in MINOR),
    ],
)
def test_check__asks_for_a_major_version_of_what_breaks_and_for_a_minor_one_of_what_adds(
    contracts: Path, name: str, by: Callable[[Body], object], words: str, version: str, why: str, lowest: str
) -> None:
    sentence = said_of(contracts, name, by, version)
    assert words in sentence
    assert f"{why} as version 1.0.0; undo it, or set the" in sentence
    assert f"version (now {version}) to {lowest} or above" in sentence


def test_check__of_a_data_set_that_begins_to_be_matched_asks_for_a_major_version(tmp_path: Path) -> None:
    for name in ("earthquakes", "iscgem"):
        shutil.copy(CONTRACTS / f"{name}.odcs.yaml", tmp_path)
    whole = (tmp_path / "earthquakes.odcs.yaml").read_text()
    change(tmp_path, "earthquakes", lambda body: drop_custom(body, "match"))
    change(tmp_path, "earthquakes", lambda body: body.update(version="1.0.0"))
    publish(tmp_path)
    (tmp_path / "earthquakes.odcs.yaml").write_text(whole)
    change(tmp_path, "earthquakes", lambda body: body.update(version="1.0.0"))
    (sentence,) = check(tmp_path)
    assert "match was none and is " in sentence
    assert "(now 1.0.0) to 2.0.0 or above" in sentence
    (tmp_path / "iscgem.odcs.yaml").unlink()
    assert any("earthquakes" in each and "iscgem" in each for each in check(tmp_path))
    with pytest.raises(ContractError, match="iscgem"):
        publish(tmp_path, ["earthquakes"])


@pytest.mark.parametrize(("max_nodes", "version"), [(299, "2.0.0"), (301, "1.1.0")])
def test_check__of_documents_asks_for_a_version_where_smaller_ones_or_larger_ones_are_taken(
    tmp_path: Path, max_nodes: int, version: str
) -> None:
    shutil.copy(CONTRACTS / f"{DOCUMENTS}.odcs.yaml", tmp_path)
    change(tmp_path, DOCUMENTS, lambda body: body.update(version="1.0.0"))
    publish(tmp_path)
    limit = [{"property": "role", "value": "tree"}, {"property": "max_nodes", "value": max_nodes}]
    change(tmp_path, DOCUMENTS, put(column, "spec", customProperties=limit))
    (sentence,) = check(tmp_path)
    assert f"column spec: max_nodes was 300 and is {max_nodes}" in sentence
    assert f"(now 1.0.0) to {version} or above" in sentence


@pytest.mark.parametrize(
    ("by", "versions"),
    [(without("properties", "degree"), ("1.9.9", "2.0.0")), (new_column(), ("1.0.1", "1.1.0"))],
)
def test_publish__only_under_a_version_that_is_high_enough(
    contracts: Path, by: Callable[[Body], object], versions: tuple[str, str]
) -> None:
    change(contracts, TABLE, by)
    too_low, enough = versions
    change(contracts, TABLE, lambda body: body.update(version=too_low))
    with pytest.raises(ContractError, match=rf"table clusters: .* \(now {too_low}\) to {enough} or above"):
        publish(contracts)
    change(contracts, TABLE, lambda body: body.update(version=enough))
    news = f"table clusters: version {enough} is new, after 1.0.0"
    assert check(contracts) == [f"{news}; 'bin/epsjoin contract publish' writes it to {FILE}"]
    assert publish(contracts) == [news]
    assert check(contracts) == []


@pytest.mark.parametrize(("name", "by"), FREE)
def test_check__lets_texts_places_and_defaults_be_free(
    contracts: Path, name: str, by: Callable[[Body], object]
) -> None:
    change(contracts, name, by)
    assert check(contracts) == []


def test_check__of_the_projects_own() -> None:
    """What `make check` asks."""
    assert check(CONTRACTS) == []


def test_check__refuses_a_version_that_goes_back_or_is_none(contracts: Path) -> None:
    change(contracts, TABLE, lambda body: body.update(version="0.9.0"))
    assert "table clusters: the version has gone back" in check(contracts)[0]
    change(contracts, TABLE, lambda body: body.update(version="v1"))
    assert check(contracts) == ["table clusters: version must be three numbers such as 1.0.0, not 'v1'"]
    with pytest.raises(ContractError, match="table clusters: version must be three numbers"):
        publish(contracts)


def test_check__refuses_a_version_that_is_none_of_a_draft_too(contracts: Path) -> None:
    change(contracts, SOURCE, lambda body: body.update(version="1", status="draft"))
    (contracts / FILE).unlink()
    first, *_ = check(contracts)
    assert first == f"source {SOURCE}: version must be three numbers such as 1.0.0, not '1'"


def test_check__of_what_leaves_records_out(contracts: Path) -> None:
    change(contracts, SOURCE, with_custom("where", "frequency_khz > 0"))
    change(contracts, SOURCE, with_custom("guard", {"left_out": 0.1, "lost": None}))
    change(contracts, SOURCE, lambda body: body.update(version="2.0.0"))
    publish(contracts)
    limits = {"left_out": 0.05, "lost": 0.5}
    narrower = said_of(contracts, SOURCE, lambda body: custom(body, "guard", limits), "2.1.0")
    assert "guard: lost was none and is 0.5; guard: left_out was 0.1 and is 0.05: this breaks" in narrower
    another = said_of(contracts, SOURCE, lambda body: custom(body, "where", "frequency_khz > 1"), "2.1.0")
    assert "rule where has another query" in another
