"""Two documents of each of the largest clusters, with the edits between them: why they are together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from epsjoin.spark.report.names import name_record
from epsjoin.spark.rows.stored import StoredSlice

MAX_SHOWN = 5
"""Maximum number of clusters of which two documents are shown."""

_PAIR = ("left_id", "right_id", "distance")


def find_alike(
    clusters: StoredSlice,
    pairs: StoredSlice,
    points: StoredSlice,
    largest: Sequence[Mapping[str, Any]],
    label: str | None,
) -> list[dict[str, Any]]:
    """Describe a pair of each of the largest clusters, as ``Findings.alike`` has them.

    Of the pairs within a cluster, the nearest one with an edit is taken; if all documents are equal, any
    pair, but always the same.

    Parameters
    ----------
    largest : rows with cluster_id, the largest cluster first.
    label : the column that names a document to a person.
    """
    source = points.job.lake.source
    if not source.tree:
        return []
    from epsjoin.local.trees.edits import tree_edits  # with kernels that only documents need
    from epsjoin.local.trees.points import OPTIONS
    from epsjoin.local.trees.trees import Trees

    chosen = [int(row["cluster_id"]) for row in largest[:MAX_SHOWN]]
    found = _choose_pairs(clusters, pairs, chosen)
    ids = np.array([id_ for pair in found.values() for id_ in (pair["left_id"], pair["right_id"])], np.int64)
    names = [column.name for column in source.columns]
    rows = points.take_ids(ids, list(dict.fromkeys(["id", *names]))).to_pylist() if len(ids) else []
    records = {row["id"]: row for row in rows}
    described = []
    for cluster_id in [each for each in chosen if each in found]:
        pair = found[cluster_id]
        sides = [records[pair[name]] for name in ("left_id", "right_id")]
        trees = Trees.from_json([side[source.tree] for side in sides])
        costs = OPTIONS.costs._asdict()
        edits = tree_edits(trees.take([0]), trees.take([1]), **costs)
        left, right = (
            {**name_record(side, source, label), "id": side["id"], "text": _write(side[source.tree])}
            for side in sides
        )
        described.append(
            {
                "cluster_id": cluster_id,
                "distance": pair["distance"],
                "left": left,
                "right": right,
                "edits": [str(edit) for edit in edits],
            }
        )
    return described


def _choose_pairs(
    clusters: StoredSlice, pairs: StoredSlice, chosen: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """Choose a pair of each of these clusters, by cluster id."""
    members = clusters.take(
        ["cluster_id"], lambda batch: np.isin(batch["cluster_id"].to_numpy(), chosen), ["id", "cluster_id"]
    )
    cluster_of = dict(zip(members["id"].to_pylist(), members["cluster_id"].to_pylist(), strict=True))
    ids = np.array(sorted(cluster_of), np.int64)

    def is_within(batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.bool_]]:
        left, right = (np.isin(batch[name].to_numpy(), ids) for name in _PAIR[:2])
        return np.asarray(left & right)

    found: dict[int, dict[str, Any]] = {}
    rows = pairs.take(_PAIR[:2], is_within, _PAIR).to_pylist()
    for pair in sorted(rows, key=lambda row: (row["distance"] == 0, *(row[name] for name in _PAIR[::-1]))):
        if cluster_of[pair["left_id"]] == cluster_of[pair["right_id"]]:
            found.setdefault(cluster_of[pair["left_id"]], pair)
    return found


def _write(text: str) -> str:
    """A document for people: a line for each value, with sorted keys, since their order does not count."""
    return json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False)
