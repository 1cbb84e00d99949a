"""The command ``epsjoin clusters``: the clusters of all runs by the names that they keep, or one's life."""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.commands.history import find_id
from epsjoin.commands.runs import count_values, first_rows, print_answer, read_each_run, texts_of
from epsjoin.console import counted
from epsjoin.errors import ArgumentError, TableError, UnfitTableError
from epsjoin.lake import slices
from epsjoin.lake.arguments import add_lake, open_stored
from epsjoin.lake.arrow import to_matrix
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.params import RunParams
from epsjoin.report import words
from epsjoin.spark.report.members import MAX_CLUSTERS, ClusterSample, locate

MAX_BYTES = 256 << 20
"""Maximum number of bytes of ids and points that are read to say what deviates."""

DEVIATES = "what deviates"
"""Head of the words that say what sets a cluster apart, as in the report."""

Row = dict[str, Any]

T = TypeVar("T")


class NamedRun(NamedTuple):
    """The named clusters of a run.

    Parameters
    ----------
    names, events : its slices of ``cluster_names`` and of ``cluster_events``.
    """

    names: Slice
    events: Slice

    @property
    def run(self) -> str:
        """Logical date of the run."""
        return self.names.run


class Life(NamedTuple):
    """What a run has of one cluster.

    Parameters
    ----------
    run : logical date of the run.
    rows : its rows of ``cluster_names`` that have the name.
    events : its rows of ``cluster_events`` that have the name, at either end.
    called : names of the clusters of the run whose ``cluster_id`` the name is.
    """

    run: str
    rows: list[Row]
    events: list[Row]
    called: list[int]


class RunCounts(NamedTuple):
    """The numbers of a run's clusters and of its events, by kind."""

    run: str
    clusters: int
    events: Counter[str]


def main(argv: Sequence[str]) -> int:
    """Print the clusters of all runs, or the life of one."""
    parser = argparse.ArgumentParser(
        prog="epsjoin clusters",
        description="Print the clusters of all runs by the names that they keep, or the history of one.",
    )
    add_lake(parser, has_run=False)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--name", type=int, help="print the history of the cluster with this name")
    which.add_argument(
        "--key",
        action="append",
        help="the same for the cluster named by the record with this key; once for each column of the key",
    )
    arguments = parser.parse_args(argv)
    lake = open_stored(arguments)
    name = arguments.name if arguments.key is None else find_id(lake.source, arguments.key)
    if name is None:
        counts = read_runs(lake)
        n_runs, lines = len(counts), _list_clusters(lake, counts)
    else:
        lives = _read_runs(lake, partial(_read_life, name=name))
        n_runs, lines = len(lives), _tell_life(lives, name, by_key=arguments.key is not None)
    print_answer(lake, counted(n_runs, "run"), lines)
    return 0


def _read_runs(lake: Lake, read: Callable[[Lake, NamedRun], T]) -> list[T]:
    """Read something of every run, the oldest first; :func:`read_each_run` tells which are left out."""

    def read_run(lake: Lake, run: str) -> T:
        of = Fingerprints(lake, run)
        return read(lake, NamedRun(of.slice("cluster_names"), of.slice("cluster_events")))

    found = list(read_each_run(lake, "cluster_names", read_run, "clusters"))
    if not found:
        raise UnfitTableError(
            f"{lake.source.name} has no named clusters in {lake.location('')}; run compare for a run first"
        )
    return found


def read_runs(lake: Lake) -> list[RunCounts]:
    """Count the clusters of every run and its events, the oldest run first.

    Raises
    ------
    UnfitTableError
        No run has named clusters, or the data set has none.
    """
    return _read_runs(lake, _count_run)


def _count_run(lake: Lake, of: NamedRun) -> RunCounts:
    return RunCounts(of.run, slices.count_rows(lake, of.names), count_values(lake, of.events, "event"))


def _read_life(lake: Lake, of: NamedRun, name: int) -> Life:
    """Read the rows of a run that tell of one name."""
    if not -(2**63) <= name < 2**63:  # no id is beyond 64 bits, so no cluster has this name
        return Life(of.run, [], [], [])

    def find(where: Slice, *columns: str) -> list[Row]:
        def is_wanted(batch: pa.RecordBatch) -> NDArray[np.bool_]:
            are = (pc.fill_null(pc.equal(batch[column], name), False) for column in columns)
            return np.asarray(np.logical_or.reduce([each.to_numpy(False) for each in are]))

        return list(slices.take_from_slice(lake, where, columns, is_wanted).to_pylist())

    names = find(of.names, "name", "cluster_id")
    called = [row["name"] for row in names if row["cluster_id"] == name]
    events = find(of.events, "name", "other")
    return Life(of.run, [row for row in names if row["name"] == name], events, called)


def describe_event(row: Mapping[str, Any]) -> str:
    """Say what happened to a cluster, without its name: ``merged into 100, 10 points``."""
    n = counted(row["members"], "point")
    match row["event"]:
        case "split":
            text = f"lost {n} to {row['other']}"
            return f"split up, {text}" if row["ends"] else text
        case "split_off":
            return f"split off {row['other']}, {n}"
        case "merged":
            return f"merged into {row['other']}, {n}"
        case "grown" | "shrunk" as event:
            return f"{event} by {n}"
    return f"{row['event']}, {n}"


