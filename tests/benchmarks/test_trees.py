"""The benchmark of trees, on few of them."""

from __future__ import annotations

import re

import pytest

from benchmarks.trees import FILTERS, functions, main


@pytest.mark.long
def test_main__prints_every_figure_of_some_functions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--trees", "150", "--pairs", "2"]) == 0
    printed = capsys.readouterr().out
    titles = re.findall(r"^### (.*)$", printed, re.MULTILINE)
    assert [title.partition(":")[0] for title in titles] == [
        *("Figure 9", "Figure 10", "Figure 11"),
        *("Comparing a pair", "Strings"),
    ]
    through = {
        name: int(cell.replace(",", ""))
        for name, cell in re.findall(r"^\| ([a-z][^|]*) \| ([\d,]+) \| [\d.]+ \|$", printed, re.MULTILINE)
    }
    assert [name for name in through if name in FILTERS] == list(FILTERS)
    assert through["height, degree, label (the paper's)"] <= through["height, label"] <= through["label"]
    assert through["sum of height and label (ours)"] <= through["height, degree, label (the paper's)"]


def test_functions__are_of_eight_to_eighty_nodes_and_hold_their_names() -> None:
    trees = functions(50)
    assert len(trees) == 50
    assert 8 <= trees.n_nodes.min() <= trees.n_nodes.max() <= 80
    assert any("FunctionDef '" in trees.text(node) for node in range(len(trees.size)))
