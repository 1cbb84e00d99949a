"""What may be joined progressively: arrays, streams of them or of Arrow batches, frames, and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError, DataRefusedError, needing_extra
from epsjoin.kernels.arrays import Bools
from epsjoin.local.arguments import check_seed, int_column
from epsjoin.local.coordinates import is_rounded
from epsjoin.local.progressive.sources import NUMBERS, ArraySource, Chunk, IteratorSource, Source

_BATCH_ROWS = 1 << 14
"""Rows of a Parquet file that are decoded at once."""
_CSV_BLOCK = 1 << 20
"""Bytes of a CSV file that are parsed at once."""
_FIRST_BYTES = 1 << 12
"""Bytes of a CSV file that show its encoding."""
_SAMPLED_GROUPS = 8
"""Row groups of a Parquet file from which a sample is drawn."""


class _Wanted(NamedTuple):
    """The columns of a file or of an Arrow batch that are read.

    Parameters
    ----------
    rows : names of those that a row consists of.
    id : name of the one that pairs consist of; None: there is none.
    """

    rows: list[str]
    id: str | None

    @classmethod
    def among(
        cls,
        names: Sequence[str],
        columns: Sequence[str] | None,
        id_column: str | None,
        where: str,
        *,
        is_file: bool = False,
    ) -> _Wanted:
        """Choose among names; of rows by default all, but for the id. Each must be there, once."""
        rows = [name for name in names if name != id_column] if columns is None else list(columns)
        wanted = cls(rows, id_column)
        for name in wanted.all:
            if name not in names:
                kind = ArgumentError if is_file else DataRefusedError  # nobody knows what batches will have
                raise kind(f"{where} has no column {name!r}; it has {', '.join(names)}")
            if list(names).count(name) > 1:
                raise DataRefusedError(f"{where}: column {name!r} occurs more than once; rename one of them")
        return wanted

    @property
    def all(self) -> list[str]:
        """Names of all that are read."""
        return [*self.rows, *([] if self.id is None else [self.id])]


def has_columns(table: Any) -> bool:
    """Whether the columns of a table may have names."""
    return isinstance(table, (str, Path, Iterator)) or hasattr(table, "__arrow_c_stream__")


def is_csv(table: Any) -> bool:
    """Whether a table is the path of a CSV file."""
    return isinstance(table, (str, Path)) and (
        Path(table).suffix == ".csv" or Path(table).name.endswith(".csv.gz")
    )


def open_input(
    name: str,
    table: Any,
    columns: Sequence[str] | None,
    id_column: str | None,
    shuffle: int | None,
    delimiter: str | None,
) -> Source:
    """Open a table, whatever it is, see :func:`epsjoin.progressive_join`.

    Raises
    ------
    ArgumentError
        It is nothing that can be joined, or an argument does not belong to it.
    DataRefusedError
        The file cannot be read.
    """
    if shuffle is not None:
        check_seed("shuffle", shuffle)
    if isinstance(table, (str, Path)):
        path = Path(table)
        if not path.is_file():
            raise ArgumentError(f"{name}: {path} is no file")
        if is_csv(path):
            if shuffle is not None:
                raise ArgumentError(f"{name}: a CSV file is read from front to back, it cannot be shuffled")
            split_at, names = _look_at_csv(path, delimiter)
            wanted = _Wanted.among(names, columns, id_column, str(path), is_file=True)
            return IteratorSource(_csv_chunks(path, split_at, wanted), None, str(path), wanted.rows)
        return ParquetSource(path, columns, id_column, shuffle)
    is_frame = hasattr(table, "__arrow_c_stream__") and not isinstance(table, Iterator)
    if is_frame and id_column is not None and columns is None:
        raise ArgumentError(f"{name} is a frame: beside id, name the columns that a row consists of")
    if is_frame and columns is not None:
        table = _batches_of(name, table)
    if isinstance(table, Iterator):
        if shuffle is not None:
            raise ArgumentError(f"{name}: an iterator is read as it comes, it cannot be shuffled")
        return IteratorSource(_converted(name, table, columns, id_column))
    if isinstance(table, tuple) and len(table) == 2:
        return ArraySource(table[1], table[0], shuffle)
    return ArraySource(table, None, shuffle)


def _batches_of(name: str, frame: Any) -> Iterator[Any]:
    """The batches of a frame or an Arrow table, which as an array would have all of its columns."""
    with needing_extra(f"a progressive join of columns of {name}, a frame,"):
        import pyarrow as pa
    return iter(pa.RecordBatchReader.from_stream(frame))


def _converted(
    name: str, chunks: Iterator[Any], columns: Sequence[str] | None, id_column: str | None
) -> Iterator[Any]:
    """Arrow batches become arrays, everything else stays."""
    for chunk in chunks:
        if hasattr(chunk, "schema") and hasattr(chunk, "column"):
            yield _to_chunk(name, chunk, _Wanted.among(chunk.schema.names, columns, id_column, name))
        else:
            yield chunk


def _to_chunk(where: str, batch: Any, wanted: _Wanted) -> Chunk:
    """Take the values and ids of an Arrow batch or table.

    Raises
    ------
    DataRefusedError
        A column is not of numbers, or has one that int64 does not hold, or beside a column of floats one that
        float64 does not hold; or an id is missing.

    Notes
    -----
    Missing floats become NaN, and so do missing integers beside a column of floats. Where all columns are of
    integers, rows say whether they lack one: which type a batch has must not depend on whether it does.
    """
    with needing_extra("a progressive join of Arrow batches or files"):
        import pyarrow as pa
    ids = None if wanted.id is None else batch.column(wanted.id)
    if ids is not None and (ids.null_count or not pa.types.is_integer(ids.type)):
        raise DataRefusedError(
            f"{where}: column {wanted.id!r} must be of whole numbers, without missing ones"
        )
    try:
        read = [_numbers(where, column, batch.column(column), pa) for column in wanted.rows]
        names_of_rows = None if ids is None else int_column("ids", _array(ids, pa.int64()))
    except pa.ArrowInvalid as error:
        raise DataRefusedError(f"{where}: a column has a number that int64 cannot hold: {error}") from error
    is_int = all(column.dtype == np.int64 for column, _ in read)
    values = np.empty((batch.num_rows, len(wanted.rows)), np.int64 if is_int else np.float64)
    is_null = np.zeros(batch.num_rows, np.bool_)
    for number, (column, is_missing) in enumerate(read):
        values[:, number] = column
        if column.dtype != values.dtype:
            is_other = is_rounded(column, values[:, number])
            if is_other.any():
                raise DataRefusedError(
                    f"{where}: column {wanted.rows[number]!r} has {column[is_other.argmax()]}, which float64 "
                    "cannot hold, beside a column of floats; cast it to float64 where it may round"
                )
        if is_missing is not None and is_int:
            is_null |= is_missing
        elif is_missing is not None:
            values[is_missing, number] = np.nan
    units = tuple(_unit_of(batch.column(column).type, pa) for column in wanted.rows)
    return Chunk(values, names_of_rows, is_null, units)


def _unit_of(kind: Any, pa: Any) -> str:
    """What :func:`_numbers` makes integers of."""
    if pa.types.is_date(kind):
        return "times in ns"
    for is_kind, word in (
        (pa.types.is_timestamp, "times"),
        (pa.types.is_duration, "durations"),
        (pa.types.is_time, "times of day"),
    ):
        if is_kind(kind):
            return f"{word} in {kind.unit}"
    return NUMBERS


def _numbers(where: str, name: str, column: Any, pa: Any) -> tuple[np.ndarray[Any, Any], Bools | None]:
    """A column as float64, in which missing numbers are NaN, or as int64, and which of these are missing.

    Times are int64 in their unit.
    """
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("ns")).cast(pa.int64())
    elif pa.types.is_time32(kind):  # Arrow casts none to int64
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        column = column.cast(pa.int64())
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise DataRefusedError(f"{where}: column {name!r} must be of numbers or times, not {kind}")
    if pa.types.is_floating(column.type):
        return _array(column, pa.float64()), None
    if not column.null_count:
        return _array(column, pa.int64()), None
    is_missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
    return _array(column.cast(pa.int64()).fill_null(0), pa.int64()), is_missing


def _array(column: Any, wanted: Any) -> np.ndarray[Any, Any]:
    """A column as an array.

    Arrow's own way imports pandas, and a cast Arrow's functions, some 50 MB, which most columns do not need.
    """
    if column.type != wanted:
        column = column.cast(wanted)
    if column.null_count:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    arrays = [np.from_dlpack(chunk) for chunk in chunks if len(chunk)]
    return np.concatenate(arrays) if arrays else np.empty(0, wanted.to_pandas_dtype())


def _look_at_csv(path: Path, delimiter: str | None) -> tuple[str, list[str]]:
    """What separates the fields of a CSV file, if nobody has said it, and the names of its columns."""
    with needing_extra("a progressive join of a CSV file"):
        import pyarrow as pa
        from pyarrow import csv

        from epsjoin.source.guess_delimiter import choose_delimiter
        from epsjoin.source.reasons import NOT_UTF_8, remedy_of
        from epsjoin.source.untyped import OTHER_ENCODING
    try:
        split_at = choose_delimiter(path, "csv", delimiter)
        with csv.open_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False),
            parse_options=csv.ParseOptions(delimiter=split_at),
        ) as reader:
            return split_at, list(reader.schema.names)
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        if path.is_file() and _has_nuls(path):
            raise DataRefusedError(f"{path}: cannot be read; {OTHER_ENCODING}") from error
        if isinstance(error, UnicodeDecodeError):
            words = f"the names of its columns are {NOT_UTF_8}{remedy_of(NOT_UTF_8)}"
            raise DataRefusedError(f"{path}: {words}") from error
        raise DataRefusedError(f"{path}: cannot be read: {error}") from error


def _has_nuls(path: Path) -> bool:
    """Whether the text of a file begins as UTF-16 or UTF-32 do, of which many bytes are 0."""
    import pyarrow as pa

    try:
        with pa.input_stream(str(path)) as stream:
            return b"\0" in stream.read(_FIRST_BYTES)
    except (OSError, pa.ArrowException):  # then the first error says why it cannot be read
        return False


def _csv_chunks(path: Path, delimiter: str, wanted: _Wanted) -> Iterator[Any]:
    """Rows of a CSV file, whose columns have the types that its first megabyte shows.

    If a column of whole numbers has another number farther down, the file is read again, and what is left of
    it comes as floats.
    """
    import pyarrow as pa
    from pyarrow import csv

    read = list(dict.fromkeys(wanted.all))
    types: dict[str, Any] = {}
    whole: list[str] = []
    n_read = 0
    while True:
        try:
            with csv.open_csv(
                path,
                read_options=csv.ReadOptions(block_size=_CSV_BLOCK, use_threads=False),
                parse_options=csv.ParseOptions(delimiter=delimiter),
                convert_options=csv.ConvertOptions(include_columns=read, column_types=types),
            ) as reader:
                n_skipped = n_read
                kinds = {name: reader.schema.field(name).type for name in read if name != wanted.id}
                whole = [] if types else [name for name, kind in kinds.items() if pa.types.is_integer(kind)]
                for batch in reader:
                    rest = batch.slice(min(n_skipped, batch.num_rows))
                    n_skipped -= batch.num_rows - rest.num_rows
                    if rest.num_rows:
                        n_read += rest.num_rows
                        yield _to_chunk(str(path), rest, wanted)
            return
        except (OSError, pa.ArrowException, KeyError) as error:
            if not isinstance(error, pa.ArrowInvalid) or not whole:
                raise DataRefusedError(f"{path}: cannot be read: {error}") from error
            types = dict.fromkeys(whole, pa.float64())


class ParquetSource:
    """Rows of a Parquet file.

    Parameters
    ----------
    path : the file.
    columns, id_column : see :func:`epsjoin.progressive_join`.
    seed : row groups, and the rows of each, come in a random order; None: as they are.
    """

    has_even_sample = False

    def __init__(
        self, path: Path, columns: Sequence[str] | None, id_column: str | None, seed: int | None
    ) -> None:
        with needing_extra("a progressive join of a Parquet file"):
            import pyarrow as pa
            import pyarrow.parquet as pq
        self._path, self.seed, self._error = path, seed, (OSError, pa.ArrowException)
        try:
            # read as it is asked for: a buffer of a whole row group would not be counted in memory
            self._file = pq.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False)
        except self._error as error:
            no_csv = "" if path.suffix == ".parquet" else " as Parquet (a CSV file ends in .csv or .csv.gz)"
            raise DataRefusedError(f"{path}: cannot be read{no_csv}: {error}") from error
        names = self._file.schema_arrow.names
        self._wanted = _Wanted.among(names, columns, id_column, str(path), is_file=True)
        self.file: str | None = str(path)
        self.names: Sequence[str] | None = self._wanted.rows
        self.columns = len(self._wanted.rows)
        self.has_ids = id_column is not None or seed is not None
        self.n_rows: int | None = self._file.metadata.num_rows
        self._rest = IteratorSource(self._chunks(), self.n_rows)

    def read(self, most: int) -> Chunk | None:
        """See :class:`~epsjoin.local.progressive.sources.Source`."""
        return self._rest.read(most)

    def sample(self, n: int) -> Chunk | None:
        """See :class:`~epsjoin.local.progressive.sources.Source`: rows of some groups, at even distances."""
        groups, wanted = self._file.metadata.num_row_groups, self._wanted._replace(id=None)
        some = np.unique(np.linspace(0, groups - 1, min(groups, _SAMPLED_GROUPS)).astype(np.int64))
        found: list[Chunk] = []
        try:
            for group in some.tolist():
                for batch in self._file.iter_batches(_BATCH_ROWS, [group], wanted.all, use_threads=False):
                    found.append(_to_chunk(str(self._path), batch, wanted))
                    if len(found[-1].values) * len(some) >= n:
                        break
        except self._error as error:
            raise DataRefusedError(f"{self._path}: cannot be read: {error}") from error
        if not found:
            return None
        values = np.concatenate([chunk.values for chunk in found])
        is_null = np.concatenate([chunk.is_null for chunk in found if chunk.is_null is not None])
        at = np.random.default_rng(0).permutation(len(values))[:n]
        return Chunk(values, None, is_null).take(np.sort(at))

    def _chunks(self) -> Iterator[Chunk]:
        metadata, wanted = self._file.metadata, self._wanted
        random = None if self.seed is None else np.random.default_rng(self.seed)
        groups = np.arange(metadata.num_row_groups)
        rows = np.array([metadata.row_group(group).num_rows for group in groups.tolist()], np.int64)
        starts = np.cumsum(rows) - rows
        order = groups if random is None else random.permutation(groups)
        try:
            for group in order.tolist():
                if random is None:
                    for batch in self._file.iter_batches(_BATCH_ROWS, [group], wanted.all, use_threads=False):
                        yield _to_chunk(str(self._path), batch, wanted)
                    continue
                chunk = _to_chunk(str(self._path), self._file.read_row_group(group, wanted.all), wanted)
                if chunk.ids is None:
                    chunk = chunk._replace(ids=starts[group] + np.arange(rows[group]))
                yield chunk.take(random.permutation(rows[group]))
        except self._error as error:
            raise DataRefusedError(f"{self._path}: cannot be read: {error}") from error
