"""Figures 11 to 14 of the paper on MatWin, and what a stream costs beside the batch.

Kemper and Stegmaier, MIP-0204, 2002, section 4: nested loops, MatWin without and with ε-grid order, left
outer, ε = 0.1 in each dimension. Work is counted: pairs looked at, and comparisons of two of them; seconds
are of compiled loops. The windows are ranges of sorted arrays here, and compute with the subtraction that
decides, since those of the paper stand still in floats.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import epsjoin
from epsjoin.kernels.arrays import Floats, Ints

from .matwin_ways import EPS, PAGE_ROWS, Run, cells_of, matwin, nested_loops
from .measure import interleaved
from .page import count, machine, put, seconds, spread, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "bestmatch.md"
MARKERS = "<!-- matwin:begin -->", "<!-- matwin:end -->"
DISTRIBUTIONS = ("uniform", "correlated", "anti-correlated", "normal")
STEPS = 4
"""Number of steps in which a window moves by its own height."""


def draw(distribution: str, n: int, d: int, seed: int, decimals: int | None = None) -> Floats:
    """Points in [0, 1], ascending by column 0, as Börzsönyi, Kossmann and Stocker draw them."""
    random = np.random.default_rng(seed)
    if distribution == "uniform":
        points = np.ascontiguousarray(random.random((d, n)).T)  # column 0 is the same for any d
    elif distribution == "normal":
        points = random.normal(0.5, 0.15, (n, d))
    elif distribution == "correlated":
        points = random.normal(0.5, 0.2, (n, 1)) + random.normal(0.0, 0.05, (n, d))
    else:  # their sum is nearly the same
        points = random.random((n, d))
        points += random.normal(0.5, 0.05, (n, 1)) - points.mean(axis=1, keepdims=True)
    points = np.clip(points, 0.0, 1.0)
    if decimals is not None:
        points[:, 0] = points[:, 0].round(decimals)
    return points[np.argsort(points[:, 0], kind="stable")]


def _say(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def _measure(
    n: int, d: int, rounds: int, is_nested: bool = True
) -> tuple[dict[str, list[float]], dict[str, Ints]]:
    """CPU seconds and work of the three ways, whose results are compared."""
    left, right = draw("uniform", n, d, 0), draw("uniform", n, d, 1)
    work: dict[str, Ints] = {}
    found: dict[str, int] = {}

    def loops() -> None:
        work["nested loops"] = np.zeros(2, np.int64)
        found["nested loops"] = nested_loops(left, right, work["nested loops"])

    def windows(name: str, by_grid: bool) -> None:
        run = matwin(left, right, by_grid)
        work[name], found[name] = np.array([run.looked_at, run.comparisons]), run.best

    tasks: dict[str, Callable[[], object]] = {"nested loops": loops} if is_nested else {}
    tasks["MatWin"] = lambda: windows("MatWin", False)
    tasks["MatWin, grid order"] = lambda: windows("MatWin, grid order", True)
    times = {name: took.cpu for name, took in interleaved(tasks, rounds).items()}
    ours = epsjoin.bestmatch_join(left, right, EPS)
    if {*found.values()} != {int((ours.right >= 0).sum())}:
        raise ValueError(f"the ways found different numbers of pairs: {found}")
    return times, work


def _row(shown: str, times: dict[str, list[float]], work: dict[str, Ints]) -> list[list[str]]:
    return [
        [shown, name, count(int(work[name][0])), count(int(work[name][1])), seconds(float(np.median(cpu)))]
        for name, cpu in times.items()
    ]


_HEAD = ["way", "pairs looked at", "comparisons", "CPU s"]


def figure_11(sizes: list[int], rounds: int) -> list[str]:
    rows, faster, helped = [], True, True
    for n in sizes:
        times, work = _measure(n, 2, rounds)
        rows += _row(count(n), times, work)
        middle = {name: float(np.median(cpu)) for name, cpu in times.items()}
        faster &= work["MatWin"].sum() < work["nested loops"].sum()
        helped &= work["MatWin, grid order"][0] < work["MatWin"][0]
    last = sizes[-1]
    return [
        "### Figure 11: time by size, 2 dimensions, uniform",
        "",
        *table(["rows of each", *_HEAD], rows),
        "",
        f"- *MatWin performs significantly better than nested loops*: {_say(faster)} at every size; at",
        f"  {count(last)} rows {middle['nested loops'] / middle['MatWin']:.1f} times less CPU.",
        f"- *ε-grid order increases the efficiency*: {_say(helped)} for the pairs looked at, at every size;",
        f"  in CPU it takes {middle['MatWin, grid order'] / middle['MatWin']:.1f} times as much at "
        f"{count(last)} rows.",
    ]


def figure_12(n: int, dimensions: list[int], rounds: int) -> list[str]:
    rows, looked = [], []
    for d in dimensions:
        times, work = _measure(n, d, rounds)
        rows += _row(str(d), times, work)
        looked.append(int(work["MatWin"][0]))
    change = max(looked) / min(looked) - 1
    return [
        f"### Figure 12: time by dimensions, {count(n)} rows of each, uniform",
        "",
        *table(["dimensions", *_HEAD], rows),
        "",
        "- *The standard materialisation is not affected by the number of dimensions*:",
        f"  {_say(change < 0.01)} for the pairs looked at, which differ by {change:.1%}.",
    ]


def sorting_cost(old: int, new: int) -> int:
    """Pages read and written by the *standard* way to add rows to stored ones, which keeps one sorted file.

    Parameters
    ----------
    old, new : number of pages that are stored, and that are added.

    Notes
    -----
    The added rows are written as sorted runs; then these and the stored pages are read, merged and written.
    """
    return new + 2 * (old + new)


def grid_cost(stored: Ints, added: Ints, page_rows: int) -> int:
    """Pages read and written by the *grid* way to add rows to stored ones, which keeps pages by cells.

    Parameters
    ----------
    stored, added : (n,) number of rows of each cell that are stored, and that are added.
    page_rows : number of rows that fit on a page.

    Notes
    -----
    The last page of each cell that gets rows is read and written, unless it is full; then come new pages.
    """
    in_last = stored % page_rows
    is_filled_up = (added > 0) & (in_last > 0)
    beyond = np.maximum(added - np.where(in_last > 0, page_rows - in_last, 0), 0)
    return int(2 * is_filled_up.sum() + (-(-beyond // page_rows)).sum())


def materialisation(n: int, dimensions: list[int]) -> list[str]:
    """Pages read and written while a window of height eps passes over a stream, and pages of the windows."""
    rows, sums = [], []
    for d in dimensions:
        points = draw("uniform", n, d, 1)
        cells = np.unique(cells_of(points), return_inverse=True)[1]
        stored_by, joined_by = np.zeros(2, np.int64), np.zeros(2, np.int64)
        done = 0
        for top in np.arange(STEPS, STEPS / EPS + 1) * (EPS / STEPS):
            first, end = np.searchsorted(points[:, 0], [top - EPS, np.nextafter(top, 2.0)])
            stored, added, window = (
                np.bincount(cells[begin:until], minlength=cells.max() + 1)
                for begin, until in ((first, done), (done, end), (first, end))
            )
            old, new, whole = (-(-int(part.sum()) // PAGE_ROWS) for part in (stored, added, window))
            stored_by += sorting_cost(old, new), grid_cost(stored, added, PAGE_ROWS)
            joined_by += whole, int((-(-window // PAGE_ROWS)).sum())
            done = end
        sums.append(stored_by + joined_by)
        for name, *pages in zip(("standard", "grid"), stored_by, joined_by, sums[-1], strict=True):
            rows.append([str(d), name, *(count(int(each)) for each in pages)])
    is_better_at_few, is_worse_at_many = sums[0][1] < sums[0][0], sums[-1][1] > sums[-1][0]
    return [
        f"### Materialisation: pages of {PAGE_ROWS} rows, {count(n)} rows, uniform",
        "",
        "Figures 11 and 12 of the paper also compare two ways to keep a window on disk; here by what they",
        "read and write, where the window moves by a quarter of ε and is read once after each move.",
        "",
        *table(["dimensions", "way", "pages to store what is new", "pages to read windows", "sum"], rows),
        "",
        f"- *Grid materialisation is better in few dimensions*: {_say(is_better_at_few)} in {dimensions[0]}.",
        f"- *It is worse in many, with hardly a page full*: {_say(is_worse_at_many)} in {dimensions[-1]}.",
    ]


def _progress(run: Run, n: int) -> tuple[list[float], float, float]:
    """Share emitted when a quarter, a half and three quarters are read; largest gap; largest step."""
    read, emitted = run.read / (2 * n), run.emitted / max(1, run.best)
    at = [float(emitted[np.searchsorted(read, share, side="right") - 1]) for share in (0.25, 0.5, 0.75)]
    return at, float(np.abs(read - emitted).max()), float(np.diff(emitted).max(initial=0.0))


_PROGRESS_HEAD = ["best pairs", "at 25 %", "at 50 %", "at 75 %", "largest gap", "largest step"]


def figure_13(n: int) -> list[str]:
    rows, gaps, pairs = [], [], {}
    for distribution in DISTRIBUTIONS:
        run = matwin(draw(distribution, n, 2, 0), draw(distribution, n, 2, 1), True)
        at, gap, step = _progress(run, n)
        gaps.append(gap)
        pairs[distribution] = run.best
        shares = [f"{share:.0%}" for share in (*at, gap)]
        rows.append([distribution, count(run.best), *shares, f"{step:.1%}"])
    return [
        f"### Figure 13: share emitted over share read, {count(n)} rows of each, 2 dimensions",
        "",
        *table(["distribution", *_PROGRESS_HEAD], rows),
        "",
        "- *The distribution has no influence on how continuous the results come*: "
        f"{_say(max(gaps) - min(gaps) < 0.1)};",
        f"  the largest gaps between the shares read and emitted are {min(gaps):.0%} to {max(gaps):.0%}.",
        "- *The normal distribution has more pairs than the uniform one*: "
        f"{_say(pairs['normal'] > pairs['uniform'])}.",
    ]


def figure_14(n: int) -> list[str]:
    rows, steps = [], []
    for decimals in range(1, 6):
        left, right = (draw("uniform", n, 2, seed, decimals) for seed in (0, 1))
        run = matwin(left, right, True)
        at, gap, step = _progress(run, n)
        steps.append(step)
        shares = [f"{share:.0%}" for share in (*at, gap)]
        rows.append([str(decimals), count(run.best), *shares, f"{step:.1%}"])
    return [
        f"### Figure 14: the same by decimals of y1, uniform, {count(n)} rows of each",
        "",
        *table(["decimals", *_PROGRESS_HEAD], rows),
        "",
        f"- *Steps where the precision is ε1*: {_say(steps[0] > 0.05)}; with one decimal the largest step",
        f"  emits {steps[0]:.1%} of all pairs at once, with five decimals {steps[-1]:.1%}.",
    ]


def stream_against_batch(n: int, rounds: int) -> list[str]:
    """About 20 candidates a row in three dimensions."""
    random = np.random.default_rng(4)
    left, right = (random.random((n, 3)) for _ in range(2))
    left, right = (rows[np.argsort(rows[:, 0])] for rows in (left, right))
    eps = (20 / n / 8) ** (1 / 3)

    def stream(push: int) -> int:
        join = epsjoin.BestmatchStream(eps)
        found = 0
        for first in range(0, n, push):
            found += len(join.push_left(left[first : first + push]).left)
            found += len(join.push_right(right[first : first + push]).left)
        return found + len(join.finish().left)

    if stream(1024) != len(epsjoin.bestmatch_join(left, right, eps).left):
        raise ValueError("the stream and the batch differ")
    tasks: dict[str, Callable[[], object]] = {
        "bestmatch_join": lambda: epsjoin.bestmatch_join(left, right, eps),
        "BestmatchStream, 8,192 rows a push": lambda: stream(8192),
        "BestmatchStream, 1,024 rows a push": lambda: stream(1024),
    }
    times = {name: took.cpu for name, took in interleaved(tasks, rounds).items()}
    base = times["bestmatch_join"]
    ratios = {name: [a / b for a, b in zip(cpu, base, strict=True)] for name, cpu in times.items()}
    rows = [[name, seconds(float(np.median(times[name]))), spread(ratios[name])] for name in times]
    goals = {"8,192": 1.5, "1,024": 3.0}
    verdicts = [
        f"- At most {goal:g} of the batch at {push} rows a push: "
        f"{_say(float(np.median(ratios[f'BestmatchStream, {push} rows a push'])) <= goal)}."
        for push, goal in goals.items()
    ]
    return [
        f"### The stream against the batch, {count(n)} rows of each, 3 dimensions, some 20 candidates a row",
        "",
        *table(["what", "CPU s", "of the batch"], rows),
        "",
        *verdicts,
    ]


def report(scale: int = 1, rounds: int = 5) -> list[str]:
    """All parts as Markdown; ``scale`` divides the numbers of rows."""
    sizes = [max(50, n // scale) for n in (250, 500, 1000, 2000, 4000)]
    parts = [
        figure_11(sizes, rounds),
        figure_12(max(50, 1000 // scale), [2, 3, 4, 5, 6], rounds),
        materialisation(max(50, 4000 // scale), [2, 3, 4, 5, 6]),
        figure_13(max(50, 1000 // scale)),
        figure_14(max(50, 1000 // scale)),
        stream_against_batch(max(2000, 100_000 // scale), rounds),
    ]
    return [line for part in parts for line in (*part, "")]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--scale", type=int, default=1, help="divide all numbers of rows by this, and print only"
    )
    parser.add_argument("--rounds", type=int, default=5)
    wished = parser.parse_args(arguments)
    text = "\n".join([f"Measured on {machine()}.", "", *report(wished.scale, wished.rounds)])
    print(text)
    if wished.scale == 1:
        put(PAGE, text, MARKERS)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
