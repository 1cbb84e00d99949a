"""A lake of a test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from epsjoin.lake.lake import Lake
from tests.lake.rows import lake_of_pairs


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_of_pairs(tmp_path)
