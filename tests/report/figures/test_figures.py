import dataclasses
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from epsjoin.findings import Findings
from epsjoin.report.figures import charts, figure, maps, trends
from epsjoin.report.figures.figure import Plot
from epsjoin.vocabulary import NOISE
from tests.bytecode import BYTECODE
from tests.drawn_once import DrawnOnce
from tests.report.figures.seen import texts

REPOSITORY = Path(__file__).parents[3]
PLOTS = (
    *(maps.draw_map, charts.draw_pair_counts, charts.draw_k_distances),
    *(charts.draw_cluster_sizes, charts.draw_costs, charts.draw_step_times, trends.draw_trends),
)


@pytest.mark.parametrize(
    "plot", [PLOTS[0], *(pytest.param(other, marks=pytest.mark.long) for other in PLOTS[1:])]
)
def test_plots__draw_the_same_bytes_twice(plot: Plot, example: Findings) -> None:
    assert figure.to_svg(plot(example), "x", "y") == figure.to_svg(plot(example), "x", "y")
    assert figure.to_png(plot(example)) == figure.to_png(plot(example))


@pytest.mark.parametrize("plot", PLOTS)
def test_plots__need_nothing_to_be_there(plot: Plot, nothing: Findings) -> None:
    assert "<svg" in figure.to_svg(plot(nothing), "x", "y")
    assert texts(plot(nothing)).strip()  # a note says why


def odd_maps(example: Findings) -> dict[str, Findings]:
    one: dict[str, Any] = {
        "map_points": np.array([[7.5, 47.5]]),
        "map_cluster_ids": np.array([NOISE]),
    }
    equal: dict[str, Any] = {"map_points": np.full_like(example.map_points, 3.0)}
    return {
        "one point": dataclasses.replace(example, **one),
        "one point, flat": dataclasses.replace(example, **one, is_geographic=False, map_axes=("f0", "f1")),
        "equal points": dataclasses.replace(example, **equal, is_geographic=False),
        "one coordinate": dataclasses.replace(
            example, map_points=example.map_points * (1, 0), is_geographic=False, map_axes=("f0", "")
        ),
        "the poles": dataclasses.replace(
            example, map_points=np.sign(example.map_points - example.map_points.mean(0)) * (180, 90)
        ),
        "huge numbers": dataclasses.replace(
            example, map_points=example.map_points * 1e300, is_geographic=False
        ),
    }


def odd_numbers(example: Findings) -> dict[str, Findings]:
    return {
        "no pairs": dataclasses.replace(
            example,
            n_pairs=0,
            curve_pairs=0 * example.curve_pairs,
            epsilon={"eps": 1.0, "expected_pairs": 0.0},
        ),
        "no fit": dataclasses.replace(
            example,
            epsilon={"eps": 1.0, "note": "too few pairs"},
            curve_in_fit=np.zeros(len(example.curve_in_fit), bool),
        ),
        "one radius": dataclasses.replace(
            example,
            curve_radius=example.curve_radius[:1],
            curve_pairs=example.curve_pairs[:1],
            curve_in_fit=np.ones(1, bool),
        ),
        "nothing measured": dataclasses.replace(example, n_replicas=None, n_candidates=None, n_pairs=0),
        "no k-distance": dataclasses.replace(
            example, k_distance=example.k_distance * 0, k_distance_fraction=example.k_distance_fraction * 0
        ),
        "one k-distance": dataclasses.replace(example, k_distance=example.k_distance * 0 + 3),
        "runs that know nothing": dataclasses.replace(
            example, trends=[{"run": f"2023-0{month}-01"} for month in range(1, 9)]
        ),
        "no time": dataclasses.replace(example, counters={"ingest": {}}, seconds_before={}),
        "huge and tiny": dataclasses.replace(
            example,
            trends=[
                {"run": "2022-01-01", "points": 10**15, "eps": 1e-12, "seconds": None},
                {"run": "2023-01-01", "points": 1, "eps": 1e12, "seconds": 0.0},
            ],
        ),
        "one huge cluster": dataclasses.replace(
            example, cluster_sizes=np.array([10**12]), cluster_size_counts=np.array([1])
        ),
    }


