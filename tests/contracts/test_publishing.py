"""What ``contract check`` and ``publish`` do with the contracts of a folder: all, or those that are named."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from epsjoin.commands import cli
from epsjoin.contracts.versions import FILE, check, publish
from epsjoin.errors import ContractError
from epsjoin.paths import CONTRACTS
from tests.contracts.changes import SOURCE, TABLE, change, new_column, without

EMPTY = {"version": "1.0.0", "of": "source", "fixed": {}, "columns": {}, "rules": {}}


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
