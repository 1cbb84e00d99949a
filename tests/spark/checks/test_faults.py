"""What is wrong, as it is collected and told."""

from __future__ import annotations

import pytest

from epsjoin.errors import DataRefusedError
from epsjoin.spark.checks.faults import MAX_SHOWN, Faults


def test_faults__tell_once_what_several_checks_have_found(capsys: pytest.CaptureFixture[str]) -> None:
    faults = Faults()
    assert not faults.add([])
    assert faults.add(["eps is another one", "a pair is missing"])
    assert faults.add(["eps is another one"]), "there was one, though it is known"
    assert faults.total == 3, "who compares before with after sees it"
    with pytest.raises(DataRefusedError, match=r"another one \(2 findings, 2 of them above\)$"):
        faults.refuse()
    assert capsys.readouterr().out.splitlines() == ["  eps is another one", "  a pair is missing"]


def test_faults__are_all_counted_and_the_first_ones_kept() -> None:
    faults = Faults()
    faults.add([f"pair {n}" for n in range(MAX_SHOWN + 5)])
    assert len(faults.first) == MAX_SHOWN
    assert faults.total == MAX_SHOWN + 5
