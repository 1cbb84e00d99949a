"""Conditions on single rows, written in SQL: read once, evaluated on Arrow columns.

A condition compares columns with columns, numbers, texts, TRUE and FALSE; it may have sums, IN, BETWEEN,
IS NULL, ISNAN, NOT, AND and OR. As in SQL it is true, false or, where a value is missing, null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError, TokenError

Values: TypeAlias = "pa.ChunkedArray | pa.Array | pa.Scalar"
Work: TypeAlias = Callable[[Values, Values], Values]

FORMS = (
    "it may compare columns with columns, numbers, texts, TRUE and FALSE, and have +, -, IN, BETWEEN, "
    "IS NULL, ISNAN, NOT, AND and OR"
)
"""What a condition may be made of, for messages."""

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
    exp.Add: lambda left, right: _sum_of(pc.add_checked, pc.add, left, right),
    exp.Sub: lambda left, right: _sum_of(pc.subtract_checked, pc.subtract, left, right),
}
"""pyarrow's function for each form of SQL whose result depends on its operands alone."""

_WHOLE = pa.decimal128(19, 0)
"""Type that holds every integer of 64 bits, and whose sums become wider."""

SOURCE_TYPES = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "time": pa.float64(),
    "object": pa.string(),
}
"""Arrow types of a source's columns, by the types of its contract.

A time is in seconds since midnight, an object the text of its JSON.
"""


_NAMES = {kind: name for name, kind in SOURCE_TYPES.items() if name not in ("time", "object")}
"""What a contract calls the types of Arrow."""


class WrongTypesError(pa.ArrowNotImplementedError):
    """The operands are of types that cannot be compared or added; the text says which."""


class UnknownFormError(Exception):
    """A text that is no condition, or has a form of SQL that is not understood here; the text says which."""


class Spark4(Spark):
    """Spark's SQL as of Spark 4: two quotes within a text stand for one."""

    class Tokenizer(Spark.Tokenizer):
        """Reads a doubled quote in a text as one, and a backslash as an escape."""

        STRING_ESCAPES: ClassVar[list[str]] = ["'", "\\"]


@cache
def parse(condition: str) -> exp.Expr:
    """The condition as a tree.

    Raises
    ------
    UnknownFormError
        It is not SQL.
    """
    try:
        return sqlglot.parse_one(condition, dialect=Spark4)
    except TokenError as error:
        raise UnknownFormError("a quote or a comment in it does not end") from error
    except SqlglotError as error:
        raise UnknownFormError(condition) from error


def columns_of(tree: exp.Expr) -> frozenset[str]:
    """The columns that a condition names."""
    return frozenset(column.name for column in tree.find_all(exp.Column))


@cache
def _named_in(condition: str) -> frozenset[str]:
    return columns_of(parse(condition))


def column_name(tree: exp.Expr) -> str:
    """The name of a column that stands alone.

    Raises
    ------
    UnknownFormError
        The expression is another one, or the name has a table before it.
    """
    if isinstance(tree, exp.Column) and len(tree.parts) == 1 and isinstance(tree.this, exp.Identifier):
        return tree.name
    raise UnknownFormError(tree.sql(Spark4))


def evaluate(tree: exp.Expr, column: Callable[[str], Values]) -> Values:
    """The value of a condition or an operand in each row; null where SQL says so.

    Raises
    ------
    UnknownFormError
        The condition has a form that is not understood here.
    """
    match tree:
        case exp.Paren(this=inner):
            return evaluate(inner, column)
        case exp.Neg() | exp.Literal():
            return _scalar_of(tree.to_py())
        case exp.Boolean(this=value):
            return pa.scalar(value)
        case exp.Is(this=left, expression=exp.Null()):
            return pc.is_null(evaluate(left, column))
        case exp.In(this=left, expressions=[*among]) if among:
            values = evaluate(left, column)
            listed = [evaluate(each, column) for each in among]
            if not all(isinstance(each, pa.Scalar) for each in listed):
                raise UnknownFormError(tree.sql(Spark4))
            for literal, each in zip(among, listed, strict=True):  # a cast would take 1 for TRUE and for '1'
                _apply(exp.EQ(this=left, expression=literal), *_of_one_type(pa.array([], values.type), each))
            allowed = pa.array([_read_time(each, values.type).as_py() for each in listed]).cast(values.type)
            if pa.types.is_floating(values.type):  # -0.0 is 0.0 to SQL
                values, allowed = pc.add(values, 0.0), pc.add(allowed, 0.0)
            return pc.if_else(pc.is_valid(values), pc.is_in(values, value_set=allowed), None)
        case exp.Between(this=this, args={"low": low, "high": high}) if not tree.args.get("symmetric"):
            ends = exp.GTE(this=this, expression=low), exp.LTE(this=this, expression=high)
            return evaluate(exp.And(this=ends[0], expression=ends[1]), column)
        case exp.Unary(this=operand) | exp.IsNan(this=operand) if type(tree) in _FUNCTIONS:
            return _apply(tree, evaluate(operand, column))
        case exp.Binary(this=left, expression=right) if type(tree) in _FUNCTIONS:
            return _apply(tree, *_of_one_type(evaluate(left, column), evaluate(right, column)))
    return column(column_name(tree))


