"""Arrow columns to NumPy arrays and back, without a copy where the layout allows it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.errors import TableError


def to_matrix(column: pa.Array | pa.ChunkedArray, dimensions: int) -> NDArray[np.float64]:
    """Rows of a binary column, each ``dimensions`` little-endian float64, as an (n, d) array.

    Returns
    -------
    (n, d) float64, C order; a read-only view of one chunk's buffer, a copy of several.

    Raises
    ------
    TableError
        A value is null or not ``8 * dimensions`` bytes long.
    """
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 0:
            return np.empty((0, dimensions))
        if column.num_chunks == 1:
            return to_matrix(column.chunk(0), dimensions)
        return np.concatenate([to_matrix(chunk, dimensions) for chunk in column.chunks])
    if len(column) == 0:
        return np.empty((0, dimensions))
    data = _bytes_of(column, 8 * dimensions, f"{dimensions} float64 values")
    return data.view("<f8").reshape(-1, dimensions)


def to_coordinates(column: pa.Array, dimensions: int) -> NDArray[np.float64] | NDArray[np.float32]:
    """As :func:`to_matrix`, for a column that is not empty; rows of ``4 * dimensions`` bytes are float32."""
    if len(column[0].as_buffer()) == 4 * dimensions:
        data = _bytes_of(column, 4 * dimensions, f"{dimensions} float32 values")
        return data.view("<f4").reshape(-1, dimensions)
    return to_matrix(column, dimensions)


def _bytes_of(column: pa.Array, width: int, what: str) -> NDArray[np.uint8]:
    """The bytes of all values of a binary column, each of this width."""
    is_large = pa.types.is_large_binary(column.type)
    offsets = np.frombuffer(column.buffers()[1], np.int64 if is_large else np.int32)
    offsets = offsets[column.offset : column.offset + len(column) + 1]
    if column.null_count or not (np.diff(offsets) == width).all():
        raise TableError(f"a point is not {what} long; was the contract changed? Run ingest again")
    return np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]


def to_binary(rows: NDArray[np.generic]) -> pa.Array:
    """Each row of a two-dimensional array as one value of a binary column; the bytes are copied.

    Rows are (n, d) float64 or float32 for points, (n, w) uint8 for codes. The column must stay below 2 GiB.
    """
    rows = np.ascontiguousarray(rows)
    width = rows.shape[1] * rows.itemsize
    if len(rows) * width >= 2**31:
        raise ValueError(f"{len(rows)} rows of {width} bytes do not fit one Arrow binary array")
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(rows)])


def to_codes(column: pa.Array) -> NDArray[np.uint8]:
    """Rows of a binary column of equal length as an (n, w) uint8 array.

    Raises
    ------
    TableError
        A value is null, or not as long as the first.
    """
    if len(column) == 0:
        return np.empty((0, 2), np.uint8)
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    widths = np.diff(offsets)
    if column.null_count or not (widths == widths[0]).all():
        raise TableError("the codes of one plan have one width; these do not. Run replicate again")
    return np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].reshape(-1, widths[0])


def pair_columns(
    batch: pa.RecordBatch,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The columns left_id, right_id and distance of a batch of pairs, as views."""
    left, right, distance = (batch.column(name).to_numpy() for name in ("left_id", "right_id", "distance"))
    return left, right, distance


def with_nulls(values: NDArray[np.float64]) -> pa.Array:
    """A column of numbers with null for NaN."""
    return pa.array(values, mask=np.isnan(values))


def retype(rows: pa.Table | pa.RecordBatch, columns: pa.Schema) -> pa.Table | pa.RecordBatch:
    """Rows of an earlier run in today's types; a value that its column's type cannot hold becomes null."""
    for place, column in enumerate(columns):
        if rows.schema.field(place).type != column.type:
            rows = rows.set_column(place, column.name, _cast(rows.column(place), column.type))
    return rows


def _cast(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    try:
        return values.cast(kind)
    except pa.ArrowNotImplementedError:
        return pa.nulls(len(values), kind)
    except pa.ArrowInvalid:  # the type cannot hold some values
        distinct = values.unique()
        cast = pa.array([_cast_value(value, kind) for value in distinct], kind)
        return cast.take(pc.index_in(values, distinct))


def _cast_value(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    try:
        return value.cast(kind)
    except pa.ArrowInvalid:
        if pa.types.is_integer(value.type) and pa.types.is_floating(kind):  # Arrow refuses all beyond 2**53
            near = value.cast(kind, safe=False)
            if near.as_py() == value.as_py():
                return near
        return pa.scalar(None, kind)


def are_same(old: pa.ChunkedArray, new: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Tell for each row whether two columns have the same value: equal ones, two nulls, or two NaN."""
    is_same = pc.fill_null(pc.equal(old, new), pc.and_(old.is_null(), new.is_null()))
    if pa.types.is_floating(new.type):
        is_same = pc.or_(is_same, pc.fill_null(pc.and_(pc.is_nan(old), pc.is_nan(new)), False))
    return np.asarray(is_same.to_numpy(), np.bool_)
