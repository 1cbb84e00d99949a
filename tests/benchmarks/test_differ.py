"""The benchmark of differentials, small: its counts are those of the formulas, its default is exact."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import differ as bench


def test_figure_8__counts_what_the_formulas_say() -> None:
    lines = bench.figure_8([8])
    assert len(lines) == 12
    assert all("| as the formula |" in line for line in lines[4:])


def test_critical__is_the_largest_displacement_that_the_buffer_holds() -> None:
    apart, mean = bench.critical(2000, 200)
    assert apart == pytest.approx(2 * mean / 2000)
    assert 1.2 < mean / 200 < 2.2


def test_cliff__has_useless_messages_below_the_need_and_none_with_it() -> None:
    rows = [line.split(" | ") for line in bench._cliff(2000)[5:]]
    assert all(row[3].strip(" |") == "0" for row in rows)
    assert [row[2] == "0" for row in rows] == [False, False, False, True, True]


def test_main__writes_its_part_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / bench.PAGE
    page.parent.mkdir()
    page.write_text("# head\n<!-- bench:begin -->\n<!-- bench:end -->\n")
    monkeypatch.setattr(bench, "figure_8", lambda sizes: [f"sizes {sizes}"])
    for name in ("figures_9_to_11", "figures_14_to_16", "figures_17_and_18", "files_on_disk"):
        monkeypatch.setattr(bench, name, lambda *_: [])
    assert bench.main([], tmp_path) == 0
    assert "sizes [256, 1024]" in page.read_text()
