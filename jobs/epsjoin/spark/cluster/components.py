"""Connected components of any number of edges, distributed over tasks.

``local/cluster/components.py`` explains the steps and why they are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.kernels.cluster.components import EDGE
from epsjoin.local.arguments import check_count
from epsjoin.local.cluster.components import Meeting, contract, settle
from epsjoin.local.cluster.from_pairs import spanning_forest
from epsjoin.spark.rows.persist import materialize, persist_until
from epsjoin.spark.rows.rows import FrameRows, frame_of
from epsjoin.spark.tasks.progress import progress_shown
from epsjoin.spark.tasks.reports import task_number

MAX_IN_ONE_TASK = 8_000_000
"""Maximum number of edges in one task: some 100 bytes each while they are contracted, so below 1 GB."""

MAX_EDGES_AT_ONCE = 1_000_000
"""Maximum number of edges that one task joins directly: starting more Spark jobs would take longer."""

_WIDTH = 8
"""Number of forests that a task of the tree joins: few levels, but still several tasks on each level."""

_PARTS_PER_CORE = 2
"""Number of parts per core in the rounds: fewer leave cores idle; with more, each part knows fewer edges."""

_BATCH_ROWS = 1 << 16
"""Maximum number of rows in a batch that a task returns."""


def join_forests(
    forests: DataFrame, max_in_one_task: int = MAX_IN_ONE_TASK, max_edges_at_once: int = MAX_EDGES_AT_ONCE
) -> DataFrame:
    """Join edges into connected components, each named by its smallest node.

    This is not lazy: it runs Spark jobs. The result is persisted; unpersist it only after it was used, since
    for few edges it is computed then. ``forests`` is read twice, so it should be persisted, too.

    There are three ways. Up to ``max_edges_at_once`` edges are joined by one task. Otherwise each partition
    is first contracted to a forest. If ``max_in_one_task`` edges or fewer are left, a tree of tasks joins
    eight forests at a time. If more are left, a distributed algorithm runs in rounds of two shuffles each, in
    which no task holds a whole component; once few enough edges are left, the tree joins them.

    Parameters
    ----------
    forests : (node long, root long), edges in any number of partitions, without nulls; loops, repeated edges
        and both directions are allowed. A partition of more than ``max_in_one_task`` edges must have the same
        order if it is computed again (files have; after a shuffle, sort it).
    max_in_one_task : maximum number of edges that a task may hold, at least 1; some 100 bytes each. In the
        rounds a task also holds one answer per tree of its part, at most as many again.
    max_edges_at_once : maximum number of edges that one task joins directly; with 0 this way is not taken.

    Returns
    -------
    (node long, root long): every node that is not the smallest of its component, once, with the smallest.
        The rows are the same under every partitioning; their order is not defined.

    Raises
    ------
    ArgumentError
        ``max_in_one_task`` is not a whole number, or below 1.

    Notes
    -----
    A round moves each edge twice and each root once per part that has it; about log2 of the number of parts
    or of nodes, whichever is smaller, are needed. The driver sees one number per part and round.

    Each round is persisted until the next one is computed. If an executor is lost, Spark recomputes its
    partitions from the round before, and those that were lost there from the one before that, back to
    ``forests`` if need be. ``localCheckpoint`` would avoid that and the growing plan, but then a lost
    executor would end the job; and planning takes no longer in later rounds (measured over seven).
    """
    most = check_count("max_in_one_task", max_in_one_task)
    with progress_shown(forests.sparkSession), ExitStack() as done:
        if max_edges_at_once and forests.count() <= min(most, max_edges_at_once):
            one = forests.select(F.lit(0).alias("part"), "node", "root")
            return _join_by_tree(one, 1).persist()
        parts = persist_until(_contract_partitions(forests, most), done)
        sizes = {row["part"]: row["count"] for row in parts.groupBy("part").count().collect()}
        names, counts = sorted(sizes), [sizes[name] for name in sorted(sizes)]
        is_few = sum(counts) <= most
        if len(names) <= 1:
            joined = materialize(parts.select("node", "root"))
        elif is_few:
            groups = [place // _WIDTH for place in range(len(names))]
            joined = materialize(_join_by_tree(_group_parts(parts, names, groups), groups[-1] + 1))
        else:
            cores = forests.sparkSession.sparkContext.defaultParallelism
            groups = _group_neighbours(counts, min(most, -(-sum(counts) // (_PARTS_PER_CORE * cores))))
            rows = _group_parts(parts, names, groups).withColumn("kind", F.lit(EDGE))
            held = materialize(_settle_parts(rows, groups[-1] + 1))
            parts.unpersist()
            joined = _join_by_rounds(held, groups[-1] + 1, most)
    return joined


def _contract_partitions(edges: DataFrame, most: int) -> DataFrame:
    """Contract each partition to one forest, or to several if it is large: (part, node, root)."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        edges_of = ((batch.column(0).to_numpy(), batch.column(1).to_numpy()) for batch in batches)
        first = task_number() << 32
        for place, trees in enumerate(contract(edges_of, most)):
            yield from _batches(
                part=np.full(trees.node.size, first + place), node=trees.node, root=trees.root
            )

    return FrameRows(edges.select("node", "root")).map(work, "part long, node long, root long")


