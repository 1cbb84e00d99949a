"""Which rows have a partner so far: a bit for each row of a table."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Bools, Bytes, Ints


class Partners:
    """Bits of row numbers; there is room for the largest number that was marked."""

    def __init__(self, packed: Bytes | None = None) -> None:
        self._bits = np.zeros(64, np.uint8) if packed is None else packed.copy()

    def mark(self, numbers: Ints) -> Ints:
        """Mark rows, and return those of them that had no mark, each once, ascending."""
        if not len(numbers):
            return numbers
        numbers = np.unique(numbers)
        self._grow(int(numbers[-1]))
        fresh = numbers[~self.have(numbers)]
        np.bitwise_or.at(self._bits, fresh >> 3, np.left_shift(1, fresh & 7).astype(np.uint8))
        return fresh

    def have(self, numbers: Ints) -> Bools:
        """Whether each row is marked."""
        if not len(numbers):
            return np.empty(0, np.bool_)
        self._grow(int(numbers.max()))
        return np.asarray(self._bits[numbers >> 3] >> (numbers & 7) & 1, np.bool_)

    @property
    def packed(self) -> Bytes:
        """The bits, eight a byte."""
        return self._bits

    def _grow(self, largest: int) -> None:
        if (largest >> 3) >= len(self._bits):
            room = max(2 * len(self._bits), (largest >> 3) + 1)
            self._bits = np.concatenate((self._bits, np.zeros(room - len(self._bits), np.uint8)))
