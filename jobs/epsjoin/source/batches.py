"""Typed records of a source file by the batch: column by column, and by the definition where that is needed.

There are two ways from bytes to values. :mod:`epsjoin.source.records` is the definition: one record at a
time, with a reason for each that is refused. Here a block of records becomes columns at once. Whatever is
unusual in a block goes to the definition: a row, the rows of a block, or the whole file. So both give the
same values, the same refused records and the same sentence; ``tests/source/both_ways.py`` compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source.blocks import OpenSection
from epsjoin.source.csv_columns import read_csv_blocks
from epsjoin.source.json_columns import read_json_blocks
from epsjoin.source.parquet_columns import read_parquet_blocks
from epsjoin.source.records import FORMATS, Record, in_batches, key_id, refuse_broken, to_records
from epsjoin.source.rules import Ints, is_read_by_columns, judge, key_ids, round_columns, typed_schema
from epsjoin.source.untyped import Block, FoundColumns, UntypedRecord

NOBODY: Ints = np.empty(0, np.int64)

BLOCKS = {"csv": read_csv_blocks, "json": read_json_blocks, "parquet": read_parquet_blocks}
"""Functions by a contract's ``format`` that split a file into blocks."""


class Aside(NamedTuple):
    """A record that was asked to be set aside: its place in the file, its id."""

    place: int
    id: int
    record: Record


@dataclass(frozen=True)
class Batch:
    """Records of a file that follow one another.

    Parameters
    ----------
    n_records : all of them.
    n_left_out : those that the contract's condition leaves out.
    places : numbers in the file of those that are taken, (m,) rising; 0 is the file's first record.
    ids : their ids, (m,); of a source without key their places.
    values : their values, (m,), in the contract's columns.
    refused : those that are refused, each with its reason, in the file's order.
    aside : those that are set aside instead of taken.
    """

    n_records: int
    n_left_out: int
    places: Ints
    ids: Ints
    values: pa.Table
    refused: list[Record]
    aside: list[Aside]


