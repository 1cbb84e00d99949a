"""Gathers what the report shows of a run whose records were matched with those of another data set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.contracts.matches import Criterion, Match
from epsjoin.contracts.source_columns import TIMES
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import MissingSliceError
from epsjoin.findings import MatchFindings, Row
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.lake import refusals, slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.pipeline import jobs_of, tables_up_to
from epsjoin.spark.bestmatch.sides import SECONDS_PER_DAY, Side, place_of, read_sides, runs_read_by
from epsjoin.spark.job.job import Job
from epsjoin.spark.report.intake import gather_intake
from epsjoin.spark.report.names import read_records
from epsjoin.spark.report.trends import MAX_RUNS, Counters, read_own_counters, select_seconds
from epsjoin.spark.rows.stored import StoredSlice

MAX_EXAMPLES = 10
"""Maximum number of matches, and of records without one, that each table shows."""

MAX_DRAWN = 20_000
"""Maximum number of matches, and of records of each side without one, on the map."""

N_BINS = 40
"""Number of classes of distances of a criterion."""

LEFT, RIGHT = "left", "right"


class _Matches(NamedTuple):
    """The rows of the slice, with the positions of both records in their sides, -1 for none."""

    left: Ints
    right: Ints
    distances: Floats
    best_for: NDArray[np.str_]
    lacking: NDArray[np.str_]

    @property
    def is_pair(self) -> Bools:
        return (self.left >= 0) & (self.right >= 0)


def gather_matches(job: Job) -> MatchFindings:
    """Gather everything that the report of a matched run shows.

    Raises
    ------
    TableError
        A table has no slice of this run, or one that was made from other tables than the rest.
    """
    lake, run = job.lake, job.run
    # all fingerprints are taken before a table is read, so that what is replaced in between shows
    of = Fingerprints(lake, run).slices(tables_up_to("matches", "match"))
    partner = replace(job, lake=lake.partner())
    of_partner = Fingerprints(partner.lake, run).slices(("snapshots", "quarantine"))
    match, left, right, asked = read_sides(lake, run)
    rows = _read(slices.read_slice(lake, of["matches"]), match, left, right)
    is_pair, counters = rows.is_pair, _read_counters(lake, partner.lake, run)
    n_left, n_right = (np.unique(column[column >= 0]).size for column in (rows.left, rows.right))
    first = {name: _choose(name, rows, match) for name in ("farthest", "several", "alone")}
    shown = np.concatenate([*first.values()])
    few = [
        _read_few(each, lake, run, match, side, column[shown])
        for each, side, column in ((job, left, rows.left), (partner, right, rows.right))
    ]
    trends = _make_trends(lake, run)
    earlier = [row["run"] for row in trends if row["run"] < run]
    before = _read_counters(lake, partner.lake, earlier[-1]) if earlier else {}
    return MatchFindings(
        **vars(gather_intake(job, of["snapshots"], of["quarantine"])),
        partner=gather_intake(partner, of_partner["snapshots"], of_partner["quarantine"]),
        run=run,
        params=job.params.in_use(),
        quality=slices.read_quality(lake, run),
        counters=counters,
        seconds_before=select_seconds(before, counters),
        refusal=refusals.read(lake, run),
        how=match.how,
        take=match.take,
        criteria=[_describe(each, place, rows) for place, each in enumerate(match.criteria)],
        asked_from=_write_time(asked[0]) if asked else "",
        asked_until=_write_time(asked[1]) if asked else "",
        n_left=n_left,
        n_right=n_right,
        n_left_alone=int(np.count_nonzero(rows.right < 0)),
        n_right_alone=int(np.count_nonzero(rows.left < 0)),
        n_pairs=int(np.count_nonzero(is_pair)),
        n_mutual=int(np.count_nonzero(rows.best_for == "both")),
        n_several=int(np.count_nonzero(_count_by_record(rows, match)[1] > 1)),
        **_place(rows, match, left, right),
        farthest=[_say_match(rows, row, few) for row in first["farthest"]],
        several=[_say_match(rows, row, few) for row in first["several"]],
        alone=[_say_alone(rows, row, few) for row in first["alone"]],
        trends=trends,
    )


def _read_counters(lake: Lake, partner: Lake, run: str) -> Counters:
    """Read what the jobs of a run counted, those that take in the other data set included."""
    jobs, of_partner = jobs_of("match"), slices.read_counters(partner, run)
    taken_in = [job for job in jobs[: jobs.index("match")] if job in of_partner]
    return {
        **read_own_counters(lake, run),
        **{f"{job}_{partner.source.name}": of_partner[job] for job in taken_in},
    }


def _read(table: pa.Table, match: Match, left: Side, right: Side) -> _Matches:
    """Find the rows of the table among the records of both sides."""
    distances = [table[each.in_table].to_numpy() for each in match.criteria]
    return _Matches(
        _find(table["left_id"], left.ids),
        _find(table["right_id"], right.ids),
        np.column_stack(distances).astype(np.float64),
        np.array(table["best_for"].to_pylist(), np.str_),
        np.array([name or "" for name in table["lacking"].to_pylist()], np.str_),
    )


def _find(column: pa.ChunkedArray, ids: Ints) -> Ints:
    """Find the positions of ids, -1 for null."""
    order = np.argsort(ids, kind="stable")
    is_there = column.is_valid().to_numpy()
    found = np.full(len(column), -1, np.int64)
    found[is_there] = order[np.searchsorted(ids, column.drop_null().to_numpy(), sorter=order)]
    return found


def _describe(criterion: Criterion, place: int, rows: _Matches) -> dict[str, Any]:
    """Describe a criterion, as ``MatchFindings.criteria`` has it."""
    distances = rows.distances[rows.is_pair, place]
    is_lacking = rows.lacking == criterion.name
    largest = float(distances.max()) if distances.size else None
    end = criterion.eps if math.isfinite(criterion.eps) else largest or 0.0
    counts, edges = np.histogram(distances, N_BINS, (0.0, end or 1.0))
    return {
        "name": criterion.name,
        "eps": criterion.eps,
        "unit": criterion.unit,
        "lacking": (
            int(np.count_nonzero(is_lacking & (rows.left >= 0))),
            int(np.count_nonzero(is_lacking & (rows.right >= 0))),
        ),
        "edges": edges,
        "counts": counts,
        "median": float(np.median(distances)) if distances.size else None,
        "largest": largest,
    }


def _count_by_record(rows: _Matches, match: Match) -> tuple[Ints, Ints]:
    """Return the records that have best matches, and how many each has."""
    side, column = (RIGHT, rows.right) if match.how == "right" else (LEFT, rows.left)
    return np.unique(column[np.isin(rows.best_for, (side, "both"))], return_counts=True)


def _choose(what: str, rows: _Matches, match: Match) -> Ints:
    """Choose the rows of a table of examples."""
    if what == "alone":
        return np.flatnonzero(~rows.is_pair)[:MAX_EXAMPLES]
    if what == "several":
        records, n = _count_by_record(rows, match)
        column = rows.right if match.how == "right" else rows.left
        return np.flatnonzero(rows.is_pair & np.isin(column, records[n > 1]))[:MAX_EXAMPLES]
    eps = np.array([each.eps for each in match.criteria])
    sums = rows.distances[:, (eps > 0) & np.isfinite(eps)] @ (1.0 / eps[(eps > 0) & np.isfinite(eps)])
    pairs = np.flatnonzero(rows.is_pair)
    return pairs[np.argsort(-sums[pairs], kind="stable")[:MAX_EXAMPLES]]


def _read_few(job: Job, left: Lake, run: str, match: Match, side: Side, positions: Ints) -> Mapping[int, Row]:
    """Read the keys of a few records, which may be in several runs, and write their compared values."""
    found, source = dict[int, Row](), job.lake.source
    positions = np.unique(positions[positions >= 0])
    for other in runs_read_by(left, run):
        with suppress(MissingSliceError):
            found |= read_records(StoredSlice.of(job, Slice("points", other)), side.ids[positions])
    return {
        int(position): {
            "id": int(side.ids[position]),
            "key": [found[int(side.ids[position])][name] for name in source.key],
            "values": _write_values(side.values[position].tolist(), match, left.source),
        }
        for position in positions
    }


def _write_values(values: Sequence[float], match: Match, left: SourceContract) -> list[object]:
    """Write the compared values of a record: a place has two, the seconds of a time become a text.

    Times are only compared with times, so the left data set says for both what they are.
    """
    written: list[object] = []
    for criterion in match.criteria:
        at = place_of(match, criterion)
        if criterion.metric:
            written += values[at : at + 2]
        else:
            written.append(
                _write_time(values[at]) if left.column(criterion.columns[0]).type in TIMES else values[at]
            )
    return written


def _say_match(rows: _Matches, row: int, few: Sequence[Mapping[int, Row]]) -> dict[str, Any]:
    return {
        LEFT: few[0][int(rows.left[row])],
        RIGHT: few[1][int(rows.right[row])],
        "distances": rows.distances[row].tolist(),
        "best_for": str(rows.best_for[row]),
    }


def _say_alone(rows: _Matches, row: int, few: Sequence[Mapping[int, Row]]) -> dict[str, Any]:
    is_left = rows.left[row] >= 0
    named = few[0][int(rows.left[row])] if is_left else few[1][int(rows.right[row])]
    return {"side": LEFT if is_left else RIGHT, **named, "lacking": str(rows.lacking[row])}


def _place(rows: _Matches, match: Match, left: Side, right: Side) -> dict[str, Any]:
    """Place a sample of the matches and of the records without one on the map, if a criterion is a place."""
    of_place = next((each for each in match.criteria if each.metric), None)
    if of_place is None:
        nothing = np.empty((0, 2))
        return {
            "map_pairs": np.empty((0, 4)),
            "map_left": nothing,
            "map_right": nothing,
            "is_on_map": False,
        }
    at = place_of(match, of_place)
    # latitude and longitude become x and y
    of_left, of_right = (side.values[:, [at + 1, at]] for side in (left, right))
    pairs = _thin(np.flatnonzero(rows.is_pair))
    return {
        "map_pairs": np.column_stack([of_left[rows.left[pairs]], of_right[rows.right[pairs]]]),
        "map_left": of_left[rows.left[_thin(np.flatnonzero(rows.right < 0))]],
        "map_right": of_right[rows.right[_thin(np.flatnonzero(rows.left < 0))]],
        "is_on_map": True,
    }


def _thin(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Take every n-th row, so that they can be drawn; rows are sorted by ids, which are hashes."""
    return rows[:: -(-rows.size // MAX_DRAWN) or 1]


def _make_trends(lake: Lake, run: str) -> list[dict[str, Any]]:
    """Make a row for each of the last runs, this one last, from what the job counted."""
    runs: Iterable[str] = [other for other in slices.list_runs(lake, "matches") if other <= run]
    of_runs = [
        (other, slices.read_counters(lake, other).get("match", {})) for other in sorted(runs)[-MAX_RUNS:]
    ]
    return [
        {
            "run": other,
            "records": counters.get("left_rows"),
            "matched": counters.get("matched"),
            "pairs": counters.get("pairs"),
            "unmatched": counters.get("unmatched"),
        }
        for other, counters in of_runs
    ]


def _write_time(seconds: float) -> str:
    """Write a time in UTC to the millisecond; for a time of day without a date only that."""
    time = datetime.fromtimestamp(seconds, UTC)
    text = (
        f"{time:%H:%M:%S}.{time.microsecond // 1000:03}" if time.microsecond >= 1000 else f"{time:%H:%M:%S}"
    )
    return text if 0 <= seconds < SECONDS_PER_DAY else f"{time:%Y-%m-%d} {text}"
