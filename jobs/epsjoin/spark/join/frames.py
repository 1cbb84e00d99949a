"""The join of frames, planned on samples: what the functions on DataFrames share."""

from __future__ import annotations

from numpy.typing import ArrayLike
from pyspark.sql import DataFrame

from epsjoin.errors import BudgetError
from epsjoin.lake import delta_log, parquet, schemas
from epsjoin.lake.parquet import Target
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.spark import scan
from epsjoin.spark.join.merge_join import join_files, join_frame, make_joiner
from epsjoin.spark.join.pairs import PAIRS
from epsjoin.spark.join.plan import plan_frames
from epsjoin.spark.join.replicas import REPLICAS
from epsjoin.spark.join.replicate import encode
from epsjoin.spark.join.shuffle import replicate_frame
from epsjoin.spark.points import Points, refuse_changed
from epsjoin.spark.rows import Rows
from epsjoin.spark.write import Written

MAX_PAIRS = 1_000_000_000
"""Default maximum number of pairs of a join of frames."""


def join_points(
    points: Points,
    eps: float | ArrayLike,
    metric: Metric,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    max_pairs: int,
) -> Rows:
    """Join points with themselves; see :func:`similarity_join`."""
    plan = plan_frames(points, None, eps, metric, weights, cuts, max_pairs)
    replicas = replicate_frame(points, plan)
    return join_frame(replicas, plan, points.n, max_pairs)


def join_by_files(points: Points, plan: JoinPlan, into: Target, max_pairs: int) -> DataFrame:
    """Join points with themselves by files, and return the pairs, read from the table of the pairs.

    Tasks pass replicas to one another in temporary files, and write the pairs to ``into``.
    """
    with parquet.scratch_folder(into, schemas.parse_ddl(REPLICAS), "part") as replicas:
        encoded = encode(points, plan, replicas)
        refuse_changed(points.n, encoded.counters.get("points", 0))
        work = make_joiner(plan.to_json(), replicas.location, into, max_pairs)
        written = join_files(points.frame.sparkSession, encoded.files, work)
    return replace_pairs(into, written, max_pairs, points.frame)


def target_at(location: str) -> Target:
    """Return the table of pairs in a folder outside of a lake."""
    return Target("similarity_join", location, schemas.parse_ddl(PAIRS), (), {})


def replace_pairs(into: Target, written: Written, max_pairs: int, frame: DataFrame) -> DataFrame:
    """Replace the table by the files that the tasks wrote, and read it in the session of the frame."""
    if written.rows > max_pairs:
        parquet.delete_uncommitted_files(into, written.files)
        raise BudgetError(
            f"{written.rows:,} pairs at least were found, {max_pairs:,} are allowed (max_pairs)"
        )
    return scan.read_replaced(frame.sparkSession, into, delta_log.replace_table(into, written.files))
