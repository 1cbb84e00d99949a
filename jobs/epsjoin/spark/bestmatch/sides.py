"""The two sides of a match: which records a slice of ``matches`` covers, and their values.

If a run is a whole snapshot, these are the points of the run. If runs follow one another, a record may have
its partners in the run before or in the next one. So the slice of a run covers the records whose time is some
way before the end of its interval: if it is before ``end - late - 2 eps``, all partners of a record, and all
rivals for them, have arrived, and are in this run or the one before. The slices of runs that follow one
another share their borders, so that a record is in exactly one, in whatever order runs are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from epsjoin.console import counted
from epsjoin.contracts.load_source import load_partner
from epsjoin.contracts.matches import Criterion, Match
from epsjoin.contracts.times import interval_of, run_before
from epsjoin.errors import DataRefusedError, MissingSliceError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake, Slice

SECONDS_PER_DAY = 86_400.0
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Side:
    """The records of one data set.

    Parameters
    ----------
    ids : (n,) their ids.
    values : (n, d) the columns of the criteria: two of a place, one of any other.
    is_asked : (n,) whether the slice covers the record; others are only possible partners, or rivals.
    """

    ids: Ints
    values: Floats
    is_asked: Bools


class Sides(NamedTuple):
    """Both sides, how they are matched, and the records that a slice covers.

    Parameters
    ----------
    match : the section of the contract, with all columns named.
    left, right : the records.
    asked : if runs follow one another, the times from which on and before which left records are asked for,
        in seconds since 1970.
    """

    match: Match
    left: Side
    right: Side
    asked: tuple[float, float] | None = None


def read_sides(lake: Lake, run: str) -> Sides:
    """Read the records of a run's slice of ``matches``.

    Raises
    ------
    ContractError
        The contract has no section ``match``, or the other data set's does not fit.
    TableError
        One of the data sets has no points of the run.
    DataRefusedError
        Where runs follow one another: a record arrived later, or earlier, than the contract says, or came in
        two runs with different values.
    """
    match, source = load_partner(lake.contracts, lake.source)
    partner = Lake(lake.uri, lake.contracts, source)
    left = [criterion.columns for criterion in match.criteria]
    right = [criterion.with_columns for criterion in match.criteria]
    if match.order is None:
        return Sides(
            match,
            _read(lake, [run], match, left, asked=match.how in ("left", "outer")),
            _read(partner, [run], match, right, asked=match.how in ("right", "outer")),
        )
    day = date.fromisoformat(run)
    begin, end = (SECONDS_PER_DAY * (each - _EPOCH).days for each in interval_of(lake.source.interval, day))
    late, reach = match.order.late, 2 * match.time.eps
    at = place_of(match, match.time)
    for of, columns in ((lake, left), (partner, right)):
        side = _read(of, [run], match, columns, asked=False)
        _refuse_strays(of.source.name, run, side.ids, side.values[:, at], begin - late, end)
    runs = runs_read_by(lake, run)
    of_left = _read(lake, runs, match, left, asked=True)
    time, asked = of_left.values[:, at], (begin - late - reach, end - late - reach)
    return Sides(
        match,
        Side(of_left.ids, of_left.values, (time >= asked[0]) & (time < asked[1])),
        _read(partner, runs, match, right, asked=False),
        asked,
    )


def runs_read_by(lake: Lake, run: str) -> list[str]:
    """The runs whose points a slice is made from: where runs follow one another, also the one before."""
    if lake.source.match is None or lake.source.match.order is None:
        return [run]
    return [run_before(lake.source.interval, date.fromisoformat(run)).isoformat(), run]


def records_asked_for(lake: Lake, run: str) -> dict[str, pa.Table]:
    """The ids of both sides of a slice, and whether it is about them, as rules name them."""
    sides = read_sides(lake, run)
    return {
        name: pa.table({"id": side.ids, "asked": side.is_asked})
        for name, side in (("left_records", sides.left), ("right_records", sides.right))
    }


def place_of(match: Match, wanted: Criterion) -> int:
    """The column of a criterion among the values of a side; for a place the first one."""
    before = match.criteria[: match.criteria.index(wanted)]
    return sum(2 if criterion.metric else 1 for criterion in before)


def _read(
    lake: Lake, runs: Sequence[str], match: Match, columns: Sequence[Sequence[str]], *, asked: bool
) -> Side:
    """Read the points of some runs; those before the last one may be missing."""
    names = list(dict.fromkeys(["id", *(name for of_one in columns for name in of_one)]))
    tables = []
    for run in runs:
        try:
            tables.append(slices.read_slice(lake, Slice("points", run), names))
        except MissingSliceError:
            if run == runs[-1]:
                raise
    rows = pa.concat_tables(tables)
    values = [
        each
        for criterion, of_one in zip(match.criteria, columns, strict=True)
        for each in _columns_of(rows, criterion, of_one)
    ]
    ids, both = rows["id"].to_numpy(), np.column_stack(values)
    if len(tables) > 1:
        stays = _once(lake.source.name, runs, ids, both)
        ids, both = ids[stays], both[stays]
    return Side(ids, both, np.full(ids.size, asked))


def _once(name: str, runs: Sequence[str], ids: Ints, values: Floats) -> Bools:
    """Which rows of two runs stay: if a record came again unchanged, the first.

    A record that came again with other values fits no slice: the run before may have been matched by the old
    values.
    """
    order = np.argsort(ids, kind="stable")
    again = order[1:][ids[order][1:] == ids[order][:-1]]
    first = order[:-1][ids[order][1:] == ids[order][:-1]]
    differs = (values[again] != values[first]).any(axis=1)
    if differs.any():
        records, worst = counted(differs.sum(), "record"), ids[again[differs.argmax()]]
        raise DataRefusedError(
            f"{name}: {records} of run {runs[0]} came again in run {runs[1]} with other values, as that of "
            f"id {worst}; where runs follow one another, leave such records out of one of the two snapshots"
        )
    stays = np.ones(len(ids), np.bool_)
    stays[again] = False
    return stays


def _columns_of(rows: pa.Table, criterion: Criterion, names: Sequence[str]) -> list[Floats]:
    numbers = [to_numbers(rows[name]) for name in names]
    return numbers if criterion.metric else [np.sum(numbers, axis=0)]


def to_numbers(values: pa.ChunkedArray) -> Floats:
    """Values as float64; a date or a time in seconds, from 1970 on."""
    if pa.types.is_timestamp(values.type):
        return np.asarray(values.cast(pa.int64()).to_numpy() / 1e6)
    if pa.types.is_date(values.type):
        return np.asarray(values.cast(pa.int32()).to_numpy() * SECONDS_PER_DAY)
    return np.asarray(values.to_numpy(), np.float64)


def _refuse_strays(name: str, run: str, ids: Ints, time: Floats, first: float, end: float) -> None:
    """Refuse a run with a record that should have come with another one: it would be in no slice."""
    too_late, too_early = time < first, time >= end
    if too_late.any():
        worst = int(np.argmax(first - time))
        raise DataRefusedError(
            f"{name}: {counted(int(too_late.sum()), 'record')} of run {run} came too late, that of id "
            f"{ids[worst]} by {first - time[worst]:g} s more than the contract allows; set late in the "
            "contract's section match"
        )
    if too_early.any():
        worst = int(np.argmax(time - end))
        by = time[worst] - end
        where = f"{by:g} s after the end of the run's interval"
        if by == 0:
            where = "at the end of the run's interval, which the next one begins with"
        raise DataRefusedError(
            f"{name}: {counted(int(too_early.sum()), 'record')} of run {run} came too early, that of id "
            f"{ids[worst]} {where}; correct its time, or run the interval that it belongs to"
        )
