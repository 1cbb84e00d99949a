"""What a run found, as a few lines for a person: ``epsjoin show``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.console import printable
from epsjoin.contracts.odcs import load_source
from epsjoin.lake import lineage, slices, uris
from epsjoin.lake.lake import Lake
from epsjoin.paths import PROJECT
from epsjoin.pipeline import JOBS

OUTLIERS_SHOWN = 5


def main(argv: Sequence[str]) -> int:
    """Print what a run found."""
    parser = argparse.ArgumentParser(prog="epsjoin show", description="Print what a run found.")
    parser.add_argument("--lake", required=True, help="folder of all tables: a URI or an absolute path")
    parser.add_argument("--dataset", required=True, help="name of a contract in the contracts' folder")
    parser.add_argument("--run", required=True, help="logical date of the snapshot, YYYY-MM-DD")
    parser.add_argument(
        "--contracts", type=Path, default=PROJECT / "data_contracts", help="folder of the contracts"
    )
    arguments = parser.parse_args(argv)
    source = load_source(arguments.contracts, arguments.dataset)
    lake = Lake(uris.lake_uri(arguments.lake), arguments.contracts, source)
    rows = list(_summary(lake, arguments.run))
    width = max(len(name) for name, _ in rows)
    print(f"\n{printable(source.title)}, run {printable(arguments.run)}\n")
    for name, text in rows:
        print(f"  {name:<{width}}  {printable(text)}")
    print()
    return 0


def _summary(lake: Lake, run: str) -> Iterator[tuple[str, str]]:
    """What a run found, as (name, text) lines."""
    unit = lake.source.unit
    join, of_points = lineage.read_join(lake, run), lineage.stamp_of_points(lake, run)
    of_clusters = lineage.stamp_of_clusters(lake, run, join)
    of_ingest = lineage.stamp_of_ingest(lake, run)
    snapshots = slices.read_small(lake, "snapshots", run, stamp=of_ingest).to_pylist()
    yield "snapshot", ", ".join(row["source"] for row in snapshots)
    refused = sum(row["rows_quarantined"] for row in snapshots)
    yield "points", f"{slices.count(lake, 'points', run, of_ingest):,} ({refused:,} rows in quarantine)"
    epsilon = slices.read_row(lake, "epsilon", run, of_points)
    yield "eps", f"{epsilon['eps']:g} {unit}: {_why(epsilon)}"
    yield "pairs", f"{slices.count(lake, 'pairs', run, join.stamp):,}"
    clusters = slices.read_small(lake, "clusters", run, ["cluster_id", "role"], join.stamp)
    roles = {row["values"]: row["counts"] for row in pc.value_counts(clusters["role"]).to_pylist()}
    members = clusters.filter(pc.not_equal(clusters["role"], "noise"))
    sizes = (
        members.group_by("cluster_id")
        .aggregate([([], "count_all")])
        .sort_by([("count_all", "descending"), ("cluster_id", "ascending")])
    )
    in_roles = ", ".join(f"{roles.get(role, 0):,} {role}" for role in ("core", "border", "noise"))
    yield "clusters", f"{sizes.num_rows:,} ({in_roles})"
    if sizes.num_rows:
        largest = sizes.slice(0, 1).to_pylist()[0]
        yield "largest cluster", f"{largest['count_all']:,} points, id {largest['cluster_id']}"
    for number, row in enumerate(_top_outliers(lake, run, of_clusters)):
        yield "top outliers" if number == 0 else "", _outlier(row, unit)
    counters = (
        slices.read_small(lake, "job_metrics", run).filter(pc.field("counter") == "seconds").to_pylist()
    )
    seconds = {row["job"]: row["value"] for row in counters}
    yield "seconds per step", ", ".join(f"{job} {seconds[job]:.0f}" for job in JOBS if job in seconds)
    filesystem, folder = uris.filesystem_of(f"{lake.location('reports')}/run={run}")
    for name in ("report.html", "clusters.png"):
        if filesystem.get_file_info(f"{folder}/{name}").is_file:
            yield "report" if name.endswith("html") else "picture", f"{folder}/{name}"


def _why(epsilon: dict[str, Any]) -> str:
    reasons = {
        "given": "given",
        "neighbours": f"chosen for {epsilon['target'] or 0:g} neighbours per point",
        "pairs": f"chosen for {epsilon['target'] or 0:,.0f} pairs",
        "k_distance_quantile": f"chosen as the {epsilon['target'] or 0:.0%} quantile of the k-distance",
    }
    law = "" if epsilon["exponent"] is None else f" by the pair-count exponent {epsilon['exponent']:.2f}"
    return reasons[epsilon["method"]] + ("" if epsilon["method"] == "given" else law)


def _top_outliers(lake: Lake, run: str, stamp: str) -> list[dict[str, Any]]:
    columns = ["id", "rank", "lof", "k_distance", "degree", "dimensions"]
    top = slices.read_small(lake, "outliers", run, columns, stamp).filter(pc.field("rank") <= OUTLIERS_SHOWN)
    names = [column.name for column in lake.source.columns if column.type == "string"][:3]
    points = slices.read_small(lake, "points", run, ["id", *names]) if names else top.select(["id"])
    known = {row["id"]: row for row in points.filter(pc.is_in(points["id"], pa.array(top["id"]))).to_pylist()}
    return [
        {**row, "names": [known[row["id"]][name] for name in names]}
        for row in top.sort_by("rank").to_pylist()
    ]


def _outlier(row: dict[str, Any], unit: str) -> str:
    named = " ".join(str(name) for name in row["names"] if name)
    if row["lof"] is not None:
        how = f"LOF {row['lof']:.2f}"
    elif row["k_distance"] is not None:
        how = f"k-distance {row['k_distance']:.3g} {unit}".rstrip()
    else:
        how = f"{row['degree'] - 1} neighbours within eps"
    return f"{row['rank']}. {row['id']} {named} ({how}; {row['dimensions']})".replace("  ", " ")
