"""Coastlines and outliers on the map: in its frame, across 180°, below the points."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from epsjoin.findings import Findings
from epsjoin.report.figures import figure, maps
from epsjoin.report.figures.coastlines import MIN_DEGREES, find_coastlines
from epsjoin.report.page import render
from epsjoin.vocabulary import NOISE

WORLD = (-180.0, -90.0), (180.0, 90.0)


def at(
    findings: Findings, *places: tuple[float, float], outliers: tuple[tuple[float, float], ...] = ()
) -> Findings:
    """The findings with points at these places alone."""
    return dataclasses.replace(
        findings,
        map_points=np.array(places),
        map_cluster_ids=np.full(len(places), NOISE),
        map_axes=("longitude_deg", "latitude_deg"),
        outliers=[
            {**findings.outliers[0], "rank": rank, "columns": {"longitude_deg": x, "latitude_deg": y}}
            for rank, (x, y) in enumerate(outliers, 1)
        ],
    )


def coast(fig: Figure) -> list[Line2D]:
    return [line for line in fig.axes[0].lines if line.get_gid() == "coastlines"]


def rings(fig: Figure) -> list[tuple[float, float]]:
    (found,) = [line for line in fig.axes[0].lines if line.get_markerfacecolor() == "none"]
    return [(float(x), float(y)) for x, y in found.get_xydata()]


def test_coastlines__of_the_world_are_all_outlines_without_a_jump() -> None:
    lines = find_coastlines(*WORLD)
    points = np.concatenate(lines)
    assert len(points) > 5000
    assert points[:, 0].min() < -179
    assert points[:, 0].max() > 179
    for line in lines:
        assert len(line) > 1
        assert (np.abs(np.diff(line[:, 0])) < 20).all(), "a line does not run through the whole map"
        on_cut = np.abs(line[:, 0] % 360 - 180) < 0.02
        assert not (on_cut[1:] & on_cut[:-1]).any(), "where the data are cut there is no coast"


@pytest.mark.parametrize("turn", [0, -360])
def test_coastlines__of_a_region_are_those_that_reach_into_it(turn: int) -> None:
    low, high = (5.0 + turn, 36.0), (20.0 + turn, 47.0)  # Italy
    lines = find_coastlines(low, high)
    for line in lines:
        first, second = line[:-1], line[1:]
        assert (np.maximum(first, second) >= low).all()
        assert (np.minimum(first, second) <= high).all()
    inside = np.concatenate(lines)
    inside = inside[((inside > low) & (inside < high)).all(axis=1)]
    rome = np.array((12.2 + turn, 41.7))
    assert np.hypot(*(inside - rome).T).min() < 1


def test_coastlines__reach_across_180_degrees() -> None:
    low, high = (-190.0, -20.0), (-170.0, -10.0)
    points = np.concatenate(find_coastlines(low, high))
    fiji = points[((points > (-184, -19)) & (points < (-179, -15))).all(axis=1)]
    assert len(fiji) > 8
    assert fiji[:, 0].min() < -180 < fiji[:, 0].max()


def test_coastlines__are_not_drawn_where_they_would_mislead() -> None:
    assert find_coastlines((5.0, 40.0), (5.0 + MIN_DEGREES, 40.0 + MIN_DEGREES))
    assert not find_coastlines((5.0, 40.0), (5.1 + MIN_DEGREES, 39.9 + MIN_DEGREES))


def test_map__has_coastlines_below_its_points_if_it_is_geographic(example: Findings) -> None:
    (line,) = coast(maps.draw_map(example))
    assert line.get_zorder() < 2, "the points"
    flat = dataclasses.replace(example, is_geographic=False)
    assert not coast(maps.draw_map(flat))
    small = at(example, (12.0, 41.0), (12.5, 41.3))
    assert not coast(maps.draw_map(small))
    for findings, is_said in ((example, True), (flat, False), (small, False)):
        assert ("Natural Earth" in render(findings)) == is_said


def test_map__frames_its_own_region_in_the_right_shape(example: Findings) -> None:
    (ax,) = maps.draw_map(at(example, (165.0, -50.0), (185.0 - 360, -10.0))).axes
    (west, east), (south, north) = ax.get_xlim(), ax.get_ylim()
    assert (west, east) == pytest.approx((-195.6, -174.4))
    assert (south, north) == pytest.approx((-51.2, -8.8))
    assert ax.get_aspect() == pytest.approx(1 / np.cos(np.radians(30)))


def test_map__marks_the_outliers_with_their_ranks_even_outside_of_the_sample(example: Findings) -> None:
    fig = maps.draw_map(at(example, (0.0, 40.0), (10.0, 50.0), outliers=((5.0, 45.0), (30.0, 60.0))))
    assert rings(fig) == [(5.0, 45.0), (30.0, 60.0)]
    assert fig.axes[0].get_xlim()[1] > 30
    said = [text.get_text() for text in fig.axes[0].texts]
    assert said == ["1", "2"]
    unknown = at(example, (0.0, 40.0), (10.0, 50.0))
    assert not maps.draw_map(unknown).axes[0].texts


def test_map__writes_no_rank_on_another(example: Findings) -> None:
    close = tuple((5 + 0.2 * i, 45.0) for i in range(12))
    fig = maps.draw_map(at(example, (0.0, 40.0), (10.0, 50.0), outliers=close))
    figure.to_png(fig)
    boxes = [Text.get_window_extent(text) for text in fig.axes[0].texts]  # without its line
    assert len(boxes) == 12
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
