"""Records: typed by the contract, never by how a value looks."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import pandas
import pyarrow as pa
import pytest

from epsjoin.contracts.odcs import Column
from epsjoin.errors import MAX_MESSAGE, DataRefusedError
from epsjoin.source import bounds
from epsjoin.source.batches import open_batches
from epsjoin.source.reasons import refusal
from epsjoin.source.records import key_id, open_records
from epsjoin.source.values import from_value, kind_of
from tests.source.test_parquet import stored
from tests.source.tiny_source import SOURCE, read, typed


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("integer", " 42 ", 42),
        ("integer", "-9223372036854775808", -(2**63)),
        ("integer", "9223372036854775808", "v: not a 64-bit integer: '9223372036854775808'"),
        ("integer", "4.0", "v: not a 64-bit integer: '4.0'"),
        ("integer", "٣", "v: not a 64-bit integer: '٣'"),
        ("number", ".5e-3", 0.0005),
        ("number", "-inf", "v: not finite: '-inf'"),
        ("number", "0x10", "v: not a number: '0x10'"),
        ("integer", "9" * 5000, f"v: not a 64-bit integer: '{'9' * 80}'"),
        ("number", "1,5", "not as many fields as the header has: '4, not 3'"),
        ("boolean", "TRUE", True),
        ("boolean", "1", "v: not true or false: '1'"),
        ("date", "2023-06-04", date(2023, 6, 4)),
        ("date", "04.06.2023", "v: not an ISO date: '04.06.2023'"),
        ("timestamp", "2023-06-04T10:00:00+00:00", datetime(2023, 6, 4, 10, tzinfo=UTC)),
        ("timestamp", "0001-01-01T00:00:00+12:00", "v: out of range: '0001-01-01T00:00:00+12:00'"),
        ("string", " kept as it is ", " kept as it is "),
        ("string", "", None),
    ],
)
def test_records__types_a_csv_value_by_the_contract(kind: str, text: str, value: object) -> None:
    assert typed(kind, text) == value


def test_records__counts_lines_through_blank_ones_and_breaks_in_quotes() -> None:
    source = replace(SOURCE, columns=(*SOURCE.columns, Column("name", "string")))
    records = read('id,x,name\n\n1,0,"two\nlines"\n\n2,0,b\n', source)
    assert [(record.line, record.values) for record in records] == [
        (3, (1, 0.0, "two\nlines")),
        (6, (2, 0.0, "b")),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_records__takes_every_line_end(end: str) -> None:
    assert [record.values for record in read(end.join(["id,x", "1,0", "2,1"]))] == [(1, 0.0), (2, 1.0)]


def test_records__keeps_to_the_range_with_both_ends() -> None:
    records = read("id,x\n1,-1\n2,1\n3,1.0000001\n4,-2\n")
    assert [record.reason for record in records] == [
        None,
        None,
        "x: above 1: '1.0000001'",
        "x: below -1: '-2'",
    ]


def test_records__keeps_to_the_values_allowed() -> None:
    source = replace(SOURCE, columns=(*SOURCE.columns, Column("kind", "string", values=("NDB", "VOR"))))
    records = read("id,x,kind\n1,0,VOR\n2,0,\n3,0,vor\n", source)
    assert [record.reason for record in records] == [None, None, "kind: not one of NDB, VOR: 'vor'"]


def test_kind_of__drops_the_value_and_nothing_else() -> None:
    for value in ("'", '"', "it's: 'so'", "a: 'b", "line\nbreak\u2028", "", "\ud800"):
        assert kind_of(refusal("x: not a number", value)) == "x: not a number"
    assert kind_of(refusal("x: missing")) == "x: missing"


def test_kind_of__is_one_for_bad_records_that_differ_in_their_values() -> None:
    source = replace(SOURCE, columns=(*SOURCE.columns, Column("t", "timestamp"), Column("when", "date")))
    cells = [
        ["9" * 30, "a'b", '"c""d"'],
        ["7", "nan", "'", "-8.5"],
        ["yes", "0001-01-01T00:00:00+12:00"],
        ["?", "-"],
    ]
    good = ["1", "0", "", ""]
    lines = [
        ",".join([*good[:place], cell + suffix if cell[0] != '"' else cell, *good[place + 1 :]])
        for place, bad in enumerate(cells)
        for cell in bad
        for suffix in ("", "0")
    ]
    lines += ["1", "1,2", "1,2,3,4,5", '"1"1,0,,', '1,"0"1,,']
    kinds = {
        kind_of(record.reason or "") for record in read("id,x,t,when\n" + "\n".join(lines) + "\n", source)
    }
    assert kinds == {
        "id: not a 64-bit integer",
        "x: above 1",
        "x: below -1",
        "x: not a number",
        "x: not finite",
        "t: not an ISO timestamp",
        "t: out of range",
        "when: not an ISO date",
        "not as many fields as the header has",
        "not CSV: text after the end of a quoted field",
    }


def test_records__shows_column_names_that_are_not_utf_8() -> None:
    records = open_records(io.BytesIO(b"id,x,\xff\n1,0,a\n"), "tiny.csv", SOURCE)
    assert [record.values for record in records] == [(1, 0.0)]
    assert records.found_columns == ["id", "x", "\\xff"]
    with pytest.raises(DataRefusedError, match=r"the file has id, \\xff$"):
        read(b"id,\xff\n1,a\n")
    records = open_records(
        io.BytesIO(b'{"id": 1, "x": 0, "\\ud800": 1}'), "a.json", replace(SOURCE, format="json")
    )
    assert [record.values for record in records] == [(1, 0.0)]
    assert records.found_columns == ["id", "x", "\\ud800"]


def test_records__a_malformed_quote_costs_one_row() -> None:
    records = read('id,x\n1,0\n2,"0"1\n3,0\n')
    assert [record.values is None for record in records] == [False, True, False]
    assert records[1].raw == '2,"0"1'


def test_records__an_endless_field_is_a_broken_file() -> None:
    with pytest.raises(DataRefusedError, match="line 3: a quoted field begins here and does not end"):
        read('id,x\n1,0\n2,"' + "9,0\n" * 1000)


@pytest.mark.parametrize("quote", ["", '"'])
def test_records__a_field_beyond_the_limit_is_a_broken_file(
    quote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_LINE", 5000)
    source = replace(SOURCE, columns=(*SOURCE.columns, Column("name", "string")))
    assert read(f"id,x,name\n1,0,{quote}{'a' * 4990}{quote}\n", source)[0].values is not None
    half = "a" * 2500
    sentence = "line 3: the record that begins here is longer than 5,000 characters; is a quote missing"
    if not quote:
        half, sentence = (
            "a" * 5001,
            "line 3: a field longer than 5,000 characters begins here; is a quote missing?",
        )
    with pytest.raises(DataRefusedError, match=sentence):
        read(f"id,x,name\n1,0,a\n1,0,{quote}{half}\n{half}{quote}\n", source)


def test_key_id__differs_wherever_the_typed_keys_differ() -> None:
    source = replace(SOURCE, columns=(Column("a", "string"), Column("b", "string"), Column("c", "integer")))
    source = replace(source, key=("a", "b", "c"))
    keys = [("1", "11", 1), ("11", "1", 1), ("1", "1", 11), ("1|1", "1", 1), ("1", "1|1", 1), ("", "11", 1)]
    assert len({key_id(source, values) for values in keys}) == len(keys)
    assert key_id(source, ("1", None, 1)) == "b: missing key"


def test_key_id__is_that_of_the_value_however_it_is_written() -> None:
    """As the tables store it: of a time without an offset it is UTC."""
    source = replace(SOURCE, columns=(Column("k", "timestamp"), Column("x", "number")), key=("k", "x"))
    one = datetime(2023, 1, 1)
    same = [one, one.replace(tzinfo=UTC), datetime(2023, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))]
    assert len({key_id(source, (at, zero)) for at in same for zero in (0.0, -0.0)}) == 1
    assert key_id(source, (one.replace(hour=1), 0.0)) != key_id(source, (one, 0.0))
    of_nanoseconds = from_value(source.columns[0], pandas.Timestamp("2023-01-01T00:00:00.000000999"))
    assert key_id(source, (of_nanoseconds, 0.0)) == key_id(source, (one, 0.0))


def test_key_id__keeps_minus_one_for_noise() -> None:
    assert key_id(SOURCE, (-1, 0.0)) == "id: -1 is kept for noise: '-1'"
    assert key_id(SOURCE, (-2, 0.0)) == -2


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_records__refuses_a_line_that_is_too_long(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    data = end.join(["id,x", "1,0.5", "2," + "0" * 35_000, "3,1", "4,1", ""])  # of two pieces
    monkeypatch.setattr(bounds, "PIECE", 1 << 15)
    monkeypatch.setattr(bounds, "MAX_LINE", 35_002)
    assert [record.line for record in read(data)] == [2, 3, 4, 5]
    monkeypatch.setattr(bounds, "MAX_LINE", 35_001)
    with pytest.raises(
        DataRefusedError, match=r"a line is longer than 35,001 bytes, near byte [\d,]+; every record"
    ):
        read(data)


def test_records__refuses_a_file_that_becomes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(b"id,x\n" + b"1,0\n" * 60_000)
    assert len(bomb) * 100 < 100_000
    assert len(read(bomb, name="bomb.csv.gz")) == 60_000, "a small one does no harm"
    monkeypatch.setattr(bounds, "FREE_EXPANSION", 1 << 16)
    monkeypatch.setattr(bounds, "MAX_EXPANSION", 100)
    with pytest.raises(DataRefusedError, match=r"bomb.csv.gz: [\d,]+ bytes became [\d,]+, over 100 times"):
        read(bomb, name="bomb.csv.gz")


def test_records__takes_a_header_name_that_ends_with_its_line() -> None:
    (record,) = read('id,"x\n"\n1,0.5\n')
    assert record.values == (1, 0.5)


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_records__refuses_a_coordinate_beyond_2_to_the_53(number: int, kind: str) -> None:
    source = replace(SOURCE, columns=(SOURCE.columns[0], Column("x", "integer")), format=kind)
    rows = [(number, number - 1 if number > 0 else number + 1)]
    text = {
        "csv": "id,x\n"
        + "".join(f"{key},{x}\n" for row in rows for key, x in ((number, row[0]), (2, row[1]))),
        "json": "".join(f'{{"id": {number}, "x": {x}}}\n' for row in rows for x in row),
    }[kind]
    bad, good = read(text, source)
    assert bad.reason == f"x: beyond 2**53, where float64 leaves numbers out: '{number}'"
    assert good.values is not None, "a key may be any integer"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_records__refuses_a_record_of_endless_lines(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    fields = ",".join(f'"{end}"' for _ in range(2000))  # every line, and every field, is short
    data = f"id,x{end}1,0{end}2,{fields}{end}3,1{end}"
    assert [record.reason is None for record in read(data)] == [True, False, True]
    monkeypatch.setattr(bounds, "MAX_LINE", 5000)
    with pytest.raises(DataRefusedError, match="line 3: the record that begins here is longer than 5,000"):
        read(data)


def test_records__refuses_endless_names_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_NAMES", 1000)
    refused = "tiny.csv: the names of its columns have more than 1,000 characters together"
    with pytest.raises(DataRefusedError, match=refused):
        read("id,x," + ",".join(f"c{i}" for i in range(300)) + "\n")
    lines = "".join(f'{{"id": {i}, "x": 0, "name_{i}": 0}}\n' for i in range(200))
    with pytest.raises(DataRefusedError, match=refused):
        read(lines, replace(SOURCE, format="json"))


def test_records__names_of_columns_forge_no_line_and_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataRefusedError, match="columns 'id', 'x' are missing") as caught:
        read(
            '"x\ningest: done in 1.0 s","\x1b[2J\u202e",' + ",".join("name" for _ in range(9000)) + "\n1,2\n"
        )
    said = str(caught.value)
    assert said.isprintable()
    assert r"x\ningest: done in 1.0 s, \x1b[2J\u202e, name, name" in said
    assert len(said) < MAX_MESSAGE + 50
    assert said.endswith("characters)")


@pytest.mark.parametrize("text", ["id,x\n1,0\n2", "id,x,name\n1,0,a\n2,0", 'id,x\r1,0\r"2"'])
def test_records__refuses_a_csv_file_that_ends_within_a_record(text: str) -> None:
    with pytest.raises(DataRefusedError, match=r"line 3: the file ends within this record \(. of . fields"):
        read(text)
    assert [record.reason is None for record in read(text + "\n")] == [True, False], "a bad row, no more"


def test_records__a_last_line_of_all_fields_or_of_blanks_is_not_cut_off() -> None:
    assert [record.reason for record in read("id,x\n1,0\n2,0")] == [None, None]
    assert [record.reason is None for record in read("id,x\n1,0\n  ")] == [True, False]


@pytest.mark.parametrize("kind", ["number", "integer", "boolean", "date", "timestamp"])
def test_records__blanks_are_no_value_except_in_a_text(kind: str) -> None:
    assert typed(kind, "  ") is None
    assert typed(kind, '"  "', as_json=True) is None
    assert typed("string", "  ") == "  "


def test_records__a_text_may_stand_for_no_value_where_the_column_is_no_text() -> None:
    columns = (*SOURCE.columns, Column("n", "number"), Column("land", "string"))
    source = replace(SOURCE, columns=columns, missing=("NA", "nan"))
    records = read("id,x,n,land\n1,0, NA ,NA\n2,0,nan,nan\n3,0,N/A,\n", source)
    assert [record.values and record.values[2:] for record in records] == [(None, "NA"), (None, "nan"), None]
    parquet = stored(pa.table({"id": [1], "x": [0.0], "n": [float("nan")], "land": ["NA"]}))
    (record,) = read(parquet, replace(source, format="parquet"), "a.parquet")
    assert record.values == (1, 0.0, None, "NA")


@pytest.mark.parametrize(("text", "value"), [("0e-999", 0.0), ("-0.0", 0.0), ("1e-320", 1e-320)])
def test_records__a_number_is_0_only_where_its_text_says_so(text: str, value: float) -> None:
    assert typed("number", text) == typed("number", text, as_json=True) == value
    assert typed("number", "1e-400") == "v: too close to 0 for a float64: '1e-400'"
    assert typed("number", "1e-400", as_json=True) == "v: not of type number: '1e-400'"


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_records__a_part_may_have_columns_and_no_record(kind: str) -> None:
    """So Spark writes them; JSON without a record has no columns, and its file nothing in it."""
    table = pa.table({"id": pa.array([], pa.int64()), "x": pa.array([], pa.float64())})
    data = {"csv": b"id,x\n", "json": b"", "parquet": stored(table)}[kind]
    source = replace(SOURCE, format=kind)
    with pytest.raises(
        DataRefusedError, match="a header but no record" if kind != "json" else "nothing in it"
    ):
        list(open_records(io.BytesIO(data), "a", source))
    assert list(open_records(io.BytesIO(data), "a", source, may_be_empty=True)) == []
    batches = open_batches(io.BytesIO(data), "a", source, may_be_empty=True)
    assert sum(batch.n_records for batch in batches) == 0


@pytest.mark.parametrize("row", ["0,-0.0", "1.3e154,1.3e154", "1e200,1", "1e-160,0", "1e150,0"])
def test_records__of_vectors_without_a_length_that_can_be_measured_have_no_direction(row: str) -> None:
    """Squares that are finite may add up to what is not."""
    columns = (Column("id", "integer"), Column("x", "number"), Column("y", "number"))
    source = replace(SOURCE, columns=columns, key=("id",), coordinates=("x", "y"), metric="cosine")
    content = f"id,x,y\n1,1e149,0\n2,{row}\n3,1e-149,0\n".encode()
    found = list(open_records(io.BytesIO(content), "a.csv", source))
    reason = "cosine needs coordinates with a length from 1e-149 to 1e149"
    assert [record.reason for record in found] == [None, reason, None]
