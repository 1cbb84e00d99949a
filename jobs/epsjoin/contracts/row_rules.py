"""Conditions that every single row of a table must meet, taken from the table's contract.

The same list is used three times: as CHECK constraints in the table's Delta log, which bind every other
writer, too; for the check of rows before they are written; and by the quality gates, which count the rows
that break a condition. Conditions on other rows or other tables are not in it; only the gates check them.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from epsjoin.contracts.conditions import UnknownFormError, Values, column_name, columns_of, evaluate, parse
from epsjoin.contracts.odcs import Column
from epsjoin.contracts.tables import Rule, TableContract

OURS = re.compile(r"__[0-9a-f]{8}$")
"""End of every ``Constraint.name``; constraints of other names in a table's log belong to other writers."""

_COUNT_OF_ROWS = re.compile(r"SELECT COUNT\(\*\) FROM \$\{object\} WHERE (.+)", re.DOTALL)
"""Query of a rule that rows may break one by one."""

_OPPOSITE = {exp.LT: ">=", exp.LTE: ">", exp.GT: "<=", exp.GTE: "<", exp.EQ: "<>", exp.NEQ: "="}
"""Sign of the comparison that holds where the other one does not."""

_NOT_IN_DELTA = re.compile(
    r".*[^a-z0-9_].*|all|and|any|case|cast|current_\w+|distinct|exists|false|in|interval|is|local\w+|not|null"
    r"|or|returning|select|session_\w+|some|struct|trim|true|user|with"
)
"""Names of columns that deltalake cannot write in a constraint: it writes ``Lat`` as ``"Lat"``, which Spark
reads as a text, and keywords of SQL without any quotes."""


@dataclass(frozen=True)
class Constraint:
    """One condition on a row; small, for it is pickled and sent to the tasks.

    Parameters
    ----------
    words : the condition for people, by the name that the quality gates use.
    broken : SQL that is true for a row that breaks the condition; a missing value does not break it.
    optional : columns that may be null.
    """

    words: str
    broken: str
    optional: frozenset[str]

    @property
    def name(self) -> str:
        """The name in the Delta log; it changes with the condition, so that the new one replaces the old."""
        slug = re.sub(r"[^a-z0-9]+", "_", self.words.lower()).strip("_")
        return f"{slug}__{zlib.crc32(self.check.encode()):08x}"

    @property
    def check(self) -> str:
        """SQL that is true for every row that meets the condition, false for others, and never null.

        Delta counts null as a breach. deltalake rewrites the SQL of a constraint and drops the brackets of
        ``(a = b) <> (c = d)``, of ``x - (y - z)`` and before ``IS TRUE``; none of these forms is used here.
        """
        return _negate(parse(self.broken), self.optional)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the condition names."""
        return columns_of(parse(self.broken))

    @property
    def is_for_delta(self) -> bool:
        """Whether deltalake can write the condition as a constraint."""
        has_backslash = "\\" in self.broken  # Spark reads an escape, deltalake a plain character
        return not has_backslash and not any(_NOT_IN_DELTA.fullmatch(name) for name in self.columns)

    def first_breach(self, column: Callable[[str], Values]) -> int | None:
        """Index of the first row that breaks the condition; ``column`` returns a column's values by name."""
        broken = evaluate(parse(self.broken), column)
        if isinstance(broken, pa.Scalar):
            return 0 if broken.as_py() else None
        return int(pc.index(broken, True).as_py()) if pc.any(broken).as_py() else None


def constraints_of(contract: TableContract) -> tuple[Constraint, ...]:
    """The conditions on every row of a table: ranges and values of columns, and rules about single rows."""
    optional = frozenset(column.name for column in contract.columns if not column.required)
    found = [
        Constraint(words, broken, optional & {column.name})
        for column in contract.columns
        for words, broken in column_conditions(column)
    ]
    for name, condition in rule_conditions(contract).items():
        found.append(Constraint(name, condition, optional & columns_of(parse(condition))))
    return tuple(found)


@cache
def checks_of(contract: TableContract) -> Mapping[str, str]:
    """The CHECK constraints of a table by name, as its Delta log must have them."""
    return {each.name: each.check for each in constraints_of(contract) if each.is_for_delta}


@cache
def rule_conditions(contract: TableContract) -> Mapping[str, str]:
    """The conditions of those rules that rows break one by one, by the names of the rules."""
    names = {column.name for column in contract.columns}
    found = ((rule.name, condition_of(rule, names)) for rule in contract.rules)
    return {name: condition for name, condition in found if condition is not None}


