"""What every row of a table keeps by itself, taken from its contract.

One mapping for all who ask: the conditions in a table's Delta log, which any other writer must keep; the
look at rows before they are written; the words of the quality gates. A condition on other rows or other
tables is none of these; only the gates ask for it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from epsjoin.contracts.odcs import Column, Rule, TableContract

OURS = re.compile(r"__[0-9a-f]{8}$")
"""How the names end that this file gives; others in a table's log are somebody else's."""

Values: TypeAlias = "pa.ChunkedArray | pa.Array | pa.Scalar"
_ROW_WISE = re.compile(r"SELECT COUNT\(\*\) FROM \$\{object\} WHERE (.+)", re.DOTALL)
_OPPOSITE = {exp.LT: ">=", exp.LTE: ">", exp.GT: "<=", exp.GTE: "<", exp.EQ: "<>", exp.NEQ: "="}
"""Sign of the comparison that holds where the other one does not."""

_FUNCTIONS = {
    exp.And: pc.and_kleene,
    exp.Or: pc.or_kleene,
    exp.Not: pc.invert,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.IsNan: pc.is_nan,
    exp.Add: pc.add,
    exp.Sub: pc.subtract,
}
"""pyarrow's function for each form of SQL whose result depends on its operands alone."""

_NOT_IN_DELTA = re.compile(
    r".*[^a-z0-9_].*|all|and|any|case|cast|current_\w+|exists|false|in|interval|is|local\w+|not|null|or"
    r"|session_\w+|struct|trim|true|user"
)
"""Columns that deltalake cannot name in a condition: it writes ``Lat`` down as ``"Lat"``, which is a text
to Spark, and words of SQL without any quotes."""


@dataclass(frozen=True)
class Constraint:
    """One condition; small, and pickled to the tasks.

    Parameters
    ----------
    words : what holds, for people: as the quality gates call it.
    broken : SQL that is true of a row that breaks it; a missing value breaks nothing.
    optional : columns that may be missing.
    """

    words: str
    broken: str
    optional: frozenset[str]

    @property
    def name(self) -> str:
        """In the Delta log; another condition has another name, and so replaces it."""
        slug = re.sub(r"[^a-z0-9]+", "_", self.words.lower()).strip("_")
        return f"{slug}__{zlib.crc32(self.check.encode()):08x}"

    @property
    def check(self) -> str:
        """SQL that is true of every row that keeps it, and never null, which Delta takes for a breach.

        It has only forms that deltalake, which writes it down in words of its own, does not change the
        sense of: it drops the brackets of ``(a = b) <> (c = d)``, of ``x - (y - z)`` and before ``IS TRUE``.
        """
        return _kept(_parsed(self.broken), self.optional)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it is about."""
        return _names_in(_parsed(self.broken))

    @property
    def is_for_delta(self) -> bool:
        """Whether it can stand in a Delta log."""
        has_backslash = "\\" in self.broken  # to Spark it begins an escape, to deltalake it is itself
        return not has_backslash and not any(_NOT_IN_DELTA.fullmatch(name) for name in self.columns)

    def first_breach(self, column: Callable[[str], Values]) -> int | None:
        """The first row that breaks it; ``column`` gives the values of a column by its name."""
        broken = _evaluate(_parsed(self.broken), column)
        if isinstance(broken, pa.Scalar):
            return 0 if broken.as_py() else None
        return int(pc.index(broken, True).as_py()) if pc.any(broken).as_py() else None


def constraints_of(contract: TableContract) -> tuple[Constraint, ...]:
    """What every row of the table keeps: ranges and values of columns, and the rules about single rows."""
    optional = frozenset(column.name for column in contract.columns if not column.required)
    names = {column.name for column in contract.columns}
    found = [
        Constraint(words, broken, optional & {column.name})
        for column in contract.columns
        for words, broken in _of_column(column)
    ]
    for rule in contract.rules:
        condition = condition_of(rule, names)
        if condition is not None:
            used = _names_in(_parsed(condition))
            found.append(Constraint(rule.name, condition, optional & used))
    return tuple(found)


def condition_of(rule: Rule, columns: set[str]) -> str | None:
    """What is true of a row that breaks the rule; nothing if rows cannot break it one by one.

    Such a rule is of severity error and counts the rows of ``${object}`` alone for which something is true:
    comparisons of columns and numbers or texts, sums, IN, IS NULL, ISNAN, put together by AND and OR.
    """
    found = _ROW_WISE.fullmatch(" ".join(rule.query.split()))
    if found is None or rule.severity != "error" or rule.must_be != 0:
        return None
    try:
        tree = _parsed(found[1])
        _kept(tree, frozenset())
    except _UnknownError:
        return None
    return found[1] if _names_in(tree) <= columns else None


def range_words(column: Column) -> str:
    """That a column's values are within its range."""
    if column.maximum is None:
        return f"{column.name} is at least {column.minimum:g}"
    if column.minimum is None:
        return f"{column.name} is at most {column.maximum:g}"
    return f"{column.name} is from {column.minimum:g} to {column.maximum:g}"


