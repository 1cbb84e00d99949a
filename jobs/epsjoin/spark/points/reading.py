"""Arrays of points from Arrow batches, in whatever form the columns hold the points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.errors import DataRefusedError
from epsjoin.kernels.arrays import Points as Coordinates
from epsjoin.lake.arrow import to_matrix
from epsjoin.local.metric import Metric
from epsjoin.source.values import EXACT


@dataclass(frozen=True)
class Reading:
    """How a task turns batches of points into arrays; small, since it is pickled to every task.

    Parameters
    ----------
    names : the caller's names of the coordinate columns, for messages.
    dimensions : number of coordinates of each point; ``None`` if it is not known yet.
    is_checked : whether the points are one binary column that is known to hold finite coordinates.
    metric : must be defined for every point; ``None``: points need only be finite.
    """

    names: tuple[str, ...]
    dimensions: int | None
    is_checked: bool = False
    metric: Metric | None = None

    def of_dimensions(self, dimensions: int) -> Reading:
        """A copy that requires ``dimensions`` coordinates per point."""
        return replace(self, dimensions=dimensions)

    def arrays(self, batch: pa.RecordBatch | pa.Table) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Ids (n,) and coordinates (n, d) of the rows of a frame of points, in float64.

        Raises
        ------
        DataRefusedError
            See :meth:`coordinates`.
        """
        ids, points = self.coordinates(batch)
        return ids, points.astype(np.float64, copy=False)

    def coordinates(self, batch: pa.RecordBatch | pa.Table) -> tuple[NDArray[np.int64], Coordinates]:
        """As :meth:`arrays`, but arrays of float32 stay float32.

        Raises
        ------
        DataRefusedError
            A value is null, NaN or infinite; a whole number is beyond 2**53; a point has another number of
            dimensions; the metric is not defined for a point. The message has the id.
        """
        if self.dimensions is None:
            raise ValueError("dimensions must be known before tasks read points, or each would take its own")
        if batch.column(0).null_count:
            raise DataRefusedError("a point's id is null; give every row an id, or leave such rows out")
        ids = batch.column(0).to_numpy()
        columns = batch.columns[1:]
        if self.is_checked:
            return ids, to_matrix(columns[0], self.dimensions)
        points: Coordinates = np.empty((len(ids), self.dimensions))
        if is_single(columns[0].type):
            points = np.empty((len(ids), self.dimensions), np.float32)
        for place, (name, column) in enumerate(zip(self.names, columns, strict=True)):
            _fill(points, place, name, in_one_chunk(column), ids)
        _refuse_not_finite(points, ids, self.names)
        if self.metric is not None and len(ids):
            _refuse_undefined(points, ids, self.metric)
        return ids, points


def is_single(kind: pa.DataType) -> bool:
    """Whether a column of this type holds whole points in float32."""
    return bool(pa.types.is_list(kind) and pa.types.is_float32(kind.value_type))


def _fill(points: Coordinates, place: int, name: str, column: pa.Array, ids: NDArray[np.int64]) -> None:
    """Copy a column of a batch into the array of points."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataRefusedError(f"the column {name!r} is null where the id is {ids[row]}")
    kinds = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)
    if any(is_kind(column.type) for is_kind in kinds):
        points[:, place] = _to_doubles(column.to_numpy(zero_copy_only=False), name, ids)
        return
    d = points.shape[1]
    lengths = _count_coordinates(column).to_numpy()
    values = None if _is_binary(column.type) else column.flatten()
    other = np.flatnonzero(lengths != d)
    if len(other):
        raise DataRefusedError(
            f"the point with the id {ids[other[0]]} has {lengths[other[0]]:g} dimensions in {name!r}, "
            f"another has {d}"
        )
    if values is None:
        points[:] = to_matrix(column, d)
        return
    if values.null_count:
        row = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0]) // d
        raise DataRefusedError(f"a coordinate in {name!r} is null where the id is {ids[row]}")
    flat = values.to_numpy(zero_copy_only=False)
    points[:] = (flat if flat.dtype == points.dtype else _to_doubles(flat, name, ids)).reshape(-1, d)


def _count_coordinates(column: pa.Array) -> pa.Array:
    """Number of coordinates of each point in a column of whole points; null where there is no point."""
    if _is_binary(column.type):
        return pc.divide(pc.cast(pc.binary_length(column), pa.float64()), 8.0)
    return column.value_lengths()


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def in_one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def commonest_length(column: pa.Array, name: str) -> int:
    """The number of coordinates that most points of a column have; of equally frequent ones the largest."""
    if not len(column):
        return 2  # since there is no point, any number will do that every metric accepts
    lengths, counts = np.unique(_count_coordinates(column).drop_null().to_numpy(), return_counts=True)
    is_point = (lengths > 0) & (lengths == np.floor(lengths))
    if not is_point.any():
        raise DataRefusedError(
            f"the column {name!r} holds no point in the {len(column):,} rows of the sample; it must have "
            "arrays of numbers, vectors, or binary of 8 bytes for each coordinate"
        )
    return int(lengths[is_point][counts[is_point] == counts[is_point].max()].max())


def _to_doubles(values: NDArray[Any], name: str, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Numbers as doubles, one or more for each id; integers and decimals must not be too large for that."""
    if values.dtype in (np.int64, object):
        odd = np.flatnonzero((values < EXACT[0]) | (values > EXACT[-1]))
        if len(odd):
            row = odd[0] // (len(values) // len(ids))
            raise DataRefusedError(
                f"{name!r} is {values[odd[0]]} where the id is {ids[row]}; beyond 2**53 float64 does "
                "not tell whole numbers apart, and joins compute in it; cast it to double where it may round"
            )
    return values.astype(np.float64, copy=False)


def _refuse_not_finite(points: Coordinates, ids: NDArray[np.int64], names: Sequence[str]) -> None:
    if np.isfinite(points).all():
        return
    row, axis = (int(each[0]) for each in np.nonzero(~np.isfinite(points)))
    where = f"{names[axis]!r}" if len(names) > 1 else f"coordinate {axis + 1} of {names[0]!r}"
    raise DataRefusedError(f"{where} is {points[row, axis]:g} where the id is {ids[row]}; it must be finite")


def _refuse_undefined(points: Coordinates, ids: NDArray[np.int64], metric: Metric) -> None:
    found = metric.first_undefined(points)
    if found is not None:
        row, needs = found
        raise DataRefusedError(f"{needs}; the point with the id {ids[row]} breaks this")
