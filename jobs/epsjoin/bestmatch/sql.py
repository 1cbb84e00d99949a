"""Best matches as one SQL query, for engines that hold the tables already."""

# ruff: noqa: S608  # what a query is made of here are quoted names and numbers

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from epsjoin.errors import ArgumentError, needing_extra
from epsjoin.local.arguments import as_number, check_choice
from epsjoin.params import MATCH_HOW

with needing_extra("epsjoin.bestmatch_sql"):
    import sqlglot
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect


def bestmatch_sql(
    left: str | Sequence[str],
    right: str | Sequence[str],
    criteria: Sequence[tuple[str, float] | tuple[str, str, float]],
    how: Literal["inner", "left", "right", "outer"] = "left",
    dialect: str = "spark",
    *,
    id: str = "id",
    right_id: str | None = None,
) -> str:
    """Write the query that finds the best matches of two tables.

    Parameters
    ----------
    left, right : names of the tables; for a qualified name its parts, as in ``["lake", "quakes"]``.
    criteria : for each one the left and the right column, of numbers, and eps, the largest difference, which
        may be 0 or infinite; for two columns of the same name, (name, eps). The order of the criteria does
        not matter.
    how : as in :func:`epsjoin.bestmatch_join`: "left", "right", "outer", or "inner".
    dialect : the engine, by its name in sqlglot: "spark", "duckdb", "sqlite", "postgres" and others.
    id, right_id : the columns that identify the rows, each value once and never null; by default both have
        one name.

    Returns
    -------
    str
        A query with the columns left_id, right_id, and d_<left column> for each criterion: the difference, as
        float64. Rows without a partner within eps come with nulls; for "inner" they do not. A row in which a
        value is null, NaN or infinite has no partner. Names are quoted.

    Raises
    ------
    ArgumentError
        There is no criterion, or one of another form; an eps is negative or NaN; two criteria have one left
        column; a name is none; or the dialect or ``how`` is none of those named.

    See Also
    --------
    epsjoin.bestmatch_join : the same on arrays, without looking at all pairs.

    Notes
    -----
    A pair is dominated by one that is at least as good in all criteria *and better in one*. The query that
    the paper prints for this forbids something else; see ``docs/best-matches.md``. Engines look at all pairs
    to find the candidates, unless they have a join by ranges. Tested on Spark, DuckDB and SQLite.

    References
    ----------
    Kemper and Stegmaier: Evaluating bestmatch-joins on streaming data, report MIP-0204, University of Passau,
    2002, section 2.2.

    Examples
    --------
    >>> query = bestmatch_sql("shots", "fixes", [("t", 60.0), ("x", "lon", 0.5)], dialect="duckdb")
    >>> query.splitlines()[:3]
    ['WITH candidates AS (', '  SELECT', '    l."id" AS left_id,']
    """
    _check(how, dialect)
    columns = _check_criteria(criteria)
    names = [_quote(f"d_{mine}") for mine, _, _ in columns]
    if not names or len({name.lower() for name in names}) < len(names):
        raise ArgumentError(f"criteria must be one or more, each of another left column, not {criteria!r}")
    differences = [
        f"ABS(CAST(l.{_quote(mine)} AS DOUBLE) - CAST(r.{_quote(theirs)} AS DOUBLE))"
        for mine, theirs, _ in columns
    ]
    within = [
        f"{difference} <= {_as_literal(eps)}"
        for difference, (_, _, eps) in zip(differences, columns, strict=True)
    ]
    shown = ", ".join(f"{d} AS {name}" for d, name in zip(differences, names, strict=True))
    better = " OR ".join(f"q.{name} < p.{name}" for name in names)
    ids = _quote_name("id", id), _quote_name("right_id", id if right_id is None else right_id)
    tables = _quote_table("left", left), _quote_table("right", right)
    candidates = "candidates"
    while _quote(candidates) in (tables[0].lower(), tables[1].lower()):
        candidates += "_"
    sides = {"outer": ("left_id", "right_id"), "inner": ("",)}.get(how, (f"{how}_id",))
    is_better = " AND ".join([*(f"q.{name} <= p.{name}" for name in names), f"({better})"])
    are_same = [f"q.{side} = p.{side} AND " if side else "" for side in sides]
    unbeaten = [f"NOT EXISTS (SELECT 1 FROM {candidates} AS q WHERE {same}{is_better})" for same in are_same]
    nulls = ", ".join(["NULL"] * len(names))
    unmatched = [
        f"SELECT {shown_ids}, {nulls} FROM {table} AS t "
        f"WHERE NOT EXISTS (SELECT 1 FROM {candidates} AS p WHERE p.{side} = t.{mine})"
        for side, table, mine, shown_ids in (
            ("left_id", tables[0], ids[0], f"t.{ids[0]}, NULL"),
            ("right_id", tables[1], ids[1], f"NULL, t.{ids[1]}"),
        )
        if side in sides
    ]
    query = " UNION ALL ".join(
        [
            f"""
            WITH {candidates} AS (
              SELECT l.{ids[0]} AS left_id, r.{ids[1]} AS right_id, {shown}
              FROM {tables[0]} AS l CROSS JOIN {tables[1]} AS r
              WHERE {" AND ".join(within)}
            )
            SELECT left_id, right_id, {", ".join(names)} FROM {candidates} AS p
            WHERE {" OR ".join(unbeaten)}""",
            *unmatched,
        ]
    )
    return sqlglot.transpile(query, read="duckdb", write=dialect.lower(), pretty=True)[0]


def _check(how: str, dialect: str) -> None:
    check_choice("how", how, MATCH_HOW)
    if not isinstance(dialect, str) or not dialect or dialect.lower() not in Dialect.classes:
        known = ", ".join(sorted(filter(None, Dialect.classes)))
        raise ArgumentError(f"dialect must be one of {known}, not {dialect!r}")


def _check_eps(name: str, eps: object) -> float:
    number = as_number(eps)
    if not number >= 0:
        raise ArgumentError(f"eps of {name} must be a number, at least 0, not {eps!r}")
    return number


def _as_literal(eps: float) -> str:
    """A threshold in SQL; for infinity the largest number, beyond which most engines have NaN."""
    text = repr(min(eps, sys.float_info.max))
    return text if "e" in text else f"{text}e0"


def _check_criteria(criteria: Any) -> list[tuple[str, str, float]]:
    """The left and the right column and eps of each criterion."""
    given = list(criteria) if isinstance(criteria, Iterable) else [criteria]
    for each in given:
        names = each[:-1] if isinstance(each, tuple | list) else ()
        if len(names) not in (1, 2) or not all(isinstance(name, str) and name for name in names):
            raise ArgumentError(
                f"a criterion must be (name, eps) or (left name, right name, eps), not {each!r}"
            )
    return [(c[0], c[-2], _check_eps(c[0], c[-1])) for c in given]


def _quote(name: str) -> str:
    """A name such that the query may hold it whatever its characters are."""
    return str(exp.to_identifier(name, quoted=True).sql("duckdb"))


def _quote_name(argument: str, name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"{argument} must be the name of a column, not {name!r}")
    return _quote(name)


def _quote_table(argument: str, name: Any) -> str:
    """The name of a table, or the parts of one."""
    parts = list(name) if isinstance(name, tuple | list) else [name]
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise ArgumentError(f"{argument} must be the name of a table, or the parts of one, not {name!r}")
    return ".".join(map(_quote, parts))
