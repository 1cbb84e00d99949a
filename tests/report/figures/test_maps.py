"""Maps: colours, names, degrees and legend, wherever the points lie."""

import dataclasses
import warnings
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from epsjoin.findings import Findings
from epsjoin.report.figures import base_map, charts, figure, maps
from tests.report.figures.seen import texts


def colours(fig: Figure) -> list[tuple[int, str]]:
    """Number of marks and colour of every scatter, in drawing order."""
    scatters = [artist for artist in fig.axes[0].collections if isinstance(artist, PathCollection)]
    return [(len(np.asarray(s.get_offsets())), to_hex(np.asarray(s.get_facecolor())[0])) for s in scatters]


def test_draw_map__colours_the_eight_largest_and_greys_the_rest(example: Findings) -> None:
    drawn = colours(maps.draw_map(example))
    sizes = [row["size"] for row in example.largest_clusters]
    assert drawn == [
        (example.n_noise, figure.NOISE_COLOUR),
        (sum(sizes[8:]), figure.OTHER),
        *zip(sizes[:8], figure.COLOURS, strict=True),
    ]


def test_draw_map__names_the_eight_largest_with_their_size(example: Findings) -> None:
    said = texts(maps.draw_map(example))
    for row in example.largest_clusters[:8]:
        assert f"{row['label']} ({row['size']})" in said
    assert "Place 8" not in said


def test_draw_map__calls_a_cluster_by_the_name_that_it_keeps(example: Findings) -> None:
    first, *others = example.largest_clusters
    kept = dataclasses.replace(example, largest_clusters=[{**first, "called": "Old harbour"}, *others])
    said = texts(maps.draw_map(kept))
    assert f"Old harbour ({first['size']})" in said
    assert f"{first['label']} ({first['size']})" not in said
    assert f"{others[0]['label']} ({others[0]['size']})" in said


def test_draw_map__writes_names_apart(example: Findings) -> None:
    # Eight clusters in one place: the hardest case for names.
    together = dataclasses.replace(example, map_points=example.map_points % 1e-3)
    fig = maps.draw_map(together)
    fig.draw_without_rendering()
    notes = [text for text in fig.axes[0].texts if text.get_gid() == "label"]
    boxes = [text.get_bbox_patch() or super(type(text), text).get_window_extent() for text in notes]
    assert len(boxes) == 8
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            assert not one.overlaps(other)


def test_draw_map__names_what_has_no_label_by_its_id(example: Findings) -> None:
    plain = dataclasses.replace(example, largest_clusters=[{"cluster_id": 1000, "size": 60}])
    assert "cluster 1000 (60)" in texts(maps.draw_map(plain))


def test_draw_map__reads_no_name_as_a_formula(example: Findings) -> None:
    row = {**example.largest_clusters[0], "label": "$\\frac$ \x00"}
    assert "$\\frac$  " in figure.to_svg(
        maps.draw_map(dataclasses.replace(example, largest_clusters=[row])), "x", "y"
    )


