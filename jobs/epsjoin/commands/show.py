"""The command ``epsjoin show``: the result of a run as a few lines of text."""

from __future__ import annotations

import argparse
import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from epsjoin.commands.clusters import DEVIATES, describe_event, find_deviations, name_records
from epsjoin.commands.runs import aligned, count_values, first_rows, print_answer, texts_of
from epsjoin.commands.sizes import count_of_clusters
from epsjoin.console import counted
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import MissingSliceError, TableError, UnfitTableError
from epsjoin.findings import by_telling
from epsjoin.lake import refusals, slices, uris
from epsjoin.lake.arguments import add_lake, open_stored, parse_run
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.pipeline import jobs_of
from epsjoin.report import sentences, words
from epsjoin.vocabulary import CHANGES, ROLES

MAX_OUTLIERS = 5
"""Maximum number of outliers that are printed, by rank."""

MAX_EVENTS = 5
"""Maximum number of events of clusters that are printed."""


def main(argv: Sequence[str]) -> int:
    """Print the result of a run."""
    parser = argparse.ArgumentParser(prog="epsjoin show", description="Print the result of a run.")
    add_lake(parser)
    arguments = parser.parse_args(argv)
    run = parse_run(arguments.run)
    lake = open_stored(arguments)
    print_answer(lake, f"run {run}", aligned(summarise(lake, run)))
    return 0


def summarise(lake: Lake, run: str) -> Iterator[tuple[str, str]]:
    """Yield the result of a run as lines of (name, text)."""
    inputs, why = Fingerprints(lake, run), refusals.read(lake, run)
    if why and run not in slices.list_runs(lake, "points"):
        raise UnfitTableError(f"the snapshot of run {run} was refused: {why}")
    if why:
        yield "refused", f"the run was made again, and its snapshot refused; this had come in before: {why}"
    yield from _tell_matches(lake, inputs) if lake.source.match else _tell_clusters(lake, inputs)
    yield from _tell_jobs_and_report(lake, run)


def _tell_matches(lake: Lake, inputs: Fingerprints) -> Iterator[tuple[str, str]]:
    """Tell of a run whose records were matched with those of another data set."""
    of = inputs.slices(("snapshots", "points", "matches"))
    yield from _tell_snapshot(lake, of)
    n_pairs = left_alone = right_alone = 0
    for batch in slices.stream_slice(lake, of["matches"], ["left_id", "right_id"]):
        left_alone += batch["right_id"].null_count
        right_alone += batch["left_id"].null_count
        n_pairs += batch.num_rows
    n_pairs -= left_alone + right_alone
    yield "matches", describe_matches(lake.source, n_pairs, left_alone, right_alone)


def describe_matches(source: SourceContract, n_pairs: int, left_alone: int, right_alone: int) -> str:
    """Write how many matches there are, and for each side that was asked for, how many records have none."""
    how, partner = (source.match.how, source.match.partner) if source.match else ("inner", "")
    sides = (("left", left_alone, source.name), ("right", right_alone, partner))
    asked = [f"{counted(n, 'record')} of {name}" for side, n, name in sides if how in (side, "outer")]
    others = f" ({' and '.join(asked)} without one)" if asked else ""
    return f"{words.count(n_pairs)} with {partner}{others}"


def _tell_snapshot(lake: Lake, of: Mapping[str, Slice]) -> Iterator[tuple[str, str]]:
    """Tell what was read."""
    snapshots = slices.read_slice(lake, of["snapshots"]).to_pylist()
    yield "snapshot", ", ".join(row["source"] for row in snapshots)
    refused = sum(row["rows_quarantined"] for row in snapshots)
    n_points = slices.count_rows(lake, of["points"])
    others = f"{counted(refused, 'row')} in quarantine"
    condition = snapshots[0]["taken_where"]
    if condition:
        left_out = sum(row["rows_left_out"] for row in snapshots)
        others += f", {words.count(left_out)} left out by the condition {condition}"
    yield "points", f"{words.count(n_points)} ({others})"


def _tell_clusters(lake: Lake, inputs: Fingerprints) -> Iterator[tuple[str, str]]:
    """Tell of a run whose points were clustered."""
    unit = lake.source.unit
    known = ("snapshots", "points", "epsilon", "join_plan", "pairs", "clusters", "outliers")
    try:
        of = inputs.slices([*known, "changes", "cluster_events"])
    except MissingSliceError:  # an older version has made the run
        of = inputs.slices(known)
    yield from _tell_snapshot(lake, of)
    epsilon = slices.read_row(lake, of["epsilon"])
    yield "eps", f"{words.exact(epsilon['eps'], unit)}: {sentences.why_eps_briefly(epsilon)}"
    yield "join", sentences.how_joined(slices.read_row(lake, of["join_plan"], sentences.HOW_JOINED))
    yield "pairs", words.count(slices.count_rows(lake, of["pairs"]))
    clusters = count_of_clusters(lake, of["clusters"])
    in_roles = ", ".join(f"{words.count(clusters[f'n_{role}'])} {role}" for role in ROLES)
    yield "clusters", f"{words.count(clusters['n_clusters'])} ({in_roles})"
    columns = ["id", "rank", "lof", "k_distance", "degree", "dimensions"]
    top = first_rows(lake, of["outliers"], [("rank", "ascending")], MAX_OUTLIERS, columns)
    largest = clusters["largest_clusters"][:1]
    shown = [row["id"] for row in top] + [row["cluster_id"] for row in largest]
    names = texts_of(lake, of["points"], shown)
    for row in largest:
        called = f"id {row['cluster_id']} {names[row['cluster_id']]}"
        if "cluster_events" in of:
            called = _call_cluster(lake, inputs, row["cluster_id"]) or called
        yield "largest cluster", f"{counted(row['size'], 'point')}, {called}".rstrip()
        try:
            yield from ((DEVIATES, text) for text in find_deviations(inputs, [row["cluster_id"]]))
        except TableError as error:  # the cluster is the answer; what deviates is beside it
            yield DEVIATES, f"left out: {error}"
    if "cluster_events" in of:
        yield from _tell_what_is_new(lake, inputs, of["changes"], of["cluster_events"])
    for number, row in enumerate(top):
        described = _describe_outlier(row, names[row["id"]], unit, bool(lake.source.tree))
        yield "top outliers" if number == 0 else "", described


