"""The rows of a run's tables, to be changed, and who must see a change: the gate, or ``verify``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from epsjoin.spark.checks.verify import Request

Row = dict[str, Any]
Change = Callable[["Tables"], None]

ONE_POINT = Request(points=1, cells=0, scores=0)
"""What all rows show, while one point of 700 is looked at by brute force."""
ALL_POINTS = Request(points=700, cells=0, scores=700)


class Tables:
    """The rows of ``points``, ``pairs``, ``clusters`` and ``outliers``, to be changed."""

    def __init__(self, pairs: list[Row], clusters: list[Row], outliers: list[Row]) -> None:
        self.pairs, self.clusters = pairs, clusters
        self.outliers = sorted(outliers, key=lambda row: row["rank"])
        self.labels = {row["id"]: row for row in clusters}
        self.scores = {row["id"]: row for row in outliers}
        self.near: dict[int, dict[int, float]] = {id_: {} for id_ in self.labels}
        for row in pairs:
            self.near[row["left_id"]][row["right_id"]] = row["distance"]
            self.near[row["right_id"]][row["left_id"]] = row["distance"]

    def ids(self, role: str) -> list[int]:
        return sorted(id_ for id_, row in self.labels.items() if row["role"] == role)

    def cluster(self, name: int) -> list[Row]:
        return [row for row in self.clusters if row["cluster_id"] == name]

    def names(self) -> list[int]:
        """The clusters of several core points, the largest first."""
        cores = [self.labels[id_]["cluster_id"] for id_ in self.ids("core")]
        return sorted(
            {name for name in cores if cores.count(name) > 2}, key=lambda name: (-cores.count(name), name)
        )

    def count_degrees_anew(self) -> None:
        for row in (*self.clusters, *self.outliers):
            row["degree"] = 1 + sum(row["id"] in (pair["left_id"], pair["right_id"]) for pair in self.pairs)

    def say_noise_anew(self) -> None:
        for id_, row in self.scores.items():
            row["is_noise"] = self.labels[id_]["role"] == "noise"

    def rank_anew(self) -> None:
        def far(row: Row) -> tuple[float, float, int]:
            lof, k_distance = (math.inf if row[name] is None else row[name] for name in ("lof", "k_distance"))
            return -lof, -k_distance, row["id"]

        for rank, row in enumerate(sorted(self.outliers, key=far), start=1):
            row["rank"] = rank


@dataclass(frozen=True)
class Seen:
    """Who sees a change: the rules of the gate that do not hold, and what ``verify`` says (a pattern).

    Without a rule, the gate lets the change pass: only ``verify`` sees it.
    """

    rules: tuple[str, ...]
    said: str
    request: Request = ONE_POINT


POINT = r"point \d+: "
