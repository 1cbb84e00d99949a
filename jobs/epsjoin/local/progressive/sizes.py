"""Sizes of a progressive join: rows of a run, pages, runs of a merge, and the bytes that are written."""

from __future__ import annotations

import math
from typing import NamedTuple

from epsjoin.errors import ArgumentError
from epsjoin.local.plan.sizes import row_bytes

BUFFER_BYTES = 256 << 10
"""Bytes that a merge reads of a sorted run at once."""
MIN_BUFFERS = 6
"""Minimum number of buffers in memory: Dittrich's dissertation, section 4.5, M > 6 B."""
FIRST_FRACTIONS = (1 / 64, 1 / 16, 1 / 4)
"""Fractions of its rows at which the first run is joined while it grows."""
RUNS_IN_MEMORY = 2
"""How many runs would fit into memory: the other half is for sorting and sweeping."""
PARTS_IN_RUN = 2
"""How many parts of a merge should have as many rows as a run."""


class Sizes(NamedTuple):
    """How a progressive join divides its memory.

    Parameters
    ----------
    run_rows : rows of a run, those of both tables.
    first_rows : rows after which the first run is joined, ascending.
    fan_in : maximum number of runs in a merge, at least 2.
    page_rows : rows that a merge reads of a run at once.
    part_rows : rows that parts have, if rows are cut into parts, as aimed at.
    """

    run_rows: int
    first_rows: tuple[int, ...]
    fan_in: int
    page_rows: int
    part_rows: int

    @classmethod
    def of(cls, memory: int, first_memory: int | None, columns: int, stored_bytes: int) -> Sizes:
        """Divide this number of bytes of memory.

        Parameters
        ----------
        memory, first_memory : bytes for a run, and for the rows that are joined first; None: a 64th of a run.
        columns : numbers of a row.
        stored_bytes : bytes of a row on disk.

        Raises
        ------
        ArgumentError
            Memory does not hold six buffers, or first_memory is above memory.
        """
        if memory < MIN_BUFFERS * BUFFER_BYTES:
            least = MIN_BUFFERS * BUFFER_BYTES / 2**20
            raise ArgumentError(
                f"memory must be {least:g} MB at least, {MIN_BUFFERS} buffers, not {memory / 2**20:g} MB"
            )
        if first_memory is not None and not 0 < first_memory <= memory:
            raise ArgumentError("first_memory must be above 0 and not above memory")
        per_row = row_bytes(columns)
        run_rows = max(2, memory // (RUNS_IN_MEMORY * per_row))
        first = [max(1, int(run_rows * fraction)) for fraction in FIRST_FRACTIONS]
        if first_memory is not None:
            least_rows = max(1, min(run_rows, first_memory // per_row))
            first = [least_rows, *(rows for rows in first if rows > 2 * least_rows)]
        return cls(
            run_rows,
            tuple(first),
            max(2, memory // (2 * BUFFER_BYTES) // 2),
            max(1, BUFFER_BYTES // stored_bytes),
            max(1, run_rows // PARTS_IN_RUN),
        )

    def goals_for(self, asked: int, n_rows: int, pairs: float) -> tuple[int, ...]:
        """Rows after which the first run is joined so that the first ones have so many pairs.

        Parameters
        ----------
        asked : pairs.
        n_rows : rows of both tables, which are read in the ratio of their sizes.
        pairs : expected of all rows, above 0.

        Notes
        -----
        A fraction s of the rows of each table has s² of the pairs: s = sqrt(asked / pairs). A part of
        section 4.1.3 of Dittrich's dissertation, where sqrt(|R| |S| Z'/Z) rows of each are read.
        """
        rows = max(2, math.ceil(n_rows * math.sqrt(asked / pairs)))
        return tuple(goal for goal in (rows, *self.first_rows) if rows <= goal < self.run_rows)


def parse_bytes(name: str, size: int | str) -> int:
    """Read a size in bytes: a whole number, or text such as "64MB"; 1 KB is 1024 bytes.

    Raises
    ------
    ArgumentError
        It is neither.
    """
    if isinstance(size, str):
        text = size.strip().upper().removesuffix("B").removesuffix("I")
        factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
        number = text if factor == 1 else text[:-1]
        try:
            value = float(number) * factor
        except ValueError:
            value = math.nan
    else:
        value = float(size) if isinstance(size, int) and not isinstance(size, bool) else math.nan
    if not 0 < value < math.inf:
        raise ArgumentError(f"{name} must be a size such as '256MB', or a number of bytes, not {size!r}")
    return int(value)
