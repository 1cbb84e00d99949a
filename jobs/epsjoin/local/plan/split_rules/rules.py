"""When a cube may be split: the predicates of GESS, as data that a kernel can test.

The papers' joins are settings of one rule:

=====  ==================  ==========================  ==================
join   k                   msl                         budget
=====  ==================  ==========================  ==================
ORE    d (all dimensions)  the deepest level           no limit
MSJ    0                   any                         any
GESS   1, 2, 3, ...        0, 1, 2, ...                as you like
=====  ==================  ==========================  ==================

Rules are an algebra (Dittrich's dissertation, strategies 1 to 3, section 3.5 "Prädikatgesteuerte
Replikation"): :func:`max_splits_per_level`, :func:`max_split_level` and :func:`max_generation`, joined by
``a & b``, ``a | b`` and ``~a``, and
:class:`~epsjoin.local.plan.split_rules.own_rule.OwnRule` around a function of the user's. Over all of them
stands the replication budget, which is no part of the algebra: no rule, ``~a`` least of all, lets a cube
become more rows than that. Of two rules that are combined the smaller budget holds.

What the numbers mean depends on the decisions, see
:func:`epsjoin.local.plan.split_rules.encode.replicate_cubes`:

=========  ===================================================  =====================================
decisions  k (``n_crossed``)                                    rows that a split adds
=========  ===================================================  =====================================
global     dimensions whose cut the cube crosses at the level   2**k - 1
local      splits made on the path at this level, this one      1
           included: a cut is one crossed dimension
=========  ===================================================  =====================================

``level`` is the level of the cell whose cuts are crossed in both, 0 for the whole space. ``generation`` is
the number of splits on the path to the piece, 0 for the whole cube; globally those of a level are one split.
"inside" splits as "global" does.

Why every rule is safe. Replication gives each cube H(x) a set of disjoint cells that cover it. Take any
two cubes that meet, and their reference point r in both. Exactly one cell A of x holds r and exactly one
cell B of y does. Two cells of a recursive partitioning that share r are nested, so the code of one is a
prefix of the other's, the merge compares these two rows, and the longer code is a prefix of the code of r.
For any other two rows of the pair r is outside one of the cells. If their codes are nested, r can be outside
the smaller cell only, since it is in no smaller cell without being in the larger: the longer code is then
not a prefix of the code of r, and the pair is not reported. Nothing here asks *why* a cube was split:
the rule may depend on the cube, the level, the rows that the cube has already become, or a coin that depends
on the cube alone. It must only make the same rows each time that the cube is encoded.
"""

from __future__ import annotations

import ast
import json
import math
from functools import partial
from typing import NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.plan.rules import AND, GENERATION, LEVEL, MAX_PENDING, NOT, OR, K, holds

NO_LIMIT = 1 << 40
"""Replication budget of a rule that has none: rows per cube."""
MAX_GENERATIONS = 256
"""Maximum number of generations that a rule tells apart: a table of answers has a place for each."""
_NAMES = {"k": K, "level": LEVEL, "generation": GENERATION}
_GRAMMAR = (
    "comparisons of k, level or generation with a whole number (<=, <, >=, >), "
    'joined by "and", "or", "not" and brackets'
)


