"""Encode points as coded rows under regular cuts, with the replicator of GESS and a split rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.errors import BudgetError
from epsjoin.kernels import codes as join_codes
from epsjoin.kernels.arrays import Bools, Bytes, Floats, Ints
from epsjoin.kernels.codes import code_width
from epsjoin.kernels.plan.regular import DONE, MAX_ROWS_PER_CUBE, TOO_MANY, Decisions, divide_cubes
from epsjoin.kernels.plan.rules import NO, UNKNOWN, YES, tabulate
from epsjoin.local.arguments import check_choice
from epsjoin.local.plan.split_rules.own_rule import OwnRule, Rule
from epsjoin.params import DECISIONS

_FIRST_TABLE_ROWS = 16
"""Number of rows of a cube that a table of the user's answers has room for at first."""


class CodedRows(NamedTuple):
    """Rows of the replicator, by point, in the order in which a cube's pieces stop.

    Parameters
    ----------
    row : (m,) int64, index of the point.
    codes : (m, w) uint8, see :mod:`epsjoin.kernels.codes`.
    is_replica : (m,) bool, whether the point has other rows too.
    """

    row: Ints
    codes: Bytes
    is_replica: Bools


def _count_rows(
    lower: Ints, upper: Ints, levels: int, rule: Rule, decisions: str, width: int
) -> tuple[Ints, Decisions]:
    """First pass: the rows of each cube, and the decisions with all answers of the user's rule."""
    n, n_axes = lower.shape
    counts = np.zeros(n, np.int64)
    nothing = np.empty(0, np.int64)
    no_codes = np.empty((0, width), np.uint8)
    if isinstance(rule, OwnRule):
        answers = np.full((_FIRST_TABLE_ROWS, rule.generations, levels, n_axes + 1), UNKNOWN, np.int8)
    else:
        answers = tabulate(rule.operations, rule.operands, rule.generations, levels, n_axes)
    choices = Decisions(
        answers, rule.max_rows, decisions == "local", decisions != "global", np.zeros(4, np.int64)
    )
    point = 0
    while True:
        status, point = divide_cubes(lower, upper, levels, choices, point, counts, nothing, nothing, no_codes)
        if status == DONE:
            return counts, choices
        if status == TOO_MANY:
            raise OverflowError(f"the cube of row {point} would become more than {MAX_ROWS_PER_CUBE} rows")
        level, n_crossed, rows, generation = choices.question.tolist()
        generation = min(generation, rule.generations - 1)
        while rows >= len(answers):
            answers = np.concatenate([answers, np.full_like(answers, UNKNOWN)])
        answer = rule.holds(level, n_crossed, rows, generation)
        answers[rows, generation, level, n_crossed] = YES if answer else NO
        choices = choices._replace(answers=answers)


def replicate_cubes(
    lower: Ints, upper: Ints, levels: int, rule: Rule, decisions: str = "global"
) -> CodedRows:
    """Codes of the cells that cover each cube, as the split rule wants them.

    Parameters
    ----------
    lower, upper : (n, a) int64, corners in fixed point (:func:`epsjoin.kernels.codes.cube_corners`).
    levels : deepest level of a cell.
    rule : the split rule, a :class:`~epsjoin.local.plan.split_rules.rules.SplitRule` or the user's own.
    decisions : "global" decides all dimensions of a level together; "local" one cut after the other, in the
        order of the axes. Locally k counts the splits already made on the path at this level and the one in
        question, and msl is the last level any of whose cuts may be split. "inside" splits as "global" does,
        and gives the cubes that stop the smaller cells of "local".

    Returns
    -------
    CodedRows
        By point. The cells of one point are disjoint and cover its cube. The rows of a point depend on
        its cube, ``levels``, ``rule`` and ``decisions`` alone. Except for "global", codes may end inside a
        level.

    Raises
    ------
    ArgumentError
        ``decisions`` is none of the three.
    OverflowError
        A cube would become more than a million rows: nothing but an unlimited rule does this.

    Notes
    -----
    O(rows x a), two passes (count, fill), iterative. Dittrich's dissertation, figure 3.4 for n = 2 (local)
    and n = 2**a (global), sections 5.3.4.2 to 5.3.4.4; the queue of pieces makes a limited budget go to the
    coarsest cuts first. Splitting everywhere gives the same cells both ways (ORE). Where nothing splits
    (MSJ), the local cell is the smaller one: it ends before the first crossed cut, not before the first level
    with one. "inside" has that advantage for all rules: each code extends that of "global", and of two codes
    one is a prefix of the other only if it is so globally; so it compares the same rows or fewer.
    """
    check_choice("decisions", decisions, DECISIONS)
    n, n_axes = lower.shape
    width = code_width(levels * n_axes)
    counts, choices = _count_rows(lower, upper, levels, rule, decisions, width)
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    total = int(starts[n])
    row = np.empty(total, np.int64)
    codes = np.empty((total, width), np.uint8)
    divide_cubes(lower, upper, levels, choices, 0, counts, starts, row, codes)
    return CodedRows(row, codes, counts[row] > 1)


class Space(NamedTuple):
    """How regular cuts divide the space, except for the split rule.

    Parameters
    ----------
    axes, low, width, levels, decisions : see :class:`epsjoin.local.plan.join_plan.JoinPlan`.
    eps : side of a cube in embedded coordinates.
    """

    axes: Ints
    low: Floats
    width: float
    eps: float
    levels: int
    decisions: str


def encode(embedded: Floats, space: Space, rule: Rule) -> CodedRows:
    """Encode points as coded rows under regular cuts.

    Raises
    ------
    BudgetError
        A cube would become more than a million rows.
    """
    lower, upper = join_codes.cube_corners(embedded, space.axes, space.low, space.width, space.eps)
    try:
        return replicate_cubes(lower, upper, space.levels, rule, space.decisions)
    except OverflowError as error:
        raise BudgetError(f"{error}; lower k, msl or replication_budget") from error
