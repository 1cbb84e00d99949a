"""Batches of JSON lines: column by column a file gives what the definition gives object by object."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.source import blocks, bounds, json_columns
from oracles import examples
from tests.source.both_ways import (
    BY_COLUMNS,
    COLUMNS,
    GOOD_SOURCES,
    PLACES,
    SOURCES,
    TIMES,
    WIDE,
    by_batches,
    by_definition,
    compare,
    count_asked,
)

VALUES = [
    *("0", "1", "-1", "-0", "-0.0", "0.0", "1.0", "1e2", "1E-400", "1e-0400", "1e400", "-1e999", "04", "+1"),
    *(".5", "1.", "0x10", "9007199254740993", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "1e-320", "0e-999", "123456789012345678901e-10", "0." + "0" * 330 + "1"),
    *("1" + "0" * 400, "9" * 4301, "-", "NaN", "-NaN", "Infinity", "-Infinity", "Inf", "-Inf", "nan", "null"),
    *("true", "false", "True", "tru", "", '""', '"a"', '"é"', '"NA"', '" N "', '"nan"', '"-999"', '" "'),
    *('"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00"', '"\\u0000"', '"\\/\\n\\"q\\\\"', '"\\q"'),
    *('"\x01"', '"x\ny"', '"x\ry"', '"\t"', '"a', "'a'", '"Inf"', '": Inf"', '"[[[{{{"', '"\u2028"'),
    *('"\ufeff"', "[]", "{}", "[1, 2]", '{"a": 1}', '{"a": 1, "a": 2}', '[{"a": 1, "a": 2}]'),
    *('{"a": {"b": [Inf]}}', "[" * 120 + "]" * 120, '[1, "a", null]', "1, 2", "1}", '1} {"id": 2'),
    *('1, "id": 7', '1, "more": 7', '1, "more": "x"', '1, "n\\u0061me": "a"', '1, "": 0', '1, "\\ud800": 0'),
    *("1 /* */",),
    *(f'"{text}"' for text in TIMES),
]
"""What may stand as a value in an object, or so it seems."""

GOOD_VALUES = [
    ["1", "2", "-7"],
    ["0.5", "-1.25", "3e2", "7"],
    ["1", "2", "null"],
    ['"a"', '"b"', '""', '"\\u00e9 [1]"'],
    ["true", "false", "null"],
    ['"2023-06-04"', "null", '""'],
    ['"2023-06-04T10:00:00"', "null"],
]


@st.composite
def objects(draw: st.DrawFn, n_columns: int) -> str:
    """Mostly a good object; often with an odd value; sometimes with keys left out or twice, or moved."""
    pairs = [
        (column.name, draw(st.sampled_from(good))) for column, good in zip(COLUMNS, GOOD_VALUES, strict=True)
    ]
    pairs = pairs[:n_columns]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        place = draw(st.integers(0, n_columns - 1))
        pairs[place] = pairs[place][0], draw(st.sampled_from(VALUES))
    if draw(st.sampled_from([False, False, True])):
        pairs.append(("more", draw(st.sampled_from(["1", "1", '"2023-01-01 00:00:00"', *VALUES]))))
    change = draw(st.sampled_from(["none"] * 8 + ["order", "less", "twice"]))
    if change == "order":
        pairs = draw(st.permutations(pairs))
    elif change == "less":
        del pairs[draw(st.integers(0, len(pairs) - 1))]
    elif change == "twice":
        pairs.append(draw(st.sampled_from(pairs)))
    row = "{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}"
    kind = draw(
        st.sampled_from(
            ["as it is"] * 14 + ["blank", "blanks", "cut", "blank before", "blank behind", "rest", "next"]
        )
    )
    return {
        "as it is": row,
        "cut": row[: len(row) // 2],
        "blank": "",
        "blanks": draw(st.sampled_from([" ", "\x0b", "\t\r"])),
        "blank before": " " + row,
        "blank behind": row + draw(st.sampled_from([" ", "\t", "\x0b", "\r"])),
        "rest": row + draw(st.sampled_from([" x", ",", "]", row, "{}", " {}"])),
        "next": row.replace(", ", draw(st.sampled_from([",\n", ",\r"]))),
    }[kind]


@st.composite
def files_of_objects(draw: st.DrawFn, n_columns: int) -> bytes:
    end = draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"]))
    lines = draw(st.lists(objects(n_columns), max_size=12))
    lines += draw(st.sampled_from([[], [], [], ["[1]"], ["[" * 1100], ["1"]]))
    data = (end.join(lines) + draw(st.sampled_from(["", end]))).encode("utf-8", "surrogatepass")
    if draw(st.sampled_from([False] * 5 + [True])):
        place = draw(st.integers(0, len(data)))
        odd = draw(
            st.sampled_from(
                [b"\xff", b"\xc3", b'"', b"\r", b"\n", b"\0", b",", b"{", b"}", b"[", b"\\", b"-"]
            )
        )
        data = data[:place] + odd + data[place:]
    return draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf", b"[\n"][:4])) + data


@pytest.mark.parametrize("of", BY_COLUMNS)
def test_batches__of_json_lines_are_what_the_definition_says(of: str) -> None:
    sources = [replace(source, format="json") for source in BY_COLUMNS[of].values()]
    (n_columns,) = {len(source.columns) for source in sources}

    @examples(160, least=80)
    @given(
        files_of_objects(n_columns),
        st.sampled_from([16, 300, 1000, 4 << 20]),
        st.sampled_from([False, False, False, True]),
        st.sets(st.integers(0, 12), max_size=2),
        st.sampled_from([0, 1, 64]),
    )
    def check(data: bytes, block: int, is_gzip: bool, aside: set[int], faults: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blocks, "BLOCK", block)
            patch.setattr(bounds, "PIECE", min(block, 64))
            patch.setattr(json_columns, "MAX_FAULTS", faults)
            packed = gzip.compress(data)
            for source in sources:
                compare(data, source, "a.jsonl", tuple(sorted(aside)))
                for end in (len(packed), len(packed) - 9, len(packed) // 2) if is_gzip else ():
                    compare(packed[:end], source, "a.jsonl.gz")

    check()


@pytest.mark.parametrize("has_more", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("plain", PLACES["plain"]),
        ("integer coordinate", PLACES["integer coordinate"]),
        pytest.param("integer coordinate", PLACES["plain"], marks=pytest.mark.long),
        pytest.param("no key", PLACES["plain"], marks=pytest.mark.long),
        pytest.param("left out by all", PLACES["plain"], marks=pytest.mark.long),
    ],
    ids=["plain", "integer coordinate", "integer coordinate, any column", "no key", "left out by all"],
)
def test_batches__decide_of_one_odd_value_among_good_objects_as_the_definition_does(
    name: str, places: tuple[str, ...], has_more: bool
) -> None:
    source = replace(SOURCES[name], format="json")
    good = [values[0] for values in GOOD_VALUES[: len(source.columns)]]

    def line(values: list[str]) -> str:
        pairs = zip((column.in_file for column in source.columns), values, strict=True)
        return "{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}"

    for place in map([column.name for column in source.columns].index, places):
        for value in VALUES:
            odd = [*good[:place], value, *good[place + 1 :]]
            lines = [line(good), line(good), line(odd), line(good), ""]
            if has_more:
                lines[0] = line(good)[:-1] + ', "more": 1}'
            compare("\n".join(lines).encode("utf-8", "surrogatepass"), source, "a.jsonl")


@pytest.mark.parametrize("name", ["plain", "read otherwise"])
def test_batches__of_good_objects_ask_the_definition_for_the_first_only(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = '{"id": 1, "x": 0.5, "n": 7, "name": "a", "ok": true, "day": null, "at": "", "more": [{"a": 1}]}'
    others = [
        '{"id":2,"x":-1e2}',
        "",
        '{"more": [], "x": 3, "id": 4, "name": "\\u00e9 [b] \\"q\\" Information", "day": "2023-06-04"}',
        '{"id": 5, "x": 0.0, "n": null, "ok": false, "at": "2023-06-04T10:00:00Z"} ',
    ]
    data = "\r\n".join([first, *(other.strip() for other in others * 50)]).encode()
    source = replace(GOOD_SOURCES[name], format="json")
    expected = by_definition(data, source, "a.jsonl")
    assert len(expected.taken) == 151
    asked = count_asked(monkeypatch)
    assert by_batches(data, source, "a.jsonl") == expected
    assert asked == [1]


@pytest.mark.parametrize("n_good", [190, 5])
def test_batches__ask_the_definition_for_odd_objects_only(
    n_good: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = '{"id": %d, "x": 0.5, "n": 1, "more": "a"}'
    odd = [
        '{"id": 1, "x": "1"}',
        '{"id": 1, "x": 0.5, "n": 1.5}',
        '{"id": 1, "x": 0.5, "x": 0.5}',
        '{"id": 1, "x": -0}',
        '{"id": 1, "x": 0.5} {"id": 2, "x": 0.5}',
        ' {"id": 1, "x": 0.5}',
        '{"id": 1, "x": -5000}',
    ]
    lines = [good % number for number in range(n_good)]
    for row, each in enumerate(odd):
        lines.insert(1 + row * (n_good // 8 + 1), each)
    asked = count_asked(monkeypatch)
    found = compare("\n".join([*lines, ""]).encode(), replace(WIDE, format="json", key=()), "a.jsonl")
    assert len(found.refused) == 5
    assert asked == [1, *(number for number, line in enumerate(lines, 1) if line in odd)]


def test_batches__give_an_object_back_to_the_definition_where_faults_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ['{"id": 1, "x": 0.5}' if number % 2 else '{"id": 1, "x": "1"}' for number in range(400)]
    asked = count_asked(monkeypatch)
    compare("\n".join([*lines, ""]).encode(), replace(WIDE, format="json", key=()), "a.jsonl")
    assert asked == [
        1,
        *range(3, 2 * json_columns.MAX_FAULTS + 1, 2),
        *range(2 * json_columns.MAX_FAULTS + 1, 401),
    ]
