"""Rules in SQL that mean the same to Spark and to DataFusion, the engine within deltalake.

A contract's rules are Spark's SQL. Here is what of it may be asked of DataFusion, which answers about small
slices in milliseconds: forms and types of operands in which both engines agree, whatever the values are. A
query with anything else is not portable, and Spark itself answers it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from epsjoin.contracts.conditions import Spark4

_FORMS = frozenset(
    {
        *(exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Distinct, exp.Subquery),
        *(exp.Union, exp.Table, exp.TableAlias, exp.Alias, exp.Identifier, exp.Column, exp.Star),
        *(exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div),
        exp.Mod,
        *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
        *(exp.Is, exp.In, exp.Between, exp.IsNan, exp.Case, exp.If, exp.Coalesce),
        *(exp.Count, exp.Sum, exp.Min, exp.Max),
    }
)
"""Forms of SQL with the same meaning in both engines."""

_DOUBLE = exp.DType.DOUBLE  # by its name, sqlglot would parse it as SQL each time
_WHOLE = (exp.DType.INT, exp.DType.BIGINT)
_DOUBLES = (*_WHOLE, _DOUBLE)
_DECIMALS = (*_WHOLE, exp.DType.DECIMAL)
_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR)
_TRUTHS = (exp.DType.BOOLEAN,)


def to_datafusion(query: str, types: Mapping[str, Mapping[str, str]]) -> str | None:
    """Translate a query of Spark's SQL into DataFusion's; ``None`` if it is not portable.

    Parameters
    ----------
    query : a query that names tables and columns.
    types : physical types of contracts, by the tables that it may name and their columns.

    Notes
    -----
    Not portable are, among others: comparisons of a text with a number or a date, times, the smallest and
    largest of numbers that may be NaN, functions of Spark's. The columns of the tables have no negative NaN.
    A translation takes some 20 ms, once in a process.
    """
    named = {table: of for table, of in types.items() if table in query} or types
    return _translate(query, tuple((table, tuple(of.items())) for table, of in named.items()))


def rows_held(query: str, rows: Mapping[str, float]) -> float:
    """The largest number of rows of which an engine has to remember something to answer a query.

    A query that only filters and counts the rows of a table reads through them, even if it names another
    table, whose rows are in memory then; all others group or look up rows of every table that they name. A
    query that cannot be parsed is taken to need infinitely many.

    Parameters
    ----------
    query : a query of Spark's SQL.
    rows : numbers of rows of the tables that it may name.
    """
    try:
        tree = sqlglot.parse_one(query, dialect=Spark4)
    except SqlglotError:
        return math.inf
    named = [
        [rows.get(table.name, 0.0) for table in select.find_all(exp.Table) if table.parent_select is select]
        for select in tree.find_all(exp.Select)
    ]
    is_simple = not any(map(_looks_up, tree.walk()))
    return sum(sum(each) - (max(each, default=0.0) if is_simple else 0.0) for each in named)


def _looks_up(node: exp.Expr) -> bool:
    """Whether a form groups rows, or looks up those of another table."""
    match node:
        case exp.Group() | exp.Distinct() | exp.Union():
            return True
        case exp.Join():
            is_of_all = node.args.get("on") in (None, exp.true())
            return not is_of_all or any(node.args.get(part) for part in ("using", "side", "kind", "method"))
        case exp.Subquery():
            return isinstance(node.parent, exp.From | exp.Join)
        case exp.Where():  # of a query within, it may name the rows outside
            return node.parent_select is not None and node.parent_select.parent is not None
        case exp.In():
            return bool(node.args.get("query"))
        case exp.Exists():
            return True
    return False


@cache
def _translate(query: str, types: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]) -> str | None:
    """As :func:`to_datafusion`, with arguments that a cache can hold."""
    known: dict[str, object] = {
        table: {name: _SQL_TYPES.get(kind, kind) for name, kind in of} for table, of in types
    }
    tables = MappingSchema(known, dialect=Spark4)
    try:
        tree = sqlglot.parse_one(query, dialect=Spark4)
        if not all(type(node) in _FORMS for node in tree.walk()):
            return None
        tree = qualify(tree.transform(_to_decimal), schema=tables, dialect=Spark4)
        tree = annotate_types(tree, schema=tables, dialect=Spark4)
        if tree.find(exp.Cast):
            tree = annotate_types(tree.transform(_to_double), schema=tables, dialect=Spark4)
        if not all(map(_is_plain, tree.walk())):
            return None
        _rename_tables(tree)
        for node in reversed(list(tree.walk())):  # operands first
            if isinstance(node, _WRITTEN_OTHERWISE):  # a copy has all that is below it
                node.replace(_as_in_spark(node.copy()))
        return tree.sql("postgres", identify=True)
    except SqlglotError:
        return None


def _rename_tables(tree: exp.Expr) -> None:
    """Give tables names that no column has: to DataFusion ``t.id`` is in a column ``t``, if there is one."""
    for alias in tree.find_all(exp.TableAlias):
        alias.set("this", exp.to_identifier(f"table {alias.name}"))
    for column in tree.find_all(exp.Column):
        if column.table:
            column.set("table", exp.to_identifier(f"table {column.table}"))


_SQL_TYPES = {"long": "bigint"}
"""Spark's SQL names of physical types, where they differ."""


