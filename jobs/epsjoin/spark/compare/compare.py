"""The step ``compare``: what differs from the run before, and the names that clusters keep.

All four tables are about neighbours in time, so this step writes slices of other runs, too:

1. ``changes`` and ``cluster_flows`` of the run, and of the next one if it now follows another run.
2. ``cluster_names`` and ``cluster_events`` of the run and of all later ones: names are a fold over the runs
   in the order of their dates, a pure function of what is in the lake, not of the order in which it came.

Each table is replaced in one commit, however many runs it has slices of. The fingerprint of a slice of names
covers its flows and the names before, so that two jobs that change names always both write the slice of the
last run: the second is refused, and sees everything when it is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.console import counted, say
from epsjoin.errors import DataRefusedError, MissingSliceError, TableError, UnfitTableError
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.lake import slices, targets, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File
from epsjoin.local.compare.events import Events
from epsjoin.local.compare.flows import Flows
from epsjoin.local.compare.fold import name_run
from epsjoin.local.compare.names import NOBODY, Cores, Names
from epsjoin.spark.compare.changes import find_changes
from epsjoin.spark.compare.flows import find_flows, from_rows, to_rows
from epsjoin.spark.job.job import Job
from epsjoin.spark.rows.stored import StoredSlice
from epsjoin.vocabulary import CHANGES, EVENTS, NOISE

Files = dict[Slice, list[File]]
"""New files by the slices that they are for, in the order of the runs."""


def run(job: Job) -> dict[str, float]:
    """Replace the run's slices of ``changes``, ``cluster_flows``, ``cluster_names`` and ``cluster_events``.

    Slices of later runs that were made from another state of the lake are replaced, too.

    Raises
    ------
    TableError
        ``points`` or ``clusters`` has no slice of this run, another job has changed one of the slices, or a
        later run has come meanwhile.
    """
    job = replace(job, lake=slices.as_now(job.lake))
    mine = Fingerprints(job.lake, job.run, is_made_now=True)
    slices.files_of(job.lake, mine.slice("clusters"))  # says what is missing
    runs = Fingerprints.of_all(job.lake)
    at = next(number for number, each in enumerate(runs) if each.run == job.run)
    counters = _replace_changes(job, runs[at], runs[at + 1 : at + 2])
    flows = _replace_flows(job, runs, at)
    named = _name_runs(job, runs, flows)
    counters |= _replace_names(job, runs, at, named)
    _refuse_later_run(job, runs[-1].run)
    against = runs[at].before
    events = ", ".join(f"{counters[each]:,.0f} {each}" for each in EVENTS if counters[each])
    clusters = counted(counters["names"], "cluster")
    if against is None:
        say(f"compare: there is no earlier run to compare with; {clusters}")
        return counters
    say(
        f"compare: against {against.run}: {counters['inserted']:,.0f} inserted, "
        f"{counters['updated']:,.0f} updated, of which {counters['moved']:,.0f} moved, "
        f"{counters['deleted']:,.0f} deleted; {clusters}: {events or 'no event'}"
    )
    return counters


def _replace_changes(job: Job, mine: Fingerprints, later: Iterable[Fingerprints]) -> dict[str, float]:
    files: Files = {}
    counters: dict[str, float] = {}
    for each in (mine, *(each for each in later if not each.has("changes"))):
        where = each.slice("changes")
        found: dict[str, float] = dict.fromkeys((*CHANGES, "moved"), 0.0)

        def count(parts: Iterable[pa.Table], found: dict[str, float] = found) -> Iterable[pa.Table]:
            for part in parts:
                for row in pc.value_counts(part["what"]).to_pylist():
                    found[row["values"]] += row["counts"]
                found["moved"] += pc.sum(part["moved"]).as_py() or 0
                yield part

        files[where] = _write(job.lake, where, count(find_changes(job, each)))
        counters = counters or found
    transactions.commit(job.lake, files)
    return counters


def _replace_flows(job: Job, runs: list[Fingerprints], at: int) -> list[Flows]:
    """Count the flows to this run, and to all runs whose slices do not fit; return the flows to all runs."""
    flows, files = [], {}
    for number, each in enumerate(runs):
        where = each.slice("cluster_flows")
        if number != at and each.has("cluster_flows"):
            flows.append(from_rows(slices.read_slice(job.lake, where)))
        else:
            flows.append(find_flows(job, each))
            against = each.before.run if each.before else None
            files[where] = _write(job.lake, where, [to_rows(flows[-1], against)])
    transactions.commit(job.lake, files)
    return flows


class _Run(NamedTuple):
    """The result of the fold for a run."""

    names: Names
    events: Events


def _name_runs(job: Job, runs: list[Fingerprints], flows: list[Flows]) -> list[_Run]:
    named, found = NOBODY, []
    for number, (each, moves) in enumerate(zip(runs, flows, strict=True)):
        # a cluster's id is that of its smallest core point
        clusters = np.unique(moves.now[~moves.is_gone & (moves.now != NOISE)])
        named, events = name_run(named, moves, number, clusters, _core_finder(job, each))
        found.append(_Run(named.names, events))
    return found


def _core_finder(job: Job, run: Fingerprints) -> Callable[[Ints], Cores]:
    def find_cores(clusters: Ints) -> Cores:
        def is_wanted(batch: pa.RecordBatch) -> Bools:
            is_core = pc.equal(batch["role"], "core").to_numpy(zero_copy_only=False)
            return np.asarray(is_core & np.isin(batch["cluster_id"].to_numpy(), clusters))

        of = StoredSlice.of(job, run.slice("clusters"))
        rows = of.take(["cluster_id", "role"], is_wanted, ["id", "cluster_id"])
        ids, labels = rows["id"].to_numpy(), rows["cluster_id"].to_numpy()
        return Cores.of(ids, labels, np.ones(ids.size, np.bool_))

    return find_cores


def _replace_names(job: Job, runs: list[Fingerprints], at: int, named: list[_Run]) -> dict[str, float]:
    """Replace the names and events of this run, and of all runs whose slices do not fit."""
    job = replace(job, lake=slices.as_now(job.lake))  # there are new flows
    dates = [each.run for each in runs]
    names: Files = {}
    events: Files = {}
    before: list[File] = []
    others: list[str] = []
    for number, (each, (of_run, happened)) in enumerate(zip(runs, named, strict=True)):
        flows = slices.files_of(job.lake, each.slice("cluster_flows"))
        where = each.slice("cluster_names", cluster_flows=flows, cluster_names=before)
        kept = _files_if_any(job.lake, where) if number != at else None
        of_names = _name_rows(of_run, dates)
        before = kept or _write(job.lake, where, [of_names])
        if not kept:
            names[where] = before
        of_events = each.slice("cluster_events", cluster_names=before)
        if number == at or _files_if_any(job.lake, of_events) is None:
            told = _event_rows(happened, dates[number - 1] if number else "")
            events[of_events] = _write(job.lake, of_events, [told])
            if number != at and (
                _is_other(job.lake, where, of_names) or _is_other(job.lake, of_events, told)
            ):
                others.append(each.run)
    transactions.commit(job.lake, names)
    transactions.commit(job.lake, events)
    if others:
        say(
            f"compare: names or events of {counted(len(others), 'later run')} are others now: "
            f"{', '.join(others)}; what their pages say of clusters is of before, until report runs for them"
        )
    of_run, happened = named[at]
    return {
        "names": float(of_run.name.size),
        "runs_named": float(len(names)),
        **{event: float(np.count_nonzero(happened.event == event)) for event in EVENTS},
    }


def _refuse_later_run(job: Job, last: str) -> None:
    """Refuse to succeed if a later run than the last one at the start has got clusters meanwhile.

    Its names may follow from names that this job has replaced. And two jobs at once both write the slices of
    the last run only if both know which run that is.
    """
    later = Fingerprints.of_all(slices.as_now(job.lake))[-1].run
    if later > last:
        raise TableError(f"clusters of run {later} came while this job ran; run compare again")


def _files_if_any(lake: Lake, where: Slice) -> list[File] | None:
    try:
        return slices.files_of(lake, where)
    except UnfitTableError:
        return None


def _is_other(lake: Lake, where: Slice, rows: pa.Table) -> bool:
    """Whether a slice in the lake has other rows than these; false if there is no slice.

    It does not matter what they were made from. Files that cannot be read, which are about to be replaced,
    count as other rows.
    """
    try:
        stored = slices.read_slice(lake, replace(where, fingerprint=""), rows.column_names)
    except MissingSliceError:
        return False
    except (TableError, DataRefusedError):
        return True
    order = [(name, "ascending") for name in rows.column_names]
    return not stored.sort_by(order).equals(rows.cast(stored.schema).sort_by(order))


def _name_rows(names: Names, dates: list[str]) -> pa.Table:
    columns: Mapping[str, Ints] = names._asdict()
    rows = {"cluster_id" if name == "label" else name: pa.array(values) for name, values in columns.items()}
    first_run = pa.array([dates[number] for number in names.first_run], pa.string())
    return pa.table({**rows, "first_run": first_run})


def _event_rows(events: Events, against: str) -> pa.Table:
    rows = {name: pa.array(values) for name, values in events._asdict().items()}
    return pa.table(
        {
            **rows,
            "event": pa.array(events.event.tolist(), pa.string()),
            "other": pa.array(events.other, mask=events.other == NOISE),
            "against": pa.array([against] * events.event.size, pa.string()),
        }
    )


def _write(lake: Lake, where: Slice, rows: Iterable[pa.Table]) -> list[File]:
    """Write the file of a slice, also if there are no rows: the fingerprint is in the name of a file."""
    into = targets.target_of(lake, where)
    return [into.write(rows) or targets.write_empty_file(into)]
