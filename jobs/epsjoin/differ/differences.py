"""What differs between two snapshots of a data set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epsjoin.errors import ArgumentError, needing_extra
from epsjoin.kernels.arrays import Bools
from epsjoin.local.arguments import as_number, check_choice, list_names
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.methods import METHODS
from epsjoin.local.differ.order import distance, missed_probability, waiting

with needing_extra("epsjoin.snapshot_diff"):
    import pyarrow as pa

    from epsjoin.differ.columns import (
        Compared,
        check_tolerance,
        choose_columns,
        find_reformatted,
        find_within,
        mark_differing,
        structs,
    )
    from epsjoin.differ.found import Found
    from epsjoin.differ.keyed import find_difference
    from epsjoin.differ.nearness import Near, check_criteria
    from epsjoin.differ.rekeyed import separate_rekeyed
    from epsjoin.differ.snapshots import Snapshot, is_csv, open_snapshot
    from epsjoin.source.delimiters import check_delimiter

if TYPE_CHECKING:
    from pathlib import Path

Counters = MutableMapping[str, int]
DIGEST_BITS = (8, 16, 32, 64, 128)


@dataclass(frozen=True)
class SnapshotDiff:
    """What differs between two snapshots; made by :func:`snapshot_diff`.

    Parameters
    ----------
    inserted, deleted : the rows that came, with all columns of the new snapshot, and those that went, with
        those of the old one.
    updated : the rows whose key has other values now: key columns, ``columns`` (the names of those that
        differ), ``before`` and ``now`` (structs of the compared columns).
    rekeyed : rows that went under one key and came under another, neither inserted nor deleted: ``before``
        and ``now`` (structs of whole rows), ``distance`` (null where their content is equal).
    n_same : number of rows that are the same; ``n_reformatted`` of them are written otherwise, ``n_within``
        have other numbers.
    n_reformatted : rows in which a text changed, and its value did not (1.5 and 1.50).
    n_within : rows whose values differ only by numbers within their tolerance.
    only_old, only_new : names of columns that one snapshot alone has; they are not compared.
    distance : how much the order of the rows differs: 0 not at all, 1 reversed, 2/3 shuffled.
    waiting : largest number of rows that wait for their partners while both snapshots are read in step.
    blocks_read, blocks_written : blocks of 16 KiB between disk and memory, for rows of their length in Arrow.
    missed_probability : probability that at least one changed row was taken for the same, if all rows are
        compared by digests; the method ``auto`` compares most of them value by value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> old = pa.table({"id": [1, 2, 3], "x": [0.5, 1.5, 2.5]})
    >>> new = pa.table({"id": [3, 2, 4], "x": [2.5, 1.0, 9.5]})
    >>> found = snapshot_diff(old, new, key="id")
    >>> found.inserted.to_pylist(), found.deleted.to_pylist(), found.updated["columns"].to_pylist()
    ([{'id': 4, 'x': 9.5}], [{'id': 1, 'x': 0.5}], [['x']])
    """

    inserted: pa.Table
    deleted: pa.Table
    updated: pa.Table
    rekeyed: pa.Table
    n_same: int
    n_reformatted: int
    n_within: int
    only_old: list[str]
    only_new: list[str]
    distance: float
    waiting: int
    blocks_read: int
    blocks_written: int
    missed_probability: float

    @property
    def n_by_column(self) -> dict[str, int]:
        """Number of updated rows in which a column differs, by its name, most first."""
        return dict(Counter(self.updated["columns"].combine_chunks().flatten().to_pylist()).most_common())


def snapshot_diff(
    old: str | Path | pa.Table,
    new: str | Path | pa.Table,
    *,
    key: str | Sequence[str],
    columns: Sequence[str] | None = None,
    method: str = "auto",
    digest_bits: int = 128,
    memory_mb: float = 256,
    near: float | Mapping[str | tuple[str, str], float] | None = None,
    near_columns: Sequence[str] | None = None,
    tolerance: Mapping[str, float] | None = None,
    delimiter: str | None = None,
    counters: Counters | None = None,
) -> SnapshotDiff:
    """Find the rows that were inserted, updated, deleted or got another key between two snapshots.

    Parameters
    ----------
    old, new : paths of CSV files, JSON lines (both also with gzip) or Parquet files, or Arrow tables. The
        values of CSV and JSON are compared as texts, in which an empty field of CSV is no value; a difference
        between two texts of one value is no change but counted as reformatted. Where the types of a column
        differ between the snapshots, numbers are compared as numbers, times and durations in the finer of two
        units, and others as texts; so are decimals of more than 15 digits beside floats.
    key : name of the key column, or names; an empty sequence: there is none, and rows are compared as a
        whole, each as often as it occurs.
    columns : the other columns that are compared; by default all that both snapshots have.
    method : ``auto``, which is exact and reads both snapshots once: rows are compared in step, those without
        a partner there go through a window, and the rest through ``hash``. Or one of the paper's:
        ``sort-merge``, ``SMC1``, ``SMC2``, ``hash``, ``PHC1``, ``PHC2``, exact, too, and ``window``, which
        takes a row whose partner comes too late for deleted and inserted.
    digest_bits : length of the digests by which rows are compared, with ``auto`` those whose partner does not
        come in the same step: 8, 16, 32, 64 or 128.
    memory_mb : memory for entries of rows, in 2^20 bytes, and once more for the rows that are kept for the
        answer. 16 bytes a row come on top, to find a key that comes twice, and 17 a match; with
        ``auto`` only where keys do not rise, and for rows that stand at another place than before.
    near : rows that went and came are also matched as rekeyed if they are the nearest to one another, at most
        this Euclidean distance apart. Or criteria, the eps of each: a column of numbers maps to the largest
        difference; two columns, latitude and longitude in degrees, to kilometres; a column of texts to the
        largest fraction, from 0 to 1, of trigrams (three letters in a row) that two texts do not share. Then
        rows are matched that are the only best match of one another (:func:`epsjoin.bestmatch_join`).
    near_columns : for one distance the columns that are the coordinates; by default all compared columns of
        numbers.
    tolerance : how far two numbers of a column may differ, by its name: values that differ less, or by as
        much, are no update. Numbers are compared as they are written: 1.1 and 1.2 differ by 0.1.
    delimiter : what separates the fields of CSV files, such as ``";"``. By default each is split at
        semicolons, tabs or ``|`` where its first records allow nothing else, otherwise at commas.
    counters : dictionary to whose entries ``blocks_read``, ``blocks_written`` and ``rows`` are added.

    Returns
    -------
    SnapshotDiff

    Raises
    ------
    ArgumentError
        An argument is wrong: no such file, column or method; a tolerance of a column that holds no numbers;
        a delimiter where neither snapshot is a CSV file.
    DataRefusedError
        A file is broken, a record cannot be read, has no key, or a key comes twice in one snapshot.

    Notes
    -----
    With 128 bits the probability to miss any of U updates is U / 2^128; see
    :mod:`epsjoin.kernels.digests`. The methods are those of Labio and Garcia-Molina: Efficient snapshot
    differential algorithms for data warehousing, VLDB 1996.

    Examples
    --------
    >>> import pyarrow as pa
    >>> tables = [pa.table({"id": ids, "name": ["a", "b"]}) for ids in ([1, 2], [1, 7])]
    >>> snapshot_diff(*tables, key="id").rekeyed.to_pylist()[0]["now"]
    {'id': 7, 'name': 'b'}
    """
    keys = list_names("key", key, least=0)
    chosen = None if columns is None else list_names("columns", columns, least=0)
    coordinates = None if near_columns is None else list_names("near_columns", near_columns, least=0)
    _check_options(keys, method, digest_bits, memory_mb, counters)
    _check_near(keys, near, coordinates)
    if delimiter is not None:
        check_delimiter(delimiter)
        if not (is_csv(old) or is_csv(new)):
            raise ArgumentError("delimiter is for CSV files, and neither snapshot is one")
    room = int(memory_mb * 2**20)
    sides = (
        open_snapshot(old, "old", room // 2, delimiter),
        open_snapshot(new, "new", room // 2, delimiter),
    )
    compared = choose_columns(*sides, keys, chosen)
    unknown = [name for name in coordinates or () if name not in compared.rest]
    if unknown:
        raise ArgumentError(
            f"near_columns: {unknown[0]} is no compared column; those are {', '.join(compared.rest)}"
        )
    if near is not None:
        check_criteria(near, compared.rest)
    if tolerance and not keys:
        raise ArgumentError("tolerance needs a key; without one no row is an update of another")
    check_tolerance(tolerance or {}, compared)
    with closing(Disk(room, _row_bytes(sides))) as disk:
        found = find_difference(sides, compared, method, digest_bits, disk)
    result = _describe(sides, compared, found, near, coordinates, tolerance or {})
    n_both = found.n_same + len(found.updated)
    rows = [n_both + len(alone) for alone in (found.deleted, found.inserted)]
    if counters is not None:
        added = {"blocks_read": disk.blocks_read, "blocks_written": disk.blocks_written, "rows": sum(rows)}
        for name, count in added.items():
            counters[name] = counters.get(name, 0) + count
    return SnapshotDiff(
        **result,
        only_old=compared.only_old,
        only_new=compared.only_new,
        distance=distance(found.moved, *rows),
        waiting=waiting(found.moved, *rows),
        blocks_read=disk.blocks_read,
        blocks_written=disk.blocks_written,
        missed_probability=missed_probability(len(found.updated), digest_bits),
    )


def _check_options(
    keys: Sequence[str], method: str, digest_bits: int, memory_mb: float, counters: Counters | None
) -> None:
    if len(set(keys)) < len(keys):
        raise ArgumentError(f"key names a column twice: {', '.join(keys)}")
    check_choice("method", method, METHODS)
    if method != "auto" and not keys:
        raise ArgumentError(f"method {method!r} needs a key; without one rows are compared in memory")
    if digest_bits not in DIGEST_BITS:
        raise ArgumentError(
            f"digest_bits must be one of {', '.join(map(str, DIGEST_BITS))}, not {digest_bits!r}"
        )
    if not 0 < as_number(memory_mb) < math.inf:
        raise ArgumentError(f"memory_mb must be a number above 0, not {memory_mb!r}")
    if not isinstance(counters, (MutableMapping, type(None))):
        raise ArgumentError(f"counters must be a dictionary, to which counts are added, not {counters!r}")


def _check_near(keys: Sequence[str], near: Near | None, near_columns: Sequence[str] | None) -> None:
    if near is None:
        return
    distances = [*near.values()] if isinstance(near, Mapping) else [near]
    if not (keys and distances and all(0 <= as_number(each) < math.inf for each in distances)):
        raise ArgumentError(f"near must be a distance, at least 0, or several, with a key; it is {near!r}")
    if isinstance(near, Mapping) and near_columns:
        raise ArgumentError("near_columns go with one distance; criteria name their columns themselves")


def _row_bytes(sides: tuple[Snapshot, Snapshot]) -> int:
    """The mean length of the first rows, in Arrow."""
    first = (side.peek() for side in sides)
    found = [math.ceil(batch.nbytes / len(batch)) for batch in first if batch is not None and len(batch)]
    return max(found, default=0)


def _names(names: Sequence[str], is_changed: Bools) -> pa.Array:
    """For each row the names of the columns that changed."""
    ends = np.r_[0, is_changed.sum(axis=1).cumsum()].astype(np.int32)
    columns = np.nonzero(is_changed)[1]
    return pa.ListArray.from_arrays(ends, pa.array(names, pa.string()).take(pa.array(columns)))


def _describe(
    sides: tuple[Snapshot, Snapshot],
    compared: Compared,
    found: Found,
    near: Near | None,
    near_columns: Sequence[str] | None,
    tolerance: Mapping[str, float],
) -> dict[str, Any]:
    """The rows of each kind."""
    before, now = (
        side.take(places, compared.schema) for side, places in zip(sides, found.updated.T, strict=True)
    )
    differing = mark_differing(before, now, compared.rest)
    reformatted = find_reformatted(before, now, differing, sides)
    within = find_within(before, now, differing, tolerance)
    none = np.zeros((len(now), 0), bool)
    is_changed = np.column_stack(
        [none, *(differing[name] & ~reformatted[name] & ~within[name] for name in compared.rest)]
    )
    rows = np.flatnonzero(is_changed.any(axis=1))
    is_within = np.column_stack([none, *(within[name] & ~reformatted[name] for name in compared.rest)])
    n_within = int(np.count_nonzero(is_within.any(axis=1) & ~is_changed.any(axis=1)))
    names = _names(compared.rest, is_changed[rows])
    before, now = before.take(pa.array(rows)), now.take(pa.array(rows))
    updated = now.select(compared.key).append_column("columns", names)
    for name, table in (("before", before), ("now", now)):
        updated = updated.append_column(name, structs(table))
    n_unchanged = len(found.updated) - len(rows)
    deleted, inserted = (
        side.take(places, side.schema)
        for side, places in zip(sides, (found.deleted, found.inserted), strict=True)
    )
    deleted, inserted, rekeyed = separate_rekeyed(compared, deleted, inserted, near, near_columns)
    return {
        "inserted": inserted,
        "deleted": deleted,
        "updated": updated,
        "rekeyed": rekeyed,
        "n_same": found.n_same + n_unchanged,
        "n_reformatted": n_unchanged - n_within,
        "n_within": n_within,
    }
