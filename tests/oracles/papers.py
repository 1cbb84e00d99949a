"""GESS as the papers define it, to be read next to them: plain recursion, fractions and lists.

Source: the dissertation's figure 3.4 (replicator, for the quadtree and for the binary tree), figure 3.1
(Orenstein's merge), figure 4.3 (sweep area), definition 9 (reference point method). A cell is a box of
fractions, a code a tuple of digits, a rule a lambda, a set is a set.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from oracles.join import is_within

Box = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
Code = tuple[int, ...]
Rule = Callable[[int, int, int, int], bool]


@dataclass
class Work:
    """What a join did. ``comparisons`` is the papers' number of distance computations."""

    rows: int = 0
    replicas: int = 0
    comparisons: int = 0
    near_comparisons: int = 0
    largest_stack: int = 0
    pairs: list[tuple[int, int]] = field(default_factory=list)


def deepest_level(width: Fraction, eps: Fraction) -> int:
    """The last level at which a cell is at least eps wide."""
    level = 0
    while width / 2 ** (level + 1) >= eps:
        level += 1
    return level


def cube(point: list[float], eps: Fraction) -> Box:
    """H(x): the box of side eps centred on x."""
    return tuple(Fraction(v) - eps / 2 for v in point), tuple(Fraction(v) + eps / 2 for v in point)


def halve(low: Fraction, high: Fraction, digit: int) -> tuple[Fraction, Fraction]:
    """The lower (digit 0) or upper (1) half of one side of a cell; an upper half begins at the cut."""
    middle = (low + high) / 2
    return (middle, high) if digit else (low, middle)


def replicate(
    box: Box,
    low: list[Fraction],
    width: Fraction,
    levels: int,
    k: int,
    msl: int,
    max_rows: float,
    rule: Rule | None = None,
    decisions: str = "global",
) -> list[Code]:
    """Figure 3.4: codes (one digit of 0/1 per dimension and level) of the cells of one cube.

    Whatever reaches out of the space counts as on its border. Pieces wait in a queue, so that a limited
    number of rows is spent on the first splits first. A ``rule`` of (level, crossed, rows, generation) stands
    in for k and msl; the generation of a piece is the number of splits that led to it. Decided "inside" the
    level, what stops goes on along its axes up to the first cut that it crosses.
    """
    if rule is None:
        rule = lambda level, crossed, *_: crossed <= k and level <= msl  # noqa: E731  # a rule like the caller's
    if decisions == "local":
        return _replicate_locally(box, low, width, levels, max_rows, rule)
    step = width / 2**80  # an upper half begins at the cut, so a lower half ends a step before it
    begin = tuple(min(max(v, a), a + width - step) for v, a in zip(box[0], low, strict=True))
    end = tuple(min(max(v, a), a + width - step) for v, a in zip(box[1], low, strict=True))
    found: list[Code] = []
    waiting = deque([((), 0, begin, end, [(a, a + width) for a in low])])
    rows = 1
    while waiting:
        code, generation, begin, end, cell = waiting.popleft()
        level = len(code) // len(low)
        cuts = [(a + b) / 2 for a, b in cell]
        crossed = [i for i, cut in enumerate(cuts) if begin[i] < cut <= end[i]]
        if level == levels:
            found.append(code)
        elif not crossed:  # the cube lies in one cell of the next level: go there, first of all
            digits = tuple(int(v >= cut) for v, cut in zip(begin, cuts, strict=True))
            waiting.appendleft((code + digits, generation, begin, end, _halves(cell, digits)))
        elif rows - 1 + 2 ** len(crossed) <= max_rows and rule(level, len(crossed), rows, generation):
            rows += 2 ** len(crossed) - 1
            for sides in itertools.product((0, 1), repeat=len(crossed)):
                side = dict(zip(crossed, sides, strict=True))
                digits = tuple(side.get(i, int(begin[i] >= cut)) for i, cut in enumerate(cuts))
                piece_begin = tuple(cuts[i] if side.get(i) == 1 else v for i, v in enumerate(begin))
                piece_end = tuple(cuts[i] - step if side.get(i) == 0 else v for i, v in enumerate(end))
                waiting.append((code + digits, generation + 1, piece_begin, piece_end, _halves(cell, digits)))
        elif decisions == "inside":
            found.append(code + tuple(int(begin[i] >= cuts[i]) for i in range(crossed[0])))
        else:
            found.append(code)
    return found


