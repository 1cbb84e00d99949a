"""Joins of frames: pandas, polars and Arrow tables in, the same kind out, with ids of any type.

None of these packages is imported: who passes a frame of one has imported it. Only what is neither, but
hands out an Arrow stream, is read by pyarrow.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsjoin.errors import ArgumentError, EpsjoinError, needing_extra
from epsjoin.kernels.arrays import Ints
from epsjoin.local.arguments import as_array, check_choice, check_points, unrounded
from epsjoin.local.join.arrays import join, self_join
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.neighbours.knn import knn_join

HOW = ("inner", "semi", "anti")
"""Kinds of joins of frames."""


class _Kind(NamedTuple):
    """A package of frames: its class of frames, how it takes rows, and how it makes a frame of columns."""

    package: str
    frame: str
    take: Callable[[Any, Ints], Any]
    make: str


def _take_of_arrow(values: Any, rows: Ints) -> Any:
    if hasattr(values, "columns"):  # a table
        for place, column in enumerate(values.columns):
            plain = _plain(column)
            if plain is not column:
                values = values.set_column(place, values.column_names[place], plain)
        return values.take(rows)
    return _plain(values).take(rows)


def _plain(values: Any) -> Any:
    """A column of Arrow whose rows can be taken: it cannot take views and repeated values."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_run_end_encoded(values.type):
        return _plain(compute.run_end_decode(values))
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return values.cast(views[values.type]) if values.type in views else values


def _take_of_pandas(values: Any, rows: Ints) -> Any:
    taken = values.take(rows)
    if hasattr(taken, "columns"):
        return taken
    if hasattr(taken, "to_series"):  # an index
        taken = taken.to_series()
    return taken.reset_index(drop=True)


def _take_by_brackets(values: Any, rows: Ints) -> Any:
    return values[rows]


_KINDS = (
    _Kind("pandas", "DataFrame", _take_of_pandas, "DataFrame"),
    _Kind("polars", "DataFrame", _take_by_brackets, "DataFrame"),
    _Kind("pyarrow", "Table", _take_of_arrow, "table"),
)


def _polars_to_arrow(ids: Any) -> Any:
    with needing_extra("a frame of pandas or Arrow with such ids of polars"):
        import pyarrow  # noqa: F401  # so that polars does not say in its own words that it is missing
    return ids.to_arrow()


def _arrow_to_pandas(ids: Any) -> Any:
    return ids.to_pandas(integer_object_nulls=True)


def _polars_to_pandas(ids: Any) -> Any:
    if not ids.null_count() and (plain := np.asarray(ids)).ndim == 1 and plain.dtype.kind in "fiub":
        return plain  # which needs no pyarrow
    return _arrow_to_pandas(_polars_to_arrow(ids))


