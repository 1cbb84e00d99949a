"""The bench of reading a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import measure
from benchmarks.spark import around, ingest


@pytest.mark.parametrize("name", ingest.KINDS)
def test_ingest_bench__readers_take_all_rows_and_the_job_is_counted_beyond_its_start(
    name: str, tmp_path: Path, capsys
) -> None:
    submitted: list[list[str]] = []

    def call(function, *arguments):
        if function is not around.cost_of:
            return function(*arguments) if function is not ingest.peak_of else 3_000_000
        submitted.append(arguments[0])
        cpu = 5.0 + len(submitted) if "large" in arguments[0][-1] else 5.0  # the large file comes first
        return around.Cost(2.0, cpu, 4_000_000, "what was counted")

    assert ingest.main(["--only", name, "--rows", "2000", "--rounds", "2"], call) == 0
    printed = capsys.readouterr().out
    assert len(submitted) == 4
    assert "**2000 (1000 – 3000) µs of CPU a row**: the median of 2 rounds" in printed, "1 s and 3 s beyond"
    assert re.findall(r"^\| (\w+) \| [\d.]+ \| 3 \|", printed, re.MULTILINE) == list(ingest.READERS)


@pytest.mark.parametrize(("goal", "said"), [(3.0, "met"), (2.9, "**missed**"), (None, None)])
def test_ingest_bench__tells_whether_the_goal_is_met(goal: float | None, said: str | None) -> None:
    start, *costs = (around.Cost(2.0, cpu, 0, "what was counted") for cpu in (5.0, 7.0, 8.0, 9.0))
    *_, line = ingest.whole_job(1_000_000 + ingest.START_ROWS, costs, [start] * 3, goal)
    assert ("are wanted" in line) == (said is not None)
    assert said is None or f"At most {goal:g} are wanted: {said}." in line


def test_ingest_bench__a_reader_that_loses_a_row_ends_it() -> None:
    run = measure.Run(1.0, 1.0, 7)
    rounds = [{name: run._replace(answer=6 if name == "pandas" else 7) for name in ingest.READERS}]
    with pytest.raises(ValueError, match="pandas took 6 rows of 7"):
        ingest.compare(7, rounds, dict.fromkeys(ingest.READERS, 0))
