"""Points whose nearest are looked for, and the ways to find them, each of which a test can force."""

from __future__ import annotations

from contextlib import contextmanager
from unittest import mock

import numpy as np
from hypothesis import strategies as st

from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours import by_joins, search
from oracles import join as join_twin

SEEDS = st.integers(0, 10**6)
ROUNDED_ONCE = ("euclidean", "manhattan", "chebyshev")  # the same bits from every correct formula


@contextmanager
def many_joins(queries=4, points=16):
    """By joins even where so few points would be scanned."""
    always = {"_are_few": lambda *_: False, "is_worth_it": lambda *_: True}
    with (
        mock.patch.multiple(search, _SAMPLE_QUERIES=queries, **always),
        mock.patch.object(by_joins, "_SAMPLE_POINTS", points),
    ):
        yield


WAYS = {
    "scan": {},
    "tree": {"_are_few": lambda *_: False},
    "scan after a sample": {
        "_are_few": lambda *_: False,
        "_FEW_DIMENSIONS": 0,
        "_SAMPLE_QUERIES": 4,
        "SCAN_FRACTION": 0.0,
    },
    "joins": None,
}
"""Ways to search, and what makes so few points go there."""


def by(way):
    return (
        many_joins()
        if way == "joins"
        else mock.patch.multiple(search, **{"SCAN_FRACTION": 1 / 4, **WAYS[way]})
    )


def chosen(name):
    return get_metric(name, 2.5 if name == "minkowski" else None)


def points_for(name, kind, n, d, seed):
    points, _ = join_twin.awkward_points(kind, n, d, seed)
    if name == "haversine":
        random = np.random.default_rng(seed)
        whole = np.column_stack((random.integers(-3, 4, n), random.integers(-12, 13, n))) * 30.0
        near = random.normal(size=(n, 2)) * 0.01
        return whole if kind in ("lattice", "few") else np.clip(whole + near, -90, 90)
    return points + 1.0 if name == "cosine" else points  # no vector of length 0
