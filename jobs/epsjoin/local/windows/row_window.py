"""The rows of the last batches by value: which rows have this value, the newest first."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Ints
from epsjoin.local.arguments import check_count, int_column
from epsjoin.local.sweep.sweeping import Counters, add_counts, check_counters
from epsjoin.local.windows.batches import Values, check_kind, split_missing
from epsjoin.local.windows.kinds import ROW_KINDS, LinkedRows, key_of


class _Batch(NamedTuple):
    """Rows of one batch.

    Parameters
    ----------
    values : (n,) ascending.
    row_ids : (n,) int64; of equal values the row that came first is first.
    """

    values: Values
    row_ids: Ints


class RowWindow:
    """Which rows of the last batches have a value.

    Parameters
    ----------
    n_batches : how many batches the window holds, at least 1. A push beyond that lets the oldest leave.
    kind : "sorted" (the default), or one of the paper's structures, which give the same answers more slowly
        and count what they follow: "ring", "aux", "bw" or "db".
    counters : dictionary to whose entries the work of the paper's structures is added: ``links_followed``
        (by pushes), ``links_of_queries``.

    Raises
    ------
    ArgumentError
        ``n_batches`` is not a whole number of at least 1, or there is no such kind.

    See Also
    --------
    ValueWindow : how many rows have each value.

    Notes
    -----
    *Source*: the attribute-valued index of Golab, Garg and Özsu (EDBT 2004), section 5. Theirs links the rows
    of a value across batches, and what a batch leaves behind must be cut off, or marked (ring, AUX, BW, DB).
    Here each batch is sorted by value: a push costs O(b log b) for b rows and touches nothing of other
    batches, a batch that leaves costs nothing, and :meth:`of` costs two binary searches in each batch.

    Examples
    --------
    >>> window = RowWindow(n_batches=2)
    >>> window.push(["VOR", "NDB"], [1, 2])
    >>> window.push(["NDB", "VOR", "NDB"], [3, 4, 5])
    >>> window.of("NDB")
    array([5, 3, 2])
    """

    def __init__(self, n_batches: int, *, kind: str = "sorted", counters: Counters | None = None) -> None:
        self._batches: deque[_Batch] = deque(maxlen=check_count("n_batches", n_batches, 1))
        if kind not in ("sorted", *ROW_KINDS):
            raise ArgumentError(f"kind must be sorted or one of {', '.join(ROW_KINDS)}, not {kind!r}")
        self._linked = None if kind == "sorted" else LinkedRows(kind, n_batches)
        self._counters = check_counters(counters)
        self._kind: np.dtype[Any] | None = None

    def push(self, values: npt.ArrayLike, row_ids: npt.ArrayLike) -> None:
        """Add a batch; the oldest leaves if the window was full.

        Parameters
        ----------
        values : (n,) values, as for :meth:`ValueWindow.push`; rows without a value are not kept.
        row_ids : (n,) integers, whatever the caller knows the rows by; equal ones are not looked for.

        Raises
        ------
        ArgumentError
            The values are not of the window's kind, or the ids are not one integer for each value.
        """
        there, is_missing = split_missing("values", values)
        ids = int_column("row_ids", row_ids)
        if len(ids) != len(is_missing):
            raise ArgumentError(f"row_ids must be one for each of {len(is_missing)} values, not {len(ids)}")
        self._kind = check_kind("values", there, self._kind)
        if self._linked is not None:
            before = self._linked.links
            self._linked.push([key_of(value) for value in there.tolist()], ids[~is_missing].tolist())
            add_counts(self._counters, links_followed=self._linked.links - before)
            return
        order = np.argsort(there, kind="stable")
        self._batches.append(_Batch(there[order], ids[~is_missing][order]))

    def of(self, value: Any) -> Ints:
        """Return the ids of the rows that have a value.

        Parameters
        ----------
        value : one value of the window's kind; NaN finds NaN.

        Returns
        -------
        (m,) int64
            The newest row first.

        Raises
        ------
        ArgumentError
            The value is not of the window's kind, or None.
        """
        wanted, is_missing = split_missing("value", [value])
        if is_missing.any():
            raise ArgumentError("value must not be None: rows without a value are not kept")
        check_kind("value", wanted, self._kind)
        if self._linked is not None:
            before = self._linked.links_of_queries
            ids = self._linked.of(key_of(wanted.tolist()[0]))
            add_counts(self._counters, links_of_queries=self._linked.links_of_queries - before)
            return np.array(ids, np.int64)
        found = [
            batch.row_ids[np.searchsorted(batch.values, wanted, "left")[0] : end][::-1]
            for batch in reversed(self._batches)
            if len(batch.values) and (end := np.searchsorted(batch.values, wanted, "right")[0])
        ]
        return np.concatenate(found) if found else np.empty(0, np.int64)
