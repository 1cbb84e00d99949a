"""Fields of rows, compared against tuples of Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.digests import Pieces
from epsjoin.kernels.fields import cut_fields, order_rows
from oracles import examples

ROW = st.tuples(
    st.sampled_from([0, 1, 2**63, 2**64 - 1]), st.binary(max_size=3), st.sampled_from([b"", b"a"])
)


def _fields(rows):
    fields = [np.array([row[0] for row in rows], np.uint64)]
    for texts in ([row[1] for row in rows], [row[2] for row in rows]):
        lengths = np.array([len(text) for text in texts], np.int64)
        starts = 1 + np.r_[0, np.cumsum(lengths)][:-1]
        fields.append(Pieces(np.frombuffer(b"x" + b"".join(texts), np.uint8), starts, lengths))
    return fields


@examples(150)
@given(st.lists(st.tuples(ROW, ROW), min_size=1, max_size=20), st.data())
def test_order_rows__is_that_of_tuples_with_the_shorter_text_first(pairs, data):
    def rank(row):
        return row[0], len(row[1]), row[1], len(row[2]), row[2]

    begin = data.draw(st.integers(0, len(pairs) - 1))
    rows = slice(begin, len(pairs))
    one, other = (cut_fields(_fields(side), rows) for side in zip(*pairs, strict=True))
    expected = [(rank(a) > rank(b)) - (rank(a) < rank(b)) for a, b in pairs[rows]]
    assert order_rows(len(expected), one, other).tolist() == expected
