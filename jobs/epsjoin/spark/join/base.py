"""The base of an increment: the earlier run from whose pairs a run's can be computed, or why there is none.

An increment is a way to compute a slice, not to store it: the slice of ``pairs`` is the same either way, and
once it is committed, nothing in the run depends on the base. For documents the pairs that are joined are the
candidates, which the job ``refine`` compares again in every run. Finding the base needs no session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from epsjoin.console import counted, exactly_in_unit, percents
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import UnfitTableError
from epsjoin.kernels.arrays import Ints, Words
from epsjoin.kernels.ids import match_ids
from epsjoin.lake import parquet, slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.schemas import parse_ddl
from epsjoin.local.join.update import find_changes
from epsjoin.local.plan.sizes import rows_that_fit
from epsjoin.params import RunParams
from epsjoin.pipeline import joined_table
from epsjoin.spark.digests import to_words

INCREMENT = "increment"
"""Value of ``join_plan.kind`` of a run whose pairs are computed from those of another."""

_BATCH_ROWS = 1 << 20
"""Maximum number of digests that are read at once; a row group has fewer."""

MAX_CHANGES = 1 << 24
"""Maximum number of placed and gone points of an increment, whose ids are in one row: 128 MB."""


class Changes(NamedTuple):
    """What differs between the points of two runs.

    Parameters
    ----------
    placed : present ids that are new, or whose place has changed; ascending.
    gone : earlier ids that are deleted, or whose place has changed; ascending.
    """

    placed: Ints
    gone: Ints

    def __str__(self) -> str:
        """Return the text for messages."""
        n_moved = len(np.intersect1d(self.placed, self.gone, assume_unique=True))
        new, deleted = len(self.placed) - n_moved, len(self.gone) - n_moved
        return f"{new:,} new, {deleted:,} deleted, {n_moved:,} moved"

    def to_row(self) -> dict[str, int | bytes]:
        """The columns of ``join_plan`` that hold them."""
        return {
            "placed": len(self.placed),
            "gone": len(self.gone),
            "placed_ids": self.placed.astype("<i8", copy=False).tobytes(),
            "gone_ids": self.gone.astype("<i8", copy=False).tobytes(),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Changes:
        """Read what :meth:`to_row` made.

        Raises
        ------
        UnfitTableError
            An earlier version has written the row, without the ids.
        """
        if row["placed_ids"] is None or row["gone_ids"] is None:
            raise UnfitTableError(
                f"join_plan of run {row['run']} lacks the ids of what has changed, since an earlier version "
                "wrote it; run replicate again"
            )
        placed, gone = (np.frombuffer(row[name], "<i8") for name in ("placed_ids", "gone_ids"))
        return cls(placed.astype(np.int64, copy=False), gone.astype(np.int64, copy=False))


@dataclass(frozen=True)
class IncrementPlan:
    """What distinguishes an increment from another one: the column ``plan`` of ``join_plan``.

    Parameters
    ----------
    base : the earlier run.
    pairs : fingerprint of its pairs, which covers its points and its own plan.
    candidates : expected number of candidates of a join of all points.
    """

    base: str
    pairs: str
    candidates: float

    def to_json(self) -> str:
        """The plan as text."""
        return json.dumps({"kind": INCREMENT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> IncrementPlan:
        """Read what :meth:`to_json` wrote."""
        read = json.loads(text)
        return cls(read["base"], read["pairs"], read["candidates"])


class Increment(NamedTuple):
    """A run's join as an increment.

    Parameters
    ----------
    row : the row of ``join_plan``.
    changes : what differs from the base.
    n_points : number of points of the run.
    """

    row: dict[str, Any]
    changes: Changes
    n_points: int


class BaseTables(NamedTuple):
    """The slices of a base, with their fingerprints, all of one state.

    Parameters
    ----------
    digests, pairs : the slices; of documents the pairs are the candidates.
    plan : its row of ``join_plan``.
    """

    digests: Slice
    pairs: Slice
    plan: Mapping[str, Any]


def base_tables(lake: Lake, run: str) -> BaseTables:
    """Take the fingerprints of a base before any of its tables is read.

    That of the digests, which belong to a pass of ingest, comes first: if points are replaced after that, the
    fingerprint of the pairs changes, so that digests and pairs of different points are never used together.

    Raises
    ------
    UnfitTableError
        A table has no slice of this run, or the tables do not belong together.
    """
    inputs = Fingerprints(lake, run)
    pairs = inputs.slice(joined_table(lake.source.chain))
    return BaseTables(inputs.slice("digests"), pairs, inputs.row("join_plan"))


def find_increment(inputs: Fingerprints, params: RunParams, eps: float) -> Increment | str:
    """Plan the join of a run as an increment on an earlier run, or say why all points must be joined.

    Parameters
    ----------
    inputs, params, eps : of the run.
    """
    lake = inputs.lake
    if params.increment == 0:
        return "increments are switched off (increment 0)"
    if params.cuts != "planned":
        return f"the cuts are {params.cuts}, which is for the whole join"
    if not lake.source.key:
        return "the source has no key, so that an id is only a place in a file"
    joined = joined_table(lake.source.chain)
    before = [run for run in slices.list_runs(lake, joined) if run < inputs.run]
    if not before:
        return f"there is no earlier run with {joined}"
    base = before[-1]
    try:
        tables = base_tables(lake, base)
        n_pairs = slices.count_rows(lake, tables.pairs)
        why = _compare_plans(tables.plan, base, lake.source, eps, params.most_generations)
        if why:
            return why
        was, now = (_read_places(lake, where) for where in (tables.digests, inputs.slice("digests")))
    except UnfitTableError as error:
        return f"run {base} cannot be its base: {error}"
    n_before, n = int(tables.plan["n_points"]), slices.count_rows(lake, inputs.slice("points"))
    if (len(was.ids), len(now.ids)) != (n_before, n):
        return f"run {base} or this one has not a digest for each point"
    changes = compare_places(was, now)
    fraction = len(changes.placed) / max(1, n)
    if fraction > params.increment:
        share, allowed = percents(fraction, params.increment)
        return f"{share} of the points are new or moved since run {base}, {allowed} may be"
    if len(changes.placed) > rows_that_fit(params.worker_memory_mb, len(lake.source.axes)) // 2:
        return (
            f"{counted(len(changes.placed), 'point')} new or moved since run {base} do not fit a worker of "
            f"{params.worker_memory_mb:,} MB (worker_memory_mb)"
        )
    if len(changes.placed) + len(changes.gone) > MAX_CHANGES:
        n_changes = counted(len(changes.placed) + len(changes.gone), "point")
        return f"{n_changes} differ from run {base}, an increment's plan names at most {MAX_CHANGES:,}"
    expected_pairs = n_pairs * (n / max(1, n_before)) ** 2
    if expected_pairs > params.max_pairs:
        return f"{expected_pairs:,.0f} pairs are expected, more than max_pairs"
    row = _make_row(lake.source.point_metric, base, tables, eps, changes, n, expected_pairs)
    return Increment(row, changes, n)


def _compare_plans(
    plan: Mapping[str, Any], base: str, source: SourceContract, eps: float, generations: int
) -> str:
    """Why the pairs of a base cannot be used, judging by its plan alone; empty if they may be."""
    if plan["eps"] != eps:
        was, now = (exactly_in_unit(each, source.unit) for each in (plan["eps"], eps))
        return f"run {base} has eps {was}, this one {now}"
    if plan["metric"] != source.point_metric:
        return f"run {base} has the metric {plan['metric']}, this one {source.point_metric}"
    if (plan["generation"] or 0) >= generations:
        return f"run {base} is increment number {plan['generation'] or 0} in a row (most_generations)"
    return ""


def _make_row(
    metric: str, base: str, tables: BaseTables, eps: float, changes: Changes, n: int, expected_pairs: float
) -> dict[str, Any]:
    """Make the row of ``join_plan``; it expects those candidates of a whole join that have a placed end."""
    plan = tables.plan
    is_increment = plan["kind"] == INCREMENT
    of_whole = (
        IncrementPlan.from_json(plan["plan"]).candidates if is_increment else plan["expected_candidates"]
    )
    of_whole *= (n / max(1, plan["n_points"])) ** 2
    stays = 1.0 - len(changes.placed) / max(1, n)
    return {
        "kind": INCREMENT,
        "split_rule": None,
        "eps": eps,
        "metric": metric,
        "n_parts": 1,
        "sample_rows": 0,
        "n_points": n,
        "expected_rows": 0.0,
        "expected_candidates": of_whole * (1.0 - stays**2),
        "expected_pairs": expected_pairs,
        "plan": IncrementPlan(base, tables.pairs.fingerprint, of_whole).to_json(),
        "base": base,
        "generation": (plan["generation"] or 0) + 1,
        **changes.to_row(),
        "why": None,
    }


class Places(NamedTuple):
    """Where the points of a run are.

    Parameters
    ----------
    ids : (n,) int64.
    places : (n, 2) uint64, the digest of each point's place.
    """

    ids: Ints
    places: Words


def compare_places(before: Places, now: Places) -> Changes:
    """Find what differs between the points of two runs."""
    is_placed, is_gone = find_changes(match_ids(before.ids, now.ids), before.places, now.places)
    return Changes(np.sort(now.ids[is_placed]), np.sort(before.ids[is_gone]))


def _read_places(lake: Lake, where: Slice) -> Places:
    """Read digests on the driver, row group by row group into their arrays: no other copy is held.

    Raises
    ------
    UnfitTableError
        The run has no digests, or they are not those of its points.
    """
    files = slices.files_of(lake, where)
    columns, location = parse_ddl("id long, place binary"), lake.location(where.table)
    n = sum(file.rows for file in files)
    found, first = Places(np.empty(n, np.int64), np.empty((n, 2), np.uint64)), 0
    for file in files:
        for batch in parquet.stream_file(location, file, columns, _BATCH_ROWS):
            here = slice(first, first + batch.num_rows)
            found.ids[here] = batch["id"].to_numpy()
            found.places[here] = to_words(pa.chunked_array([batch["place"]]))
            first = here.stop
    return found
