"""Pairs and nearest neighbours as a graph: the three arrays of a sparse matrix in compressed rows (CSR)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats
from epsjoin.kernels.pairs.graph import count_lower_upper, fill_both_ends
from epsjoin.kernels.pairs.sort_pairs import RowNumbers
from epsjoin.kernels.sorting import lexsort
from epsjoin.local.arguments import (
    as_array,
    check_choice,
    check_count,
    check_lengths,
    distance_column,
    int_column,
)
from epsjoin.local.neighbours.nearest import KNearest
from epsjoin.local.sweep.pairs import Pairs, RowPairs, check_pairs, row_type

_VALUES = ("distance", "ones")


class Graph(NamedTuple):
    """A sparse matrix in compressed rows; ``scipy.sparse.csr_array(graph[:3], graph.shape)`` is SciPy's.

    Parameters
    ----------
    data : (m,) float64, the entries.
    indices : (m,) int32 (int64 from 2**31 entries or columns on), the columns, which rise in each row.
    indptr : (n + 1,) of the same type, where each row begins, and the end.
    shape : numbers of rows and columns.
    """

    data: Floats
    indices: RowNumbers
    indptr: RowNumbers
    shape: tuple[int, int]


def as_graph(
    found: Pairs | RowPairs | KNearest, n: int | tuple[int, int], *, values: str = "distance"
) -> Graph:
    """Make the graph of pairs or of nearest neighbours, as a sparse matrix in compressed rows.

    Parameters
    ----------
    found : what a join found: row numbers, not ids. Or the nearest neighbours of queries.
    n : number of points of one table: each pair then stands at both its ends, and the matrix is symmetric. Or
        the numbers of rows of the left and the right table. Of nearest neighbours, the number of points.
    values : what the entries are: "distance", or "ones" (of :class:`epsjoin.RowPairs`, always ones).

    Returns
    -------
    Graph
        No point is its own neighbour in the matrix of one table. Pairs at the distance 0 are entries, too: to
        keep them, do not eliminate zeros from the matrix.

    Raises
    ------
    ArgumentError
        A row number is outside of the tables, like that of a missing partner, and as ids may be; for one
        table, left is not below right; ``n`` or ``values`` is not allowed.

    See Also
    --------
    epsjoin.sklearn.RadiusNeighborsTransformer : the same as a step of scikit-learn.

    Notes
    -----
    O(n + m) for pairs in the order in which :func:`epsjoin.self_join` returns them; others are sorted first.
    SciPy is not needed; with it, ``scipy.sparse.csr_array(graph[:3], graph.shape)`` shares the arrays.

    Examples
    --------
    >>> graph = as_graph(Pairs(np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0])), 3)
    >>> graph.indptr.tolist(), graph.indices.tolist(), graph.data.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1], [1.0, 1.0, 2.0, 2.0])
    """
    check_choice("values", values, _VALUES)
    if isinstance(found, KNearest):
        return _of_nearest(found, check_count("n", n, 0), values)
    left: RowNumbers
    right: RowNumbers
    if isinstance(found, Pairs):
        left, right, distance = check_pairs(*found)
    elif isinstance(found, RowPairs):
        left, right, distance = as_rows("left", found.left), as_rows("right", found.right), np.empty(0)
        check_lengths(left=left, right=right)
    else:
        raise ArgumentError(f"found must be Pairs, RowPairs or KNearest, not {type(found).__name__}")
    distance = distance if values == "distance" else np.empty(0)
    is_one_table = not isinstance(n, tuple)
    shape = (check_count("n", n, 0),) * 2 if not isinstance(n, tuple) else _check_shape(n)
    check_rows("left", left, shape[0])
    check_rows("right", right, shape[1])
    if is_one_table and not (left < right).all():
        raise ArgumentError("pairs of one table have left < right; for two tables n is (n_left, n_right)")
    if not are_sorted(left, right):
        order = lexsort((right, left))
        left, right = left[order], right[order]
        distance = distance[order] if len(distance) else distance
    if is_one_table:
        return _both_ends(left, right, distance, shape)
    counts = np.bincount(left, minlength=shape[0])
    return _graph(counts, right, distance, shape)


def as_rows(name: str, rows: RowNumbers) -> RowNumbers:
    """Row numbers in their own integer type; anything else is refused."""
    return rows if getattr(rows, "dtype", None) == np.int32 and rows.ndim == 1 else int_column(name, rows)


def _of_nearest(found: KNearest, n: int, values: str) -> Graph:
    neighbour, far = (as_array(*named) for named in zip(found._fields, found, strict=True))
    if neighbour.ndim != 2 or far.shape != neighbour.shape:
        raise ArgumentError(
            "neighbour and distance must have a row for each query and a column for each neighbour, not the "
            f"shapes {neighbour.shape} and {far.shape}"
        )
    q, k = neighbour.shape
    columns = int_column("each row of neighbour", neighbour.reshape(-1))
    check_rows("neighbour", columns, n)
    order = np.argsort(columns.reshape(q, k), axis=1, kind="stable")
    far = distance_column("each row of distance", far.reshape(-1)).reshape(q, k)
    distance = np.take_along_axis(far, order, axis=1).reshape(-1)
    columns = np.take_along_axis(columns.reshape(q, k), order, axis=1).reshape(-1)
    return _graph(np.full(q, k), columns, distance if values == "distance" else np.empty(0), (q, n))


def _both_ends(left: RowNumbers, right: RowNumbers, distance: Floats, shape: tuple[int, int]) -> Graph:
    lower, upper = np.zeros(shape[0], np.int64), np.zeros(shape[0], np.int64)
    count_lower_upper(left, right, lower, upper)
    starts = np.concatenate(([0], np.cumsum(lower + upper)))
    m = 2 * len(left)
    columns, entries = np.empty(m, row_type(max(m, shape[1]))), np.ones(m)
    fill_both_ends(left, right, distance, starts[:-1].copy(), starts[:-1] + lower, columns, entries)
    return Graph(entries, columns, starts.astype(row_type(max(m, shape[1]))), shape)


def _graph(counts: NDArray[Any], columns: RowNumbers, distance: Floats, shape: tuple[int, int]) -> Graph:
    """The graph of entries in the order of their rows and columns."""
    m = len(columns)
    dtype = row_type(max(m, shape[1]))
    starts: RowNumbers = np.concatenate(([0], np.cumsum(counts))).astype(dtype)
    return Graph(distance if len(distance) else np.ones(m), columns.astype(dtype, copy=False), starts, shape)


def _check_shape(n: tuple[int, int]) -> tuple[int, int]:
    if len(n) != 2:
        raise ArgumentError(f"n must be the number of points, or those of both tables, not {n!r}")
    return check_count("n[0]", n[0], 0), check_count("n[1]", n[1], 0)


def check_rows(name: str, rows: RowNumbers, n: int) -> None:
    """Refuse row numbers that are not from 0 to ``n - 1``.

    Raises
    ------
    ArgumentError
        One of them is not; the message calls them by ``name``.
    """
    is_outside: Bools = (rows < 0) | (rows >= n)
    if is_outside.any():
        place = int(is_outside.argmax())
        raise ArgumentError(
            f"{name} must be row numbers from 0 to {n - 1}; entry {place} is {rows[place]} "
            "(ids, and missing partners of outer joins, are no rows)"
        )


def are_sorted(left: RowNumbers, right: RowNumbers) -> bool:
    """Whether pairs are sorted by (left, right), and no two are equal."""
    same = left[1:] == left[:-1]
    return bool(((left[1:] > left[:-1]) | (same & (right[1:] > right[:-1]))).all())
