"""The command ``epsjoin estimate``: what a join will yield and cost, predicted from a sample."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from epsjoin.commands.forecast import Forecast, choose_time_unit, describe
from epsjoin.commands.join_sample import Sample, read_sample
from epsjoin.commands.runs import aligned
from epsjoin.console import printable
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.lake.arguments import add_lake
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.local.epsilon.epsilon_fit import EpsilonFit
from epsjoin.local.epsilon.estimate import PAIR_BYTES
from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.epsilon.limits import Expectation
from epsjoin.local.metric import METRICS
from epsjoin.local.plan.block_planner import plan_run_in_blocks
from epsjoin.local.plan.blocks import BlockPlan
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.sizes import WORKER_BYTES, cuts_of
from epsjoin.local.plan.two_tables import SampledSides
from epsjoin.params import RunParams
from epsjoin.report import sentences
from epsjoin.spark.join.base import find_increment


def main(argv: Sequence[str]) -> int:
    """Print what a join will yield and cost.

    Raises
    ------
    ArgumentError
        Arguments exclude one another, or one is out of its range.
    DataRefusedError
        There are no points, the metric is not defined for one, or there is neither a power law nor an eps.
    BudgetError
        More pairs are expected than ``--max-pairs`` allows; the prediction is printed all the same.
    """
    arguments = _parser().parse_args(argv)
    for name in ("neighbours", "max_pairs"):
        value = getattr(arguments, name)
        if value is not None and not 0 < value < math.inf:
            raise ArgumentError(f"--{name.replace('_', '-')} must be above 0, not {value}")
    sample = read_sample(arguments)
    fit, note = _fit(sample)
    expectation = sample.expectation(fit)
    forecast = _predict(sample, expectation, fit, note, arguments)
    if arguments.json:
        print(json.dumps(asdict(forecast)))
    else:
        for line in aligned(describe(forecast, sample.params.max_pairs)):
            print(f"  {printable(line)}")
    if forecast.eps is not None and forecast.max_pairs is not None:
        expectation.refuse_too_many(forecast.eps, forecast.max_pairs, sample.unit, limit="--max-pairs")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="epsjoin estimate",
        description="Predict what a join will yield and cost, from a sample, in seconds.",
    )
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="CSV with a header, JSON lines or Parquet"
    )
    parser.add_argument(
        "--right", nargs="+", type=Path, metavar="FILE", help="files of a right table, joined with the others"
    )
    parser.add_argument(
        "--columns",
        help="names of the coordinate columns, with commas between: x,y,z; of lists of 384 numbers: v[384]; "
        "in quotes names with blanks around them, or commas: \"' x',y\"",
    )
    parser.add_argument(
        "--metric",
        choices=[name for name in METRICS if name != "minkowski"],
        help="metric of the files' points (default: euclidean); haversine: latitude first, in degrees",
    )
    parser.add_argument(
        "--delimiter",
        metavar="SIGN",
        help="what separates the fields of CSV files: ';', '|', tab (default: by header and first records)",
    )
    add_lake(parser, instead_of_files=True)
    parser.add_argument(
        "--eps", type=float, help="threshold (default: the contract's); without one it is only suggested"
    )
    parser.add_argument(
        "--neighbours",
        type=float,
        help="suggest the eps that yields this many per point (default: the contract's, or 10)",
    )
    parser.add_argument(
        "--max-pairs",
        type=int,
        help="suggest the largest eps within this limit; refuse more pairs (exit code 4)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs")
    return parser


def _fit(sample: Sample) -> tuple[EpsilonFit | None, str | None]:
    params, of_right = sample.params, None if sample.right is None else sample.n_right
    sampling = sample.metric, params.sample_rows, params.seed, sample.n_rows
    try:
        fit = fit_epsilon(sample.points, *sampling, right=sample.right, right_rows=of_right)
    except ArgumentError as error:
        if sample.params.eps is None:
            raise DataRefusedError(f"eps cannot be chosen from these points: {error}") from error
        return None, str(error)
    return fit, None


def _suggest(
    fit: EpsilonFit | None, note: str | None, **aim: float | None
) -> tuple[float | None, str | None]:
    """Return the eps that reaches the aim, or the reason why none does; neither if there is no aim."""
    if fit is None or None in aim.values():
        return None, note
    try:
        return fit.eps_for(**aim), None  # type: ignore[arg-type]  # neighbours or pairs
    except ArgumentError as error:  # more than all points have, or fewer than equal ones have at eps 0
        return None, str(error)


def _largest_eps(
    expectation: Expectation, guess: float | None, why_not: str | None, eps: float | None, max_pairs: int
) -> tuple[float | None, str | None]:
    """Return the largest eps with at most so many pairs, as the refusal names it, or the reason why none is.

    Parameters
    ----------
    guess, why_not : what the power law says of so many pairs.
    eps : of the join, from which the refusal looks for the largest one that fits; ``None`` if none is set.
    """
    if guess is None:
        return None, why_not
    try:
        return expectation.largest_eps(max_pairs, guess if eps is None else eps), None
    except ArgumentError as error:  # more pairs are of nearly equal points
        return None, str(error)


def _predict(
    sample: Sample,
    expectation: Expectation,
    fit: EpsilonFit | None,
    note: str | None,
    arguments: argparse.Namespace,
) -> Forecast:
    eps, max_pairs = sample.params.eps, arguments.max_pairs
    neighbours = sample.params.neighbours if arguments.neighbours is None else arguments.neighbours
    for_neighbours, why_not_neighbours = _suggest(fit, note, neighbours=neighbours)
    for_pairs, why_not_pairs = _suggest(fit, note, pairs=max_pairs)
    if max_pairs is not None:
        for_pairs, why_not_pairs = _largest_eps(expectation, for_pairs, why_not_pairs, eps, max_pairs)
    forecast = Forecast(
        rows=sample.n_rows,
        rows_left_out=sample.n_left_out,
        rows_bad=sample.n_bad,
        first_bad=sample.first_bad,
        sample_rows=len(sample.points),
        metric=sample.metric_name or sample.metric.name,
        unit=sample.unit,
        eps=eps,
        exponent=None if fit is None else fit.exponent,
        exponent_low=None if fit is None else fit.power_law.interval_low,
        exponent_high=None if fit is None else fit.power_law.interval_high,
        note=note,
        target_neighbours=neighbours,
        eps_for_neighbours=for_neighbours,
        why_not_neighbours=why_not_neighbours,
        max_pairs=max_pairs,
        eps_for_max_pairs=for_pairs,
        why_not_max_pairs=why_not_pairs,
        right_rows=None if sample.right is None else sample.n_right,
    )
    return forecast if eps is None else _add_join(forecast, sample, expectation, eps)


def _add_join(forecast: Forecast, sample: Sample, expectation: Expectation, eps: float) -> Forecast:
    """Add what the join with this eps will yield and cost."""
    n_rows, dimensions = sample.n_rows + sample.n_right, sample.points.shape[1]
    expected = expectation.at(eps)
    cuts = cuts_of(sample.params, n_rows, dimensions)
    points, ids, sides = sample.points, sample.ids, None
    if sample.right is not None:
        points = np.concatenate((points, sample.right))
        ids = np.arange(len(points))
        sides = SampledSides(ids >= len(sample.points), (sample.n_rows, sample.n_right))
    tables = [sample.points, *([] if sample.right is None else [sample.right])]
    of_tables = [sample.n_rows, *([] if sample.right is None else [sample.n_right])]
    blocks = plan_run_in_blocks(tables, of_tables, eps, sample.metric, sample.params, expected.pairs)
    plan: JoinPlan | BlockPlan = blocks or plan_join(
        points, ids, n_rows, eps, sample.metric, cuts, expected.pairs, sides
    )
    ends = 2 if sample.right is None else 1
    return replace(
        forecast,
        pairs=expected.pairs,
        pairs_low=expected.low,
        pairs_high=expected.high,
        neighbours=ends * expected.pairs / sample.n_rows,
        join=None if sample.run is None else _describe_join(sample.run, sample.params, eps),
        parts=plan.n_parts,
        replicas=plan.expected_stored_rows / n_rows,
        largest_part_rows=plan.expected_part_rows,
        largest_part_bytes=WORKER_BYTES + plan.expected_part_rows * plan.row_bytes,
        pair_bytes=expected.pairs * PAIR_BYTES,
        candidates=plan.expected_candidates,
        seconds_on_one_core=plan.expected_seconds,
        time=choose_time_unit(plan.expected_seconds)[0],
    )


def _describe_join(run: Fingerprints, params: RunParams, eps: float) -> str:
    """Say from what ``replicate`` would make the pairs, if it ran now."""
    found = find_increment(run, params, eps)
    return sentences.how_joined({"why": found} if isinstance(found, str) else found.row)
