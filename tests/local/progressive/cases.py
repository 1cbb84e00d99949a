"""Kinds of joins with awkward rows and their oracle, and a driver that divides memory as a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epsjoin.kernels.codes import as_keys, cube_corners, hold_cubes, range_ends
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.progressive.driver import Driver
from epsjoin.local.progressive.kinds.columns import Band, Equi, Spatial, Temporal
from epsjoin.local.progressive.kinds.kind import JoinCondition, SweepKind
from epsjoin.local.progressive.kinds.points import PointsInCells, PointsInParts
from epsjoin.local.progressive.kinds.similarity import Similarity
from epsjoin.local.progressive.options import Options
from epsjoin.local.progressive.results import Found
from epsjoin.local.progressive.rows import SweepRows
from epsjoin.local.progressive.sizes import Sizes
from epsjoin.local.progressive.sources import ArraySource, IteratorSource, Source
from epsjoin.local.progressive.spill import Spill
from oracles import join as twin
from oracles import progressive as oracle


class Case(NamedTuple):
    kind: JoinCondition
    rows: np.ndarray[Any, Any]
    others: np.ndarray[Any, Any]
    joins: Callable[[Any, Any], float | None]


SIMPLE = {
    "equi": (Equi(), "numbers", oracle.equi),
    "equi of integers": (Equi(), "integers", oracle.equi),
    "equi with NULL": (Equi(), "with nan", oracle.equi),
    "band": (Band(1.0), "far apart", oracle.band(1.0, 1.0)),
    "band of two limits": (Band(0.2, 1.0), "far apart", oracle.band(0.2, 1.0)),
    "temporal": (Temporal(), "intervals", oracle.temporal),
    "temporal, left": (Temporal("left"), "intervals", oracle.temporal_open),
    "spatial": (Spatial(), "boxes", oracle.spatial),
}
OF_POINTS = {
    "planned": {},
    "regular": {"cuts": "regular", "k": 2, "msl": 3},
    "MSJ": {"cuts": "regular", "k": 0},
    "ORE": {"cuts": "regular", "k": 2, "msl": 9, "replication_budget": 1e9},
}
KINDS = [*SIMPLE, *OF_POINTS]


def make_case(name: str, n: int, seed: int, points: str = "uniform", d: int = 2) -> Case:
    """Two tables of this kind; points of one sort for both."""
    if name in SIMPLE:
        kind, rows, joins = SIMPLE[name]
        return Case(kind, oracle.awkward(rows, n, seed), oracle.awkward(rows, n // 2, seed + 1), joins)
    both, eps = twin.awkward_points(points, n + n // 2, d, seed)
    both = np.random.default_rng(seed).permutation(both)
    joins = oracle.similarity(eps)
    return Case(Similarity(eps, **OF_POINTS[name]), both[:n], both[n:], joins)


class RowByRow:
    """What a kind of points says of its rows, by the definitions: an area that knows no sweep can ask it."""

    def __init__(self, kind: PointsInParts | PointsInCells) -> None:
        self.kind = kind

    def expire_of(self, rows: SweepRows) -> Any:
        """A part expires with its key, a code with the end of its range."""
        if isinstance(self.kind, PointsInParts):
            return rows.key
        return as_keys(range_ends(codes_of(rows)))

    def meet(self, rows: SweepRows, first: Any, second: Any) -> Any:
        """Near, and in the part or in the cells that own the pair."""
        metric, eps = self.kind.metric, self.kind.eps
        distance = paired_distances(metric.decision(eps), rows.values, first, second)
        if isinstance(self.kind, PointsInParts):
            owned = (rows.mark[first] & rows.mark[second]) == 0
        else:
            space, codes = self.kind.codes.space, codes_of(rows)
            corners = space.axes, space.low, space.width, space.eps
            lower, upper = cube_corners(metric.embed(rows.values[first]), *corners)
            others, ends = cube_corners(metric.embed(rows.values[second]), *corners)
            corner = np.maximum(lower, others)
            owned = hold_cubes(codes[first], lower, upper) & hold_cubes(codes[second], others, ends)
            # the longer code would be enough in a merge; condition 4.1 is about all rows
            owned |= hold_cubes(codes[first], corner, corner) & hold_cubes(codes[second], corner, corner)
        return np.where((distance >= 0.0) & owned, distance, np.nan)


def codes_of(rows: SweepRows) -> Any:
    """Codes that are keys, as bytes."""
    return np.ascontiguousarray(rows.key).view(np.uint8).reshape(rows.n, rows.key.dtype.itemsize)


def fitted(case: Case, values: Any, part_rows: int) -> SweepKind:
    """The kind by which these rows are written."""
    kind = case.kind.fit(values, len(values))
    return kind.cut(values, np.arange(len(values)), len(values), part_rows) or kind


def drive(
    case: Case,
    folder: Path | None = None,
    *,
    two: bool = True,
    how: Any = "inner",
    run_rows: int = 7,
    fan_in: int = 2,
    traversal: Any = "last",
    dies_after: int | None = None,
) -> list[Found]:
    """All batches of a progressive join in tiny memory, or so many, of one that then leaves its folder."""
    counted: dict[str, Any] = {}
    sizes = Sizes(run_rows, tuple({max(1, run_rows // 3), max(2, run_rows // 2)}), fan_in, 3, 4)
    spill = Spill(folder, counted)
    tables = [case.rows, case.others] if two else [case.rows]
    is_idle = traversal == "idle"
    sources: list[Source] = [
        IteratorSource(_now_and_then(table)) if is_idle else ArraySource(table) for table in tables
    ]
    batches = Driver(sources, case.kind, Options(how, traversal, sizes), spill, counted).run()
    try:
        return list(islice(batches, dies_after))
    finally:
        if dies_after is None:
            spill.close()
        else:
            spill.leave()


def _now_and_then(table: Any) -> Iterator[Any]:
    for begin in range(0, len(table), 5):
        yield table[begin : begin + 5]
        yield None


def gathered(batches: list[Found]) -> list[Any]:
    """What the batches hold, sorted: pairs of ids, or ids."""
    found: list[Any] = []
    for pairs, *_ in batches:
        columns = [column.tolist() for column in pairs[:2]]
        found += columns[0] if len(columns) == 1 else zip(*columns, strict=True)
    return sorted(found)
