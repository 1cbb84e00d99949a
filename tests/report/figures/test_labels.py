"""Texts on a map: each is beside what it names, and neither it nor its line is on another one."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from epsjoin.findings import Findings
from epsjoin.report.figures import labels, maps
from epsjoin.report.figures.labels import Ground, Label, choose_places

FRAME = np.array([0.0, 0.0, 300.0, 200.0])
NOTHING = np.empty((0, 4))


def label(x: float, y: float, *, width: float = 40.0, own: int = 0) -> Label:
    """One that may stand at four sides of its place, near or far."""
    sides = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
    offsets = np.concatenate([sides * (width / 2 + 5, 12), sides * (width + 15, 40)])
    middles = np.array([x, y]) + offsets
    half = np.array([width / 2, 6])
    return Label(
        np.array([x, y]), np.column_stack([middles - half, middles + half]), np.hypot(*offsets.T), own
    )


def test_choose_places__takes_the_nearest_box_where_nothing_is() -> None:
    assert choose_places([label(150, 100)], Ground(FRAME, NOTHING, NOTHING), 0) == [0]


def test_choose_places__stays_within_the_frame() -> None:
    assert choose_places([label(150, 195)], Ground(FRAME, NOTHING, NOTHING), 0) == [2]


def test_choose_places__keeps_text_and_line_off_what_is_taken() -> None:
    above = np.array([[140.0, 104.0, 160.0, 108.0]])  # the line upwards is through it, near or far
    assert choose_places([label(150, 100)], Ground(FRAME, above, NOTHING), 0) == [2]
    assert choose_places([label(150, 100, own=0)], Ground(FRAME, above, NOTHING), 1) == [2], (
        "the text is, too"
    )


def test_choose_places__lets_the_lines_of_two_not_cross() -> None:
    """The first label would be best above, as the second would; then one of them goes elsewhere."""
    ground = Ground(FRAME, NOTHING, NOTHING)
    for near in itertools.permutations([label(150, 100), label(160, 100, own=1)]):
        first, second = choose_places(near, ground, 0)
        one, other = near[0].boxes[first], near[1].boxes[second]
        assert one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]


def test_labels__that_are_apart_cost_each_other_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    places = random.uniform((0, 0), FRAME[2:], (40, 2))
    several = [
        label(*place, width=width) for place, width in zip(places, random.uniform(5, 60, 40), strict=True)
    ]
    choices = [(*pair, place) for pair in itertools.permutations(several, 2) for place in range(8)]
    told = [labels._cost_beside(*choice) for choice in choices]
    monkeypatch.setattr(labels, "_are_apart", lambda *_: False)
    costs = [labels._cost_beside(*choice) for choice in choices]
    for cost, each in zip(costs, told, strict=True):
        np.testing.assert_array_equal(0.0 if each is None else each, cost)
    n_nothing = sum(not cost.any() for cost in costs)
    n_apart = sum(each is None for each in told)
    assert n_nothing * 0.8 < n_apart < len(choices) * 0.9


def test_draw_map__shortens_names_that_are_uuids(example: Findings) -> None:
    first, *others = example.largest_clusters
    named = [{**first, "called": "9bdce606-c6b8-dbcb-ec48-9a0b1c2d3e4f", "size": 38}, *others]
    fig = maps.draw_map(dataclasses.replace(example, largest_clusters=named))
    assert "9bdce606… (38)" in [text.get_text() for text in fig.axes[0].texts]


@pytest.mark.parametrize("seed", range(3))
def test_draw_map__strikes_no_name_through(example: Findings, seed: int) -> None:
    """Eight clusters lie among outliers."""
    random = np.random.default_rng(seed)
    middles = random.uniform(2, 8, (8, 2))
    points = np.repeat(middles, 20, axis=0) + random.normal(scale=0.02, size=(160, 2))
    points = np.concatenate([points, [[0.0, 0.0], [10.0, 10.0]]])
    rows = [
        {**example.largest_clusters[0], "cluster_id": i, "called": f"Name {i} of some length", "size": 20}
        for i in range(8)
    ]
    places = random.uniform(1, 9, (10, 2))
    outliers = [
        {**example.outliers[0], "rank": i, "columns": dict(zip(example.map_axes, place, strict=True))}
        for i, place in enumerate(places.tolist())
    ]
    crowd = dataclasses.replace(
        example,
        is_geographic=False,
        map_points=points,
        map_cluster_ids=np.append(np.repeat(np.arange(8), 20), [-1, -1]),
        largest_clusters=rows,
        outliers=outliers,
    )
    fig = maps.draw_map(crowd)
    fig.draw_without_rendering()
    (ax,) = fig.axes
    names = [text for text in ax.texts if text.get_text().startswith("Name")]
    assert len(names) == 8
    boxes = {text: super(type(text), text).get_window_extent() for text in names}
    struck = 0
    for text, box in boxes.items():
        begin = ax.transData.transform(text.xy)  # type: ignore[attr-defined]  # of an annotation
        end = np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
        line = begin + np.linspace(0, 1, 200)[:, None] * (end - begin)
        struck += sum(
            any(other.contains(*place) for place in line) for each, other in boxes.items() if each is not text
        )
    assert struck == 0
