"""What tests of the benchmarks leave out: they look at texts and counts; memory need not be at hand."""

from __future__ import annotations

import pytest

from benchmarks import measure
from benchmarks.spark import around, bench


@pytest.fixture(autouse=True)
def memory_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (measure, bench):
        monkeypatch.setattr(module, "take_back", lambda *_: None)
    monkeypatch.setattr(around, "take_back_free", lambda _: None)
