"""A tree of versions, and the versions at which a record holds.

References
----------
Salzberg, Jiang, Lomet, Barrena, Shan, Kanoulas: A framework for access methods for versioned data, EDBT 2004,
pp. 730-747. A record's version range is the subtree of the version that wrote it, less the subtrees of its
end set.
"""

from __future__ import annotations

from collections.abc import Iterable

from epsjoin.errors import ArgumentError


class VersionTree:
    """Versions, each made from an earlier one and numbered as they come; version 0 is the root."""

    def __init__(self) -> None:
        self._parents = [-1]

    def __len__(self) -> int:
        """Number of versions."""
        return len(self._parents)

    def branch(self, parent: int) -> int:
        """Add a version that is made from ``parent``, and return its number.

        Raises
        ------
        ArgumentError
            There is no such version.
        """
        if not 0 <= parent < len(self):
            raise ArgumentError(f"parent must be one of the versions 0 to {len(self) - 1}, not {parent}")
        self._parents.append(parent)
        return len(self) - 1

    def is_above(self, upper: int, lower: int) -> bool:
        """Whether ``lower`` lies in the subtree of ``upper``, which contains ``upper`` itself.

        Notes
        -----
        O(depth): a version has a larger number than the one that it is made from.
        """
        while lower > upper:
            lower = self._parents[lower]
        return lower == upper


def end_set(tree: VersionTree, start: int, changes: Iterable[int]) -> tuple[int, ...]:
    """Find where the range of a record ends: the first change of its key on each branch below its start.

    Parameters
    ----------
    tree : the versions.
    start : the version that wrote the record.
    changes : the versions that wrote or deleted a record of this key; ``start`` may be among them.

    Returns
    -------
    tuple[int, ...]
        The end set, ascending. It is minimal: none of its versions lies below another.
    """
    ends: list[int] = []
    for change in sorted(set(changes) - {start}):  # what lies above has a smaller number, and comes first
        if tree.is_above(start, change) and not any(tree.is_above(end, change) for end in ends):
            ends.append(change)
    return tuple(ends)


def is_alive(tree: VersionTree, start: int, ends: Iterable[int], version: int) -> bool:
    """Whether a record that was written at ``start``, with this end set, holds at ``version``."""
    return tree.is_above(start, version) and not any(tree.is_above(end, version) for end in ends)


def find_start(tree: VersionTree, starts: Iterable[int], version: int) -> int | None:
    """Find the nearest of the starts at or above ``version``; ``None`` if none lies there.

    Within a page, the starts of a key are enough to say which of its records holds: end sets need not be
    stored.
    """
    return max((start for start in starts if tree.is_above(start, version)), default=None)
