"""A split rule that is a function of the user's, which no kernel can call; and what either kind is called."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial

from epsjoin.errors import ArgumentError
from epsjoin.local.plan.split_rules.rules import NO_LIMIT, SplitRule, whole_budget


class OwnRule:
    """The user's own rule, a plain or compiled function ``(level, n_crossed, rows) -> bool``.

    Parameters
    ----------
    function : called before a split; ``rows`` is the number of rows that the cube has become so far. It must
        return the same answer for the same three numbers, or else the rows of a cube would depend on where
        and when they are made.
    replication_budget : maximum number of rows per cube; may be infinite.

    Raises
    ------
    ArgumentError
        ``function`` cannot be called, or the budget is below 1 or not a number.

    Notes
    -----
    It may be combined with any rule by ``&``, ``|``, ``~``. A function has no text, so a plan with such a
    rule cannot be written as text.

    The function is called once for each different (level, n_crossed, rows). The answers are kept in a table
    of rows x levels x (d + 1) bytes, with the largest number of rows that a cube has become; a budget limits
    it. What depends on the generation, too, is said by ``& max_generation(g)``; a cell is as wide as the
    space, halved ``level`` times.

    Examples
    --------
    >>> from epsjoin import max_split_level
    >>> rule = max_split_level(5) & OwnRule(lambda level, n_crossed, rows: n_crossed * rows < 6)
    >>> rule.holds(level=1, n_crossed=2, rows=2), rule.holds(level=1, n_crossed=3, rows=2)
    (True, False)
    """

    def __init__(
        self, function: Callable[[int, int, int], object], replication_budget: float = math.inf
    ) -> None:
        if not callable(function):
            raise ArgumentError(f"function must be a function of level, n_crossed and rows, not {function!r}")
        self.generations = 1
        self.max_rows = whole_budget(replication_budget)
        self._predicate: Callable[[int, int, int, int], object] = partial(_without_generation, function)

    def within(self, replication_budget: float) -> OwnRule:
        """Limit this rule to ``floor(replication_budget)`` rows per cube, never more than its own budget.

        Raises
        ------
        ArgumentError
            The budget is below 1 or not a number; it may be infinite.
        """
        return self._with(self._predicate, min(self.max_rows, whole_budget(replication_budget)))

    def holds(self, level: int, n_crossed: int, rows: int, generation: int = 0) -> bool:
        """Whether the predicate holds; the budget does not matter."""
        return bool(self._predicate(level, n_crossed, rows, generation))

    def __and__(self, other: Rule) -> OwnRule:
        return self._with(
            lambda *asked: self.holds(*asked) and other.holds(*asked), other.max_rows, other.generations
        )

    def __or__(self, other: Rule) -> OwnRule:
        return self._with(
            lambda *asked: self.holds(*asked) or other.holds(*asked), other.max_rows, other.generations
        )

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> OwnRule:
        return self._with(lambda *asked: not self.holds(*asked))

    def _with(
        self,
        predicate: Callable[[int, int, int, int], object],
        max_rows: int = NO_LIMIT,
        generations: int = 1,
    ) -> OwnRule:
        """Make a rule of another predicate that keeps the limits of this one."""
        rule = copy.copy(self)
        rule.generations = max(self.generations, generations)
        rule.max_rows = min(self.max_rows, max_rows)
        rule._predicate = predicate
        return rule


def _without_generation(
    function: Callable[[int, int, int], object], level: int, n_crossed: int, rows: int, _generation: int
) -> object:
    return function(level, n_crossed, rows)


Rule = SplitRule | OwnRule
