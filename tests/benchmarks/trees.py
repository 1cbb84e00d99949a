"""``make bench-trees``: what filters let through, what comparing costs, beside others where they are there.

The figures are those of Kailing, Kriegel, Schönauer, Seidl (EDBT 2004): F9 filters, F10 bins, F11 growth. The
trees are the functions of this Python's standard library, as syntax trees; their number depends on its
version.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gzip
import importlib
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from epsjoin import Trees, iter_self_join, string_join, tree_join
from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.trees.bounds import DEGREE, HEIGHT, fill_bounds
from epsjoin.kernels.trees.distance import fill_distances
from epsjoin.local.trees.prepared import PreparedTrees, TreeOptions, check_options, prepare

from .measure import clocked
from .page import count, machine, put, table

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = "benchmarks/trees.md"
K = 4
NODES = (8, 80)
_NAMES = ("name", "id", "attr", "arg", "module", "value", "n", "s")


def functions(most: int | None = None) -> Trees:
    """The functions of the standard library of 8 to 80 nodes, but for its tests, in the order of files."""
    library = Path(sysconfig.get_paths()["stdlib"])
    nested: list[list[Any]] = []
    for file in sorted(library.rglob("*.py")):
        folders = file.relative_to(library).parts[:-1]
        if {"test", "tests", "site-packages", "idle_test"} & set(folders):
            continue
        try:
            module = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):  # templates and examples of errors
            continue
        found = (
            node for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        )
        nested += [tree for node in found if NODES[0] <= _size(tree := _as_lists(node)) <= NODES[1]]
        if most is not None and len(nested) >= most:
            break
    return Trees.from_nested(nested[:most])


def _as_lists(node: ast.AST) -> list[Any]:
    """A syntax tree as nested lists: kinds of nodes, with the names and values in them; no contexts."""
    words = [type(node).__name__]
    for field in _NAMES:
        value = getattr(node, field, None)
        if isinstance(value, (str, bytes, int, float, complex)):
            words.append(repr(value))
    below = (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context))
    return [" ".join(words), *map(_as_lists, below)]


def names(number: int) -> list[str]:
    """Names of the first cities of GeoNames."""
    file = Path(__file__).resolve().parents[1] / "data" / "cities" / "geonames_cities1000.csv.gz"
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = csv.DictReader(lines)
        return [next(rows)["name"] for _ in range(number)]


def _size(tree: list[Any]) -> int:
    return 1 + sum(map(_size, tree[1:]))


class Filters:
    """The filters of one set of trees, each as a join of points."""

    def __init__(self, trees: Trees, k: int, label_bins: int = 32) -> None:
        self.k, self.options = k, check_options(False, 1, 1, (16, label_bins))
        self.prepared = prepare(trees, self.options)

    def through(self, name: str) -> int:
        """How many pairs a filter lets through."""
        histograms, k = self.prepared.histograms, self.k
        points: dict[str, tuple[Any, float]] = {
            "size": (histograms.size[:, None], k),
            "height": (histograms.height, k),
            "degree": (histograms.degree, 3 * k),
            "label": (histograms.label, 2 * k),
            "height, label": (histograms.label, 2 * k),
            "height, degree, label (the paper's)": (histograms.label, 2 * k),
            "sum of height and label (ours)": (self.prepared.points(self.options.costs), 2 * k),
        }
        values, eps = points[name]
        columns = {"height, label": [HEIGHT], "height, degree, label (the paper's)": [HEIGHT, DEGREE]}.get(
            name
        )
        found = 0
        for left, right, _ in iter_self_join(np.asarray(values, np.float64), eps, "manhattan"):
            if columns is None:
                found += len(left)
                continue
            bounds = np.empty((len(left), 5), np.int64)
            fill_bounds(histograms, left, histograms, right, self.options.costs, bounds)
            found += int(np.count_nonzero((bounds[:, columns] <= k).all(axis=1)))
        return found


FILTERS = (
    "size",
    "degree",
    "height",
    "label",
    "height, label",
    "height, degree, label (the paper's)",
    "sum of height and label (ours)",
)


def figure_9(trees: Trees) -> list[str]:
    filters = Filters(trees, K)
    rows = []
    for name in FILTERS:
        seconds, _, through = clocked(lambda name=name: filters.through(name))
        rows.append([name, count(through), f"{seconds:.1f}"])
    return [
        "### Figure 9: filters",
        "",
        f"Pairs of {count(len(trees))} functions that a filter lets through at k = {K}, and CPU seconds.",
        "",
        *table(["filter", "candidates", "CPU s"], rows),
    ]


def figure_10(trees: Trees) -> list[str]:
    rows = []
    for bins in (4, 8, 16, 32, 64, 128):
        filters = Filters(trees, K, bins)
        seconds, _, through = clocked(lambda f=filters: f.through(FILTERS[-1]))
        rows.append([str(bins), count(through), f"{seconds:.1f}"])
    return [
        "### Figure 10: bins of the labels",
        "",
        "Candidates of our filter; heights have 16 bins.",
        "",
        *table(["bins", "candidates", "CPU s"], rows),
    ]


def figure_11(trees: Trees) -> list[str]:
    rows = []
    random = np.random.default_rng(0)
    for part in (4, 2, 1):
        n = len(trees) // part
        some = trees.take(np.sort(random.permutation(len(trees))[:n]))
        counters: dict[str, int] = {}
        seconds, _, pairs = clocked(lambda s=some, c=counters: tree_join(s, K, counters=c))
        share = counters["candidates"] / (n * (n - 1) / 2)
        rows.append(
            [
                count(n),
                count(counters["candidates"]),
                f"{100 * share:.2f} %",
                count(len(pairs.left)),
                f"{seconds:.1f}",
            ]
        )
    return [
        "### Figure 11: growth",
        "",
        f"The whole join at k = {K}: candidates, their share, pairs, CPU seconds. Equal functions",
        "are grouped, so candidates are pairs of different ones.",
        "",
        *table(["functions", "candidates", "of all pairs", "pairs", "CPU s"], rows),
    ]


def _ours(prepared: PreparedTrees, i: Ints, j: Ints, limit: int, options: TreeOptions) -> float:
    """CPU microseconds of a pair."""
    distances = np.empty(len(i), np.int64)
    trees = prepared.subtrees

    def work() -> None:
        fill_distances(trees, i, trees, j, options.costs, limit, options.may_cancel, distances)

    return 1e6 * clocked(work).cpu / len(i)


def _brackets(trees: Trees, row: int) -> str:
    """A tree in bracket notation, its labels as numbers: APTED's parser knows no escapes."""
    (tree,) = (trees.take([row]),)
    open_nodes: list[tuple[str, int]] = []
    for node in range(len(tree.size)):
        below = ""
        while open_nodes and open_nodes[-1][1] > node - tree.size[node]:
            below = open_nodes.pop()[0] + below
        open_nodes.append((f"{{{tree.label[node]}{below}}}", node))
    return open_nodes[0][0]


