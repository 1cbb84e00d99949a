"""A uniform sample of the points in files, which are read once, front to back, in bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.source.bounds import check_expansion, open_lines, parquet_bytes

BATCH_ROWS = 1 << 16
"""Number of rows of a Parquet file that are read at once."""

_CSV, _PARQUET = (".csv", ".csv.gz"), (".parquet",)
_NUMBER = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"


_Batch: TypeAlias = tuple[NDArray[np.float64], int, int]
"""Points, and the numbers of other rows: left out, bad."""


class FileSample(NamedTuple):
    """A sample of the points in some files.

    Parameters
    ----------
    n_rows : number of rows that are points: all coordinates are finite numbers.
    n_left_out : number of other rows in which nothing is wrong: a coordinate is missing. As in ``ingest``,
        where the contract does not require it.
    n_bad : number of the rest: a coordinate is no finite number, or the row cannot be split into fields.
    points : (m, d) float64, a uniform sample of the points, in the order of the files.
    """

    n_rows: int
    n_left_out: int
    n_bad: int
    points: NDArray[np.float64]


def sample_files(files: Sequence[Path], columns: Sequence[str], n_sample: int, seed: int = 0) -> FileSample:
    """Read all files and keep up to ``n_sample`` of their points.

    Parameters
    ----------
    files : CSV with a header (also gzip) or Parquet, told apart by the ends of their names.
    columns : names of the coordinates, in order.
    n_sample : maximum number of points to keep.
    seed : seed of the choice; the same files in the same order and the same seed yield the same points.

    Raises
    ------
    ArgumentError
        A file does not exist, or its name has another end.
    DataRefusedError
        A file cannot be read to its end, lacks a column, or exceeds ``MAX_LINE`` or ``MAX_EXPANSION`` of
        ``epsjoin.source.bounds``.

    Notes
    -----
    Every point draws a random number, and the points of the ``n_sample`` smallest numbers are kept: every
    set of points is equally likely, and at most ``2 n_sample`` points and a batch are held in memory.
    """
    random = np.random.default_rng(seed)
    keys, kept = np.empty(0), np.empty((0, len(columns)))
    limit = np.inf
    n_rows = n_left_out = n_bad = 0
    for batch, left_out, bad in _read_batches(files, columns):
        n_left_out += left_out
        n_bad += bad
        n_rows += len(batch)
        drawn = random.random(len(batch))
        is_small = drawn < limit
        keys, kept = np.concatenate((keys, drawn[is_small])), np.concatenate((kept, batch[is_small]))
        if len(keys) > 2 * n_sample:
            keys, kept, limit = _keep_smallest(keys, kept, n_sample)
    keys, kept, _ = _keep_smallest(keys, kept, n_sample)
    return FileSample(n_rows, n_left_out, n_bad, kept)


def _keep_smallest(
    keys: NDArray[np.float64], rows: NDArray[np.float64], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The n smallest keys and their rows, in their order, and the largest of these keys."""
    if len(keys) <= n:
        return keys, rows, np.inf
    chosen = np.sort(np.argpartition(keys, n - 1)[:n])
    return keys[chosen], rows[chosen], float(keys[chosen].max())


def _read_batches(files: Sequence[Path], columns: Sequence[str]) -> Iterator[_Batch]:
    """Yield the points of all files batch by batch, each with the numbers of rows left out and bad."""
    for file in files:
        if not file.is_file():
            raise ArgumentError(f"{file} is no file")
        if file.name.endswith(_CSV):
            read = _read_csv
        elif file.name.endswith(_PARQUET):
            read = _read_parquet
        else:
            raise ArgumentError(f"{file}: a name must end in {', '.join((*_CSV, *_PARQUET))}")
        try:
            yield from read(file, list(columns))
        except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
            raise DataRefusedError(f"{file}: {str(error).splitlines()[0]}") from error


def _read_csv(file: Path, columns: list[str]) -> Iterator[_Batch]:
    n_broken = 0

    def skip(_: pacsv.InvalidRow) -> str:
        nonlocal n_broken
        n_broken += 1
        return "skip"

    with file.open("rb") as stored:
        reader = pacsv.open_csv(
            pa.PythonFile(open_lines(stored, str(file)), "r"),
            parse_options=pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
            # read as bytes: a field that is no number must cost its row, not the whole file
            convert_options=pacsv.ConvertOptions(
                include_columns=columns, column_types=dict.fromkeys(columns, pa.binary())
            ),
        )
        for batch in reader:
            yield _separate([_parse_numbers(column) for column in batch.columns])
    yield np.empty((0, len(columns))), 0, n_broken


def _parse_numbers(column: pa.Array) -> pa.Array:
    """The numbers in a column of texts: null where there is none, NaN where there is another text."""
    is_number = pc.match_substring_regex(column, _NUMBER)
    text = pc.if_else(is_number, column, pa.scalar(b"nan")).cast(pa.string())
    is_blank = pc.match_substring_regex(column, r"^\s*$")
    return pc.if_else(is_blank, None, pc.utf8_trim_whitespace(text).cast(pa.float64()))


def _read_parquet(file: Path, columns: list[str]) -> Iterator[_Batch]:
    with pq.ParquetFile(file) as parquet:
        for name in columns:
            if name not in parquet.schema_arrow.names:
                raise DataRefusedError(f"{file}: lacks the column {name}")
            kind = parquet.schema_arrow.field(name).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
                raise DataRefusedError(f"{file}: {name} is {kind}, not a number")
        decoded = parquet_bytes(parquet.metadata, parquet.schema_arrow, columns)
        check_expansion(str(file), file.stat().st_size, decoded)
        for batch in parquet.iter_batches(BATCH_ROWS, columns=columns):
            yield _separate([batch.column(name).cast(pa.float64(), safe=False) for name in columns])


def _separate(columns: Sequence[pa.Array]) -> _Batch:
    """The rows that are points, and the numbers of rows left out and bad."""
    points = np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
    is_missing = np.column_stack([column.is_null().to_numpy(zero_copy_only=False) for column in columns])
    is_bad = (~np.isfinite(points) & ~is_missing).any(axis=1)  # a missing value is NaN in points
    is_point = ~is_bad & ~is_missing.any(axis=1)
    n_bad, n_points = int(is_bad.sum()), int(is_point.sum())
    return points[is_point], len(points) - n_bad - n_points, n_bad