def _group_parts(parts: DataFrame, names: Sequence[int], groups: Sequence[int]) -> DataFrame:
    """Replace the name of each part by the number of its group: (part int, node, root)."""
    table = pa.table({"part": np.array(names, np.int64), "group": np.array(groups, np.int32)})
    group_of = frame_of(parts.sparkSession, table)
    return parts.join(F.broadcast(group_of), "part").select(F.col("group").alias("part"), "node", "root")


def _group_neighbours(counts: Sequence[int], most: int) -> list[int]:
    """Group neighbouring parts, which are likely to have nodes in common: the number of each part's group.

    A group has at most ``most`` edges, except if it is a single part that has more.
    """
    groups: list[int] = []
    total = 0
    for count in counts:
        is_new = total + count > most
        total = count if is_new else total + count
        groups.append(groups[-1] + is_new if groups else 0)
    return groups


def _join_by_tree(parts: DataFrame, n_parts: int) -> DataFrame:
    """Contract the parts, then groups of neighbouring parts, until one is left: (node, root)."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        node, root = _columns(batches, "node", "root")
        trees = spanning_forest(node, root)
        part = np.full(trees.node.size, task_number() // _WIDTH, np.int32)
        yield from _batches(part=part, node=trees.node, root=trees.root)

    while True:
        parts = FrameRows(parts.repartitionById(n_parts, "part")).map(work, "part int, node long, root long")
        if n_parts == 1:
            return parts.select("node", "root")
        n_parts = -(-n_parts // _WIDTH)


def _join_by_rounds(held: DataFrame, n_parts: int, most: int) -> DataFrame:
    """Run rounds until no row changes or the tree can join the edges that are left; returns (node, root).

    Parameters
    ----------
    held : the persisted result of :func:`_settle_parts`; it is unpersisted once the next round is computed.
    """
    is_edge = F.col("node") != F.col("root")
    with ExitStack() as done:
        done.callback(held.unpersist)
        while True:
            before, held = held, persist_until(_run_round(held, n_parts), done)
            n_changes, n_edges = held.agg(F.sum("changes"), F.count_if(is_edge)).collect()[0]
            before.unpersist()
            if n_changes == 0 or n_edges <= most:
                break
        trees = held.where(is_edge).select(F.spark_partition_id().alias("part"), "node", "root")
        if n_changes:
            groups = (F.col("part") / _WIDTH).cast("int")
            trees = _join_by_tree(trees.withColumn("part", groups), -(-n_parts // _WIDTH))
        return materialize(trees.select("node", "root"))


def _run_round(held: DataFrame, n_parts: int) -> DataFrame:
    # A partition still is a part, since no shuffle came after :func:`_settle_parts`.
    rows = held.select(F.spark_partition_id().alias("part"), "node", "root")
    return _settle_parts(_meet_by_node(rows, n_parts), n_parts)


def _meet_by_node(rows: DataFrame, n_tasks: int) -> DataFrame:
    """Take the first step of a round, on (part, node, root): (part, node, root, kind).

    Spark sorts the rows on disk if need be and streams them, so no task holds all rows of a node.
    """

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        meeting = Meeting()
        for batch in batches:
            met = meeting.of(batch.column("node").to_numpy(), batch.column("root").to_numpy())
            part = batch.column("part").to_numpy()[met.place]
            yield pa.record_batch({"part": part, "node": met.node, "root": met.root, "kind": met.kind})

    # Sorted by part as well, so that the same one of equal rows stays if a task runs again.
    by_node = rows.repartition(n_tasks, "node").sortWithinPartitions("node", "root", "part")
    return FrameRows(by_node).map(work, "part int, node long, root long, kind int")


def _settle_parts(rows: DataFrame, n_parts: int) -> DataFrame:
    """Take the second step of a round: (node, root, changes), one partition for each part.

    ``changes`` is the number of the part's hooks and answers in its first row, and 0 in its others.
    """

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        node, root, kind = _columns(batches, "node", "root", "kind")
        trees = settle(node, root, kind)
        changes = np.zeros(trees.node.size, np.int64)
        changes[:1] = np.count_nonzero(kind != EDGE)
        yield from _batches(node=trees.node, root=trees.root, changes=changes)

    return FrameRows(rows.repartitionById(n_parts, "part")).map(work, "node long, root long, changes long")


def _columns(batches: Iterable[pa.RecordBatch], *names: str) -> list[NDArray[Any]]:
    """All rows of a task as arrays."""
    rows = list(batches)
    return [
        np.concatenate([np.empty(0, np.int64), *(batch.column(name).to_numpy() for batch in rows)])
        for name in names
    ]


def _batches(**columns: NDArray[np.generic]) -> Iterator[pa.RecordBatch]:
    """Divide columns into batches of a size that suits the JVM."""
    rows = pa.table(columns)
    yield from rows.to_batches(_BATCH_ROWS)
