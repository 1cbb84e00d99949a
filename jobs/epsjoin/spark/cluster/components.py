"""Connected components without a centre; the steps and why they are exact: ``local/components.py``."""

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
from epsjoin.spark.persist import materialize, persist_until
from epsjoin.spark.progress import progress_shown
from epsjoin.spark.tasks import task_number

MAX_IN_ONE_TASK = 8_000_000
"""Edges in one task: some 100 bytes each while they are contracted, so a Python worker below 1 GB."""

MAX_EDGES_AT_ONCE = 1_000_000
"""So few edges one task joins at once: jobs of Spark's for anything cleverer would take longer."""

_WIDTH = 8
"""Forests joined at a time in the tree: enough for few levels, few enough that a level shares the work."""

_PARTS_PER_CORE = 2
"""Parts that the rounds aim at: fewer would leave cores idle, more would know less of one another."""

_BATCH_ROWS = 1 << 16


def join_forests(
    forests: DataFrame, max_in_one_task: int = MAX_IN_ONE_TASK, max_edges_at_once: int = MAX_EDGES_AT_ONCE
) -> DataFrame:
    """Join edges into connected components, each named by its smallest node.

    Not lazy: jobs run inside. The result is persisted; unpersist it when it is used, for of few edges it is
    computed only then. ``forests`` is read twice, so it should be persisted, too.

    Up to ``max_edges_at_once``: one task. Up to ``max_in_one_task`` edges, counted after each partition is
    contracted: a tree of joins, eight forests at a time. Above it: rounds of a distributed algorithm, two
    shuffles each, in which no task gathers a component; they end by the tree when few enough edges are left.

    Parameters
    ----------
    forests : (node long, root long), edges in any number of partitions, no nulls; loops, repeats and both
        directions allowed. A partition of more than ``max_in_one_task`` edges must come in the same order
        if it is computed again (files do; behind a shuffle, sort it).
    max_in_one_task : edges that a task may hold, at least 1; 100 bytes each. In the rounds a task holds in
        addition one answer per tree of its part, at most as many.

    max_edges_at_once : edges that one task joins without further ado; 0: never.

    Returns
    -------
    (node long, root long): every node that is not the smallest of its component, once, with the smallest.
        The same rows whatever the partitions; their order is open.

    Raises
    ------
    ArgumentError
        ``max_in_one_task`` is not a whole number, or below 1.

    Notes
    -----
    A round moves each edge twice and each root once per part that has it; about log2 of the number of parts
    or of nodes, whichever is smaller, are needed. The driver sees one number per part and round.

    Each round is persisted until the next one is there. An executor lost on the way costs time, not the run:
    Spark computes its share again from the round before, whose lost share it computes again in the same way,
    back to ``forests`` if need be. ``localCheckpoint`` would spare that and the longer plan, but a lost
    executor would end the job; and a plan takes no longer in later rounds (measured over seven).
    """
    most = check_count("max_in_one_task", max_in_one_task)
    with progress_shown(forests.sparkSession), ExitStack() as done:
        if max_edges_at_once and forests.count() <= min(most, max_edges_at_once):
            one = forests.select(F.lit(0).alias("part"), "node", "root")
            return _by_tree(one, 1).persist()
        parts = persist_until(_contracted(forests, most), done)
        sizes = {row["part"]: row["count"] for row in parts.groupBy("part").count().collect()}
        names, counts = sorted(sizes), [sizes[name] for name in sorted(sizes)]
        is_few = sum(counts) <= most
        if len(names) <= 1:
            joined = materialize(parts.select("node", "root"))
        elif is_few:
            groups = [place // _WIDTH for place in range(len(names))]
            joined = materialize(_by_tree(_gathered(parts, names, groups), groups[-1] + 1))
        else:
            cores = forests.sparkSession.sparkContext.defaultParallelism
            groups = _neighbours(counts, min(most, -(-sum(counts) // (_PARTS_PER_CORE * cores))))
            rows = _gathered(parts, names, groups).withColumn("kind", F.lit(EDGE))
            held = materialize(_settled(rows, groups[-1] + 1))
            parts.unpersist()
            joined = _by_rounds(held, groups[-1] + 1, most)
    return joined


def _contracted(edges: DataFrame, most: int) -> DataFrame:
    """Each partition as one forest, a large one as several: (part, node, root)."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shares = ((batch.column(0).to_numpy(), batch.column(1).to_numpy()) for batch in batches)
        first = task_number() << 32
        for place, trees in enumerate(contract(shares, most)):
            yield from _rows(part=np.full(trees.node.size, first + place), node=trees.node, root=trees.root)

    return edges.select("node", "root").mapInArrow(work, "part long, node long, root long")


def _gathered(parts: DataFrame, names: Sequence[int], groups: Sequence[int]) -> DataFrame:
    """The rows with the number of their group instead of the name of their part: (part int, node, root)."""
    table = pa.table({"part": np.array(names, np.int64), "group": np.array(groups, np.int32)})
    group_of = parts.sparkSession.createDataFrame(table)
    return parts.join(F.broadcast(group_of), "part").select(F.col("group").alias("part"), "node", "root")


def _neighbours(counts: Sequence[int], most: int) -> list[int]:
    """Number of the group of each part: neighbours, for they share nodes, of at most ``most`` edges in all.

    A part of more is a group of its own.
    """
    groups: list[int] = []
    total = 0
    for count in counts:
        is_new = total + count > most
        total = count if is_new else total + count
        groups.append(groups[-1] + is_new if groups else 0)
    return groups


def _by_tree(parts: DataFrame, n_parts: int) -> DataFrame:
    """Contract the parts, then groups of neighbouring parts, until one is left: (node, root)."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        node, root = _columns(batches, "node", "root")
        trees = spanning_forest(node, root)
        part = np.full(trees.node.size, task_number() // _WIDTH, np.int32)
        yield from _rows(part=part, node=trees.node, root=trees.root)

    while True:
        parts = parts.repartitionById(n_parts, "part").mapInArrow(work, "part int, node long, root long")
        if n_parts == 1:
            return parts.select("node", "root")
        n_parts = -(-n_parts // _WIDTH)


def _by_rounds(held: DataFrame, n_parts: int, most: int) -> DataFrame:
    """Rounds until no row changes, or until few enough edges are left for the tree: (node, root), computed.

    Parameters
    ----------
    held : as :func:`_settled` returns it, computed; unpersisted when the next round is there.
    """
    is_edge = F.col("node") != F.col("root")
    with ExitStack() as done:
        done.callback(held.unpersist)
        while True:
            before, held = held, persist_until(_after_round(held, n_parts), done)
            n_changes, n_edges = held.agg(F.sum("changes"), F.count_if(is_edge)).collect()[0]
            before.unpersist()
            if n_changes == 0 or n_edges <= most:
                break
        trees = held.where(is_edge).select(F.spark_partition_id().alias("part"), "node", "root")
        if n_changes:
            groups = (F.col("part") / _WIDTH).cast("int")
            trees = _by_tree(trees.withColumn("part", groups), -(-n_parts // _WIDTH))
        return materialize(trees.select("node", "root"))


def _after_round(held: DataFrame, n_parts: int) -> DataFrame:
    # A partition is a part: nothing has moved since it was settled.
    rows = held.select(F.spark_partition_id().alias("part"), "node", "root")
    return _settled(_met(rows, n_parts), n_parts)


def _met(rows: DataFrame, n_tasks: int) -> DataFrame:
    """First step of a round, on (part, node, root): (part, node, root, kind).

    The sort spills to disk, the rows stream by: no task holds the rows of a node.
    """

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        meeting = Meeting()
        for batch in batches:
            met = meeting.of(batch.column("node").to_numpy(), batch.column("root").to_numpy())
            part = batch.column("part").to_numpy()[met.place]
            yield pa.record_batch({"part": part, "node": met.node, "root": met.root, "kind": met.kind})

    # Sorted by part as well: which of equal rows stays must be the same if a task runs again.
    by_node = rows.repartition(n_tasks, "node").sortWithinPartitions("node", "root", "part")
    return by_node.mapInArrow(work, "part int, node long, root long, kind int")


def _settled(rows: DataFrame, n_parts: int) -> DataFrame:
    """Second step of a round: (node, root, changes), a partition per part.

    ``changes`` is the number of the part's hooks and answers in its first row, 0 in the others.
    """

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        node, root, kind = _columns(batches, "node", "root", "kind")
        trees = settle(node, root, kind)
        changes = np.zeros(trees.node.size, np.int64)
        changes[:1] = np.count_nonzero(kind != EDGE)
        yield from _rows(node=trees.node, root=trees.root, changes=changes)

    return rows.repartitionById(n_parts, "part").mapInArrow(work, "node long, root long, changes long")


def _columns(batches: Iterable[pa.RecordBatch], *names: str) -> list[NDArray[Any]]:
    """A task's rows as arrays."""
    rows = list(batches)
    return [
        np.concatenate([np.empty(0, np.int64), *(batch.column(name).to_numpy() for batch in rows)])
        for name in names
    ]


def _rows(**columns: NDArray[np.generic]) -> Iterator[pa.RecordBatch]:
    """Columns as batches that the JVM takes in without trouble."""
    rows = pa.table(columns)
    yield from rows.to_batches(_BATCH_ROWS)
