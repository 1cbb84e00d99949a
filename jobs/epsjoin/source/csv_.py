"""Records of a CSV file with a header."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from typing import IO

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source import bounds
from epsjoin.source.bounds import open_lines
from epsjoin.source.delimiters import Header
from epsjoin.source.reasons import NOT_UTF_8, refusal
from epsjoin.source.untyped import FoundColumns, UntypedRecord

Line = tuple[int, str]
"""The number of a line in its file, and the line with its end."""


def read_csv(
    stream: IO[bytes], name: str, source: SourceContract, columns: FoundColumns
) -> Iterator[UntypedRecord]:
    """Yield the records of a CSV file; their fields are texts.

    Parameters
    ----------
    stream, name : the file's bytes and its name; gzip if the name ends in .gz.
    source : the contract.
    columns : takes the names in the header.

    Raises
    ------
    DataRefusedError
        While it is read: it lacks a column, exceeds a bound, ends within a record, or it is unknown where the
        next record begins.
    """
    lines = decode_lines(open_lines(stream, name), "utf-8-sig")
    if read_header(lines, name, source, columns):
        yield from split_records(lines, [], name, source, columns)


def decode_lines(stream: IO[bytes], encoding: str = "utf-8", *, first: int = 1) -> Iterator[Line]:
    """The lines of a stream; the encoding ``utf-8-sig`` drops a byte-order mark.

    Bad bytes are kept, so a bad row costs one row.
    """
    text = io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline="")
    return zip(itertools.count(first), text, strict=False)


def split_records(
    lines: Iterator[Line], taken: list[Line], name: str, source: SourceContract, columns: FoundColumns
) -> Iterator[UntypedRecord]:
    """Yield the records in the lines below a header.

    Parameters
    ----------
    lines : the lines.
    taken : an empty list, which holds the lines of the record that is being read.
    name, source, columns : see :func:`read_csv`.

    Raises
    ------
    DataRefusedError
        See :func:`read_csv`.
    """
    csv.field_size_limit(bounds.MAX_LINE)
    reader = csv.reader(_bounded_records(lines, name, taken), delimiter=source.delimiter, strict=True)
    places = columns.places(source)
    while True:
        problem = None
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if fault := _fatal_fault(error):
                raise DataRefusedError(f"{name}: line {taken[0][0]}: {fault}") from error
            fields, problem = [], refusal("not CSV: text after the end of a quoted field")
        begin, raw = taken[0][0], "".join(line for _, line in taken)
        taken.clear()
        if problem is None and len(fields) != len(columns.names):
            has_begun = fields[1:] or raw.strip()  # a delimiter may be a blank
            if len(fields) < len(columns.names) and has_begun and raw[-1] not in "\r\n":
                raise DataRefusedError(
                    f"{name}: line {begin}: the file ends within this record ({len(fields)} of "
                    f"{len(columns.names)} fields and no line end); it seems to be cut off"
                )
            counts = f"{len(fields)}, not {len(columns.names)}"
            problem = refusal("not as many fields as the header has", counts)
        if problem is None and not raw.isascii() and _has_bad_bytes(raw):
            problem = refusal(NOT_UTF_8)
        if problem is None:
            yield UntypedRecord(begin, _printable(raw), [fields[place] for place in places])
        elif fields or raw.strip():  # a blank line is no record
            yield UntypedRecord(begin, _printable(raw), None, problem)


def _bounded_records(lines: Iterator[Line], name: str, taken: list[Line]) -> Iterator[str]:
    """The texts of lines, which are also put into ``taken``; whoever has read a record empties it.

    Raises
    ------
    DataRefusedError
        The lines in ``taken`` are longer than ``MAX_LINE``. Every field and every line may be short: a
        record may have many quoted fields with line breaks.
    """
    size = 0
    for number, line in lines:
        size = len(line) if not taken else size + len(line)
        taken.append((number, line))
        if size > bounds.MAX_LINE and len(taken) > 1:
            raise DataRefusedError(
                f"{name}: line {taken[0][0]}: the record that begins here is longer than "
                f"{bounds.MAX_LINE:,} characters; is a quote missing?"
            )
        yield line


def read_header(lines: Iterator[Line], name: str, source: SourceContract, columns: FoundColumns) -> bool:
    """Whether there is a header; its names are added to the columns, and its lines are taken.

    Raises
    ------
    DataRefusedError
        See :func:`read_csv`.
    """
    csv.field_size_limit(bounds.MAX_LINE)
    taken: list[Line] = []
    reader = csv.reader(_bounded_records(lines, name, taken), delimiter=source.delimiter, strict=True)
    try:
        names = next(reader, None)
    except csv.Error as error:
        remedy = _header(taken, source).remedy([column.in_file for column in source.columns])
        fault = _fatal_fault(error) or f"the header is not CSV: {error}{remedy}"
        raise DataRefusedError(f"{name}: line 1: {fault}") from error
    if names is None:
        return False
    if not names:
        raise DataRefusedError(f"{name}: line 1 is blank; the names of the columns must stand there")
    columns.add(_printable(column) for column in names)
    columns.require_all(source, _header(taken, source))
    return True


def _header(taken: list[Line], source: SourceContract) -> Header:
    return Header("".join(line for _, line in taken), source.delimiter)


def _fatal_fault(error: csv.Error) -> str | None:
    """The fault, if the reader cannot know where the next record begins."""
    if "field larger" in str(error):
        return f"a field longer than {bounds.MAX_LINE:,} characters begins here; is a quote missing?"
    return "a quoted field begins here and does not end" if "unexpected end" in str(error) else None


def _has_bad_bytes(text: str) -> bool:
    return any("\udc80" <= sign <= "\udcff" for sign in text)


def _printable(raw: str) -> str:
    return raw.rstrip("\r\n").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
