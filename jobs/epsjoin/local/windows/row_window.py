"""The rows of the last batches by value: which rows have this value, the newest first."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Ints
from epsjoin.local.arguments import check_count, int_column
from epsjoin.local.windows.batches import Values, check_kind, split_missing


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

    Raises
    ------
    ArgumentError
        ``n_batches`` is not a whole number of at least 1.

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

    def __init__(self, n_batches: int) -> None:
        self._batches: deque[_Batch] = deque(maxlen=check_count("n_batches", n_batches, 1))
        self._kind: np.dtype[Any] | None = None

    def push(self, values: npt.ArrayLike, row_ids: npt.ArrayLike) -> None:
        """Add a batch; the oldest leaves if the window was full.

        Parameters
        ----------
        values : (n,) values, as for :meth:`ValueWindow.push`; rows whose value is None are not kept.
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
        found = [
            batch.row_ids[np.searchsorted(batch.values, wanted, "left")[0] : end][::-1]
            for batch in reversed(self._batches)
            if len(batch.values) and (end := np.searchsorted(batch.values, wanted, "right")[0])
        ]
        return np.concatenate(found) if found else np.empty(0, np.int64)
