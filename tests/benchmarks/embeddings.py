"""``make bench-embeddings``: joins and nearest neighbours of embeddings beside a plain product of matrices.

Sets: noise without structure, and the real features of tests/data, mixed with their neighbours and blown up
by a fixed random network to 384 dimensions in float32. The plain product is what people write: unit vectors,
blocks of 1,024 rows, ``np.matmul`` in float32, a threshold. Packages that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

import epsjoin
from epsjoin.local.join import by_product
from open_sets import numbers

from .measure import growth_bytes, in_own_process, timed
from .page import count, machine, megabytes, put, seconds, spread, table

Rows = NDArray[np.float32]
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = "benchmarks/embeddings.md"
DIMENSIONS, BLOCK, K = 384, 1024, 10
SETS = {
    "noise": 0.82,
    "noise, small eps": 0.3,
    "digits": 0.025,
    "optdigits": 0.05,
    "landsat": 0.003,
}
"""eps of the cosine for each set."""


def features(name: str) -> NDArray[np.float64]:
    """The real features of a set, in units of their spread."""
    rows = numbers(name)
    scaled: NDArray[np.float64] = (rows - rows.mean(axis=0)) / rows.std()
    return scaled


def embeddings(name: str, n: int) -> tuple[Rows, Rows]:
    """Two tables of n embeddings."""
    random = np.random.default_rng(0)
    if name.startswith("noise"):
        made = random.standard_normal((2 * n, DIMENSIONS), np.float32)
        return made[:n], made[n:]
    rows = features(name)
    near = cKDTree(rows).query(rows, k=6)[1]
    first = random.integers(0, len(rows), 2 * n)
    second, fraction = near[first, random.integers(1, 6, 2 * n)], random.random((2 * n, 1))
    mixed = rows[first] * fraction + rows[second] * (1.0 - fraction)
    inner = random.standard_normal((rows.shape[1], 256)) / np.sqrt(rows.shape[1])
    outer = random.standard_normal((256, DIMENSIONS)) / 16.0
    made = (np.tanh(mixed @ inner) @ outer).astype(np.float32)
    return made[:n], made[n:]


def _unit(rows: Rows) -> Rows:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def plain_join(left: Rows, right: Rows, eps: float) -> int:
    """Pairs by the plain product."""
    x, y, out = _unit(left), _unit(right), np.empty(BLOCK * BLOCK, np.float32)
    found = []
    for i in range(0, len(x), BLOCK):
        for j in range(0, len(y), BLOCK):
            a, b = x[i : i + BLOCK], y[j : j + BLOCK]
            products = np.matmul(a, b.T, out=out[: len(a) * len(b)].reshape(len(a), len(b)))
            rows, columns = np.nonzero(products >= np.float32(1.0 - eps))
            found.append((rows + i, columns + j))
    return sum(len(rows) for rows, _ in found)


def plain_nearest(queries: Rows, points: Rows, k: int) -> NDArray[np.int64]:
    """The k nearest by the plain product."""
    x, y = _unit(queries), _unit(points)
    parts = [np.argpartition(-(x[i : i + BLOCK] @ y.T), k, axis=1)[:, :k] for i in range(0, len(x), BLOCK)]
    return np.concatenate(parts)


def our_join(left: Rows, right: Rows, eps: float) -> int:
    return len(epsjoin.join(left, right, eps, "cosine").left)


def swept_join(left: Rows, right: Rows, eps: float) -> int:
    """Our join without products, as it was before."""
    with patch.object(by_product, "MIN_DIMENSIONS", DIMENSIONS + 1):
        return our_join(left, right, eps)


def brute_join(left: Rows, right: Rows, eps: float) -> int:
    """Pairs by scikit-learn's brute force."""
    found = NearestNeighbors(algorithm="brute", metric="cosine").fit(right)
    return sum(map(len, found.radius_neighbors(left, eps, return_distance=False)))


def compare_joins(name: str, n: int, names: list[str], rounds: int) -> list[list[str]]:
    """A row for each contender; the ratio is CPU of the plain product over the contender's, of each round."""
    contenders = {"ours": our_join, "plain": plain_join, "swept": swept_join, "scikit-learn": brute_join}
    left, right = embeddings(name, n)
    eps = SETS[name]
    for each in names:
        contenders[each](left[:2000], right[:2000], eps)
    runs: list[dict[str, Any]] = []
    for number in range(rounds):
        order = names if number % 2 == 0 else names[::-1]
        runs.append({each: timed(lambda c=contenders[each]: c(left, right, eps)) for each in order})
    rows = []
    for each in names:
        cpu = float(np.median([run[each].cpu for run in runs]))
        ratio = [run["plain"].cpu / run[each].cpu for run in runs]
        peak = megabytes(growth_bytes(lambda c=contenders[each]: c(left, right, eps)))
        pairs = count(runs[0][each].answer)
        rows.append([name, count(n), f"{eps:g}", each, seconds(cpu), spread(ratio), peak, pairs])
    return rows


class Search(NamedTuple):
    """How a package makes its index of points, and finds the k nearest of queries with it."""

    make: Callable[[], Any]
    ask: Callable[[Any, Rows, int], Any]