def _peers() -> Iterator[tuple[str, Callable[[str, str], float]]]:
    """Packages that compare two trees in brackets, as far as they are installed."""
    try:
        apted, helpers = importlib.import_module("apted"), importlib.import_module("apted.helpers")
    except ImportError:
        return
    yield (
        "APTED",
        lambda a, b: apted.APTED(
            helpers.Tree.from_text(a), helpers.Tree.from_text(b)
        ).compute_edit_distance(),
    )


def comparing(trees: Trees, n_pairs: int) -> list[str]:
    near = tree_join(trees, K)
    random = np.random.default_rng(1)
    chosen = random.permutation(np.flatnonzero(near.distance > 0))[:20_000]
    sets = {
        f"pairs within {K} edits": (near.left[chosen], near.right[chosen], K),
        "random pairs": (*random.integers(0, len(trees), (2, 20_000)), 10_000),
    }
    rows = []
    for name, (i, j, limit) in sets.items():
        nodes = float(np.mean((trees.n_nodes[i] + trees.n_nodes[j]) / 2))
        cells = [name, f"{nodes:.0f}"]
        for ordered in (False, True):
            options = check_options(ordered, 1, 1)
            prepared = prepare(trees, options)
            _ours(prepared, i[:10], j[:10], limit, options)
            cells.append(f"{_ours(prepared, i, j, limit, options):.1f}")
        ours = float(cells[2])
        peers = dict(_peers())
        for compare in peers.values():
            some = zip(i[:n_pairs].tolist(), j[:n_pairs].tolist(), strict=True)
            texts = [(_brackets(trees, a), _brackets(trees, b)) for a, b in some]
            seconds = clocked(lambda t=texts, c=compare: [c(a, b) for a, b in t]).cpu
            each = 1e6 * seconds / len(texts)
            cells += [f"{each:,.0f}", f"{each / ours:,.0f}x"]
        rows.append(cells + ["not installed", "-"] * (not peers))
    return [
        "### Comparing a pair",
        "",
        f"CPU microseconds per pair. Ours: bounded by {K} for pairs within it, unbounded for random ones.",
        "",
        *table(["pairs", "mean nodes", "unordered", "ordered", "APTED, ordered", "APTED / unordered"], rows),
    ]


def strings(n: int, k: int) -> list[str]:
    given = names(n)
    string_join(given[:100], k)
    counters: dict[str, int] = {}
    seconds, _, pairs = clocked(lambda: string_join(given, k, counters=counters))
    rows = [["string_join", f"{seconds:.2f}", "1x", count(len(pairs.left))]]
    try:
        distance = importlib.import_module("rapidfuzz.distance").Levenshtein.distance
    except ImportError:
        rows.append(["rapidfuzz", "not installed", "-", "-"])
    else:

        def loop() -> int:
            found = 0
            for i, a in enumerate(given):
                for b in given[i + 1 :]:
                    found += distance(a, b, score_cutoff=k) <= k
            return found

        peer, _, found = clocked(loop)
        rows.append(
            ["rapidfuzz, a loop over all pairs", f"{peer:.1f}", f"{peer / seconds:.0f}x", count(found)]
        )
    return [
        "### Strings",
        "",
        f"{count(n)} names of GeoNames within {k} edits: CPU seconds, and pairs found. Of the pairs of",
        f"different names, {count(counters['candidates'])} were candidates.",
        "",
        *table(["by", "CPU s", "of ours", "pairs"], rows),
    ]


def main(arguments: list[str] | None = None, docs: Path = DOCS) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--trees", type=int, help="takes so many functions, a tenth as many names, and prints"
    )
    parser.add_argument("--pairs", type=int, default=200, help="that the others compare")
    wished = parser.parse_args(arguments)
    trees = functions(wished.trees)
    text = [f"Measured on {machine()}."]
    n_names = 20_000 if wished.trees is None else wished.trees // 10
    for part in (
        lambda: figure_9(trees),
        lambda: figure_10(trees),
        lambda: figure_11(trees),
        lambda: comparing(trees, wished.pairs),
        lambda: strings(n_names, 2),
    ):
        text += ["", *part()]
    if wished.trees is None:
        put(docs / PAGE, "\n".join(text))
    else:
        print("\n".join(text))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
