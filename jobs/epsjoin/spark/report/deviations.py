"""What sets the largest clusters apart: the dimensions in which they deviate most from all points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.lake.schemas import parse_ddl
from epsjoin.local.cluster.describe import cluster_medians
from epsjoin.local.metric import get_metric
from epsjoin.spark.neighbours.nearest import NEAR
from epsjoin.spark.neighbours.ranked import Usual
from epsjoin.spark.points.hashes import hash_ids
from epsjoin.spark.points.points import bound_hashes, first_hashed, stored_reading
from epsjoin.spark.report.clusters import MAX_CLUSTERS, MemberSample, locate
from epsjoin.spark.rows.stored import MAX_THREADS, StoredSlice, in_table
from epsjoin.spark.tasks.arrow import Task

MAX_MEMBERS, MIN_MEMBERS = 1000, 100
"""Maximum number of points of a cluster of which medians are taken, and that in very many dimensions."""

MIN_USUAL = 1000
"""Number of all points of which medians are taken in very many dimensions; in few it is ``sample_rows``."""

_MAX_NUMBERS = 1 << 17
"""Number of coordinates of which medians are taken within a few milliseconds."""


@dataclass(frozen=True)
class DeviationSample:
    """Random points of a run and of its largest clusters, whose coordinates another question's scan keeps.

    Parameters
    ----------
    points : the points of the run.
    members : the sample of the clusters; filled before the scan.
    n_usual : number of points of the sample of all, those with the smallest hashes of their ids. In few
        dimensions they are those by which outliers are said to deviate.
    kept : the rows of both, which the scan fills.
    """

    points: StoredSlice
    members: MemberSample
    n_usual: int
    kept: list[pa.Table] = field(default_factory=list)

    @classmethod
    def of(cls, points: StoredSlice) -> DeviationSample:
        """Begin the samples of a run; of documents none, since a number of theirs says nothing."""
        source, params = points.job.lake.source, points.job.params
        n_rows = _MAX_NUMBERS // len(source.axes)
        n_members = min(MAX_MEMBERS, max(MIN_MEMBERS, n_rows // MAX_CLUSTERS))
        n_usual = min(params.sample_rows, max(MIN_USUAL, n_rows))
        if source.tree:
            n_members = n_usual = 0
        return cls(points, MemberSample(n_members, params.seed), n_usual)

    def scan(self, names: Sequence[str], work: Task) -> list[pa.RecordBatch]:
        """Scan all points for another question, and keep the rows of both samples on the way.

        Parameters
        ----------
        names : names of the columns, which are those of ``STORED``.
        work : answers the question by rows of ``NEAR``.
        """
        wanted = np.unique(np.concatenate([np.empty(0, np.int64), *self.members.ids.values()]))
        if not len(wanted):
            return self.points.scan(names, work, threads=MAX_THREADS)
        is_kept = _make_choice(wanted, bound_hashes(self.n_usual, self.points.n), self.members.seed)
        near, stored = parse_ddl(NEAR), self.points.columns(names)
        both = pa.unify_schemas([near, stored])

        def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            kept: list[pa.RecordBatch] = []

            def pass_on() -> Iterator[pa.RecordBatch]:
                for batch in batches:
                    kept.append(batch.filter(pa.array(is_kept(batch["id"].to_numpy()))))
                    yield batch

            found = in_table(list(work(pass_on())), near)
            rows = pa.concat_tables([found, in_table(kept, stored)], promote_options="default")
            yield from rows.combine_chunks().to_batches()

        rows = in_table(self.points.scan(names, scan, threads=MAX_THREADS), both)
        is_point = pc.is_valid(rows["point"])
        self.kept.append(rows.filter(is_point).select(names))
        found: list[pa.RecordBatch] = rows.filter(pc.invert(is_point)).select(near.names).to_batches()
        return found

    def describe(self, n_clusters: int) -> list[str | None]:
        """Say of each cluster, by its number, in which dimensions its median deviates most, and how far."""
        if not self.kept:
            return [None] * n_clusters
        lake = self.points.job.lake
        ids, points = stored_reading(lake).arrays(pa.concat_tables(self.kept).sort_by("id"))
        metric, seed = get_metric(lake.source.point_metric), self.members.seed
        usual = Usual.of(points[first_hashed(ids, self.n_usual, seed)], lake.source.axes, metric)
        rows = [locate(self.members.ids[number], ids)[1] for number in range(n_clusters)]
        numbers = np.repeat(np.arange(n_clusters), [len(some) for some in rows])
        medians = cluster_medians(points[np.concatenate(rows)], numbers, metric.full_turn)[2]
        return list(usual.describe(medians).to_pylist())


def _make_choice(wanted: Ints, bound: int | None, seed: int) -> Callable[[Ints], Bools]:
    """Make what tells which ids are kept: those that are wanted, which ascend, and those of low hashes."""

    def is_kept(ids: Ints) -> Bools:
        if bound is None:
            return np.ones(len(ids), np.bool_)
        is_low = hash_ids(seed, ids) < bound
        is_low[locate(ids, wanted)[0]] = True
        return np.asarray(is_low)

    return is_kept
