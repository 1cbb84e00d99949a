"""A kept index beside SciPy's kept tree, and calls of few rows that keep nothing; ``make bench-index``.

CPU microseconds of one call, each the median of rounds in which the contenders take turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from epsjoin import Index, join, knn_join, self_join

from .page import machine, put, spread, table

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "index.md"
SETS = ((2, 0.02, 0.05), (3, 0.05, 0.1), (8, 0.3, 0.3))
"""Columns of uniform points, eps of a query among 10,000 rows, eps of the self join of 1,000."""
FEW_ROWS, FEW_COLUMNS = (10, 30, 100, 300, 1000, 3000), (2, 3, 8, 16, 64)
"""Numbers of uniform rows and of their columns, for calls that keep nothing."""
NEAREST = 5
"""Number of neighbours, for calls that keep nothing."""
_CALLS = 200
"""Number of calls that are timed together."""

Work = Callable[[], Any]


def in_turn(rounds: int, contenders: dict[str, Work], calls: int = _CALLS) -> dict[str, list[float]]:
    """CPU microseconds of one call of each contender, a number for each round."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for work in contenders.values():
        work()  # compiles
    for _ in range(rounds):
        for name, work in contenders.items():
            begin = time.process_time()
            for _ in range(calls):
                work()
            found[name].append((time.process_time() - begin) / calls * 1e6)
    return found


def one_query(rounds: int) -> list[str]:
    rows = []
    for d, eps, _ in SETS:
        points = np.random.default_rng(0).random((10_000, d))
        query = np.random.default_rng(1).random((1, d))
        index, tree = Index(points), cKDTree(points)
        with tempfile.TemporaryDirectory() as folder:
            index.save(folder)
            read = Index.read(folder)
            works = {
                "join": partial(index.join, query, eps),
                "of a folder": partial(read.join, query, eps),
                "ball": partial(tree.query_ball_point, query, eps),
                "knn": partial(index.knn, query, 10),
                "query": partial(tree.query, query, 10),
            }
            found = in_turn(rounds, works)
        n_pairs = len(index.join(query, eps).left)
        holds = "holds" if statistics.median(found["join"]) <= 150 else "does not hold"
        rows.append([str(d), str(n_pairs), *(spread(each) for each in found.values()), holds])
    head = ["columns", "pairs", "join", "read from a folder", "`query_ball_point`", "knn, 10", "`query`"]
    return table([*head, "join at most 150"], rows)


def few_rows(rounds: int) -> list[str]:
    rows = []
    for d, _, eps in SETS:
        points = np.random.default_rng(2).random((10, d))
        index = Index(points)
        works = {
            "join": partial(index.join, points, eps),
            "self": partial(index.self_join, eps),
            "knn": partial(index.knn, points, 3),
            "grow": partial(Index, points),
        }
        found = in_turn(rounds, works)
        worst = max(statistics.median(each) for each in found.values())
        holds = "holds" if worst <= 60 else "does not hold"
        rows.append([str(d), *(spread(each) for each in found.values()), holds])
    return table(["columns", "join", "self join", "knn, 3", "`Index(points)`", "each at most 60"], rows)


def whole_self_join(rounds: int) -> list[str]:
    rows = []
    for d, _, eps in SETS:
        points = np.random.default_rng(3).random((1_000, d))
        index, tree = Index(points), cKDTree(points)
        works = {
            "index": partial(index.self_join, eps),
            "pairs": partial(tree.query_pairs, eps, output_type="ndarray"),
            "grown": lambda points=points, eps=eps: Index(points).self_join(eps),
            "grown pairs": lambda points=points, eps=eps: cKDTree(points).query_pairs(
                eps, output_type="ndarray"
            ),
            "without": partial(self_join, points, eps),
        }
        found = in_turn(rounds, works)
        n_pairs = len(index.self_join(eps).left)
        if n_pairs != len(tree.query_pairs(eps)):
            raise ValueError(f"{n_pairs} pairs in {d} columns, not as many as SciPy finds")
        ratios = [one / other for one, other in zip(found["index"], found["pairs"], strict=True)]
        holds = "holds" if statistics.median(ratios) <= 1.0 else "does not hold"
        ours, theirs, *others = (spread(each) for each in found.values())
        ratio = f"{statistics.median(ratios):.2f}"
        rows.append([str(d), f"{n_pairs:,}", ours, theirs, ratio, *others, holds])
    head = ["columns", "pairs", "index", "`query_pairs`", "ratio", "with growing", "SciPy's with growing"]
    return table([*head, "`epsjoin.self_join`", "ratio at most 1"], rows)


