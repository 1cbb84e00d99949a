"""Blocks of JSON lines as typed columns, by pyarrow; :mod:`epsjoin.source.json_` is the definition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from epsjoin.contracts.conditions import SOURCE_TYPES
from epsjoin.contracts.odcs import Column
from epsjoin.contracts.source_columns import TIMES
from epsjoin.contracts.sources import SourceContract
from epsjoin.source.blocks import Blocks, OpenSection, count_signs, find_bad, is_utf8, rows_at
from epsjoin.source.bounds import open_pieces
from epsjoin.source.json_ import Line, Objects, require_keys
from epsjoin.source.lists import Splitter, spread_columns
from epsjoin.source.rules import Flags, Ints, may_be_tiny, type_once, typed_schema
from epsjoin.source.untyped import Block, FoundColumns, UntypedRecord
from epsjoin.source.values import from_value

MAX_FAULTS = 64
"""Number of times that pyarrow may give up within a block; the definition reads what is left of it then."""

_MAX_BRACKETS = 100
"""Number of brackets in a line up to which neither reader gives up, however they are nested."""

_LF, _CR, _OPEN, _CLOSE, _ARRAY = b"\n\r{}["
_BLANKS = np.frombuffer(b" \t\n\r\x0b\x0c", np.uint8)
_NO_NUMBER = re.compile(rb"(Inf|-NaN)(?=[\s,\]}])")
"""A number that pyarrow takes, but no JSON has."""

_MAX_DIGITS = 4300
_MANY_DIGITS = re.compile(b"[0-9]{%d}" % _MAX_DIGITS)
"""An integer that Python refuses as too long."""

_ROW = re.compile(r" in row (\d+)$")


def read_json_blocks(
    stream: IO[bytes],
    name: str,
    source: SourceContract,
    columns: FoundColumns,
    section: OpenSection | None = None,
) -> Iterator[Block | Iterator[UntypedRecord]]:
    """Yield a file of JSON lines as blocks, and as records by the definition where there is no block.

    The first record goes to the definition, and so do all records of a block in which a new key comes.

    Parameters
    ----------
    stream, name, source, columns : see :func:`epsjoin.source.json_.read_json`.
    section : says that the stream is a section of the file, whose other sections may have other keys.
    """
    blocks = Blocks(open_pieces(stream, name), section.line if section else 1)
    objects = Objects(name, source, columns, is_start=blocks.line == 1)
    while data := blocks.take():
        lines = _lay_out(data, blocks.line)
        blocks.line += count_signs(data, _LF)
        if not objects.n_records and len(lines):
            yield objects.read(lines.take([0]))
            lines = lines.without_first()
        if len(lines):
            yield _to_block(lines, source, objects)
    if blocks.has_only_lines:
        yield objects.read(enumerate(blocks.rest(), blocks.line))
    if section is None:
        require_keys(source, columns)


class _Lines(NamedTuple):
    """Lines that are not blank: where each begins and ends in the data, its line end included; its number."""

    data: bytes
    begins: Ints
    ends: Ints
    numbers: Ints

    def __len__(self) -> int:
        return len(self.begins)

    def take(self, rows: Ints | list[int]) -> Iterator[Line]:
        begins, ends, numbers = (each[rows].tolist() for each in (self.begins, self.ends, self.numbers))
        for begin, end, number in zip(begins, ends, numbers, strict=True):
            yield number, self.data[begin:end]

    def without_first(self) -> _Lines:
        return _Lines(self.data, self.begins[1:], self.ends[1:], self.numbers[1:])


def _lay_out(data: bytes, line: int) -> _Lines:
    signs = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(signs == _LF) + 1
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    begins = np.concatenate([[0], ends[:-1]])
    is_blank = np.isin(signs[begins], _BLANKS)
    for row in np.flatnonzero(is_blank).tolist():
        is_blank[row] = not data[begins[row] : ends[row]].strip()
    kept = np.flatnonzero(~is_blank)
    return _Lines(data, begins[kept], ends[kept], line + kept)


def _find_odd(lines: _Lines) -> Flags:
    """Which lines are not one object each, or may be taken by pyarrow for what they are not.

    A line break is in no text of JSON, so a line that begins and ends with a brace holds whole objects, if
    those before it and behind it do; of several in one line, pyarrow makes several rows, which are counted.
    """
    data, begins, ends, _ = lines
    signs = np.frombuffer(data, np.uint8)
    last = ends - 1
    last -= signs[last] == _LF
    last -= signs[last] == _CR
    odd: Flags = (signs[begins] != _OPEN) | (signs[last] != _CLOSE)
    if not is_utf8(data):
        odd |= find_bad(data, begins, ends)
    if b"\0" in data:
        odd[rows_at(np.flatnonzero(signs == 0), begins)] = True
    if b"Inf" in data or b"-NaN" in data:
        odd[rows_at(_find_all(_NO_NUMBER, data), begins)] = True
    if len(lines) and (ends - begins).max() > _MAX_DIGITS:
        odd[rows_at(_find_all(_MANY_DIGITS, data), begins)] = True
    if count_signs(data, _OPEN) + count_signs(data, _ARRAY) > len(lines) + _MAX_BRACKETS:
        brackets = np.flatnonzero((signs == _OPEN) | (signs == _ARRAY))
        odd |= np.searchsorted(brackets, ends) - np.searchsorted(brackets, begins) > _MAX_BRACKETS
    return odd


def _find_all(pattern: re.Pattern[bytes], data: bytes) -> Ints:
    return np.array([found.start() for found in pattern.finditer(data)], np.int64)


def _to_block(lines: _Lines, source: SourceContract, objects: Objects) -> Block:
    odd = _find_odd(lines)
    values = []
    names = Splitter(source).names
    may_have_tiny = may_be_tiny(lines.data)
    for rows, table in _parse(lines, odd, source, objects.keys):
        found = {name: table[name].combine_chunks() for name in names if name in table.schema.names}
        by_name, is_odd = spread_columns(source.columns, found, len(table))
        typed = [
            _type(source, column, by_name.get(column.name, pa.nulls(len(table))), may_have_tiny)
            for column in source.columns
        ]
        is_odd = np.logical_or.reduce([is_odd, *(flags for _, flags in typed)])
        odd[rows[is_odd]] = True
        good = pa.table([array for array, _ in typed], schema=typed_schema(source))
        values.append(good.filter(pa.array(~is_odd)) if is_odd.any() else good)

    def read_again(rows: Ints) -> Iterator[UntypedRecord]:
        return objects.read(lines.take(rows))

    return Block(odd, pa.concat_tables([typed_schema(source).empty_table(), *values]), read_again)


def _parse(
    lines: _Lines, odd: Flags, source: SourceContract, keys: set[str]
) -> Iterator[tuple[Ints, pa.Table]]:
    """The lines that are not odd as rows of pyarrow, part by part; lines at which it gives up become odd."""
    data = bytearray(lines.data)
    for row in np.flatnonzero(odd).tolist():
        data[lines.begins[row] : lines.ends[row]] = b" " * int(lines.ends[row] - lines.begins[row])
    types = {"number": pa.float64(), "integer": pa.int64(), "boolean": pa.bool_()}
    wanted = [column for column in source.columns if column.in_file in keys]
    fields = {
        column.in_file: kind if column.item is None else pa.list_(kind)
        for column, kind in ((column, types.get(column.type, pa.string())) for column in wanted)
    }
    schema = pa.schema(fields.items())
    how = pj.ReadOptions(use_threads=False, block_size=1 << 30), pj.ParseOptions(schema)
    whole = pa.py_buffer(data)
    todo = [np.flatnonzero(~odd)]
    n_faults = 0
    while todo:
        rows = todo.pop()
        if not rows.size:
            continue
        begin, end = int(lines.begins[rows[0]]), int(lines.ends[rows[-1]])
        fault = None
        try:
            table = pj.read_json(pa.BufferReader(whole.slice(begin, end - begin)), *how)
        except pa.ArrowInvalid as error:
            fault = _ROW.search(str(error))
        else:
            if len(table) == len(rows) and keys.issuperset(table.schema.names):
                yield rows, table
                continue
            if len(table) == len(rows):
                n_faults = MAX_FAULTS  # a new key, whose place among the others the definition finds
        n_faults += 1
        if n_faults > MAX_FAULTS or len(rows) == 1:
            odd[rows] = True
        elif fault and int(fault[1]) < len(rows):
            cut = int(fault[1])
            odd[rows[cut]] = True
            todo += [rows[cut + 1 :], rows[:cut]]
        else:
            todo += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]


def _type(
    source: SourceContract, column: Column, values: pa.Array, may_have_tiny: bool
) -> tuple[pa.Array, Flags]:
    """The typed values of a column, and which of them are odd."""
    odd = np.zeros(len(values), bool)
    if pa.types.is_null(values.type):
        return values.cast(SOURCE_TYPES[column.type]), odd
    if column.type == "string":
        return pc.if_else(pc.equal(values, ""), None, values), odd
    if column.type in TIMES:
        return type_once(source, column, values, from_value)
    if column.type == "number":
        numbers = values.fill_null(1.0).to_numpy(zero_copy_only=False)
        is_zero = numbers == 0
        odd = is_zero & (np.signbit(numbers) | may_have_tiny)  # -0 is the integer 0, -0.0 is not
    return values, odd
