"""Blocks of a CSV file as typed columns, by pyarrow; :mod:`epsjoin.source.csv_` is the definition."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
from numpy.typing import NDArray

from epsjoin.contracts.conditions import SOURCE_TYPES
from epsjoin.contracts.odcs import Column
from epsjoin.contracts.source_columns import TIMES
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source.blocks import Blocks, OpenSection, are_at_ends, count_signs, find_bad, is_utf8
from epsjoin.source.bounds import BYTE_ORDER_MARK, open_pieces
from epsjoin.source.csv_ import Line, read_header, split_records
from epsjoin.source.rules import Flags, Ints, may_be_tiny, type_once, typed_schema
from epsjoin.source.untyped import Block, FoundColumns, UntypedRecord
from epsjoin.source.values import DECIMAL, from_text

Bytes = NDArray[np.uint8]

_QUOTE, _LF, _CR = b'"\n\r'
_BLANKS = " \t"
"""Blanks around a value that pyarrow passes over; other blanks are odd."""

_IN_CACHE = 1 << 20
"""Bytes that pyarrow types at once: larger pieces take a third more CPU; longer lines go by texts."""

_NUMBER = f"^{DECIMAL}$"
_INTEGER = r"^[+-]?[0-9]{1,18}$"
_NOT_ZERO = r"^[^eE]*[1-9]"


def read_csv_blocks(
    stream: IO[bytes],
    name: str,
    source: SourceContract,
    columns: FoundColumns,
    section: OpenSection | None = None,
) -> Iterator[Block | Iterator[UntypedRecord]]:
    """Yield a CSV file as blocks, and as records by the definition where there is no block.

    There is no block where the end of a record is in doubt, that is where a quote stands elsewhere than at an
    end of a field, and where there are bytes that no CSV file should have.

    Parameters
    ----------
    stream, name, source, columns : see :func:`epsjoin.source.csv_.read_csv`.
    section : says that the stream is a section of the file; then all of it must be blocks.

    Raises
    ------
    DataRefusedError
        While it is read: see :func:`epsjoin.source.csv_.read_csv`; or there is a section that is not plain.
    """
    delimiter = source.delimiter
    blocks = Blocks(open_pieces(stream, name), section.line if section else 1)
    if section:
        data = blocks.take()
        if section.line == 1 and (blocks.has_only_lines or _lay_out(data, 1, delimiter) is None):
            raise _not_plain(name, 1)
        blocks.give_back(data)
    head = blocks if blocks.line == 1 or not section else Blocks(open_pieces(section.head, name))
    lines = head.lines()
    if not read_header(lines, name, source, columns):
        return
    if blocks.has_only_lines:
        yield split_records(lines, [], name, source, columns)
        return
    lines.close()  # the rest of its block is given back
    typing = _Typing(source, columns)
    while True:
        data = blocks.take()
        layout = None if blocks.has_only_lines else _lay_out(data, blocks.line, delimiter)
        if layout is None and section:
            raise _not_plain(name, blocks.line)
        if blocks.has_only_lines:
            yield split_records(blocks.lines(), [], name, source, columns)
            return
        if not data:
            return
        if layout is None:
            blocks.give_back(data)
            taken: list[Line] = []
            yield split_records(blocks.lines(taken), taken, name, source, columns)
            continue
        blocks.give_back(data[len(layout.data) :])
        blocks.line += layout.n_lines
        if block := typing.to_block(layout, name, columns):
            yield block


def _not_plain(name: str, line: int) -> DataRefusedError:
    return DataRefusedError(
        f"{name}: line {line}: it is not plain where records end; one task must read the file"
    )


@dataclass(frozen=True)
class _Layout:
    """Whole records whose ends are known.

    Parameters
    ----------
    data : their bytes, UTF-8 but for some rows if not ``is_utf8``.
    line : the number of the first line.
    delimiter : what stands between two fields.
    quotes : places of the quotes; of two, the first opens a field and the second closes it.
    """

    data: bytes
    line: int
    delimiter: str
    quotes: Ints
    is_utf8: bool

    @cached_property
    def n_lines(self) -> int:
        """Number of lines; the last one may have no end."""
        return count_signs(self.data, _LF) + (not self.data.endswith(b"\n"))

    @cached_property
    def bytes(self) -> Bytes:
        """The bytes as an array."""
        return np.frombuffer(self.data, np.uint8)

    @cached_property
    def may_mislead(self) -> bool:
        """Whether an integer may be hexadecimal, or have zeros without end before it; pyarrow takes both."""
        has_x = b"x" in self.data or b"X" in self.data
        return (has_x and (b"0x" in self.data or b"0X" in self.data)) or b"0" * 64 in self.data

    @cached_property
    def may_be_tiny(self) -> bool:
        """Whether a number may have become 0 though its text is another number."""
        return may_be_tiny(self.data)

    def is_quoted(self, places: Ints) -> Flags:
        """Whether each place is within quotes."""
        flags: Flags = np.searchsorted(self.quotes, places) % 2 == 1
        return flags

    @cached_property
    def records(self) -> tuple[Ints, Ints, Ints]:
        """Where each record begins and ends, its line end included, and its line; blank lines are none."""
        line_ends = np.flatnonzero(self.bytes == _LF) + 1
        ends = line_ends[~self.is_quoted(line_ends - 1)] if self.quotes.size else line_ends
        if not self.data.endswith(b"\n"):
            ends = np.append(ends, len(self.data))
        begins = np.concatenate([[0], ends[:-1]])
        lengths = ends - begins
        first = self.bytes[begins]
        is_blank = (first == _LF) | ((first == _CR) & (lengths <= 2))
        lines = self.line + np.searchsorted(line_ends, begins, "right")
        return begins[~is_blank], ends[~is_blank], lines[~is_blank]

    def n_fields(self) -> Ints:
        """Number of fields in each record."""
        between = np.flatnonzero(self.bytes == ord(self.delimiter))
        between = between[~self.is_quoted(between)] if self.quotes.size else between
        begins, ends, _ = self.records
        fields: Ints = np.searchsorted(between, ends) - np.searchsorted(between, begins) + 1
        return fields

    def is_bad(self) -> Flags:
        """Whether each record has bytes that are not UTF-8."""
        begins, ends, _ = self.records
        return np.zeros(len(begins), bool) if self.is_utf8 else find_bad(self.data, begins, ends)


def _lay_out(data: bytes, line: int, delimiter: str) -> _Layout | None:
    """Find where records end; ``None`` where that is not plain. A record that goes on is left out."""
    if b"\0" in data or (b"\r" in data and count_signs(data, _CR) != data.count(b"\r\n")):
        return None
    is_good = is_utf8(data)
    if b'"' not in data:
        return _Layout(data, line, delimiter, np.empty(0, np.int64), is_good)
    signs = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(signs == _QUOTE)
    if not are_at_ends(signs, quotes, False, delimiter):
        return None
    if quotes.size % 2 == 0:
        return _Layout(data, line, delimiter, quotes, is_good)
    end = data.rfind(b"\n", 0, int(quotes[-1])) + 1
    while end and np.searchsorted(quotes, end - 1) % 2:
        end = data.rfind(b"\n", 0, end - 1) + 1
    return _Layout(data[:end], line, delimiter, quotes[quotes < end], is_good) if end else None


class _Typing:
    """The columns of a file's contract, and how pyarrow is to read and to type them."""

    def __init__(self, source: SourceContract, columns: FoundColumns) -> None:
        self._source = source
        self._n_columns = len(columns.names)
        self._places = [str(place) for place in columns.places(source)]
        column_names = [str(i) for i in range(self._n_columns)]
        self._in_cache, self._at_once = (
            pcsv.ReadOptions(use_threads=False, block_size=size, column_names=column_names)
            for size in (_IN_CACHE, 1 << 30)
        )
        self._missing = [text for text in source.missing if text == text.strip()]
        self._numbers = {kind: list(_numbers_of(kind, self._missing)) for kind in ("integer", "number")}
        in_arrow = {"number": pa.float64(), "integer": pa.int64(), "boolean": pa.bool_()}
        types = [in_arrow.get(column.type, pa.string()) for column in source.columns]
        self._strict = pcsv.ConvertOptions(
            check_utf8=False,
            column_types=dict(zip(self._places, types, strict=True)),
            null_values=["", *self._missing],
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
            strings_can_be_null=False,
            include_columns=self._places,
        )
        self._as_texts = pcsv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(self._places, pa.string()),
            null_values=[],
            strings_can_be_null=False,
            include_columns=self._places,
        )

    def to_block(self, layout: _Layout, name: str, columns: FoundColumns) -> Block | None:
        """The records of a layout as a block; ``None`` where there is none, only blank lines."""

        def read_again(rows: Ints) -> Iterator[UntypedRecord]:
            begins, ends, lines = (each[rows].tolist() for each in layout.records)
            pieces = (layout.data[begin:end] for begin, end in zip(begins, ends, strict=True))
            numbered = itertools.chain.from_iterable(map(_lines_of, pieces, lines))
            return split_records(numbered, [], name, self._source, columns)

        table = self._try(layout) if layout.is_utf8 else None
        if table is not None:
            return Block(np.zeros(len(table), bool), table, read_again) if len(table) else None
        odd = (layout.n_fields() != self._n_columns) | layout.is_bad()
        begins, ends, _ = layout.records
        if not odd.size:
            return None
        good = np.flatnonzero(~odd)
        rows = zip(begins[good].tolist(), ends[good].tolist(), strict=True)
        data = b"".join(layout.data[begin:end] for begin, end in rows) if odd.any() else layout.data
        has_quotes = bool(layout.quotes.size)
        texts = self._parse(data, self._at_once, self._as_texts, has_quotes) if good.size else None
        typed = [
            self._type(column, texts[place].combine_chunks() if texts else pa.array([], pa.string()))
            for column, place in zip(self._source.columns, self._places, strict=True)
        ]
        is_odd = np.logical_or.reduce([flags for _, flags in typed])
        values = pa.table([array for array, _ in typed], schema=typed_schema(self._source))
        odd[good[is_odd]] = True
        return Block(odd, values.filter(pa.array(~is_odd)) if is_odd.any() else values, read_again)

    def _parse(
        self, data: bytes, read: pcsv.ReadOptions, how: pcsv.ConvertOptions, has_quotes: bool
    ) -> pa.Table:
        parse = pcsv.ParseOptions(
            delimiter=self._source.delimiter,
            quote_char='"' if has_quotes else False,
            newlines_in_values=has_quotes,
        )
        if data.startswith(BYTE_ORDER_MARK):  # pyarrow would drop it; it passes over the blank line
            data = b"\n" + data
        return pcsv.read_csv(pa.BufferReader(data), read, parse, how)

    def _try(self, layout: _Layout) -> pa.Table | None:
        """The typed values of all records; ``None`` where pyarrow and the definition may not agree."""
        try:
            found = self._parse(layout.data, self._in_cache, self._strict, bool(layout.quotes.size))
        except pa.ArrowInvalid:
            return None
        arrays = []
        for column, place in zip(self._source.columns, self._places, strict=True):
            values = found[place]
            if not self._agrees(column, values, layout):
                return None
            if column.type == "string":
                is_empty = pc.equal(values, "")
                values = pc.if_else(is_empty, None, values) if pc.any(is_empty).as_py() else values
            elif column.type in TIMES:
                values, odd = type_once(self._source, column, values.combine_chunks(), from_text)
                if odd.any():
                    return None
            arrays.append(values)
        return pa.table(arrays, schema=typed_schema(self._source)).combine_chunks()

    def _agrees(self, column: Column, values: pa.ChunkedArray, layout: _Layout) -> bool:
        """Whether each text that pyarrow took for a value is the same value to the definition."""
        if column.type == "boolean":
            return not any(text.lower() in ("true", "false") for text in self._missing)
        if column.type not in ("integer", "number"):
            return True
        if column.type == "integer" and layout.may_mislead:
            return False
        for number in self._numbers[column.type]:
            if pc.any(pc.equal(values, pa.scalar(number, values.type))).as_py():  # with blanks, or as 1.0
                return False
        has_zero = column.type == "number" and pc.any(pc.equal(values, 0.0)).as_py()
        return not (has_zero and layout.may_be_tiny)

    def _type(self, column: Column, texts: pa.Array) -> tuple[pa.Array, Flags]:
        """Texts of a column as typed values, and which of them are odd; those are null."""
        if column.type == "string":
            return pc.if_else(pc.equal(texts, ""), None, texts), np.zeros(len(texts), bool)
        if column.type in TIMES:
            return type_once(self._source, column, texts, from_text)
        trimmed = pc.ascii_trim(texts, _BLANKS)
        is_missing = pc.is_in(trimmed, pa.array(["", *self._missing]))
        if column.type == "boolean":
            lower = pc.ascii_lower(trimmed)
            fits, values = pc.is_in(lower, pa.array(["true", "false"])), pc.equal(lower, "true")
        else:
            fits = pc.match_substring_regex(trimmed, _NUMBER if column.type == "number" else _INTEGER)
            usable = pc.if_else(fits, pc.ascii_ltrim(trimmed, "+"), None)
            values = usable.cast(SOURCE_TYPES[column.type])
            if column.type == "number":
                is_tiny = pc.and_(pc.equal(values, 0.0), pc.match_substring_regex(trimmed, _NOT_ZERO))
                fits = pc.and_(fits, pc.invert(pc.fill_null(is_tiny, False)))
        odd: Flags = pc.invert(pc.or_(fits, is_missing)).to_numpy(zero_copy_only=False)
        return pc.if_else(pc.and_(fits, pc.invert(is_missing)), values, None), odd


def _lines_of(piece: bytes, line: int) -> Iterator[Line]:
    text = io.StringIO(piece.decode("utf-8", "surrogateescape"), newline="")
    return zip(itertools.count(line), text, strict=False)


def _numbers_of(kind: str, texts: list[str]) -> Iterator[Any]:
    """The numbers among texts that stand for a missing value."""
    for text in texts:
        with suppress(ValueError):
            yield from_text(Column("", kind), text)
