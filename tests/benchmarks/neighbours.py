"""``make bench ONLY=neighbours``: the k nearest and LOF of every point, against trees of other libraries."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsjoin import knn_join, lof
from epsjoin.kernels.distances import EARTH_RADIUS_KM
from open_sets import numbers

from .contenders import Contender
from .measure import Call, race
from .page import seconds, spread, table
from .questions import Answer, medians, ratios, stored
from .sets import BY_NAME, Points, Set, subspace, uniform

K = 10
MINE = "epsjoin"


def lognormal(n: int) -> Points:
    """Dense in one corner, ever sparser away from it."""
    points: Points = np.random.default_rng(7).lognormal(0.0, 3.0, (n, 2))
    return points


def first_cities(n: int) -> Points:
    return numbers("cities")[:n].copy()


EPS = 1.0  # nothing here asks for it
SETS = (
    Set("uni2-200k", "uniform", partial(uniform, 200_000, 2), EPS),
    Set("uni3-200k", "uniform", partial(uniform, 200_000, 3), EPS),
    Set("lognormal2", "skewed", partial(lognormal, 200_000), EPS),
    BY_NAME["landmarks"],
    BY_NAME["skin"],
    Set("uni8-50k", "uniform", partial(uniform, 50_000, 8), EPS),
    Set("sub9", "a cube and noise", partial(subspace, 50_000, 9), EPS),
    Set("magic", "gamma rays in a telescope", partial(numbers, "magic"), EPS),
    BY_NAME["pendigits"],
    BY_NAME["landsat"],
    BY_NAME["digits"],
    Set("sub100", "a cube and noise", partial(subspace, 20_000, 100), EPS),
    Set("cities-20k", "cities of the world, km", partial(first_cities, 20_000), EPS, "haversine"),
    BY_NAME["navaids"],
)

KDistances = NDArray[np.float64]


def my_nearest(points: Points, _: float, metric: str) -> KDistances:
    return knn_join(None, points, K, metric).distance[:, -1]


def my_lof(points: Points, _: float, metric: str) -> KDistances:
    return lof(points, K, metric, added_distance=1e-10).k_distance


def ckdtree_nearest(points: Points, _: float) -> KDistances:
    from scipy.spatial import cKDTree

    found: KDistances = cKDTree(points).query(points, K + 1)[0][:, -1]
    return found


def kdtree_nearest(points: Points, _: float) -> KDistances:
    from sklearn.neighbors import KDTree

    found: KDistances = KDTree(points).query(points, K + 1)[0][:, -1]
    return found


def balltree_nearest(points: Points, _: float) -> KDistances:
    from sklearn.neighbors import BallTree

    radians = np.radians(points)
    found: KDistances = BallTree(radians, metric="haversine").query(radians, K + 1)[0][:, -1]
    return found * EARTH_RADIUS_KM


def sklearn_lof(points: Points, _: float, metric: str) -> KDistances:
    from sklearn.neighbors import LocalOutlierFactor

    is_sphere = metric == "haversine"
    model = LocalOutlierFactor(K, algorithm="ball_tree" if is_sphere else "kd_tree", metric=metric)
    model.fit(np.radians(points) if is_sphere else points)
    found: KDistances = model._distances_fit_X_[:, -1] * (EARTH_RADIUS_KM if is_sphere else 1.0)
    return found


def contenders(chosen: Set) -> dict[str, Mapping[str, Contender]]:
    """Who is measured, for the nearest and for LOF; ours last."""
    peers: dict[str, Contender] = {"cKDTree": ckdtree_nearest, "KDTree": kdtree_nearest}
    if chosen.metric == "haversine":
        peers = {"BallTree": balltree_nearest}
    return {
        "nearest": {**peers, MINE: partial(my_nearest, metric=chosen.metric)},
        "lof": {
            "scikit-learn": partial(sklearn_lof, metric=chosen.metric),
            MINE: partial(my_lof, metric=chosen.metric),
        },
    }


def neighbours(
    call: Call,
    sets: Sequence[Set] = SETS,
    rounds: int | None = None,
    of_set: Callable[[Set], dict[str, Mapping[str, Contender]]] = contenders,
) -> Answer:
    """The k nearest and LOF: CPU against the best peer."""
    answer, rows = Answer(f"The {K} nearest of every point, and LOF, one thread", []), []
    for chosen in sets:
        cells: list[str] = []
        with stored(call, chosen) as points:
            for who in of_set(chosen).values():
                timings = call(race, who, points.file, points.eps, rounds or 3)
                cpu = medians(timings)
                peer = min((name for name in who if name != MINE), key=cpu.__getitem__)
                is_right = _agree([run.answer for one in timings for run in one.values()])
                answer.is_right &= is_right
                times = f"**{spread(ratios(timings, peer, MINE))}**"
                cells += [peer, f"{seconds(cpu[peer])} / {seconds(cpu[MINE])}"]
                cells.append(times if is_right else f"{times} **DIFFERENT**")
        rows.append([f"{chosen.name}: {chosen.what}", points.size, cells[0], cells[1], cells[2], *cells[4:]])
        print(f"neighbours {chosen.name}: {cells[2]}, LOF {cells[5]}", file=sys.stderr, flush=True)
    head = ["set", "n × d", "best peer", "nearest, CPU s: peer / epsjoin", "times faster"]
    answer.lines = [
        "Peers build their tree and ask it for the k nearest of its own points: cKDTree of SciPy and KDTree "
        "of scikit-learn, of which the faster one counts, BallTree on the sphere. LOF is scikit-learn's by "
        "its tree. All k-distances agree, or the row says so.",
        "",
        *table([*head, "LOF, CPU s: scikit-learn / epsjoin", "times faster"], rows),
    ]
    return answer


def _agree(found: Sequence[Any]) -> bool:
    """Whether all k-distances are the same but for rounding."""
    return all(np.allclose(found[0], other, rtol=1e-7, atol=1e-9) for other in found[1:])
