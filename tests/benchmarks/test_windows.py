"""The benchmark of windows, small: the paper's order of its structures holds by what they look at."""

from __future__ import annotations

from benchmarks import windows as bench


def test_table_6_2__a_scan_looks_at_more_than_halving_and_ranges_at_least() -> None:
    rows, holds = bench.table_6_2(1000)
    assert holds
    assert len(rows) == 2 + 4


def test_table_6_3__each_structure_follows_fewer_links_than_the_one_before() -> None:
    rows, holds = bench.table_6_3(1000)
    assert holds
    assert len(rows) == 2 + 4
