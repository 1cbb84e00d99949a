"""Where texts stand on a map: beside what they name and off one another; few lines to them cross anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float64]
"""Boxes in pixels, (n, 4): left, lower, right and upper end of each."""

Floats = NDArray[np.float64]

FAR, CROSSED, ON_TEXT, THROUGH_TEXT = 12.0, 1e3, 1e5, 5e3
"""Costs of a point of distance, of two lines that cross, of a text on another one, of a line through one."""

COVERED, STRUCK = 3000.0, 60.0
"""Costs, besides, of each square pixel of a text or a ring on which a text or a line is."""

COVERED_CLUSTER, STRUCK_CLUSTER = 6.0, 200.0
"""The same of a cluster that is named."""

LINE_PIXELS = 4.0
"""Width of a line and its surroundings, in pixels."""

PADDING = np.array((-4.0, -1.0, 4.0, 1.0))
"""What is added to the box of another text: two ranks side by side are no third one."""

_STEPS = np.linspace(0.02, 0.98, 17)
_ROUNDS, _ORDERS = 8, 40


@dataclass(frozen=True, eq=False)
class Label:
    """A text, and where it may stand.

    Parameters
    ----------
    anchor : (2,) the place that it names, in pixels.
    boxes : (c, 4) the boxes in which it may stand.
    distances : (c,) cost of each for being far, in points.
    own : number of the ring, or of the cluster, that it names: its line begins there.
    """

    anchor: Floats
    boxes: Boxes
    distances: Floats
    own: int

    @cached_property
    def lines(self) -> Floats:
        """Points of the lines from the anchor to the middles of the boxes, NaN within these; (c, s, 2)."""
        points = self.anchor + _STEPS[:, None] * (self.middles - self.anchor)[:, None, :]
        points[_are_in(points, self.boxes[:, None, :])] = np.nan
        return np.asarray(points)

    @cached_property
    def middles(self) -> Floats:
        """Middles of the boxes, where the lines end; (c, 2)."""
        return np.asarray((self.boxes[:, :2] + self.boxes[:, 2:]) / 2)

    @cached_property
    def steps(self) -> Floats:
        """Pixels between the first two points of each line, 0 where these are in its box; (c,)."""
        return np.asarray(np.nan_to_num(np.hypot(*np.moveaxis(self.lines[:, 1] - self.lines[:, 0], -1, 0))))

    @cached_property
    def largest_steps(self) -> list[float]:
        """Pixels between two points of each line that are not in its box, 0 where there are none; (c,)."""
        lengths = np.hypot(*np.moveaxis(np.diff(self.lines, axis=1), -1, 0))
        return list(map(float, np.where(np.isfinite(lengths), lengths, 0.0).max(axis=1)))

    @cached_property
    def columns(self) -> tuple[Floats, Floats]:
        """Both coordinates of the points of the lines; (c, s) each."""
        return np.ascontiguousarray(self.lines[..., 0]), np.ascontiguousarray(self.lines[..., 1])

    @cached_property
    def sides(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Left, lower, right and upper ends of the boxes; (c, 1) each."""
        left, lower, right, upper = np.ascontiguousarray(self.boxes.T)[:, :, None]
        return left, lower, right, upper

    @cached_property
    def areas(self) -> list[list[float]]:
        """Boxes of all that each choice takes up: the padded box and the line to it; (c, 4)."""
        padded = self.boxes + PADDING
        low, high = np.minimum(padded[:, :2], self.anchor), np.maximum(padded[:, 2:], self.anchor)
        return [list(map(float, area)) for area in np.column_stack([low, high])]

    @cached_property
    def area(self) -> list[float]:
        """The box of all that it may take up; (4,)."""
        areas = np.array(self.areas)
        return [*map(float, areas[:, :2].min(axis=0)), *map(float, areas[:, 2:].max(axis=0))]


class Ground(NamedTuple):
    """What is on the map without the texts.

    Parameters
    ----------
    frame : (4,) box of the axes.
    taken : (r, 4) boxes on which no text and no line should be.
    avoided : (k, 4) boxes on which they may be rather than on taken ones.
    """

    frame: Floats
    taken: Boxes
    avoided: Boxes


def choose_places(labels: Sequence[Label], ground: Ground, n_taken: int) -> list[int]:
    """Choose a box for each label, one after the other, then again in the presence of all others.

    Of the results of a few orders the one that costs least is taken.

    Parameters
    ----------
    labels : those before ``n_taken`` name taken boxes, the others avoided ones, by ``own``.

    Returns
    -------
    list
        The number of the box of each label. The same for the same arguments.
    """
    alone = [_cost_alone(label, ground, number < n_taken) for number, label in enumerate(labels)]
    numbers = list(range(len(labels)))
    random = np.random.default_rng(0)
    orders = [numbers, *(random.permutation(len(labels)).tolist() for _ in range(_ORDERS))]
    beside = cache(lambda number, other, place: _cost_beside(labels[number], labels[other], place))
    tried = [_settle(alone, beside, order) for order in orders]
    return min(tried, key=lambda each: each[0])[1]


