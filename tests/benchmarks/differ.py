"""``make bench-differ``: differentials by every method, against the figures of the paper, and their CPU time.

Figures 8 to 11 count blocks: by the paper's formulas, and by our counters on generated files of a sixteenth
of its sizes, with blocks and memory of a sixteenth, so that the numbers of blocks are its own. Figures 14 to
16 ask for the displacement of rows that a window stands; figures 17 and 18 for CPU time, which is measured
here in interleaved rounds, against ``pandas.merge``.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import epsjoin
from epsjoin.differ.snapshots import open_snapshot
from epsjoin.kernels.arrays import Ints
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import Entries, Words, to_entries
from epsjoin.local.differ.methods import KEPT, differ
from epsjoin.local.differ.order import distance, waiting

from .differ_costs import PAPER, Shape, crossing, formula
from .page import count, machine, put, seconds, spread, table

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = "benchmarks/differ.md"
ROW_BYTES = 600
"""Our compressed row has 40 bytes: with rows of 600 it is a fifteenth, as in the paper."""
SCALE = 16
BLOCK = (16 << 10) // SCALE
MEMORY = (32 << 20) // SCALE
BATCH = 8192
WINDOW_BYTES = 8 << 20
SIZES = {50: 162_500, 75: 325_000, 100: 650_000}
"""Megabytes and rows of the files of figures 14 to 16."""


def pair_of_files(n: int, share: float, seed: int = 0) -> list[Entries]:
    """Two files of the same keys in one random order, in which a share of the rows was updated."""
    draw = np.random.default_rng(seed)
    keys: Words = draw.integers(0, 2**64, (n, 2), np.uint64, endpoint=False)
    old: Words = draw.integers(0, 2**64, (n, 2), np.uint64, endpoint=False)
    new = old.copy()
    new[draw.choice(n, round(share * n), replace=False)] += np.uint64(1)
    return [to_entries(keys, digests, 0) for digests in (old, new)]


def in_batches(entries: Entries) -> list[Entries]:
    return [entries[first : first + BATCH] for first in range(0, len(entries), BATCH)]


def count_blocks(method: str, files: list[Entries], memory: int = MEMORY) -> int:
    """Blocks read and written by one differential, if the old file is prepared."""
    disk = Disk(memory, ROW_BYTES, BLOCK)
    old, new = map(in_batches, files)
    before = 0
    if method in KEPT:
        kept = KEPT[method]
        dtypes = [disk.full if is_full else disk.compressed for is_full in kept[1:]]
        kept.algorithm.keep(iter(old), disk, *dtypes)
        before = disk.blocks_read + disk.blocks_written
        disk = Disk(memory, ROW_BYTES, BLOCK)
    differ(method, old, new, disk)
    return disk.blocks_read + disk.blocks_written - before


def shape_of(files: list[Entries], changes: int) -> Shape:
    return Shape(len(files[0]), ROW_BYTES, BLOCK, 40, 40, changes, MEMORY)


def figure_8(megabytes: list[int]) -> list[str]:
    rows = []
    for size in megabytes:
        n = round(size * 2**20 / SCALE / ROW_BYTES)
        files = pair_of_files(n, 0.01)
        for method in (*PAPER, "auto"):
            counted = count_blocks(method, files)
            ours = formula("window" if method == "auto" else method, shape_of(files, round(0.01 * n)))
            papers = "-" if method == "auto" else count(round(formula(method, Shape.of_paper(size))))
            verdict = "as the formula" if abs(counted / ours - 1) <= 0.02 else "not as the formula"
            rows.append(
                [
                    str(size),
                    method,
                    papers,
                    count(round(ours)),
                    count(counted),
                    f"{counted / ours:.3f}",
                    verdict,
                ]
            )
    head = ["MB", "method", "figure 8", "formula, our rows", "counted", "counted / formula", "verdict"]
    return ["### Figure 8: blocks by size, 1 % updates", "", *table(head, rows)]


def figures_9_to_11(megabytes: int) -> list[str]:
    n = round(megabytes * 2**20 / SCALE / ROW_BYTES)
    methods = ("SMC1", "SMC2", "PHC1", "PHC2")
    rows = []
    for share in (0.0, 0.005, 0.01, 0.02, 0.03):
        files = pair_of_files(n, share)
        memory = min(MEMORY, n * 40 // 2)  # PHC must not fit into memory
        for_paper = [count(round(formula(method, Shape.of_paper(1024, share)))) for method in methods]
        counted = [count(count_blocks(method, files, memory)) for method in methods]
        rows.append([f"{share:.1%}", *(f"{a}; {b}" for a, b in zip(for_paper, counted, strict=True))])
    crossings = [f"{crossing(a, b):.2%}" for a, b in (("SMC1", "SMC2"), ("PHC1", "PHC2"))]
    return [
        "### Figures 9 to 11: blocks by share of updates",
        "",
        f"The paper's formula at 1,024 MB; counted on our rows, {megabytes} MB / {SCALE}.",
        "",
        *table(["updates", *methods], rows),
        "",
        f"By the formulas SMC1 beats SMC2 from {crossings[0]} of updates on, and PHC1 beats PHC2 from",
        f"{crossings[1]} on: two bounds, where the paper has one, 1.7 %. A block of ours holds 1.7 rows, not",
        "109, so a fetched row costs little more than its share of a block, and the counts do not cross.",
    ]


def displaced(n: int, mean: float, seed: int = 1) -> Ints:
    """Places of n rows in the new file, moved by ``mean`` rows on average."""
    moved = np.arange(n) + np.random.default_rng(seed).uniform(-1, 1, n) * mean * 2
    places = np.empty(n, np.int64)
    places[np.argsort(moved, kind="stable")] = np.arange(n)
    return places


def critical(n: int, buffer: int) -> tuple[float, float]:
    """The distance, and the mean displacement in rows, up to which a buffer holds all rows that wait."""
    low, high = 0.0, 1.0
    found = 0.0, 0.0
    for _ in range(18):
        middle = (low + high) / 2
        pairs = np.column_stack([np.arange(n), displaced(n, middle * n)])
        if waiting(pairs, n, n) <= buffer:
            low, found = middle, (distance(pairs, n, n), float(np.abs(np.diff(pairs)).mean()))
        else:
            high = middle
    return found


def figures_14_to_16(scale: int) -> list[str]:
    rows = []
    for megabytes, n_full in SIZES.items():
        n, row_bytes = n_full // scale, megabytes * 2**20 / n_full
        buffer = int(WINDOW_BYTES / row_bytes / scale)
        apart, mean = critical(n, buffer)
        ratio = mean / buffer
        verdict = "1.6 to 2.0 buffers" if 1.6 <= ratio <= 2.0 else "not 1.6 to 2.0 buffers"
        rows.append(
            [
                str(megabytes),
                count(n),
                count(buffer),
                f"{apart:.2f}",
                f"{mean * scale * row_bytes / 2**20:.1f}",
                f"{ratio:.2f}",
                verdict,
            ]
        )
    head = [
        "MB",
        "rows",
        "rows in a buffer of 8 MB",
        "critical distance",
        "mean displacement, MB",
        "displacement / buffer",
        "verdict",
    ]
    said = "Rows are moved by distances that are spread evenly; the ratio depends on how they are spread."
    return [
        "### Figures 14 to 16: what a window stands",
        "",
        said,
        "",
        *table(head, rows),
        "",
        *_cliff(650_000 // scale // 4),
    ]


def _cliff(n: int) -> list[str]:
    """Useless pairs just below the buffer that is needed, and from it on."""
    places = displaced(n, n / 10)
    files = pair_of_files(n, 0.0)
    files[1] = files[1][np.argsort(places)]
    files[1]["place"] = np.arange(n)
    pairs = np.column_stack([np.arange(n), places])
    need = waiting(pairs, n, n)
    rows = []
    for share in (0.5, 0.8, 0.95, 1.0, 1.1):
        room = max(1, round(share * need))
        found = differ("window", *map(in_batches, files), Disk(MEMORY), places=room)
        exact = differ("auto", *map(in_batches, files), Disk(room * 40 * 8))
        rows.append(
            [f"{share:.0%}", count(room), count(2 * len(found.deleted)), count(2 * len(exact.deleted))]
        )
    return [
        f"{count(n)} rows at distance {distance(pairs, n, n):.2f} need {count(need)} places. With fewer a",
        "window does not degrade but collapses; with hash for the rest it is exact with any buffer:",
        "",
        *table(["places / needed", "places", "useless messages of the window", "of our default"], rows),
    ]


def figures_17_and_18(n: int, rounds: int) -> list[str]:
    """CPU of the methods on entries in memory, at distance 0.05."""
    files = pair_of_files(n, 0.2)
    files[1] = files[1][np.argsort(displaced(n, n / 40))]
    files[1]["place"] = np.arange(n)
    batches = [in_batches(file) for file in files]
    disk_bytes = max(MEMORY, n * 40)
    tasks: dict[str, Callable[[], object]] = {
        method: lambda method=method: differ(method, *batches, Disk(disk_bytes, 156))
        for method in ("auto", *PAPER)
    }
    times = _interleaved(tasks, rounds)
    rows = [[name, f"{spread([1e6 * each / n for each in cpu])}"] for name, cpu in times.items()]
    return [
        "### Figures 17 and 18: CPU",
        "",
        f"{count(n)} rows in each file, 20 % updates, distance 0.05. Entries are in memory, and the",
        "preparation of the old file is in the time.",
        "",
        *table(["method", "µs of CPU a row of one file"], rows),
    ]


def files_on_disk(n: int, rounds: int) -> list[str]:
    """The whole way from CSV, against reading both and against pandas."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("old.csv", "new.csv")]
        draw = np.random.default_rng(5)
        frame = pd.DataFrame({"id": np.arange(n), **{f"x{i}": draw.random(n).round(6) for i in range(6)}})
        frame.to_csv(paths[0], index=False)
        frame.loc[draw.choice(n, n // 100, replace=False), "x3"] += 1
        frame.to_csv(paths[1], index=False)

        def read() -> int:
            return sum(len(b) for path in paths for b in open_snapshot(path, "", 0).batches())

        def merge() -> int:
            old, new = (pd.read_csv(path, dtype=str) for path in paths)
            both = old.merge(new, on="id", how="outer", suffixes=("", "_new"), indicator=True)
            differs = [both[name] != both[f"{name}_new"] for name in old.columns[1:]]
            return int(np.logical_or.reduce(differs).sum())

        found = epsjoin.snapshot_diff(*paths, key="id")
        assert len(found.updated) == merge() == n // 100
        tasks: dict[str, Callable[[], object]] = {
            "read both files": read,
            "epsjoin.snapshot_diff": lambda: epsjoin.snapshot_diff(*paths, key="id"),
            "pandas.merge": merge,
        }
        times = _interleaved(tasks, rounds)
    base = times["read both files"]
    rows = [
        [name, seconds(float(np.median(cpu))), spread([a / b for a, b in zip(cpu, base, strict=True)])]
        for name, cpu in times.items()
    ]
    ratio = float(np.median([a / b for a, b in zip(times["epsjoin.snapshot_diff"], base, strict=True)]))
    verdict = "at most" if ratio <= 1.3 else "more than"
    return [
        "### From files: our default against reading alone, and against pandas",
        "",
        f"{count(n)} rows of 7 columns as CSV, 1 % updates, kept order. The bound was 1.3 of reading:",
        f"it takes {verdict} that.",
        "",
        *table(["what", "CPU s", "of reading both"], rows),
    ]


def _interleaved(tasks: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each task in each round, after one that warms up."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(rounds + 1):
        for name, task in tasks.items():
            begun = time.process_time()
            task()
            if number:
                times[name].append(time.process_time() - begun)
    return times


def main(arguments: list[str] | None = None, docs: Path = DOCS) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=1, help="divides all numbers of rows, and prints")
    parser.add_argument("--rounds", type=int, default=5)
    wished = parser.parse_args(arguments)
    scale = wished.scale
    parts = [
        lambda: figure_8([math.ceil(256 / scale)] if scale > 1 else [256, 1024]),
        lambda: figures_9_to_11(math.ceil(256 / scale)),
        lambda: figures_14_to_16(scale),
        lambda: figures_17_and_18(650_000 // scale, wished.rounds),
        lambda: files_on_disk(1_000_000 // scale, wished.rounds),
    ]
    text = [f"Measured on {machine()}."]
    for part in parts:
        text += ["", *part()]
        print("\n".join(text[-1:]), file=sys.stderr, flush=True)
    if scale > 1:
        print("\n".join(text))
    else:
        put(docs / PAGE, "\n".join(text))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