class Batches:
    """The records of one file, by the batch, to be iterated once; :func:`open_batches` makes it.

    Attributes
    ----------
    found_columns : names of the columns found in the file so far, in the file's order.

    Raises
    ------
    DataRefusedError
        While iterating; see :class:`epsjoin.source.records.Records`.
    """

    def __init__(
        self,
        blocks: Iterator[Block | Iterator[UntypedRecord]],
        name: str,
        source: SourceContract,
        columns: FoundColumns,
        *,
        may_be_empty: bool,
        aside: Ints | None,
    ) -> None:
        self.found_columns = columns.names
        self._blocks = blocks
        self._name = name
        self._source = source
        self._from_field = FORMATS[source.format][1]
        self._may_be_empty = may_be_empty
        self._aside = aside
        self._n = 0

    def __iter__(self) -> Iterator[Batch]:
        def n_records(batch: Batch) -> int:
            return batch.n_records

        file = self._name, self._source, self.found_columns
        return refuse_broken(self._read(), n_records, *file, may_be_empty=self._may_be_empty)

    def _read(self) -> Iterator[Batch]:
        for block in self._blocks:
            if isinstance(block, Block):
                yield from self._take(block)
            else:
                for records in in_batches(to_records(self._source, block, self._from_field)):
                    places = np.arange(self._n, self._n + len(records))
                    self._n += len(records)
                    yield self._by_definition(places, records)

    def _take(self, block: Block) -> Iterator[Batch]:
        """A batch of a block, whose odd rows and those to be set aside are read again by the definition.

        Raises
        ------
        DataRefusedError
            The last record is cut off; those before it are passed on first.
        """
        odd = block.odd.copy()
        places = np.arange(self._n, self._n + len(odd))
        self._n += len(odd)
        odd[self._asked(places) - places[:1]] = True
        typed = np.flatnonzero(~block.odd)
        rounded = round_columns(self._source, block.values)
        judged = judge(self._source, rounded, odd[typed])
        odd[typed] |= judged.odd
        is_taken = ~(judged.odd | judged.left_out)
        values = rounded if is_taken.all() else rounded.filter(pa.array(is_taken))
        taken = places[typed[is_taken]]
        ids = key_ids(self._source, values) if self._source.key else taken
        n_left_out = int(judged.left_out.sum())
        batch = Batch(len(odd), n_left_out, taken, ids, values, [], [])
        if not odd.any():
            yield batch
            return
        rows = np.flatnonzero(odd)
        records: list[Record] = []
        fault = None
        try:
            records.extend(to_records(self._source, block.read_again(rows), self._from_field))
        except DataRefusedError as error:
            fault = error
        yield _merge(
            batch, self._by_definition(places[rows[: len(records)]], records), len(odd) - bool(fault)
        )
        if fault:
            raise fault

    def _by_definition(self, places: Ints, records: Sequence[Record]) -> Batch:
        asked = set(self._asked(places).tolist())
        ids: list[int] = []
        taken: list[int] = []
        rows: list[tuple[Any, ...]] = []
        refused: list[Record] = []
        aside: list[Aside] = []
        for place, record in zip(places.tolist(), records, strict=True):
            if record.values is None:
                refused += [] if record.is_left_out else [record]
                continue
            id_ = key_id(self._source, record.values) if self._source.key else place
            if isinstance(id_, str):
                refused.append(record._replace(values=None, reason=id_))
            elif place in asked:
                aside.append(Aside(place, id_, record))
            else:
                ids.append(id_)
                taken.append(place)
                rows.append(record.values)
        columns = zip(*rows, strict=True) if rows else ([] for _ in self._source.columns)
        schema = typed_schema(self._source)
        values = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
        n_left_out = sum(record.is_left_out for record in records)
        of_taken = np.array(taken, np.int64), np.array(ids, np.int64)
        return Batch(len(records), n_left_out, *of_taken, values, refused, aside)

    def _asked(self, places: Ints) -> Ints:
        """Those of the places that are to be set aside."""
        if self._aside is None:
            return places
        if not places.size:
            return NOBODY
        begin, end = np.searchsorted(self._aside, (places[0], places[-1] + 1))
        return self._aside[begin:end]


def _merge(one: Batch, other: Batch, n_records: int) -> Batch:
    """The records of both batches of a block, in their order in the file."""
    places = np.concatenate([one.places, other.places])
    order = np.argsort(places)
    return Batch(
        n_records,
        one.n_left_out + other.n_left_out,
        places[order],
        np.concatenate([one.ids, other.ids])[order],
        pa.concat_tables([one.values, other.values]).take(pa.array(order)),
        one.refused + other.refused,
        one.aside + other.aside,
    )


def open_batches(
    stream: IO[bytes],
    name: str,
    source: SourceContract,
    *,
    may_be_empty: bool = False,
    aside: Ints | None = NOBODY,
    section: OpenSection | None = None,
) -> Batches:
    """Open a file by its contract's format; nothing is read before the batches are iterated.

    Parameters
    ----------
    stream, name, source, may_be_empty : see :func:`epsjoin.source.records.open_records`.
    aside : places of records in the file, rising, that are to be set aside; ``None``: all.
    section : says that the stream is a section of a file, see :mod:`epsjoin.source.sections`. Whatever
        requires that one task reads the whole file, which may be good, is a ``DataRefusedError`` then, too.
    """
    columns = FoundColumns(name)
    blocks: Iterator[Block | Iterator[UntypedRecord]]
    if section:
        blocks = (read_csv_blocks if source.format == "csv" else read_json_blocks)(
            stream, name, source, columns, section
        )
    elif is_read_by_columns(source) and aside is not None:
        blocks = BLOCKS[source.format](stream, name, source, columns)
    else:
        blocks = iter([FORMATS[source.format][0](stream, name, source, columns)])
    return Batches(blocks, name, source, columns, may_be_empty=may_be_empty, aside=aside)