def _apply(tree: exp.Condition, *operands: Values) -> Values:
    try:
        return _FUNCTIONS[type(tree)](*operands)
    except pa.ArrowNotImplementedError as error:  # its text names a kernel
        kinds = " and ".join(_NAMES.get(each.type, str(each.type)) for each in operands)
        raise WrongTypesError(f"{tree.sql(Spark4)} is not for {kinds}") from error


def _scalar_of(value: object) -> pa.Scalar:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        value = Decimal(value) if abs(value) < 10**38 else _nearest_float(value)
    elif isinstance(value, Decimal):
        value = float(value)
    return pa.scalar(value)


def _nearest_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:  # hundreds of digits
        return math.inf if value > 0 else -math.inf


def _sum_of(checked: Work, wider: Work, left: Values, right: Values) -> Values:
    """A sum or difference, of decimals where integers of 64 bits cannot hold it."""
    try:
        return checked(left, right)
    except pa.ArrowInvalid:  # an overflow
        return wider(left.cast(_WHOLE), right.cast(_WHOLE))


def _of_one_type(left: Values, right: Values) -> tuple[Values, Values]:
    """Two operands; as in SQL a text beside a date is read as one, and so is an integer beside a double."""
    left, right = _read_time(left, right.type), _read_time(right, left.type)
    return _as_float(left, right.type), _as_float(right, left.type)


def _as_float(values: Values, beside: pa.DataType) -> Values:
    """Integers beside doubles as the nearest doubles; pyarrow by itself refuses what a double cannot hold."""
    is_exact = pa.types.is_integer(values.type) or pa.types.is_decimal(values.type)
    return pc.cast(values, beside, safe=False) if is_exact and pa.types.is_floating(beside) else values


def _read_time(values: Values, kind: pa.DataType) -> Values:
    if not (pa.types.is_temporal(kind) and isinstance(values, pa.Scalar) and pa.types.is_string(values.type)):
        return values
    read = date.fromisoformat if pa.types.is_date(kind) else datetime.fromisoformat
    return pa.scalar(read(values.as_py()), kind)


@dataclass(frozen=True)
class Filter:
    """The condition under which records of a source are taken; small, for it is sent to the tasks.

    Parameters
    ----------
    condition : the condition; a record for which it is false or null is left out.
    types : type of each column of the source, by name, as its contract has it.

    Raises
    ------
    UnknownFormError
        The condition is not understood, names another column, or compares what cannot be compared.
    """

    condition: str
    types: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        known = dict(self.types)
        unknown = sorted(_named_in(self.condition) - known.keys())
        if unknown:
            raise UnknownFormError(f"there is no column {unknown[0]}")
        try:
            found = self._evaluate({name: [] for name in self.columns})
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise UnknownFormError(str(error).splitlines()[0]) from error
        if not pa.types.is_boolean(found.type) or isinstance(found, pa.Scalar):
            raise UnknownFormError(f"it is no condition on a record: {self.condition}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the condition names, in the contract's order."""
        named = _named_in(self.condition)
        return tuple(name for name, _ in self.types if name in named)

    def takes(self, values: Mapping[str, Sequence[Any]]) -> list[bool]:
        """Whether each record is taken; ``values`` has the typed values of each of :attr:`columns`."""
        return [answer is True for answer in self._evaluate(values).to_pylist()]

    def taken(self, table: pa.Table) -> pa.ChunkedArray:
        """The same for the rows of a table with :attr:`columns`, as an Arrow array without nulls."""
        return pc.fill_null(evaluate(parse(self.condition), table.column), False)

    def _evaluate(self, values: Mapping[str, Sequence[Any]]) -> Values:
        kinds = dict(self.types)
        arrays = {name: pa.array(values[name], SOURCE_TYPES[kinds[name]]) for name in self.columns}
        return evaluate(parse(self.condition), arrays.__getitem__)
