"""The structures of Golab, Garg and Özsu (EDBT 2004), each as the paper has it, counting what it looks at.

They answer what :class:`epsjoin.ValueWindow` and :class:`epsjoin.RowWindow` answer, and are there for the
paper's tables 6.2 and 6.3 and as a second opinion; nobody should use them for anything else.

Stores of basic windows: LIST (rows as they came), AGGR (sorted distinct values with counts), HASH (buckets of
such lists), GROUP (rows per range). Indices over the window: L (a sorted list that is scanned), T (a sorted
list that is halved, which takes as many probes as a balanced tree), H (buckets that are scanned), G (rows per
range).

Indices of rows: *ring* and AUX link the rows of a value forward in time, from the index to the oldest, to the
newest and back to the index; AUX gathers a batch in an index of its own first. BW links backward, so the tail
of what leaves is cut at once; DB leaves the newest row that has left in place, and marks the value.
"""

from __future__ import annotations

import bisect
from collections import deque
from typing import Any

BUCKETS_OF_STORE = 5
BUCKETS_OF_INDEX = 100


class SortedList:
    """Values with counts in order, found by a scan (L, AGGR) or by halving (T)."""

    def __init__(self, is_halved: bool = False) -> None:
        self.values: list[Any] = []
        self.rows: list[int] = []
        self.is_halved = is_halved
        self.probes = 0

    def add(self, value: Any, rows: int) -> None:
        place = bisect.bisect_left(self.values, value)
        self.probes += max(1, len(self.values).bit_length()) if self.is_halved else place + 1
        if place == len(self.values) or self.values[place] != value:
            self.values.insert(place, value)
            self.rows.insert(place, 0)
        self.rows[place] += rows
        if not self.rows[place]:
            del self.values[place], self.rows[place]

    def items(self) -> list[tuple[Any, int]]:
        return list(zip(self.values, self.rows, strict=True))


class Buckets:
    """Values with counts in buckets of sorted lists (H, HASH)."""

    def __init__(self, n_buckets: int) -> None:
        self.lists = [SortedList() for _ in range(n_buckets)]

    def add(self, value: Any, rows: int) -> None:
        self.lists[hash(value) % len(self.lists)].add(value, rows)

    def items(self) -> list[tuple[Any, int]]:
        return sorted(item for bucket in self.lists for item in bucket.items())

    @property
    def probes(self) -> int:
        return sum(bucket.probes for bucket in self.lists)


class Ranges:
    """Rows per range (G, GROUP)."""

    def __init__(self, edges: list[Any]) -> None:
        self.edges = edges
        self.rows = [0] * (len(edges) + 1)
        self.probes = 0

    def add(self, value: Any, rows: int) -> None:
        self.probes += 1
        self.rows[bisect.bisect_right(self.edges, value)] += rows

    def items(self) -> list[tuple[Any, int]]:
        return [(number, rows) for number, rows in enumerate(self.rows) if rows]


