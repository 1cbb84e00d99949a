"""Ingest without Spark, for tests that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark.ingest.here import reading_here


@pytest.fixture
def here() -> Iterator[None]:
    with reading_here():
        yield
