"""``make bench-bestmatch``: best matches against what people write without us, in interleaved rounds.

Each contender answers the same question, and its answer is compared with ours before its time counts.
CPU time, one thread.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

import epsjoin
from epsjoin.kernels.arrays import Bools, Floats, Ints

from .measure import timed
from .page import count, machine, put, seconds, spread, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "bestmatch.md"
Answer = tuple[Ints, Ints] | Floats | None
"""Left and right rows, sorted; or distances; None where there is nothing to compare."""


class Question(NamedTuple):
    """What is asked, by whom, and how often more than us they should take.

    Parameters
    ----------
    text : what is asked, for the page.
    ours : our answer.
    others : names, answers, and the goal: at least so many times our CPU seconds.
    """

    text: str
    ours: Callable[[], Any]
    others: list[tuple[str, Callable[[], Any], float]]


def uniform(n: int, d: int, per_row: float) -> tuple[Floats, Floats, float]:
    """Two tables of n rows in the unit cube, and the eps with so many candidates per row."""
    left, right = np.random.default_rng(0).random((2, n, d))
    return left, right, float((per_row / n) ** (1.0 / d) / 2.0)


def skyline(values: Floats) -> Bools:
    """Whether no row dominates a row, by NumPy."""
    is_as_good = (values[:, None] <= values).all(axis=2)
    return np.asarray(~(is_as_good & ~is_as_good.T).any(axis=0))


def of_rows(found: list[Ints]) -> Answer:
    """The right rows of each left row, as two columns."""
    return np.repeat(np.arange(len(found)), [len(at) for at in found]), np.concatenate(found)


def by_numpy(left: Floats, right: Floats, eps: float) -> Answer:
    """Each left row against all right rows."""
    found = []
    for row in left:
        apart = np.abs(right - row)
        at = np.flatnonzero((apart <= eps).all(axis=1))
        found.append(at[skyline(apart[at])])
    return of_rows(found)


def by_tree(left: Floats, right: Floats, eps: float) -> Answer:
    """The candidates of each left row by a tree, the best of them by NumPy."""
    found = []
    for row, near in zip(left, cKDTree(right).query_ball_point(left, eps, p=np.inf), strict=True):
        at = np.sort(np.array(near, np.int64))
        found.append(at[skyline(np.abs(right[at] - row))])
    return of_rows(found)


def by_duckdb(left: Floats, right: Floats, eps: float) -> Answer:
    """A range join, and NOT EXISTS of a candidate that dominates."""
    import duckdb

    columns = [f"d{c}" for c in range(left.shape[1])]
    frames = [
        pd.DataFrame({"row": np.arange(len(side)), **{f"y{c}": side[:, c] for c in range(side.shape[1])}})
        for side in (left, right)
    ]
    connection = duckdb.connect(config={"threads": 1})
    for name, frame in zip(("l", "r"), frames, strict=True):
        connection.register(name, frame)
    distances = ", ".join(f"abs(l.y{c} - r.y{c}) AS {name}" for c, name in enumerate(columns))
    within = " AND ".join(f"abs(l.y{c} - r.y{c}) <= {eps!r}" for c in range(len(columns)))
    between = f"r.y0 BETWEEN l.y0 - {eps * 1.001!r} AND l.y0 + {eps * 1.001!r}"
    as_good = " AND ".join(f"b.{name} <= a.{name}" for name in columns)
    better = " OR ".join(f"b.{name} < a.{name}" for name in columns)
    query = (  # of names and numbers of this file
        f"WITH w AS (SELECT l.row AS i, r.row AS j, {distances} "
        f"FROM l JOIN r ON {between} WHERE {within}) "
        f"SELECT i, j FROM w a WHERE NOT EXISTS "
        f"(SELECT 1 FROM w b WHERE b.i = a.i AND {as_good} AND ({better})) ORDER BY i, j"
    )
    rows = connection.execute(query).fetchnumpy()
    return rows["i"], rows["j"]


def by_us(left: Floats, right: Floats, eps: float) -> Answer:
    best = epsjoin.bestmatch_join(left, right, eps, "left")
    is_pair = best.right >= 0
    return best.left[is_pair], best.right[is_pair]


def small(n: int) -> Question:
    """Against what people write."""
    left, right, eps = uniform(n, 3, 20.0)
    others = [
        ("NumPy, each left row against all", lambda: by_numpy(left, right, eps), 100.0),
        ("cKDTree, best by NumPy", lambda: by_tree(left, right, eps), 10.0),
    ]
    if find_spec("duckdb"):
        others.append(("DuckDB, NOT EXISTS", lambda: by_duckdb(left, right, eps), 25.0))
    text = f"{count(n)} x {count(n)} rows, 3 criteria, 20 candidates per row"
    return Question(text, lambda: by_us(left, right, eps), others)


def large(n: int) -> Question:
    """Against our own join alone: the goal is that we take 2.5 times its seconds at most."""
    left, right, eps = uniform(n, 3, 47.0)
    of_each = [eps, eps, eps]

    def join_alone() -> Answer:
        epsjoin.join(left, right, of_each, "chebyshev")
        return None

    def best() -> Answer:
        epsjoin.bestmatch_join(left, right, eps, "left")
        return None

    text = f"{count(n)} x {count(n)} rows, 3 criteria, 47 candidates per row"
    return Question(text, best, [("our join alone", join_alone, 1 / 2.5)])


def one_column(n: int) -> Question:
    """Against the as-of join of pandas."""
    left, right = np.sort(np.random.default_rng(1).random((2, n)), axis=1)
    eps = 1.0 / n
    frames = [pd.DataFrame({"t": side, name: side}) for side, name in ((left, "x"), (right, "y"))]

    def by_pandas() -> Answer:
        near = pd.merge_asof(*frames, on="t", direction="nearest", tolerance=eps)
        return np.asarray(np.abs(near["x"] - near["y"]))

    def nearest() -> Answer:
        best = epsjoin.bestmatch_join(left[:, None], right[:, None], eps, take="one")
        distances = np.empty(n)
        distances[best.left] = best.values[:, 0]
        return distances

    text = f"{count(n)} x {count(n)} sorted rows, 1 criterion"
    return Question(text, nearest, [("pandas.merge_asof", by_pandas, 0.7)])


def is_same(x: Answer, y: Answer) -> bool:
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return bool(np.array_equal(x, y, equal_nan=True))
    if isinstance(x, tuple) and isinstance(y, tuple):
        return np.array_equal(x[0], y[0]) and np.array_equal(x[1], y[1])
    return x is y is None


def measure(question: Question, rounds: int) -> list[list[str]]:
    """Rows of the page: CPU seconds of each contender, theirs over ours round by round, and the goal."""
    answer = question.ours()  # compiles
    for name, other, _ in question.others:
        if not is_same(answer, other()):
            raise SystemExit(f"{name} has another answer than we to: {question.text}")
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name, _, _ in question.others}
    ratios: dict[str, list[float]] = {name: [] for name in theirs}
    for number in range(rounds):
        tasks = [("", question.ours), *((name, other) for name, other, _ in question.others)]
        if number % 2:  # so that nobody always finds the heap of the same other one
            tasks.reverse()
        cpu = {name: timed(task).cpu for name, task in tasks}
        ours.append(cpu.pop(""))
        for name, each in cpu.items():
            theirs[name].append(each)
            ratios[name].append(each / ours[-1])
    rows = []
    for name, _, goal in question.others:
        verdict = "met" if statistics.median(ratios[name]) >= goal else "**missed**"
        times = [seconds(statistics.median(each)) for each in (theirs[name], ours)]
        rows.append([question.text, name, *times, spread(ratios[name]), f"{goal:g}, {verdict}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=int, default=1, help="divide all sizes by this, and print")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    scale = arguments.scale
    questions = (small(20_000 // scale), large(200_000 // scale), one_column(1_000_000 // scale))
    rows = [row for question in questions for row in measure(question, arguments.rounds)]
    about_duckdb = (
        f"DuckDB {version('duckdb')} with one thread"
        if find_spec("duckdb")
        else "DuckDB is not installed here, so that its ratio is not shown"
    )
    head = ["question", "contender", "its CPU s", "ours", "its over ours", "goal: at least"]
    how = f"{arguments.rounds} interleaved rounds; {about_duckdb}; {machine()}."
    text = "\n".join((*table(head, rows), "", how))
    sys.stdout.write(f"{text}\n")
    if scale == 1:
        put(PAGE, text)


if __name__ == "__main__":
    main()