def _settle(
    alone: Sequence[Floats], beside: Callable[[int, int, int], Floats | None], order: Sequence[int]
) -> tuple[float, list[int]]:
    """Choose boxes in an order, until no label has a better one; return their cost, too.

    Parameters
    ----------
    alone : what the boxes of each label cost where no other one is.
    beside : what those of a label cost, in addition, because of another label in one of its boxes; None is
        nothing.
    """
    chosen: dict[int, int] = {}
    for _ in range(_ROUNDS):
        before, total = dict(chosen), 0.0
        for number in order:
            cost = alone[number].copy()
            for other, place in chosen.items():
                if other != number and (more := beside(number, other, place)) is not None:
                    cost += more
            chosen[number] = int(np.argmin(cost))
            total += float(cost[chosen[number]])
        if chosen == before:
            break
    return total, [chosen[number] for number in range(len(alone))]


def _cost_alone(label: Label, ground: Ground, is_taken: bool) -> Floats:
    """What each box costs where no other text is."""
    boxes = label.boxes
    cost = FAR * label.distances + COVERED * (_size_of(label) - overlaps(boxes, ground.frame))
    for number, box in enumerate(ground.taken):
        cost += COVERED * overlaps(boxes, box)
        if not (is_taken and number == label.own):
            cost += STRUCK * _lengths_in(label, box) * LINE_PIXELS
    for number, box in enumerate(ground.avoided):
        cost += COVERED_CLUSTER * overlaps(boxes, box)
        if is_taken or number != label.own:
            cost += STRUCK_CLUSTER * _lengths_in(label, box) * LINE_PIXELS
    return cost


def _size_of(label: Label) -> float:
    return float((label.boxes[0, 2:] - label.boxes[0, :2]).prod())


def _cost_beside(label: Label, other: Label, place: int) -> Floats | None:
    """What each box of a label costs because of another one that stands somewhere; None where nothing."""
    if _are_apart(label.area, other.areas[place]):
        return None
    padded = other.boxes[place] + PADDING
    on_text = overlaps(label.boxes, padded)
    cost = COVERED * on_text + ON_TEXT * (on_text > 0)
    through_it = _lengths_in(label, padded)
    its_line = other.lines[place]
    left, lower, right, upper = label.sides
    x, y = its_line[:, 0], its_line[:, 1]
    within = (x >= left) & (x <= right) & (y >= lower) & (y <= upper)
    through = within.sum(axis=1) * other.largest_steps[place]
    cost += STRUCK * (through_it + through) * LINE_PIXELS
    cost += THROUGH_TEXT * ((through_it > 0) + 1.0 * (through > 0))
    return np.asarray(
        cost + CROSSED * _cross(label.anchor, label.middles, other.anchor, other.middles[place])
    )


def _are_apart(area: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two boxes are a pixel apart: nothing in one is on anything in the other, nor crosses it."""
    left, lower, right, upper = area
    return other[0] > right + 1 or other[2] < left - 1 or other[1] > upper + 1 or other[3] < lower - 1


def _lengths_in(label: Label, box: Floats) -> Floats:
    """Pixels of each line of a label within a box; (c,)."""
    x, y = label.columns
    left, lower, right, upper = box.tolist()
    within = (x >= left) & (x <= right) & (y >= lower) & (y <= upper)
    return np.asarray(within.sum(axis=1) * label.steps)


def _are_in(points: Floats, boxes: Floats) -> NDArray[np.bool_]:
    """Whether points lie in boxes; NaN lies in none."""
    x, y = points[..., 0], points[..., 1]
    left, lower, right, upper = np.moveaxis(boxes, -1, 0)
    return np.asarray((x >= left) & (x <= right) & (y >= lower) & (y <= upper))


def _cross(start: Floats, ends: Floats, other_start: Floats, other_end: Floats) -> NDArray[np.bool_]:
    """Whether the lines from a start to some ends cross another line."""

    def side(a: Floats, b: Floats, c: Floats) -> Floats:
        return np.asarray(
            (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1])
            - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])
        )

    parted = side(start, ends, other_start) * side(start, ends, other_end) < 0
    return np.asarray(parted & (side(other_start, other_end, start) * side(other_start, other_end, ends) < 0))


def overlaps(boxes: Boxes, other: Floats) -> Floats:
    """Return the area that each box and the other one cover both, in square pixels."""
    low, high = np.maximum(boxes[:, :2], other[:2]), np.minimum(boxes[:, 2:], other[2:])
    return np.asarray(np.maximum(high - low, 0).prod(axis=1))
