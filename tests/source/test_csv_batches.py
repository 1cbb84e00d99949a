"""Batches of CSV: column by column a file gives what the definition gives record by record."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.contracts.sources import DELIMITERS
from epsjoin.source import batches, blocks, bounds, csv_columns
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

NUMBERS = [
    *("0", "1", "-1", "+1", "1_000", " 1", "1 ", "\t1", "\x0b1", "\xa01", "1\u2009", "0x10", "0X1f", "x1"),
    *("1x", "1e5", "1e-400", "1E-0400", "inf", "-Infinity", "nan", "NaN", "nan(1)", "1e999", "1.", ".5", "."),
    *("-.5e-3", "1e", "1d5", "- 1", "--1", "+-1", "1,5", "0" * 101 + "1", "0" * 70 + "7"),
    *("0." + "0" * 330 + "1", "9007199254740993", "9223372036854775807", "٣", "1\0", "-999"),
    *("9223372036854775808", "-9223372036854775808", "99999999999999999999", "-999.0", " -999", "NA", " NA "),
    *("4.0", "-0.0", "", " ", "   \t", "''", "-5", "-6", "2.5", "1e-320", "0e-999", "0.0", "0.25", "0.35"),
    *("-0.04", "-999.04", "-999.97", "300.0500000000001", "123456789012345678901e-10", "N", " N "),
]
TEXTS = [
    *("a", "é", "", " ", "NA", "x\ny", "x\r\ny", "x\ry", 'q"q', '"', "0x", "e-400", "a,b", "\ufeff"),
    *("\u2028", "true", "A", "\x1c"),
]
CELLS = [*NUMBERS, *TEXTS, *TIMES]
GOOD = [
    ["1", "2", "-7"],
    ["0.5", "-1.25", "3e2"],
    ["1", "2", ""],
    ["a", "b", ""],
    ["true", "FALSE", ""],
    ["2023-06-04", ""],
    ["2023-06-04T10:00:00", ""],
]
GOOD_ROW = [good[0] for good in GOOD]


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


@st.composite
def rows(draw: st.DrawFn, n_columns: int, delimiter: str) -> str:
    """Mostly a good row; often with an odd cell; sometimes ragged, blank, or with a quote out of place."""
    cells = [draw(st.sampled_from(good)) for good in GOOD[:n_columns]]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        place = draw(st.integers(0, n_columns - 1))
        cells[place] = draw(st.sampled_from(CELLS)).replace("a,b", f"a{delimiter}b")
    texts = []
    for cell in cells:
        must = any(sign in cell for sign in f'{delimiter}"\n\r')
        texts.append(quoted(cell) if draw(st.sampled_from([must, must, must, True])) else cell)
    row = delimiter.join(texts)
    kind = draw(st.sampled_from(["as it is"] * 8 + ["ragged", "blank", "blanks", "quote", "cut"]))
    return {
        "as it is": row,
        "ragged": f"{row}{delimiter}1",
        "cut": row[: len(row) // 2],
        "blank": "",
        "blanks": "  ",
        "quote": row + '"',
    }[kind]


@st.composite
def files(draw: st.DrawFn, n_columns: int, delimiter: str = ",") -> bytes:
    header = delimiter.join(column.name for column in COLUMNS[:n_columns])
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r\n", "\r"]))
    lines = [header, *draw(st.lists(rows(n_columns, delimiter), max_size=12))]
    data = (end.join(lines) + draw(st.sampled_from(["", end]))).encode()
    if draw(st.sampled_from([False] * 5 + [True])):
        place = draw(st.integers(0, len(data)))
        data = (
            data[:place]
            + draw(st.sampled_from([b"\xff", b"\xc3", b'"', b"\r", b"\n", b"\0", delimiter.encode()]))
            + data[place:]
        )
    return draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + data


@pytest.mark.parametrize("of", BY_COLUMNS)
def test_batches__of_csv_are_what_the_definition_says(of: str) -> None:
    sources = BY_COLUMNS[of]
    (n_columns,) = {len(source.columns) for source in sources.values()}

    @examples(200, least=100)  # which find every mutant that was tried
    @given(
        files(n_columns),
        st.sampled_from([16, 64, 200, 4 << 20]),
        st.sampled_from([False, False, False, True]),
        st.sets(st.integers(0, 12), max_size=2),
    )
    def check(data: bytes, block: int, is_gzip: bool, aside: set[int]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blocks, "BLOCK", block)
            patch.setattr(bounds, "PIECE", min(block, 64))
            packed = gzip.compress(data)
            for source in sources.values():
                compare(data, source, "a.csv", tuple(sorted(aside)))
                for end in (len(packed), len(packed) - 9, len(packed) // 2) if is_gzip else ():
                    compare(packed[:end], source, "a.csv.gz")

    check()


@examples(600)
@given(
    st.sampled_from(DELIMITERS[1:]).flatmap(
        lambda each: st.tuples(st.just(each), files(len(WIDE.columns), each))
    ),
    st.sampled_from(["plain", "no key", "text key", "left out", "true is missing"]),
    st.sampled_from([16, 64, 4 << 20]),
    st.booleans(),
)
def test_batches__of_csv_by_any_delimiter_are_what_the_definition_says(
    file: tuple[str, bytes], name: str, block: int, is_gzip: bool
) -> None:
    delimiter, data = file
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", block)
        patch.setattr(bounds, "PIECE", min(block, 64))
        source = replace(SOURCES[name], delimiter=delimiter)
        compare(data, source, "a.csv")
        packed = gzip.compress(data)
        for end in (len(packed), len(packed) - 9) if is_gzip else ():
            compare(packed[:end], source, "a.csv.gz")


@pytest.mark.parametrize("delimiter", DELIMITERS[1:])
@examples(80)
@given(
    cells=st.lists(
        st.lists(st.sampled_from([*CELLS, "a;b", "a|b", "a\tb", "~#$^"]), min_size=7, max_size=8), max_size=6
    )
)
def test_records__by_any_delimiter_are_those_by_commas(delimiter: str, cells: list[list[str]]) -> None:
    """A file of the same fields has the same values, reasons and lines, and its own raw text."""
    names = [column.name for column in COLUMNS]
    found = []
    for each in (",", delimiter):
        must = f'{each}"\r\n'
        lines = [
            each.join(quoted(cell) if any(sign in cell for sign in must) else cell for cell in row)
            for row in [names, *cells]
        ]
        data = "\n".join([*lines, ""]).encode()
        outcome = by_definition(data, replace(WIDE, delimiter=each), "a.csv")
        assert {raw for _, raw, _ in outcome.refused} <= {*lines}
        refused = [(line, "", reason) for line, _, reason in outcome.refused]
        found.append(outcome._replace(refused=refused))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("delimiter", "is_quoted", "step"),
    [
        (";", False, 3),
        ("\t", True, 3),
        *(
            pytest.param(each, is_quoted, 1, marks=pytest.mark.long)
            for each in (";", "\t", "|")
            for is_quoted in (False, True)
        ),
    ],
)
def test_batches__by_another_delimiter_decide_of_one_odd_cell_as_the_definition_does(
    delimiter: str, is_quoted: bool, step: int
) -> None:
    """Each column tries another third of the cells, and all that are made of commas or of the delimiter."""
    source = replace(WIDE, delimiter=delimiter)
    names = [column.name for column in COLUMNS]
    of_delimiters = ["1,5", "a,b", f"a{delimiter}", f"1{delimiter}5", delimiter]
    for place in range(len(names)):
        for cell in [*CELLS[(place + is_quoted) % step :: step], *of_delimiters]:
            text = quoted(cell) if is_quoted else cell
            row = [*GOOD_ROW[:place], text, *GOOD_ROW[place + 1 :]]
            compare("\n".join(map(delimiter.join, [names, GOOD_ROW, row, [""]])).encode(), source, "a.csv")


QUOTED = ("plain", "no key", "values", "true is missing", "rounded")
"""Sources that differ in what a text is taken for, whether it is quoted or not."""


def odd_cells() -> list[Any]:
    """Sources, the columns in which an odd cell stands, those of ``PLACES``, and the cells that are tried.

    Each column tries another half of the quoted cells and, of sources that are not the plain one, another
    third. Long tests try all cells in all columns, quoted cells, and sources without a key or renamed.
    """
    found = []
    for name, is_quoted in [*((name, False) for name in SOURCES), *((name, True) for name in QUOTED)]:
        columns = tuple(column.name for column in COLUMNS[: len(SOURCES[name].columns)])
        is_long = name != "plain" and (is_quoted or name in ("no key", "renamed"))
        kind = f"{name}-{is_quoted}"
        step = 3 if name != "plain" else 2 if is_quoted else 1
        if not is_long:
            cells = [CELLS[(len(found) + place) % step :: step] for place in range(len(PLACES[name]))]
            found.append(pytest.param(name, PLACES[name], is_quoted, cells, id=kind))
        if step > 1:
            cells = [CELLS] * len(columns)
            marks = pytest.mark.long
            found.append(pytest.param(name, columns, is_quoted, cells, id=f"{kind}-all", marks=marks))
    return found


@pytest.mark.parametrize(("name", "places", "is_quoted", "cells"), odd_cells())
def test_batches__decide_of_one_odd_cell_among_good_ones_as_the_definition_does(
    name: str, places: tuple[str, ...], is_quoted: bool, cells: list[list[str]]
) -> None:
    source = SOURCES[name]
    good = GOOD_ROW[: len(source.columns)]
    names = [column.in_file for column in source.columns]
    for place, tried in zip(map([column.name for column in COLUMNS].index, places), cells, strict=True):
        for cell in tried:
            row = [*good[:place], quoted(cell) if is_quoted else cell, *good[place + 1 :]]
            compare("\n".join([",".join(names), ",".join(good), ",".join(row), ""]).encode(), source, "a.csv")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["plain", "read otherwise"])
def test_batches__of_good_rows_ask_the_definition_for_none(
    name: str, delimiter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = replace(GOOD_SOURCES[name], delimiter=delimiter)
    rows = [
        '1,0.5,7,"a, b",true,2023-06-04,2023-06-04T10:00:00Z',
        "",
        "2,-1e2,,,,,",
        '3,+0,NA,"two\r\nlines ""quoted""",FALSE,NA,nan',
    ]
    data = "\r\n".join(["id,x,n,name,ok,day,at", *rows * 50]).replace(",", delimiter).encode()
    expected = by_definition(data, source, "a.csv")
    assert len(expected.taken) == 150

    def refuse(*_: Any) -> Any:
        raise AssertionError("a good row goes to the definition")

    monkeypatch.setattr(batches, "to_records", refuse)
    assert by_batches(data, source, "a.csv") == expected