def _replicate_locally(
    box: Box, low: list[Fraction], width: Fraction, levels: int, max_rows: float, rule: Rule
) -> list[Code]:
    """Figure 3.4 as it is drawn, for two halves: the next cut lies in dimension ``len(code) % d``.

    A rule hears how many splits were made on the path at this level, the one in question included.
    """
    step = width / 2**80
    begin = [min(max(v, a), a + width - step) for v, a in zip(box[0], low, strict=True)]
    end = [min(max(v, a), a + width - step) for v, a in zip(box[1], low, strict=True)]
    found: list[Code] = []
    no_splits: Code = ()  # places in the code at which the path was split
    waiting = deque([((), no_splits, begin, end, [(a, a + width) for a in low])])
    rows = 1
    while waiting:
        code, splits, begin, end, cell = waiting.popleft()
        level, i = divmod(len(code), len(low))
        if level == levels:
            found.append(code)
            continue
        cut = sum(cell[i]) / 2
        lower_cell = [*cell[:i], (cell[i][0], cut), *cell[i + 1 :]]
        upper_cell = [*cell[:i], (cut, cell[i][1]), *cell[i + 1 :]]
        if end[i] < cut:
            waiting.appendleft(((*code, 0), splits, begin, end, lower_cell))
        elif begin[i] >= cut:
            waiting.appendleft(((*code, 1), splits, begin, end, upper_cell))
        elif rows + 1 <= max_rows and rule(
            level, 1 + sum(at // len(low) == level for at in splits), rows, len(splits)
        ):
            rows += 1
            path = (*splits, len(code))
            waiting.append(((*code, 0), path, begin, [*end[:i], cut - step, *end[i + 1 :]], lower_cell))
            waiting.append(((*code, 1), path, [*begin[:i], cut, *begin[i + 1 :]], end, upper_cell))
        else:
            found.append(code)
    return found


def _halves(
    cell: list[tuple[Fraction, Fraction]], digits: tuple[int, ...]
) -> list[tuple[Fraction, Fraction]]:
    return [halve(a, b, digit) for (a, b), digit in zip(cell, digits, strict=True)]


def cell_holds(code: Code, point: list[Fraction], low: list[Fraction], width: Fraction) -> bool:
    """Whether the cell of this code holds the point; points outside the space count as on its border."""
    d = len(low)
    for i in range(d):
        a, b = low[i], low[i] + width
        value = min(max(point[i], a), b - width / 2**80)
        for digit in code[i::d]:
            a, b = halve(a, b, digit)
        if not a <= value < b:
            return False
    return True


Entry = tuple[Code, int, bool]


class SweepArea:
    """Figure 4.3, element by element: a set, what is removed from it, what a query gives."""

    def __init__(self, joins: Callable[[Entry, Entry], bool], may_go: Callable[[Entry, Entry], bool]) -> None:
        self.joins, self.may_go = joins, may_go
        self.elements: list[Entry] = []

    def insert(self, entry: Entry) -> None:
        self.elements.append(entry)

    def reorganise(self, current: Entry) -> None:
        self.elements = [u for u in self.elements if not self.may_go(u, current)]

    def query(self, current: Entry) -> list[Entry]:
        return [u for u in self.elements if self.joins(u, current)]


def is_no_prefix(u: Entry, current: Entry) -> bool:
    """The removal predicate of Orenstein's merge."""
    return current[0][: len(u[0])] != u[0]


def gess(
    points: NDArray[np.float64],
    eps: float,
    k: int,
    msl: int,
    max_rows: float = math.inf,
    with_longer_code: bool = True,
    rule: Rule | None = None,
    decisions: str = "global",
    side: list[int] | None = None,
    space: tuple[list[float], float] | None = None,
) -> Work:
    """The whole join of one table with itself, or of two, under L2, counting its work.

    ORE is k = d and msl = 62, MSJ is k = 0. ``with_longer_code=False`` applies the reference point method to
    the shorter code, which is wrong: see docs/notes-on-papers.md. ``side`` says which of two tables each row
    is of: then there are two sweep areas. ``space`` is a lower corner and a width other than the points'
    own.
    """
    rows = points.tolist()
    side_of_eps = Fraction(eps)
    low = [Fraction(v) for v in points.min(axis=0).tolist()]
    width = max(Fraction(v) - low[i] for i, v in enumerate(points.max(axis=0).tolist()))
    if space is not None:
        low, width = [Fraction(v) for v in space[0]], Fraction(space[1])
    levels = deepest_level(width, side_of_eps) if width else 0
    cubes = [cube(row, side_of_eps) for row in rows]
    coded: list[Entry] = []
    for number, box in enumerate(cubes):
        found = replicate(box, low, width, levels, k, msl, max_rows, rule, decisions) if width else [()]
        coded += [(code, number, len(found) > 1) for code in found]
    coded.sort(key=lambda row: row[0])
    work = Work(rows=len(coded), replicas=sum(is_replica for _, _, is_replica in coded))
    areas = [SweepArea(lambda _u, _v: True, is_no_prefix) for _ in range(1 if side is None else 2)]
    for current in coded:
        code, y, y_replica = current
        for area in areas:
            area.reorganise(current)
        own, other = (0, 0) if side is None else (side[y], 1 - side[y])
        for shorter, x, x_replica in areas[other].query(current):
            work.comparisons += 1
            if max(abs(a - b) for a, b in zip(rows[x], rows[y], strict=True)) > eps:
                continue
            work.near_comparisons += 1
            if not is_within(rows[x], rows[y], eps, "euclidean"):
                continue
            reference = [max(a, b) for a, b in zip(cubes[x][0], cubes[y][0], strict=True)]
            tested = code if with_longer_code else shorter
            if not (x_replica or y_replica) or cell_holds(tested, reference, low, width):
                work.pairs.append((min(x, y), max(x, y)))
        areas[own].insert(current)
        work.largest_stack = max(work.largest_stack, sum(len(area.elements) for area in areas))
    return work


def touched_parts(
    lower: list[float],
    upper: list[float],
    hash_value: float,
    node: int,
    tree: dict[str, list[float]],
    below: frozenset[int] = frozenset(),
) -> list[tuple[int, frozenset[int]]]:
    """Parts of a planned tree that a cube touches, each with the axes on which it begins below the part.

    Straight recursion over ``tree`` (columns axis, position, left, right, part); axis -1 is the hash.
    """
    if tree["part"][node] >= 0:
        return [(int(tree["part"][node]), below)]
    axis, position = int(tree["axis"][node]), tree["position"][node]
    begin, end = (hash_value, math.inf) if axis < 0 else (lower[axis], upper[axis])
    found = []
    if begin < position:
        found += touched_parts(lower, upper, hash_value, int(tree["left"][node]), tree, below)
    if end >= position:
        more = below | {axis} if begin < position else below
        found += touched_parts(lower, upper, hash_value, int(tree["right"][node]), tree, more)
    return found


def merge_passes(n_runs: float, fan_in: float) -> int:
    """How often rows are written and read again until so many runs are one; one run is not written.

    Parameters
    ----------
    n_runs : number of sorted runs; a fraction is taken as it is, as the papers do.
    fan_in : maximum number of runs in a merge, at least 2.
    """
    passes, reach = 0, 1.0
    while reach < n_runs:
        reach *= fan_in
        passes += 1
    return passes


def spilled_bytes(n_rows: float, stored_bytes: int, n_runs: int, fan_in: int) -> float:
    """Bytes that are written, and read again: every row once in each pass.

    Parameters
    ----------
    n_rows : rows of both tables, with their replicas.
    stored_bytes : of a row.
    n_runs, fan_in : as for :func:`merge_passes`.
    """
    return merge_passes(n_runs, fan_in) * n_rows * stored_bytes
