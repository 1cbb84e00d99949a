"""The sweep area: the rows that later rows of a merge may still have to be compared with.

Figure 4.3 of Dittrich's dissertation, in blocks of rows. Whatever is joined, and whether the order is that of
keys, of codes or of time, a merge needs four things of an area; sections 4.4.2 and 5.3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

RowsT = TypeVar("RowsT")
FoundT_co = TypeVar("FoundT_co", covariant=True)


class SweepArea(Protocol[RowsT, FoundT_co]):
    """Rows of a merge, of a type of the area's own, and what it finds for others.

    For each block of rows, in the order of their keys, a merge calls :meth:`expire` with the block's first
    key, then :meth:`query`, then :meth:`insert`. One area serves both tables, so nothing that has expired is
    met (figures 4.4 and 4.5 to the letter insert a row into an area that still has what has expired).
    """

    @property
    def size(self) -> int:
        """Rows that it holds."""

    def expire(self, key: Any) -> RowsT | None:
        """Drop and return the rows that no row of this key or a later one can meet; for None all rows."""

    def query(self, rows: RowsT) -> Iterator[FoundT_co]:
        """Find the pairs of these rows with those it holds, and with one another where they have not met."""

    def insert(self, rows: RowsT) -> None:
        """Hold these rows; their keys are not below any that it holds."""
