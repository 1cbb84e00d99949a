"""What sets the largest clusters apart, from points that the scan of another question keeps on its way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.lake.schemas import parse_ddl
from epsjoin.spark.neighbours.nearest import NEAR
from epsjoin.spark.points.points import stored_reading
from epsjoin.spark.report.members import ClusterSample
from epsjoin.spark.rows.stored import MAX_THREADS, StoredSlice, in_table
from epsjoin.spark.tasks.arrow import Task


@dataclass(frozen=True)
class DeviationSample:
    """Random points of a run and of its largest clusters, whose coordinates another question's scan keeps.

    Parameters
    ----------
    points : the points of the run.
    described : which points these are; the sample of the clusters is filled before the scan.
    kept : the rows of both, which the scan fills.
    """

    points: StoredSlice
    described: ClusterSample
    kept: list[pa.Table] = field(default_factory=list)

    @classmethod
    def of(cls, points: StoredSlice) -> DeviationSample:
        """Begin the samples of a run."""
        return cls(points, ClusterSample.of(points.job.lake.source, points.job.params))

    def scan(self, names: Sequence[str], work: Task) -> list[pa.RecordBatch]:
        """Scan all points for another question, and keep the rows of both samples on the way.

        Parameters
        ----------
        names : names of the columns, which are those of ``STORED``.
        work : answers the question by rows of ``NEAR``.
        """
        if self.described.is_empty:
            return self.points.scan(names, work, threads=MAX_THREADS)
        is_kept = self.described.make_choice(self.points.n)
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

    def describe(self, n_clusters: int) -> Sequence[str | None]:
        """Find for each cluster, by its number, in which dimensions its median deviates most, and how far."""
        if not self.kept:
            return [None] * n_clusters
        lake = self.points.job.lake
        ids, points = stored_reading(lake).arrays(pa.concat_tables(self.kept).sort_by("id"))
        return self.described.describe(ids, points, n_clusters)
