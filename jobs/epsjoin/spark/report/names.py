"""How a report names a point to a person: by the key of the source and by a label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epsjoin.contracts.sources import SourceContract
from epsjoin.kernels.arrays import Ints
from epsjoin.spark.rows.stored import StoredSlice


def choose_label(source: SourceContract) -> str | None:
    """Choose the column that names a point to a person: ``name``, otherwise the first column of text."""
    texts = [c.name for c in source.columns if c.type == "string" and c.name != source.tree]
    return "name" if "name" in texts else (texts[0] if texts else None)


def name_record(record: Mapping[str, Any], source: SourceContract, label: str | None) -> dict[str, Any]:
    """Take the key and the label of a record of the source, as the rows of ``Findings`` have them."""
    return {"key": [record[name] for name in source.key], "label": record[label] if label else None}


def read_records(points: StoredSlice, ids: Ints) -> Mapping[int, Mapping[str, Any]]:
    """Read a few points: the values of the source's columns, without documents, by id."""
    if not len(ids):
        return {}
    source = points.job.lake.source
    names = [column.name for column in source.columns if column.name != source.tree]
    rows = points.take_ids(ids, list(dict.fromkeys(["id", *names])))
    values = rows.select(names).to_pylist()
    return dict(zip(rows["id"].to_pylist(), values, strict=True))