@pytest.mark.filterwarnings("error")
def test_plots__draw_degenerate_findings_without_a_warning(example: Findings) -> None:
    cases = [(maps.draw_map, name, findings) for name, findings in odd_maps(example).items()]
    cases += [(plot, name, findings) for plot in PLOTS[1:] for name, findings in odd_numbers(example).items()]
    once, written = DrawnOnce(), set[Figure]()
    for plot, name, findings in cases:
        try:
            fig = once.of(plot)(findings)  # few plots show what is odd
            if fig not in written:
                figure.to_svg(fig, "x", "y")
            written.add(fig)
        except Exception as error:
            raise AssertionError(f"{plot.__name__} of {name}: {error!r}") from error


def test_draw_pair_counts__says_eps_and_exponent_and_pairs(example: Findings) -> None:
    said = texts(charts.draw_pair_counts(example))
    assert "ε = 2.2134 km\nexpected 4,180 pairs\nfound 4,321" in said
    assert "P = 1.43\n95 %: 1.40 to 1.46" in said


def test_draw_pair_counts__lays_the_line_through_the_fitted_points(example: Findings) -> None:
    line = charts.draw_pair_counts(example).axes[0].lines[0]
    fitted = example.curve_in_fit
    expected = example.curve_pairs[fitted][[0, -1]]
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), expected, rtol=1e-9)


def test_draw_pair_counts__dashes_the_line_to_an_eps_outside_the_fit(example: Findings) -> None:
    inside = charts.draw_pair_counts(example).axes[0].lines
    far = dataclasses.replace(example, epsilon={**example.epsilon, "eps": 0.2})
    outside = charts.draw_pair_counts(far).axes[0].lines
    assert len(outside) == len(inside) + 1
    np.testing.assert_allclose(
        np.asarray(outside[1].get_xdata(), float), [example.curve_radius[fitted_start(example)], 0.2]
    )


def fitted_start(findings: Findings) -> int:
    return int(np.flatnonzero(findings.curve_in_fit)[0])


def test_draw_pair_counts__says_why_there_is_no_fit(example: Findings) -> None:
    none = dataclasses.replace(example, epsilon={"eps": 1.0, "note": "too few pairs"})
    assert "too few pairs" in texts(charts.draw_pair_counts(none))
    bare = dataclasses.replace(none, curve_pairs=0 * none.curve_pairs)
    assert "too few pairs" in texts(charts.draw_pair_counts(bare))
    assert not charts.draw_pair_counts(bare).axes[0].lines  # a note, not an empty frame


@pytest.mark.parametrize(("eps", "side", "end"), [(2.2134, "left", "bottom"), (300.0, "right", "top")])
def test_draw_pair_counts__writes_on_the_side_that_has_room(
    example: Findings, eps: float, side: str, end: str
) -> None:
    fig = charts.draw_pair_counts(dataclasses.replace(example, epsilon={**example.epsilon, "eps": eps}))
    (written,) = (text for text in fig.axes[0].texts if "P = 1.43" in text.get_text())
    assert (written.get_ha(), written.get_va()) == (side, end)
    fig.draw_without_rendering()
    box = written.get_window_extent()
    assert fig.bbox.x0 <= box.x0
    assert box.x1 <= fig.bbox.x1


def test_draw_k_distances__is_one_line_of_all_points_across_eps(example: Findings) -> None:
    fig = charts.draw_k_distances(example)
    counted, at_eps = fig.axes[0].lines
    np.testing.assert_allclose(np.asarray(counted.get_xdata(), float), [10, 20, 37.4, 60, 100])
    np.testing.assert_allclose(np.asarray(counted.get_ydata(), float), [0.5, 1, 2.2134, 4, 9])
    assert np.asarray(at_eps.get_ydata(), float).tolist() == [2.2134, 2.2134]
    assert "distance to neighbour 4, km" in texts(fig)


