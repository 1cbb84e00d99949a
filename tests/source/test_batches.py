"""Batches: column by column a file gives what the definition gives record by record."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.contracts.odcs import Column
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source import batches, blocks, bounds, csv_columns, json_columns, parquet
from epsjoin.source.batches import open_batches
from epsjoin.source.records import key_id, open_records
from epsjoin.source.rules import typed_schema
from tests.oracles import examples
from tests.source.test_parquet import stored
from tests.source.tiny_source import SOURCE

COLUMNS = (
    Column("id", "integer", required=True),
    Column("x", "number", required=True, minimum=-1000, maximum=1e300),
    Column("n", "integer", minimum=-5.5, maximum=2**63),
    Column("name", "string", values=()),
    Column("ok", "boolean"),
    Column("day", "date"),
    Column("at", "timestamp"),
)
WIDE = replace(SOURCE, columns=COLUMNS, missing=("NA", "nan", "-999", " N "))
RENAMED = tuple(replace(column, name=f"c_{column.name}", physical_name=column.name) for column in COLUMNS)
ROUNDED = replace(COLUMNS[1], minimum=-999.96, maximum=300.05, decimals=1)
SOURCES = {
    "plain": WIDE,
    "no key": replace(WIDE, key=(), missing=()),
    "text key": replace(WIDE, key=("name", "n", "x", "day", "ok")),
    "key of times": replace(WIDE, key=("at",)),
    "left out": replace(WIDE, where="n < 3 OR name = 'a'", optional=("x",)),
    "left out by all": replace(WIDE, where="ok AND day >= '2020-01-01' AND at < '2030-01-01'"),
    "integer coordinate": replace(WIDE, coordinates=("n",)),
    "values": replace(
        WIDE, columns=(*COLUMNS[:3], Column("name", "string", values=("a", "é")), *COLUMNS[4:])
    ),
    "true is missing": replace(WIDE, missing=("true", "0", "1.0")),
    "renamed": replace(WIDE, columns=RENAMED, key=("c_id",), coordinates=("c_x",), where="c_n < 7 OR c_ok"),
    "rounded": replace(
        WIDE, columns=(COLUMNS[0], ROUNDED, *COLUMNS[2:]), key=("x", "name"), where="x <> 0.2"
    ),
    "one column": replace(SOURCE, columns=COLUMNS[:1], key=(), coordinates=("id",)),
}

GOOD_SOURCES = {
    "plain": WIDE,
    "read otherwise": replace(
        SOURCES["renamed"], columns=(RENAMED[0], replace(RENAMED[1], decimals=3), *RENAMED[2:]), where=""
    ),
}


class Outcome(NamedTuple):
    """What becomes of a file."""

    taken: list[tuple[int, int, str]]
    refused: list[tuple[int, str, str]]
    n_records: int
    n_left_out: int
    columns: list[str]
    sentence: str | None


def by_definition(data: bytes, source: SourceContract, name: str, aside: tuple[int, ...] = ()) -> Outcome:
    records = open_records(io.BytesIO(data), name, source)
    found = Outcome([], [], 0, 0, [], None)
    n = n_left_out = 0
    sentence = None
    schema = typed_schema(source)
    try:
        for place, record in enumerate(records):
            n, n_left_out = n + 1, n_left_out + record.is_left_out
            id_: Any = record.reason
            if record.values is not None:
                id_ = key_id(source, record.values) if source.key else place
                # as a table has them: times in UTC
                columns = zip(record.values, schema, strict=True)
                values = [typed_array([value], field)[0].as_py() for value, field in columns]
            if record.values is not None and not isinstance(id_, str) and place not in aside:
                found.taken.append((place, id_, repr(values)))
            elif isinstance(id_, str):
                found.refused.append((record.line, record.raw, id_))
    except DataRefusedError as error:
        sentence = str(error)
    return found._replace(
        n_records=n, n_left_out=n_left_out, columns=records.found_columns, sentence=sentence
    )


def typed_array(values: list[Any], field: Any) -> Any:
    return pa.array(values, field.type)


def by_batches(data: bytes, source: SourceContract, name: str, aside: tuple[int, ...] = ()) -> Outcome:
    opened = open_batches(io.BytesIO(data), name, source, aside=np.array(aside, np.int64))
    found = Outcome([], [], 0, 0, [], None)
    n = n_left_out = 0
    sentence = None
    try:
        for batch in opened:
            n, n_left_out = n + batch.n_records, n_left_out + batch.n_left_out
            assert batch.values.schema == typed_schema(source)
            rows = [repr(list(row.values())) for row in batch.values.to_pylist()]
            found.taken.extend(zip(batch.places.tolist(), batch.ids.tolist(), rows, strict=True))
            found.refused.extend((each.line, each.raw, str(each.reason)) for each in batch.refused)
    except DataRefusedError as error:
        sentence = str(error)
    return found._replace(n_records=n, n_left_out=n_left_out, columns=opened.found_columns, sentence=sentence)


NUMBERS = [
    *(
        "0",
        "1",
        "-1",
        "+1",
        "1_000",
        " 1",
        "1 ",
        "\t1",
        "\x0b1",
        "\xa01",
        "1\u2009",
        "0x10",
        "0X1f",
        "x1",
        "1x",
        "1e5",
        "1e-400",
        "1E-0400",
    ),
    *(
        "inf",
        "-Infinity",
        "nan",
        "NaN",
        "nan(1)",
        "1e999",
        "1.",
        ".5",
        ".",
        "-.5e-3",
        "1e",
        "1d5",
        "- 1",
        "--1",
        "+-1",
        "1,5",
    ),
    *(
        "0" * 101 + "1",
        "0" * 70 + "7",
        "0." + "0" * 330 + "1",
        "9007199254740993",
        "9223372036854775807",
        "٣",
        "1\0",
        "-999",
    ),
    *(
        "9223372036854775808",
        "-9223372036854775808",
        "99999999999999999999",
        "-999.0",
        " -999",
        "NA",
        " NA ",
        "4.0",
        "-0.0",
    ),
    *(
        "",
        " ",
        "   \t",
        "''",
        "-5",
        "-6",
        "2.5",
        "1e-320",
        "0e-999",
        "0.0",
        "0.25",
        "0.35",
        "-0.04",
        "-999.04",
        "-999.97",
        "300.0500000000001",
        "123456789012345678901e-10",
        "N",
        " N ",
    ),
]
TEXTS = [
    "a",
    "é",
    "",
    " ",
    "NA",
    "x\ny",
    "x\r\ny",
    "x\ry",
    'q"q',
    '"',
    "0x",
    "e-400",
    "a,b",
    "\ufeff",
    "\u2028",
    "true",
    "A",
    "\x1c",
]
TIMES = [
    *(
        "2023-06-04",
        "20230604",
        "2023-W22-7",
        "0000-01-01",
        "0001-01-01",
        "9999-12-31",
        "2023-02-30",
        "04.06.2023",
    ),
    *(
        "2023-06-04T10:00:00",
        "2023-06-04 10:00:00.123456",
        "2023-06-04T10:00:00.123456789",
        "2023-06-04T10:00:00Z",
    ),
    *(
        "2023-06-04T10:00:00+02:00",
        "0001-01-01T00:00:00+12:00",
        "9999-12-31T23:59:59-12:00",
        "2023-06-04T24:00:00",
    ),
    *("2023-06-04T10", "2023-06-04x10:00", " 2023-06-04 ", "true", "TRUE", " False ", "1", "yes", "tRuE"),
]
CELLS = NUMBERS + TEXTS + TIMES
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
def rows(draw: st.DrawFn, n_columns: int = 7) -> str:
    """Mostly a good row; often with an odd cell; sometimes ragged, blank, or with a quote out of place."""
    cells = [draw(st.sampled_from(good)) for good in GOOD[:n_columns]]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        place = draw(st.integers(0, n_columns - 1))
        cells[place] = draw(st.sampled_from(CELLS))
    texts = []
    for cell in cells:
        must = any(sign in cell for sign in ',"\n\r')
        texts.append(quoted(cell) if draw(st.sampled_from([must, must, must, True])) else cell)
    row = ",".join(texts)
    kind = draw(st.sampled_from(["as it is"] * 8 + ["ragged", "blank", "blanks", "quote", "cut"]))
    return {
        "as it is": row,
        "ragged": row + ",1",
        "cut": row[: len(row) // 2],
        "blank": "",
        "blanks": "  ",
        "quote": row + '"',
    }[kind]


@st.composite
def files(draw: st.DrawFn, n_columns: int = 7) -> bytes:
    header = ",".join(column.name for column in COLUMNS[:n_columns])
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r\n", "\r"]))
    lines = [header, *draw(st.lists(rows(n_columns), max_size=12))]
    data = (end.join(lines) + draw(st.sampled_from(["", end]))).encode()
    if draw(st.sampled_from([False] * 5 + [True])):
        place = draw(st.integers(0, len(data)))
        data = (
            data[:place]
            + draw(st.sampled_from([b"\xff", b"\xc3", b'"', b"\r", b"\n", b"\0", b","]))
            + data[place:]
        )
    return draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + data


@pytest.mark.parametrize("name", SOURCES)
def test_batches__of_csv_are_what_the_definition_says(name: str) -> None:
    source = SOURCES[name]

    @examples(60)
    @given(
        files(len(source.columns)),
        st.sampled_from([16, 64, 200, 4 << 20]),
        st.sampled_from([False, False, False, True]),
        st.sets(st.integers(0, 12), max_size=2),
    )
    def check(data: bytes, block: int, is_gzip: bool, aside: set[int]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blocks, "BLOCK", block)
            patch.setattr(bounds, "PIECE", min(block, 64))
            compare(data, source, "a.csv", tuple(sorted(aside)))
            if is_gzip:
                packed = gzip.compress(data)
                for end in (len(packed), len(packed) - 9, len(packed) // 2):
                    compare(packed[:end], source, "a.csv.gz")

    check()


PLACES: dict[str, tuple[str, ...]] = {
    "plain": ("id", "x", "n", "name", "ok", "day", "at"),
    "no key": ("id", "x", "n", "name", "ok", "day", "at"),
    "text key": ("x", "n", "name", "ok", "day"),
    "key of times": ("at",),
    "left out": ("x", "n", "name"),
    "left out by all": ("ok", "day", "at"),
    "integer coordinate": ("n",),
    "values": ("name",),
    "true is missing": ("id", "x", "n", "ok"),
    "renamed": ("id", "x", "n", "ok"),
    "rounded": ("x", "name"),
    "one column": ("id",),
}
"""The columns in which a source may decide of a cell otherwise than the plain one."""
QUOTED = ("plain", "no key", "values", "true is missing", "rounded")
"""Sources that differ in what a text is taken for, whether it is quoted or not."""


def odd_cells() -> list[Any]:
    """Sources with the columns of an odd cell: those of ``PLACES``; all others are long tests."""
    found = []
    for name, is_quoted in [*((name, False) for name in SOURCES), *((name, True) for name in QUOTED)]:
        columns = [column.name for column in COLUMNS[: len(SOURCES[name].columns)]]
        others = tuple(column for column in columns if column not in PLACES[name])
        found.append(pytest.param(name, PLACES[name], is_quoted, id=f"{name}-{is_quoted}"))
        if others:
            found.append(
                pytest.param(name, others, is_quoted, id=f"{name}-{is_quoted}-others", marks=pytest.mark.long)
            )
    return found


@pytest.mark.parametrize(("name", "places", "is_quoted"), odd_cells())
def test_batches__decide_of_one_odd_cell_among_good_ones_as_the_definition_does(
    name: str, places: tuple[str, ...], is_quoted: bool
) -> None:
    source = SOURCES[name]
    good = GOOD_ROW[: len(source.columns)]
    names = [column.in_file for column in source.columns]
    for place in map(names.index, places):
        for cell in CELLS:
            row = [*good[:place], quoted(cell) if is_quoted else cell, *good[place + 1 :]]
            compare("\n".join([",".join(names), ",".join(good), ",".join(row), ""]).encode(), source, "a.csv")


VALUES = [
    *(
        "0",
        "1",
        "-1",
        "-0",
        "-0.0",
        "0.0",
        "1.0",
        "1e2",
        "1E-400",
        "1e-0400",
        "1e400",
        "-1e999",
        "04",
        "+1",
        ".5",
    ),
    *("1.", "0x10", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *(
        "1e-320",
        "0e-999",
        "123456789012345678901e-10",
        "0." + "0" * 330 + "1",
        "1" + "0" * 400,
        "9" * 4301,
        "-",
    ),
    *(
        "NaN",
        "-NaN",
        "Infinity",
        "-Infinity",
        "Inf",
        "-Inf",
        "nan",
        "null",
        "true",
        "false",
        "True",
        "tru",
        "",
    ),
    *(
        '""',
        '"a"',
        '"é"',
        '"NA"',
        '" N "',
        '"nan"',
        '"-999"',
        '" "',
        '"\\u00e9"',
        '"\\ud83d\\ude00"',
        '"\\ud800"',
    ),
    *(
        '"\\udc00"',
        '"\\u0000"',
        '"\\/\\n\\"q\\\\"',
        '"\\q"',
        '"\x01"',
        '"x\ny"',
        '"x\ry"',
        '"\t"',
        '"a',
        "'a'",
    ),
    *(
        '"Inf"',
        '": Inf"',
        '"[[[{{{"',
        '"\u2028"',
        '"\ufeff"',
        "[]",
        "{}",
        "[1, 2]",
        '{"a": 1}',
        '{"a": 1, "a": 2}',
    ),
    *(
        '[{"a": 1, "a": 2}]',
        '{"a": {"b": [Inf]}}',
        "[" * 120 + "]" * 120,
        '[1, "a", null]',
        "1, 2",
        "1}",
        '1} {"id": 2',
    ),
    *(
        '1, "id": 7',
        '1, "more": 7',
        '1, "more": "x"',
        '1, "n\\u0061me": "a"',
        '1, "": 0',
        '1, "\\ud800": 0',
        "1 /* */",
    ),
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
def objects(draw: st.DrawFn, n_columns: int = 7) -> str:
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
def files_of_objects(draw: st.DrawFn, n_columns: int = 7) -> bytes:
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


@pytest.mark.parametrize("name", SOURCES)
def test_batches__of_json_lines_are_what_the_definition_says(name: str) -> None:
    source = replace(SOURCES[name], format="json")

    @examples(50)
    @given(
        files_of_objects(len(source.columns)),
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
            compare(data, source, "a.jsonl", tuple(sorted(aside)))
            if is_gzip:
                packed = gzip.compress(data)
                for end in (len(packed), len(packed) - 9, len(packed) // 2):
                    compare(packed[:end], source, "a.jsonl.gz")

    check()


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
    name: str, places: tuple[str, ...]
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
            compare("\n".join(lines).encode("utf-8", "surrogatepass"), source, "a.jsonl")
            lines[1:3] = lines[2:0:-1]
            compare("\n".join([line(good)[:-1] + ', "more": 1}', *lines]).encode(), source, "a.jsonl")


def _texts(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary()).view(pa.string())


FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond that Python knows."""

