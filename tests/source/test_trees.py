"""Documents in records: what becomes a text of JSON, and why others are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import Trees
from epsjoin.contracts.odcs import Column
from epsjoin.source.trees import count_nodes, read_document
from epsjoin.source.values import kind_of
from oracles import examples

OBJECT, TEXT = (Column("doc", kind, max_nodes=9) for kind in ("object", "string"))
DEEP = "[" * 100_000 + "]" * 100_000
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=9
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1', "doc: not JSON: \"Expecting ',' delimiter at column 8\""),
        ('{"a', "doc: not JSON: 'Unterminated string starting at column 2'"),
        ('{"a": {"b": 1, "b": 2}}', 'doc: an object has a key twice: \'{"a": {"b": 1, "b": 2}}\''),
        ("[NaN]", "doc: NaN or Infinity: '[NaN]'"),
        ("[-Infinity]", "doc: NaN or Infinity: '[-Infinity]'"),
        ("[1e999]", "doc: NaN or Infinity: '[1e999]'"),
        ('["\\ud800"]', "doc: half a surrogate pair"),
        ('{"\\udfff": 1}', "doc: half a surrogate pair"),
        (DEEP, "doc: nested too deep"),
        ("[1, 2, 3, 4, 5, 6, 7, 8, 9]", "doc: more than 9 nodes: '10 nodes'"),
    ],
)
def test_read_document__says_why_a_text_is_refused(text: str, reason: str) -> None:
    assert read_document(TEXT, text) == (None, reason)
    assert "'" not in kind_of(reason), "kinds are few"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("text", "doc: not an object or array: 'text'"),
        (3, "doc: not an object or array: '3'"),
        ([float("nan")], "doc: NaN or Infinity: '[nan]'"),
        (["\ud800"], "doc: half a surrogate pair"),
        ({str(number): number for number in range(5)}, "doc: more than 9 nodes: '11 nodes'"),
    ],
)
def test_read_document__says_why_a_value_is_refused(value: Any, reason: str) -> None:
    assert read_document(OBJECT, value) == (None, reason)


def test_read_document__of_too_many_digits_says_so_in_the_same_words_for_any_number() -> None:
    for n in (4301, 6000):
        text, reason = read_document(TEXT, f"[{'9' * n}]")
        assert text is None
        assert reason is not None
        assert kind_of(reason) == "doc: a number has too many digits"


def test_read_document__refuses_a_number_in_a_column_of_texts() -> None:
    assert read_document(TEXT, 3) == (None, "doc: not of type string: '3'")


@examples(30)
@given(DOCUMENTS)
def test_read_document__is_what_the_library_reads_with_as_many_nodes(value: Any) -> None:
    """A text stays as it is, a value becomes one: of the same tree, whose nodes were counted right."""
    column = Column("doc", "string", max_nodes=10**6)
    text = json.dumps(value, indent=1)
    assert read_document(column, text) == (text, None)
    trees = Trees.from_json([text])
    assert count_nodes(value) == (trees.n_nodes[0], (trees.size == 1).sum())
    if isinstance(value, (dict, list)):
        written, reason = read_document(Column("doc", "object", max_nodes=10**6), value)
        assert reason is None
        assert (Trees.from_json([str(written)]).label == trees.label).all()
