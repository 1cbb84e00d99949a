"""Names of columns as callers give them, and as Spark finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import SparkSession

from epsjoin.errors import ArgumentError


def list_names(argument: str, given: str | Iterable[str], least: int = 1) -> list[str]:
    """Return the names of columns that an argument gives: one, or several, as many at least.

    Raises
    ------
    ArgumentError
        It is none of these.
    """
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"{argument} must be a column's name or a list of names, not {given!r}")
    if len(names) < least:
        raise ArgumentError(f"{argument} must name at least one column")
    return [str(name) for name in names]


def folding(spark: SparkSession) -> Callable[[str], str]:
    """Return what makes names equal that are one to Spark: mostly those of another case."""
    is_exact = str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
    return str if is_exact else str.lower
