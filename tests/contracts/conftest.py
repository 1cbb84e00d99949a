"""A source and a table that are published, for tests of versions and of publishing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from epsjoin.contracts.versions import publish
from epsjoin.paths import CONTRACTS
from tests.contracts.changes import SOURCE, TABLE, change


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