def test_draw_step_times__shows_now_and_before(example: Findings) -> None:
    fig = charts.draw_step_times(example)
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == [
        "ingest",
        "merge_join",
        "cluster",
    ]
    assert [bar.get_width() for bar in fig.axes[0].patches] == [192.3, 2.74, 0.4]
    rings = [float(np.asarray(line.get_xdata(), float)[0]) for line in fig.axes[0].lines]
    assert rings == [180.0, 0.5], "merge_join had no time before"
    of_steps = {"3 min 12 s, before 3 min 0 s", "2.7 s", "0.4 s, before 0.5 s"}
    assert of_steps <= set(texts(fig).splitlines()), "the number beside a ring says which of the two it is"


def test_draw_step_times__tells_the_start_from_the_parts_of_the_step(divided: Findings) -> None:
    """Between start and commit the bar is divided as driver and tasks were busy, however many they are."""
    fig = charts.draw_step_times(divided)
    bars = [
        (round(bar.get_x(), 9), round(bar.get_width(), 9), to_hex(bar.get_facecolor()))
        for bar in fig.axes[0].patches
    ]
    colours_of = charts.PHASE_COLOURS
    assert bars[:6] == [
        (0.0, 5.0, colours_of["start"]),
        (5.0, 2.0, colours_of["read"]),
        (7.0, 6.0, colours_of["work"]),
        (13.0, 2.0, colours_of["write"]),
        (15.0, 1.0, colours_of["commit"]),
        (0.0, 2.74, figure.OTHER),
    ]
    said = texts(fig).splitlines()
    assert "16 s, start 5 s, before 3 min 0 s" in said
    assert {"not divided", *colours_of} <= set(said)
    assert "not divided" not in texts(
        charts.draw_step_times(dataclasses.replace(divided, counters={"ingest": divided.counters["ingest"]}))
    )


def test_draw_costs__has_room_for_large_numbers(example: Findings) -> None:
    plan = {**example.plan, "expected_candidates": 123_456_789_012_345.0}
    fig = charts.draw_costs(dataclasses.replace(example, plan=plan, n_candidates=234_567_890_123_456))
    fig.draw_without_rendering()
    ends = [super(type(text), text).get_window_extent().x1 for text in fig.axes[0].texts]
    assert 0.5 * fig.bbox.width < max(ends) <= fig.bbox.width


def test_draw_step_times__has_room_for_what_it_says(divided: Findings) -> None:
    """The longest text stands behind the longest bar or beside a short one."""
    for seconds in (16.0, 1600.0):
        counters = {**divided.counters, "ingest": {**divided.counters["ingest"], "seconds": seconds}}
        fig = charts.draw_step_times(dataclasses.replace(divided, counters=counters))
        fig.draw_without_rendering()
        ends = [text.get_window_extent().x1 for text in fig.axes[0].texts]
        assert 0.5 * fig.bbox.width < max(ends) <= fig.bbox.width


