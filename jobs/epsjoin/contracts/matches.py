"""The section ``match`` of a source's contract: with which data set its records are matched, and how.

What it says of the other data set's columns can only be checked together with that one's contract:
:func:`check_partner`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from epsjoin.contracts.names import DATA_SET, SNAKE_CASE
from epsjoin.contracts.odcs import Column, check_choice
from epsjoin.contracts.source_columns import TIMES
from epsjoin.errors import ContractError
from epsjoin.params import MATCH_HOW, MATCH_TAKE, is_finite

OF_PLACES = "haversine"
"""The metric of a criterion whose columns are latitude and longitude; of the others: the difference."""
UNIT_OF_TIME = "s"

_KEYS = {"with", "how", "take", "criteria", "order"}
_KEYS_OF_CRITERION = {"name", "metric", "columns", "with_columns", "eps", "unit"}


class DataSet(Protocol):
    """What is asked of the contract of a data set."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its columns."""

    @property
    def latitude(self) -> str:
        """Name of the column that is the latitude, empty if there is none; likewise :attr:`longitude`."""

    @property
    def longitude(self) -> str:
        """See :attr:`latitude`."""

    @property
    def interval(self) -> str:
        """How long a run lasts."""

    def column(self, name: str) -> Column:
        """The column of that name."""


@dataclass(frozen=True)
class Criterion:
    """One thing by which two records are near.

    Parameters
    ----------
    name : its name; its distance is the column ``d_<name>`` of ``matches``.
    columns, with_columns : columns of this data set and of the other one. For a difference, sums of columns
        are compared: a day and a time of day are often in two columns. With ``haversine``: latitude,
        longitude.
    metric : ``haversine``; empty: the absolute difference.
    eps : largest distance of two records that may match.
    unit : unit of distances; of dates and times, and of numbers that are seconds since 1970, ``s``.
    """

    name: str
    columns: tuple[str, ...]
    with_columns: tuple[str, ...]
    eps: float
    metric: str = ""
    unit: str = ""

    @property
    def in_table(self) -> str:
        """The column of ``matches`` with its distances."""
        return f"d_{self.name}"


@dataclass(frozen=True)
class Order:
    """Records arrive in the order of their times, nearly.

    Parameters
    ----------
    by : name of the criterion that is their time.
    late : a record arrives at most this long after its time, in seconds.
    """

    by: str
    late: float


