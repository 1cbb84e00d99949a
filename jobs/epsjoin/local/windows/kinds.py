"""The structures of Golab, Garg and Özsu (EDBT 2004), each as the paper has it, counting what it looks at.

They give the same answers as those of :class:`epsjoin.ValueWindow` and :class:`epsjoin.RowWindow`, where
``kind`` chooses them, for the experiments of the paper's sections 6.2 and 6.3 and as a second opinion.

Stores of batches: LIST (rows as they came), AGGR (sorted distinct values with counts), HASH (buckets of such
lists), GROUP (rows per range). Indices over the window: L (a sorted list that is scanned), T (a sorted list
that is halved, which takes as many probes as a balanced tree), H (buckets that are scanned), G (rows per
range).

Indices of rows: *ring* and *aux* link the rows of a value forward in time, from the index to the oldest, to
the newest and back to the index; *aux* gathers a batch in an index of its own first. *bw* links backward, so
the tail of what leaves is cut at once; *db* keeps the newest row that has left in its place, and marks it.
"""

from __future__ import annotations

import bisect
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

STORES = ("LIST", "AGGR", "HASH")
INDICES = ("L", "T", "H")
BY_GROUP = "GROUP G"
VALUE_KINDS = (*(f"{store} {index}" for store in STORES for index in INDICES), BY_GROUP)
"""Stores and indices of values, as they go together."""

ROW_KINDS = ("ring", "aux", "bw", "db")
"""Indices of rows."""

BUCKETS_OF_STORE, BUCKETS_OF_INDEX = 5, 100
"""Numbers of buckets of HASH and of H, as in section 6.1."""

Key = tuple[int, Any]
"""A value that can be compared with others: NaN is above all, and one value."""


def key_of(value: Any) -> Key:
    """Return what stands for a value in these structures."""
    return (1, 0) if value != value else (0, value)


class _Counted(Protocol):
    """Values with the number of their rows."""

    probes: int

    def add(self, key: Any, rows: int) -> None:
        """Add rows of a value, or take some away."""

    def items(self) -> list[tuple[Any, int]]:
        """Return the values that have rows, ascending where they are distinct."""


class _SortedList:
    """Values with counts in order, found by a scan (L, AGGR) or by halving (T)."""

    def __init__(self, is_halved: bool = False) -> None:
        self.keys: list[Any] = []
        self.rows: list[int] = []
        self.is_halved = is_halved
        self.probes = 0

    def add(self, key: Any, rows: int) -> None:
        place = bisect.bisect_left(self.keys, key)
        self.probes += max(1, len(self.keys).bit_length()) if self.is_halved else place + 1
        if place == len(self.keys) or self.keys[place] != key:
            self.keys.insert(place, key)
            self.rows.insert(place, 0)
        self.rows[place] += rows
        if not self.rows[place]:
            del self.keys[place], self.rows[place]

    def items(self) -> list[tuple[Any, int]]:
        return list(zip(self.keys, self.rows, strict=True))


class _Buckets:
    """Values with counts in buckets of sorted lists (H, HASH)."""

    def __init__(self, n_buckets: int) -> None:
        self.lists = [_SortedList() for _ in range(n_buckets)]
        self.probes = 0

    def add(self, key: Any, rows: int) -> None:
        hashed = zlib.crc32(repr(key).encode())  # the same in every process
        bucket = self.lists[hashed % len(self.lists)]
        before = bucket.probes
        bucket.add(key, rows)
        self.probes += bucket.probes - before

    def items(self) -> list[tuple[Any, int]]:
        return sorted(item for bucket in self.lists for item in bucket.items())


class _Ranges:
    """Rows per range (G, GROUP); the range of a key, or its number."""

    def __init__(self, range_of: Callable[[Any], int], n_ranges: int) -> None:
        self.range_of = range_of
        self.rows = [0] * n_ranges
        self.probes = 0

    def add(self, key: Any, rows: int) -> None:
        self.probes += 1
        self.rows[self.range_of(key)] += rows

    def items(self) -> list[tuple[Any, int]]:
        return [(number, rows) for number, rows in enumerate(self.rows) if rows]


