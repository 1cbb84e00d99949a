"""What the job ``compare`` has found, as the report shows it: bounded, however much has changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import MissingSliceError
from epsjoin.findings import ABSENT, OTHERS, Comparison, most_telling
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.source.trees import count_nodes
from epsjoin.spark.job.job import Job
from epsjoin.spark.points.hashes import hash_ids
from epsjoin.spark.report.members import MAX_CLUSTERS
from epsjoin.spark.report.names import name_record, read_records
from epsjoin.spark.report.trends import MAX_RUNS
from epsjoin.spark.rows.stored import StoredSlice
from epsjoin.vocabulary import CHANGES, NOISE

MAX_MARKS = 2000
"""Maximum number of records that came, went or moved on the map; chosen by the hashes of their ids."""

MAX_EXAMPLES = 4
"""Maximum number of records that are shown of each kind of change, those with the smallest ids."""

MAX_NAMES = 20
"""Maximum number of clusters whose flows are shown, and of names whose history is shown: at most half of them
are those to which something happened, the others are the largest."""

MAX_EVENTS = 20
"""Maximum number of events that are listed."""

_MARKS = "marks"

_NOTHING: Mapping[str, Ints] = dict.fromkeys((_MARKS, *CHANGES), np.empty(0, np.int64))
"""Chosen ids: those that the map marks, and those of each kind that are shown."""


class Named(NamedTuple):
    """A named cluster in a run."""

    run: str
    name: int
    cluster_id: int
    size: int
    first_run: str


def find_comparison(job: Job, axes: tuple[str, str], label: str | None) -> Comparison | None:
    """Gather what the tables of the job ``compare`` say; ``None`` if it has not run for this run.

    Parameters
    ----------
    axes : names of the coordinates that the map shows.
    label : the column that names a point to a person.
    """
    lake, run = job.lake, job.run
    inputs = Fingerprints(lake, run)
    try:
        flows = slices.read_slice(lake, inputs.slice("cluster_flows")).to_pylist()
        named = read_names(lake, run)
        changes = StoredSlice.of(job, inputs.slice("changes"))
        events = slices.read_slice(lake, inputs.slice("cluster_events")).to_pylist()
    except MissingSliceError:
        return None
    against = next((str(row["against"]) for row in flows if row["against"]), "")
    telling = most_telling(events)
    flowing = _flows_by_name(flows, named, against, run, telling)
    runs = tuple(dict.fromkeys(each.run for each in named))
    of_run = {each: events if each == run else _read_events(lake, each) for each in runs}
    happened = [event for each in reversed(runs) for event in most_telling(of_run[each])]
    lasting = _choose_names(_largest_sizes(named), happened)
    telling = telling[:MAX_EVENTS]
    shown = lasting | _names_told(telling, flowing) | _largest_names(named, run)
    counts, marks, examples = _sample_changes(changes, job.params.seed, axes, label)
    return Comparison(
        against=against,
        inserted=counts["inserted"],
        updated=counts["updated"],
        deleted=counts["deleted"],
        moved=counts["moved"],
        came=marks["came"],
        went=marks["went"],
        moves=marks["moves"],
        examples=examples,
        flows=flowing,
        runs=runs,
        lives=[
            {"run": each.run, "name": each.name, "size": each.size} for each in named if each.name in lasting
        ],
        marks=_list_marks(of_run, lasting),
        events=telling,
        n_events=Counter(row["event"] for row in events),
        labels=_read_labels(job, shown - {NOISE}, named, label),
        cluster_ids={each.name: each.cluster_id for each in named if each.run == run},
    )


def _largest_sizes(named: Iterable[Named]) -> Counter[int]:
    """The largest size that each name had."""
    sizes: Counter[int] = Counter()
    for each in named:
        sizes[each.name] = max(sizes[each.name], each.size)
    return sizes


def _largest_names(named: Iterable[Named], run: str) -> set[int]:
    """The names of the run's clusters that the report lists: the largest."""
    now = sorted((each for each in named if each.run == run), key=lambda each: (-each.size, each.cluster_id))
    return {each.name for each in now[:MAX_CLUSTERS]}