def searches(points: Rows) -> dict[str, Search]:
    """Every package that is there."""

    def ours(index: Rows, queries: Rows, k: int) -> NDArray[np.int64]:
        if queries is index:
            return epsjoin.knn_join(None, index, k - 1, "cosine").neighbour
        return epsjoin.knn_join(queries, index, k, "cosine").neighbour

    made = {
        "ours": Search(lambda: points, ours),
        "plain": Search(lambda: points, lambda index, q, k: plain_nearest(q, index, k)),
    }
    n, d = points.shape
    if (faiss := _find("faiss")) is not None:

        def exact() -> Any:
            faiss.omp_set_num_threads(1)
            index = faiss.IndexFlatIP(d)
            index.add(_unit(points))
            return index

        made["faiss, exact flat"] = Search(exact, lambda index, q, k: index.search(_unit(q), k)[1])
    if (hnswlib := _find("hnswlib")) is not None:

        def graph() -> Any:
            index = hnswlib.Index("cosine", d)
            index.init_index(n, ef_construction=100, M=16, random_seed=0)
            index.set_num_threads(1)
            index.add_items(points)
            index.set_ef(50)
            return index

        made["hnswlib, M=16, ef=50"] = Search(graph, lambda index, q, k: index.knn_query(q, k)[0])
    if (pynndescent := _find("pynndescent")) is not None:

        def descent() -> Any:
            index = pynndescent.NNDescent(points, "cosine", n_neighbors=30, random_state=0, n_jobs=1)
            index.prepare()
            return index

        made["pynndescent, n_neighbors=30"] = Search(descent, lambda index, q, k: index.query(q, k)[0])
    return made


def _find(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def compare_searches(name: str, n: int, rounds: int, is_own: bool) -> list[list[str]]:
    """A row for each package: CPU seconds to make the index and to ask, and how many neighbours are right.

    The queries are other rows, or all the points: then packages are asked for one neighbour more, since they
    find the point itself, too.
    """
    others, points = embeddings(name, n)
    queries, k = (points, K + 1) if is_own else (others[: n // 4], K)
    truth = epsjoin.knn_join(None if is_own else queries, points, K, "cosine").neighbour.tolist()
    for make, ask in searches(points[:2000]).values():
        ask(make(), queries[:2000], k)  # compiles
    contenders = searches(points)
    made = {package: timed(make) for package, (make, _) in contenders.items()}
    asked: dict[str, list[Any]] = {package: [] for package in contenders}
    for number in range(rounds):
        for package in list(contenders)[:: 1 if number % 2 == 0 else -1]:
            ask, index = contenders[package].ask, made[package].answer
            asked[package].append(timed(lambda a=ask, i=index: a(i, queries, k)))
    rows = []
    for package, takes in asked.items():
        answer = np.asarray(takes[0].answer).tolist()
        itself: list[set[int]] = [{row} if is_own else set() for row in range(len(truth))]
        right = sum(len((set(b) - i) & set(a)) for a, b, i in zip(truth, answer, itself, strict=True))
        ratio = spread([plain.cpu / it.cpu for plain, it in zip(asked["plain"], takes, strict=True)])
        cpu = seconds(float(np.median([it.cpu for it in takes])))
        rows.append(
            [name, package, seconds(made[package].cpu), cpu, ratio, f"{right / (K * len(truth)):.4f}"]
        )
    return rows


def main(arguments: list[str] | None = None, docs: Path = DOCS) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="takes so many rows of each table, and prints")
    parser.add_argument("--rounds", type=int, default=3)
    wished = parser.parse_args(arguments)
    n = wished.rows or 20_000
    joins: list[list[str]] = []
    for name in SETS:
        joins += in_own_process(compare_joins, name, n, ["ours", "plain"], wished.rounds)
    peers: list[list[str]] = []
    for name in ("noise", "digits"):
        names = ["ours", "plain", "swept", "scikit-learn"]
        peers += in_own_process(compare_joins, name, n // 5, names, 1)
    large: list[list[str]] = []
    for name in ("noise", "digits"):
        large += in_own_process(compare_joins, name, n * 5 // 2, ["ours", "plain"], 1)
    found: dict[bool, list[list[str]]] = {False: [], True: []}
    for is_own, rows in found.items():
        for name in ("noise", "digits"):
            rows += in_own_process(compare_searches, name, n, wished.rounds, is_own)
    head = ["set", "rows of each table", "eps", "by", "CPU s", "plain / it", "MB", "pairs"]
    of_searches = ["set", "by", "CPU s to make", "CPU s to ask", "plain / it", "recall"]
    text = [
        f"Measured on {machine()}, one thread.",
        *("", "### Joins by cosine", "", *table(head, joins)),
        *("", "### Larger tables, one run each", "", *table(head, large)),
        *("", "### Beside a sweep and brute force", "", *table(head, peers)),
        *("", f"### The {K} nearest of {count(n // 4)} queries among {count(n)} points", ""),
        *table(of_searches, found[False]),
        *("", f"### The {K} nearest of {count(n)} points among themselves", ""),
        *table(of_searches, found[True]),
    ]
    if wished.rows is None:
        put(docs / PAGE, "\n".join(text))
    else:
        print("\n".join(text))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
