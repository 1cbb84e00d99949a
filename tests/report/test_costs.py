"""The costs of a run: what its join expected while it ran stands beside what came."""

from __future__ import annotations

import dataclasses

from epsjoin.findings import Findings
from epsjoin.report.costs import list_costs, list_steps


def test_list_costs__says_what_the_join_expected_while_it_ran(example: Findings) -> None:
    told = {"": 4000.0, "_low": 3500.0, "_high": 4500.0}
    told = {f"pairs_expected_at_50_percent{end}": value for end, value in told.items()}
    counters = {**example.counters, "merge_join": {**example.counters["merge_join"], **told}}
    watched = dataclasses.replace(example, counters=counters)
    lines = [line for line in list_costs(watched) if line not in list_costs(example)]
    assert [line.name for line in lines] == ["pairs, at 50 % of the parts"]
    assert (lines[0].expected, lines[0].measured) == (4000.0, 4321.0)
    assert lines[0].text == "3,500 to 4,500 at 95 %, from those parts"
    assert [line.name for line in list_costs(watched)][2:4] == ["pairs", lines[0].name]
    assert list_steps(watched) == list_steps(example), "no counter stands on the page twice"