def value_words(column: Column) -> str:
    """That a column's values are among those allowed."""
    return f"{column.name} is one of {', '.join(column.values)}"


def _of_column(column: Column) -> Iterator[tuple[str, str]]:
    bounds = (("<", column.minimum), (">", column.maximum))
    broken = [f"`{column.name}` {sign} {_number(bound)}" for sign, bound in bounds if bound is not None]
    if broken and column.type == "double":
        broken.append(f"isnan(`{column.name}`)")  # greater than every number to Spark, no number to pyarrow
    if broken:
        yield range_words(column), " OR ".join(broken)
    if column.values:
        texts = ", ".join(_text(value) for value in column.values)
        yield value_words(column), f"`{column.name}` NOT IN ({texts})"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() else repr(float(value))


class _UnknownError(Exception):
    """A form of SQL that is not one of the few known here."""


class _Spark4(Spark):
    """Spark's SQL as of Spark 4, where two quotes in a text are one."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["'", "\\"]


@cache
def _parsed(condition: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(condition, dialect=_Spark4)
    except SqlglotError as error:
        raise _UnknownError(condition) from error


def _names_in(tree: exp.Expr) -> frozenset[str]:
    return frozenset(column.name for column in tree.find_all(exp.Column))


def _kept(tree: exp.Expr, optional: frozenset[str]) -> str:
    """SQL that is true where the condition is false or null."""
    match tree:
        case exp.And() | exp.Or():
            word = " AND " if isinstance(tree, exp.Or) else " OR "
            return word.join(f"({_kept(part, optional)})" for part in tree.flatten())
        case exp.Is(this=column, expression=exp.Null()):
            return f"{_name(column)} IS NOT NULL"
        case exp.Not(this=exp.Is(this=column, expression=exp.Null())):
            return f"{_name(column)} IS NULL"
        case exp.In(this=column, expressions=[*among]) if among:
            kept = f"{_name(column)} NOT IN ({', '.join(map(_operand, among))})"
        case exp.Not(this=exp.In(this=column, expressions=[*among])) if among:
            kept = f"{_name(column)} IN ({', '.join(map(_operand, among))})"
        case exp.IsNan(this=column):
            kept = f"NOT isnan({_name(column)})"
        case exp.Binary(this=left, expression=right) if type(tree) in _OPPOSITE:
            kept = f"{_operand(left)} {_OPPOSITE[type(tree)]} {_operand(right)}"
        case _:
            raise _UnknownError(repr(tree))
    missing = sorted(_names_in(tree) & optional)
    return " OR ".join([*(f"{name} IS NULL" for name in missing), kept])


def _operand(tree: exp.Expr) -> str:
    match tree:
        case exp.Add(this=left, expression=right):
            return f"{_operand(left)} + {_operand(right)}"
        case exp.Sub(this=left, expression=right):
            return f"{_operand(left)} - {_operand(right)}"
        case exp.Neg(this=exp.Literal(is_number=True) as number):
            return f"-{number.name}"
        case exp.Literal(is_string=True):
            return _text(tree.name)
        case exp.Literal():
            return tree.name
    return _name(tree)


def _name(tree: exp.Expr) -> str:
    if isinstance(tree, exp.Column) and len(tree.parts) == 1 and isinstance(tree.this, exp.Identifier):
        return tree.name
    raise _UnknownError(repr(tree))


def _evaluate(tree: exp.Expr, column: Callable[[str], Values]) -> Values:
    """The value of a condition or an operand in each row; null where SQL says so."""
    match tree:
        case exp.Paren(this=inner):
            return _evaluate(inner, column)
        case exp.Neg() | exp.Literal():
            value = tree.to_py()
            return pa.scalar(float(value) if isinstance(value, Decimal) else value)
        case exp.Is(this=left):
            return pc.is_null(_evaluate(left, column))
        case exp.In(this=left, expressions=[*among]):
            values = _evaluate(left, column)
            allowed = pa.array([_evaluate(each, column).as_py() for each in among], values.type)
            return pc.if_else(pc.is_valid(values), pc.is_in(values, value_set=allowed), None)
        case exp.Unary(this=operand) | exp.IsNan(this=operand) if type(tree) in _FUNCTIONS:
            return _FUNCTIONS[type(tree)](_evaluate(operand, column))
        case exp.Binary(this=left, expression=right) if type(tree) in _FUNCTIONS:
            return _FUNCTIONS[type(tree)](_evaluate(left, column), _evaluate(right, column))
    return column(_name(tree))
