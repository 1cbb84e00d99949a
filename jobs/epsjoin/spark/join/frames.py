"""The join of frames, planned on samples: what the functions on DataFrames share."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from functools import partial

from numpy.typing import ArrayLike
from pyspark.sql import DataFrame, SparkSession

from epsjoin.errors import BudgetError
from epsjoin.lake import schemas, targets, transactions, uris
from epsjoin.lake.growing import GrowingTable
from epsjoin.lake.parquet import File
from epsjoin.lake.targets import Target
from epsjoin.local.arguments import check_count
from epsjoin.local.join.first_pairs import find_first_pairs
from epsjoin.local.metric import Metric
from epsjoin.local.plan.blocks import BlockPlan
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.progressive.running import RunningEstimate
from epsjoin.spark import scan
from epsjoin.spark.join.blocks import join_blocks
from epsjoin.spark.join.pairs import PAIRS, check_left_out, leave_out, to_batch
from epsjoin.spark.join.parts import join_files, join_frame, make_joiner
from epsjoin.spark.join.plan import PairsPlan, plan_pairs
from epsjoin.spark.join.replicas import REPLICAS
from epsjoin.spark.join.replicate import encode
from epsjoin.spark.join.running import Growing, Refuse, RunningJoin, describe
from epsjoin.spark.join.shuffle import replicate_frame
from epsjoin.spark.points import Points, refuse_changed
from epsjoin.spark.progress import watched
from epsjoin.spark.rows import Rows
from epsjoin.spark.write import Written, write_files

MAX_PAIRS = 1_000_000_000
"""Default maximum number of pairs of a join of frames."""


def as_limit(name: str, value: float) -> int:
    """Return a limit of a number of pairs as a whole number; infinity is none that anybody reaches.

    Raises
    ------
    ArgumentError
        It is no number, or below 0; the message calls it by ``name``.
    """
    if isinstance(value, float) and (value.is_integer() or value == math.inf):
        value = int(min(value, 2.0**62))
    return check_count(name, value, 0)


def join_points(
    points: Points,
    eps: float | ArrayLike,
    metric: Metric,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    max_pairs: int,
) -> Rows:
    """Join points with themselves; see :func:`similarity_join`."""
    plan = plan_pairs(points, None, eps, metric, weights, cuts, max_pairs).plan
    return join_planned(points, None, plan, max_pairs)


def join_planned(
    points: Points,
    others: Points | None,
    plan: JoinPlan | BlockPlan,
    max_pairs: int,
    *,
    raises: bool = True,
) -> Rows:
    """Join points with themselves or with others; lazy, with one shuffle.

    Parameters
    ----------
    plan : of these points.
    max_pairs, raises : see :func:`epsjoin.spark.join.parts.join_frame`.
    """
    if isinstance(plan, BlockPlan):
        return join_blocks(points, others, plan, max_pairs, raises=raises)
    n_points, is_right = points.n, None if others is None else False
    replicas = replicate_frame(points, plan, is_right)
    if others is not None:
        n_points += others.n
        replicas = replicas.union(replicate_frame(others, plan, is_right=True))
    return join_frame(replicas, plan, n_points, max_pairs, raises=raises)


def join_by_files(
    points: Points, plan: JoinPlan, into: Target, max_pairs: int, growing: Growing | None
) -> DataFrame:
    """Join points with themselves by files, and return the pairs, read from the table of the pairs.

    Tasks pass replicas to one another in temporary files, and write the pairs to ``into``.
    """
    first = None if growing is None else growing.first
    with targets.scratch_folder(into, schemas.parse_ddl(REPLICAS), "part") as replicas:
        encoded = encode(points, plan, replicas)
        refuse_changed(points.n, encoded.counters.get("points", 0))
        work = make_joiner(plan.to_json(), replicas.location, into, max_pairs, first)
        spark, refuse = points.frame.sparkSession, make_refusal(plan, max_pairs)
        with _deleted_on_error(into, growing):
            written = join_files(spark, encoded.files, work, plan, into, max_pairs, refuse, growing)
            files = _check_files(written, max_pairs, growing)
    return _complete(into, files, spark, growing)


def join_by_shuffle(
    points: Points,
    others: Points | None,
    plan: JoinPlan | BlockPlan,
    into: Target,
    max_pairs: int,
    growing: Growing | None,
) -> DataFrame:
    """Join by a shuffle, and return the pairs, read from the table into which tasks write them."""
    first = None if growing is None else growing.first
    joined = join_planned(points, others, plan, max_pairs, raises=False)
    refuse = make_refusal(plan, max_pairs)
    running = RunningJoin(joined.spark, plan, range(plan.n_parts), None, max_pairs, into, refuse, growing)
    with _deleted_on_error(into, growing), watched(running):
        written = write_files(into, joined, tell=running.telling, alter=partial(leave_out, first))
        files = _check_files(written, max_pairs, growing)
    return _complete(into, files, points.frame.sparkSession, growing)


def begin_growing(planned: PairsPlan, into: Target, increments: float | None) -> Growing | None:
    """Begin a table that grows by the first pairs: those that rows of the plan's samples have.

    Parameters
    ----------
    increments : seconds between two commits; None: the table does not grow, all pairs are added at once.

    Notes
    -----
    A join by pairs of blocks has none: its tasks leave no pairs out.
    """
    if increments is None:
        return None
    table, (plan, samples, n_rows) = GrowingTable(into), planned
    if isinstance(plan, BlockPlan):
        return Growing(table, increments, None, [])
    first = find_first_pairs(samples, n_rows, plan.eps, plan.get_metric(), plan.expected_pairs)
    with table.deleted_on_error():
        file = into.write([to_batch(first)])
        files = [] if file is None else [file]
        if files:
            table.add(files)
    return Growing(table, increments, first, files)


def make_refusal(plan: JoinPlan | BlockPlan, max_pairs: int) -> Refuse:
    """Make the function that explains why a join of frames was ended."""
    scale = plan.scale if isinstance(plan, JoinPlan) else None
    is_per_dimension = scale is not None and any(divisor != 1.0 for divisor in scale.divisors)

    def refuse(estimate: RunningEstimate, so_far: str, fitting_eps: float | None) -> BudgetError:
        fits = "take a smaller eps, or allow more"
        if fitting_eps is not None:
            times = " times these" if is_per_dimension else ""
            fits = f"the largest eps that fits is about {fitting_eps:g}{times}"
        return BudgetError(
            f"{describe(estimate)} pairs are expected now, {max_pairs:,} are allowed (max_pairs): {so_far}; "
            f"{fits}"
        )

    return refuse


def target_at(to: str) -> Target:
    """Return the table of pairs in a folder outside of a lake, as the argument ``to`` names it.

    Raises
    ------
    ArgumentError
        See :func:`epsjoin.lake.uris.parse_table_uri`.
    """
    return Target("similarity_join", uris.parse_table_uri(to, "to"), schemas.parse_ddl(PAIRS), (), {})


def _deleted_on_error(into: Target, growing: Growing | None) -> AbstractContextManager[None]:
    return targets.deleted_on_error(into) if growing is None else growing.table.deleted_on_error()


def _check_files(written: Written, max_pairs: int, growing: Growing | None) -> list[File]:
    """Check what tasks wrote, and return all files of the table."""
    files = written.files if growing is None else [*growing.first_files, *written.files]
    n_pairs = sum(file.rows for file in files)
    if n_pairs > max_pairs:
        raise BudgetError(f"{n_pairs:,} pairs at least were found, {max_pairs:,} are allowed (max_pairs)")
    check_left_out(None if growing is None else growing.first, written.counters)
    return files


def _complete(into: Target, files: list[File], spark: SparkSession, growing: Growing | None) -> DataFrame:
    """Put all files into the table, and read it.

    In one transaction they replace the table; to one that grows those are added that it does not have yet.
    """
    complete = partial(transactions.replace_table, into) if growing is None else growing.table.complete
    return scan.read_replaced(spark, into, complete(files))
