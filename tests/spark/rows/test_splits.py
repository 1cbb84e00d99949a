"""Splits that tasks read: every row once, in as many as there are cores, of about one size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from epsjoin.lake import schemas
from epsjoin.lake.parquet import File
from epsjoin.spark.rows.rows import StoredRows, select_columns
from epsjoin.spark.rows.splits import OPEN_COST_BYTES, RowGroups, split_bytes


def stored(sizes: Sequence[int], n_cores: int) -> StoredRows:
    files = [File("points", f"{i}.parquet", size, 1, {}) for i, size in enumerate(sizes)]
    return StoredRows(None, "file:///nowhere", files, "id long, point binary", n_cores)


def test_splits__are_never_empty_and_whole_files_are_not_divided() -> None:
    for sizes in ([20 << 20], [3 << 20], [0], [1100 << 20]):
        rows = stored(sizes, 7)
        assert all(rows.splits())
        whole = replace(rows, whole_files=True)
        assert whole.splits() == [[RowGroups(file)] for file in rows.files]


def named(groups: RowGroups) -> tuple[str, int]:
    return groups.file.path, groups.number


@pytest.mark.parametrize(("n_cores", "megabytes"), [(1000, 4), (200, 8), (1, 64)])
def test_splits__hold_every_row_group_once_and_are_of_about_one_size(n_cores: int, megabytes: int) -> None:
    sizes = [*np.random.default_rng(3).integers(0, 1 << 26, 40).tolist(), 1 << 29, 0, 1, 1 << 20]
    rows = stored(sizes, n_cores)
    splits = rows.splits()
    target = split_bytes(rows.files, schemas.parse_ddl(rows.schema), n_cores)
    assert target >> 20 == megabytes
    groups = [
        RowGroups(file, number, -(-file.size // target) or 1)
        for file in rows.files
        for number in range(-(-file.size // target) or 1)
    ]
    found = [each for split in splits for each in split]
    assert sorted(found, key=named) == sorted(groups, key=named)
    bytes_of = [sum((each.file.size + OPEN_COST_BYTES) / each.of for each in split) for split in splits]
    total = sum(file.size + OPEN_COST_BYTES for file in rows.files)
    assert sum(bytes_of) == pytest.approx(total)
    assert len(splits) == -(-total // target)
    largest = max((each.file.size + OPEN_COST_BYTES) / each.of for each in groups)
    assert max(bytes_of) - min(bytes_of) <= largest, "the smallest split would have got the last row groups"


def test_splits__do_not_depend_on_the_order_of_the_files() -> None:
    rows = stored([5 << 20, 9 << 20, 9 << 20, 1 << 20, 40 << 20, 1 << 20], 4)
    turned = replace(rows, files=rows.files[::-1])
    assert turned.splits() == rows.splits()


def test_splits__are_of_what_is_read_not_of_whole_files() -> None:
    files = [File("points", f"{i}.parquet", 30 << 20, 1 << 17, {}) for i in range(8)]
    ids, whole = (StoredRows(None, "", files, schema, 100) for schema in ("id long", "point binary"))
    assert [len(split) for split in ids.splits()] == [2, 2, 2, 2]  # each a megabyte and its opening
    assert len(whole.splits()) == 8 * 31 / 4
    # a file has the coordinates twice: as columns of their own, and as points
    known = [replace(file, point_bytes=2 * 8) for file in files]
    of_points = replace(whole, files=known, schema="id long, point binary")
    assert [len(split) for split in of_points.splits()] == [1] * 8  # each three megabytes and its opening
    assert of_points.bytes_read == 8 * (1 << 17) * (8 + 2 * 8)
    text = replace(of_points, schema="id long, point string")
    assert text.bytes_read == 8 * (30 << 20), "a column of the source may have that name, too"


def test_splits__are_one_for_each_core_of_any_columns() -> None:
    files = [File("pairs", f"{i}.parquet", (24 << 20) + i, 1 << 20, {}) for i in range(16)]
    rows = StoredRows(None, "", files, "left_id long, right_id long, distance double", 8)
    ends = select_columns(rows, "left_id long, right_id long")
    for each in (rows, ends):
        assert [len(split) for split in replace(each, whole_files=True).splits()] == [2] * 8
