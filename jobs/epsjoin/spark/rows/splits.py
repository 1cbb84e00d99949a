"""Splits: the files, or row groups of files, that each task reads."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from epsjoin.lake.parquet import File

MIN_SPLIT_BYTES, MAX_SPLIT_BYTES = 4 << 20, 64 << 20
"""Smallest and largest size of a split, in bytes that one task reads: see :func:`bytes_read`."""
OPEN_COST_BYTES = 1 << 20
"""Cost of opening a file: the number of bytes that are read in the same time."""


class RowGroups(NamedTuple):
    """What a split takes of a file: by default the whole file, otherwise some of its row groups.

    The row groups of the file are dealt to ``of`` splits; this is number ``number`` of them.
    """

    file: File
    number: int = 0
    of: int = 1


Split = list[RowGroups]
"""Everything that one task reads."""


def plan_splits(
    files: Sequence[File], columns: pa.Schema, n_cores: int, *, whole_files: bool = False
) -> list[Split]:
    """Divide files among tasks: large files are divided, several small files go to one task.

    The largest files come first; each file, or group of its row groups, goes to the split that is smallest so
    far. The order of the splits depends only on the files and the number of cores, so a job that runs again
    on as many cores writes files of the same bytes.

    Parameters
    ----------
    files : the files to read.
    columns : the columns to read.
    n_cores : number of cores. There are as many splits, unless these would be larger or smaller than a split
        may be.
    whole_files : whether each file must be read by one task.

    Returns
    -------
    A non-empty split for each task.
    """
    target = split_bytes(files, columns, n_cores)
    groups: list[RowGroups] = []
    sizes: list[float] = []
    read = [(bytes_read(file, columns), file) for file in files]
    read.sort(key=lambda each: (-each[0], -each[1].size, -each[1].rows, each[1].path))
    for size, file in read:
        of = 1 if whole_files else max(1, math.ceil(size / target))
        groups += [RowGroups(file, number, of) for number in range(of)]
        sizes += [(size + OPEN_COST_BYTES) / of] * of
    n_splits = min(len(groups), math.ceil(sum(sizes) / target))
    splits: list[Split] = [[] for _ in range(n_splits)]
    loads = [(0.0, place) for place in range(n_splits)]
    for each, size in zip(groups, sizes, strict=True):
        load, place = loads[0]
        splits[place].append(each)
        heapq.heapreplace(loads, (load + size, place))
    return splits


def split_bytes(files: Sequence[File], columns: pa.Schema, n_cores: int) -> int:
    """Compute the size that a split should have, with ``OPEN_COST_BYTES`` counted for each file.

    A split can be larger where a single row group is.
    """
    total = sum(bytes_read(file, columns) + OPEN_COST_BYTES for file in files)
    return min(MAX_SPLIT_BYTES, max(MIN_SPLIT_BYTES, math.ceil(total / n_cores)))


def bytes_read(file: File, columns: pa.Schema) -> float:
    """Estimate the bytes that are read of a file for some columns.

    For columns of numbers, and one of points, this is the width of the rows, at most the file's size. With
    any other column it is the file's size.
    """
    width = 0.0
    for column in columns:
        if pa.types.is_primitive(column.type):
            width += column.type.bit_width / 8
        elif column.name == "point" and pa.types.is_binary(column.type) and file.point_bytes:
            width += file.point_bytes
        else:
            return file.size
    return min(file.size, file.rows * width)


def names_of(schema: str) -> list[str]:
    """The names of the columns of a schema in DDL."""
    return [column.split()[0] for column in schema.split(", ")]