@dataclass(frozen=True)
class Match:
    """How records of a data set, the left ones, are matched with those of another one, the right ones.

    Parameters
    ----------
    partner : name of the other data set.
    how : which rows are kept: ``left``, ``right``, ``outer`` (best for either) or ``inner``.
    take : ``all`` best matches of a record, or ``one``.
    criteria : what is compared.
    order : if given, a run is what arrived in its interval, and records are matched across runs; ``None``: a
        run is a whole snapshot.
    """

    partner: str
    how: Literal["left", "right", "outer", "inner"]
    take: Literal["all", "one"]
    criteria: tuple[Criterion, ...]
    order: Order | None = None

    @property
    def time(self) -> Criterion:
        """The criterion by which records are in order."""
        if self.order is None:
            raise ValueError("a match of whole snapshots has no order")
        by = self.order.by
        return next(criterion for criterion in self.criteria if criterion.name == by)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of ``matches`` that hold the distances."""
        return tuple(
            Column(
                each.in_table,
                "double",
                f"Distance in {each.name}.",
                minimum=0.0,
                maximum=each.eps if math.isfinite(each.eps) else None,
            )
            for each in self.criteria
        )


_Refusal = Callable[[str], ContractError]
"""Makes the error of a sentence, behind the name of the file."""


def _refusal(file: object, what: str) -> ContractError:
    return ContractError(f"{file}: match: {what}")


def read_match(file: Path, body: Any, source: DataSet) -> Match:
    """Read the section and check what this contract alone can tell.

    Raises
    ------
    ContractError
        A key is unknown or missing, or a value is not allowed.
    """
    refuse = partial(_refusal, file)

    def check_keys(given: Any, known: set[str], what: str) -> None:
        if not isinstance(given, dict):
            raise refuse(f"{what} must map keys to values, not {given!r}")
        if unknown := sorted(given.keys() - known):
            raise refuse(f"{what} has no key {unknown[0]!r}; known are {', '.join(sorted(known))}")

    check_keys(body, _KEYS, "it")
    partner, how, take = body.get("with"), body.get("how", "left"), body.get("take", "all")
    if not isinstance(partner, str) or not DATA_SET.fullmatch(partner) or partner == source.name:
        raise refuse(f"with must name another data set, not {partner!r}")
    check_choice(f"{file}: match", "how", how, MATCH_HOW)
    check_choice(f"{file}: match", "take", take, MATCH_TAKE)
    given = body.get("criteria")
    if not isinstance(given, list) or not given:
        raise refuse("criteria must be a list of one criterion at least")
    criteria = []
    for each in given:
        check_keys(each, _KEYS_OF_CRITERION, "a criterion")
        criteria.append(_read_criterion(each, source, refuse))
    names = [criterion.name for criterion in criteria]
    if len(set(names)) < len(names):
        raise refuse(f"two criteria have one name among {', '.join(names)}")
    if all(math.isinf(criterion.eps) for criterion in criteria):
        raise refuse("no criterion has a finite eps, so every record could match every other one")
    order = None
    if body.get("order") is not None:
        check_keys(body["order"], {"by", "late"}, "order")
        order = Order(body["order"].get("by"), body["order"].get("late", 0))
        _check_order(order, how, criteria, source, refuse)
    return Match(partner, how, take, tuple(criteria), order)


def _read_criterion(body: Mapping[str, Any], source: DataSet, refuse: _Refusal) -> Criterion:
    name, metric, eps = body.get("name"), body.get("metric", ""), body.get("eps")
    if not isinstance(name, str) or not SNAKE_CASE.fullmatch(name):
        raise refuse(f"a criterion's name is lower-case letters, digits and _, a letter first, not {name!r}")
    if metric not in ("", OF_PLACES):
        raise refuse(f"criterion {name}: metric must be {OF_PLACES}, or left out, not {metric!r}")
    if eps != math.inf and not (is_finite(eps) and eps >= 0):
        raise refuse(f"criterion {name}: eps must be a number, 0 or above (.inf: any distance), not {eps!r}")
    columns, others = body.get("columns", []), body.get("with_columns", body.get("columns", []))
    for key, value in (("columns", columns), ("with_columns", others)):
        if not isinstance(value, list) or not all(isinstance(column, str) for column in value):
            raise refuse(f"criterion {name}: {key} must be a list of columns, not {value!r}")
    columns = _check_columns(source, name, metric, columns, refuse)
    is_time = source.column(columns[0]).type in TIMES
    unit = body.get("unit", "km" if metric else UNIT_OF_TIME if is_time else "")
    if unit != (fixed := "km" if metric else UNIT_OF_TIME if is_time else unit):
        raise refuse(f"criterion {name}: its distances are in {fixed}, unit cannot be {unit!r}")
    return Criterion(name, columns, tuple(others), float(eps), metric, str(unit))


def _check_columns(
    source: DataSet, name: str, metric: str, columns: Sequence[str], refuse: _Refusal
) -> tuple[str, ...]:
    """The columns of a criterion in a data set; those of a place are told by their roles."""
    if metric and not columns:
        columns = [source.latitude, source.longitude]
        if not source.latitude:
            raise refuse(
                f"criterion {name}: {source.name} has no columns of the roles latitude and longitude"
            )
    if metric and len(columns) != 2:
        raise refuse(
            f"criterion {name}: {metric} takes latitude and longitude, two columns, of {source.name}"
        )
    if not columns:
        raise refuse(f"criterion {name}: columns must name one column of {source.name} at least")
    known = {column.name: column for column in source.columns}
    for column in columns:
        if column not in known:
            raise refuse(
                f"criterion {name}: {source.name} has no column {column!r}; it has {', '.join(known)}"
            )
        allowed = ("integer", "number") if metric else ("integer", "number", *TIMES)
        if known[column].type not in allowed:
            raise refuse(
                f"criterion {name}: column {column} of {source.name} is of type {known[column].type}; "
                f"compared are {', '.join(allowed)}"
            )
        if not known[column].required:
            raise refuse(
                f"criterion {name}: column {column} of {source.name} may be missing; set required: true, and "
                "records without it go to quarantine"
            )
    if len({known[column].type in TIMES for column in columns}) > 1:
        raise refuse(f"criterion {name}: a time and a number of {source.name} cannot be added")
    return tuple(columns)


def _check_order(
    order: Order, how: str, criteria: Sequence[Criterion], source: DataSet, refuse: _Refusal
) -> None:
    found = [criterion for criterion in criteria if criterion.name == order.by]
    if not found or found[0].unit != UNIT_OF_TIME or not math.isfinite(found[0].eps):
        raise refuse(
            "order: by must name a criterion of dates, of timestamps or of seconds since 1970 (numbers with "
            f"unit: s), with a finite eps, not {order.by!r}"
        )
    _check_point_in_time(order.by, found[0].columns, source, refuse)
    late = order.late
    if not (is_finite(late) and late >= 0):
        raise refuse(f"order: late must be a number of seconds, 0 or above, not {late!r}")
    if how != "left":
        raise refuse(f"order: runs that follow one another are matched by how: left, not {how!r}")
    needed, shortest = late + 4 * found[0].eps, 86_400.0 * _DAYS[source.interval]
    if needed > shortest:
        raise refuse(
            f"order: late + 4 eps of {order.by} are {needed:g} s, but an interval of a {source.interval} has "
            f"{shortest:g} s; the partners of a record must lie in two runs"
        )


def _check_point_in_time(name: str, columns: Sequence[str], source: DataSet, refuse: _Refusal) -> None:
    """Refuse to order runs by a time of day alone, or by the sum of two dates; numbers are since 1970."""
    types = [source.column(column).type for column in columns]
    if types[0] in TIMES and sum(type_ != "time" for type_ in types) != 1:
        raise refuse(
            f"order: {name} must have one column of dates or timestamps of {source.name}; times of day may "
            "be added to it"
        )


_DAYS = {"day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}
"""The fewest days that an interval has."""


def check_partner(file: str, match: Match, partner: DataSet, source: DataSet) -> Match:
    """Check what the section says of the other data set; the match with all columns named.

    Raises
    ------
    ContractError
        A column does not fit, or runs do not have the same interval.
    """
    refuse = partial(_refusal, file)
    if partner.interval != source.interval:
        raise refuse(
            f"runs of {source.name} last a {source.interval}, those of {partner.name} a {partner.interval}"
        )
    criteria = []
    for each in match.criteria:
        columns = _check_columns(partner, each.name, each.metric, each.with_columns, refuse)
        if (partner.column(columns[0]).type in TIMES) != (source.column(each.columns[0]).type in TIMES):
            raise refuse(f"criterion {each.name}: a time and a number have no difference")
        if match.order is not None and each.name == match.order.by:
            _check_point_in_time(each.name, columns, partner, refuse)
        criteria.append(replace(each, with_columns=columns))
    return replace(match, criteria=tuple(criteria))
