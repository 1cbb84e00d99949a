"""The join of frames, planned on samples: what the functions on DataFrames share."""

from __future__ import annotations

import math
from functools import partial

from numpy.typing import ArrayLike
from pyspark.sql import DataFrame

from epsjoin.errors import BudgetError
from epsjoin.lake import schemas, targets, uris
from epsjoin.lake.targets import Target
from epsjoin.local.arguments import check_count
from epsjoin.local.join.first_pairs import find_first_pairs
from epsjoin.local.metric import Metric
from epsjoin.local.plan.blocks import BlockPlan
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.progressive.running import RunningEstimate
from epsjoin.spark.join.blocks import join_blocks
from epsjoin.spark.join.pairs import PAIRS, leave_out
from epsjoin.spark.join.pairs_table import GrowingPairsTable, PairsTable
from epsjoin.spark.join.parts import join_files, join_frame, make_joiner
from epsjoin.spark.join.plan import PairsPlan, plan_pairs
from epsjoin.spark.join.replicas import REPLICAS
from epsjoin.spark.join.replicate import encode
from epsjoin.spark.join.running import Refuse, RunningJoin, describe
from epsjoin.spark.join.shuffle import replicate_frame
from epsjoin.spark.points.points import Points, refuse_changed
from epsjoin.spark.rows import scan
from epsjoin.spark.rows.rows import Rows
from epsjoin.spark.rows.write import write_files
from epsjoin.spark.tasks.progress import watched

MAX_PAIRS = 1_000_000_000
"""Default maximum number of pairs of a join of frames."""


def as_limit(name: str, value: float) -> int:
    """Return a limit on the number of pairs as a whole number; infinity becomes one that is never reached.

    Raises
    ------
    ArgumentError
        It is not a number, or below 0; the message calls it by ``name``.
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


def join_by_files(points: Points, plan: JoinPlan, table: PairsTable, max_pairs: int) -> DataFrame:
    """Join points with themselves by files, and return the pairs, read from the table of the pairs.

    Tasks pass replicas to one another in temporary files, and write the pairs into the table.
    """
    into, spark = table.into, points.frame.sparkSession
    with targets.scratch_folder(into, schemas.parse_ddl(REPLICAS), "part") as replicas:
        encoded = encode(points, plan, replicas)
        refuse_changed(points.n, encoded.counters.get("points", 0))
        work = make_joiner(plan.to_json(), replicas.location, into, max_pairs, table.first)
        with table.deleted_on_error():
            refuse = make_refusal(plan, max_pairs)
            written = join_files(spark, encoded.files, work, plan, table, max_pairs, refuse)
            files = table.check(written, max_pairs)
    return scan.read_replaced(spark, into, table.complete(files))


def join_by_shuffle(
    points: Points, others: Points | None, plan: JoinPlan | BlockPlan, table: PairsTable, max_pairs: int
) -> DataFrame:
    """Join by a shuffle, and return the pairs, read from the table into which tasks write them."""
    joined = join_planned(points, others, plan, max_pairs, raises=False)
    refuse = make_refusal(plan, max_pairs)
    running = RunningJoin(joined.spark, plan, range(plan.n_parts), None, max_pairs, table, refuse)
    with table.deleted_on_error():
        with watched(running):
            alter = partial(leave_out, table.first)
            written = write_files(table.into, joined, tell=running.telling, alter=alter)
        files = table.check(written, max_pairs)
    return scan.read_replaced(points.frame.sparkSession, table.into, table.complete(files))


def begin_table(planned: PairsPlan, into: Target, increments: float | None) -> PairsTable:
    """Begin the table of the pairs; a growing one starts with the pairs of rows of the plan's samples.

    Parameters
    ----------
    increments : seconds between two commits; None: the table does not grow, all pairs are added at once.

    Notes
    -----
    A join by pairs of blocks has no first pairs, since its tasks cannot leave any out.
    """
    if increments is None:
        return PairsTable(into)
    plan, samples, n_rows = planned
    if isinstance(plan, BlockPlan):
        return GrowingPairsTable(into, increments, None)
    first = find_first_pairs(samples, n_rows, plan.eps, plan.get_metric(), plan.expected_pairs)
    return GrowingPairsTable(into, increments, first)


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
