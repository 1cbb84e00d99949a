"""The benchmark of differentials, small: its counts are those of the formulas, its default is exact."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import differ as bench
from benchmarks import differ_blocks
from benchmarks.differ_blocks import figure_8
from benchmarks.differ_window import critical, displaced_files, figure_16, useless


@pytest.mark.long
def test_figure_8__counts_what_the_formulas_say() -> None:
    lines = figure_8([8])
    assert "Verdict: as the formulas, within 2 %." in lines[-2]
    ratios = [float(line.split(" | ")[-1].strip(" |")) for line in lines[4:12]]
    assert all(abs(ratio - 1) <= 0.02 for ratio in ratios)


def test_crossing__lies_between_the_shares_that_were_counted() -> None:
    assert differ_blocks._crossing({0.0: -30, 0.02: -10, 0.03: 10}) == pytest.approx(0.025)


def test_critical__is_the_largest_displacement_that_the_buffer_holds() -> None:
    found = critical(2000, 200)
    assert found.distance == pytest.approx(2 * found.displacement / 2000)
    assert 1.2 < found.displacement / 200 < 2.2
    for share, is_held in ((1.0, True), (1.05, False)):
        files, _ = displaced_files(2000, share * found.asked)
        assert (useless(files, 200) == 0) == is_held


def test_figure_16__has_useless_messages_below_the_need_and_none_with_it() -> None:
    lines = figure_16(200)
    messages = [line.split(" | ")[-1].strip(" |") for line in lines[6:12]]
    assert [each == "0" for each in messages] == [False, False, False, False, True, True]
    assert "with it there are none, below it there are. Our default has 0" in " ".join(lines)


def test_main__writes_its_part_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / bench.PAGE
    page.parent.mkdir()
    page.write_text("# head\n<!-- bench:begin -->\n<!-- bench:end -->\n")
    monkeypatch.setattr(bench, "figure_8", lambda sizes: [f"sizes {sizes}"])
    others = (9, 10, 11, 14, 15, 16)
    for name in (*(f"figure_{number}" for number in others), "figures_17_and_18", "files_on_disk"):
        monkeypatch.setattr(bench, name, lambda *_: [])
    assert bench.main([], tmp_path) == 0
    assert "sizes [256, 1024]" in page.read_text()
