"""What every row of a table keeps by itself, taken from its contract.

One mapping for all who ask: the conditions in a table's Delta log, which any other writer must keep; the
look at rows before they are written; the words of the quality gates. A condition on other rows or other
tables is none of these; only the gates ask for it.
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.contract import Column, Rule, TableContract

OURS = re.compile(r"__[0-9a-f]{8}$")
"""How the names end that this file gives; others in a table's log are somebody else's."""

Values: TypeAlias = "pa.ChunkedArray | pa.Array | pa.Scalar"
_ROW_WISE = re.compile(r"SELECT COUNT\(\*\) FROM \$\{object\} WHERE (.+)", re.DOTALL)
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|`(?P<name>[^`]+)`|(?P<word>[A-Za-z_]\w*)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<sign><>|<=|>=|[=<>(),+-]))"
)
_WORDS = {"AND": "and", "OR": "or", "NOT": "not", "IN": "in", "IS": "is", "NULL": "None", "ISNAN": "isnan"}
_PREFIX = "column_"
"""Of a column's name in hex: columns may be called like words of Python, or have a hyphen."""

_SIGNS = {"<>": "!=", "=": "=="}
_OPPOSITE = {
    ast.Lt: ("<", ">=", pc.less),
    ast.LtE: ("<=", ">", pc.less_equal),
    ast.Gt: (">", "<=", pc.greater),
    ast.GtE: (">=", "<", pc.greater_equal),
    ast.Eq: ("=", "<>", pc.equal),
    ast.NotEq: ("<>", "=", pc.not_equal),
}
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
        return not any(_NOT_IN_DELTA.fullmatch(name) for name in self.columns)

    def first_breach(self, column: Callable[[str], Values]) -> int | None:
        """The first row that breaks it; ``column`` gives the values of a column by its name."""
        broken = _broken(_parsed(self.broken), column)
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
    except (SyntaxError, _UnknownError):
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
        texts = ", ".join("'" + value.replace("'", "''") + "'" for value in column.values)
        yield value_words(column), f"`{column.name}` NOT IN ({texts})"


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() else repr(float(value))


class _UnknownError(Exception):
    """A form of SQL that is not one of the few known here."""


@cache
def _parsed(condition: str) -> ast.expr:
    """The condition as a tree: its signs and words are turned into Python's, whose grammar binds alike."""
    python, place = [], 0
    condition = condition.rstrip()
    while place < len(condition):
        found = _TOKEN.match(condition, place)
        if found is None:
            raise _UnknownError(condition[place:])
        place = found.end()
        text, name, word, sign = found["text"], found["name"], found["word"], found["sign"]
        if text:
            python.append(repr(text[1:-1].replace("''", "'")))
        elif name or word:
            known = _WORDS.get(word.upper()) if word else None
            python.append(known or _PREFIX + (name or word).encode().hex())
        else:
            python.append(_SIGNS.get(sign, sign) if sign else found["number"])
    return ast.parse(" ".join(python), mode="eval").body


def _names_in(tree: ast.expr) -> frozenset[str]:
    names = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return frozenset(_column(name) for name in names if name != "isnan")


def _column(identifier: str) -> str:
    return bytes.fromhex(identifier.removeprefix(_PREFIX)).decode()


def _kept(tree: ast.expr, optional: frozenset[str]) -> str:
    """SQL that is true where the condition is false or null."""
    match tree:
        case ast.BoolOp(op=op, values=values):
            word = " AND " if isinstance(op, ast.Or) else " OR "
            return word.join(f"({_kept(value, optional)})" for value in values)
        case ast.Compare(
            left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]
        ):
            return f"{_name(left)} IS {'NOT ' if isinstance(op, ast.Is) else ''}NULL"
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[among]):
            texts = ", ".join(_operand(value) for value in _elements(among))
            kept = f"{_name(left)} {'IN' if isinstance(op, ast.NotIn) else 'NOT IN'} ({texts})"
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPPOSITE:
            kept = f"{_operand(left)} {_OPPOSITE[type(op)][1]} {_operand(right)}"
        case ast.Call(func=ast.Name(id="isnan"), args=[argument], keywords=[]):
            kept = f"NOT isnan({_name(argument)})"
        case _:
            raise _UnknownError(ast.dump(tree))
    missing = sorted(_names_in(tree) & optional)
    return " OR ".join([*(f"{name} IS NULL" for name in missing), kept])


def _operand(tree: ast.expr) -> str:
    match tree:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=ast.Name() | ast.Constant() as right):
            return f"{_operand(left)} {'+' if isinstance(op, ast.Add) else '-'} {_operand(right)}"
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return f"-{number!r}"
        case ast.Constant(value=str() as text):
            return "'" + text.replace("'", "''") + "'"
        case ast.Constant(value=int() | float() as number):
            return repr(number)
    return _name(tree)


def _name(tree: ast.expr) -> str:
    if isinstance(tree, ast.Name) and tree.id != "isnan":
        return _column(tree.id)
    raise _UnknownError(ast.dump(tree))


def _elements(tree: ast.expr) -> list[ast.expr]:
    return tree.elts if isinstance(tree, ast.Tuple) else [tree]


def _broken(tree: ast.expr, column: Callable[[str], Values]) -> Values:
    """Of each row, whether the condition is true; null where SQL says so."""
    match tree:
        case ast.BoolOp(op=op, values=values):
            join = pc.or_kleene if isinstance(op, ast.Or) else pc.and_kleene
            found = _broken(values[0], column)
            for value in values[1:]:
                found = join(found, _broken(value, column))
            return found
        case ast.Compare(left=left, ops=[ast.Is()]):
            return pc.is_null(_value(left, column))
        case ast.Compare(left=left, ops=[ast.IsNot()]):
            return pc.is_valid(_value(left, column))
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[among]):
            values_ = _value(left, column)
            allowed = pa.array([_value(value, column).as_py() for value in _elements(among)], values_.type)
            is_in = pc.is_in(values_, value_set=allowed)
            return is_in if isinstance(op, ast.In) else pc.and_(pc.is_valid(values_), pc.invert(is_in))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _OPPOSITE[type(op)][2](_value(left, column), _value(right, column))
        case ast.Call(args=[argument]):
            return pc.is_nan(_value(argument, column))
    raise _UnknownError(ast.dump(tree))


def _value(tree: ast.expr, column: Callable[[str], Values]) -> Values:
    match tree:
        case ast.BinOp(left=left, op=op, right=right):
            add = pc.add if isinstance(op, ast.Add) else pc.subtract
            return add(_value(left, column), _value(right, column))
        case ast.UnaryOp(operand=ast.Constant(value=int() | float() as number)):
            return pa.scalar(-number)
        case ast.Constant(value=value):
            return pa.scalar(value)
    return column(_name(tree))
