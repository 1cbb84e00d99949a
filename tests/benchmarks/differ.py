"""``make bench-differ``: differentials by every method, against the figures of the paper, and their CPU time.

Figures 8 to 11 count blocks (``differ_blocks``), figures 14 to 16 ask for the displacement of rows that a
window stands (``differ_window``). Figures 17 and 18 are seconds, measured here in interleaved rounds, and
whole differentials of files against ``pandas.merge``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import epsjoin
from epsjoin.differ.snapshots import open_snapshot
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.methods import differ

from .differ_blocks import MEMORY, figure_8, figure_9, figure_10, figure_11, in_batches
from .differ_costs import PAPER
from .differ_window import SIZES, displaced_files, figure_14, figure_15, figure_16
from .measure import interleaved
from .page import count, machine, put, seconds, spread, table

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = "benchmarks/differ.md"


def figures_17_and_18(sizes: Sequence[int], scale: int, rounds: int) -> list[str]:
    """Window against sort-merge at distance 0.05, the other methods beside them at the largest size."""
    rows, beats, beats_by_clock = [], [], []
    for size in sizes:
        n = SIZES[size] // scale
        files, _ = displaced_files(n, n / 40, share=0.2)
        batches = [in_batches(file) for file in files]
        row_bytes = size * 2**20 // SIZES[size]
        memory = max(MEMORY, n * 40)
        methods = ("auto", *PAPER) if size == max(sizes) else ("auto", "sort-merge", "window")
        tasks: dict[str, Callable[[], object]] = {
            method: lambda method=method, files=batches, memory=memory, row_bytes=row_bytes: differ(
                method, *files, Disk(memory, row_bytes)
            )
            for method in methods
        }
        times = interleaved(tasks, rounds)
        for method, took in times.items():
            each = ([1e6 * value / n for value in values] for values in took)
            rows.append([str(size), method, *map(spread, each)])
        window, sorting = times["window"], times["sort-merge"]
        beats.append(np.median(window.cpu) < np.median(sorting.cpu))
        beats_by_clock.append(np.median(window.wall) < np.median(sorting.wall))
    said = ["as figure" if all(each) else "**not as figure**" for each in (beats, beats_by_clock)]
    return [
        "### Figures 17 and 18: CPU and time by the clock",
        "",
        "20 % updates, distance 0.05. Entries are in memory, runs and buckets are files; the time",
        "has the preparation of the old file in it.",
        "",
        *table(["MB", "method", "µs of CPU a row of one file", "µs by the clock"], rows),
        "",
        f"Verdict: {said[0]} 17, whose window takes less CPU than sort-merge; {said[1]} 18, whose",
        "window takes less time by the clock.",
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
        times = interleaved(tasks, rounds)
    base = times["read both files"].cpu
    ratios = {name: [a / b for a, b in zip(of.cpu, base, strict=True)] for name, of in times.items()}
    rows = [[name, seconds(float(np.median(of.cpu))), spread(ratios[name])] for name, of in times.items()]
    ratio = float(np.median(ratios["epsjoin.snapshot_diff"]))
    verdict = "at most" if ratio <= 1.3 else "more than"
    return [
        "### From files: our default against reading alone, and against pandas",
        "",
        f"{count(n)} rows of 7 columns as CSV, 1 % updates, kept order. The bound was 1.3 of reading:",
        f"it takes {verdict} that.",
        "",
        *table(["what", "CPU s", "of reading both"], rows),
    ]


def main(arguments: list[str] | None = None, docs: Path = DOCS) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=1, help="divides all numbers of rows, and prints")
    parser.add_argument("--rounds", type=int, default=5)
    wished = parser.parse_args(arguments)
    scale = wished.scale
    parts = [
        lambda: figure_8([max(8, size // scale) for size in ((256, 1024) if scale == 1 else (256,))]),
        lambda: figure_9([128, 256, 470, 490, 1024] if scale == 1 else [470, 490]),
        lambda: figure_10(max(16, 256 // scale), (1, 1.5, 2, 5, 10, 15, 20)),
        lambda: figure_11(512, (0.0, 0.01, 0.015, 0.02, 0.03)),
        lambda: figure_14(scale),
        lambda: figure_15(scale),
        lambda: figure_16(scale),
        lambda: figures_17_and_18([*SIZES] if scale == 1 else [100], scale, wished.rounds),
        lambda: files_on_disk(1_000_000 // scale, wished.rounds),
    ]
    text = [f"Measured on {machine()}. The machine had other work: trust ratios, not seconds."]
    for part in parts:
        text += ["", *part()]
        print(next(line for line in reversed(text) if line), file=sys.stderr, flush=True)
    if scale > 1:
        print("\n".join(text))
    else:
        put(docs / PAGE, "\n".join(text))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
