"""Digests of messages against the official vectors of SipHash and a twin in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.digests import Pieces, digest_messages
from oracles import examples
from oracles.siphash import siphash_128

KEY = bytes(range(16))
OFFICIAL = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    2: "8177228da4a45dc7fca38bdef60affe4",
    4: "f88164c12d9c8faf7d0f6e7c7bcd5579",
    8: "3b62a9ba6258f5610f83e264f31497b4",
    15: "5493e99933b0a8117e08ec0f97cfc3d9",
    16: "6ee2a4ca67b054bbfd3315bf85230577",
    24: "2db479ae78bd50d8882a8a178a6132ad",
    32: "7c3956ca5eeafc3e363e9d556546eb68",
    40: "df6a301e95c95dad97ae0cc8c6913bd8",
    48: "f7e5aef549f782cf379055a608269b16",
    56: "1938f2cf72d54ee97e94166fa91d2a36",
    63: "5150d1772f50834a503e069a973fbd7c",
}
"""From vectors_sip128 of the authors' code: the length of the message 00 01 02 ..., and its digest."""
WORDS = st.integers(0, 2**64 - 1)


def _digest(rows, key=KEY):
    """Rows of whole numbers, one word each, and of byte strings."""
    fields = []
    for column in zip(*rows, strict=True):
        if isinstance(column[0], int):
            fields.append(np.array(column, np.uint64))
        else:
            lengths = np.array([len(text) for text in column])
            data = np.frombuffer(b"".join(column), np.uint8)
            fields.append(Pieces(data, np.r_[0, np.cumsum(lengths)[:-1]], lengths))
    return [row.astype("<u8").tobytes() for row in digest_messages(len(rows), fields, key)]


@pytest.mark.parametrize(("length", "official"), OFFICIAL.items())
def test_the_twin__has_the_official_vectors(length, official):
    assert siphash_128(bytes(range(length)), KEY).hex() == official


@pytest.mark.parametrize("length", [length for length in OFFICIAL if length % 8 == 0])
def test_digest_messages__has_the_official_vectors_of_whole_words(length):
    message = np.frombuffer(bytes(range(length)), "<u8")
    found = digest_messages(1, [message[i : i + 1] for i in range(message.size)], KEY)
    assert found.astype("<u8").tobytes().hex() == OFFICIAL[length]


@examples(200)
@given(
    st.lists(st.tuples(WORDS, st.binary(max_size=40), WORDS), max_size=20),
    st.binary(min_size=16, max_size=16),
)
def test_digest_messages__are_those_of_the_twin(rows, key):
    def message(row):
        first, text, last = row
        padded = text + bytes(-len(text) % 8)
        return b"".join(
            [first.to_bytes(8, "little"), len(text).to_bytes(8, "little"), padded, last.to_bytes(8, "little")]
        )

    assert _digest(rows, key) == [siphash_128(message(row), key) for row in rows]


def test_digest_messages__of_many_rows_are_those_of_each():
    rows = [(i, b"x" * (i % 300)) for i in range(5000)]  # more than a block; more than 255 bytes, too
    found = _digest(rows)
    assert [found[i] for i in (0, 4095, 4096, 4999)] == [_digest([rows[i]])[0] for i in (0, 4095, 4096, 4999)]
    assert len(set(found)) == len(rows)


def test_digest_messages__tells_strings_apart_that_differ_in_their_borders():
    assert len(set(_digest([(b"ab", b"c"), (b"a", b"bc"), (b"", b"abc"), (b"abc", b"")]))) == 4
    assert len(set(_digest([(b"1", b"11"), (b"11", b"1")]))) == 2
    assert len(set(_digest([(b"a",), (b"a\0",), (b"a" + bytes(7),), (b"",)]))) == 4


def test_digest_messages__refuses_a_key_of_another_length():
    with pytest.raises(ValueError, match="16 bytes, this one has 15"):
        digest_messages(1, [], bytes(15))
