"""What tests of the report share: findings of a run on a map, what differs from it, and the page of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from epsjoin.findings import Findings
from epsjoin.report import html as of_pages
from epsjoin.report import page
from tests.drawn_once import DrawnOnce
from tests.html_reader import Reader
from tests.report.example import make_example


@pytest.fixture(scope="session")
def example() -> Findings:
    return make_example()


@pytest.fixture(scope="session")
def divided(example: Findings) -> Findings:
    """The example with one job that told its start apart and counted its CPU, and two that did not."""
    ingest = {
        **{"rows_out": 737.0, "seconds": 16.0, "seconds_start": 5.0, "seconds_commit": 1.0},
        **{"seconds_read": 4.0, "seconds_work": 12.0, "seconds_write": 4.0},
        **{"cpu_seconds_driver": 3.0, "cpu_seconds_jvm": 7.5},
    }
    return dataclasses.replace(example, counters={**example.counters, "ingest": ingest})


@pytest.fixture(scope="session")
def mapless(example: Findings) -> Findings:
    """The example without points on its map, which take most of a page's time."""
    return dataclasses.replace(
        example,
        map_points=example.map_points[:0],
        map_cluster_ids=example.map_cluster_ids[:0],
    )


@pytest.fixture(scope="session")
def nothing(example: Findings) -> Findings:
    """A run on an empty snapshot: every table empty, every number 0 or unknown."""
    none = np.empty(0)
    return dataclasses.replace(
        example,
        n_points=0,
        n_pairs=0,
        n_clusters=0,
        n_core=0,
        n_border=0,
        n_noise=0,
        unit="",
        params={},
        snapshots=[],
        unknown_columns=(),
        quarantine_reasons={},
        quarantine_examples=[],
        quality=[],
        epsilon={},
        curve_radius=none,
        curve_pairs=none,
        curve_in_fit=none.astype(bool),
        plan={},
        n_replicas=None,
        n_candidates=None,
        counters={},
        map_points=np.empty((0, 2)),
        map_cluster_ids=none.astype(np.int64),
        largest_clusters=[],
        cluster_sizes=none.astype(np.int64),
        cluster_size_counts=none.astype(np.int64),
        outliers=[],
        label="",
        k_distance=none,
        k_distance_fraction=none,
        other_eps=[],
        run_before="",
        trends=[],
        seconds_before={},
        comparison=None,
        guard=[],
    )


@pytest.fixture(scope="package", autouse=True)
def drawn_once() -> Iterator[DrawnOnce]:
    """The pictures of all pages: each is drawn once for each of what it shows."""
    once = DrawnOnce()
    with pytest.MonkeyPatch.context() as patch:
        plots = {name: (once.of(plot), text) for name, (plot, text) in page.PICTURES.items()}
        patch.setattr(page, "PICTURES", plots)
        patch.setattr(of_pages, "to_svg", partial(once.to_svg, of_pages.to_svg))
        yield once


@pytest.fixture(scope="package")
def html(example: Findings) -> str:
    return page.render(example)


@pytest.fixture(scope="package")
def reader(html: str) -> Reader:
    return Reader(html)
