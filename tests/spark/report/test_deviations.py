"""What sets the largest clusters apart, of places on the sphere and of nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from epsjoin.spark.report.members import ClusterSample, MemberSample


def described(places: Any, of: Any) -> list[str]:
    """What is said of clusters of places."""
    source: Any = SimpleNamespace(point_metric="haversine", axes=("lat", "lon"))
    sample, ids = ClusterSample(source, MemberSample(1000, 1), 1000), np.arange(len(of))
    sample.members.add(ids, of)
    return sample.describe(ids, places, of.max() + 1)


def test_describe__of_places_goes_the_shorter_way_round() -> None:
    """The usual longitude is 180; both clusters are 2 degrees from it, each on a side of its own."""
    east = np.concatenate([np.linspace(179, 181, 201), [177.9, 178.0, 178.1], [181.9, 182.0, 182.1]])
    places = np.column_stack([np.linspace(-1, 1, len(east)), np.where(east > 180, east - 360, east)])
    places[-6:, 0] = 0
    of = np.repeat([0, 1, 2], [201, 3, 3])
    usual = np.median(np.abs(east - 180)) * 1.4826
    west, right = (f"lon {sign}{2 / usual:.1f}, lat +0.0" for sign in "-+")
    assert described(places, of)[1:] == [west, right]


def test_describe__of_a_cluster_that_lies_across_180_degrees_is_about_its_own_median() -> None:
    places = np.column_stack([np.zeros(107), np.concatenate([np.linspace(-1, 1, 101), [179.9, -179.9] * 3])])
    _, far = described(places, np.repeat([0, 1], [101, 6]))
    assert far.startswith("lon ")
    assert abs(float(far.split(", ")[0].removeprefix("lon "))) > 200
