"""The command ``epsjoin estimate``: what a join will yield and cost, predicted from a sample."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.lake import slices
from epsjoin.lake.arguments import add_contracts, open_lake
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.sample import sample_stored
from epsjoin.local.epsilon.estimate import PAIR_BYTES
from epsjoin.local.epsilon.fit import EpsilonFit, fit_epsilon
from epsjoin.local.epsilon.limits import Expectation
from epsjoin.local.metric import METRICS, Metric, get_metric
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.sizes import WORKER_BYTES, cuts_of, row_bytes
from epsjoin.params import RunParams
from epsjoin.report import sentences, words
from epsjoin.source.sampling import sample_files
from epsjoin.spark.join.base import find_increment

TIME_UNITS = (("seconds", 1.0, 60.0), ("minutes", 60.0, 3600.0), ("hours", 3600.0, 86400.0))
"""Units of time: name, seconds in one, seconds from which the next unit is used; the last unit is days."""


@dataclass(frozen=True)
class Sample:
    """A sample of a point set.

    Parameters
    ----------
    ids, points : (n,) int64 and (n, d) float64, the sample.
    n_rows, n_left_out, n_bad : points of the whole set; other rows of its files, in which a coordinate is
        missing, or which are bad.
    metric, unit : the metric and the unit of its distances, "" if there is none.
    params : parameters of the join; those that no argument sets have their defaults.
    run : the run whose points these are; ``None``: they are those of files.
    right : (m, d) float64, the sample of the right table of a join of two; ``None``: one table with itself.
    n_right : points of the whole right table.
    """

    ids: NDArray[np.int64]
    points: NDArray[np.float64]
    n_rows: int
    n_left_out: int
    n_bad: int
    metric: Metric
    unit: str
    params: RunParams
    run: Fingerprints | None = None
    right: NDArray[np.float64] | None = None
    n_right: int = 0

    def expectation(self, fit: EpsilonFit | None) -> Expectation:
        """What the jobs expect of these points, too."""
        params, right = self.params, (self.right, self.n_right)
        return Expectation(
            self.points, self.n_rows, self.metric, params.seed, params.sample_rows, fit, *right
        )


@dataclass(frozen=True)
class Forecast:
    """The prediction; its fields are the keys of ``--json``, and ``None`` stands for what is not known.

    Parameters
    ----------
    rows, right_rows, sample_rows : points, of two tables those of the left one; points of the right one;
        points of the sample of ``rows``.
    rows_left_out, rows_bad : rows without a coordinate; rows whose coordinate is no finite number.
    metric, unit, eps : the metric, the unit of its distances, the distance threshold.
    exponent, exponent_low, exponent_high : exponent of the power law of pair counts, with its 95 % interval.
    note : the reason why there is no power law.
    pairs, pairs_low, pairs_high, neighbours : see :class:`epsjoin.local.epsilon.estimate.Estimate`.
    parts, replicas, candidates, seconds_on_one_core : see :class:`epsjoin.local.plan.join_plan.JoinPlan`;
        replicas are rows per point.
    join : of a run, whether its pairs follow from those of an earlier one, or why not.
    largest_part_rows, largest_part_bytes : rows of the largest part, estimated from the sample, and the
        memory of a worker that joins it.
    pair_bytes : bytes of the pairs in memory.
    time : the unit that fits the time on one core: seconds, minutes, hours or days.
    neighbours_wished, eps_for_neighbours, max_pairs, eps_for_max_pairs : what ``--neighbours`` and
        ``--max-pairs`` ask for, and the eps that yields it.
    why_not_neighbours, why_not_max_pairs : the reason why no eps yields it.
    """

    rows: int
    rows_left_out: int
    rows_bad: int
    sample_rows: int
    metric: str
    unit: str
    eps: float | None
    exponent: float | None
    exponent_low: float | None
    exponent_high: float | None
    note: str | None
    neighbours_wished: float
    eps_for_neighbours: float | None
    why_not_neighbours: str | None
    max_pairs: int | None
    eps_for_max_pairs: float | None
    why_not_max_pairs: str | None
    right_rows: int | None = None
    pairs: float | None = None
    pairs_low: float | None = None
    pairs_high: float | None = None
    neighbours: float | None = None
    join: str | None = None
    parts: int | None = None
    replicas: float | None = None
    largest_part_rows: float | None = None
    largest_part_bytes: float | None = None
    pair_bytes: float | None = None
    candidates: float | None = None
    seconds_on_one_core: float | None = None
    time: str | None = None


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
    sample = _read_sample(arguments)
    fit, note = _fit(sample)
    forecast = _predict(sample, fit, note, arguments)
    if arguments.json:
        print(json.dumps(asdict(forecast)))
    else:
        lines = list(_describe(forecast, sample.params))
        width = max(len(name) for name, _ in lines)
        for name, text in lines:
            print(f"  {name:<{width}}  {text}")
    if forecast.eps is not None and forecast.max_pairs is not None:
        sample.expectation(fit).refuse_too_many(
            forecast.eps, forecast.max_pairs, sample.unit, limit="--max-pairs"
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="epsjoin estimate",
        description="Predict what a join will yield and cost, from a sample, in seconds.",
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="CSV with a header, or Parquet")
    parser.add_argument(
        "--right", nargs="+", type=Path, metavar="FILE", help="files of a right table, joined with the others"
    )
    parser.add_argument("--columns", help="names of the coordinate columns, with commas between: x,y,z")
    parser.add_argument(
        "--metric",
        choices=[name for name in METRICS if name != "minkowski"],
        help="metric of the files' points (default: euclidean); haversine: latitude first, in degrees",
    )
    parser.add_argument("--lake", help="instead of files: folder of all tables, a URI or an absolute path")
    parser.add_argument("--dataset", help="with --lake: name of a contract in the contracts' folder")
    parser.add_argument("--run", help="with --lake: logical date of the snapshot, YYYY-MM-DD")
    add_contracts(parser)
    parser.add_argument(
        "--eps", type=float, help="threshold (default: the contract's); without one it is only suggested"
    )
    parser.add_argument(
        "--neighbours", type=float, default=10.0, help="suggest the eps that yields this many per point"
    )
    parser.add_argument(
        "--max-pairs",
        type=int,
        help="suggest the largest eps within this limit; refuse more pairs (exit code 4)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _read_sample(arguments: argparse.Namespace) -> Sample:
    for_lake = [name for name in ("lake", "dataset", "run") if getattr(arguments, name) is not None]
    for_files = [name for name in ("files", "columns", "right") if getattr(arguments, name)]
    if for_files[:2] == ["files", "columns"] and not for_lake:
        sample = _sample_files(arguments)
    elif len(for_lake) == 3 and not for_files and arguments.metric is None:
        sample = _sample_lake(arguments)
    else:
        raise ArgumentError(
            "give either files and --columns (and --right, --metric), or --lake, --dataset and --run; "
            f"not {', '.join(for_files + for_lake) or 'nothing'}"
        )
    if sample.n_rows == 0:
        raise DataRefusedError(
            f"there are no points; a coordinate is missing in {words.plural(sample.n_left_out, 'row')}, "
            f"{words.plural(sample.n_bad, 'row')} bad: not a finite number"
        )
    try:
        sample.metric.check(sample.points)
        if sample.right is not None:
            sample.metric.check(sample.right)
    except ArgumentError as error:
        raise DataRefusedError(
            f"the metric is not defined for a point (row of the sample): {error}"
        ) from None
    return sample


def _sample_files(arguments: argparse.Namespace) -> Sample:
    columns = [name.strip() for name in arguments.columns.split(",")]
    if "" in columns or len(set(columns)) < len(columns):
        raise ArgumentError(
            f"--columns must be different names with commas between, not {arguments.columns!r}"
        )
    params = RunParams(eps=arguments.eps, seed=arguments.seed)
    metric = get_metric(arguments.metric or "euclidean")
    metric.dimensions(len(columns))
    found = sample_files(arguments.files, columns, params.sample_rows, params.seed)
    ids = np.arange(len(found.points), dtype=np.int64)
    sample = Sample(ids, found.points, *found[:3], metric, metric.unit, params)
    if not arguments.right:
        return sample
    # by another seed: with the same one, rows of the same numbers would be drawn of both tables
    others = sample_files(arguments.right, columns, params.sample_rows, params.seed + 1)
    if not others.n_rows:
        raise DataRefusedError("there are no points in the files of --right")
    return replace(
        sample,
        n_left_out=sample.n_left_out + others.n_left_out,
        n_bad=sample.n_bad + others.n_bad,
        right=others.points,
        n_right=others.n_rows,
    )


def _sample_lake(arguments: argparse.Namespace) -> Sample:
    lake = open_lake(arguments)
    source = lake.source
    own = {"seed": arguments.seed} | ({} if arguments.eps is None else {"eps": arguments.eps})
    params = RunParams.from_json(json.dumps(own), source.defaults)
    ids, points = sample_stored(lake, arguments.run, params.sample_rows, params.seed)
    n_rows = slices.count_rows(lake, Slice("points", arguments.run))
    run = Fingerprints(lake, arguments.run)
    return Sample(ids, points, n_rows, 0, 0, get_metric(source.metric), source.unit, params, run)


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
    except ArgumentError as error:  # more than all points have, or fewer than equal points have at eps 0
        return None, str(error)


def _predict(
    sample: Sample, fit: EpsilonFit | None, note: str | None, arguments: argparse.Namespace
) -> Forecast:
    eps = sample.params.eps
    for_neighbours, why_not_neighbours = _suggest(fit, note, neighbours=arguments.neighbours)
    for_pairs, why_not_pairs = _suggest(fit, note, pairs=arguments.max_pairs)
    forecast = Forecast(
        rows=sample.n_rows,
        rows_left_out=sample.n_left_out,
        rows_bad=sample.n_bad,
        sample_rows=len(sample.points),
        metric=sample.metric.name,
        unit=sample.unit,
        eps=eps,
        exponent=None if fit is None else fit.exponent,
        exponent_low=None if fit is None else fit.power_law.interval_low,
        exponent_high=None if fit is None else fit.power_law.interval_high,
        note=note,
        neighbours_wished=arguments.neighbours,
        eps_for_neighbours=for_neighbours,
        why_not_neighbours=why_not_neighbours,
        max_pairs=arguments.max_pairs,
        eps_for_max_pairs=for_pairs,
        why_not_max_pairs=why_not_pairs,
        right_rows=None if sample.right is None else sample.n_right,
    )
    return forecast if eps is None else _add_join(forecast, sample, fit, eps)


def _add_join(forecast: Forecast, sample: Sample, fit: EpsilonFit | None, eps: float) -> Forecast:
    """Add what the join with this eps will yield and cost."""
    n_rows, dimensions = sample.n_rows + sample.n_right, sample.points.shape[1]
    expected = sample.expectation(fit).at(eps)
    cuts = cuts_of(sample.params, n_rows, dimensions)
    points, ids = sample.points, sample.ids
    if sample.right is not None:
        points = np.concatenate((points, sample.right))
        ids = np.arange(len(points))
    plan = plan_join(points, ids, n_rows, eps, sample.metric, cuts, expected.pairs)
    ends = 2 if sample.right is None else 1
    return replace(
        forecast,
        pairs=expected.pairs,
        pairs_low=expected.low,
        pairs_high=expected.high,
        neighbours=ends * expected.pairs / sample.n_rows,
        join=None if sample.run is None else _describe_join(sample.run, sample.params, eps),
        parts=plan.n_parts,
        replicas=plan.expected_rows / n_rows,
        largest_part_rows=plan.expected_part_rows,
        largest_part_bytes=WORKER_BYTES + plan.expected_part_rows * row_bytes(dimensions),
        pair_bytes=expected.pairs * PAIR_BYTES,
        candidates=plan.expected_candidates,
        seconds_on_one_core=plan.expected_seconds,
        time=_choose_time_unit(plan.expected_seconds)[0],
    )


def _describe_join(run: Fingerprints, params: RunParams, eps: float) -> str:
    """Say from what ``replicate`` would make the pairs, if it ran now."""
    found = find_increment(run, params, eps)
    return sentences.how_joined({"why": found} if isinstance(found, str) else found.row)


def _choose_time_unit(seconds: float) -> tuple[str, float]:
    """Choose the unit for a time: its name and the seconds in one."""
    return next(((name, unit) for name, unit, end in TIME_UNITS if seconds < end), ("days", 86400.0))


def _describe(forecast: Forecast, params: RunParams) -> Iterator[tuple[str, str]]:
    """Yield the prediction as lines of (name, text) for people."""
    unit = forecast.unit
    yield "rows", words.count(forecast.rows)
    if forecast.right_rows is not None:
        yield "right rows", words.count(forecast.right_rows)
    if forecast.rows_left_out:
        yield "left out", f"{words.plural(forecast.rows_left_out, 'row')} more: a coordinate is missing"
    if forecast.rows_bad:
        yield "bad", f"{words.plural(forecast.rows_bad, 'row')} more: a coordinate is no finite number"
    yield "sample", f"{words.count(forecast.sample_rows)} rows"
    if forecast.exponent is None:
        yield "exponent", f"unknown: {forecast.note}"
    else:
        exponent, low, high = (
            words.measure(value, digits=3)
            for value in (forecast.exponent, forecast.exponent_low, forecast.exponent_high)
        )
        yield "exponent", f"{exponent} ({low} to {high})"
    if forecast.eps is not None:
        pairs, low, high = map(words.count, (forecast.pairs, forecast.pairs_low, forecast.pairs_high))
        yield "eps", f"{words.measure(forecast.eps, unit, digits=6)} ({forecast.metric})"
        is_exact = forecast.pairs_low == forecast.pairs_high
        yield "pairs", f"{pairs} (of all rows)" if is_exact else f"about {pairs} ({low} to {high})"
        limit = forecast.max_pairs or params.max_pairs
        if (forecast.pairs_high or 0.0) > limit:
            perhaps = "" if (forecast.pairs_low or 0.0) > limit else "perhaps "
            yield "", f"{perhaps}more than the job allows (max_pairs {words.count(limit)})"
        yield "neighbours", f"{forecast.neighbours:,.1f} per point"
        if forecast.join is not None:
            yield "join", forecast.join
        yield "parts", words.count(forecast.parts)
        yield "replicas", f"{words.measure(forecast.replicas, digits=3)} rows per point"
        yield "largest part", f"{words.count(forecast.largest_part_rows)} rows"
        yield "largest worker", f"{words.size(forecast.largest_part_bytes)} at most"
        yield "bytes of pairs", f"{words.size(forecast.pair_bytes)} in memory"
        seconds = forecast.seconds_on_one_core or 0.0
        name, unit_seconds = _choose_time_unit(seconds)
        of_core = f"{words.measure(seconds / unit_seconds, digits=2)} {name} of one core"
        candidates = f"{words.count(forecast.candidates)} candidates"
        yield "time", f"{name} ({of_core}, {candidates}; without Spark's start and the writing of pairs)"
    if forecast.exponent is None:
        return
    aim, eps = f"{forecast.neighbours_wished:g} neighbours", forecast.eps_for_neighbours
    yield _describe_aim(aim, eps, forecast.why_not_neighbours, unit)
    if forecast.max_pairs is not None:
        aim, eps = f"{words.count(forecast.max_pairs)} pairs", forecast.eps_for_max_pairs
        yield _describe_aim(aim, eps, forecast.why_not_max_pairs, unit)


def _describe_aim(aim: str, eps: float | None, why_not: str | None, unit: str) -> tuple[str, str]:
    return f"eps for {aim}", f"none: {why_not}" if eps is None else words.measure(eps, unit, digits=6)