class SplitRule(NamedTuple):
    """A rule that says whether a cube is split at a level where it crosses ``n_crossed`` cuts.

    Parameters
    ----------
    operations : (p,) int64, the rule in postfix form: ``k``, ``level`` or ``generation <= operand``, and,
        or, not.
    operands : (p,) int64, the operand of each operation; 0 where it has none.
    max_rows : maximum number of rows of a cube; a split that would exceed it is not made.

    Notes
    -----
    Make it with :func:`max_splits_per_level`, :func:`max_split_level` and :func:`max_generation`, not by
    hand. ``a & b``, ``a | b`` and ``~a`` make new rules. ``str(rule)`` is its text, which :class:`Cuts` takes
    as ``rule``.

    Examples
    --------
    >>> rule = max_splits_per_level(1) & ~max_split_level(2)
    >>> str(rule), str(rule | max_split_level(0))
    ('k<=1 and level>2', 'k<=1 and level>2 or level<=0')
    """

    operations: Ints
    operands: Ints
    max_rows: int

    def __and__(self, other: SplitRule) -> SplitRule:
        return self._combine(other, AND)

    def __or__(self, other: SplitRule) -> SplitRule:
        return self._combine(other, OR)

    def __invert__(self) -> SplitRule:
        if self.operations[-1] == NOT:  # not not a
            return SplitRule(self.operations[:-1].copy(), self.operands[:-1].copy(), self.max_rows)
        return _compile([*self._steps(), (NOT, 0)], self.max_rows)

    def __str__(self) -> str:
        return _text(self)

    def within(self, replication_budget: float) -> SplitRule:
        """Limit this rule to ``floor(replication_budget)`` rows per cube, never more than its own budget.

        Raises
        ------
        ArgumentError
            The budget is below 1 or not a number; it may be infinite.
        """
        return self._replace(max_rows=min(self.max_rows, whole_budget(replication_budget)))

    def holds(self, level: int, n_crossed: int, rows: int, generation: int = 0) -> bool:  # noqa: ARG002  # as of OwnRule
        """Whether the predicate holds; the budget does not matter, nor, unlike for OwnRule, do the rows."""
        return bool(holds(self.operations, self.operands, level, n_crossed, generation))

    @property
    def generations(self) -> int:
        """Number of generations that the rule tells apart: the last stands for all that follow."""
        asked = self.operands[self.operations == GENERATION]
        return int(asked.max(initial=-1)) + 2

    def to_json(self) -> str:
        """Write ``{"split": text, "max_rows": number or null}``, which :func:`rule_from_json` reads."""
        limit = None if self.max_rows >= NO_LIMIT else int(self.max_rows)
        return json.dumps({"split": str(self), "max_rows": limit})

    def _steps(self) -> list[tuple[int, int]]:
        return list(zip(self.operations.tolist(), self.operands.tolist(), strict=True))

    def _combine(self, other: SplitRule, operation: int) -> SplitRule:
        if not isinstance(other, SplitRule):
            return NotImplemented  # an OwnRule combines them
        steps = [*self._steps(), *other._steps(), (operation, 0)]
        return _compile(steps, min(self.max_rows, other.max_rows))


def max_splits_per_level(k: int) -> SplitRule:
    """Make the rule that splits a cube where it crosses at most ``k`` cuts of a level; 0 never splits.

    Parameters
    ----------
    k : maximum number of crossed cuts, at least 0.

    Returns
    -------
    SplitRule
        The rule, without a limit on the rows of a cube.

    Raises
    ------
    ArgumentError
        ``k`` is negative.

    Examples
    --------
    >>> str(max_splits_per_level(3))
    'k<=3'
    """
    if k < 0:
        raise ArgumentError(f"k must be at least 0, not {k}")
    return _atom(K, k)


def max_split_level(msl: int) -> SplitRule:
    """Make the rule that splits a cube down to level ``msl``; 0 is the first level, -1 never splits.

    Parameters
    ----------
    msl : last level at which a cube is split, at least -1.

    Returns
    -------
    SplitRule
        The rule, without a limit on the rows of a cube.

    Raises
    ------
    ArgumentError
        ``msl`` is below -1.

    Notes
    -----
    Dittrich's dissertation defines this as ``level < msl`` (strategy 2), and means ``level <= msl``, as here,
    in its experiments: with msl = 0 its figure 3.10b splits in level 0.

    Examples
    --------
    >>> str(max_splits_per_level(3) & max_split_level(2))
    'k<=3 and level<=2'
    """
    if msl < -1:
        raise ArgumentError(f"msl must be at least -1, not {msl}")
    return _atom(LEVEL, msl)


def max_generation(generation: int) -> SplitRule:
    """Make the rule that splits a cube, and its pieces down to this generation; 0 splits the cube only.

    Parameters
    ----------
    generation : last generation that is split, from -1 (never) to 254. The whole cube is generation 0, its
        pieces are 1, theirs 2; the splits of one level are one, unless cuts are decided one by one ("local").

    Returns
    -------
    SplitRule
        The rule, without a limit on the rows of a cube.

    Raises
    ------
    ArgumentError
        ``generation`` is out of its range.

    Examples
    --------
    >>> str(max_splits_per_level(3) & max_generation(1))
    'k<=3 and generation<=1'
    """
    if not -1 <= generation <= MAX_GENERATIONS - 2:
        raise ArgumentError(f"generation must be from -1 to {MAX_GENERATIONS - 2}, not {generation}")
    return _atom(GENERATION, generation)


def make_split_rule(k: int, msl: int, replication_budget: float) -> SplitRule:
    """Strategy 3: "k crossed dimensions, down to level msl, at most floor(budget) rows per cube".

    Raises
    ------
    ArgumentError
        See :func:`max_splits_per_level`, :func:`max_split_level`, :meth:`SplitRule.within`.
    """
    return (max_splits_per_level(k) & max_split_level(msl)).within(replication_budget)


