"""The values of the last batches, counted: which are new, which are gone, quantiles, mean and variance."""

from __future__ import annotations

import math
from collections import deque
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools
from epsjoin.local.arguments import as_array, as_number, check_count
from epsjoin.local.sweep.sweeping import Counters, add_counts, check_counters
from epsjoin.local.windows.batches import (
    NO_COUNTS,
    TEXT,
    Counts,
    Moments,
    Values,
    check_kind,
    count_values,
    merge_moments,
    moments_of,
    split_missing,
)
from epsjoin.local.windows.kinds import BY_GROUP, VALUE_KINDS, PaperValues, key_of
from epsjoin.local.windows.merged import are_among, replace_batch, rows_of, without_zeros

_PURGES = 5
"""How often the index forgets values without rows while all batches of a window are replaced: section 6.1 of
the paper found no difference between 2 and 5."""


class ValueWindow:
    """How often each value comes in the last batches; kept up to date by the batches that come and leave.

    Parameters
    ----------
    n_batches : how many batches the window holds, at least 1. A push beyond that lets the oldest leave.
    groups : (g,) ascending numbers or texts; where given, ranges are counted instead of values: range i holds
        the values with ``groups[i - 1] <= value < groups[i]``, range 0 those below the first, range g those
        from the last on. Answers are then numbers of ranges, and what they say of single values is
        approximate: a value that is new in a range with others is not seen.
    kind : "merged" (the default), or one of the paper's structures, which give the same answers more slowly
        and count what they look at: a store, LIST, AGGR or HASH, and an index, L, T or H, as "AGGR T"; with
        ``groups`` "GROUP G".
    counters : dictionary to whose entries the work is added: ``values_added``, ``values_expired`` (distinct
        values of batches that came or left); ``index_inserts``, ``purges``, or of the paper's structures
        ``probes`` (values looked at).

    Raises
    ------
    ArgumentError
        An argument is out of its range.

    See Also
    --------
    RowWindow : which rows have a value.
    JoinWindow : which rows are within eps.

    Notes
    -----
    *Source*: Golab, Garg and Özsu (EDBT 2004), sections 3 and 4: batches are stored as distinct values with
    counts (AGGR), over them lies one sorted index of value and count; GROUP with ``groups``. A push costs O(b
    log b + d log D) for b rows with d distinct values of D in the window, and O(D) where a value is new to
    the index. A batch becomes visible when its push returns, and not at all if the push raises.

    Examples
    --------
    >>> window = ValueWindow(n_batches=2)
    >>> for types in (["VOR", "NDB"], ["VOR", "VOR", "DME"], ["VOR"]):
    ...     window.push(types)
    >>> window.counts().values.tolist(), window.counts().rows.tolist()
    (['DME', 'VOR'], [1, 3])
    >>> window.new().tolist(), window.gone().tolist()
    ([], ['NDB'])
    """

    def __init__(
        self,
        n_batches: int,
        groups: npt.ArrayLike | None = None,
        *,
        kind: str = "merged",
        counters: Counters | None = None,
    ) -> None:
        check_count("n_batches", n_batches, 1)
        self._n_batches = n_batches
        self._edges = None if groups is None else _check_groups(groups)
        self._paper = _paper_of(kind, n_batches, self._edges)
        self._counters = check_counters(counters)
        self._kind: np.dtype[Any] | None = None
        self._batches: deque[tuple[Counts, Moments]] = deque()
        self._expired = NO_COUNTS
        self._index = NO_COUNTS
        self._until_purge = self._purge_every = max(1, n_batches // _PURGES)

    @staticmethod
    def count(values: npt.ArrayLike) -> Counts:
        """Count one batch: distinct values, ascending, and the rows of each.

        Parameters
        ----------
        values : see :meth:`push`.

        Raises
        ------
        ArgumentError
            See :meth:`push`.
        """
        there, is_missing = split_missing("values", values)
        return count_values(there, int(is_missing.sum()))

    def push(self, values: npt.ArrayLike | Counts) -> None:
        """Add a batch; the oldest leaves if the window was full.

        Parameters
        ----------
        values : (n,) integers, floats, booleans or texts, all of one kind and of the kind of the batches
            before; None is no value, nor is a null of Arrow, of polars, or of pandas' own types. A batch may
            be empty. Or its :class:`Counts`, where somebody has counted it.

        Raises
        ------
        ArgumentError
            The values are not one-dimensional, of a kind that no window holds, or not of the window's.
        """
        batch = _check_counts(values) if isinstance(values, Counts) else self.count(values)
        kind = check_kind("values", batch.values, self._kind)
        moments = moments_of(batch) if kind is not None and kind.kind in "ifb" else Moments(0, 0.0, 0.0)
        if self._edges is not None:
            batch = _group(batch, self._edges)
        is_full = len(self._batches) == self._n_batches
        expired = self._batches[0][0] if is_full else NO_COUNTS
        if self._paper is None:
            index, n_inserted = replace_batch(self._index, expired, batch)
            add_counts(self._counters, index_inserts=n_inserted)
        else:
            index = self._by_paper(self._paper, values, batch.missing - expired.missing, kind)
        self._kind = kind
        if is_full:
            self._batches.popleft()
        self._batches.append((batch, moments))
        self._expired, self._index = expired, index
        add_counts(self._counters, values_added=len(batch.values), values_expired=len(expired.values))
        self._until_purge -= 1
        if not self._until_purge and self._paper is None:
            self._until_purge = self._purge_every
            self._index = without_zeros(index)
            add_counts(self._counters, purges=1)

    def _by_paper(
        self,
        paper: PaperValues,
        values: npt.ArrayLike | Counts,
        more_missing: int,
        kind: np.dtype[Any] | None,
    ) -> Counts:
        """Push a batch to the paper's structure, and return the counts that it has then."""
        rows = np.repeat(*values[:2]) if isinstance(values, Counts) else split_missing("values", values)[0]
        add_counts(self._counters, probes=paper.push([key_of(value) for value in rows.tolist()]))
        found = paper.items()
        if self._edges is None:
            distinct = np.array([math.nan if is_nan else value for (is_nan, value), _ in found], kind)
        else:
            distinct = np.array([number for number, _ in found], np.int64)
        return Counts(
            distinct, np.array([rows for _, rows in found], np.int64), self._index.missing + more_missing
        )

    def counts(self) -> Counts:
        """Return the distinct values of the window and how many rows have each."""
        return without_zeros(self._index)

    def distinct(self) -> int:
        """Return how many distinct values the window has; None is none."""
        return int(np.count_nonzero(self._index.rows))

    def quantile(self, q: float) -> Any:
        """Return the least value with at least a fraction q of all values at or below it.

        Parameters
        ----------
        q : fraction of the rows with a value, 0 to 1: 0.5 is the lower median. NaN is the greatest value.

        Returns
        -------
        int, float, bool, str or None
            A value of the window; None if it has none.

        Raises
        ------
        ArgumentError
            ``q`` is not between 0 and 1.
        """
        if not 0 <= as_number(q) <= 1:
            raise ArgumentError(f"q must be between 0 and 1, not {q!r}")
        values, rows, _ = self.counts()
        if not len(values):
            return None
        up_to = np.cumsum(rows)
        value = values[np.searchsorted(up_to / up_to[-1], q)]
        return value.item() if isinstance(value, np.generic) else value

    def mean(self) -> float:
        """Return the mean of the window's numbers, groups or not; NaN if it has none, or NaN or infinity.

        Raises
        ------
        ArgumentError
            The values are texts.
        """
        moments = self._moments("mean")
        return float(moments.mean) if moments.n else math.nan

    def var(self) -> float:
        """Return the mean squared distance from the mean; NaN as for :meth:`mean`.

        It is infinite where the sum of the squared distances is beyond float64.

        Raises
        ------
        ArgumentError
            The values are texts.
        """
        moments = self._moments("variance")
        return float(moments.squares / moments.n) if moments.n else math.nan

    def new(self) -> Values:
        """Return the values of the newest batch that no other batch of the window has, ascending."""
        if not self._batches:
            return self._index.values
        newest = self._batches[-1][0]
        return self._typed(_chosen(newest.values, rows_of(self._index, newest.values) == newest.rows))

    def gone(self) -> Values:
        """Return the values that the window lost with the batch that left last, ascending."""
        return self._typed(_chosen(self._expired.values, rows_of(self._index, self._expired.values) == 0))

    def _typed(self, values: Values) -> Values:
        """Values of the window's kind, also where there are none: of an empty batch they have no kind."""
        if len(values) or self._kind is None:
            return values
        return np.empty(0, self._kind if self._edges is None else np.int64)

    def __and__(self, other: ValueWindow) -> Values:
        """Return the values that both windows have, ascending."""
        mine, its = self._both(other)
        return _chosen(mine, are_among(mine, its))

    def __or__(self, other: ValueWindow) -> Values:
        """Return the values that one of the windows has, ascending."""
        return np.unique(np.concatenate(self._both(other)))

    def __sub__(self, other: ValueWindow) -> Values:
        """Return the values of this window that the other has not, ascending."""
        mine, its = self._both(other)
        return _chosen(mine, ~are_among(mine, its))

    def _both(self, other: ValueWindow) -> tuple[Values, Values]:
        """Return the values of both windows, which must be comparable."""
        if not isinstance(other, ValueWindow):
            raise ArgumentError(f"a window can be compared with a ValueWindow, not {type(other).__name__}")
        if _listed(self._edges) != _listed(other._edges):
            raise ArgumentError("both windows must have the same groups, or none")
        mine, its = self.counts().values, other.counts().values
        if self._kind != other._kind and len(mine) and len(its):
            raise ArgumentError("both windows must hold values of one kind")
        if not len(mine):  # an empty window may be of no kind
            mine = its[:0]
        return mine, its if len(its) else mine[:0]

    def _moments(self, what: str) -> Moments:
        if self._kind is not None and self._kind == TEXT:
            raise ArgumentError(f"texts have no {what}")
        return reduce(merge_moments, (moments for _, moments in self._batches), Moments(0, 0.0, 0.0))


def _listed(edges: Values | None) -> list[Any] | None:
    return None if edges is None else edges.tolist()


def _paper_of(kind: str, n_batches: int, edges: Values | None) -> PaperValues | None:
    """Return the paper's structure of that kind; None for ours."""
    if kind == "merged":
        return None
    if kind not in VALUE_KINDS or (kind == BY_GROUP) != (edges is not None):
        kinds = BY_GROUP if edges is not None else ", ".join(each for each in VALUE_KINDS if each != BY_GROUP)
        with_groups = "with" if edges is not None else "without"
        raise ArgumentError(f"kind must be merged or, {with_groups} groups, one of {kinds}, not {kind!r}")
    return PaperValues(kind, n_batches, _listed(edges) or [])


def _check_groups(groups: npt.ArrayLike) -> Values:
    edges, is_missing = split_missing("groups", groups)
    is_nan = edges != edges  # only NaN is not equal to itself
    if is_missing.any() or is_nan.any() or not len(edges) or not (edges[1:] > edges[:-1]).all():
        raise ArgumentError("groups must be the ascending edges of ranges, at least one, without None or NaN")
    return edges


def _check_counts(counts: Counts) -> Counts:
    """Check counts that somebody else has made, and put them in order."""
    values, is_missing = split_missing("values", counts.values)
    rows = as_array("rows", counts.rows)
    if is_missing.any() or rows.shape != values.shape or len(np.unique(values)) != len(values):
        raise ArgumentError(
            "counts must have distinct values, and the rows of each; None is counted as missing"
        )
    if len(rows) and (rows.dtype.kind not in "iu" or rows.min() < 1):
        raise ArgumentError("rows of a value must be an integer of at least 1")
    missing = check_count("missing of counts", counts.missing, 0)
    order = np.argsort(values)
    return Counts(values[order], rows[order].astype(np.int64), missing)


def _group(batch: Counts, edges: Values) -> Counts:
    """Count ranges instead of values."""
    if len(batch.values) and (batch.values.dtype == TEXT) != (edges.dtype == TEXT):
        raise ArgumentError("groups and values must both be numbers, or both texts")
    groups = (
        np.searchsorted(edges, batch.values, side="right") if len(batch.values) else np.empty(0, np.int64)
    )
    numbers, first = np.unique(groups, return_index=True)  # ascending, as the values are
    rows = np.add.reduceat(batch.rows, first) if len(first) else batch.rows
    return Counts(numbers, rows, batch.missing)


def _chosen(values: Values, is_chosen: Bools) -> Values:
    chosen: Values = values[is_chosen]
    return chosen
