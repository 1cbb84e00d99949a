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
        middles = (self.boxes[:, :2] + self.boxes[:, 2:]) / 2
        points = self.anchor + _STEPS[:, None] * (middles - self.anchor)[:, None, :]
        points[_are_in(points, self.boxes[:, None, :])] = np.nan
        return np.asarray(points)


class Ground(NamedTuple):
    """What is on the map without the texts.

    Parameters
    ----------
    frame : (4,) box of the axes.
    taken : (r, 4) boxes on which no text and no line should be.
    avoided : (k, 4) boxes on which they are rather than on those.
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
    alone: Sequence[Floats], beside: Callable[[int, int, int], Floats], order: Sequence[int]
) -> tuple[float, list[int]]:
    """Choose boxes in an order, until no label has a better one; return their cost, too.

    Parameters
    ----------
    alone : what the boxes of each label cost where no other one is.
    beside : what those of a label cost, in addition, because of another label in one of its boxes.
    """
    chosen: dict[int, int] = {}
    for _ in range(_ROUNDS):
        before, total = dict(chosen), 0.0
        for number in order:
            cost = alone[number].copy()
            for other, place in chosen.items():
                if other != number:
                    cost += beside(number, other, place)
            chosen[number] = int(np.argmin(cost))
            total += float(cost[chosen[number]])
        if chosen == before:
            break
    return total, [chosen[number] for number in range(len(alone))]


def _cost_alone(label: Label, ground: Ground, is_taken: bool) -> Floats:
    """What each box costs where no other text is."""
    boxes, lines = label.boxes, label.lines
    cost = FAR * label.distances + COVERED * (_size_of(label) - overlaps(boxes, ground.frame))
    for number, box in enumerate(ground.taken):
        cost += COVERED * overlaps(boxes, box)
        if not (is_taken and number == label.own):
            cost += STRUCK * _lengths_in(lines, box) * LINE_PIXELS
    for number, box in enumerate(ground.avoided):
        cost += COVERED_CLUSTER * overlaps(boxes, box)
        if is_taken or number != label.own:
            cost += STRUCK_CLUSTER * _lengths_in(lines, box) * LINE_PIXELS
    return cost


def _size_of(label: Label) -> float:
    return float((label.boxes[0, 2:] - label.boxes[0, :2]).prod())


def _cost_beside(label: Label, other: Label, place: int) -> Floats:
    """What each box of a label costs because of another one that stands somewhere."""
    box, its_line = other.boxes[place], other.lines[place]
    padded = box + np.array((-4.0, -1.0, 4.0, 1.0))  # two ranks side by side are no third one
    on_text = overlaps(label.boxes, padded)
    cost = COVERED * on_text + ON_TEXT * (on_text > 0)
    through_it = _lengths_in(label.lines, padded)
    through = _are_in(its_line[None, :, :], label.boxes[:, None, :]).sum(axis=1) * _step_of(its_line)
    cost += STRUCK * (through_it + through) * LINE_PIXELS
    cost += THROUGH_TEXT * ((through_it > 0) + 1.0 * (through > 0))
    ends = (label.boxes[:, :2] + label.boxes[:, 2:]) / 2
    end = (box[:2] + box[2:]) / 2
    return np.asarray(cost + CROSSED * _cross(label.anchor, ends, other.anchor, end))


def _step_of(line: Floats) -> float:
    """Pixels between two points of a line."""
    steps = np.hypot(*np.diff(line, axis=0).T)
    return float(np.nanmax(steps)) if np.isfinite(steps).any() else 0.0


def _lengths_in(lines: Floats, box: Floats) -> Floats:
    """Pixels of each line within a box; (c,)."""
    steps = np.hypot(*np.moveaxis(lines[:, 1] - lines[:, 0], -1, 0))
    return np.asarray(_are_in(lines, box).sum(axis=1) * np.nan_to_num(steps))


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
