"""Pages of versioned records: version split, version-and-key split, consolidation, and the stabbing query.

A page is responsible for a range of keys at the versions of a range (:mod:`epsjoin.local.versions.tree`); for
each key and version, exactly one page is responsible. A page that is full is *split by version*: the records
that hold at the current version are copied to a new page, whose range begins there. If they are too many for
one page, they are cut *by keys* as well; if they are too few, those of a neighbour in the order of keys are
added (*consolidation*). So a query for all records that hold at a version reads pages in which many records
hold.

References
----------
Salzberg et al., EDBT 2004, as in :mod:`epsjoin.local.versions.tree`. The source at hand ends before the
operations; they are those of the multiversion B-tree (Becker, Gschwind, Ohler, Seeger, Widmayer: An
asymptotically optimal multiversion B-tree, VLDB Journal 5, 1996), on a tree of versions instead of a line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from epsjoin.errors import ArgumentError
from epsjoin.local.versions.tree import VersionTree, find_start, is_alive

MIN_CAPACITY = 6
"""Minimum number of records of a full page: with fewer, a third and two thirds are nearly the same."""

DELETED = None
"""What a page holds of a record that was deleted at a version."""


@dataclass
class Page:
    """A page of records.

    Parameters
    ----------
    low, high : the keys for which it is responsible, ``low <= key < high``.
    start, ends : the versions at which it is: the subtree of ``start`` less those of ``ends``.
    entries : data by (key, version that wrote it), or ``DELETED``. The versions alone say which of the
        entries of a key holds.
    """

    low: float
    high: float
    start: int
    ends: set[int] = field(default_factory=set)
    entries: dict[tuple[int, int], object] = field(default_factory=dict)

    @property
    def is_alone(self) -> bool:
        """Whether it is responsible for all keys."""
        return math.isinf(self.low) and math.isinf(self.high)


class Split(NamedTuple):
    """What replaced pages by others.

    Parameters
    ----------
    version : the version at which it was.
    kind : ``version``, ``version and key``, ``key`` (of a page that began at this version, where everything
        holds) or ``consolidation``.
    old, new : the pages.
    """

    version: int
    kind: Literal["version", "version and key", "key", "consolidation"]
    old: tuple[Page, ...]
    new: tuple[Page, ...]


class VersionedPages:
    """Records by whole numbers, in pages, over a tree of versions: to count pages, not to store data.

    A version may make any number of changes. Only the newest one can be changed.

    Parameters
    ----------
    capacity : maximum number of entries of a page, at least ``MIN_CAPACITY``.

    Notes
    -----
    At every version, in each page that is responsible there, the records that hold are at least a third of
    its capacity, except in a page that is responsible for all keys. No page is split twice at a version: a
    page that began there has only records that hold, and is cut by keys alone.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < MIN_CAPACITY:
            raise ArgumentError(f"capacity must be at least {MIN_CAPACITY}, not {capacity}")
        self.capacity = capacity
        self.min_alive, self.max_alive = math.ceil(capacity / 3), 2 * capacity // 3
        self.tree = VersionTree()
        self.pages = [Page(-math.inf, math.inf, 0)]
        self.splits: list[Split] = []

    @property
    def version(self) -> int:
        """The newest version."""
        return len(self.tree) - 1

    def begin(self, parent: int) -> int:
        """Begin a version that is made from ``parent``, and return its number."""
        return self.tree.branch(parent)

    def find_pages(self, version: int) -> list[Page]:
        """Find the pages that are responsible at a version, by their keys: the stabbing query."""
        found = (page for page in self.pages if is_alive(self.tree, page.start, page.ends, version))
        return sorted(found, key=lambda page: page.low)

    def find_page(self, key: int, version: int) -> Page:
        """Find the one page that is responsible for a key at a version."""
        (page,) = (page for page in self.find_pages(version) if page.low <= key < page.high)
        return page

    def find_starts(self, page: Page, version: int) -> dict[int, int]:
        """Find the records of a page that hold at a version, at which it is responsible: key to start."""
        starts: dict[int, list[int]] = {}
        for key, start in page.entries:
            starts.setdefault(key, []).append(start)
        nearest = ((key, find_start(self.tree, of_key, version)) for key, of_key in sorted(starts.items()))
        return {
            key: start
            for key, start in nearest
            if start is not None and page.entries[key, start] is not DELETED
        }

    def at(self, version: int) -> dict[int, object]:
        """Return all records that hold at a version."""
        return {
            key: page.entries[key, start]
            for page in self.find_pages(version)
            for key, start in self.find_starts(page, version).items()
        }

    def put(self, key: int, data: object) -> None:
        """Write a record at the newest version; it replaces the one with this key."""
        page = self.find_page(key, self.version)
        self._remove(page, key)
        page.entries[key, self.version] = data
        self._mend(page)

    def delete(self, key: int) -> None:
        """Delete a record at the newest version.

        Raises
        ------
        ArgumentError
            There is none with this key.
        """
        page = self.find_page(key, self.version)
        if key not in self.find_starts(page, self.version):
            raise ArgumentError(f"there is no record with key {key} at version {self.version}")
        self._remove(page, key)
        if key in self.find_starts(page, self.version):
            page.entries[key, self.version] = DELETED
        self._mend(page)

    def _remove(self, page: Page, key: int) -> None:
        """Take out what no version needs: an entry of this version; in a page of this version, any entry."""
        for entry in [entry for entry in page.entries if entry[0] == key]:
            if self.version in (page.start, entry[1]):
                del page.entries[entry]

    def _mend(self, page: Page) -> None:
        """Split a page that is too full, or that holds too little."""
        has_little = len(self.find_starts(page, self.version)) < self.min_alive
        if len(page.entries) > self.capacity or (has_little and not page.is_alone):
            self._split([page])

    def _split(self, old: list[Page]) -> None:
        """Replace pages, which are neighbours, by new ones with what holds at the newest version."""
        at = self.version
        low, high = min(page.low for page in old), max(page.high for page in old)
        records = {
            (key, start): page.entries[key, start]
            for page in old
            for key, start in self.find_starts(page, at).items()
        }
        if len(records) < self.min_alive and len(old) == 1 and not old[0].is_alone:
            neighbours = [page for page in self.find_pages(at) if page.low == high or page.high == low]
            self._split([*old, neighbours[-1]])
            return
        entries = sorted(records)
        # as few pages as leave room for growth, but none with too little
        n_pages = max(1, min(-(-len(entries) // self.max_alive), len(entries) // self.min_alive))
        edges = [len(entries) * number // n_pages for number in range(n_pages + 1)]
        bounds = [low, *(entries[edge][0] for edge in edges[1:-1]), high]
        new = []
        for i in range(n_pages):
            held = {entry: records[entry] for entry in entries[edges[i] : edges[i + 1]]}
            new.append(Page(bounds[i], bounds[i + 1], at, entries=held))
        self.splits.append(Split(at, _name_split(old, new, at), tuple(old), tuple(new)))
        for page in old:
            if page.start == at:
                self.pages.remove(page)
            else:
                page.ends.add(at)
                page.entries = {entry: data for entry, data in page.entries.items() if entry[1] != at}
        self.pages += new


def _name_split(
    old: Iterable[Page], new: list[Page], version: int
) -> Literal["version", "version and key", "key", "consolidation"]:
    pages = list(old)
    if len(pages) > 1:
        return "consolidation"
    if pages[0].start == version:
        return "key"
    return "version" if len(new) == 1 else "version and key"
