"""The page as a browser lays it out, on a phone and on a desk."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from html import escape, unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from draw_report import browse, find_browser, take_screenshot
from epsjoin.findings import ABSENT, OTHERS, Comparison, Findings
from epsjoin.report import page
from epsjoin.vocabulary import NOISE

WIDTHS = (390, 1200, 1280)
PAPER = 688
"""CSS pixels of a line on A4 between the page's margins."""
LOOK = """
<script>
onload = () => {
  const found = [...document.querySelectorAll("iframe")].map(frame => {
    const root = frame.contentDocument.documentElement;
    const loaded = frame.contentWindow.performance.getEntriesByType("resource").map(entry => entry.name);
    const svgs = [...frame.contentDocument.querySelectorAll("figure svg")];
    const ends = selector => [...frame.contentDocument.querySelectorAll(selector)]
      .map(element => element.getBoundingClientRect().right);
    const styleOf = frame.contentWindow.getComputedStyle;
    const scale = matrix => Math.hypot(matrix.c, matrix.d);  // also of text that runs upwards
    const size = text => parseFloat(styleOf(text).fontSize) * scale(text.getScreenCTM());
    const letters = svgs.flatMap(svg => [...svg.querySelectorAll("text")]).map(size);
    return {name: frame.name, shown: frame.contentWindow.innerWidth, needed: root.scrollWidth,
      loaded: loaded.filter(name => !name.startsWith("data:")), smallest: Math.min(...letters),
      pictures: Math.max(...ends("figure svg")), records: Math.max(0, ...ends("td.record"))};
  });
  document.body.textContent = "FOUND" + JSON.stringify(found) + "END";
};
</script>
"""

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine to lay the page out")


def odd_runs(mapless: Findings) -> dict[str, Findings]:
    """Runs whose pages might not fit; without a map, which takes most of a page's time."""
    long, dimensions = "Llanfairpwllgwyngyll" * 30, tuple(f"dimension_{i}" for i in range(64))
    words = "a name of many words " * 20
    texts: dict[str, Any] = {"title": long, "dataset": long, "metric": long, "unit": long[:40]}
    flat: dict[str, Any] = {"map_points": np.zeros((9, 2)), "map_cluster_ids": np.arange(9)}
    return {
        "no clusters, no outliers, no pairs": dataclasses.replace(
            mapless,
            n_pairs=0,
            n_clusters=0,
            largest_clusters=[],
            outliers=[],
            epsilon={"eps": 1.0, "note": long},
        ),
        "long names": dataclasses.replace(
            mapless,
            **texts,
            largest_clusters=[{**row, "label": long, "dimensions": long} for row in mapless.largest_clusters],
            outliers=[{**row, "name": words, long: long, "dimensions": long} for row in mapless.outliers],
            snapshots=[{**row, "source": long} for row in mapless.snapshots],
            unknown_columns=(long, words),
            quarantine_examples=[{**row, "raw": long} for row in mapless.quarantine_examples],
            counters={**mapless.counters, long[:80]: {long: 1.0}},
            params={**mapless.params, long: long},
        ),
        "records": dataclasses.replace(
            mapless,
            outliers=[
                {
                    **mapless.outliers[0],
                    "label": "Lebel-sur-Quevillon, on the airfield",
                    "dimensions": "longitude_deg -0.7, latitude_deg +0.7",
                    "columns": {f"column_{i}": f"value of column {i}" for i in range(16)},
                    "nearest": [{"id": 1, "key": ["PDR"], "label": "Pabok (Du Rocher)", "distance": 100 / 3}]
                    * 3,
                }
            ],
        ),
        "names of clusters": dataclasses.replace(mapless, comparison=crowded(mapless, long)),
        "calm": dataclasses.replace(mapless, comparison=calm(mapless)),
        "one dimension": dataclasses.replace(
            mapless,
            coordinates=("x",),
            is_geographic=False,
            map_axes=("x", ""),
            **flat,
        ),
        "64 dimensions": dataclasses.replace(
            mapless,
            coordinates=dimensions,
            is_geographic=False,
            outliers=[{**row, **dict.fromkeys(dimensions, np.pi)} for row in mapless.outliers],
            largest_clusters=[{**row, "centre": [np.pi] * 64} for row in mapless.largest_clusters],
        ),
    }


