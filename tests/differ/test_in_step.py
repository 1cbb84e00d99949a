"""The default differential in steps of a few rows, against two dictionaries; and how much is digested."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import ArgumentError, DataRefusedError, SnapshotDiff, snapshot_diff
from epsjoin.differ import in_step, keys
from epsjoin.digests import digest_table
from oracles import differ as oracle
from oracles import examples

Row = tuple[int, str | None]
TEXTS = st.integers(0, 60).flatmap(
    lambda n: st.lists(st.sampled_from(["a", "b", "ab", "", None]), min_size=n, max_size=n)
)
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["delete", "insert", "update", "carry off"]), st.integers(0, 50), st.integers(1, 9)
    ),
    max_size=5,
)


def edited(rows: list[Row], edits: list[tuple[str, int, int]]) -> list[Row]:
    """The rows after a few runs of them were deleted, inserted, updated, or carried off to the end."""
    rows = list(rows)
    for number, (kind, at, n) in enumerate(edits):
        at %= len(rows) + 1
        run = rows[at : at + n]
        if kind == "insert":
            rows[at:at] = [(100 * (number + 1) + i, "new") for i in range(n)]
        elif kind == "update":
            rows[at : at + n] = [(key, f"{text}!") for key, text in run]
        else:
            rows[at : at + n] = []
            rows += run if kind == "carry off" else []
    return rows


def table(rows: list[Row], of_text: bool, chunk: int) -> pa.Table:
    """A table of rows, ``chunk`` of them a batch."""
    kind = pa.string() if of_text else pa.int64()
    columns = [pa.array([str(key) if of_text else key for key, _ in rows], kind)]
    columns += [pa.array([text for _, text in rows], pa.string()), pa.array([1.0] * len(rows))]
    batch = pa.record_batch(columns, ["key", "text", "x"])
    parts = [batch[first : first + chunk] for first in range(0, len(rows), chunk)]
    return pa.Table.from_batches(parts, batch.schema)


@examples(100)
@given(
    texts=TEXTS,
    seed=st.sampled_from([None, 1, 2]),
    edits=EDITS,
    of_text=st.booleans(),
    chunks=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    step=st.sampled_from([1, 3, 8, 100]),
    memory=st.sampled_from([1e-6, 1.0]),
)
def test_snapshot_diff__in_steps_of_any_length_equals_two_dictionaries(
    texts: Any, seed: int | None, edits: Any, of_text: Any, chunks: Any, step: int, memory: float
) -> None:
    order = np.arange(len(texts)) if seed is None else np.random.default_rng(seed).permutation(len(texts))
    old: list[Row] = list(zip((order - 3).tolist(), texts, strict=True))
    new = edited(old, edits)
    tables = [table(side, of_text, chunk) for side, chunk in zip((old, new), chunks, strict=True)]
    with mock.patch.object(in_step, "STEP_ROWS", step):
        found = snapshot_diff(*tables, key="key", memory_mb=memory)
    expected = oracle.difference(old, new)
    before, now = (found.rekeyed[name].to_pylist() for name in ("before", "now"))
    kinds = {
        "deleted": [*found.deleted.to_pylist(), *before],
        "inserted": [*found.inserted.to_pylist(), *now],
        "updated": found.updated.to_pylist(),
    }
    assert found.n_same == len(expected.pop("same"))
    assert {kind: {int(row["key"]) for row in of} for kind, of in kinds.items()} == expected
    places = [[key for key, _ in side] for side in (old, new)]
    assert found.waiting == oracle.most_waiting(*places)
    assert found.distance == pytest.approx(oracle.distance(*places), rel=1e-12)
    came = [row["key"] for row in found.updated.to_pylist()]
    assert came == [row["key"] for row in tables[1].to_pylist() if row["key"] in set(came)], "by the new"


def _counting(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Counts the rows whose keys, or whose other columns, are digested."""
    counts = {"key": 0, "rest": 0}

    def counted(rows: Any, key: bytes) -> Any:
        counts["key" if rows.schema.names == ["key"] else "rest"] += rows.num_rows
        return digest(rows, key)

    digest = digest_table
    for module in (in_step, keys):
        monkeypatch.setattr(module, "digest_table", counted)
    return counts


def _diff(old: list[Row], new: list[Row]) -> SnapshotDiff:
    return snapshot_diff(*(table(rows, True, 300) for rows in (old, new)), key="key")


def test_snapshot_diff__digests_no_row_that_stands_where_it_stood(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = _counting(monkeypatch)
    old: list[Row] = [(key, "a") for key in range(1, 2001)]
    new: list[Row] = [(key, "b" if key % 50 == 0 else text) for key, text in old]
    assert len(_diff(old, new).updated) == 40
    assert counts == {"key": 0, "rest": 0}, "keys rise: 9 comes before 10, as it is shorter"


def test_snapshot_diff__digests_only_keys_near_what_came_and_went(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_step, "STEP_ROWS", 100)
    counts = _counting(monkeypatch)
    old: list[Row] = [(key, "a") for key in range(0, 8000, 2)]
    new = [row for row in old if row[0] not in range(2020, 2100)]
    new[2500:2500] = [(key, "new") for key in range(new[2500][0] - 1, new[2530][0] - 1, 2)]
    new.sort()
    found = _diff(old, new)
    assert (len(found.deleted), len(found.inserted), found.n_same) == (40, 30, 3960)
    assert counts["rest"] == 40 + 30, "who has a partner is compared with it"
    assert 0 < counts["key"] <= 4 * 2 * 100, "in the steps where rows went or came, of both"


def test_snapshot_diff__digests_each_key_once_where_they_do_not_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = _counting(monkeypatch)
    rows: list[Row] = [(key, "a") for key in range(1000, 0, -1)]
    assert _diff(rows, rows).n_same == 1000
    assert counts == {"key": 2000, "rest": 0}
    assert _diff(rows, rows[500:] + rows[:500]).n_same == 1000, "matched by the same digests"
    assert counts == {"key": 4000, "rest": 0}


@pytest.mark.parametrize("last", [1, 400, 999])
def test_snapshot_diff__names_a_double_of_a_key_that_rose_long_before(last: int) -> None:
    rows: list[Row] = [(key, "a") for key in [*range(1, 1001), last]]
    with pytest.raises(DataRefusedError, match=f"old: records {last} and 1,001 have one key, key '{last}'"):
        _diff(rows, rows)


def test_snapshot_diff__refuses_values_that_cannot_be_compared_even_where_they_are_equal() -> None:
    nested = pa.table({"id": [1], "x": [{"a": 1}]})
    with pytest.raises(ArgumentError, match="column 'x' has the type struct"):
        snapshot_diff(nested, nested, key="id")
