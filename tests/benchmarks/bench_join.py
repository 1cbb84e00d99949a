"""The library's self join against scipy's cKDTree, interleaved in one process; prints a Markdown table.

``make bench``, or ``python tests/benchmarks/bench_join.py --rounds 5 --only cad16``. One thread each;
planning is counted, imports and compiling are not. Pair counts must agree, or the row says so and the exit
code is 1.
Machines are noisy: read the ratio, and the spread beside it.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from epsjoin.local.join import iter_self_join

DATA = Path(__file__).resolve().parents[1] / "data"


def uniform(n: int, d: int) -> NDArray[np.float64]:
    return np.random.default_rng(0).random((n, d))


def cad(n: int) -> NDArray[np.float64]:
    """16 smooth functions of a clustered 3-d position, and noise: correlated, of low intrinsic dimension."""
    random = np.random.default_rng(1)
    centres = random.random((200, 3))
    scales = random.uniform(0.02, 0.12, 200)
    cluster = random.choice(200, n, p=random.dirichlet(np.full(200, 0.7)))
    position = centres[cluster] + random.normal(size=(n, 3)) * scales[cluster, None]
    waves = np.sin(position @ (random.normal(size=(3, 48)) * 2) + random.uniform(0, 2 * np.pi, 48))
    x = (
        waves @ (random.normal(size=(48, 16)) / 7 * np.exp(-np.arange(16) / 8))
        + random.normal(size=(n, 16)) * 1e-3
    )
    return (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0)).max()


def landmarks() -> NDArray[np.float64]:
    with gzip.open(DATA / "landmarks" / "tiger_arealm_points.csv.gz", "rt") as lines:
        return np.array(list(csv.reader(lines))[1:], dtype=np.float64)


SETS: dict[str, tuple[Callable[[], NDArray[np.float64]], float]] = {
    "uni2 200k x 2": (lambda: uniform(200_000, 2), 0.0028),
    "uni8 50k x 8": (lambda: uniform(50_000, 8), 0.26),
    "cad16 100k x 16": (lambda: cad(100_000), 0.01),
    "landmarks 122k x 2": (landmarks, 0.0123457),
}


def by_epsjoin(points: NDArray[np.float64], eps: float) -> int:
    return sum(len(batch.left) for batch in iter_self_join(points, eps))


def by_ckdtree(points: NDArray[np.float64], eps: float) -> int:
    return len(cKDTree(points).query_pairs(eps, output_type="ndarray"))


def cpu_seconds(
    join: Callable[[NDArray[np.float64], float], int], points: NDArray[np.float64], eps: float
) -> tuple[float, int]:
    began = time.process_time()
    pairs = join(points, eps)
    return time.process_time() - began, pairs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="sets whose name contains this")
    arguments = parser.parse_args()
    by_epsjoin(uniform(2_000, 3), 0.1)  # compile
    machine = platform.processor() or platform.machine()
    print(f"{machine}, Python {platform.python_version()}, {arguments.rounds} rounds\n")
    print("| set | eps | pairs | cKDTree CPU s | epsjoin CPU s | cKDTree / epsjoin (least to most) |")
    print("|---|---|---|---|---|---|")
    is_right = True
    for name, (make, eps) in SETS.items():
        if arguments.only not in name:
            continue
        points = make()
        rounds = [
            (cpu_seconds(by_ckdtree, points, eps), cpu_seconds(by_epsjoin, points, eps))
            for _ in range(arguments.rounds)
        ]
        agree = {pairs for both in rounds for _, pairs in both}
        is_right &= len(agree) == 1
        peer, mine = (statistics.median(both[i][0] for both in rounds) for i in (0, 1))
        ratios = sorted(both[0][0] / both[1][0] for both in rounds)
        pairs = f"{agree.pop():,}" if len(agree) == 1 else f"DIFFERENT: {sorted(agree)}"
        print(
            f"| {name} | {eps:g} | {pairs} | {peer:.2f} | {mine:.2f} "
            f"| {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |",
            flush=True,
        )
    return 0 if is_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
