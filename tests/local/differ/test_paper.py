"""Where the paper of Labio and Garcia-Molina does not hold, and what does: docs/notes-on-papers.md."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.differ_costs import PAPER, Shape, crossing, formula
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.methods import METHODS, differ
from epsjoin.local.differ.order import distance, missed_probability
from tests.local.differ.files import entries_of, keys_of

FIGURE_8 = {
    "sort-merge": (81_920, 327_680),
    "SMC1": (51_336, 205_346),
    "SMC2": (40_833, 163_333),
    "hash": (65_536, 262_144),
    "PHC1": (18_568, 205_346),
    "PHC2": (19_660, 156_779),
    "window": (32_768, 131_072),
}


@pytest.mark.parametrize("method", FIGURE_8)
def test_formulas__give_figure_8_in_blocks_not_in_megabytes(method: str) -> None:
    found = [formula(method, Shape.of_paper(megabytes)) for megabytes in (256, 1024)]
    assert found == [pytest.approx(blocks, abs=1.5) for blocks in FIGURE_8[method]]
    assert Shape.of_paper(256).blocks == 16_384


def test_formulas__cross_at_two_shares_of_changes_not_at_one() -> None:
    assert crossing("SMC1", "SMC2") == pytest.approx(0.0159, abs=5e-5)
    assert crossing("PHC1", "PHC2") == pytest.approx(0.0168, abs=5e-5)


def test_missed_probability__is_of_the_updates_and_the_printed_one_of_no_formula() -> None:
    rows, error = 1_789_570, 2.3e-10
    p_day = (1 - error) ** rows
    assert p_day == pytest.approx(0.99958848, abs=5e-9)  # printed: 0.99979169
    assert 1 / (1 - p_day) == pytest.approx(2430, abs=1)  # as printed
    updates = rows // 100
    assert 1 / missed_probability(updates, 32) == pytest.approx(240_000, rel=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_differ__finds_what_the_longer_file_has_beyond_the_end_of_the_other(method: str) -> None:
    short, long = [(1, 0)], [(i, 0) for i in range(1, 30)]
    rest = {key for key, _ in long} - {1}
    there = differ(method, entries_of(short), entries_of(long), Disk(1 << 20))
    back = differ(method, entries_of(long), entries_of(short), Disk(1 << 20))
    assert keys_of(there, short, long)["inserted"] == rest
    assert keys_of(back, long, short)["deleted"] == rest
    # the loop as it is printed, while *both* have rows, ends after the first row
    i = 0
    while i < len(short) and i < len(long):
        i += 1
    assert len(long) - i == len(rest)


def test_figure_15__has_one_displacement_for_all_sizes_if_each_file_has_its_own_row_length() -> None:
    critical = {50: (162_500, 0.44), 75: (325_000, 0.34), 100: (650_000, 0.24)}  # MB: rows, distance
    printed, own = ([], [])
    for megabytes, (rows, apart) in critical.items():
        mean = apart * rows / 2
        printed.append(mean * 150 / 2**20)
        own.append(mean * megabytes / rows)
    assert max(printed) / min(printed) > 2
    assert all(11 <= each <= 13 for each in own)
    assert max(own) / min(own) < 1.2


def test_distance__is_twice_the_mean_displacement_in_files() -> None:
    """So 50,000 of 650,000 are 0.154, and 0.34 is 110,500."""
    n = 1000
    pairs = np.column_stack([np.arange(n), np.random.default_rng(0).permutation(n)])
    assert distance(pairs, n, n) == pytest.approx(2 * np.abs(np.diff(pairs)).mean() / n)
    assert math.isclose(2 * 50_000 / 650_000, 0.154, abs_tol=5e-4)
    assert math.isclose(0.34 * 650_000 / 2, 110_500)


@pytest.mark.parametrize("method", PAPER)
def test_counters__are_those_of_the_formula(method: str) -> None:
    """Rows of 600 bytes, u = 15, 1 % changed: blocks within 2 % of the formula."""
    n = 6_000 if method == "PHC2" else 3_000  # of fewer its buckets are small, and their last blocks count
    row_bytes, block = 600, 4096
    old = np.random.default_rng(3).permutation(n)
    changed = set(range(0, n, 100))
    files = [
        [(int(key), 0) for key in old],
        [(int(key), int(int(key) in changed)) for key in old],
    ]
    shape = Shape(n, row_bytes, block, 40, 40, len(changed), 32 * block)
    disk = Disk(shape.memory_bytes, row_bytes, block)
    kept = n * row_bytes if method in ("sort-merge", "hash") else n * 40
    found = differ(method, *(entries_of(rows, 1000) for rows in files), disk)
    prepared = preparing(method, n * row_bytes, kept)
    total = disk.blocks_read + disk.blocks_written - prepared / block
    assert len(found.updated) == len(changed)
    assert total == pytest.approx(formula(method, shape), rel=0.02)


def preparing(method: str, full: int, kept: int) -> float:
    """Bytes that pass while the old file is prepared, which the paper has from the last differential."""
    if method == "window":
        return 0
    if method in ("hash", "PHC1", "PHC2"):
        return full + kept
    runs = 2 * (kept if method == "SMC2" else full)
    return full + runs + kept
