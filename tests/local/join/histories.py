"""Seeded histories: states that follow one another by small changes, with all that is hard about them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.local.metric import Metric, get_metric
from oracles import increment as twin

N_RUNS = 8
METRICS = (
    ("euclidean", 0.0),
    ("manhattan", 0.0),
    ("chebyshev", 0.0),
    ("minkowski", 3.0),
    ("cosine", 0.0),
    ("haversine", 0.0),
    ("haversine_radians", 0.0),
)
DIMENSIONS = (2, 3, 8, 17, 64)


class History(NamedTuple):
    """States one after another, and the metric and eps by which all are joined.

    Parameters
    ----------
    states : ids to points.
    eps : above 0; the distance of a pair where the first state has one, so that a tie is decided.
    """

    states: list[twin.State]
    eps: float
    metric: Metric
    p: float


def make_history(seed: int) -> History:
    """Make a history: points move, come, go and come back, on others, by a bit, or to the other zero."""
    random = np.random.default_rng(seed)
    metric, p = METRICS[seed % len(METRICS)]
    is_sphere = metric.startswith("haversine")
    d = 2 if is_sphere else int(random.choice(DIMENSIONS))
    is_lattice = bool(random.integers(2))

    def place() -> tuple[float, ...]:
        point = random.normal(size=d) + (0.0 if metric != "cosine" else 0.2)
        if is_lattice:
            point = np.round(point * 2.0) / 2.0
        if metric == "cosine" and not point.any():
            point[0] = 1.0
        if is_sphere:
            point = np.clip(point / 4.0, -1.5, 1.5) * (1.0 if metric.endswith("radians") else 50.0)
        return tuple(point.tolist())

    state = {int(id_): place() for id_ in random.choice(200, 24, replace=False) - 100}
    states, former = [state], dict(state)
    for _ in range(N_RUNS - 1):
        state = dict(state)
        ids = random.permutation(sorted(state)).tolist()
        n_moved, n_gone = random.integers(0, 4, 2).tolist()
        for id_ in ids[:n_gone]:
            del state[id_]
        for number, id_ in enumerate(ids[n_gone : n_gone + n_moved]):
            way = number % 4
            if way == 0:
                state[id_] = place()
            elif way == 1:  # onto another point
                state[id_] = state[ids[-1]]
            elif way == 2:  # by a bit of one coordinate
                state[id_] = (float(np.nextafter(state[id_][0], 0.0)), *state[id_][1:])
            else:  # back to where it was
                state[id_] = former[id_]
        for id_ in random.integers(-100, 130, random.integers(0, 4)).tolist():
            state.setdefault(id_, former.get(id_, place()))
        former |= state
        states.append(state)
    distances = sorted(set(twin.pairs_of(states[0], np.inf, metric, p).values()) - {0.0})
    eps = distances[int(len(distances) * random.uniform(0.02, 0.4))]
    return History(states, eps, get_metric(metric, p or None), p)


def columns_of(state: twin.State, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The points and ids of a state, in any order."""
    ids = random.permutation(sorted(state))
    return np.array([state[id_] for id_ in ids.tolist()]), ids
