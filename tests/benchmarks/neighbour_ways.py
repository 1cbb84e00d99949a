"""What the k nearest cost by products of matrices and by a tree, and which of the two is chosen.

``PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.neighbour_ways`` prints a line for each set: CPU
milliseconds of each way, forced, the median of three calls, and those that the choice expects. The constants
of ``epsjoin.local.neighbours.product_choice`` follow from them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple
from unittest import mock

import numpy as np

import epsjoin
from epsjoin.local.neighbours import product_choice
from epsjoin.local.neighbours.product_choice import expected_nanoseconds

from .measure import in_own_process
from .neighbours import SETS
from .sets import BY_NAME, Points

K = 10
ROUNDS = 3


class Way(NamedTuple):
    """CPU milliseconds of a way, and what the choice has expected of products and of the tree."""

    taken: float
    of_products: float
    of_tree: float


def sets() -> Iterator[tuple[str, Points | None, Points]]:
    """Names, queries (None: the points themselves) and points of 36 to 384 dimensions."""
    random = np.random.default_rng(1)
    for name in ("landsat", "digits"):
        yield name, None, BY_NAME[name].make()
    yield "sub100", None, next(one for one in SETS if one.name == "sub100").make()
    plane = random.standard_normal((3_000, 20)) @ random.standard_normal((20, 48))
    yield "a plane of 20 in 48 dimensions", None, plane + 0.3 * random.standard_normal(plane.shape)
    yield "noise, 40 dimensions", None, random.standard_normal((5_000, 40))
    yield "noise, 384 dimensions", random.standard_normal((2_000, 384)), random.standard_normal((8_000, 384))


def take(queries: Points | None, points: Points, is_product: bool | None) -> Way:
    """Ask for the ``K`` nearest by products, without them, or as is chosen (None), which compiles first."""
    expected = (0.0, 0.0)
    plain = product_choice.is_cheaper

    def is_cheaper(*arguments: object) -> bool:
        nonlocal expected
        expected = expected_nanoseconds(*arguments)
        return plain(*arguments) if is_product is None else is_product

    taken = []
    with mock.patch.object(product_choice, "is_cheaper", is_cheaper):
        for _ in range(1 + ROUNDS):
            began = time.process_time()
            epsjoin.knn_join(queries, points, K)
            taken.append(time.process_time() - began)
    return Way(statistics.median(taken[1:]) * 1e3, expected[0] / 1e6, expected[1] / 1e6)


def show_all() -> None:
    """Print the line of each set."""
    print("| set | products ms | expected | tree ms | expected | as chosen ms |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, queries, points in sets():
        by_product, by_tree, chosen = (take(queries, points, way) for way in (True, False, None))
        cells = by_product.taken, by_product.of_products, by_tree.taken, by_tree.of_tree, chosen.taken
        print(f"| {name} | {' | '.join(f'{cell:.0f}' for cell in cells)} |", flush=True)


if __name__ == "__main__":
    in_own_process(show_all)