def test_draw_trends__draw_every_number_that_is_known(example: Findings) -> None:
    fig = trends.draw_trends(example)
    said = {ax.get_title(loc="left"): ax.get_title(loc="right") for ax in fig.axes}
    assert said == {
        **{"points": "737", "pairs": "4,321", "ε (km)": "2.2134", "clusters": "10", "noise": "400"},
        **{"records refused": "3", "broken rules: errors": "0", "seconds": "195.4"},
        **{"clusters born": "1", "clusters ended": "1"},
    }
    pairs = np.asarray(fig.axes[1].lines[0].get_ydata(), float)
    np.testing.assert_array_equal(pairs, [np.nan, 4000, 4321])
    days = np.asarray(fig.axes[1].lines[0].get_xdata(), float)
    assert np.diff(days).tolist() == [30, 31], "by date, not by number"
    few = [{"run": row["run"], "points": row["points"]} for row in example.trends]
    assert len(trends.draw_trends(dataclasses.replace(example, trends=few)).axes) == 1


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [
        (11_020, 11_021, ["11,020", "11,021"]),
        (6686, 6686, ["6,686"]),
        (52.51, 52.53, ["52.51", "52.53"]),
        (0.123451, 0.123456, ["0.12345", "0.12346"]),
        (1e12, 2e12, ["10¹²", "2×10¹²"]),
    ],
)
def test_draw_trends__write_the_ends_so_that_they_differ(
    example: Findings, low: float, high: float, ends: list[str]
) -> None:
    rows = [{"run": "2023-01-01", "eps": low}, {"run": "2023-02-01", "eps": high}]
    fig = trends.draw_trends(dataclasses.replace(example, trends=rows))
    found = [label.get_text().replace("1×10", "10") for label in fig.axes[0].get_yticklabels()]
    assert found == ends


def test_draw_cluster_sizes__counts_every_cluster_and_every_point_once(example: Findings) -> None:
    said = texts(charts.draw_cluster_sizes(example))
    found = re.findall(r"(\d+) clusters?, (\d+) points", said)
    assert sum(int(clusters) for clusters, _ in found) == example.n_clusters
    assert sum(int(points) for _, points in found) == example.n_core + example.n_border
    assert "4 clusters, 30 points" in said  # 9, 8, 7 and 6 points: the class 5-9
    assert "100–199" in said


def test_draw_cluster_sizes__begins_a_class_at_its_first_size(example: Findings) -> None:
    edges = dataclasses.replace(
        example, cluster_sizes=np.array([5, 9, 10]), cluster_size_counts=np.array([1, 2, 3])
    )
    said = texts(charts.draw_cluster_sizes(edges))
    assert "3 clusters, 23 points\n3 clusters, 30 points" in said
    # each name stands twice, as tick left and right
    assert re.findall(r"\d+–\d+", said)[::2] == ["5–9", "10–19"]


def test_draw_costs__shows_expected_and_measured(example: Findings) -> None:
    said = texts(charts.draw_costs(example))
    assert "replicas: expected 761, measured 755 (−0.8 %)" in said
    assert "candidates: expected 9,800, measured 10,412 (+6.2 %)" in said
    assert "pairs: expected 4,180, measured 4,321 (+3.4 %)" in said


def test_to_png__is_an_image_of_the_promised_width(example: Findings, nothing: Findings) -> None:
    for findings in (example, nothing):
        for plot in PLOTS:
            png = figure.to_png(plot(findings))
            assert png.startswith(b"\x89PNG\r\n\x1a\n")
            width, height = struct.unpack(">II", png[16:24])
            assert width == figure.PNG_WIDTH
            assert 150 < height < 2000, "the trends have five rows of panels"


def test_to_svg__leaves_the_neutral_colours_to_the_page(example: Findings) -> None:
    for plot in PLOTS:
        svg = figure.to_svg(plot(example), "x", "y")
        assert not [colour for colour in figure.NEUTRALS if colour in svg]
        assert "var(--ink)" in svg


def test_to_svg__keeps_the_ids_of_two_figures_apart(example: Findings) -> None:
    ids = [
        set(re.findall(r'\bid="([^"]+)"', figure.to_svg(charts.draw_costs(example), name, "y")))
        for name in ("a", "b")
    ]
    assert ids[0]
    assert not ids[0] & ids[1]
    svg = figure.to_svg(charts.draw_costs(example), "a", "y")
    used = set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))
    assert used <= ids[0]


def test_plots__leave_pyplot_alone() -> None:
    code = "import sys, epsjoin.report.page; sys.exit('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**BYTECODE, "PYTHONPATH": "jobs"}, cwd=REPOSITORY, check=False
    )
    assert done.returncode == 0
