"""Delimiters of CSV: the contract's, one that a header shows instead, and one that is guessed."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from pathlib import Path

import pytest

from epsjoin.contracts.odcs import Column
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.source import guess_delimiter
from epsjoin.source.batches import open_batches
from epsjoin.source.delimiters import parse_delimiter
from epsjoin.source.guess_delimiter import choose_delimiter
from epsjoin.source.records import Record, open_records
from tests.source.tiny_source import SOURCE, read

NAMED = replace(SOURCE, columns=(*SOURCE.columns, Column("name", "string")))


def by(delimiter: str, content: str, name: str = "tiny.csv") -> list[Record]:
    source = replace(NAMED, delimiter=delimiter)
    data = gzip.compress(content.encode()) if name.endswith("gz") else content.encode()
    return read(data, source, name)


@pytest.mark.parametrize("name", ["tiny.csv", "tiny.csv.gz"])
@pytest.mark.parametrize("delimiter", [";", "\t", "|", "^", "~", "#", "$"])
def test_records__a_quoted_field_may_have_the_delimiter_in_it(delimiter: str, name: str) -> None:
    lines = [["name", "id", "x"], [f'"a{delimiter}b"', "1", "0.5"], ["a,b", "2", ""], ["a", "3"]]
    good, missing, short = by(delimiter, "\n".join(map(delimiter.join, lines)) + "\n", name)
    assert good.values == (1, 0.5, f"a{delimiter}b")
    assert (missing.raw, missing.reason) == (f"a,b{delimiter}2{delimiter}", "x: missing")
    assert (short.raw, short.reason) == (f"a{delimiter}3", "not as many fields as the header has: '2, not 3'")


def test_records__a_decimal_comma_is_no_number() -> None:
    (record,) = by(";", "id;x;name\n1;0,5;a\n")
    assert (record.reason, record.raw) == ("x: not a number: '0,5'", "1;0,5;a")


SAID = "its fields seem to be separated by"


@pytest.mark.parametrize(
    ("delimiter", "content", "sentence"),
    [
        (
            ",",
            "id;x;name\n1;0;a\n",
            f"columns 'id', 'x', 'name' are missing; the file has id;x;name; {SAID} ';', "
            "and the delimiter is ','",
        ),
        (
            ",",
            '"id";"x";"name"\n1;0;a\n',
            f"line 1: the header is not CSV: ',' expected after '\"'; {SAID} ';', and the delimiter is ','",
        ),
        (",", "id;x;a, b;name\n1;0;a;b\n", f"the file has id;x;a,  b;name; {SAID} ';', and the delimiter"),
        (",", '"id"\t"x"\t"name"\r\n1\t0\ta\r\n', f"{SAID} tabs, and the delimiter is ','"),
        (",", "\ufeffid|x|name\n1|0|a\n", f"the file has id|x|name; {SAID} '|', and the delimiter is ','"),
        (";", "id,x,name\n1,0,a\n", f"the file has id,x,name; {SAID} ',', and the delimiter is ';'"),
        (";", '"id","x","name"\n1,0,a\n', f"';' expected after '\"'; {SAID} ',', and the delimiter is ';'"),
        ("\t", "id;x;name\n1;0;a\n", f"{SAID} ';', and the delimiter is a tab"),
        ("^", "id\tx\tname\n1\t0\ta\n", f"{SAID} tabs, and the delimiter is '^'"),
        (",", "ids;\u2028;x\n1;;0\n", f"{SAID} ';', and the delimiter is ','"),
        (",", 'id;x;"the name"\n1;0;a\n', f"{SAID} ';', and the delimiter is ','"),
    ],
)
def test_records__a_header_by_another_delimiter_is_said_to_be_so(
    delimiter: str, content: str, sentence: str
) -> None:
    """By both ways, in the same words."""
    with pytest.raises(DataRefusedError) as refused:
        by(delimiter, content)
    assert sentence in str(refused.value)
    source = replace(NAMED, delimiter=delimiter)
    with pytest.raises(DataRefusedError) as again:
        list(open_batches(io.BytesIO(content.encode()), "tiny.csv", source))
    assert str(again.value) == str(refused.value)


@pytest.mark.parametrize(
    "content", ["ids;xs\n1;0\n", "id,x\n1,0\n", 'id,"x"y,name\n1,0,a\n', "id,x;y,names\n1,0,a\n"]
)
def test_records__no_other_delimiter_is_named_where_it_has_no_column_that_is_missing(content: str) -> None:
    with pytest.raises(DataRefusedError) as refused:
        by(",", content)
    assert "separated" not in str(refused.value)


@pytest.mark.parametrize("rest", ["2\t0", "2\t", "\t"])
def test_records__a_file_by_tabs_that_ends_within_a_record_is_cut_off(rest: str) -> None:
    with pytest.raises(DataRefusedError, match=r"line 3: the file ends within this record \(2 of 3 fields"):
        by("\t", f"id\tx\tname\n1\t0\ta\n{rest}")


def test_records__a_last_line_of_blanks_is_not_cut_off() -> None:
    assert [record.reason is None for record in by("\t", "id\tx\tname\n1\t0\ta\n   ")] == [True, False]


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("id;x\n1;0.5\n", ";"),
        ("id;x;y\n1;1,5;2,5\n", ";"),
        ("id\tx\n1\t0.5\n2\t\n", "\t"),
        ("id|x\r\n1|0.5\r\n", "|"),
        ('"id";"a;b"\n"1";"x;y"\n2;"two\nlines"\n', ";"),
        ("name, unit;x\na;1\nb;2\n", ";"),
        ("\ufeffid;x\n\n1;0.5\n", ";"),
        ("id;x\n1;\udcdf\n2;\udcdf\n", ";"),  # so is what is not UTF-8
        ("id;x\n1;2\n3", ";"),  # what is cut off is for the reader to say
        # the comma where it could be the delimiter
        ("id,x\n1,2\n", ","),
        ("id;x,y\n1;2,3\n", ","),
        ("id,x;y\n1,2\n1,2;3\n", ","),
        ("id;x,y\n1;2,3\n4;5\n", ","),
        ("id;x,y\n1;\udcdf,3\n", ","),
        # the header alone
        ("id;x\n", ";"),
        ('"id";"x,y"\n', ";"),
        ("id;x\n1", ";"),
        ("id;x,y\n", ","),
        ("id;x|y\n", ","),
        # no delimiter, or none that is certain
        ("x\n1\n", ","),
        ("x\n", ","),
        ("", ","),
        ("id;x\n1;2\n1;2;3\n", ","),
        ("id;x|y\n1;2|3\n", ","),
        ("id^x\n1^2\n", ","),
    ],
)
def test_choose_delimiter__is_the_only_one_that_the_first_records_allow(
    tmp_path: Path, content: str, delimiter: str
) -> None:
    data = content.encode(errors="surrogateescape")
    (tmp_path / "a.csv").write_bytes(data)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(data))
    for name in ("a.csv", "a.csv.gz"):
        assert choose_delimiter(tmp_path / name, "csv") == delimiter
        assert choose_delimiter(tmp_path / name, "csv", "#") == "#"


def test_choose_delimiter__looks_at_the_first_records_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id;x\n" + "1;2\n" * 100 + "1;2;3\n")
    assert choose_delimiter(file, "csv") == ";"
    file.write_text("id;x\n" + "1;2\n" * 99 + "1;2;3\n")
    assert choose_delimiter(file, "csv") == ","
    monkeypatch.setattr(guess_delimiter, "MAX_CHARACTERS", 30)
    assert choose_delimiter(file, "csv") == ";"


def test_choose_delimiter__leaves_a_file_that_cannot_be_read_to_its_reader(tmp_path: Path) -> None:
    file = tmp_path / "a.csv.gz"
    file.write_bytes(gzip.compress(b"id;x\n1;2\n")[:-9])
    assert choose_delimiter(file, "csv") == ","
    with file.open("rb") as stream, pytest.raises(DataRefusedError, match="broken gzip after 0 records"):
        list(open_records(stream, file.name, SOURCE))


def test_choose_delimiter__is_for_csv_and_a_file_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    assert choose_delimiter(file, "json") == ","
    with pytest.raises(ArgumentError, match="--delimiter is for CSV, not for .*a.jsonl"):
        choose_delimiter(file, "json", ";")
    with pytest.raises(FileNotFoundError):
        choose_delimiter(tmp_path / "gone.csv", "csv")


def test_parse_delimiter__takes_what_a_contract_takes_and_a_word_for_the_tab() -> None:
    assert [parse_delimiter(text) for text in (";", "tab", "\t", ",", None)] == [";", "\t", "\t", ",", None]
    for text in ("", ";;", "\\t", '"', "1", "x", "-", "."):
        with pytest.raises(ArgumentError, match="--delimiter must be one of ',', ';', '|', tab, .* not"):
            parse_delimiter(text)