ODD_COLUMNS: dict[str, list[pa.Array]] = {
    "number": [
        pa.array([0.5, None, float("nan"), float("-inf"), -0.0, 1e-320]),
        pa.array([1, 2**53 + 1, -(2**63), None, 7, 2**63 - 1]),
        pa.array([1, 2, 3, None, 5, 6], pa.uint64()),
        pa.array([0.1, None, 3, 4, 5, 6], pa.float32()),
        pa.array([0.1, None, 3, 4, 5, 6], pa.float16()),
        pa.array([True, False, None, True, True, True]),
        pa.array(["1.5", "2", None, "", "nan", "x"]),
        pa.array(["1.5", "2", None, "-3", "4", "5"]).cast(pa.decimal128(9, 3)),
        pa.array([[1.0]] * 6),
        pa.nulls(6),
    ],
    "integer": [
        pa.array([1, None, -1, 2**63 - 1, -(2**63), 0]),
        pa.array([1, None, 2**64 - 1, 3, 4, 5], pa.uint64()),
        pa.array([1, None, 255, 3, 4, 5], pa.uint8()),
        pa.array([1.0, None, 2.5, 3, 4, 5]),
        pa.array([1, 1, None, 2, 2, 2]).dictionary_encode(),
        pa.array(["1", None, "x", "3", "4", ""]),
    ],
    "string": [
        _texts(b"a", None, b"", b"\xff\xfe", "é".encode(), b"a"),
        _texts(b"a", None, b"", b"b", "é".encode(), b"a").cast(pa.large_string()),
        _texts(b"a", None, b"", b"b", "é".encode(), b"a").dictionary_encode(),
        pa.array([b"a", None, b"", b"\xff", b"b", b"c"]),
        pa.array([1, None, 3, 4, 5, 6]),
    ],
    "boolean": [pa.array([True, None, False, True, True, False]), pa.array([1, 0, None, 1, 1, 1])],
    "date": [
        pa.array([0, None, -719162, -719163, 2932896, 2932897], pa.int32()).cast(pa.date32()),
        pa.array([0, None, 86_400_000, 0, 0, 0]).cast(pa.date64()),
        pa.array(["2023-06-04", None, "", "x", " ", "20230604"]),
        pa.array([0, None, 1, 2, 3, 4], pa.timestamp("us")),
    ],
    "timestamp": [
        pa.array(
            [0, None, -62135596800000000, -62135596800000001, 253402300799999999, 253402300800000000]
        ).cast(pa.timestamp("us", zone))
        for zone in (None, "UTC", "+00:00", "Europe/Berlin")
    ]
    + [
        pa.array([0, None, 1, -62135596801, 253402300800, 5]).cast(pa.timestamp("s")),
        pa.array([0, None, 1, -62135596800001, 253402300799999, 5]).cast(pa.timestamp("ms", "UTC")),
        pa.array([0, None, 1, 1999, -(2**63), 2**63 - 1]).cast(pa.timestamp("ns")),
        pa.array(["2023-06-04T10:00:00Z", None, "", "x", " ", "20230604"]),
        pa.array([0, None, 1, 2, 3, 4], pa.int32()).cast(pa.date32()),
    ],
}
"""Columns of Parquet, by the contract's type that they are read as."""


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "one column"])
def test_batches__of_parquet_are_what_the_definition_says(name: str) -> None:
    source = replace(SOURCES[name], format="parquet")
    good = pa.table(
        {
            "id": [1, 2, 3, 4, 5, 6],
            "x": [0.5, 1.0, -3.0, 4.0, 5.0, 6.0],
            "n": [1, 2, None, 3, -5, 7],
            "name": ["a", "b", "é", None, "", "a"],
            "ok": [True, False, None, True, True, True],
            "day": pa.array([19000, None, 1, 2, 3, 4], pa.int32()).cast(pa.date32()),
            "at": pa.array([10**15, None, 1, 2, 3, 4], pa.timestamp("us")),
            "more": ["?"] * 6,
        }
    )
    compare_parquet(good, source)
    for place, column in enumerate(source.columns):
        for values in ODD_COLUMNS[column.type]:
            table = good.set_column(place, column.in_file, values)
            compare_parquet(table, source)
            compare_parquet(table, source, (0, 4))
    compare_parquet(good.drop_columns(["x"]), source)
    compare_parquet(good.slice(0, 0), source)
    data = stored(good)
    for end in (0, len(data) // 2, len(data) - 3):
        compare(data[:end], source, "a.parquet")


def compare_parquet(table: pa.Table, source: SourceContract, aside: tuple[int, ...] = ()) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "BATCH_ROWS", 4)
        compare(stored(table), source, "a.parquet", aside)