class _AsTheyCame:
    """The rows of a batch as they came (LIST)."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.probes = 0

    def add(self, key: Any, rows: int) -> None:
        self.probes += 1
        self.keys += [key] * rows

    def items(self) -> list[tuple[Any, int]]:
        return [(key, 1) for key in self.keys]


class PaperValues:
    """The counts of a window by one of the paper's stores and indices.

    Parameters
    ----------
    kind : one of ``VALUE_KINDS``.
    n_batches : how many batches the window holds.
    edges : of the ranges, for "GROUP G".
    """

    def __init__(self, kind: str, n_batches: int, edges: list[Any]) -> None:
        self._store, index = kind.split()
        self._n_batches = n_batches
        self._edges = [key_of(edge) for edge in edges]
        self._index = self._make(index)
        self._batches: deque[_Counted] = deque()

    def _make(self, part: str) -> _Counted:
        if part in ("GROUP", "G"):
            is_number = part == "G"  # what leaves a batch are numbers of ranges, not values
            n_ranges = len(self._edges) + 1
            return _Ranges(int if is_number else self._range_of, n_ranges)
        makers: dict[str, Callable[[], _Counted]] = {
            "LIST": _AsTheyCame,
            "AGGR": _SortedList,
            "HASH": lambda: _Buckets(BUCKETS_OF_STORE),
            "L": _SortedList,
            "T": lambda: _SortedList(is_halved=True),
            "H": lambda: _Buckets(BUCKETS_OF_INDEX),
        }
        return makers[part]()

    def _range_of(self, key: Key) -> int:
        return bisect.bisect_right(self._edges, key)

    def push(self, keys: list[Key]) -> int:
        """Add a batch; return how many values were looked at."""
        before = self._index.probes
        batch = self._make(self._store)
        for key in keys:
            batch.add(key, 1)
        if len(self._batches) == self._n_batches:
            for key, rows in self._batches.popleft().items():
                self._index.add(key, -rows)
        for key, rows in batch.items():
            self._index.add(key, rows)
        self._batches.append(batch)
        return batch.probes + self._index.probes - before

    def items(self) -> list[tuple[Any, int]]:
        """Return the values (for "GROUP G" numbers of ranges) and their rows, ascending."""
        return self._index.items()


class _Row:
    def __init__(self, row_id: int, batch: int) -> None:
        self.row_id, self.batch = row_id, batch
        self.next: _Row | None = None


class LinkedRows:
    """The rows of a window by value, linked.

    Parameters
    ----------
    kind : one of ``ROW_KINDS``.
    n_batches : how many batches the window holds.

    Attributes
    ----------
    links, links_of_queries : the number of links that pushes and queries have followed.
    """

    def __init__(self, kind: str, n_batches: int) -> None:
        self._kind, self._n_batches = kind, n_batches
        self._first: dict[Key, _Row | None] = {}
        self._batches: deque[list[Key]] = deque()
        self._newest_of: deque[dict[Key, _Row]] = deque()
        self._n_pushed = 0
        self.links = self.links_of_queries = 0

    def push(self, keys: list[Key], row_ids: list[int]) -> None:
        """Add a batch; the oldest leaves if the window was full."""
        if len(self._batches) == self._n_batches:
            self._expire(self._batches.popleft(), self._newest_of.popleft())
        newest: dict[Key, _Row] = {}
        oldest: dict[Key, _Row] = {}
        for key, row_id in zip(keys, row_ids, strict=True):
            row = _Row(row_id, self._n_pushed)
            if self._kind in ("bw", "db"):
                row.next = self._first.get(key)
                self._first[key] = row
            elif self._kind == "ring":
                self._append(key, row)
            elif key in newest:
                newest[key].next = row
            else:
                oldest[key] = row
            newest[key] = row
        for key, row in oldest.items():
            self._append(key, row)
        self._batches.append(keys)
        self._newest_of.append(newest)
        self._n_pushed += 1

    def of(self, key: Key) -> list[int]:
        """Return the ids of the rows of a value, the newest first."""
        begin = self._n_pushed - len(self._batches)
        found = []
        row = self._first.get(key)
        while row is not None:
            self.links_of_queries += 1
            if row.batch >= begin:
                found.append(row.row_id)
            row = row.next
        return found if self._kind in ("bw", "db") else found[::-1]

    def _append(self, key: Key, row: _Row) -> None:
        """Walk from the index to the newest row, and link it."""
        last = self._first.get(key)
        if last is None:
            self._first[key] = row
            return
        self.links += 1
        while last.next is not None:
            last = last.next
            self.links += 1
        last.next = row

    def _expire(self, keys: list[Key], newest: dict[Key, _Row]) -> None:
        number = self._n_pushed - len(self._batches) - 1
        if self._kind in ("ring", "aux"):
            for key in keys:  # each row finds its value at the end of its ring
                row = self._first[key]
                self._first[key] = row.next if row else None
                while row is not None:
                    row = row.next
                    self.links += 1
        elif self._kind == "bw":
            for key in newest:
                self._cut(key, number)
        else:
            for (
                row
            ) in newest.values():  # the dirty bit: it stays until somebody looks, or the next one leaves
                row.next = None
                self.links += 1

    def _cut(self, key: Key, number: int) -> None:
        """Cut off the rows of the batch ``number``, which are the last ones."""
        row = self._first[key]
        self.links += 1
        if row is None or row.batch <= number:
            self._first[key] = None
            return
        while row.next is not None and row.next.batch > number:
            row = row.next
            self.links += 1
        row.next = None
