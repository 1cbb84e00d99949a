"""A split rule as compiled loops test it: a postfix program, then a table of its answers, then the budget.

:mod:`epsjoin.local.plan.split_rules.rules` makes the programs and says what the numbers mean.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Ints, Ints8

NO, YES, UNKNOWN = 0, 1, -1
"""Answers of a rule; ``UNKNOWN`` is an answer that the user's function has not yet returned."""
K, LEVEL, AND, OR, NOT, GENERATION = range(6)
"""Operations of a program: ``k``, ``level``, ``generation <= operand``; three that combine truth values."""
MAX_PENDING = 60
"""Maximum number of truth values that wait during an evaluation: they are the bits of one int64."""
_MAX_SPLIT_DIMENSIONS = 40
"""Maximum number of dimensions that are split at once: 2**40 rows, and 2**63 would not be an int64."""


@njit
def holds(operations: Ints, operands: Ints, level: int, n_crossed: int, generation: int) -> bool:
    """Evaluate the postfix program; truth values wait as the bits of one integer, the last one lowest."""
    waiting = np.int64(0)
    for i in range(operations.shape[0]):
        operation = operations[i]
        if operation == K:
            waiting = (waiting << 1) | np.int64(n_crossed <= operands[i])
        elif operation == LEVEL:
            waiting = (waiting << 1) | np.int64(level <= operands[i])
        elif operation == GENERATION:
            waiting = (waiting << 1) | np.int64(generation <= operands[i])
        elif operation == NOT:
            waiting ^= np.int64(1)
        else:
            last = waiting & 1
            waiting >>= 1
            if operation == AND:
                waiting &= np.int64(-2) | last
            else:
                waiting |= last
    is_true: bool = (waiting & 1) == 1
    return is_true


@njit
def _fits(max_rows: int, n_crossed: int, rows: int, is_local: bool) -> bool:
    """Whether the rows that a split adds are within the budget."""
    if is_local:
        return rows < max_rows
    return n_crossed <= _MAX_SPLIT_DIMENSIONS and rows - 1 + (1 << n_crossed) <= max_rows


@njit
def tabulate(operations: Ints, operands: Ints, generations: int, levels: int, d: int) -> Ints8:
    """Evaluate a program for every question that may come, in the form that :func:`decide_split` reads.

    Parameters
    ----------
    operations, operands : (p,) int64, see :class:`epsjoin.local.plan.split_rules.rules.SplitRule`; not
        modified.
    generations : number of generations that the program tells apart, 1 where it asks for none.
    levels : number of levels.
    d : dimensions.

    Returns
    -------
    (1, generations, levels, d + 1) int8. O(its size x operations), once per call of the replicator instead of
    per split.
    """
    answers = np.empty((1, generations, levels, d + 1), np.int8)
    for generation in range(generations):
        for level in range(levels):
            for n_crossed in range(d + 1):
                answers[0, generation, level, n_crossed] = (
                    YES if holds(operations, operands, level, n_crossed, generation) else NO
                )
    return answers


@njit
def decide_split(
    answers: Ints8, max_rows: int, level: int, n_crossed: int, rows: int, generation: int, is_local: bool
) -> int:
    """Whether a cube may be split: the predicate, as a table, and the budget.

    Parameters
    ----------
    answers : (r, g, levels, d + 1) int8, by rows, generation, level and n_crossed: ``YES``, ``NO`` or
        ``UNKNOWN``. With r = 1 the rows do not matter; generations from g - 1 on have one answer.
    max_rows : the budget.
    level : level of the cell whose cuts are crossed; 0 is the whole space.
    n_crossed : at least 1; see :mod:`epsjoin.local.plan.split_rules.rules`.
    rows : rows that the whole cube has become so far, this piece counted as one.
    generation : splits on the path to the piece; 0 is the whole cube.
    is_local : whether one cut is decided by itself, which adds one row; else all ``n_crossed`` at once, never
        more than 40 of them.

    Returns
    -------
    ``YES``, ``NO``, or ``UNKNOWN`` when the user's function must be called first.
    """
    if not _fits(max_rows, n_crossed, rows, is_local):
        return NO
    generation = min(generation, answers.shape[1] - 1)
    if answers.shape[0] == 1:
        return int(answers[0, generation, level, n_crossed])
    return int(answers[rows, generation, level, n_crossed]) if rows < answers.shape[0] else UNKNOWN
