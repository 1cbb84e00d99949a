"""Sections: a file that is read in several gives what it gives as a whole, or one task reads it."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from epsjoin.contracts.sources import DELIMITERS, SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source import blocks, sections
from epsjoin.source.batches import open_batches
from epsjoin.source.blocks import OpenSection
from epsjoin.source.bounds import LimitedStream
from epsjoin.source.sections import Section, cut, merge_columns, survey
from oracles import examples
from tests.source.both_ways import SOURCES, WIDE, Outcome, by_definition
from tests.source.test_csv_batches import GOOD_ROW, files
from tests.source.test_json_batches import files_of_objects


def divided(data: bytes, inner: list[int], format_: str, delimiter: str = ",") -> list[Section]:
    """The sections by ranges that end at these places."""
    of_csv = delimiter if format_ == "csv" else None

    def read_at(n: int, place: int) -> bytes:
        assert place >= 0
        return data[place : place + n]

    bounds = [0, *sorted(place for place in inner if place < len(data)), len(data)]
    return cut([survey(read_at, begin, end, of_csv) for begin, end in pairwise(bounds)], len(data))


def in_sections(
    data: bytes, source: SourceContract, found: list[Section], aside: tuple[int, ...] | None = ()
) -> Outcome | None:
    """What becomes of a file in sections; ``None`` if one task must read it."""
    outcome = Outcome([], [], 0, 0, [], None)
    n = n_left_out = 0
    columns = []
    for section in found:
        stream = io.BytesIO(data)
        stream.seek(section.begin)
        mine = None if aside is None else np.array([place - n for place in aside if place >= n], np.int64)
        opened = open_batches(
            io.BufferedReader(LimitedStream(stream, section.end - section.begin)),
            "a",
            source,
            may_be_empty=True,
            aside=mine,
            section=OpenSection(section.line, io.BytesIO(data)),
        )
        begin = n
        try:
            for batch in opened:
                n, n_left_out = n + batch.n_records, n_left_out + batch.n_left_out
                rows = [repr(list(row.values())) for row in batch.values.to_pylist()]
                places = (batch.places + begin).tolist()
                outcome.taken.extend(zip(places, batch.ids.tolist(), rows, strict=True))
                outcome.refused.extend((each.line, each.raw, str(each.reason)) for each in batch.refused)
        except DataRefusedError:
            return None
        columns.append(opened.found_columns)
    merged = merge_columns("a", source, columns)
    if merged is None or not n:
        return None
    return outcome._replace(n_records=n, n_left_out=n_left_out, columns=merged)


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_sections__of_any_size_give_what_the_whole_file_gives(format_: str) -> None:
    names = ("plain", "text key", "left out by all")
    sources = {name: replace(SOURCES[name], format=format_) for name in names}
    n_compared = dict.fromkeys(names, 0)

    @(examples(200, least=100) if format_ == "csv" else examples(80))
    @given(
        (files if format_ == "csv" else files_of_objects)(len(WIDE.columns)),
        st.lists(st.integers(1, 600), max_size=6, unique=True),
        st.sampled_from([1, 7, 4 << 20]),
        st.sampled_from([16, 200, 4 << 20]),
        st.sets(st.integers(0, 12), max_size=2),
    )
    def check(data: bytes, inner: list[int], chunk: int, block: int, aside: set[int]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sections, "CHUNK", chunk)
            patch.setattr(blocks, "BLOCK", block)
            found = divided(data, inner, format_)
            asked = tuple(sorted(aside))
            for name, source in sources.items() if found else ():
                outcome = in_sections(data, source, found, asked)
                if outcome is not None:
                    assert outcome == by_definition(data, source, "a", asked), name
                    n_compared[name] += 1

    check()
    assert min(n_compared.values()) > 5


def test_sections__of_csv_by_another_delimiter_give_what_the_whole_file_gives() -> None:
    n_columns = len(WIDE.columns)
    n_compared = dict.fromkeys(DELIMITERS[1:], 0)

    def with_examples(check: Callable[..., None]) -> Callable[..., None]:
        """One file that has sections by each delimiter."""
        for delimiter in n_compared:
            rows = [[column.name for column in WIDE.columns], *[GOOD_ROW] * 9]
            data = "".join(delimiter.join(cells) + "\n" for cells in rows).encode()
            check = example((delimiter, data), [len(data) // 3, len(data) // 2], 7, 16)(check)
        return check

    @examples(520)
    @with_examples
    @given(
        st.sampled_from([*n_compared]).flatmap(lambda each: st.tuples(st.just(each), files(n_columns, each))),
        st.lists(st.integers(1, 600), max_size=6, unique=True),
        st.sampled_from([1, 7, 4 << 20]),
        st.sampled_from([16, 200, 4 << 20]),
    )
    def check(file: tuple[str, bytes], inner: list[int], chunk: int, block: int) -> None:
        delimiter, data = file
        source = replace(WIDE, delimiter=delimiter)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sections, "CHUNK", chunk)
            patch.setattr(blocks, "BLOCK", block)
            found = divided(data, inner, "csv", delimiter)
            outcome = in_sections(data, source, found) if found else None
            if outcome is not None:
                assert outcome == by_definition(data, source, "a")
                n_compared[delimiter] += 1

    check()
    assert min(n_compared.values()) > 0


QUOTED = [
    b'\xef\xbb\xbf"id",x,n,name,ok,day,at\r\n',
    b'1,0.5,7,"a, b",true,2023-06-04,\r\n',
    b'2,0.5,7,"two\nlines, ""quoted""\n",,,\r\n',
    b"3,x,,,,,\r\n",
    b"\r\n",
    b'4,0.5,,"",,,\r\n',
    b'5,1,,"""",,,',
]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("chunk", [7, 4 << 20])
def test_sections__a_file_of_plain_quotes_is_cut_behind_the_first_record_that_ends_in_a_range(
    chunk: int, delimiter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sections, "CHUNK", chunk)
    data = b"".join(QUOTED).replace(b",", delimiter.encode())
    source = replace(WIDE, delimiter=delimiter)
    ends = np.cumsum([len(line) for line in QUOTED]).tolist()
    lines = [1, 2, 3, 6, 7, 8, 9]
    expected = by_definition(data, source, "a")
    assert [line for line, _, _ in expected.refused] == [6]
    read: list[list[Section]] = []
    for place in range(4, len(data)):
        cuts = divided(data, [place], "csv", delimiter)
        behind = [(end, line) for end, line in zip(ends[:-1], lines[1:], strict=True) if end > place]
        assert [(each.begin, each.line) for each in cuts] == ([(0, 1), behind[0]] if behind else [])
        assert [each.end for each in cuts] == ([behind[0][0], len(data)] if behind else [])
        if cuts and cuts not in read:
            assert in_sections(data, source, cuts) == expected
            read.append(cuts)
    assert len(read) == len(QUOTED) - 1
    every = divided(data, list(range(4, len(data))), "csv", delimiter)
    assert in_sections(data, source, every) == expected


