"""A uniform sample of the points in files, which are read once, front to back, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.contracts.odcs import Column
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source.batches import Batch, open_batches
from epsjoin.source.guess_delimiter import choose_delimiter
from epsjoin.source.records import format_of

MAX_BAD = 200_000
"""Number of bad rows after which the search for a first point is given up."""


class FileSample(NamedTuple):
    """A sample of the points in some files.

    What is a point and what is bad is decided by the functions with which ``ingest`` reads, for a contract
    that names the coordinates and requires none of them.

    Parameters
    ----------
    n_rows : number of rows that are points: all coordinates are finite numbers.
    n_left_out : number of other rows in which nothing is wrong: a coordinate is missing.
    n_bad : number of the rest: a coordinate is no finite number, or too large, or the row cannot be split
        into fields.
    points : (m, d) float64, a uniform sample of the points, in the order of the files.
    first_bad : where the first bad row is and what is wrong with it; empty if none is bad.
    """

    n_rows: int
    n_left_out: int
    n_bad: int
    points: NDArray[np.float64]
    first_bad: str


def sample_files(
    files: Sequence[Path],
    columns: Sequence[str],
    n_sample: int,
    seed: int = 0,
    *,
    largest: Sequence[float] | None = None,
    lists: Mapping[str, int] | None = None,
    has_direction: bool = False,
    delimiter: str | None = None,
) -> FileSample:
    """Read all files and keep up to ``n_sample`` of their points.

    Parameters
    ----------
    files : CSV with a header, JSON lines or Parquet; see :func:`epsjoin.source.records.format_of`.
    columns : names of the coordinates, in order.
    n_sample : maximum number of points to keep.
    seed : seed of the choice; the same files in the same order and the same seed yield the same points.
    largest : for each column, the largest absolute value; a row with a larger one is bad.
    lists : of those of the columns that hold lists of numbers, how many each list has; they stand in
        ``columns`` once for each of these.
    has_direction : whether points are vectors for the cosine; one without a direction is bad.
    delimiter : what separates the fields of CSV; by default it is guessed of each file where it is certain.

    Raises
    ------
    ArgumentError
        A file does not exist, or its name has another end; or there is a delimiter, and it is no CSV.
    DataRefusedError
        A file cannot be read to its end, lacks a column or has it twice, more than ``MAX_BAD`` rows are bad
        before one is a point, or a file exceeds a limit of
        :mod:`epsjoin.source.bounds`.

    Notes
    -----
    Every point draws a random number, and the points of the ``n_sample`` smallest numbers are kept: every set
    of that many points is equally likely, and at most ``2 n_sample`` points and a batch are held in memory.
    """
    random = np.random.default_rng(seed)
    keys, kept = np.empty(0), np.empty((0, len(columns)))
    limit = np.inf
    n_rows = n_left_out = n_bad = 0
    first_bad = ""
    metric = "cosine" if has_direction else "euclidean"
    read = _read(files, columns, largest or [math.inf] * len(columns), lists or {}, metric, delimiter)
    for file, numbered_by, batch in read:
        if batch.refused and not n_bad:
            first_bad = f"{file}: {numbered_by} {batch.refused[0].line}: {batch.refused[0].reason}"
        n_left_out += batch.n_left_out
        n_bad += len(batch.refused)
        n_rows += len(batch.values)
        if not n_rows and n_bad > MAX_BAD:  # each is read one by one
            raise DataRefusedError(f"the first {n_bad:,} rows are bad: {first_bad}")
        drawn = random.random(len(batch.values))
        is_small = drawn < limit
        points = np.column_stack([column.to_numpy() for column in batch.values.columns])
        keys, kept = np.concatenate((keys, drawn[is_small])), np.concatenate((kept, points[is_small]))
        if len(keys) > 2 * n_sample:
            keys, kept, limit = _keep_smallest(keys, kept, n_sample)
    keys, kept, _ = _keep_smallest(keys, kept, n_sample)
    return FileSample(n_rows, n_left_out, n_bad, kept, first_bad)


def _keep_smallest(
    keys: NDArray[np.float64], rows: NDArray[np.float64], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The n smallest keys and their rows, in their order, and the largest of these keys."""
    if len(keys) <= n:
        return keys, rows, np.inf
    chosen = np.sort(np.argpartition(keys, n - 1)[:n])
    return keys[chosen], rows[chosen], float(keys[chosen].max())


def _read(
    files: Sequence[Path],
    columns: Sequence[str],
    largest: Sequence[float],
    lists: Mapping[str, int],
    metric: str,
    delimiter: str | None,
) -> Iterator[tuple[Path, str, Batch]]:
    # the columns of a contract have names that need no quotes; those of a file may be anything
    names = tuple(f"axis_{i}" for i in range(len(columns)))
    items = {given: count() for given in lists}
    typed = tuple(
        Column(
            name,
            "number",
            physical_name=given,
            minimum=-most if most < math.inf else None,
            maximum=most if most < math.inf else None,
            item=next(items[given]) if given in items else None,
        )
        for name, given, most in zip(names, columns, largest, strict=True)
    )
    source = SourceContract("estimate", "", "", typed, coordinates=names, optional=names, metric=metric)
    for file in files:
        format_ = format_of(file)
        try:
            of_format = replace(source, format=format_, delimiter=choose_delimiter(file, format_, delimiter))
            with file.open("rb") as stream:
                for batch in open_batches(stream, str(file), of_format, may_be_empty=True):
                    yield file, of_format.numbered_by, batch
        except OSError as error:
            raise DataRefusedError(f"{file}: cannot be read: {error}") from error