def _names_told(events: Iterable[Mapping[str, Any]], flows: Iterable[Mapping[str, Any]]) -> set[int]:
    """The names that occur in these events and flows."""
    of_events = {event[end] for event in events for end in ("name", "other") if event[end] is not None}
    return of_events | {row[end] for row in flows for end in ("before", "now") if isinstance(row[end], int)}


def _list_marks(
    events: Mapping[str, Iterable[Mapping[str, Any]]], names: Container[int]
) -> list[dict[str, Any]]:
    """What happened to these names, by the events of each run."""
    return [
        {"run": run, "event": row["event"], "name": row["name"]}
        for run, of_run in events.items()
        for row in sorted(of_run, key=lambda row: (row["name"], row["event"]))
        if row["name"] in names
    ]


def read_names(lake: Lake, run: str) -> list[Named]:
    """Read the named clusters of the last runs up to this one, oldest first.

    Raises
    ------
    MissingSliceError
        This run has none.
    """
    runs = [other for other in slices.list_runs(lake, "cluster_names") if other < run][-(MAX_RUNS - 1) :]
    columns = ["name", "cluster_id", "size", "first_run"]
    return [
        Named(run=other, **row)
        for other in (*runs, run)
        for row in slices.read_slice(lake, Fingerprints(lake, other).slice("cluster_names"), columns)
        .sort_by("name")
        .to_pylist()
    ]


def _read_events(lake: Lake, run: str) -> list[dict[str, Any]]:
    """Read the events of a run, which may have none."""
    try:
        where = Fingerprints(lake, run).slice("cluster_events")
        return list(slices.read_slice(lake, where).to_pylist())
    except MissingSliceError:
        return []


def _choose_names(sizes: Mapping[int, int], happened: Iterable[Mapping[str, Any]]) -> set[int]:
    """Choose names to which something happened, at most half of those shown, and then the largest.

    Mostly, something happens to small clusters, while the largest hardly change: alone they would show that
    nothing happened.
    """
    ends = (event[end] for event in happened for end in ("name", "other"))
    telling = [*dict.fromkeys(name for name in ends if name in sizes)][: MAX_NAMES // 2]
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))
    return set([*dict.fromkeys([*telling, *largest])][:MAX_NAMES])


