"""Versions of contracts: what breaks somebody needs a new major one, what adds something a new minor one."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from epsjoin.commands import cli
from epsjoin.contracts.versions import FILE, check, publish
from epsjoin.errors import ContractError
from epsjoin.paths import CONTRACTS

EMPTY = {"version": "1.0.0", "of": "source", "fixed": {}, "columns": {}, "rules": {}}
SOURCE, DOCUMENTS, TABLE = "navaids", "vega_specs", "tables/clusters"
Body = dict[str, Any]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("published")
    (place / "tables").mkdir()
    for name in (SOURCE, TABLE):
        shutil.copy(CONTRACTS / f"{name}.odcs.yaml", place / f"{name}.odcs.yaml")
        change(place, name, lambda body: body.update(version="1.0.0"))
    publish(place)
    return place


@pytest.fixture
def contracts(published: Path, tmp_path: Path) -> Path:
    """A source and a table, published."""
    return Path(shutil.copytree(published, tmp_path / "contracts"))


def change(contracts: Path, name: str, by: Callable[[Body], object]) -> None:
    file = contracts / f"{name}.odcs.yaml"
    body = yaml.safe_load(file.read_text())
    by(body)
    file.write_text(yaml.safe_dump(body, sort_keys=False))


def column(body: Body, name: str) -> Body:
    return next(each for each in body["schema"][0]["properties"] if each["name"] == name)


def rule(body: Body, name: str) -> Body:
    return next(each for each in body["schema"][0]["quality"] if each["name"] == name)


def custom(body: Body, name: str, value: object) -> None:
    next(each for each in body["customProperties"] if each["property"] == name)["value"] = value


def put(of: Callable[[Body, str], Body], name: str, /, **values: Any) -> Callable[[Body], None]:
    """A change of some keys of a column or a rule; None takes a key away."""

    def by(body: Body) -> None:
        part = of(body, name)
        part.update(values)
        for key in [key for key, value in part.items() if value is None]:
            del part[key]

    return by


def new_column(**values: Any) -> Callable[[Body], None]:
    body = {"name": "new", "logicalType": "string", "physicalType": "string", **values}
    return lambda contract: contract["schema"][0]["properties"].append(body)


def new_rule(severity: str) -> Callable[[Body], None]:
    body = {"name": "new", "type": "sql", "severity": severity, "mustBe": 0, "query": "SELECT 0"}
    return lambda contract: contract["schema"][0]["quality"].append(body)


def with_custom(name: str, value: object) -> Callable[[Body], None]:
    return lambda contract: contract["customProperties"].append({"property": name, "value": value})


def without(kind: str, name: str) -> Callable[[Body], None]:
    def by(body: Body) -> None:
        parts = body["schema"][0][kind]
        parts[:] = [part for part in parts if part["name"] != name]

    return by


def values(*allowed: str) -> Callable[[Body], None]:
    return lambda body: column(body, "role")["quality"][0]["arguments"].update(validValues=list(allowed))


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


def test_check__wants_contracts_published_drafts_excepted(contracts: Path) -> None:
    shutil.copy(CONTRACTS / "landmarks.odcs.yaml", contracts / "landmarks.odcs.yaml")
    assert check(contracts) == [
        f"source landmarks: version 1.0.0 is new; 'bin/epsjoin contract publish' writes it to {FILE}"
    ]
    change(contracts, "landmarks", lambda body: body.update(status="draft"))
    assert check(contracts) == []
    change(contracts, SOURCE, lambda body: body.update(status="draft"))
    change(contracts, SOURCE, without("properties", "ident"))
    (sentence,) = check(contracts)
    assert "source navaids: column ident is gone" in sentence, "what was published keeps its word"


def test_check__wants_it_said_that_a_contract_is_gone(contracts: Path) -> None:
    (contracts / f"{TABLE}.odcs.yaml").unlink()
    assert check(contracts) == [
        f"table clusters: the contract is gone; 'bin/epsjoin contract publish' writes it to {FILE}"
    ]
    publish(contracts)
    assert check(contracts) == []


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


def test_contract_check__the_command(contracts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--contracts", str(contracts)]
    assert cli.main(["contract", "check", *given]) == 0
    change(contracts, TABLE, new_column())
    assert cli.main(["contract", "check", *given]) == 1
    assert (
        "epsjoin contract: table clusters: column new is new, an optional one: this"
        in capsys.readouterr().err
    )
    assert cli.main(["contract", "publish", *given]) == 2
    change(contracts, TABLE, lambda body: body.update(version="1.1.0"))
    assert cli.main(["contract", "publish", *given]) == 0
    assert capsys.readouterr().out == "table clusters: version 1.1.0 is new, after 1.0.0\n"
    (contracts / FILE).write_text("{")
    assert cli.main(["contract", "check", *given]) == 2
    assert "published.json: not JSON" in capsys.readouterr().err
    (contracts / FILE).write_text("[1]")
    assert cli.main(["contract", "check", *given]) == 2
    assert "published.json: no object of contracts" in capsys.readouterr().err
    for what in ("check", "publish"):
        assert cli.main(["contract", what, "--contracts", str(contracts / "tables" / "none")]) == 2
        assert "none: no contract (*.odcs.yaml) is there" in capsys.readouterr().err


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


def test_check__refuses_two_contracts_of_one_id(contracts: Path) -> None:
    """As of a file that was copied, of which only the name was changed."""
    shutil.copy(contracts / f"{SOURCE}.odcs.yaml", contracts / "wells.odcs.yaml")
    change(contracts, "wells", lambda body: body.update(status="draft"))
    own, copied = check(contracts)
    both = rf"\.odcs\.yaml: id epsjoin\.source\.{SOURCE} is that of .*\.odcs\.yaml, too"
    assert re.search(rf"{SOURCE}{both}", own)
    assert re.search(rf"wells{both}", copied)
    assert check(contracts, ["clusters"]) == []
    for names in ([], [SOURCE], ["wells"]):  # which of both is meant is not known
        with pytest.raises(ContractError, match=both):
            publish(contracts, names)


def broken(contracts: Path) -> Path:
    """A draft that is none, beside a table with something new under a new version."""
    file = contracts / "wells.odcs.yaml"
    file.write_text("id: [\n")
    change(contracts, TABLE, new_column())
    change(contracts, TABLE, lambda body: body.update(version="1.1.0"))
    return file


def test_check__tells_of_all_contracts_beside_one_that_is_invalid(contracts: Path) -> None:
    file = broken(contracts)
    change(contracts, SOURCE, without("properties", "ident"))
    invalid, breach, behind = check(contracts)
    assert invalid.startswith(f"{file}: ")
    assert breach.startswith("source navaids: column ident is gone")
    assert check(contracts, [SOURCE]) == [breach]
    assert check(contracts, ["wells"]) == [invalid]
    assert check(contracts, ["clusters"]) == [behind]
    assert behind.startswith("table clusters: version 1.1.0 is new, after 1.0.0; 'bin/epsjoin")


def test_publish__of_names_leaves_all_others_as_they_are(contracts: Path) -> None:
    file, before = broken(contracts), (contracts / FILE).read_text()
    change(contracts, SOURCE, without("properties", "ident"))
    with pytest.raises(ContractError, match=r"wells.*; source navaids: .*; to publish others, name them"):
        publish(contracts)
    for name, words in (("wells", str(file)), (SOURCE, "column ident is gone"), ("none", "no contract none")):
        with pytest.raises(ContractError, match=words):
            publish(contracts, ["clusters", name])
    assert (contracts / FILE).read_text() == before
    assert publish(contracts, ["clusters"]) == ["table clusters: version 1.1.0 is new, after 1.0.0"]
    known, now = (json.loads(text) for text in (before, (contracts / FILE).read_text()))
    assert now[f"source {SOURCE}"] == known[f"source {SOURCE}"]
    assert now["table clusters"]["version"] == "1.1.0"
    assert now.keys() == known.keys()
    assert check(contracts, ["clusters"]) == []


def test_publish__of_a_name_removes_it_or_says_that_it_is_a_draft(contracts: Path) -> None:
    (contracts / f"{TABLE}.odcs.yaml").unlink()
    assert publish(contracts, [SOURCE]) == []
    assert publish(contracts, ["clusters"]) == ["table clusters: the contract is gone"]
    shutil.copy(CONTRACTS / "landmarks.odcs.yaml", contracts / "landmarks.odcs.yaml")
    change(contracts, "landmarks", lambda body: body.update(status="draft"))
    assert check(contracts, ["landmarks"]) == []
    with pytest.raises(ContractError, match="source landmarks is a draft; set its status to active"):
        publish(contracts, ["landmarks"])


def test_contract_check__of_names_ends_well_beside_an_invalid_contract(
    contracts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, given = broken(contracts), ["--contracts", str(contracts)]
    assert cli.main(["contract", "check", *given]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"epsjoin contract: {file}: ")
    assert second.startswith("epsjoin contract: table clusters: version 1.1.0 is new")
    assert cli.main(["contract", "check", SOURCE, *given]) == 0
    assert cli.main(["contract", "publish", "clusters", *given]) == 0
    assert capsys.readouterr().out == "table clusters: version 1.1.0 is new, after 1.0.0\n"


@pytest.mark.parametrize("what", ["check", "publish"])
@pytest.mark.parametrize(
    "shape",
    [
        *(3, {}, {"version": "1.0.0", "of": "source"}, {"version": 1}),
        *({**EMPTY, change[0]: change[1]} for change in [("version", "one"), ("columns", None)]),
        *({**EMPTY, part: value} for part in ("columns", "rules") for value in ([1], {"a": 3})),
    ],
)
def test_check_and_publish__refuse_what_no_publishing_has_written(
    contracts: Path, capsys: pytest.CaptureFixture[str], what: str, shape: object
) -> None:
    """As after a merge that was solved by hand."""
    known = json.loads((contracts / FILE).read_text())
    (contracts / FILE).write_text(json.dumps(known | {f"source {SOURCE}": shape}))
    assert cli.main(["contract", what, "--contracts", str(contracts)]) == 2
    said = capsys.readouterr().err
    assert f"{FILE}: source {SOURCE} is not as it was published; take the last file that was commit" in said


def test_publish__leaves_the_old_file_whole_where_the_disk_is_full(
    contracts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, write = (contracts / FILE).read_text(), Path.write_text

    def write_half(path: Path, text: str, *of: Any, **named: Any) -> int:
        write(path, text[: len(text) // 2], *of, **named)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", write_half)
    assert cli.main(["contract", "publish", "--contracts", str(contracts)]) == 2
    assert "is not written: No space left on device" in capsys.readouterr().err
    assert (contracts / FILE).read_text() == before
    assert sorted(contracts.glob(f"{FILE}*")) == [contracts / FILE]


def test_publish__says_that_it_cannot_write(contracts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (contracts / FILE).unlink()
    (contracts / FILE).mkdir()
    assert cli.main(["contract", "publish", "--contracts", str(contracts)]) == 2
    assert f"{FILE} is not written: Is a directory" in capsys.readouterr().err
