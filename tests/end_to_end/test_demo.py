"""The demo as a person runs it: Airflow, seven spark-submits, a report; its numbers against scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable
from sklearn.cluster import DBSCAN
from sklearn.neighbors import BallTree

from epsjoin.pipeline import jobs_of

RUN = "2023-06-01"
EARTH_RADIUS_KM = 6371.0088
pytestmark = pytest.mark.end_to_end


def test_demo__pairs_and_clusters_are_those_of_scikit_learn(demo: tuple[Path, str]) -> None:
    lake, _ = demo
    points = DeltaTable(lake / "points").to_pyarrow_table().sort_by("id")
    radians = np.radians(
        np.column_stack([points["latitude_deg"].to_numpy(), points["longitude_deg"].to_numpy()])
    )
    eps = DeltaTable(lake / "epsilon").to_pyarrow_table()["eps"][0].as_py() / EARTH_RADIUS_KM
    neighbours = BallTree(radians, metric="haversine").query_radius(radians, eps, count_only=True)
    assert DeltaTable(lake / "pairs").to_pyarrow_table().num_rows == (neighbours.sum() - len(radians)) // 2

    clusters = DeltaTable(lake / "clusters").to_pyarrow_table().sort_by("id")
    roles = np.array(clusters["role"].to_pylist())
    peer = DBSCAN(eps=eps, min_samples=5, metric="haversine", algorithm="ball_tree").fit(radians)
    is_core = np.zeros(len(radians), bool)
    is_core[peer.core_sample_indices_] = True
    np.testing.assert_array_equal(roles == "core", is_core)
    np.testing.assert_array_equal(roles == "noise", peer.labels_ == -1)
    mine = clusters["cluster_id"].to_numpy()[is_core]
    both = set(zip(mine.tolist(), peer.labels_[is_core].tolist(), strict=True))
    assert len(both) == len(np.unique(mine)) == len(np.unique(peer.labels_[is_core]))


def test_demo__says_what_it_found_and_where_the_report_lies(demo: tuple[Path, str]) -> None:
    lake, said = demo
    for name in (
        "snapshot",
        "points",
        "eps",
        "pairs",
        "clusters",
        "largest cluster",
        "top outliers",
        "seconds per step",
    ):
        assert f"  {name} " in said, said
    assert str(lake / "reports" / f"run={RUN}" / "report.html") in said
    page = (lake / "reports" / f"run={RUN}" / "report.html").read_text(encoding="utf-8")
    assert "Navigation aids of the world" in page
    assert "<script" not in page


def test_demo__starts_every_job_from_the_class_archive_and_leaves_nothing_beside_the_lake(
    demo: tuple[Path, str],
) -> None:
    lake, _ = demo
    home = lake.parents[1]
    in_order = sorted((home / "classes").iterdir(), key=lambda file: file.stat().st_mtime)
    loaded = [file.read_text() for file in in_order]
    from_archive = [text.count("source: shared objects file (top)") for text in loaded]
    from_jars = [text.count(".jar\n") for text in loaded]
    assert len(loaded) == len(jobs_of("join"))
    assert from_archive[0] > 5000, "ingest, which starts a session"
    assert min(from_archive) > 1000, from_archive
    assert max(from_jars) < 500, from_jars
    assert sorted(path.name for path in home.iterdir()) == ["airflow", "classes", "lake", "mine", "tmp"]
    assert sorted(path.name for path in (home / "tmp").iterdir()) == []


def test_demo__counts_what_every_job_did_and_what_it_cost(demo: tuple[Path, str]) -> None:
    lake, _ = demo
    rows = DeltaTable(lake / "job_metrics").to_pyarrow_table().to_pylist()
    counters = {(row["job"], row["counter"]): row["value"] for row in rows}
    assert counters["ingest", "rows_ok"] == 11020
    assert counters["ingest", "seconds"] > counters["ingest", "seconds_start"] > 0
    assert min(counters["ingest", f"cpu_seconds_{process}"] for process in ("driver", "jvm", "workers")) > 0
