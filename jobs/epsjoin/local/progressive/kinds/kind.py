"""Kinds of joins: each is three columns, from which one merge makes any of them.

A kind gives each row a *key*, by which runs are sorted, and the key at which it *expires*, and it *joins*
rows. All removal predicates of Dittrich's dissertation (table 4.1) are ``expire(u) < key(v)``. A merge is
right for a kind whose ``expire`` fits its ``joins``: if u and v join and ``key(u) <= key(v)``, then
``key(v) <= expire(u)`` (condition 4.1, which must hold for equal keys, too). Condition 4.2, that u stays
expired, then holds by itself, since later rows have later keys.

Types say what a driver may ask, and when:

========================= ==========================================================================
:class:`JoinCondition`    what a caller joins ``on``: it checks rows, and is fitted to some of them
:class:`SweepKind`        a condition that is fitted: it keys rows, and makes the area that sweeps them
:class:`CutKind`          keys rows by parts, of which each is swept as a whole
:class:`JoinKind`         the three columns: condition and kind in one; a row has one key
========================= ==========================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.local.arguments import as_number
from epsjoin.local.coordinates import check_points
from epsjoin.local.progressive.kinds.sweep_areas import KindArea, SortedArea
from epsjoin.local.progressive.rows import Keys, SweepRows, Values


class Keyed(NamedTuple):
    """Rows with their keys; a row that has none is left out, and joins with nothing.

    Parameters
    ----------
    row : (m,) int64, index of the input's row; several of the same are its replicas.
    key : (m,) numbers, by which runs are sorted.
    mark : (m,) int64, what more the kind knows of each, as the mask of a replica; (0,) where it is nothing.
    """

    row: Ints
    key: Keys
    mark: Ints


class SweepKind(ABC):
    """A kind of join that is fitted to its rows: what a driver asks while it reads and merges."""

    @abstractmethod
    def keyed(self, values: Values, ids: Ints) -> Keyed:
        """Compute the keys of rows: of each one, several or none."""

    @abstractmethod
    def new_area(self, counters: dict[str, Any], two_tables: bool) -> KindArea:
        """Make an empty sweep area, which adds its work to the counters."""

    def new_partner_area(
        self,
        counters: dict[str, Any],
        two_tables: bool,
        lack_partner: Callable[[SweepRows], Bools],  # noqa: ARG002  # for kinds that can leave pairs out
    ) -> KindArea:
        """As :meth:`new_area`, for a semi or anti join: not all pairs have to be found.

        Parameters
        ----------
        lack_partner : tells which of some rows are asked for and have no partner so far.
        """
        return self.new_area(counters, two_tables)

    @abstractmethod
    def lowered(self, eps: float) -> SweepKind:
        """Return the kind with a lower eps and the same keys.

        Raises
        ------
        ArgumentError
            This kind of join has no eps, or its eps is lower.
        """

    def cut(self, sample: Values, ids: Ints, n_rows: int, part_rows: int) -> CutKind | None:
        """Plan parts, by which rows are written, on some of the rows.

        Parameters
        ----------
        sample : (m, c) of all rows.
        ids : (m,) int64, theirs.
        n_rows : number of all rows.
        part_rows : how many of them a part should have.

        Returns
        -------
        CutKind | None
            None, as by default: rows are written by the keys by which they are joined in memory.
        """
        del sample, ids, n_rows, part_rows
        return None

    def state(self) -> dict[str, Any]:
        """What fitting has chosen, as JSON can hold it; by default nothing."""
        return {}


class CutKind(SweepKind):
    """A kind whose keys are parts: all rows of a part are swept together, so a merge brings them at once."""

    @abstractmethod
    def pair_keys(self, rows: SweepRows, first: Ints, second: Ints) -> Keys:
        """The part in which each pair of rows is found; the rows are not keyed by this kind."""

    @abstractmethod
    def lowered(self, eps: float) -> CutKind:
        """See :class:`SweepKind`."""


class Fitted(NamedTuple):
    """A condition that was fitted: the kind that joins a run in memory, and the one by which it is written.

    Parameters
    ----------
    whole : for runs in memory.
    cut : for runs on disk; None where it is the same.
    """

    whole: SweepKind
    cut: CutKind | None = None


class JoinCondition(ABC):
    """What rows are joined on, before a row is seen.

    Attributes
    ----------
    takes_nulls : whether integers may be missing: such a row joins with nothing. Missing floats are NaN.
    takes_times : whether rows may be datetime64 or timedelta64, which are then told apart from integers.
    joins_equals : whether two rows of equal values, none of them null or NaN, are always a pair.
    has_ends : whether the first half of the columns is where a row begins, and the other one where it ends.
    """

    takes_nulls: ClassVar[bool] = False
    takes_times: ClassVar[bool] = False
    joins_equals: ClassVar[bool] = False
    has_ends: ClassVar[bool] = False

    def check(self, name: str, values: ArrayLike) -> Values:
        """Check a table's rows and return them as (n, c); by default finite float64."""
        return check_points(name, values)

    def check_one_table(self) -> None:  # noqa: B027  # most conditions have nothing to refuse
        """Refuse to join one table with itself, if this condition is not the same in both directions."""

    @abstractmethod
    def fit(self, sample: Values, n_rows: int) -> SweepKind:
        """Fit the condition to rows.

        Parameters
        ----------
        sample : (m, c), drawn from all rows, or the first ones.
        n_rows : number of all rows, as far as it is known.
        """

    @abstractmethod
    def restored(self, state: dict[str, Any]) -> Fitted:
        """Return what was fitted when the kind by which rows are written gave this state."""

    @abstractmethod
    def lowered(self, eps: float) -> JoinCondition:
        """Return the condition with a lower eps.

        Raises
        ------
        ArgumentError
            It has no eps, or a lower one.
        """