def crowded(findings: Findings, name: str) -> Comparison:
    """Twenty clusters with long names and large numbers, which all exchange records."""
    assert findings.comparison is not None
    ends = [*range(20), NOISE, ABSENT, OTHERS]
    flows = [
        {"before": before, "now": now, "members": 10 ** (2 + (i + j) % 9)}
        for i, before in enumerate(ends)
        for j, now in enumerate(ends)
        if {before, now} & set(range(20))
    ]
    rng = np.random.default_rng(0)
    return dataclasses.replace(
        findings.comparison,
        **{"inserted": 10**7, "deleted": 10**7, "moved": 10**7, "updated": 10**8},
        came=rng.normal(0, 30, (700, 2)),
        went=rng.normal(0, 30, (700, 2)),
        moves=rng.normal(0, 30, (600, 4)),
        flows=flows,
        lives=[
            {"run": run, "name": i, "size": 10 ** (i % 9 + 1)}
            for i in range(20)
            for run in findings.comparison.runs
        ],
        labels=dict.fromkeys(range(20), name),
        events=findings.comparison.events * 5,
        marks=[{"run": run, "event": "split", "name": 3} for run in findings.comparison.runs],
    )


def calm(findings: Findings) -> Comparison:
    """Nothing has come, gone, moved or happened."""
    assert findings.comparison is not None
    none: dict[str, Any] = {"came": np.empty((0, 2)), "went": np.empty((0, 2)), "moves": np.empty((0, 4))}
    none |= dict.fromkeys(("inserted", "updated", "deleted", "moved"), 0)
    return dataclasses.replace(findings.comparison, **none, events=[], n_events={}, marks=[])


@pytest.fixture(scope="module")
def laid_out(
    html: str, mapless: Findings, nothing: Findings, tmp_path_factory: pytest.TempPathFactory
) -> list[Mapping[str, Any]]:
    """What a browser says of every page at every width; to the page in it, a frame is a window."""
    runs = {"nothing": nothing, **odd_runs(mapless)}
    pages = {"example": html, **{name: page.render(run) for name, run in runs.items()}}
    shown = [(name, width, text) for name, text in pages.items() for width in WIDTHS]
    for name, text in pages.items():
        assert text.count("@media print") == 1
        shown.append((f"{name}, printed", PAPER, text.replace("@media print", "@media all")))
    frames = [
        f'<iframe name="{name}" width="{width}" height="900" srcdoc="{escape(text)}"></iframe>'
        for name, width, text in shown
    ]
    host = tmp_path_factory.mktemp("browser") / "host.html"
    style = '<meta charset="utf-8"><style>iframe { border: 0 }</style>'
    host.write_text(f"<!doctype html>{style}<body>{''.join(frames)}{LOOK}", encoding="utf-8")
    said = browse(str(BROWSER), host, "--dump-dom", "--window-size=1400,900")
    found = re.search("FOUND(.*)END", said)
    assert found, said[-500:]
    return list(json.loads(unescape(found[1])))


def test_page__is_never_wider_than_its_window_or_paper(laid_out: list[Mapping[str, Any]]) -> None:
    assert {frame["shown"] for frame in laid_out} == {*WIDTHS, PAPER}
    too_wide = [frame for frame in laid_out if frame["needed"] > frame["shown"]]
    assert too_wide == []


def test_page__loads_nothing(laid_out: list[Mapping[str, Any]]) -> None:
    assert [frame["loaded"] for frame in laid_out] == [[]] * len(laid_out)