def _list_clusters(lake: Lake, runs: Sequence[RunCounts]) -> Iterator[str]:
    yield f"{'run':<10}  {'clusters':>10}  events"
    for run in runs:
        told = ", ".join(f"{n:,} {what}" for what, n in run.events.items())
        yield f"{run.run:<10}  {run.clusters:>10,}  {told}"
    last = Fingerprints(lake, runs[-1].run)
    order = [("size", "descending"), ("name", "ascending")]
    columns = ["name", "cluster_id", "size", "first_run", "runs"]
    largest = first_rows(lake, last.slice("cluster_names"), order, MAX_CLUSTERS, columns)
    if not largest:
        return
    try:
        deviations, why = find_deviations(last, [row["cluster_id"] for row in largest]), ""
    except TableError as error:  # the list is the answer; what deviates is beside it
        deviations, why = [], str(error)
    width = max(map(len, (DEVIATES, *deviations)))
    heads = [f"{text:<{width}}" for text in (DEVIATES, *deviations)] if deviations else []
    yield ""
    head = f"{'name':>20}  {'since':<10}  {'runs':>6}  {'size':>10}"
    yield "  ".join([head, *heads[:1], f"named by (the largest of {last.run})"])
    texts = name_records(lake, largest)
    for place, row in enumerate(largest, 1):
        numbers = f"{row['name']:>20}  {row['first_run']:<10}  {row['runs']:>6,}  {row['size']:>10,}"
        yield "  ".join([numbers, *heads[place : place + 1], texts.get(row["name"], "")])
    if why:
        yield ""
        yield f"{DEVIATES} is left out: {why}"


def find_deviations(inputs: Fingerprints, clusters: Sequence[int]) -> list[str]:
    """Say in which dimensions clusters of a run deviate most from all points, as the report does.

    The points are drawn with the run's own parameters; for runs that an older version has made, with those of
    the data set.

    Parameters
    ----------
    inputs : fingerprints of the run.
    clusters : their ``cluster_id``, at most ``MAX_CLUSTERS``.

    Returns
    -------
    list of str
        Words for each cluster; empty for documents, whose numbers say nothing to a person.

    Raises
    ------
    TableError
        There are more points than are read here; a table is damaged, or does not belong to the others.
    """
    lake, run = inputs.lake, inputs.run
    source = lake.source
    points, members = inputs.slice("points"), inputs.slice("clusters")
    sample = ClusterSample.of(source, _params_of(lake, run))
    n, d = slices.count_rows(lake, points), len(source.axes)
    if not sample.n_usual:
        return []
    if n > (most := MAX_BYTES // (8 + 8 * d)):
        raise UnfitTableError(f"run {run} has {n:,} points; of more than {most:,} only the report says it")
    order = np.argsort(clusters)
    for batch in slices.stream_slice(lake, members, ["id", "cluster_id"]):
        rows, at = locate(batch["cluster_id"].to_numpy(), np.asarray(clusters)[order])
        sample.members.add(batch["id"].to_numpy()[rows], order[at])
    if len(sample.members.ids) < len(clusters):
        raise UnfitTableError(f"clusters of run {run} does not have all that compare named; run it again")
    is_needed, kept = sample.make_choice(n), list[pa.RecordBatch]()
    for batch in slices.stream_slice(lake, points, ["id", "point"]):
        kept.append(batch.filter(pa.array(is_needed(batch["id"].to_numpy()))))
    found = pa.Table.from_batches(kept).sort_by("id")
    return sample.describe(found["id"].to_numpy(), to_matrix(found["point"], d), len(clusters))


def _params_of(lake: Lake, run: str) -> RunParams:
    """The parameters with which the job ``outliers`` of a run drew points, as far as it has stored them."""
    found = slices.read_counters(lake, run).get("outliers", {})
    own = {name: int(found[name]) for name in ("sample_rows", "seed") if name in found}
    return RunParams.from_json(json.dumps(own), lake.source.defaults)


def name_records(lake: Lake, rows: Iterable[Row]) -> dict[int, str]:
    """What the records that named clusters say, in the runs where the names began, if these are there."""
    found: dict[int, str] = {}
    first = defaultdict[str, list[int]](list)
    for row in rows:
        first[row["first_run"]].append(row["name"])
    for run, names in first.items():
        with suppress(TableError):  # the list is the answer; what the records say is beside it
            found |= texts_of(lake, Slice("points", run), names)
    return found


def _tell_life(runs: Sequence[Life], name: int, *, by_key: bool) -> Iterator[str]:
    if any(run.rows for run in runs):
        return _list_life(runs, name)
    if by_key:
        raise ArgumentError(
            "the record of this key has named no cluster; without --key the largest are listed"
        )
    of_id = {other: run.run for run in runs for other in run.called}
    told = ", ".join(f"that of the cluster {other} in run {run}" for other, run in of_id.items())
    is_id = f" (it is a cluster_id, {told})" if told else ""
    raise ArgumentError(
        f"no run has a cluster of the name {name}{is_id}; without --name and --key the largest are listed"
    )


def _list_life(runs: Sequence[Life], name: int) -> Iterator[str]:
    yield f"{'run':<10}  {'cluster_id':>20}  {'size':>10}  {'came':>8}  {'went':>8}  what happened to {name}"
    for run in runs:
        happened = "; ".join(describe_event(row) for row in run.events if row["name"] == name)
        others = [f"{row['name']} {describe_event(row)}" for row in run.events if row["other"] == name]
        told = "; ".join(filter(None, [happened, *others]))
        for row in run.rows:
            came = row["from_clusters"] + row["from_noise"] + row["inserted"]
            went = row["to_clusters"] + row["to_noise"] + row["deleted"]
            numbers = f"{row['cluster_id']:>20}  {row['size']:>10,}  {came:>8,}  {went:>8,}"
            yield f"{run.run:<10}  {numbers}  {told}"
        if not run.rows and told:
            yield f"{run.run:<10}  {words.MISSING:>20}  {words.MISSING:>10}  {'':>8}  {'':>8}  {told}"
