"""Keyed digests of rows, 128 bits each: SipHash-2-4 of every row's message, column by column.

A row's message is a sequence of 64-bit words; :mod:`epsjoin.digests` says which words typed columns give. All
rows are hashed side by side: their states are kept between columns.

What a digest promises: equal messages under one key have equal digests, in every process, compiled or not.
Two different messages that were chosen without knowledge of the key have equal digests with a probability of
about 2^-128. What it does not promise: SipHash was made for secret keys, so somebody who knows the key may
perhaps find two messages with one digest; and a digest does not hide what it was made from.

References
----------
Aumasson and Bernstein: SipHash, a fast short-input PRF, INDOCRYPT 2012; the form with 128 bits is that of the
authors' reference implementation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit, read_only
from epsjoin.kernels.arrays import Bytes, Ints, Words

KEY_BYTES = 16
"""Length of a key."""

_BLOCK = 1 << 12
"""Number of rows that are hashed at a time: their states stay in the cache."""

_8, _13, _16, _17, _21, _32 = (np.uint64(n) for n in (8, 13, 16, 17, 21, 32))
_FF, _EE, _DD = (np.uint64(n) for n in (0xFF, 0xEE, 0xDD))


class Pieces(NamedTuple):
    """Byte strings, one per row: each gives its length as a word, then its bytes, padded by zeros to words.

    Parameters
    ----------
    data : (m,) bytes.
    starts, lengths : (n,) where each row's bytes begin in ``data``, and how many they are.
    """

    data: Bytes
    starts: Ints
    lengths: Ints


@njit
def _round(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> tuple[np.uint64, ...]:
    v0, v2 = v0 + v1, v2 + v3
    v1, v3 = (v1 << _13) | (v1 >> np.uint64(51)), (v3 << _16) | (v3 >> np.uint64(48))
    v1, v3 = v1 ^ v0, v3 ^ v2
    v0 = (v0 << _32) | (v0 >> _32)
    v2, v0 = v2 + v1, v0 + v3
    v1, v3 = (v1 << _17) | (v1 >> np.uint64(47)), (v3 << _21) | (v3 >> np.uint64(43))
    v1, v3 = v1 ^ v2, v3 ^ v0
    v2 = (v2 << _32) | (v2 >> _32)
    return v0, v1, v2, v3


@njit
def _absorb(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, word: np.uint64
) -> tuple[np.uint64, ...]:
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@njit
def _add_words(states: Words, sizes: Ints, words: Words) -> None:
    """Append one word to every row's message."""
    for i in range(words.size):
        v0, v1, v2, v3 = states[i, 0], states[i, 1], states[i, 2], states[i, 3]
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, words[i])
        states[i, 0], states[i, 1], states[i, 2], states[i, 3] = v0, v1, v2, v3
        sizes[i] += 8


@njit
def _add_pieces(states: Words, sizes: Ints, data: Bytes, starts: Ints, lengths: Ints) -> None:
    """Append a byte string to every row's message."""
    for i in range(starts.size):
        v0, v1, v2, v3 = states[i, 0], states[i, 1], states[i, 2], states[i, 3]
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, np.uint64(lengths[i]))
        sizes[i] += 8
        end = starts[i] + lengths[i]
        for at in range(starts[i], end, 8):
            word = np.uint64(0)
            for k in range(min(at + 8, end) - 1, at - 1, -1):  # little-endian
                word = (word << _8) | np.uint64(data[k])
            v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, word)
            sizes[i] += 8
        states[i, 0], states[i, 1], states[i, 2], states[i, 3] = v0, v1, v2, v3


@njit
def _finish(states: Words, sizes: Ints, digests: Words) -> None:
    """Append the last word, which holds the message's length in bytes, and squeeze 2 x 64 bits."""
    for i in range(sizes.size):
        v0, v1, v2, v3 = states[i, 0], states[i, 1], states[i, 2], states[i, 3]
        last = (np.uint64(sizes[i]) & _FF) << np.uint64(56)
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, last)
        v2 ^= _EE
        for _ in range(4):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        digests[i, 0] = v0 ^ v1 ^ v2 ^ v3
        v1 ^= _DD
        for _ in range(4):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        digests[i, 1] = v0 ^ v1 ^ v2 ^ v3


def digest_messages(n: int, fields: list[Words | Pieces], key: bytes) -> Words:
    """Digest one message per row.

    Parameters
    ----------
    n : number of rows.
    fields : what each message consists of, in order: (n,) uint64, one word per row, or :class:`Pieces`.
    key : 16 bytes.

    Returns
    -------
    (n, 2) uint64: the 16 bytes of each digest as two little-endian words.

    Raises
    ------
    ValueError
        The key has another length.

    Notes
    -----
    O(bytes of all messages) time, 40 bytes per row of a block beside the result.
    """
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key of digests has {KEY_BYTES} bytes, this one has {len(key)}")
    first, second = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    begin = np.array(
        [
            first ^ 0x736F6D6570736575,
            second ^ 0x646F72616E646F6D ^ 0xEE,  # 0xEE: 128 bits are asked for
            first ^ 0x6C7967656E657261,
            second ^ 0x7465646279746573,
        ],
        np.uint64,
    )
    digests = np.empty((n, 2), np.uint64)
    for row in range(0, n, _BLOCK):
        rows = slice(row, min(row + _BLOCK, n))
        states = np.tile(begin, (rows.stop - row, 1))
        sizes = np.zeros(len(states), np.int64)
        with np.errstate(over="ignore"):  # uncompiled, NumPy warns of sums modulo 2^64, which are meant
            for field in fields:
                if isinstance(field, Pieces):
                    starts, lengths = read_only(field.starts)[rows], read_only(field.lengths)[rows]
                    _add_pieces(states, sizes, read_only(field.data), starts, lengths)
                else:
                    _add_words(states, sizes, read_only(field)[rows])
            _finish(states, sizes, digests[rows])
    return digests