def nothing_kept(rounds: int) -> list[str]:
    rows = []
    for d in FEW_COLUMNS:
        for n in FEW_ROWS:
            points = np.random.default_rng(4).random((n, d))
            others = np.random.default_rng(5).random((n, d))
            fifth = cKDTree(points).query(points, min(n, 6))[0][:, -1]
            eps = 0.8 * float(np.median(fifth))
            works = {
                "self": partial(self_join, points, eps),
                "scipy self": partial(_pairs_of_one, points, eps),
                "two": partial(join, points, others, eps),
                "scipy two": partial(_pairs_of_two, points, others, eps),
            }
            found = in_turn(rounds, works, max(5, min(_CALLS, 200_000 // (n * d))))
            n_pairs = len(self_join(points, eps).left)
            if n_pairs != len(_pairs_of_one(points, eps)):
                raise ValueError(f"{n_pairs} pairs of {n} rows in {d} columns, not as many as SciPy finds")
            ours, theirs, of_two, theirs_of_two = (statistics.median(each) for each in found.values())
            times = [f"{theirs / ours:.2f}", f"{theirs_of_two / of_two:.2f}"]
            one, its, two, their = (spread(each) for each in found.values())
            rows.append([f"{n:,}", str(d), f"{n_pairs:,}", one, its, times[0], two, their, times[1]])
    head = ["rows", "columns", "pairs", "`self_join`", "SciPy", "times faster", "`join`", "SciPy"]
    return table([*head, "times faster"], rows)


def nearest_of_few_rows(rounds: int) -> list[str]:
    rows = []
    for d in FEW_COLUMNS:
        for n in FEW_ROWS:
            points = np.random.default_rng(4).random((n, d))
            others = np.random.default_rng(5).random((n, d))
            works = {
                "own": partial(knn_join, None, points, NEAREST),
                "scipy own": partial(_nearest_of_one, points),
                "two": partial(knn_join, points, others, NEAREST),
                "scipy two": partial(_nearest_of_two, points, others),
            }
            found = in_turn(rounds, works, max(5, min(_CALLS, 200_000 // (n * d))))
            if not np.array_equal(
                knn_join(points, others, NEAREST).neighbour, _nearest_of_two(points, others)[1]
            ):
                raise ValueError(f"of {n} rows in {d} columns SciPy finds other neighbours")
            ours, theirs, of_two, theirs_of_two = (statistics.median(each) for each in found.values())
            times = [f"{theirs / ours:.2f}", f"{theirs_of_two / of_two:.2f}"]
            one, its, two, their = (spread(each) for each in found.values())
            rows.append([f"{n:,}", str(d), one, its, times[0], two, their, times[1]])
    head = ["rows", "columns", "`knn_join(None, ...)`", "SciPy", "times faster", "`knn_join`", "SciPy"]
    return table([*head, "times faster"], rows)


def _nearest_of_one(points: np.ndarray) -> Any:
    return cKDTree(points).query(points, NEAREST + 1)


def _nearest_of_two(queries: np.ndarray, points: np.ndarray) -> Any:
    return cKDTree(points).query(queries, NEAREST)


def _pairs_of_one(points: np.ndarray, eps: float) -> np.ndarray:
    return cKDTree(points).query_pairs(eps, output_type="ndarray")


def _pairs_of_two(points: np.ndarray, others: np.ndarray, eps: float) -> np.ndarray:
    return cKDTree(points).sparse_distance_matrix(cKDTree(others), eps, output_type="ndarray")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="fewer print only")
    rounds = parser.parse_args(arguments).rounds
    lines = [
        f"Measured on {machine()}. CPU µs of a call, the median of {rounds} rounds (least – greatest).",
        "",
        "### One query, 10,000 rows",
        "",
        *one_query(rounds),
        "",
        "### A call on 10 rows",
        "",
        *few_rows(rounds),
        "",
        "### All pairs of 1,000 rows",
        "",
        *whole_self_join(rounds),
        "",
        "### Nothing kept: all pairs of few rows",
        "",
        *nothing_kept(rounds),
        "",
        f"### Nothing kept: the {NEAREST} nearest of few rows",
        "",
        *nearest_of_few_rows(rounds),
    ]
    if rounds >= 7:
        put(PAGE, "\n".join(lines))
    else:
        sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