@pytest.mark.parametrize("name", ["plain", "read otherwise"])
def test_batches__of_good_rows_ask_the_definition_for_none(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = GOOD_SOURCES[name]
    rows = [
        '1,0.5,7,"a, b",true,2023-06-04,2023-06-04T10:00:00Z',
        "",
        "2,-1e2,,,,,",
        '3,+0,NA,"two\r\nlines ""quoted""",FALSE,NA,nan',
    ]
    data = "\r\n".join(["id,x,n,name,ok,day,at", *rows * 50]).encode()
    expected = by_definition(data, source, "a.csv")
    assert len(expected.taken) == 150

    def refuse(*_: Any) -> Any:
        raise AssertionError("a good row goes to the definition")

    monkeypatch.setattr(batches, "to_records", refuse)
    assert by_batches(data, source, "a.csv") == expected


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
    asked = _count_asked(monkeypatch)
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
    asked = _count_asked(monkeypatch)
    found = compare("\n".join([*lines, ""]).encode(), replace(WIDE, format="json", key=()), "a.jsonl")
    assert len(found.refused) == 5
    assert asked == [1, *(number for number, line in enumerate(lines, 1) if line in odd)]


def test_batches__give_an_object_back_to_the_definition_where_faults_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ['{"id": 1, "x": 0.5}' if number % 2 else '{"id": 1, "x": "1"}' for number in range(400)]
    asked = _count_asked(monkeypatch)
    compare("\n".join([*lines, ""]).encode(), replace(WIDE, format="json", key=()), "a.jsonl")
    assert asked == [
        1,
        *range(3, 2 * json_columns.MAX_FAULTS + 1, 2),
        *range(2 * json_columns.MAX_FAULTS + 1, 401),
    ]


def _count_asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lines of the records that the definition is asked for, as they come."""
    asked: list[int] = []
    to_records = batches.to_records

    def counting(source: SourceContract, untyped: Any, from_field: Any) -> Any:
        for record in to_records(source, untyped, from_field):
            asked.append(record.line)
            yield record

    monkeypatch.setattr(batches, "to_records", counting)
    return asked


def test_batches__of_good_parquet_rows_ask_the_definition_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (*COLUMNS[:4], Column("weight", "number"), *COLUMNS[4:])
    source = replace(WIDE, format="parquet", columns=columns)
    table = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "x": pa.array([0.5, 1, 2], pa.float32()),
            "n": [1, None, 3],
            "name": pa.array(["a", "", None]).dictionary_encode(),
            "weight": [float("nan"), None, 1.5],
            "ok": [True, None, False],
            "day": pa.array([0, None, 1], pa.int32()).cast(pa.date32()),
            "at": pa.array([0, None, 1]).cast(pa.timestamp("ms", "UTC")),
        }
    )
    data = stored(table)
    expected = by_definition(data, source, "a.parquet")
    assert len(expected.taken) == 3
    monkeypatch.setattr(batches, "to_records", None)
    assert by_batches(data, source, "a.parquet") == expected


@pytest.mark.parametrize("size", [1, 100, 1 << 30])
def test_batches__do_not_depend_on_how_much_pyarrow_types_at_once(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_columns, "_IN_CACHE", size)
    rows = ["1,0.5,7,a,true,,", '2,1.5,7,"a long, long\ntext",true,,', "3,0.5,7,a,true,2023-06-04,"]
    text = "\n".join(["id,x,n,name,ok,day,at", *rows * 30, ""])
    asked = _count_asked(monkeypatch)
    compare(text.encode(), replace(WIDE, key=()), "a.csv")
    assert asked == []


def test_batches__ask_the_definition_for_odd_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = ["2,x,,,,,", "3,0,0x1,,,,", "4,0,,,,,,"]
    lines = [f"{i},0.5,7,a,true,," for i in range(10, 200)]
    text = "\n".join(["id,x,n,name,ok,day,at", *lines, *odd, *lines, "6,0,,BAD,,,", "7,-5000,,,,,", ""])
    data = text.encode().replace(b"BAD", b"\xff")
    asked = _count_asked(monkeypatch)
    found = compare(data, replace(WIDE, key=()), "a.csv")
    assert asked == [line for line, _, _ in found.refused] == [192, 193, 194, 385, 386]


def compare(data: bytes, source: SourceContract, name: str, aside: tuple[int, ...] = ()) -> Outcome:
    found = by_batches(data, source, name, aside)
    assert found == by_definition(data, source, name, aside), data
    return found
