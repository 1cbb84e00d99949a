"""The step ``merge_join``: joins every part by itself, and finds every pair once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from epsjoin.console import counted, in_unit, say
from epsjoin.errors import BudgetError
from epsjoin.lake import slices, targets, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.targets import Target
from epsjoin.local.plan.stored import read_plan
from epsjoin.local.progressive.running import RunningEstimate
from epsjoin.pipeline import joined_table
from epsjoin.spark.job.job import Job
from epsjoin.spark.join.base import INCREMENT
from epsjoin.spark.join.increment import join_increment
from epsjoin.spark.join.pairs_table import PairsTable
from epsjoin.spark.join.parts import join_files, make_joiner
from epsjoin.spark.join.plan import expectation
from epsjoin.spark.join.running import describe
from epsjoin.spark.points.points import stored_points
from epsjoin.spark.rows.write import Written


def run(job: Job) -> dict[str, float]:
    """Replace the run's slice of ``pairs``, or for documents that of ``candidates``.

    One task per part reads the part's files itself, joins it, and writes its pairs batch by batch; the
    driver sees file facts and counters only. The largest parts start first. An increment has other tasks
    (:mod:`epsjoin.spark.join.increment`), and the same pairs.

    Raises
    ------
    BudgetError
        More than ``max_pairs`` pairs are expected, by the plan or by the parts that are joined so far, or
        were found.
    TableError
        ``replicas`` has no slice of this run, or a file does not hold the rows that the log says; or the run
        that an increment is computed from has been replaced.
    """
    job = replace(job, lake=slices.as_now(job.lake))
    inputs = Fingerprints(job.lake, job.run, is_made_now=True)
    pairs, plan_row = inputs.slice(joined_table(job.lake.source.chain)), inputs.row("join_plan")
    if plan_row["expected_pairs"] > job.params.max_pairs:
        expectation(job, stored_points(job)).refuse_too_many(
            plan_row["eps"], job.params.max_pairs, job.lake.source.unit
        )
    into = targets.target_of(job.lake, pairs)
    with targets.deleted_on_error(into):
        if plan_row["kind"] == INCREMENT:
            files, counters = join_increment(job, inputs, plan_row, into)
        else:
            files, counters = _join_all(job, inputs.slice("replicas"), plan_row, into)
        if counters["pairs"] > job.params.max_pairs:
            raise _explain_too_many(job, plan_row["eps"], counters["pairs"])
    transactions.commit(job.lake, {pairs: files})
    say(f"merge_join: {counted(counters['pairs'], 'pair')}, {counted(counters['candidates'], 'candidate')}")
    return {
        **counters,
        "expected_pairs": plan_row["expected_pairs"],
        "expected_candidates": plan_row["expected_candidates"],
    }


def _join_all(job: Job, where: Slice, plan_row: Mapping[str, Any], into: Target) -> Written:
    """Join all points, part by part."""
    replicas = slices.files_of(job.lake, where)
    n_rows = sum(file.rows for file in replicas)
    say(f"merge_join: {counted(n_rows, 'row')} in {counted(plan_row['n_parts'], 'part')}")
    work = make_joiner(plan_row["plan"], job.lake.location("replicas"), into, job.params.max_pairs)

    def refuse(estimate: RunningEstimate, so_far: str, fitting_eps: float | None) -> BudgetError:
        said = f"{so_far}, and {describe(estimate)} pairs are expected now"
        return _explain_too_many(job, plan_row["eps"], estimate.pairs or 0.0, said, fitting_eps)

    plan = read_plan(plan_row["plan"])
    return join_files(job.spark, replicas, work, plan, PairsTable(into), job.params.max_pairs, refuse)


def _explain_too_many(
    job: Job, eps: float, found: float, so_far: str = "", fitting_eps: float | None = None
) -> BudgetError:
    """Make the error of a join that finds too many pairs, with the largest eps that fits.

    Parameters
    ----------
    found : pairs that were found, or that are expected now.
    so_far : how far the join was when it was ended.
    fitting_eps : an eps that fits by the distances of the pairs that were found so far.
    """
    max_pairs, unit = job.params.max_pairs, job.lake.source.unit
    one = expectation(job, stored_points(job))
    expected = one.at(eps).pairs
    if fitting_eps is not None:
        fits = f"the largest eps that fits is about {in_unit(fitting_eps, unit)}"
    else:  # the pairs that were found correct the expectation for a smaller eps
        fits = one.what_fits(int(max_pairs * min(1.0, expected / max(found, 1.0))), eps, unit)
    return BudgetError(
        f"more than {max_pairs:,} pairs (max_pairs) lie within eps {in_unit(eps, unit)}, "
        f"{expected:,.0f} were expected; {so_far}{'; ' if so_far else ''}{fits}"
    )
