"""How a report names a point to a person: by the key of the source and by a label."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from epsjoin.contracts.odcs import SourceContract


def choose_label(source: SourceContract) -> str | None:
    """Choose the column that names a point to a person: ``name``, otherwise the first column of text."""
    texts = [column.name for column in source.columns if column.type == "string"]
    return "name" if "name" in texts else (texts[0] if texts else None)


def name_points(points: DataFrame, source: SourceContract, label: str | None) -> DataFrame:
    """Select what names each point: (id, _key, _label), as ``to_name`` reads it."""
    key = F.struct(*source.key) if source.key else F.lit(None)
    return points.select("id", key.alias("_key"), (F.col(label) if label else F.lit(None)).alias("_label"))


def to_name(row: Row) -> dict[str, Any]:
    """Read the key and the label from a row of ``name_points``, as the rows of ``Findings`` have them."""
    return {"key": list(row["_key"] or ()), "label": row["_label"]}
