"""The public function for best matches of DataFrames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from numpy.typing import ArrayLike
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from epsjoin.errors import ArgumentError
from epsjoin.lake import transactions, uris
from epsjoin.lake.sample import Sample
from epsjoin.lake.schemas import unquoted
from epsjoin.lake.targets import Target
from epsjoin.local.arguments import as_array, check_choice
from epsjoin.local.bestmatch.orders import Closest, Order, Subset, orders_of
from epsjoin.local.coordinates import check_dimensions
from epsjoin.local.plan.cuts import Cuts
from epsjoin.params import MATCH_HOW, MATCH_TAKE
from epsjoin.spark.bestmatch.distribute import match_frames, plan_match, result_schema
from epsjoin.spark.bestmatch.matching import Matching
from epsjoin.spark.join.frames import as_limit
from epsjoin.spark.join.plan import check_cuts, draw_samples
from epsjoin.spark.points.columns import names_in_right, points_of, type_of
from epsjoin.spark.points.points import Points
from epsjoin.spark.rows.rows import to_frame
from epsjoin.spark.rows.write import write_table

_LOW_HALF = 0xFFFFFFFF
_BITS = {T.LongType: 64, T.IntegerType: 32, T.ShortType: 16, T.ByteType: 8}
"""The bits of a number of each type."""


def bestmatch_join(
    left: DataFrame,
    right: DataFrame,
    *,
    columns: str | Sequence[str],
    eps: float | ArrayLike | None = None,
    id: str = "id",
    how: Literal["inner", "left", "right", "outer"] = "left",
    orders: Sequence[Order] | None = None,
    right_columns: str | Sequence[str] | None = None,
    right_id: str | None = None,
    take: Literal["all", "one"] = "all",
    cuts: Cuts | None = None,
    max_candidates: int = 10**9,
    to: str | None = None,
) -> DataFrame:
    """Find for each row the rows of another frame that no other row dominates, by several criteria at once.

    Parameters
    ----------
    left, right : frames of a classic session that have the same rows whenever they are read.
    columns : the columns that criteria compare: names of columns of numbers, or the name of one column that
        holds whole points; see :func:`epsjoin.spark.frames.similarity_join`.
    eps, how, orders, take : see :func:`epsjoin.bestmatch_join`. Orders count the columns in ``columns`` from
        0. Functions of your own orders are pickled, and called in the tasks. A :class:`epsjoin.Subset` names
        the columns of whole numbers whose bits are the marks: ``Subset("tags", "tags")``, or a list of names
        for each side if there are more than 64 marks.
    id : name of a column of whole numbers, which must be distinct: two rows with the same id are refused if
        they meet in a part.
    right_columns, right_id : names of the columns in ``right``; by default the same as in ``left``.
    cuts : how to cut the join into parts; see :func:`epsjoin.spark.frames.similarity_join`.
    max_candidates : the join is refused if more pairs within the eps of all criteria are expected, and stops
        if one part has more. For one criterion of one column, the maximum number of nearest pairs of a part.
    to : folder of a Delta table, as a URI or an absolute path. The join then runs at the call, and the tasks
        write the result to this table, whose whole content is replaced in one transaction.

    Returns
    -------
    DataFrame
        ``left_id`` and ``right_id`` (long), null where a row has no partner; a double ``d_<name>`` for each
        criterion, null without a partner; and ``best_for`` (int) as in :class:`epsjoin.BestPairs`. The double
        is the distance of :class:`epsjoin.Closest`, the value of :class:`epsjoin.Own`, the number of common
        marks of ``Subset``; null for :class:`epsjoin.OwnOrder`. The name is that of the criterion's column,
        or those of its columns with ``_`` between them, and ``own`` for criteria of your own. If several
        criteria have the same name, a number follows it, from 1. The rows come in no particular order, and
        are the same under every partitioning. The frame is lazy: each use of it runs the join again, unless
        it is persisted. With ``to``: the rows as read from the table.

    Raises
    ------
    ArgumentError
        An argument or column is wrong, or a frame belongs to Spark Connect.
    BudgetError
        More than ``max_candidates`` candidates are expected.
    DataRefusedError
        See :func:`epsjoin.spark.frames.similarity_join`.
    TableError
        ``to`` holds a table with other columns or with partitions, or cannot be read or written. It stays as
        it was.

    See Also
    --------
    epsjoin.bestmatch_join : the same on arrays.

    Notes
    -----
    What only tasks can notice fails a task, and Spark's error contains our sentence: a value of a row outside
    of the sample is null or not finite (with the row's id), two rows have one id, a part has more than
    ``max_candidates`` candidates, or a frame has more or fewer rows than were counted.

    The candidates are found as by :func:`epsjoin.spark.frames.similarity_join`: one shuffle moves each row
    and its replicas. Each part keeps what is best in it. Rows that are in one part only are then done, and
    pass through a second shuffle as blocks. What several parts have kept for a row is sent there by the row's
    id, and is compared again. With "outer" a third shuffle does the same by the other id; with "inner" one
    task compares the best of all parts.

    ``bestmatch_join(a, b, eps=[30.0, 0.5], columns=["seconds", "size"])`` returns for each row of ``a`` those
    rows of ``b`` that no other row dominates.
    """
    check_choice("how", how, MATCH_HOW)
    check_choice("take", take, MATCH_TAKE)
    check_cuts(cuts)
    max_candidates = as_limit("max_candidates", max_candidates)
    named, n_words = _name_marks(orders)
    of_left, of_right = ([name for order in named for name in _marks(order)[side]] for side in (0, 1))
    points = _points_with_marks(left, columns, id, of_left)
    names_of_right = names_in_right(columns, id, right_columns, right_id)
    others = _points_with_marks(right, *names_of_right, of_right)
    chosen, samples, _ = draw_samples(points, others, cuts)
    needed = _least_columns(eps, named) + 2 * sum(n_words)
    width = _count_columns(points, others, samples, needed)
    dimensions = width - 2 * sum(n_words)
    criteria = orders_of(eps, None if orders is None else named, dimensions)
    names = _name_criteria(criteria, columns, dimensions)
    into = None
    if to is not None:
        location = uris.parse_table_uri(to, "to")
        into = Target("bestmatch_join", location, result_schema(names), (), {})
        transactions.check_replaceable(into)
    matching = Matching(criteria, dimensions, n_words, how, take, max_candidates)
    samples = [(ids, rows.reshape(-1, width)) for ids, rows in samples]
    sides = (points.of_dimensions(width), others.of_dimensions(width))
    found = match_frames(plan_match(sides, samples, chosen, matching), names)
    if into is None:
        return to_frame(found)
    return write_table(into, found, left.sparkSession)


def _name_marks(orders: Sequence[Order] | None) -> tuple[list[Order], tuple[int, ...]]:
    """Return the orders, marks by lists of names of columns, and how many names each has."""
    named: list[Order] = []
    n_words = []
    for order in orders or ():
        if isinstance(order, Subset):
            left, right = _list_names(order.left_masks), _list_names(order.right_masks)
            if not left or len(left) != len(right):
                raise ArgumentError(
                    'marks of frames are columns: Subset("tags", "tags"), or as many names of each side, not '
                    f"{order.left_masks!r} and {order.right_masks!r}"
                )
            named.append(Subset(left, right))
            n_words.append(len(left))
        else:
            named.append(order)
    return named, tuple(n_words)


def _list_names(given: object) -> list[str]:
    """Names of columns as a list; empty for anything else."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return []
    return list(names)


def _marks(order: Order) -> tuple[list[str], list[str]]:
    if not isinstance(order, Subset):
        return [], []
    return _list_names(order.left_masks), _list_names(order.right_masks)


def _points_with_marks(frame: DataFrame, columns: str | Sequence[str], id_: str, marks: list[str]) -> Points:
    """Take the points of a frame, with two more columns for each column of marks: its halves.

    Float64 holds half a word exactly, but not a whole one.
    """
    if not marks:
        return points_of(frame, columns, id_)
    if isinstance(columns, str) and not isinstance(type_of(frame, columns), T.NumericType):
        raise ArgumentError(f"with marks, columns must hold numbers, not whole points as {columns!r} does")
    names = [columns] if isinstance(columns, str) else list(columns)
    halves, of_marks = [], []
    for place, name in enumerate(marks):
        kind = type_of(frame, name)
        n_bits = next((bits for of, bits in _BITS.items() if isinstance(kind, of)), None)
        if n_bits is None:
            raise ArgumentError(
                f"the column of marks {name!r} must hold whole numbers, whose bits are the marks, not "
                f"{kind.simpleString()}"
            )
        # as a long, a negative number of fewer bits would have more marks than its type has bits
        word = F.col(name).cast("long").bitwiseAND(F.lit(-1 if n_bits == 64 else (1 << n_bits) - 1))
        halves += [
            F.shiftrightunsigned(word, 32).alias(f"_marks_{place}_high"),
            word.bitwiseAND(F.lit(_LOW_HALF)).alias(f"_marks_{place}_low"),
        ]
        of_marks += [name, name]
    points = points_of(
        frame.select("*", *halves),
        [*names, *(f"_marks_{place}_{half}" for place in range(len(marks)) for half in ("high", "low"))],
        id_,
    )
    return replace(points, reading=replace(points.reading, names=(*names, *of_marks)))


def _least_columns(eps: float | ArrayLike | None, orders: Sequence[Order]) -> int:
    """The smallest number of columns with which these criteria are possible."""
    of_eps: list[int] = [] if eps is None else [*as_array("eps", eps).shape[:1]]
    of_orders = [1 + max(order.numbers) for order in orders if isinstance(order, Closest)]
    return max([1, *of_eps, *of_orders])


def _count_columns(points: Points, others: Points, samples: list[Sample], needed: int) -> int:
    """Number of values of a point: as the frames say, or the sample shows, or else as many as are needed."""
    sides = {"left": points.reading.dimensions, "right": others.reading.dimensions}
    known = {side: n for side, n in sides.items() if n is not None}
    check_dimensions(**known)
    shown = [rows.shape[1] for _, rows in samples if len(rows)]
    return next(iter([*known.values(), *shown]), needed)


def _name_criteria(criteria: Sequence[Order], columns: str | Sequence[str], dimensions: int) -> list[str]:
    """Name the column of each criterion in the result."""
    each = [unquoted(name) for name in ([columns] if isinstance(columns, str) else columns)]
    if len(each) < dimensions:
        each = [f"{each[0]}_{i}" for i in range(dimensions)]
    names = []
    for order in criteria:
        if isinstance(order, Closest):
            names.append("_".join(each[column] for column in order.numbers))
        elif isinstance(order, Subset):
            names.append("_".join(map(unquoted, _marks(order)[0])))
        else:
            names.append("own")
    return name_columns(names)


def name_columns(names: Sequence[str]) -> list[str]:
    """Name the columns of distances by those of criteria: all names differ, also if case is ignored."""
    often = Counter(map(str.lower, names))
    found: list[str] = []
    for number, name in enumerate(names, 1):
        given = f"d_{name}" if often[name.lower()] == 1 else f"d_{name}_{number}"
        while given.lower() in map(str.lower, found):
            given += "_"
        found.append(given)
    return found
