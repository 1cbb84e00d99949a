"""Settings of ``conf/`` that save every job work."""

from __future__ import annotations

import pytest
from pyspark.errors import utils
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def test_session__does_not_note_where_each_call_stands(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def note(depth: int) -> str:
        raise AssertionError("the place of a call was looked for")

    monkeypatch.setattr(utils, "_enable_debugging_cache", None)  # an earlier test may have made none of it
    monkeypatch.setattr(utils, "_capture_call_site", note)
    assert spark.range(2).select(F.col("id") + 1).collect() == [(1,), (2,)]
