"""The pairs of rows of frames, and their nearest rows, by the joins of arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.frames.columns import column_of, coordinates_of, list_columns, names_in_right, of_one_width
from epsjoin.frames.kinds import Kind, find_kind, make_frame
from epsjoin.kernels.arrays import Ints
from epsjoin.local.arguments import as_array, check_choice
from epsjoin.local.join.arrays import join, self_join
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.neighbours.knn import knn_join

HOW = ("inner", "semi", "anti")
"""Kinds of joins of frames."""


def join_frames(
    left: Any,
    right: Any = None,
    *,
    eps: float | ArrayLike,
    columns: str | Iterable[str],
    id: str | None = None,
    metric: str | Metric = "euclidean",
    how: str = "inner",
    weights: ArrayLike | None = None,
    n_jobs: int | None = 1,
    max_pairs: int | None = None,
    right_columns: str | Iterable[str] | None = None,
    right_id: str | None = None,
) -> Any:
    """Find every pair of rows of one frame or of two within eps, as a frame.

    Parameters
    ----------
    left, right : pandas or polars DataFrames, Arrow tables, or objects with ``__arrow_c_stream__``; not
        modified. Without ``right``, the pairs are of rows of ``left``.
    eps, metric, weights, n_jobs, max_pairs : see :func:`epsjoin.self_join`. "semi" and "anti" have no pairs,
        and no maximum of them.
    columns : names of the columns of coordinates; or the name of one column, of numbers or of vectors.
    id : name of the column, of any type, that tells the rows apart in the result. By default it is pandas'
        index, and the row number in other frames.
    how : "inner" for pairs. "semi" or "anti" for the rows of ``left`` that have a partner, or that have none:
        with all their columns and their index, in their order.
    right_columns, right_id : names of the columns in ``right``; by default the same as in ``left``.

    Returns
    -------
    A frame of the kind of ``left`` (an Arrow table for streams): ``left_id``, ``right_id`` and ``distance``,
    ordered by the places of the rows; of one frame, the left row is the one that stands first. Or rows of
    ``left``.

    Raises
    ------
    ArgumentError
        As :func:`epsjoin.join`; or an argument is no frame, or lacks a column.
    BudgetError
        As :func:`epsjoin.join`.
    MissingPackageError
        A stream is passed, and pyarrow is not installed.

    See Also
    --------
    knn_frames : the k nearest rows.
    self_join, join : of arrays.

    Notes
    -----
    Coordinates are copied once. A missing value is refused, as NaN is.

    Examples
    --------
    >>> import pandas
    >>> towns = pandas.DataFrame({"x": [0.0, 3.0, 9.0], "y": [0.0, 4.0, 9.0]}, index=["a", "b", "c"])
    >>> join_frames(towns, eps=5.0, columns=["x", "y"]).values.tolist()
    [['a', 'b', 5.0]]
    >>> join_frames(towns, eps=5.0, columns=["x", "y"], how="anti").index.tolist()
    ['c']
    """
    check_choice("how", how, HOW)
    is_same = right is left  # a stream can be read once
    kind, left = find_kind("left", left)
    columns = list_columns("columns", columns)
    right_columns, right_id = names_in_right("right", right, columns, id, right_columns, right_id)
    chosen = get_metric(metric)
    width = max(_width(chosen, weights), as_array("eps", eps).size)
    points = coordinates_of("left", left, columns, width)
    other = None
    if id is not None:
        column_of("left", left, id)
    if right is not None:
        other_kind, right = (kind, left) if is_same else find_kind("right", right)
        points, other = of_one_width(points, coordinates_of("right", right, right_columns, width))
    else:
        chosen.check(points, "left")  # joins of one array call it points
    if how != "inner":
        rows = join(points, other, eps, metric, how=how, weights=weights, n_jobs=n_jobs).left
        return kind.take(left, rows)
    shared: dict[str, Any] = {"weights": weights, "n_jobs": n_jobs, "max_pairs": max_pairs}
    if other is None:
        pairs, other_kind, right = self_join(points, eps, metric, **shared), kind, left
    else:
        pairs = join(points, other, eps, metric, **shared)
    ids = _ids(kind, "left", left, id, pairs.left), _ids(other_kind, "right", right, right_id, pairs.right)
    return make_frame(kind, other_kind, ids, {"distance": pairs.distance})


def knn_frames(
    queries: Any,
    points: Any = None,
    k: int = 1,
    *,
    columns: str | Iterable[str],
    id: str | None = None,
    metric: str | Metric = "euclidean",
    weights: ArrayLike | None = None,
    n_jobs: int | None = 1,
    right_columns: str | Iterable[str] | None = None,
    right_id: str | None = None,
) -> Any:
    """Find the k nearest rows of a frame for every row of another, as a frame.

    Parameters
    ----------
    queries, points : frames, see :func:`join_frames`. Without ``points``, the neighbours are other rows of
        ``queries``.
    k, metric, weights, n_jobs : see :func:`epsjoin.knn_join`.
    columns, id : see :func:`join_frames`.
    right_columns, right_id : names of the columns in ``points``; by default the same as in ``queries``.

    Returns
    -------
    A frame of the kind of ``queries``: ``left_id``, ``right_id``, ``distance`` and ``nth``, 1 for the
    nearest; ordered by the places of the queries, then by ``nth``.

    Raises
    ------
    ArgumentError
        As :func:`epsjoin.knn_join`; or an argument is no frame, or lacks a column.
    MissingPackageError
        A stream is passed, and pyarrow is not installed.

    See Also
    --------
    join_frames : all pairs within an eps.

    Examples
    --------
    >>> import pandas
    >>> towns = pandas.DataFrame({"x": [0.0, 3.0, 9.0]}, index=["a", "b", "c"])
    >>> knn_frames(towns, columns=["x"]).values.tolist()
    [['a', 'b', 3.0, 1], ['b', 'a', 3.0, 1], ['c', 'b', 6.0, 1]]
    """
    is_same = points is queries
    kind, queries = find_kind("queries", queries)
    columns = list_columns("columns", columns)
    right_columns, right_id = names_in_right("points", points, columns, id, right_columns, right_id)
    chosen = get_metric(metric)
    width = _width(chosen, weights)
    asked = coordinates_of("queries", queries, columns, width)
    shared: dict[str, Any] = {"weights": weights, "n_jobs": n_jobs}
    if points is None:
        chosen.check(asked, "queries")  # which the join of arrays calls points
        other_kind, points, found = kind, queries, knn_join(None, asked, k, metric, **shared)
    else:
        other_kind, points = (kind, queries) if is_same else find_kind("points", points)
        asked, others = of_one_width(asked, coordinates_of("points", points, right_columns, width))
        found = knn_join(asked, others, k, metric, **shared)
    rows, nth = (places.reshape(-1) for places in np.indices(found.neighbour.shape))
    ids = (
        _ids(kind, "queries", queries, id, rows),
        _ids(other_kind, "points", points, right_id, found.neighbour.reshape(-1)),
    )
    columns_of_pairs = {"distance": found.distance.reshape(-1), "nth": nth + 1}
    return make_frame(kind, other_kind, ids, columns_of_pairs)


def _width(metric: Metric, weights: ArrayLike | None) -> int:
    """How many coordinates vectors have at least, by the metric and the weights."""
    return max(2 if metric.full_turn else 1, 1 if weights is None else as_array("weights", weights).size)


def _ids(kind: Kind, name: str, frame: Any, column: str | None, rows: Ints) -> Any:
    if column is not None:
        return kind.take(column_of(name, frame, column), rows)
    return kind.take(frame.index, rows) if kind.package == "pandas" else rows