def parse_split_rule(text: str) -> SplitRule:
    """Read a rule without a budget, such as ``k<=3 and not level>2``.

    Parameters
    ----------
    text : comparisons of ``k``, ``level`` or ``generation`` with a whole number by ``<=, <, >=, >``, joined
        by ``and``, ``or``, ``not`` and brackets, which bind as in Python.

    Raises
    ------
    ArgumentError
        The text is anything else, or nested too deeply.
    """
    try:
        return _from_tree(ast.parse(text.strip(), mode="eval").body)
    except ArgumentError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ArgumentError(f"split rule must be {_GRAMMAR}, not {text!r}") from error


def rule_from_json(text: str) -> SplitRule:
    """Read what :meth:`SplitRule.to_json` wrote.

    Raises
    ------
    ArgumentError
        The text is no JSON object of exactly ``split`` and ``max_rows``, or one of them is wrong.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ArgumentError(f"split rule must be JSON, not {text!r}") from error
    if (
        not isinstance(found, dict)
        or set(found) != {"split", "max_rows"}
        or not isinstance(found["split"], str)
    ):
        raise ArgumentError(f'split rule must be {{"split": text, "max_rows": number or null}}, not {text!r}')
    limit = found["max_rows"]
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
        raise ArgumentError(f"max_rows must be a whole number or null, not {limit!r}")
    return parse_split_rule(found["split"]).within(math.inf if limit is None else limit)


def whole_budget(replication_budget: float) -> int:
    """Rows per cube of a budget; of an infinite one ``NO_LIMIT``."""
    if not replication_budget >= 1.0:
        raise ArgumentError(f"replication_budget must be at least 1 row per cube, not {replication_budget}")
    return math.floor(replication_budget) if replication_budget < NO_LIMIT else NO_LIMIT


def _atom(operation: int, operand: int) -> SplitRule:
    return _compile([(operation, min(operand, NO_LIMIT))], NO_LIMIT)


def _compile(steps: list[tuple[int, int]], max_rows: int) -> SplitRule:
    waiting = 0
    for operation, _ in steps:
        waiting += {AND: -1, OR: -1, NOT: 0}.get(operation, 1)
        if waiting > MAX_PENDING:
            raise ArgumentError(f"split rule must be nested less deeply than {MAX_PENDING} brackets")
    operations, operands = np.array(steps, np.int64).T.copy()
    return SplitRule(operations, operands, max_rows)


def _from_tree(node: ast.expr) -> SplitRule:
    if isinstance(node, ast.BoolOp):
        rule, *others = map(_from_tree, node.values)
        for other in others:
            rule = rule & other if isinstance(node.op, ast.And) else rule | other
        return rule
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ~_from_tree(node.operand)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.left, ast.Name):
        operation, number = _NAMES.get(node.left.id), node.comparators[0]
        value = number.value if isinstance(number, ast.Constant) else None
        if operation is not None and isinstance(value, int) and not isinstance(value, bool):
            make = max_generation if operation == GENERATION else partial(_atom, operation)
            match node.ops[0]:
                case ast.LtE():
                    return make(value)
                case ast.Lt():
                    return make(value - 1)
                case ast.Gt():
                    return ~make(value)
                case ast.GtE():
                    return ~make(value - 1)
    raise ValueError


def _text(rule: SplitRule) -> str:
    """Infix text; each part waits with how tightly it binds: 0 or, 1 and, 2 not, 3 comparison."""
    words = {operation: name for name, operation in _NAMES.items()}
    parts: list[tuple[str, int]] = []

    def bracketed(part: tuple[str, int], least: int) -> str:
        return part[0] if part[1] >= least else f"({part[0]})"

    for operation, operand in rule._steps():
        if operation in words:
            # k<=-1 and level<=-1 have no signed numbers to be written with
            parts.append((f"{words[operation]}<={operand}" if operand >= 0 else f"{words[operation]}<0", 3))
        elif operation == NOT:
            text, binds = parts.pop()
            simple = binds == 3
            if simple:
                text = text.replace("<=", ">") if "<=" in text else text.replace("<", ">=")
            parts.append((text, 3) if simple else (f"not {bracketed((text, binds), 2)}", 2))
        else:
            right, left = parts.pop(), parts.pop()
            binds, word = (1, "and") if operation == AND else (0, "or")
            parts.append((f"{bracketed(left, binds)} {word} {bracketed(right, binds)}", binds))
    return parts[0][0]
