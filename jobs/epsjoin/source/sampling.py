"""A uniform sample of the points in files, read once from front to back, in bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.source.bounds import check_expansion, open_lines, parquet_bytes

BATCH_ROWS = 1 << 16
_CSV, _PARQUET = (".csv", ".csv.gz"), (".parquet",)
_NUMBER = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"


class FileSample(NamedTuple):
    """Points of some files.

    Parameters
    ----------
    n_rows : rows that are points: all coordinates there, numbers and finite.
    n_left_out : the other rows.
    points : (m, d) float64, a uniform sample of the points, in the order of the files.
    """

    n_rows: int
    n_left_out: int
    points: NDArray[np.float64]


def sample_files(files: Sequence[Path], columns: Sequence[str], n_sample: int, seed: int = 0) -> FileSample:
    """Read all files and keep ``n_sample`` of their points.

    Parameters
    ----------
    files : CSV with a header (also gzip) or Parquet, told apart by the ends of their names.
    columns : names of the coordinates, in order.
    n_sample : points to keep, at most.
    seed : of the choice; the same files in the same order and the same seed give the same points.

    Raises
    ------
    ArgumentError
        A file that is not there, or whose name ends otherwise.
    DataRefusedError
        A file that cannot be read to its end, lacks a column, has an endless line, or becomes much longer
        than it is (``epsjoin.records``).

    Notes
    -----
    Every point draws a number, the ``n_sample`` smallest stay: each set of points is as likely as any
    other, and at most ``2 n_sample`` and a batch are held.
    """
    random = np.random.default_rng(seed)
    keys, kept = np.empty(0), np.empty((0, len(columns)))
    limit = np.inf
    n_rows = n_left_out = 0
    for batch, n_bad in _batches(files, columns):
        n_left_out += n_bad
        n_rows += len(batch)
        drawn = random.random(len(batch))
        is_small = drawn < limit
        keys, kept = np.concatenate((keys, drawn[is_small])), np.concatenate((kept, batch[is_small]))
        if len(keys) > 2 * n_sample:
            keys, kept, limit = _smallest(keys, kept, n_sample)
    keys, kept, _ = _smallest(keys, kept, n_sample)
    return FileSample(n_rows, n_left_out, kept)


def _smallest(
    keys: NDArray[np.float64], rows: NDArray[np.float64], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The rows of the n smallest keys, in their order, and the largest of these keys."""
    if len(keys) <= n:
        return keys, rows, np.inf
    chosen = np.sort(np.argpartition(keys, n - 1)[:n])
    return keys[chosen], rows[chosen], float(keys[chosen].max())


def _batches(files: Sequence[Path], columns: Sequence[str]) -> Iterator[tuple[NDArray[np.float64], int]]:
    """Points of all files batch by batch, each with the number of rows that are none."""
    for file in files:
        if not file.is_file():
            raise ArgumentError(f"{file} is no file")
        if file.name.endswith(_CSV):
            read = _csv
        elif file.name.endswith(_PARQUET):
            read = _parquet
        else:
            raise ArgumentError(f"{file}: a name must end in {', '.join((*_CSV, *_PARQUET))}")
        try:
            yield from read(file, list(columns))
        except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
            raise DataRefusedError(f"{file}: {str(error).splitlines()[0]}") from error


def _csv(file: Path, columns: list[str]) -> Iterator[tuple[NDArray[np.float64], int]]:
    n_broken = 0

    def skip(_: pacsv.InvalidRow) -> str:
        nonlocal n_broken
        n_broken += 1
        return "skip"

    with file.open("rb") as stored:
        reader = pacsv.open_csv(
            pa.PythonFile(open_lines(stored, str(file)), "r"),
            parse_options=pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
            # as bytes: one word that is no number must cost a row, not the file
            convert_options=pacsv.ConvertOptions(
                include_columns=columns, column_types=dict.fromkeys(columns, pa.binary())
            ),
        )
        for batch in reader:
            points, n_bad = _finite([_numbers(column) for column in batch.columns])
            yield points, n_bad + n_broken
            n_broken = 0
    yield np.empty((0, len(columns))), n_broken


def _numbers(column: pa.Array) -> pa.Array:
    is_number = pc.match_substring_regex(column, _NUMBER)
    text = pc.if_else(is_number, column, pa.scalar(None, pa.binary())).cast(pa.string())
    return pc.utf8_trim_whitespace(text).cast(pa.float64())


def _parquet(file: Path, columns: list[str]) -> Iterator[tuple[NDArray[np.float64], int]]:
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
            yield _finite([batch.column(name).cast(pa.float64(), safe=False) for name in columns])


def _finite(columns: Sequence[pa.Array]) -> tuple[NDArray[np.float64], int]:
    points = np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
    is_point = np.isfinite(points).all(axis=1)  # what is missing is NaN here
    return points[is_point], int(len(points) - is_point.sum())