def _to_decimal(node: exp.Expr) -> exp.Expr:
    """A number with a point is a decimal to Spark, and as such exact beside whole numbers."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.replace(".", "", 1).isdigit():
        return node
    whole, point, fraction = node.name.partition(".")
    digits = max(1, len(whole.lstrip("0")) + len(fraction))
    exact = exp.Literal.string(node.name)
    return exp.cast(exact, f"DECIMAL({digits}, {len(fraction)})") if point else node


def _to_double(node: exp.Expr) -> exp.Expr:
    """Beside a double, a decimal is a double to Spark; DataFusion would make a decimal of both."""
    if not isinstance(node, exp.Cast):
        return node
    operand: exp.Expr = node
    while isinstance(operand.parent, exp.Neg | exp.Paren):
        operand = operand.parent
    beside = operand.parent.iter_expressions() if operand.parent else ()
    is_double = any(each.is_type(_DOUBLE) for each in beside)
    return exp.Literal.number(node.name) if is_double else node


_WRITTEN_OTHERWISE = (exp.IsNan, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Sum)
"""Forms that DataFusion may have to be told in another way."""


def _as_in_spark(node: exp.Expr) -> exp.Expr:
    """Write a form so that DataFusion, whose SQL is like PostgreSQL's, gives what Spark does."""
    match node:
        case exp.IsNan():  # of a missing value
            return exp.Coalesce(
                this=exp.Anonymous(this="isnan", expressions=[node.this]), expressions=[exp.false()]
            )
        case exp.Neg(this=exp.Literal()):
            return node
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Neg() | exp.Sum():
            if node.is_type(_DOUBLE):  # a negative NaN is below all numbers
                return exp.Anonymous(
                    this="nanvl", expressions=[node, exp.cast(exp.Literal.string("NaN"), "double")]
                )
            if node.is_type(*_WHOLE):  # beyond 64 bits it is an error, not a number of the other sign
                for each in list(node.iter_expressions()):
                    each.replace(exp.cast(each.copy(), "DECIMAL(20, 0)"))
                return exp.cast(node, "bigint")
    return node


def _is_plain(node: exp.Expr) -> bool:
    """Whether both engines treat the operands of a form alike."""
    match node:
        case exp.EQ() | exp.NEQ():
            return _are(node, _DOUBLES, _DECIMALS, _TEXTS, _TRUTHS)
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE() | exp.In() | exp.Between() | exp.Coalesce():
            return _are(node, _DOUBLES, _DECIMALS, _TEXTS)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Neg():
            return _are(node, _DOUBLES, _DECIMALS)
        case exp.Mod(this=dividend, expression=exp.Literal() as divisor):  # by 0 only Spark refuses
            return dividend.is_type(_DOUBLE) and divisor.is_number and float(divisor.name) != 0
        case exp.Mod():
            return False
        case exp.Div() | exp.Sum() | exp.IsNan():
            return _are(node, _DOUBLES)
        case exp.Min() | exp.Max():
            return _are(node, _WHOLE, _TEXTS)
    return True


def _are(node: exp.Expr, *kinds: tuple[exp.DType, ...]) -> bool:
    """Whether the operands of a form are all of one kind."""
    return any(all(each.is_type(*kind) for each in node.iter_expressions()) for kind in kinds)