def _flows_by_name(
    flows: Sequence[Mapping[str, Any]],
    named: Sequence[Named],
    against: str,
    run: str,
    happened: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Turn the flows of cluster ids into those of names, of chosen clusters only."""
    if not against:
        return []
    names = {side: {n.cluster_id: n.name for n in named if n.run == side} for side in (against, run)}
    chosen = _choose_names(_largest_sizes(each for each in named if each.run in names), happened)

    def end(side: str, cluster_id: int | None) -> int | str:
        if cluster_id is None:
            return ABSENT
        if cluster_id == NOISE:
            return NOISE
        name = names[side].get(cluster_id)
        return name if name in chosen else OTHERS

    members: Counter[tuple[int | str, int | str]] = Counter()
    for row in flows:
        members[end(against, row["cluster_before"]), end(run, row["cluster_id"])] += row["members"]
    return [
        {"before": before, "now": now, "members": number}
        for (before, now), number in sorted(members.items(), key=str)
        if before in chosen or now in chosen
    ]


def _sample_changes(
    changes: StoredSlice, seed: int, axes: tuple[str, str], label: str | None
) -> tuple[Counter[str], dict[str, Floats], list[dict[str, Any]]]:
    """Count the changes, draw those that the map marks, and describe the first ones of each kind."""
    drawn = changes.scan(["id", "what", "moved"], lambda batches: _draw(batches, seed))
    counts: Counter[str] = Counter()
    chosen = _NOTHING
    for batch in drawn:
        counts.update(json.loads(batch.schema.metadata[b"counts"]))
        of_batch = np.array(batch["of"].to_pylist(), np.str_)
        chosen = _choose(chosen, {of: batch["id"].to_numpy()[of_batch == of] for of in chosen}, seed)
    rows = changes.take_ids(
        np.concatenate(list(chosen.values())), ["id", "what", "moved", "columns", "before", "now"]
    )
    wanted = {of: set(ids.tolist()) for of, ids in chosen.items()}
    source = changes.job.lake.source
    marks: dict[str, list[list[float]]] = {"came": [], "went": [], "moves": []}
    examples = []
    for row in rows.sort_by([("id", "ascending"), ("what", "ascending")]).to_pylist():
        if row["id"] in wanted[row["what"]]:
            examples.append(_describe(row, source, label))
        if row["id"] not in wanted[_MARKS]:
            continue
        before, now = (_place(row[side], axes, source) for side in ("before", "now"))
        if row["what"] == "inserted":
            marks["came"].append(now)
        elif row["what"] == "deleted":
            marks["went"].append(before)
        elif row["moved"]:
            marks["moves"].append([*before, *now])
    widths = {"came": 2, "went": 2, "moves": 4}
    places = {kind: np.array(found, np.float64).reshape(-1, widths[kind]) for kind, found in marks.items()}
    return counts, places, sorted(examples, key=lambda row: CHANGES.index(row["what"]))


def _draw(batches: Iterable[pa.RecordBatch], seed: int) -> Iterator[pa.RecordBatch]:
    """Count the kinds of changes, and keep the ids of those that are marked or shown."""
    counts: Counter[str] = Counter()
    chosen = _NOTHING
    for batch in batches:
        what, moved = batch["what"], batch["moved"].to_numpy(zero_copy_only=False)
        counts.update({each["values"]: each["counts"] for each in what.value_counts().to_pylist()})
        counts["moved"] += int(moved.sum())
        ids, kinds = batch["id"].to_numpy(), np.array(what.to_pylist(), np.str_)
        new = {kind: ids[kinds == kind] for kind in CHANGES}
        chosen = _choose(chosen, {_MARKS: ids[moved | (kinds != "updated")], **new}, seed)
    schema = pa.schema([("of", pa.string()), ("id", pa.int64())], {b"counts": json.dumps(counts).encode()})
    of = [of for of, ids in chosen.items() for _ in ids]
    yield pa.record_batch([pa.array(of, pa.string()), np.concatenate(list(chosen.values()))], schema=schema)


def _choose(held: Mapping[str, Ints], new: Mapping[str, Ints], seed: int) -> dict[str, Ints]:
    """Keep the smallest ids of each kind, and of those to be marked the ones with the smallest hashes."""
    both = {of: np.concatenate([held[of], new[of]]) for of in held}
    return {
        of: ids[np.lexsort((ids, hash_ids(seed, ids)))[:MAX_MARKS]]
        if of == _MARKS
        else np.sort(ids)[:MAX_EXAMPLES]
        for of, ids in both.items()
    }


def _describe(row: Mapping[str, Any], source: SourceContract, label: str | None) -> dict[str, Any]:
    """Describe a change, as ``Comparison.examples`` has it."""
    none = dict.fromkeys(column.name for column in source.columns)  # the contract may have got some since
    before, now = ({**none, **json.loads(row[side] or "{}")} for side in ("before", "now"))
    names = json.loads(row["columns"] or "[]")
    return {
        "what": row["what"],
        "id": row["id"],
        **name_record(before if row["what"] == "deleted" else now, source, label),
        "columns": [(name, before[name], now[name]) for name in names],
    }


def _place(record: str | None, axes: tuple[str, str], source: SourceContract) -> list[float]:
    """Read x and y of a record, a JSON object; empty if there is no record."""
    values = json.loads(record) if record else None
    if values is None:
        return []
    if source.tree:
        return [float(number) for number in count_nodes(json.loads(values[source.tree]))]
    return [float(values[name]) if name else 0.0 for name in axes]


def _read_labels(job: Job, names: set[int], named: Sequence[Named], label: str | None) -> dict[int, str]:
    """Read the labels of the records that named the clusters, in the runs in which the names began."""
    if label is None:
        return {}
    wanted: dict[str, list[int]] = {}
    for name, first in {each.name: each.first_run for each in named if each.name in names}.items():
        wanted.setdefault(first, []).append(name)
    labels: dict[int, str] = {}
    for first, of_run in sorted(wanted.items()):
        try:
            points = StoredSlice.of(job, Slice("points", first))
        except MissingSliceError:
            continue
        records = read_records(points, np.array(of_run, np.int64))
        labels |= {name: str(row[label]) for name, row in records.items() if row[label]}
    return labels
