"""Spark's function ``xxhash64`` of a seed and an id, on arrays, and samples by it, which need no query."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Ints, Words
from epsjoin.kernels.sorting import lexsort

_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_SPARKS_SEED = 42
"""The seed with which Spark's ``xxhash64`` begins."""

_HASHED_AT_ONCE = 1 << 17
"""Number of ids that are hashed at a time: hashes of all ids would be several arrays as large."""


def hash_ids(seed: int, ids: Ints) -> Ints:
    """Hash ids as ``F.xxhash64(F.lit(seed), F.col("id"))`` does.

    Parameters
    ----------
    seed : a literal; Spark, and so its hash, treats it as an int if it fits one, and otherwise as a long.
    ids : (n,) int64; not modified.

    References
    ----------
    Collet: xxHash, fast digest algorithm (specification of XXH64).
    """
    is_int = -(2**31) <= seed < 2**31
    begun = np.full(1, _SPARKS_SEED, np.uint64)
    literal = np.array([seed], np.int64).view(np.uint64)
    if is_int:
        begun = _finish(_take_in_int(literal & np.uint64(0xFFFFFFFF), begun))
    else:
        begun = _finish(_take_in_long(literal, begun))
    return _finish(_take_in_long(ids.astype(np.int64).view(np.uint64), begun)).view(np.int64)


def bound_hashes(rows: int, n: int) -> int | None:
    """A hash below which slightly more points than a sample lie; ``None``: the sample takes all points.

    It is practically impossible that too few hashes lie below it.
    """
    fraction = (2 * rows + 1000) / max(1, n)
    return int(-(2**63) + fraction * 2**64) if fraction < 1 else None


def sample_of(ids: Ints, rows: int, seed: int) -> Ints:
    """Find where among all ids those of the sample of :meth:`Points.sample` are, in the order of the hash."""
    bound = bound_hashes(rows, len(ids))
    if bound is None:
        return first_hashed(ids, rows, seed)
    begins = range(0, len(ids), _HASHED_AT_ONCE)
    of_block = (hash_ids(seed, ids[begin : begin + _HASHED_AT_ONCE]) < bound for begin in begins)
    some = np.flatnonzero(np.concatenate(list(of_block)))
    return some[first_hashed(ids[some], rows, seed)]


def first_hashed(ids: Ints, rows: int, seed: int) -> Ints:
    """Find the rows of the ids with the smallest hashes, in the order of the hash."""
    return lexsort((ids, hash_ids(seed, ids)))[:rows]


def _take_in_long(value: Words, begun: Words) -> Words:
    hashed = begun + _PRIME_5 + np.uint64(8)
    hashed = hashed ^ _rotate(value * _PRIME_2, 31) * _PRIME_1
    return _rotate(hashed, 27) * _PRIME_1 + _PRIME_4


def _take_in_int(value: Words, begun: Words) -> Words:
    hashed = begun + _PRIME_5 + np.uint64(4)
    hashed = hashed ^ value * _PRIME_1
    return _rotate(hashed, 23) * _PRIME_2 + _PRIME_3


def _finish(hashed: Words) -> Words:
    hashed = (hashed ^ hashed >> np.uint64(33)) * _PRIME_2
    hashed = (hashed ^ hashed >> np.uint64(29)) * _PRIME_3
    return hashed ^ hashed >> np.uint64(32)


def _rotate(value: Words, by: int) -> Words:
    return value << np.uint64(by) | value >> np.uint64(64 - by)