@pytest.mark.parametrize("size", [1, 100, 1 << 30])
def test_batches__do_not_depend_on_how_much_pyarrow_types_at_once(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_columns, "_IN_CACHE", size)
    rows = ["1,0.5,7,a,true,,", '2,1.5,7,"a long, long\ntext",true,,', "3,0.5,7,a,true,2023-06-04,"]
    text = "\n".join(["id,x,n,name,ok,day,at", *rows * 30, ""])
    asked = count_asked(monkeypatch)
    compare(text.encode(), replace(WIDE, key=()), "a.csv")
    assert asked == []


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_batches__ask_the_definition_for_odd_rows_only(
    delimiter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = ["2,x,,,,,", "3,0,0x1,,,,", "4,0,,,,,,"]
    lines = [f"{i},0.5,7,a,true,," for i in range(10, 200)]
    text = "\n".join(["id,x,n,name,ok,day,at", *lines, *odd, *lines, "6,0,,BAD,,,", "7,-5000,,,,,", ""])
    data = text.replace(",", delimiter).encode().replace(b"BAD", b"\xff")
    asked = count_asked(monkeypatch)
    found = compare(data, replace(WIDE, key=(), delimiter=delimiter), "a.csv")
    assert asked == [line for line, _, _ in found.refused] == [192, 193, 194, 385, 386]