def _call_cluster(lake: Lake, inputs: Fingerprints, cluster_id: int) -> str:
    """Say under which name a cluster goes on from earlier runs; empty where that is its cluster_id."""
    try:
        found = slices.take_from_slice(
            lake,
            inputs.slice("cluster_names"),
            ["cluster_id"],
            lambda batch: batch["cluster_id"].to_numpy() == cluster_id,
        )
    except MissingSliceError:  # an older version has made the run
        return ""
    given = [row for row in found.to_pylist() if row["name"] != cluster_id]
    texts = name_records(lake, given)
    return "".join(
        f"named {row['name']} {texts.get(row['name'], '')}".rstrip() + f" (cluster_id {cluster_id})"
        for row in given
    )


def _tell_jobs_and_report(lake: Lake, run: str) -> Iterator[tuple[str, str]]:
    """Tell how long the jobs took, and where the report lies."""
    counters = (
        slices.read_slice(lake, Slice("job_metrics", run))
        .filter(pc.field("counter") == "seconds")
        .to_pylist()
    )
    seconds = {row["job"]: row["value"] for row in counters}
    jobs = [job for job in _jobs_of_this_pass(lake, run) if job in seconds]
    yield "seconds per step", ", ".join(f"{job} {seconds[job]:.0f}" for job in jobs)
    filesystem, folder = uris.filesystem_of(f"{lake.location('reports')}/run={run}")
    for name in ("report.html", "clusters.png", "matches.png"):
        if filesystem.get_file_info(f"{folder}/{name}").is_file:
            yield "report" if name.endswith("html") else "picture", f"{folder}/{name}"


def _jobs_of_this_pass(lake: Lake, run: str) -> Iterator[str]:
    """The jobs in their order, without gates and a report that are older than a job before them.

    Those are about tables that have been made again since. Tables of other jobs belong together, or nothing
    is shown.
    """
    written = slices.counters_written(lake, run)
    newest = 0
    for job in jobs_of(lake.source.chain):
        is_of_others = job == "report" or job.startswith("quality_")
        if not is_of_others or written.get(job, 0) >= newest:
            yield job
            newest = max(newest, written.get(job, 0))


def _tell_what_is_new(
    lake: Lake, inputs: Fingerprints, changes: Slice, cluster_events: Slice
) -> Iterator[tuple[str, str]]:
    """Compare with the run before, if there is one."""
    before = inputs.before
    if before is None:
        return
    counts, moved = (count_values(lake, changes, name) for name in ("what", "moved"))
    of_kinds = ", ".join(f"{words.count(counts[what])} {what}" for what in CHANGES)
    yield f"since {before.run}", f"{of_kinds} ({words.count(moved[True])} moved)"
    columns = ["event", "name", "other", "members", "ends"]
    batches = slices.stream_slice(lake, cluster_events, columns)
    events = heapq.nsmallest(MAX_EVENTS, (row for batch in batches for row in batch.to_pylist()), by_telling)
    n_events = slices.count_rows(lake, cluster_events)
    told = [f"{row['name']} {describe_event(row)}" for row in events]
    more = [f"and {counted(n_events - MAX_EVENTS, 'event')} more"] if n_events > MAX_EVENTS else []
    yield "clusters since", "; ".join([*told, *more]) or "all kept their names, and nothing happened to them"
    was, now = (_settings(lake, run) for run in (before.run, inputs.run))
    if events and (why := sentences.other_settings(was, now, lake.source.unit)):
        yield "", why


def _settings(lake: Lake, run: str) -> dict[str, float | None]:
    """The settings with which a run's jobs say they found clusters."""
    counters = slices.read_counters(lake, run)
    counted = {"eps": "fit_epsilon", "min_pts": "cluster"}
    return {name: counters.get(job, {}).get(name) for name, job in counted.items()}


def _describe_outlier(row: dict[str, Any], name: str, unit: str, is_document: bool) -> str:
    how = f"{counted(row['degree'] - 1, 'neighbour')} within eps"
    if row["lof"] is not None:
        lof = "∞" if row["lof"] == math.inf else f"{row['lof']:.2f}"
        how = f"LOF {lof}, k-distance {words.measure(row['k_distance'], unit, digits=3)}"
    # bins of histograms tell a person nothing
    deviates = "" if is_document else f"; {DEVIATES}: {row['dimensions']}"
    return f"{row['rank']}. {row['id']} {name} ({how}{deviates})".replace("  ", " ")