def condition_of(rule: Rule, columns: set[str]) -> str | None:
    """SQL that is true for a row that breaks the rule; ``None`` if rows do not break it one by one.

    A rule that rows break one by one has the severity error, and its query counts rows of ``${object}``
    alone. Its condition compares columns with columns, numbers or texts, and may have sums, IN, IS NULL,
    ISNAN, AND and OR.
    """
    found = _COUNT_OF_ROWS.fullmatch(" ".join(rule.query.split()))
    if found is None or rule.severity != "error" or rule.must_be != 0:
        return None
    try:
        tree = parse(found[1])
        _negate(tree, frozenset())
    except UnknownFormError:
        return None
    return found[1] if columns_of(tree) <= columns else None


def range_words(column: Column) -> str:
    """The sentence that a column's values are within its range."""
    if column.maximum is None:
        return f"{column.name} is at least {column.minimum:g}"
    if column.minimum is None:
        return f"{column.name} is at most {column.maximum:g}"
    return f"{column.name} is from {column.minimum:g} to {column.maximum:g}"


def value_words(column: Column) -> str:
    """The sentence that a column's values are among those allowed."""
    return f"{column.name} is one of {', '.join(column.values)}"


def column_conditions(column: Column) -> Iterator[tuple[str, str]]:
    """Words and breach, as SQL, of each condition on a single column."""
    bounds = (("<", column.minimum, math.ceil), (">", column.maximum, math.floor))
    broken = [
        f"`{column.name}` {sign} {_limit(bound, column, to_whole)}"
        for sign, bound, to_whole in bounds
        if bound is not None and not _is_beyond_all(bound, column)
    ]
    if broken and column.type == "double":
        broken.append(f"isnan(`{column.name}`)")  # Spark: above all numbers; pyarrow: unordered
    if broken:
        yield range_words(column), " OR ".join(broken)
    if column.values:
        texts = ", ".join(_quote(value) for value in column.values)
        yield value_words(column), f"`{column.name}` NOT IN ({texts})"


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _limit(bound: float, column: Column, to_whole: Callable[[float], int]) -> str:
    """Write a limit as a number of the column's type; deltalake makes it one, and 0.5 would be 0.

    A whole limit of doubles is written without a point, unless no double need be that number.
    """
    if column.type != "double":
        return repr(to_whole(bound))
    is_whole = abs(bound) <= 2**53 and float(bound).is_integer()
    return repr(int(bound)) if is_whole else repr(float(bound))


def _is_beyond_all(bound: float, column: Column) -> bool:
    """Whether a limit of integers is none, as all integers of 64 bits are within it."""
    return column.type != "double" and not -(2**63) <= bound < 2**63


def _negate(tree: exp.Expr, optional: frozenset[str]) -> str:
    """SQL that is true where the condition is false or null; columns not in ``optional`` are never null."""
    match tree:
        case exp.And() | exp.Or():
            word = " AND " if isinstance(tree, exp.Or) else " OR "
            return word.join(f"({_negate(part, optional)})" for part in tree.flatten())
        case exp.Is(this=column, expression=exp.Null()):
            return f"{column_name(column)} IS NOT NULL"
        case exp.Not(this=exp.Is(this=column, expression=exp.Null())):
            return f"{column_name(column)} IS NULL"
        case exp.In(this=column, expressions=[*among]) if among:
            negated = f"{column_name(column)} NOT IN ({', '.join(map(_write_operand, among))})"
        case exp.Not(this=exp.In(this=column, expressions=[*among])) if among:
            negated = f"{column_name(column)} IN ({', '.join(map(_write_operand, among))})"
        case exp.IsNan(this=column):
            negated = f"NOT isnan({column_name(column)})"
        case exp.Binary(this=left, expression=right) if type(tree) in _OPPOSITE:
            negated = f"{_write_operand(left)} {_OPPOSITE[type(tree)]} {_write_operand(right)}"
        case _:
            raise UnknownFormError(repr(tree))
    missing = sorted(columns_of(tree) & optional)
    return " OR ".join([*(f"{name} IS NULL" for name in missing), negated])


def _write_operand(tree: exp.Expr) -> str:
    match tree:
        case exp.Add(this=left, expression=right):
            return f"{_write_operand(left)} + {_write_operand(right)}"
        case exp.Sub(this=left, expression=right):
            return f"{_write_operand(left)} - {_write_operand(right)}"
        case exp.Neg(this=exp.Literal(is_number=True) as number):
            return f"-{number.name}"
        case exp.Literal(is_string=True):
            return _quote(tree.name)
        case exp.Literal():
            return tree.name
    return column_name(tree)
