"""Names of columns as callers give them, and as Spark finds them."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession


def folding(spark: SparkSession) -> Callable[[str], str]:
    """Return what makes names equal that are one to Spark: mostly those of another case."""
    is_exact = str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
    return str if is_exact else str.lower
