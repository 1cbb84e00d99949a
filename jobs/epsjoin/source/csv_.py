"""Records of a CSV file with a header."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import IO

from epsjoin.contracts.odcs import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source import bounds
from epsjoin.source.bounds import open_lines
from epsjoin.source.untyped import FoundColumns, UntypedRecord
from epsjoin.source.values import refusal


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
    # utf-8-sig drops a byte-order mark; surrogateescape keeps bad bytes, so a bad row costs one row
    text = io.TextIOWrapper(open_lines(stream, name), "utf-8-sig", errors="surrogateescape", newline="")
    csv.field_size_limit(bounds.MAX_LINE)
    taken: list[str] = []
    reader = csv.reader(_bounded_records(text, name, taken), strict=True)
    if not _read_header(reader, name, source, columns):
        return
    places = [columns.names.index(column.name) for column in source.columns]
    taken.clear()
    line = reader.line_num
    while True:
        begin = line + 1
        problem = None
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if fault := _fatal_fault(error):
                raise DataRefusedError(f"{name}: line {begin}: {fault}") from error
            fields, problem = [], refusal("not CSV: text after the end of a quoted field")
        else:
            if (
                len(fields) < len(columns.names)
                and taken
                and taken[-1].strip()
                and taken[-1][-1] not in "\r\n"
            ):
                raise DataRefusedError(
                    f"{name}: line {begin}: the file ends within this record ({len(fields)} of "
                    f"{len(columns.names)} fields and no line end); it seems to be cut off"
                )
            if len(fields) != len(columns.names):
                counts = f"{len(fields)}, not {len(columns.names)}"
                problem = refusal("not as many fields as the header has", counts)
        line = reader.line_num
        raw = "".join(taken)
        taken.clear()
        if problem is None and not raw.isascii() and _has_bad_bytes(raw):
            problem = refusal("not UTF-8")
        if problem is None:
            yield UntypedRecord(begin, _printable(raw), [fields[place] for place in places])
        elif fields or raw.strip():  # a blank line is no record
            yield UntypedRecord(begin, _printable(raw), None, problem)


def _bounded_records(text: Iterator[str], name: str, taken: list[str]) -> Iterator[str]:
    """The lines of a file, which are also put into ``taken``; whoever has read a record empties it.

    Raises
    ------
    DataRefusedError
        The lines in ``taken`` are longer than ``MAX_LINE``. Every field and every line may be short: a
        record may have many quoted fields with line breaks.
    """
    size = 0
    for number, line in enumerate(text, 1):
        size = len(line) if not taken else size + len(line)
        taken.append(line)
        if size > bounds.MAX_LINE and len(taken) > 1:
            begin = number - len(taken) + 1
            raise DataRefusedError(
                f"{name}: line {begin}: the record that begins here is longer than "
                f"{bounds.MAX_LINE:,} characters; is a quote missing?"
            )
        yield line


def _read_header(
    reader: Iterator[list[str]], name: str, source: SourceContract, columns: FoundColumns
) -> bool:
    """Whether there is a header; its names are added to the columns."""
    try:
        header = next(reader, None)
    except csv.Error as error:
        fault = _fatal_fault(error) or f"the header is not CSV: {error}"
        raise DataRefusedError(f"{name}: line 1: {fault}") from error
    if header is None:
        return False
    columns.add(_printable(column) for column in header)
    columns.require([column.name for column in source.columns])
    return True


def _fatal_fault(error: csv.Error) -> str | None:
    """The fault, if the reader cannot know where the next record begins."""
    if "field larger" in str(error):
        return f"a field longer than {bounds.MAX_LINE:,} characters begins here; is a quote missing?"
    return "a quoted field begins here and does not end" if "unexpected end" in str(error) else None


def _has_bad_bytes(text: str) -> bool:
    return any("\udc80" <= sign <= "\udcff" for sign in text)


def _printable(raw: str) -> str:
    return raw.rstrip("\r\n").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