_CONVERSIONS = {
    ("polars", "pyarrow"): _polars_to_arrow,
    ("pyarrow", "pandas"): _arrow_to_pandas,
    ("polars", "pandas"): _polars_to_pandas,
}
"""How ids of one package become those of another that would round or refuse some of them as they are."""


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
) -> Any:
    """Find every pair of rows of one frame or of two within eps, as a frame.

    Parameters
    ----------
    left, right : pandas or polars DataFrames, Arrow tables, or objects with ``__arrow_c_stream__``; not
        modified. Without ``right``, the pairs are of rows of ``left``.
    eps, metric, weights, n_jobs, max_pairs : see :func:`epsjoin.self_join`. "semi" and "anti" have no pairs,
        and no maximum of them.
    columns : names of the columns of coordinates, in both frames; or the name of one column, of numbers or of
        vectors.
    id : name of the column, of any type, that tells the rows apart in the result, in both frames. By default
        it is pandas' index, and the row number in other frames.
    how : "inner" for pairs. "semi" or "anti" for the rows of ``left`` that have a partner, or that have none:
        with all their columns and their index, in their order.

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
    kind, left = _kind_of("left", left)
    chosen, columns = get_metric(metric), _list_columns(columns)
    width = max(2 if chosen.full_turn else 1, as_array("eps", eps).size)
    width = max(width, 1 if weights is None else as_array("weights", weights).size)
    points = _coordinates("left", left, columns, width)
    other = None
    if id is not None:
        _column("left", left, id)
    if right is not None:
        other_kind, right = _kind_of("right", right)
        points, other = _of_one_width(points, _coordinates("right", right, columns, width))
    if how != "inner":
        rows = join(points, other, eps, metric, how=how, weights=weights, n_jobs=n_jobs).left
        return kind.take(left, rows)
    shared: dict[str, Any] = {"weights": weights, "n_jobs": n_jobs, "max_pairs": max_pairs}
    if other is None:
        pairs, other_kind, right = self_join(points, eps, metric, **shared), kind, left
    else:
        pairs = join(points, other, eps, metric, **shared)
    ids = _ids(kind, "left", left, id, pairs.left), _ids(other_kind, "right", right, id, pairs.right)
    return _make(kind, other_kind, ids, {"distance": pairs.distance})


def knn_frames(
    queries: Any,
    points: Any = None,
    k: int = 1,
    *,
    columns: str | Iterable[str],
    id: str | None = None,
    metric: str | Metric = "euclidean",
    n_jobs: int | None = 1,
) -> Any:
    """Find the k nearest rows of a frame for every row of another, as a frame.

    Parameters
    ----------
    queries, points : frames, see :func:`join_frames`. Without ``points``, the neighbours are other rows of
        ``queries``.
    k, metric, n_jobs : see :func:`epsjoin.knn_join`.
    columns, id : see :func:`join_frames`.

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
    kind, queries = _kind_of("queries", queries)
    columns = _list_columns(columns)
    asked = _coordinates("queries", queries, columns)
    if points is None:
        other_kind, points, found = kind, queries, knn_join(None, asked, k, metric, n_jobs=n_jobs)
    else:
        other_kind, points = _kind_of("points", points)
        asked, others = _of_one_width(asked, _coordinates("points", points, columns))
        found = knn_join(asked, others, k, metric, n_jobs=n_jobs)
    rows, nth = (places.reshape(-1) for places in np.indices(found.neighbour.shape))
    ids = (
        _ids(kind, "queries", queries, id, rows),
        _ids(other_kind, "points", points, id, found.neighbour.reshape(-1)),
    )
    columns_of_pairs = {"distance": found.distance.reshape(-1), "nth": nth + 1}
    return _make(kind, other_kind, ids, columns_of_pairs)


def _kind_of(name: str, frame: Any) -> tuple[_Kind, Any]:
    """Find the package of a frame; what only hands out an Arrow stream becomes an Arrow table."""
    for kind in _KINDS:
        module = sys.modules.get(kind.package)
        if module is not None and isinstance(frame, getattr(module, kind.frame)):
            return kind, frame
    if hasattr(frame, "__arrow_c_stream__"):
        with needing_extra(f"{name}, an Arrow stream,"):
            import pyarrow
        try:
            return _KINDS[-1], pyarrow.table(frame)
        except pyarrow.ArrowInvalid:  # one of a single column, such as a Series
            pass
    raise ArgumentError(
        f"{name} must be a DataFrame of pandas or polars, or an Arrow table or stream, not "
        f"{type(frame).__name__}; join takes arrays"
    )


def _list_columns(given: str | Iterable[Any]) -> str | list[Any]:
    """The names of columns of coordinates, which may be no texts, or the one name of a column of vectors."""
    if isinstance(given, str):
        return given
    if not isinstance(given, Iterable) or (isinstance(given, np.ndarray) and not given.ndim):
        raise ArgumentError(f"columns must be the name of a column, or a list of names, not {given!r}")
    if not (names := list(given)):
        raise ArgumentError("columns must name at least one column")
    return names


