"""A history of 12 runs in which it is known what happens to the clusters, and when."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EPS, MIN_PTS = 1.0, 3
RUNS = [f"2023-{month:02}-01" for month in range(1, 13)]

Places = dict[int, tuple[float, float]]
Event = tuple[str, int, int | None, int, bool]


def _chain(first: int, n: int, y: float, x: float = 0.0) -> Places:
    """A cluster: records in a row, each within EPS of the two beside it."""
    return {first + i: (x + 0.4 * i, y) for i in range(n)}


def history(seed: int = 0) -> list[Places]:
    """Record -> place, of each run. Records are moved a little by chance, the same in all runs."""
    rng = np.random.default_rng(seed)
    places = {
        **_chain(0, 20, 0),
        **_chain(100, 20, 10),
        **_chain(200, 10, 20),
        **_chain(300, 10, 30),
        **_chain(400, 10, 40),
        **_chain(500, 3, 50),
        **_chain(600, 20, 60),
        **_chain(700, 10, 70),
        **{900 + i: (5.0 * i, 200.0) for i in range(10)},  # noise
    }
    runs = [places]

    def then(*gone: int, **_: None) -> Places:
        runs.append({record: place for record, place in runs[-1].items() if record not in gone})
        return runs[-1]

    then().update(_chain(800, 10, 80))  # born
    then().update({i: (0.4 * i, 5.0) for i in range(14, 20)})  # a piece of 0 goes away
    then().update({200 + i: (8.0 + 0.4 * i, 10.0) for i in range(10)})  # 200 joins 100
    then().update({300 + i: (3.0 * i, 30.0) for i in range(10)})  # 300 falls apart
    then(*range(400, 410))  # 400 is deleted
    then(502)  # 500 has fewer than MIN_PTS records
    then().update(_chain(500, 3, 50))  # and has them again
    then(708, 709).update(_chain(620, 2, 60, x=8.0))  # 700 shrinks, 600 grows
    then()  # nothing
    then(100)  # 100 loses its smallest core point
    then().update({600 + i: (0.4 * i, 65.0) for i in range(11, 22)})  # 600 in halves
    shift = {record: rng.normal(0, 0.01, 2) for record in sorted(set().union(*runs))}
    return [
        {record: (x + float(shift[record][0]), y + float(shift[record][1])) for record, (x, y) in run.items()}
        for run in runs
    ]


def history_among(points: NDArray[np.float64], eps: float, at: tuple[float, float]) -> list[Places]:
    """The same history in the unit ``eps``, beginning at a place that is far from all of ``points``.

    The points stay where they are in all runs, and so do their clusters. Their ids are from ``AMONG`` on.
    """
    others = dict(enumerate(map(tuple, points.tolist()), AMONG))
    return [
        {i: (at[0] + eps * x, at[1] + eps * y) for i, (x, y) in run.items()} | others for run in history()
    ]


AMONG = 1000
"""The smallest id of what the history is planted among."""

GULF = (-92.0, 25.0)
"""A place in the Gulf of Mexico, longitude and latitude, far from every landmark of the United States."""

EVENTS: list[list[Event]] = [
    [],
    [("born", 800, None, 10, False)],
    [("split", 0, 14, 6, False), ("split_off", 14, 0, 6, False), ("shrunk", 0, None, 6, False)],
    [("merged", 200, 100, 10, True), ("grown", 100, None, 10, False)],
    [("dissolved", 300, None, 10, True)],
    [("gone", 400, None, 10, True)],
    [("dissolved", 500, None, 3, True)],
    [("born", 501, None, 3, False)],
    [("grown", 600, None, 2, False), ("shrunk", 700, None, 2, False)],
    [],
    [],
    [
        *(("split", 600, 601, 11, True), ("split", 600, 611, 11, True)),
        *(("split_off", 601, 600, 11, False), ("split_off", 611, 600, 11, False)),
    ],
]
"""What happens in each run: event, name, other name, members, whether the name ends."""

LAST_NAMES = {0: 0, 14: 14, 101: 100, 500: 501, 600: 601, 611: 611, 700: 700, 800: 800}
"""cluster_id -> name in the last run."""
