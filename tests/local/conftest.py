"""What the tests of algorithms share: their small tables stand for large ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from epsjoin.local.join import few_rows


@pytest.fixture(autouse=True, scope="package")
def few_rows_are_swept() -> Iterator[None]:
    """Let small tables be swept as large ones are; what few rows are joined by has tests of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_rows, "_MAX_WORK", -1)
        yield
