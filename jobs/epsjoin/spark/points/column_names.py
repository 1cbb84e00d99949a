"""Names of columns as callers give them, and as Spark finds them."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession


def folding(spark: SparkSession) -> Callable[[str], str]:
    """Return a function that makes names equal if Spark treats them as equal, mostly by ignoring case."""
    is_exact = str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
    return str if is_exact else str.lower
