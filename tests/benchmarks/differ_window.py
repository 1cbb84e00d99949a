"""Figures 14 to 16 of the paper: how far rows may be displaced before a window reports useless messages."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Ints
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import Entries
from epsjoin.local.differ.methods import differ
from epsjoin.local.differ.order import distance, waiting

from .differ_blocks import in_batches, pair_of_files
from .page import count, table

BUFFER_MB = 8
SIZES = {50: 162_500, 75: 325_000, 100: 650_000}
"""Megabytes and rows of the files of figures 14 to 16."""
PAPERS_CRITICAL = {50: 0.44, 75: 0.34, 100: 0.24}
"""The distances that figure 15 reads off figure 14."""
PRINTED_MB = {50: 5.11, 75: 7.91, 100: 11.2}
"""The displacements that figure 15 makes of them, all with rows of 150 bytes."""


def displaced(n: int, mean: float, seed: int = 1) -> Ints:
    """Places of n rows in the new file, moved by ``mean`` rows on average, evenly spread."""
    moved = np.arange(n) + np.random.default_rng(seed).uniform(-1, 1, n) * mean * 2
    places = np.empty(n, np.int64)
    places[np.argsort(moved, kind="stable")] = np.arange(n)
    return places


class Critical(NamedTuple):
    """Up to where a buffer holds all rows that wait.

    Parameters
    ----------
    distance : between the files.
    displacement : mean, in rows.
    asked : what :func:`displaced` was asked for; rows are not moved beyond the ends of the file.
    """

    distance: float
    displacement: float
    asked: float


@cache
def critical(n: int, buffer: int) -> Critical:
    low, high = 0.0, 1.0
    found = Critical(0.0, 0.0, 0.0)
    for _ in range(14):
        middle = (low + high) / 2
        pairs = np.column_stack([np.arange(n), displaced(n, middle * n)])
        if waiting(pairs, n, n) < buffer:
            displacement = float(np.abs(np.diff(pairs)).mean())
            low, found = middle, Critical(distance(pairs, n, n), displacement, middle * n)
        else:
            high = middle
    return found


def displaced_files(n: int, mean: float, share: float = 0.0) -> tuple[list[Entries], Ints]:
    """Two files, the second with its rows moved; and the places of each row in both."""
    places = displaced(n, mean)
    files = pair_of_files(n, share)
    files[1] = files[1][np.argsort(places)]
    files[1]["place"] = np.arange(n)
    return files, np.column_stack([np.arange(n), places])


def useless(files: list[Entries], buffer: int) -> int:
    """Messages of a window about rows that have not changed: each a delete or an insert."""
    found = differ("window", *map(in_batches, files), Disk(1), places=buffer)
    return len(found.deleted) + len(found.inserted)


def _row_bytes(megabytes: int) -> float:
    return megabytes * 2**20 / SIZES[megabytes]


def _sized(scale: int) -> dict[int, tuple[int, int]]:
    """Rows, and rows in a buffer, by megabytes."""
    return {
        size: (n // scale, int(BUFFER_MB * 2**20 / _row_bytes(size) / scale)) for size, n in SIZES.items()
    }


def figure_14(scale: int) -> list[str]:
    rows, is_near, is_cliff = [], True, True
    for size, (n, buffer) in _sized(scale).items():
        at = critical(n, buffer)
        messages = []
        for factor in (0.9, 1.0, 1.1, 1.3):
            files, pairs = displaced_files(n, factor * at.asked)
            messages.append((distance(pairs, n, n), useless(files, buffer)))
        is_near &= abs(at.distance - PAPERS_CRITICAL[size]) <= 0.03
        is_cliff &= messages[0][1] == 0 and messages[-1][1] > n / 2
        told = (f"{count(found)} at {apart:.2f}" for apart, found in messages)
        rows.append(
            [str(size), count(n), count(buffer), f"{PAPERS_CRITICAL[size]}", f"{at.distance:.2f}", *told]
        )
    head = ["MB", "rows", "rows in a buffer of 8 MB", "critical, paper", "critical, here"]
    near = "as figure 14, within 0.03" if is_near else "**not as figure 14**"
    cliff = "Beyond it" if is_cliff else "**Not** beyond it"
    return [
        "### Figure 14: useless messages by distance",
        "",
        "Rows are moved by distances that are spread evenly, and none is changed.",
        "",
        *table([*head, *(f"messages at {factor} of it" for factor in (0.9, 1.0, 1.1, 1.3))], rows),
        "",
        f"Verdict: the critical distances are {near}. {cliff} a window does not degrade but collapses: who",
        "is pushed out leaves a partner that waits, too.",
    ]


def figure_15(scale: int) -> list[str]:
    rows, ratios, own = [], [], []
    for size, (n, buffer) in _sized(scale).items():
        at, row_bytes = critical(n, buffer), _row_bytes(size)
        corrected = PAPERS_CRITICAL[size] * SIZES[size] / 2 * row_bytes / 2**20
        ours = at.displacement * scale * row_bytes / 2**20
        own += [corrected, ours]
        ratios.append(at.displacement / buffer)
        cells = (f"{PRINTED_MB[size]}", f"{corrected:.1f}", f"{ours:.1f}", f"{ratios[-1]:.2f}")
        rows.append([str(size), f"{row_bytes:.0f}", *cells])
    head = ["MB", "bytes a row", "printed, MB", "paper's distances, each file's own rows, MB", "here, MB"]
    alike = max(own) / min(own) < 1.25
    said = "one displacement for all sizes" if alike else "**not one displacement for all sizes**"
    bar = "holds" if all(1.6 <= ratio <= 2.0 for ratio in ratios) else "does not hold where a file is short"
    return [
        "### Figure 15: the displacement that a window stands",
        "",
        *table([*head, "here / buffer"], rows),
        "",
        f"Verdict: {said}, {min(own):.0f} to {max(own):.0f} MB, not as printed: the table takes rows of",
        "150 bytes for all three files. We had expected 1.6 to 2.0 times the buffer, the ratio in files much",
        f"longer than it: that {bar}, since rows cannot be moved beyond its ends.",
    ]


def figure_16(scale: int) -> list[str]:
    n, _ = _sized(scale)[100]
    asked = 0.34 * n / 2
    for _ in range(3):  # rows are not moved beyond the ends: ask for more
        files, pairs = displaced_files(n, asked)
        asked *= 0.34 / distance(pairs, n, n)
    need, megabyte = waiting(pairs, n, n), 2**20 / _row_bytes(100) / scale
    rooms = [*(int(mb * megabyte) for mb in (1, 4, 8)), need - 1, need + 1, int(12.8 * megabyte)]
    messages = [useless(files, room) for room in rooms]
    told = messages[-2] == 0 and messages[-3] > 0
    exact = differ("auto", *map(in_batches, files), Disk(8 * 40 * rooms[0]))
    of_default = len(exact.deleted) + len(exact.inserted)
    rows = [
        [f"{room / megabyte:.1f}", count(room), count(found)]
        for room, found in sorted(zip(rooms, messages, strict=True))
    ]
    holds = messages[-1] == 0 and messages[2] > 0
    need_told = "with it there are none, below it there are" if told else "**not here**"
    said = "as figure 16" if holds else "**not as figure 16**"
    return [
        "### Figure 16: useless messages by memory",
        "",
        f"100 MB, {count(n)} rows at distance {distance(pairs, n, n):.2f}, which need {count(need)} places.",
        "",
        *table(["buffer, MB", "places", "useless messages"], rows),
        "",
        f"Verdict: {said}: at 8 MB there are some, at 12.8 MB none. The buffer that is needed can be told by",
        f"one pass, but for a place: {need_told}. Our default has {count(of_default)}",
        "with a buffer of 1 MB.",
    ]