def _coordinates(name: str, frame: Any, columns: str | list[Any], width: int = 1) -> NDArray[Any]:
    """The coordinates of a frame; of a column of vectors without rows as many as others say."""
    if isinstance(columns, str):
        vectors = _values(name, frame, columns)
        if not len(vectors):
            return np.empty((0, width))
        try:
            given = vectors.tolist() if vectors.dtype.kind == "O" else vectors
            made = unrounded(given, np.array(given))
        except ValueError as error:
            raise ArgumentError(
                f"{name}, column {columns!r}, must have vectors of one length, none of them missing"
            ) from error
        return made.reshape(-1, 1) if made.ndim == 1 else made
    values = []
    for place, column in enumerate(columns):
        of_column = _values(name, frame, column)
        if column in columns[:place]:
            raise ArgumentError(f"columns names a column twice: {', '.join(map(str, columns))}")
        if of_column.ndim > 1:
            raise ArgumentError(
                f"{name}, column {column!r}, must be numbers, not vectors; give a column of vectors alone, "
                f"as columns={column!r}"
            )
        values.append(check_points(f"{name}, column {column!r},", of_column.reshape(-1, 1)))
    return np.concatenate(values, axis=1)


def _values(name: str, frame: Any, column: Any) -> NDArray[Any]:
    """A column as an array; of vectors that polars knows to be of one length, it has two dimensions."""
    given = _column(name, frame, column)
    kind = getattr(given, "dtype", None)
    if str(kind).startswith(("Struct", "Int128", "UInt128")):  # of polars; NumPy has none of them
        raise ArgumentError(f"{name}, column {column!r}, must be numbers or vectors, not {kind}")
    return np.asarray(given)


def _of_one_width(one: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Coordinates of two frames: one without rows has as many as the other."""
    if not len(one):
        return np.empty((0, *other.shape[1:])), other
    return one, other if len(other) else np.empty((0, *one.shape[1:]))


def _column(name: str, frame: Any, column: str) -> Any:
    names = getattr(frame, "column_names", None)  # of Arrow; the others' columns are names
    known = Counter(frame.columns if names is None else names)
    try:
        is_one = known[column] == 1
    except (TypeError, ValueError):  # what has no hash, as arrays and columns themselves, names none
        is_one = False
    if not is_one:
        asked = type(column).__name__ if hasattr(column, "__array__") else repr(column)
        listed = ", ".join(map(str, known.elements()))
        raise ArgumentError(f"{name} must have one column {asked}; its columns are {listed}")
    return frame[column]


def _ids(kind: _Kind, name: str, frame: Any, column: str | None, rows: Ints) -> Any:
    if column is not None:
        return kind.take(_column(name, frame, column), rows)
    return kind.take(frame.index, rows) if kind.package == "pandas" else rows


def _of_kind(kind: _Kind, other: _Kind, ids: Any) -> Any:
    """The ids of one kind of frames for another kind."""
    convert = _CONVERSIONS.get((other.package, kind.package))
    if convert is None or isinstance(ids, np.ndarray):
        return ids
    if other.package == "polars" and str(ids.dtype) == "Object":
        objects = np.empty(len(ids), object)
        objects[:] = ids.to_list()  # Arrow and NumPy would get their addresses
        return objects
    return convert(ids)


def _make(kind: _Kind, other: _Kind, ids: tuple[Any, Any], others: dict[str, NDArray[Any]]) -> Any:
    """Make the frame of the left ids, the right ones, which may be of another kind, and more columns."""
    make = getattr(sys.modules[kind.package], kind.make)
    try:
        return make({"left_id": ids[0], "right_id": _of_kind(kind, other, ids[1]), **others})
    except (EpsjoinError, MemoryError):
        raise
    except Exception as error:
        if kind is other:
            raise
        raise ArgumentError(  # each package has errors of its own
            f"the right ids, of {other.package}, cannot stand in a frame of {kind.package}; cast them, for "
            f"example to texts ({error})"
        ) from error
