"""Streams of best matches for the tests: rows in every order, pushed in any interleaving."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from epsjoin.local.bestmatch.batch import BestPairs
from epsjoin.local.bestmatch.stream import BestmatchStream
from epsjoin.local.bestmatch.watermarks import Order, Punctuated, ReadAhead, Sorted, Within

Rows = np.ndarray[Any, np.dtype[np.float64]]
HOWS = ("left", "right", "outer")
ORDERS = (Sorted(), Within(2.0), ReadAhead(3), Punctuated())


def as_set(best: BestPairs) -> set[tuple[object, ...]]:
    columns = (best.left.tolist(), best.right.tolist(), best.best_for.tolist(), best.values.tolist())
    rows = {(i, j, who, *map(repr, values)) for i, j, who, values in zip(*columns, strict=True)}
    assert len(rows) == len(best.left), "something came twice"
    return rows


def put_in_order(rows: Rows, order: Order, random: np.random.Generator) -> Rows:
    """The rows in some sequence that the order allows."""
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if isinstance(order, Sorted):
        return rows
    if isinstance(order, Within):  # each row is delayed by at most c
        return rows[np.argsort(rows[:, 0] + random.uniform(0, order.c, len(rows)), kind="stable")]
    # blocks of c rows in any sequence: fewer than c above any row come before it
    if isinstance(order, ReadAhead):
        blocks = [rows[first : first + order.c] for first in range(0, len(rows), order.c)]
        return np.concatenate([rows[:0], *(random.permutation(block) for block in blocks)])
    return random.permutation(rows)


def interleave(
    left: Rows, right: Rows, orders: tuple[Order, Order], random: np.random.Generator
) -> Iterator[Any]:
    """Pushes of random size from random sides; punctuated sides say what they know after some of them."""
    rows, places = {"left": left, "right": right}, {"left": 0, "right": 0}
    while any(places[side] < len(rows[side]) for side in places):
        side = str(random.choice(["left", "right"]))
        size = int(random.integers(0, 4))
        yield side, rows[side][places[side] : places[side] + size]
        places[side] = min(places[side] + size, len(rows[side]))
        rest = rows[side][places[side] :, 0]
        order = orders[side == "right"]
        if isinstance(order, Punctuated) and random.random() < 0.5:
            yield f"punctuate_{side}", math.nextafter(rest.min(), -math.inf) if len(rest) else math.inf


def run(stream: BestmatchStream[BestPairs], pushes: Iterator[Any]) -> Iterator[BestPairs]:
    for what, value in pushes:
        if what.startswith("punctuate"):
            yield getattr(stream, what)(value)
        else:
            yield getattr(stream, f"push_{what}")(value)
    yield stream.finish()


def lattice(random: np.random.Generator, n: int, d: int, span: int) -> Rows:
    points = random.integers(0, 5, (n, d)).astype(np.float64)
    points[:, 0] = random.integers(-span, span + 1, n)
    return points
