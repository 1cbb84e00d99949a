"""A Parquet file of points by pages, which are its row groups, and the box of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from epsjoin.errors import ArgumentError, DataRefusedError, needing_extra
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.bestmatch.filter import filter_columns
from epsjoin.local.bestmatch.orders import Order
from epsjoin.local.bestmatch.pages import PageBoxes, box_pages

with needing_extra("epsjoin.bestmatch_files"):
    import pyarrow as pa
    import pyarrow.parquet as pq


class PagedFile:
    """A Parquet file of points, by pages.

    Parameters
    ----------
    path : the file.
    columns : names of the columns that are the coordinates.
    """

    def __init__(self, path: str | Path, columns: Sequence[str]) -> None:
        self.path, self._columns = Path(path), list(columns)
        if not self.path.is_file():
            raise ArgumentError(f"{path} is no file")
        try:
            self._file = pq.ParquetFile(self.path)
        except (OSError, pa.ArrowException) as error:
            raise DataRefusedError(f"{path}: cannot be read: {error}") from error
        schema, metadata = self._file.schema_arrow, self._file.metadata
        for name in self._columns:
            if name not in schema.names:
                raise ArgumentError(f"{path} has no column {name!r}; it has {', '.join(schema.names)}")
            if schema.names.count(name) > 1:
                raise ArgumentError(f"{path}: column {name!r} occurs more than once; rename one of them")
            kind = schema.field(name).type
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                raise ArgumentError(f"{path}: column {name!r} must be of numbers, not {kind}")
        rows = np.array([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)], np.int64)
        self._groups = np.flatnonzero(rows)
        self.rows = rows[self._groups]
        self.starts = np.cumsum(self.rows) - self.rows

    @property
    def page_bytes(self) -> int:
        """Memory that the largest page takes."""
        return int(self.rows.max(initial=0)) * len(self._columns) * 8

    def read(self, page: int) -> Floats:
        """The points of a page. Columns are read one by one, so that one at a time is held twice."""
        points = np.empty((self.rows[page], len(self._columns)))
        for i, name in enumerate(self._columns):
            try:
                column = self._file.read_row_group(int(self._groups[page]), [name]).column(0)
                points[:, i] = column.cast(pa.float64()).to_numpy()  # without a value: NaN
            except (OSError, pa.ArrowException) as error:
                raise DataRefusedError(f"{self.path}: column {name!r} cannot be read: {error}") from error
            is_bad = ~np.isfinite(points[:, i])
            if is_bad.any():
                row = int(self.starts[page]) + int(is_bad.argmax())
                raise DataRefusedError(f"{self.path}: row {row:,} has no finite number in column {name!r}")
        return points

    def boxes(self, orders: Sequence[Order]) -> PageBoxes:
        """The box of each page, in the columns in which pages must meet."""
        none = np.empty((0, len(thresholds(orders, len(self._columns)))))
        lower, upper = [none], [none]
        for page, start in enumerate(self.starts.tolist()):
            try:
                columns, _ = filter_columns(f"page from row {start:,} on", self.read(page), orders)
            except ArgumentError as error:
                raise DataRefusedError(f"{self.path}: {error}") from error
            box = box_pages(columns, np.zeros(1, np.int64))
            lower, upper = [*lower, box.lower], [*upper, box.upper]
        return PageBoxes(np.concatenate(lower), np.concatenate(upper))

    def pages_of(self, rows: Ints) -> Ints:
        """The page of each row."""
        return np.searchsorted(self.starts, rows, "right") - 1


def thresholds(orders: Sequence[Order], d: int) -> Floats:
    """How far the boxes of two pages may be apart in each of their columns, if the pages must meet."""
    return filter_columns("points", np.empty((0, d)), orders)[1]
