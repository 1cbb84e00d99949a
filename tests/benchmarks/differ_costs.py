"""The paper's formulas of blocks read and written by a differential, F_out not counted."""

from __future__ import annotations

from typing import NamedTuple

from epsjoin.local.differ.methods import KEPT

PAPER = (*KEPT, "window")
"""The seven methods of the paper."""


class Shape(NamedTuple):
    """Two files of one length.

    Parameters
    ----------
    rows, row_bytes : of each file.
    block_bytes : length of a block.
    compressed, pointed : bytes of a row as ``<K, b>``, and as ``<K, b, p>``.
    changes : number of inserts and updates.
    memory_bytes : memory.
    """

    rows: float
    row_bytes: int
    block_bytes: int
    compressed: float
    pointed: float
    changes: float
    memory_bytes: int

    @classmethod
    def of_paper(cls, megabytes: int, share: float = 0.01) -> Shape:
        """Its figure 8: rows of 150 bytes, compressed to a fifteenth, or with a pointer to a tenth."""
        rows = megabytes * 2**20 / 150
        return cls(rows, 150, 16 << 10, 10, 15, share * rows, 32 << 20)

    @property
    def blocks(self) -> float:
        """The length of a file."""
        return self.rows * self.row_bytes / self.block_bytes


def formula(method: str, shape: Shape) -> float:
    """Blocks that a method reads and writes, if the old file is prepared."""
    full = shape.blocks
    small, pointed = (shape.rows * size / shape.block_bytes for size in (shape.compressed, shape.pointed))
    fits = {
        "PHC1": small * shape.block_bytes <= shape.memory_bytes,
        "PHC2": pointed * shape.block_bytes <= shape.memory_bytes,
    }
    return {
        "sort-merge": 5 * full,
        "hash": 4 * full,
        "SMC1": 2 * small + 3 * full,
        "SMC2": full + 4 * pointed + shape.changes,
        "PHC1": full + 2 * small if fits["PHC1"] else 2 * small + 3 * full,
        "PHC2": full + 2 * pointed if fits["PHC2"] else full + 3 * pointed + shape.changes,
        "window": 2 * full,
    }[method]


def crossing(first: str, second: str) -> float:
    """The share of changed rows from which on the first of two methods costs less than the second."""
    shapes = [Shape.of_paper(1024, share) for share in (0.0, 1.0)]
    at_0, at_1 = (formula(first, shape) - formula(second, shape) for shape in shapes)
    return at_0 / (at_0 - at_1)