def test_sections__a_quote_beside_a_sign_that_is_not_the_delimiter_is_not_plain() -> None:
    """By commas both quotes are at ends of a field, and the line end between them is within it."""
    data = b'id;x;n;name;ok;day;at\n1;0;;a,";;;\n2;0;;",b;;;\n3;0;;;;;\n'
    assert divided(data, [30, 50], "csv", ",")
    assert divided(data, [30, 50], "csv", ";") == []


@pytest.mark.parametrize(
    ("of_line", "odd"),
    [
        (3, b'3,0,,5" pipe,,,\r\n'),
        (3, b'3,0,,"a"b,,,\r\n'),
        (3, b'3,0,,"a,,,\r\n'),
        (3, b"3,0,,a\rb,,,\r\n"),
        (3, b"3,0,,a\0b,,,\r\n"),
        (0, b'id,x,n,name,ok,day,at,"a"b\r\n'),
    ],
)
def test_sections__a_file_whose_quotes_or_lines_are_not_plain_has_none(of_line: int, odd: bytes) -> None:
    lines = [*QUOTED[:of_line], odd, *QUOTED[of_line + 1 :]]
    data = b"".join(lines)
    assert divided(data, [len(data) // 3], "csv") == []


@pytest.mark.parametrize("n", [1, 2, 3])
def test_sections__a_cut_beside_an_odd_quote_sees_the_byte_beyond_it(n: int) -> None:
    for odd in (b'id,x\n1,0\n2,5"6"\n3,0\n', b'id,x\n1,0\n2,"a"b\n3,0\n'):
        quote = odd.index(b'5"') + 1 if b'5"' in odd else odd.index(b'"b')
        for place in range(quote - n, quote + n + 3):
            assert divided(odd, [place], "csv") == []


def test_sections__a_header_that_is_not_plain_is_left_to_one_task() -> None:
    """Where the sections were made by somebody who did not look at the header."""
    data = b'id,x,n,name,ok,day,at,a"b\n1,0,,,,,,\n2,0,,,,,,\n'
    begin = data.index(b"2,")
    found = [Section(0, 0, begin, 1), Section(1, begin, len(data), 3)]
    assert in_sections(data, WIDE, found) is None


def test_sections__all_records_of_one_can_be_set_aside() -> None:
    data = b"".join(QUOTED)
    found = divided(data, [len(data) // 2], "csv")
    assert len(found) == 2
    outcome = in_sections(data, WIDE, found, None)
    expected = by_definition(data, WIDE, "a")
    assert outcome == expected._replace(taken=[])


@pytest.mark.parametrize(
    "lines",
    [
        ['{"id": 1}', '{"id": 2}', '{"id": 3}'],  # no record has x
        ["[", '{"id": 2, "x": 0}', '{"id": 3, "x": 0}'],
        ["", "[1]", '{"id": 3, "x": 0}', '{"id": 4, "x": 0}'],
        ['{"id": 1, "x": 0, "\\\\ud800": 1}', '{"id": 2, "x": 0, "\\ud800": 1}', ""],
        ['{"id": 1, "x": 0}', '{"id": 2, "x": 0}', '{"id": 3, "x'],
    ],
)
def test_sections__of_json_lines_leave_what_only_the_whole_file_tells_to_one_task(lines: list[str]) -> None:
    data = "\n".join(lines).encode()
    source = replace(WIDE, format="json")
    found = divided(data, list(range(1, len(data))), "json")
    assert len(found) > 1
    assert in_sections(data, source, found) is None


def test_sections__of_json_lines_may_have_other_keys() -> None:
    lines = ['{"id": 1, "x": 0, "b": 0, "a": 1}', '{"c": 1, "id": 2}', '{"x": 1, "d": 0, "id": 3, "a": 3}']
    data = "\n".join(lines).encode()
    source = replace(WIDE, format="json")
    outcome = in_sections(data, source, divided(data, list(range(1, len(data))), "json"))
    assert outcome is not None
    assert outcome.columns == ["id", "x", "b", "a", "c", "d"]
    assert outcome == by_definition(data, source, "a")
