"""Findings of a run on a map, made from seeded synthetic data."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from epsjoin.findings import ABSENT, OTHERS, Comparison, Findings
from epsjoin.params import RunParams
from epsjoin.vocabulary import NOISE

JOINED = {
    "largest_part_rows": 213.0,
    "largest_worker_bytes": 307.1e6,
    "joining_seconds": 2.6,
    "starting_seconds": 8.2,
}
"""What the join counted, as its cost shows it."""

OTHER_EPS = {"is_chosen": False, "is_knee": False, "is_measured": True}

SIZES = (120, 60, 60, 35, 20, 12, 9, 8, 7, 6)


def _members(rng: np.random.Generator) -> tuple[Any, Any]:
    """Points around ten centres, and noise; with their cluster ids."""
    centres = np.column_stack([rng.uniform(-20, 40, len(SIZES)), rng.uniform(35, 65, len(SIZES))])
    ids = np.repeat(np.arange(len(SIZES)) * 1000, SIZES)
    clustered = np.repeat(centres, SIZES, axis=0) + rng.normal(0, 0.2, (len(ids), 2))
    noise = np.column_stack([rng.uniform(-25, 45, 400), rng.uniform(30, 70, 400)])
    return np.vstack([clustered, noise]), np.concatenate([ids, np.full(400, NOISE)])


RUNS = tuple(f"2022-{month:02}-04" for month in range(7, 13)) + tuple(
    f"2023-{month:02}-04" for month in range(1, 7)
)


def _compared(points: Any, ids: Any) -> Comparison:
    """Twelve runs: place 7 splits off, place 8 is new, place 99 merges."""
    came, went = points[-12:], points[-20:-19] + 0.5
    moves = np.hstack([points[:5], points[:5] + 3])
    sizes = dict(enumerate(SIZES))
    flows = [
        *({"before": name, "now": name, "members": size - 2} for name, size in sizes.items() if name < 7),
        {"before": 7, "now": 7, "members": 8},
        {"before": 1, "now": 7, "members": 1},
        {"before": ABSENT, "now": 8, "members": 7},
        {"before": NOISE, "now": 9, "members": 6},
        {"before": 99, "now": 0, "members": 14},
        {"before": 0, "now": NOISE, "members": 9},
        {"before": 2, "now": ABSENT, "members": 3},
        {"before": OTHERS, "now": 2, "members": 4},
    ]
    lives = [
        {"run": run, "name": name, "size": max(2, size - 3 * (len(RUNS) - number))}
        for number, run in enumerate(RUNS)
        for name, size in {**sizes, 99: 30}.items()
        if not (name == 8 and number < 11)
        and not (name == 99 and number > 10)
        and not (name == 7 and number < 4)
    ]
    events = [
        {"event": "split", "name": 1, "other": 7, "members": 12},
        {"event": "merged", "name": 99, "other": 0, "members": 14},
        {"event": "born", "name": 8, "other": None, "members": 7},
        {"event": "shrunk", "name": 0, "other": None, "members": 9},
    ]
    return Comparison(
        against="2023-05-04",
        inserted=12,
        updated=7,
        deleted=1,
        moved=5,
        came=came,
        went=went,
        moves=moves,
        examples=[
            {"what": "inserted", "id": 96092, "key": ["VEG"], "label": "Vega", "columns": []},
            {
                **{"what": "updated", "id": 96093, "key": ["X3"], "label": None},
                "columns": [("power", "LOW", "HIGH")],
            },
            {"what": "deleted", "id": 96094, "key": ["X4"], "label": "Altair", "columns": []},
        ],
        flows=flows,
        runs=RUNS,
        lives=lives,
        marks=[
            {"run": RUNS[4], "event": "split_off", "name": 7},
            {"run": RUNS[4], "event": "split", "name": 1},
            {"run": RUNS[11], "event": "merged", "name": 99},
            {"run": RUNS[11], "event": "born", "name": 8},
            {"run": RUNS[11], "event": "shrunk", "name": 0},
        ],
        events=events,
        n_events={"split": 1, "merged": 1, "born": 1, "shrunk": 1},
        labels={name: f"Place {name}" for name in (*sizes, 99) if name != 5},
        cluster_ids={name: name * 1000 for name in sizes},
    )


def make_example() -> Findings:
    """Make the findings; the same each time."""
    rng = np.random.default_rng(20230604)
    points, ids = _members(rng)
    roles = np.where(ids == NOISE, "noise", np.where(rng.random(len(ids)) < 0.8, "core", "border"))
    radius = np.geomspace(0.1, 1000, 30)
    largest = [
        {
            "cluster_id": number * 1000,
            "size": size,
            "core": int(((ids == number * 1000) & (roles == "core")).sum()),
            "border": int(((ids == number * 1000) & (roles == "border")).sum()),
            "centre": points[ids == number * 1000][:, ::-1].mean(axis=0).tolist(),
            "dimensions": f"longitude_deg +{number}.3, latitude_deg -0.4",
            "key": [f"PL{number}"],
            "label": f"Place {number}",
        }
        for number, size in enumerate(SIZES)
    ]
    sizes, counts = np.unique(SIZES, return_counts=True)
    n = len(points)
    return Findings(
        dataset="beacons",
        title="Beacons of a made-up land",
        run="2023-06-04",
        metric="haversine",
        unit="km",
        coordinates=("latitude_deg", "longitude_deg"),
        key=("code",),
        params=dataclasses.asdict(RunParams(min_pts=5)),
        n_points=n,
        n_pairs=4321,
        n_clusters=len(SIZES),
        n_core=int((roles == "core").sum()),
        n_border=int((roles == "border").sum()),
        n_noise=int((roles == "noise").sum()),
        snapshots=[
            {
                "source": "2023-06-04.csv.gz",
                "bytes": 538_112,
                "sha256": "9f" * 32,
                "rows_read": n + 3,
                "rows_ok": n,
                "rows_quarantined": 3,
                "columns": '["id", "power"]',
            }
        ],
        unknown_columns=("power", "usageType"),
        quarantine_reasons={"latitude_deg is not a number": 2, "the key occurs twice": 1},
        quarantine_examples=[
            {
                "source": "2023-06-04.csv.gz",
                "line": 417,
                "reason": "latitude_deg is not a number",
                "raw": "85,n/a,3",
            }
        ],
        epsilon={
            "eps": 2.2134,
            "method": "neighbours",
            "target": 5.0,
            "exponent": 1.43,
            "exponent_low": 1.4,
            "exponent_high": 1.46,
            "range_low": 1.0,
            "range_high": 100.0,
            "r_squared": 0.9987,
            "note": None,
            "n_sample": 700,
            "expected_pairs": 4180.4,
            "expected_neighbours": 11.3,
        },
        curve_radius=radius,
        curve_pairs=1340 * radius**1.43,
        curve_in_fit=(radius >= 1) & (radius <= 100),
        plan={
            "kind": "planned",
            "n_parts": 4,
            "sample_rows": 700,
            "expected_rows": 761.0,
            "expected_candidates": 9800.0,
            "expected_pairs": 4180.4,
            "expected_part_rows": 210.0,
            "expected_worker_bytes": 356.6e6,
            "expected_seconds": 2.5,
        },
        n_replicas=755,
        n_candidates=10_412,
        counters={
            "merge_join": {
                "pairs": 4321.0,
                "largest_stack": 17.0,
                "bytes": 93_211.0,
                "seconds": 2.74,
                **JOINED,
            },
            "cluster": {"seconds": 0.4},
            "ingest": {"rows_out": float(n), "seconds": 192.3},
        },
        map_points=points,
        map_cluster_ids=ids,
        map_axes=("longitude_deg", "latitude_deg"),
        is_geographic=True,
        largest_clusters=largest,
        cluster_sizes=sizes,
        cluster_size_counts=counts,
        quality=[
            {
                "table": "pairs",
                "expectation": "left_is_below_right",
                "severity": "error",
                "success": True,
                "observed": "",
            },
            {
                "table": "snapshots",
                "expectation": "nothing_was_quarantined",
                "severity": "warning",
                "success": False,
                "observed": "3",
            },
        ],
        outliers=[
            {
                "rank": 1,
                "id": 96088,
                "k_distance": 61.2,
                "lof": 17.21,
                "degree": 1,
                "is_noise": True,
                "dimensions": "latitude_deg -4.2",
                "key": ["PEG"],
                "label": "Pegasus",
                "columns": {"code": "PEG", "name": "Pegasus", "power": "HIGH"},
                "tied": (1, 1),
                "nearest": [
                    {"id": 96090, "key": ["LYR"], "label": "Lyra", "distance": 3.4161},
                    {"id": 96091, "key": ["X1"], "label": None, "distance": 57.0},
                ],
            },
            {
                "rank": 2,
                "id": 96089,
                "k_distance": 2.01,
                "lof": 3.217,
                "degree": 5,
                "is_noise": False,
                "dimensions": None,
                "key": ["X2"],
                "label": None,
                "columns": {"code": "X2", "name": None, "power": None},
                "tied": (2, 2),
                "nearest": [],
            },
        ],
        label="name",
        k=4,
        k_distance=np.array([0.5, 1.0, 2.2134, 4.0, 9.0]),
        k_distance_fraction=np.array([0.1, 0.2, 0.374, 0.6, 1.0]),
        other_eps=[
            {**OTHER_EPS, "eps": 1.1067, "pairs": 1551.2, "neighbours": 4.21, "fraction": 0.231},
            {
                **OTHER_EPS,
                "eps": 2.2134,
                "pairs": 4180.4,
                "neighbours": 11.3,
                "fraction": 0.374,
                "is_chosen": True,
            },
            {**OTHER_EPS, "eps": 3.5, "pairs": 8046.0, "neighbours": 21.8, "fraction": 0.55, "is_knee": True},
            {
                **OTHER_EPS,
                "eps": 8.8536,
                "pairs": 2e9,
                "neighbours": 82,
                "fraction": None,
                "is_measured": False,
            },
        ],
        run_before="2023-05-04",
        trends=[
            {"run": "2023-04-04", "points": 700, "quality": None},
            {
                **{"run": "2023-05-04", "points": n - 11, "pairs": 4000, "eps": 2.2, "clusters": 9},
                **{"noise": 403, "refused": 0, "errors": 1, "born": 2, "ended": 1, "seconds": 120.0},
            },
            {
                **{"run": "2023-06-04", "points": n, "pairs": 4321, "eps": 2.2134, "clusters": 10},
                **{"noise": 400, "refused": 3, "errors": 0, "born": 1, "ended": 1, "seconds": 195.44},
            },
        ],
        seconds_before={"ingest": 180.0, "cluster": 0.5},
        comparison=_compared(points, ids),
        guard=[
            {
                **{"check": "lost", "observed": 0.0014, "limit": 0.05, "verdict": "ok"},
                **{"against": "2023-05-04", "words": "1 of 727 records is not there any more"},
            },
            {
                **{"check": "columns", "observed": 1.0, "limit": None, "verdict": "warned"},
                **{"against": "2023-05-04", "words": "the column power is new"},
            },
        ],
        refusal="",
        n_usual=20_000,
        n_of_cluster=1000,
    )