class JoinKind(JoinCondition, SweepKind):
    """A kind of join; one of your own is a subclass with ``key``, ``expire`` and ``joins``.

    Examples
    --------
    >>> class SameDay(JoinKind):  # hours since the start
    ...     def key(self, values):
    ...         return values[:, 0] // 24.0
    ...
    ...     def expire(self, values, is_right):
    ...         return values[:, 0] // 24.0
    ...
    ...     def joins(self, left, right):
    ...         return left[:, 0] // 24.0 == right[:, 0] // 24.0
    >>> from epsjoin import progressive_join
    >>> with progressive_join([[1.0], [30.0]], [[20.0], [80.0]], SameDay()) as found:
    ...     [pair for pairs, *_ in found for pair in zip(pairs.left.tolist(), pairs.right.tolist())]
    [(0, 0)]
    """

    @abstractmethod
    def key(self, values: Values) -> Keys:
        """Compute the key of each row: (n,) numbers."""

    @abstractmethod
    def expire(self, values: Values, is_right: Bools) -> Keys:
        """Compute the last key of a row that may join with each row: (n,) numbers, of ``key``'s type."""

    @abstractmethod
    def joins(self, left: Values, right: Values) -> Bools | Floats:
        """Decide which rows ``left[i]`` and ``right[i]`` join: (n,) bool, or distances, NaN for no pair."""

    def fit(self, sample: Values, n_rows: int) -> JoinKind:
        """See :class:`JoinCondition`; by default nothing depends on the rows."""
        del sample, n_rows
        return self

    def restored(self, state: dict[str, Any]) -> Fitted:
        """See :class:`JoinCondition`."""
        del state
        return Fitted(self)

    def keyed(self, values: Values, ids: Ints) -> Keyed:
        """See :class:`SweepKind`; one row each."""
        del ids
        key = self._check_keys("key", self.key(values), len(values))
        return Keyed(np.arange(len(values)), key, np.empty(0, np.int64))

    def new_area(self, counters: dict[str, Any], two_tables: bool) -> KindArea:
        """See :class:`SweepKind`."""
        return SortedArea(self, counters, two_tables)

    def expire_of(self, rows: SweepRows) -> Keys:
        """See :class:`~epsjoin.local.progressive.kinds.sweep_areas.Decides`."""
        return self._check_keys("expire", self.expire(rows.values, rows.is_right), rows.n)

    def _check_keys(self, method: str, given: object, n: int) -> Keys:
        """Check what a method returned: rows of a key that is NaN, say, would never meet."""
        keys = np.asarray(given)
        if keys.shape != (n,) or keys.dtype.kind not in "biuf" or np.isnan(keys).any():
            raise ArgumentError(
                f"{type(self).__name__}.{method} must return a number, and not NaN, for each of {n} rows, "
                f"not {keys.dtype} of the shape {keys.shape}"
            )
        return keys

    def meet(self, rows: SweepRows, first: Ints, second: Ints) -> Floats:
        """See :class:`~epsjoin.local.progressive.kinds.sweep_areas.Decides`."""
        swap = (rows.flags[first] & 1) > (rows.flags[second] & 1)
        left, right = np.where(swap, second, first), np.where(swap, first, second)
        found = np.asarray(self.joins(rows.values[left], rows.values[right]))
        if found.shape != left.shape or found.dtype.kind not in "bf":
            raise ArgumentError(
                f"{type(self).__name__}.joins must return a bool or a distance of each of {left.size} pairs, "
                f"not {found.dtype} of the shape {found.shape}"
            )
        return np.where(found, 0.0, np.nan) if found.dtype == np.bool_ else found.astype(np.float64)

    def lowered(self, eps: float) -> JoinKind:
        """See :class:`JoinCondition`; by default there is no eps."""
        del eps
        raise ArgumentError(f"{type(self).__name__} has no eps that could be lowered")


def check_lower(eps: object, before: float) -> float:
    """Return an eps that is not above the one before.

    Raises
    ------
    ArgumentError
        It is above it, or not a number above 0.
    """
    number = as_number(eps)
    if not number > 0:
        raise ArgumentError(f"eps must be a number above 0, not {eps!r}")
    if number > before:
        raise ArgumentError(
            f"eps can only be lowered while a join runs, and {number:g} is above {before:g}: pairs that were "
            "passed over would be missing; start another join"
        )
    return number
