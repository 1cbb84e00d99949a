"""The command epsjoin contract new: where it writes the draft."""

from __future__ import annotations

from pathlib import Path

import pytest

from epsjoin.commands import cli


def test_command__prints_or_writes_and_never_over_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "My Points-2024-01-01.csv"
    file.write_text("id,x\n1,0.5\n2,1.5\n")
    assert cli.main(["contract", "new", str(file)]) == 0
    printed = capsys.readouterr().out
    assert cli.main(["contract", "new", str(file), "--to", str(tmp_path)]) == 0
    assert (tmp_path / "my_points.odcs.yaml").read_text() == printed
    assert cli.main(["contract", "new", str(file), "--to", str(tmp_path)]) == 2
    assert (
        "my_points.odcs.yaml is there already and is not written; remove it, or choose"
        in capsys.readouterr().err
    )
    for name in ("No", "n" * 300, "no/where"):
        assert cli.main(["contract", "new", str(file), "--name", name]) == 2
        assert f"data set {name!r}: a name is lower-case letters" in capsys.readouterr().err


def test_command__takes_a_delimiter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id^x\n1^0.5\n2^1.5\n")
    assert cli.main(["contract", "new", str(file), "--delimiter", "^"]) == 0
    assert "property: delimiter\n  value: ^\n" in capsys.readouterr().out
    file.write_text("id\tx\n1\t0.5\n2\t1.5\n")
    assert cli.main(["contract", "new", str(file), "--delimiter", "tab"]) == 0
    assert 'property: delimiter\n  value: "\\t"\n' in capsys.readouterr().out
    assert cli.main(["contract", "new", str(file), "--delimiter", "tabs"]) == 2
    assert "--delimiter must be one of ',', ';', '|', tab, " in capsys.readouterr().err