class Rows:
    """The rows of a basic window as they came (LIST)."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.probes = 0

    def add(self, value: Any, rows: int) -> None:
        self.probes += 1
        self.rows += [value] * rows

    def items(self) -> list[tuple[Any, int]]:
        return [(value, 1) for value in self.rows]


STORES = ("LIST", "AGGR", "HASH")
INDICES = ("L", "T", "H")


class Values:
    """A window of one store and one index; GROUP goes with G, for which edges are given."""

    def __init__(self, store: str, index: str, n_batches: int, edges: list[Any] | None = None) -> None:
        self.edges = edges or []
        self.store, self.n_batches = store, n_batches
        self.index = self._make(index)
        self.batches: deque[Any] = deque()
        self.store_probes = 0

    def _make(self, kind: str) -> Any:
        makers = {
            "LIST": Rows,
            "AGGR": SortedList,
            "HASH": lambda: Buckets(BUCKETS_OF_STORE),
            "L": SortedList,
            "T": lambda: SortedList(is_halved=True),
            "H": lambda: Buckets(BUCKETS_OF_INDEX),
            "GROUP": lambda: Ranges(self.edges),
            "G": lambda: Ranges(self.edges),
        }
        return makers[kind]()

    def push(self, values: list[Any]) -> None:
        batch = self._make(self.store)
        for value in values:
            batch.add(value, 1)
        self.store_probes += batch.probes
        expired = self.batches.popleft() if len(self.batches) == self.n_batches else None
        for value, rows in expired.items() if expired else []:
            self._change(value, -rows)
        for value, rows in batch.items():
            self._change(value, rows)
        self.batches.append(batch)

    def _change(self, value: Any, rows: int) -> None:
        if self.store == "GROUP":  # its items are ranges, not values
            self.index.probes += 1
            self.index.rows[value] += rows
        else:
            self.index.add(value, rows)

    def counts(self) -> list[tuple[Any, int]]:
        items: list[tuple[Any, int]] = self.index.items()
        return items

    def probes(self) -> int:
        return self.store_probes + int(self.index.probes)


class Row:
    def __init__(self, row_id: int, batch: int) -> None:
        self.row_id, self.batch = row_id, batch
        self.next: Row | None = None


class Linked:
    """Rows of a window by value: ``kind`` is ring, aux, bw or db. ``links`` counts the links that are
    followed."""

    def __init__(self, kind: str, n_batches: int) -> None:
        self.kind, self.n_batches = kind, n_batches
        self.first: dict[Any, Row | None] = {}
        self.batches: deque[list[Any]] = deque()
        self.newest_of: deque[dict[Any, Row]] = deque()
        self.n_pushed = 0
        self.links = self.links_of_queries = 0

    def push(self, values: list[Any], row_ids: list[int]) -> None:
        if len(self.batches) == self.n_batches:
            self._expire(self.batches.popleft(), self.newest_of.popleft())
        newest: dict[Any, Row] = {}
        oldest: dict[Any, Row] = {}
        for value, row_id in zip(values, row_ids, strict=True):
            row = Row(row_id, self.n_pushed)
            if self.kind in ("bw", "db"):
                row.next = self.first.get(value)
                self.first[value] = row
            elif self.kind == "aux" and value in newest:
                newest[value].next = row
            elif self.kind == "aux":
                oldest[value] = row
            else:
                self._append(value, row)
            newest[value] = row
        for value, row in oldest.items():
            self._append(value, row)
        self.batches.append(values)
        self.newest_of.append(newest)
        self.n_pushed += 1

    def _append(self, value: Any, row: Row) -> None:
        """Walk from the index to the newest row, and link it."""
        last = self.first.get(value)
        if last is None:
            self.first[value] = row
            return
        self.links += 1
        while last.next is not None:
            last = last.next
            self.links += 1
        last.next = row

    def _expire(self, values: list[Any], newest: dict[Any, Row]) -> None:
        number = self.n_pushed - len(self.batches) - 1
        if self.kind in ("ring", "aux"):
            for value in values:  # each row finds its value at the end of its ring
                row = self.first[value]
                assert row is not None
                self.first[value] = row.next
                while row is not None:
                    row = row.next
                    self.links += 1
        elif self.kind == "bw":
            for value in newest:
                self._cut(value, number)
        else:
            for (
                row
            ) in newest.values():  # the dirty bit: it stays until somebody looks, or the next one leaves
                row.next = None
                self.links += 1

    def _cut(self, value: Any, number: int) -> None:
        row = self.first[value]
        self.links += 1
        assert row is not None
        if row.batch <= number:
            self.first[value] = None
            return
        while row.next is not None and row.next.batch > number:
            row = row.next
            self.links += 1
        row.next = None

    def of(self, value: Any) -> list[int]:
        begin = self.n_pushed - len(self.batches)
        found = []
        row = self.first.get(value)
        while row is not None:
            self.links_of_queries += 1
            if row.batch >= begin:
                found.append(row.row_id)
            row = row.next
        return found if self.kind in ("bw", "db") else found[::-1]