def test_draw_map__warns_of_no_character_that_its_font_lacks(example: Findings) -> None:
    row = {**example.largest_clusters[0], "label": "\N{SLICE OF PIZZA} 日本"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fig = maps.draw_map(dataclasses.replace(example, largest_clusters=[row]))
        assert row["label"] in figure.to_svg(fig, "x", "y"), "the reader's fonts may have it"
        figure.to_png(fig)
        assert figure.measure_line(row["label"]) > 0


def test_draw_map__keeps_what_lies_across_180_degrees_together(example: Findings) -> None:
    moved = np.column_stack([np.linspace(-190, -150, len(example.map_points)), example.map_points[:, 1]])
    moved[moved[:, 0] < -180, 0] += 360
    fig = maps.draw_map(dataclasses.replace(example, map_points=moved))
    west, east = fig.axes[0].get_xlim()
    assert east - west < 45
    assert "170° E" in texts(fig)
    assert "160° W" in texts(fig)


def test_draw_map__is_true_to_scale_at_its_latitude(example: Findings) -> None:
    fig = maps.draw_map(example)
    south, north = fig.axes[0].get_ylim()
    assert fig.axes[0].get_aspect() == pytest.approx(1 / np.cos(np.radians((south + north) / 2)))


EXTENTS = {
    "the world": ((-180.0, -90.0), (180.0, 90.0)),
    "Germany": ((5.8, 47.2), (15.1, 55.1)),
    "Portugal": ((-9.6, 36.9), (-6.1, 42.2)),
    "Chile": ((-75.7, -55.9), (-66.9, -17.5)),
    "across 180": ((179.5, -20.0), (180.3, -10.0)),
    "a block of houses": ((11.5, 48.1), (11.5008, 48.1008)),
    "a garden": ((11.5, 48.1), (11.50004, 48.10004)),
}


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize(
    "labels",
    [
        ["noise", "other clusters", "largest clusters", "outliers"],
        ["1,234,567 only in some_data_of_yours"] * 3,
    ],
)
def test_new_map__has_legend_and_degrees_within_the_picture_and_apart(
    nothing: Findings, extent: str, labels: list[str]
) -> None:
    @figure.use_style
    def draw(_: Findings) -> Figure:
        fig, ax = base_map.new_map(("lon", "lat"), True, *EXTENTS[extent])
        base_map.put_legend(ax, [Line2D([], [], marker="o", label=label) for label in labels], 4)
        fig.canvas.draw()
        return fig

    fig = draw(nothing)
    (ax,) = fig.axes
    legend = ax.get_legend().get_window_extent()
    assert 0 <= legend.x0 < legend.x1 <= fig.bbox.width
    assert ax.get_window_extent().y1 <= legend.y0 < legend.y1 <= fig.bbox.height
    assert {text.get_fontsize() for text in ax.get_legend().get_texts()} == {figure.FONT_SIZE}
    degrees = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert 1 <= len(degrees) <= 8
    assert all(left.x1 < right.x0 for left, right in pairwise(degrees))
    assert 1 <= len(ax.get_yticklabels()) <= 8


def test_draw_map__of_the_largest_numbers_is_drawn(example: Findings) -> None:
    """As files of geographic systems have them for no data."""
    points = np.array([[0.0, 0.0], [1.0, 2.0], [-1.7976931348623157e308, 1.7976931348623157e308]])
    plain = dataclasses.replace(
        example,
        **{"is_geographic": False, "outliers": [], "map_points": points, "largest_clusters": []},
        map_cluster_ids=np.full(3, -1),
        k_distance=np.array([1.0, 1.7e308]),
        k_distance_fraction=np.array([0.5, 1.0]),
    )
    for drawn in (maps.draw_map(plain), charts.draw_k_distances(plain)):
        assert len(figure.to_png(drawn)) > 1000


def test_draw_map__becomes_a_picture_where_points_are_many(example: Findings) -> None:
    times = maps.MAX_MARKS // example.n_points + 1
    many = dataclasses.replace(
        example,
        map_points=np.tile(example.map_points, (times, 1)),
        map_cluster_ids=np.tile(example.map_cluster_ids, times),
    )
    assert "<image" not in figure.to_svg(maps.draw_map(example), "x", "y")
    assert figure.to_svg(maps.draw_map(many), "x", "y").count("<image") == 1


@pytest.mark.parametrize("is_geographic", [True, False])
def test_draw_map__of_one_point_far_from_all_others_shows_the_others(
    example: Findings, is_geographic: bool
) -> None:
    """A place of 0, 0 stands for none in many files."""
    near = np.column_stack([example.map_points % 2 + (11.0, 47.0)])
    points = np.concatenate([near, [[0.0, 0.0]]])
    outlier = {**example.outliers[0], "rank": 1, "columns": dict.fromkeys(example.map_axes, 0.0)}
    far = dataclasses.replace(
        example,
        is_geographic=is_geographic,
        map_points=points,
        map_cluster_ids=np.append(example.map_cluster_ids, -1),
        outliers=[outlier],
    )
    fig = maps.draw_map(far)
    (west, east), (south, north) = fig.axes[0].get_xlim(), fig.axes[0].get_ylim()
    assert 10.5 < west < near[:, 0].min() < near[:, 0].max() < east < 13.5
    assert 46.5 < south < north < 49.5
    legend = fig.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][-1] == "1 far away, not on this map"
    assert "1" in texts(fig), "its rank, at the edge"
    half = np.where(np.arange(len(points))[:, None] % 2, points, 0.0)
    everywhere = maps.draw_map(dataclasses.replace(far, map_points=half))
    assert everywhere.axes[0].get_xlim()[0] <= 0.0, "half of the points are not far from most"


def test_draw_map__writes_ranks_apart_from_one_another(example: Findings) -> None:
    """So that 13 and 4 are not 134."""
    columns = [dict.fromkeys(example.map_axes, 0.01 * i) for i in range(12)]
    rows = [{**example.outliers[0], "rank": i + 1, "columns": each} for i, each in enumerate(columns)]
    fig = maps.draw_map(dataclasses.replace(example, outliers=rows, largest_clusters=[]))
    fig.draw_without_rendering()
    boxes = [super(type(text), text).get_window_extent() for text in fig.axes[0].texts]
    assert len(boxes) == 12
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            gap = max(one.x0 - other.x1, other.x0 - one.x1, one.y0 - other.y1, other.y0 - one.y1)
            assert gap > 0.5
