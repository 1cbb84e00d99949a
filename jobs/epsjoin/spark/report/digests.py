"""64-bit hashes of rows, column by column on arrays."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.kernels.arrays import Ints

Words = NDArray[np.uint64]

_NULL = np.uint64(0xD1B54A32D192ED03)
"""What a null is hashed as; no other value of the column is likely to have it."""

_MAX_TEXT = 4096
"""Maximum length of a text that is hashed word by word, in bytes; longer ones are hashed one by one."""


def digest_rows(batch: pa.RecordBatch) -> Ints:
    """Hash the values of each row, in the order of the columns.

    Equal rows have equal hashes whatever batch they are in. A null differs from every value; -0.0 equals 0.0,
    and NaN equals NaN.
    """
    digests = np.zeros(batch.num_rows, np.uint64)
    for column in batch.columns:
        is_text = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
        words = _hash_texts(column) if is_text else _mix(_to_words(column))
        if column.null_count:
            words[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
        digests = _mix(digests ^ words)
    return digests.view(np.int64)


def _mix(words: Words) -> Words:
    """Mix 64 bits (splitmix64; Steele, Lea, Flood, OOPSLA 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))


def _to_words(column: pa.Array) -> Words:
    """Numbers, dates, times and truth values as 64 bits each; nulls as 0."""
    if pa.types.is_floating(column.type):
        values = column.fill_null(0).to_numpy(zero_copy_only=False) + 0.0  # of -0.0 makes 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    whole = pc.fill_null(column.cast(pa.int64()), 0)
    return np.asarray(whole.to_numpy(zero_copy_only=False)).view(np.uint64)


def _hash_texts(column: pa.Array) -> Words:
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    offsets = offsets.astype(np.int64)
    data = column.buffers()[2]
    found = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[: offsets[-1]]
    padded = np.concatenate([found, np.zeros(8, np.uint8)])
    # the eight bytes from every place on, wherever a text begins
    words = np.ndarray((len(padded) - 7,), "<u8", padded.tobytes(), strides=(1,))
    lengths = np.diff(offsets)
    digests = _mix(lengths.view(np.uint64))
    for row in np.flatnonzero(lengths > _MAX_TEXT):
        text = padded[offsets[row] : offsets[row + 1]].tobytes()
        digests[row] = np.frombuffer(hashlib.blake2b(text, digest_size=8).digest(), "<u8")[0]
    rows, at = np.flatnonzero((lengths > 0) & (lengths <= _MAX_TEXT)), 0
    while rows.size:
        left = lengths[rows] - at
        beyond = (8 * np.maximum(0, 8 - left)).astype(np.uint64)
        word = words[offsets[rows] + at] << beyond  # without the bytes of the next text
        digests[rows] = _mix(digests[rows] ^ word)
        rows, at = rows[left > 8], at + 8
    return digests
