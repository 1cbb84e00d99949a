"""The page of a benchmark: its markers, and what is written between them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import parts, plans, plots
from benchmarks.page import BEGIN, END, put, spread, table
from benchmarks.spark import increments, join, scaling
from epsjoin.report.figures.figure import WIDTH_IN, measure_line


def test_put__needs_the_markers(tmp_path):
    (tmp_path / "page.md").write_text(f"{BEGIN} no end")
    with pytest.raises(ValueError, match="page.md has no"):
        put(tmp_path / "page.md", "text")


@pytest.mark.parametrize(
    ("page", "markers"),
    [
        (command.DOCS / command.PAGE, (BEGIN, END)),
        (plans.DOCS / plans.PAGE, (BEGIN, END)),
        (parts.DOCS / parts.PAGE, (parts.BEGIN, parts.END)),
        (join.PAGE, (BEGIN, END)),
        (scaling.PAGE, (BEGIN, END)),
        (increments.PAGE, (BEGIN, END)),
    ],
    ids=["bench", "bench-plans", "bench-parts", "bench-spark", "bench-scaling", "bench-increments"],
)
def test_pages__of_the_docs_have_their_markers(page: Path, markers: tuple[str, str]):
    text = page.read_text(encoding="utf-8")
    assert [text.count(marker) for marker in markers] == [1, 1]


def test_put__writes_lines_that_fit_a_screen_but_for_those_of_tables(tmp_path):
    (tmp_path / "page.md").write_text(f"by hand\n\n{BEGIN}\nold\n{END}\n", encoding="utf-8")
    row = f"| {'cell ' * 40}|"
    put(tmp_path / "page.md", f"- {'word ' * 40}\n\n{row}")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert row in text
    assert max(len(line) for line in text.splitlines() if line != row) <= 120
    assert "word\n  word" in text


def test_picture_of_ratios__says_below_its_axis_what_is_drawn(tmp_path):
    plots.write_ratios(tmp_path / "ratios.svg", {"uni2": [1.0, 2.0, 3.0]})
    label = re.compile(r'text-anchor: middle[^>]* x="([0-9.]+)"[^>]*>([a-z][^<]*)</text>')
    drawn = label.findall((tmp_path / "ratios.svg").read_text(encoding="utf-8"))
    assert drawn == label.findall((command.DOCS / command.RATIOS).read_text(encoding="utf-8"))
    ((middle, text),) = drawn
    assert "dot: median; bar: all rounds" in text
    assert float(middle) / 72 + measure_line(text) / 2 < WIDTH_IN, "it would be cut off"


def test_table_and_spread__are_written_for_people():
    assert table(["a", "b"], [["1", "2"]]) == ["| a | b |", "| --- | --- |", "| 1 | 2 |"]
    assert spread([3.0]) == "3.0"
    assert spread([1.0, 40.0, 3.0]) == "3.0 (1.00 – 40)"
