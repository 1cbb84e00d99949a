"""Spark's function ``xxhash64`` of a seed and an id, on arrays: who draws by it needs no query for that."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Ints, Words

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


def hash_ids(seed: int, ids: Ints) -> Ints:
    """Hash ids as ``F.xxhash64(F.lit(seed), F.col("id"))`` does.

    Parameters
    ----------
    seed : a literal; to Spark, and so to its hash, it is an int where it fits one, and otherwise a long.
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