def test_page__has_no_letters_too_small_for_a_phone(laid_out: list[Mapping[str, Any]]) -> None:
    """A line of 9 CSS pixels is the small print on a package."""
    small = {frame["name"]: frame["smallest"] for frame in laid_out if frame["smallest"] < 9}
    assert {name for name in small if not name.endswith("printed")} == set()


def test_pictures__are_whole_on_a_phone(laid_out: list[Mapping[str, Any]]) -> None:
    assert [frame["name"] for frame in laid_out if frame["pictures"] > frame["shown"]] == []


def test_records_of_outliers__are_in_sight_on_a_desk(laid_out: list[Mapping[str, Any]]) -> None:
    on_desk = [frame for frame in laid_out if frame["name"] == "records" and frame["shown"] >= 1200]
    assert len(on_desk) == 2
    assert all(0 < frame["records"] <= frame["shown"] for frame in on_desk)


@pytest.mark.parametrize("is_dark", [False, True])
def test_tables__have_a_shade_where_more_can_be_scrolled(tmp_path: Path, is_dark: bool) -> None:
    """Phones show no scroll bar. What fits has no shade."""
    style = (Path(page.__file__).parent / "run.css").read_text(encoding="utf-8")
    cell = '<div style="width: {}px; height: 90px"></div>'
    boxes = "".join(f'<div class="wide">{cell.format(width)}</div>' for width in (900, 100))
    file, picture = tmp_path / "page.html", tmp_path / "page.png"
    file.write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{boxes}", encoding="utf-8")
    take_screenshot(str(BROWSER), file, picture, 390, 300, is_dark=is_dark)
    with Image.open(picture) as image:
        shades = np.asarray(image.convert("L")).astype(int)
    paper, right = shades[0, 0], 390 - 13  # the body's padding is 12
    is_marked = np.abs(shades[:, right] - paper) > 25
    assert 80 <= is_marked.sum() <= 100, "the first box, not the second"
    assert np.abs(shades[:, 12:300] - paper).max() <= 3, "and not at the left, where it begins"


@pytest.mark.parametrize(("is_dark", "least", "most"), [(False, 200, 255), (True, 0, 60)])
def test_page__is_light_or_dark_as_its_reader_is(
    html: str, tmp_path: Path, is_dark: bool, least: int, most: int
) -> None:
    """Background and every picture: one that stayed white would glare."""
    file, picture = tmp_path / "report.html", tmp_path / "report.png"
    file.write_text(html, encoding="utf-8")
    take_screenshot(str(BROWSER), file, picture, 390, 6000, is_dark=is_dark)
    with Image.open(picture) as image:
        shades = np.asarray(image.convert("L"))
    assert least <= np.median(shades) <= most
    of_rows = np.median(shades, axis=1)
    assert np.mean((of_rows >= least) & (of_rows <= most)) > 0.9


@pytest.mark.parametrize(("theme", "least", "most"), [("light", 200, 255), ("dark", 0, 60)])
def test_page__has_the_theme_that_it_is_given_whatever_its_reader_has(
    mapless: Findings, tmp_path: Path, theme: str, least: int, most: int
) -> None:
    file, picture = tmp_path / "report.html", tmp_path / "report.png"
    text = page.render(mapless).replace("<html ", f'<html data-theme="{theme}" ', 1)
    file.write_text(text, encoding="utf-8")
    take_screenshot(str(BROWSER), file, picture, 390, 3000, is_dark=theme == "light")
    with Image.open(picture) as image:
        assert least <= np.median(np.asarray(image.convert("L"))) <= most


def test_page__can_be_printed(html: str, tmp_path: Path) -> None:
    file, paper = tmp_path / "report.html", tmp_path / "report.pdf"
    file.write_text(html, encoding="utf-8")
    browse(str(BROWSER), file, f"--print-to-pdf={paper}")
    content = paper.read_bytes()
    assert content.startswith(b"%PDF-")
    assert 2 <= len(re.findall(rb"/Type /Page\b", content)) <= 12
