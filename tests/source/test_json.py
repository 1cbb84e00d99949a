"""JSON lines: one object per line, whatever stands in it."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from epsjoin.contracts.odcs import Column
from epsjoin.errors import DataRefusedError
from epsjoin.source.records import open_records
from tests.source.both_ways import compare
from tests.source.tiny_source import SOURCE, read, typed


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("integer", "42", 42),
        ("integer", "true", "v: not of type integer: 'True'"),
        ("integer", "4.5", "v: not of type integer: '4.5'"),
        ("number", "4", 4.0),
        ("number", '"4"', "v: not of type number: '4'"),
        ("number", "Infinity", "v: not finite: 'inf'"),
        ("number", "1" + "0" * 400, f"v: out of range: '1{'0' * 79}'"),
        ("number", "9" * 5000, "not JSON: 'a number has too many digits'"),
        ("number", "[" * 2000, "not JSON: 'nested too deep'"),
        ("number", "04", """not JSON: "Expecting ',' delimiter at column 25\""""),
        ("boolean", "false", False),
        ("string", "7", "v: not of type string: '7'"),
        ("string", "1e-400", "v: not of type string: '1e-400'"),
        ("date", '"2023-06-04"', date(2023, 6, 4)),
        ("date", "1e-400", "v: not of type date: '1e-400'"),
        ("string", "null", None),
        ("string", r'"a\ud800"', r"v: not UTF-8: 'a\ud800'"),
        ("string", r'"\ud83d\ude00"', "\U0001f600"),
    ],
)
def test_records__types_a_json_value_by_the_contract(kind: str, text: str, value: object) -> None:
    assert typed(kind, text, as_json=True) == value


def test_records__a_json_line_of_any_depth_costs_one_record() -> None:
    as_json = replace(SOURCE, format="json")
    for depth in range(900, 1010):
        lines = f'{{"id": 1, "x": {"[" * depth}{"]" * depth}}}\n{{"id": 2, "x": 0}}\n'
        assert [record.values for record in read(lines, as_json)] == [None, (2, 0.0)]


def test_records__names_the_columns_that_a_json_file_has() -> None:
    source = replace(SOURCE, format="json", columns=(*SOURCE.columns, Column("name", "string")))
    with pytest.raises(DataRefusedError, match="column 'x' is missing; the file has id$"):
        read('{"id": 1}\n', source)
    assert read('{"id": 1, "x": 0}\n', source)[0].values == (1, 0.0, None)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_records__json_lines_are_not_read_byte_by_byte(name: str) -> None:
    """A raw stream without a buffer of its own is what ``ingest`` gives."""

    class Raw(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self.inner = io.BytesIO(data)
            self.reads = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            self.reads += 1
            return self.inner.readinto(buffer)

    lines = b"".join(b'{"id": %d, "x": 0}\n' % number for number in range(5000))
    raw = Raw(gzip.compress(lines) if name.endswith("gz") else lines)
    assert len(list(open_records(raw, name, replace(SOURCE, format="json")))) == 5000
    assert raw.reads < 10


def test_records__refuses_a_json_file_that_ends_within_a_record() -> None:
    source = replace(SOURCE, format="json")
    text = '{"id": 1, "x": 0}\n{"id": 2, "x"'
    with pytest.raises(DataRefusedError, match=r"line 2: the file ends within this record \(not JSON: "):
        read(text, source)
    assert [record.reason is None for record in read(text + "\n", source)] == [True, False]


@pytest.mark.parametrize(
    "end",
    [
        *('{"id": 2, ', '{"id": 2, "x": ', '{"id": 2, "y": {"a": 1}', '{"id": 2, "y": "{a}'),
        *('{"id": 2, "y": "é}', "{"),
    ],
)
def test_records__a_json_file_is_cut_off_behind_a_blank_or_an_inner_brace_too(end: str) -> None:
    source = replace(SOURCE, format="json")
    text = '{"id": 1, "x": 0}\n' + end
    assert compare(text.encode(), source, "a.jsonl").sentence == (
        f"a.jsonl: line 2: the file ends within this record ({read(text + chr(10), source)[1].reason}); it "
        "seems to be cut off"
    )


@pytest.mark.parametrize(
    "end", ['{"id": 2, "x": q}', '{"id": 2, "x": 0}}', '{"id": 2, "x": 01} ', '"{"', "{}x}"]
)
def test_records__a_last_json_object_that_ends_is_not_cut_off(end: str) -> None:
    source = replace(SOURCE, format="json")
    found = compare(b'{"id": 1, "x": 0}\n' + end.encode(), source, "a.jsonl")
    assert (found.sentence, [line for line, _, _ in found.refused]) == (None, [2])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_records__says_that_json_lines_have_another_encoding(encoding: str, mark: str) -> None:
    data = (mark + '{"id": 1, "x": 0}\n{"id": 2, "x": 0}\n').encode(encoding)
    found = compare(data, replace(SOURCE, format="json"), "a.jsonl")
    assert found.sentence == "a.jsonl: line 1: it seems to be UTF-16 or UTF-32: store it as UTF-8"
    assert found.refused == []


def test_records__a_message_of_the_json_reader_says_at_once() -> None:
    (record,) = read('{"id": 1, "x": "a}\n', replace(SOURCE, format="json"))
    assert record.reason == "not JSON: 'Unterminated string starting at column 16'"


def test_records__a_json_object_with_a_key_twice_is_bad() -> None:
    source = replace(SOURCE, format="json")
    found = read(
        '{"id": 1, "x": 0, "x": 1}\n{"id": 2, "x": 0}\n{"id": 3, "x": 0, "y": {"a": 1, "a": 2}}\n', source
    )
    assert [record.reason for record in found] == [
        "an object has a key twice: 'x'",
        None,
        "an object has a key twice: 'a'",
    ]


def test_records__the_key_twice_is_found_among_a_million() -> None:
    """To count each of them would take hours."""
    keys = ", ".join(f'"{i}": 0' for i in range(10**6))
    text = f'{{{keys}, "x": 0, "x": 1}}\n{{"id": 2, "x": 0}}\n'
    assert read(text, replace(SOURCE, format="json"))[0].reason == "an object has a key twice: 'x'"


def test_records__a_json_array_is_refused_with_what_to_do() -> None:
    source = replace(SOURCE, format="json")
    with pytest.raises(
        DataRefusedError, match="line 2: an array begins here; each line must be one object, as 'jq"
    ):
        read('\n[{"id": 1, "x": 0},\n{"id": 2, "x": 0}]\n', source)
    assert read('{"id": 1, "x": 0}\n[1]\n', source)[1].reason == "not a JSON object: 'list'"


def test_records__a_number_too_close_to_0_is_a_number_in_a_document() -> None:
    """As it is in one that is a text: the label of its node is 0.0."""
    columns = (*SOURCE.columns, Column("doc", "object", max_nodes=9))
    source = replace(SOURCE, format="json", columns=columns, tree="doc")
    (record,) = read('{"id": 1, "x": 0, "doc": [1e-400, -1e-400]}', source)
    assert record.values == (1, 0.0, "[0.0, -0.0]")
