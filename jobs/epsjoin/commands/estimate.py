"""What a join would give and cost, before it runs, without Spark: ``epsjoin estimate``."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsjoin.contracts.odcs import load_source
from epsjoin.errors import ArgumentError, BudgetError, DataRefusedError
from epsjoin.lake import slices, uris
from epsjoin.lake.lake import Lake
from epsjoin.lake.sample import sample_stored
from epsjoin.local.epsilon.fit import EpsilonFit, fit_epsilon
from epsjoin.local.epsilon.limits import largest_that_fits
from epsjoin.local.join.estimate import estimate
from epsjoin.local.metric import METRICS, Metric, get_metric
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.sizes import WORKER_BYTES, cuts_of, row_bytes
from epsjoin.params import RunParams
from epsjoin.paths import PROJECT
from epsjoin.source.sampling import sample_files

TIMES = (("seconds", 1.0, 60.0), ("minutes", 60.0, 3600.0), ("hours", 3600.0, 86400.0))
"""Word, seconds of its unit, seconds below which it is the word; longer is days."""


@dataclass(frozen=True)
class Sample:
    """Points to look at, and what is known of the set they are from."""

    ids: NDArray[np.int64]
    points: NDArray[np.float64]
    n_rows: int
    n_left_out: int
    metric: Metric
    unit: str
    params: RunParams


@dataclass(frozen=True)
class Forecast:
    """What is said, to people and as JSON; ``None`` where it cannot be known.

    Parameters
    ----------
    rows, rows_left_out, sample_rows : points; rows that are none; points that were looked at.
    metric, unit, eps : of the distances; the threshold.
    exponent, exponent_low, exponent_high : of the power law of pair counts.
    note : why there is no power law.
    pairs, pairs_low, pairs_high, neighbours : see :class:`epsjoin.local.join.estimate.Estimate`.
    parts, replicas, candidates, seconds_on_one_core : see :class:`epsjoin.local.plan.join_plan.JoinPlan`;
        replicas are rows per point.
    largest_part_rows, largest_part_bytes : rows of the largest part, as the sample falls into the parts, and
        a worker's memory for them.
    pair_bytes : of the pairs in memory.
    time : seconds, minutes, hours or days, of one core.
    neighbours_wished, eps_for_neighbours, max_pairs, eps_for_max_pairs : wishes, and the eps for each.
    why_not_neighbours, why_not_max_pairs : why no eps does.
    """

    rows: int
    rows_left_out: int
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
    pairs: float | None = None
    pairs_low: float | None = None
    pairs_high: float | None = None
    neighbours: float | None = None
    parts: int | None = None
    replicas: float | None = None
    largest_part_rows: float | None = None
    largest_part_bytes: float | None = None
    pair_bytes: float | None = None
    candidates: float | None = None
    seconds_on_one_core: float | None = None
    time: str | None = None


def main(argv: Sequence[str]) -> int:
    """Print what a join would give and cost.

    Raises
    ------
    ArgumentError
        Arguments that do not go together, or that are out of their range.
    DataRefusedError
        No points, points that the metric is not defined for, or no power law and no eps either.
    BudgetError
        More pairs are expected than ``--max-pairs``; what was found is printed all the same.
    """
    arguments = _parser().parse_args(argv)
    for name in ("neighbours", "max_pairs"):
        wish = getattr(arguments, name)
        if wish is not None and not 0 < wish < math.inf:
            raise ArgumentError(f"--{name.replace('_', '-')} must be above 0, not {wish}")
    sample = _read(arguments)
    fit, note = _fit(sample)
    found = _forecast(sample, fit, note, arguments)
    if arguments.json:
        print(json.dumps(asdict(found)))
    else:
        lines = list(_lines(found, sample.params))
        width = max(len(name) for name, _ in lines)
        for name, text in lines:
            print(f"  {name:<{width}}  {text}")
    if found.max_pairs is not None and found.pairs is not None and found.pairs > found.max_pairs:
        fits = f"no eps can be named: {note}"
        if fit is not None:
            fits = largest_that_fits(fit, found.max_pairs, sample.unit)
        raise BudgetError(
            f"eps {found.eps:g} {sample.unit}".rstrip() + f" would give about {found.pairs:.3g} pairs, "
            f"{found.max_pairs:,} are allowed (--max-pairs); {fits}"
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="epsjoin estimate", description="Say what a join would give and cost, from a sample, in seconds."
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="CSV with a header, or Parquet")
    parser.add_argument("--columns", help="coordinates in the files, with commas between: x,y,z")
    parser.add_argument(
        "--metric",
        choices=[name for name in METRICS if name != "minkowski"],
        help="of files (default: euclidean); haversine takes latitude before longitude, in degrees",
    )
    parser.add_argument("--lake", help="instead of files, a folder of all tables: a URI or an absolute path")
    parser.add_argument("--dataset", help="with --lake: name of a contract in the contracts' folder")
    parser.add_argument("--run", help="with --lake: logical date of the snapshot, YYYY-MM-DD")
    parser.add_argument(
        "--contracts", type=Path, default=PROJECT / "data_contracts", help="folder of the contracts"
    )
    parser.add_argument(
        "--eps", type=float, help="threshold (default: the data set's own); without one it is only suggested"
    )
    parser.add_argument(
        "--neighbours", type=float, default=10.0, help="suggest the eps that gives a point so many"
    )
    parser.add_argument(
        "--max-pairs", type=int, help="suggest the largest eps with so many pairs; refuse more (exit code 4)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser


def _read(arguments: argparse.Namespace) -> Sample:
    of_lake = [name for name in ("lake", "dataset", "run") if getattr(arguments, name) is not None]
    of_files = [name for name in ("files", "columns") if getattr(arguments, name)]
    if of_files == ["files", "columns"] and not of_lake:
        sample = _of_files(arguments)
    elif len(of_lake) == 3 and not of_files and arguments.metric is None:
        sample = _of_lake(arguments)
    else:
        raise ArgumentError(
            "give either files and --columns (and --metric), or --lake, --dataset and --run; "
            f"not {', '.join(of_files + of_lake) or 'nothing'}"
        )
    if sample.n_rows == 0:
        raise DataRefusedError(f"there are no points; {sample.n_left_out:,} rows were left out")
    try:
        sample.metric.check(sample.points)
    except ArgumentError as error:
        raise DataRefusedError(
            f"the metric is not defined for a point (row of the sample): {error}"
        ) from None
    return sample


def _of_files(arguments: argparse.Namespace) -> Sample:
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
    return Sample(ids, found.points, found.n_rows, found.n_left_out, metric, metric.unit, params)


def _of_lake(arguments: argparse.Namespace) -> Sample:
    source = load_source(arguments.contracts, arguments.dataset)
    given = {"seed": arguments.seed} | ({} if arguments.eps is None else {"eps": arguments.eps})
    params = RunParams.from_json(json.dumps(given), source.defaults)
    lake = Lake(uris.lake_uri(arguments.lake), arguments.contracts, source)
    ids, points = sample_stored(lake, arguments.run, params.sample_rows, params.seed)
    n_rows = slices.count(lake, "points", arguments.run)
    return Sample(ids, points, n_rows, 0, get_metric(source.metric), source.unit, params)


def _fit(sample: Sample) -> tuple[EpsilonFit | None, str | None]:
    params = sample.params
    try:
        fit = fit_epsilon(sample.points, sample.metric, params.sample_rows, params.seed, sample.n_rows)
    except ArgumentError as error:
        if sample.params.eps is None:
            raise DataRefusedError(f"eps cannot be chosen from these points: {error}") from error
        return None, str(error)
    return fit, None


def _suggest(
    fit: EpsilonFit | None, note: str | None, **wish: float | None
) -> tuple[float | None, str | None]:
    """The eps that fulfils the wish, or why there is none; neither where nothing was wished."""
    if fit is None or None in wish.values():
        return None, note
    try:
        return fit.eps_for(**wish), None  # type: ignore[arg-type]  # neighbours or pairs
    except ArgumentError as error:  # more than there are, or fewer than equal points make
        return None, str(error)


def _forecast(
    sample: Sample, fit: EpsilonFit | None, note: str | None, arguments: argparse.Namespace
) -> Forecast:
    eps = sample.params.eps
    for_neighbours, why_not_neighbours = _suggest(fit, note, neighbours=arguments.neighbours)
    for_pairs, why_not_pairs = _suggest(fit, note, pairs=arguments.max_pairs)
    known = Forecast(
        rows=sample.n_rows,
        rows_left_out=sample.n_left_out,
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
    )
    return known if eps is None else _with_join(known, sample, eps)


def _with_join(known: Forecast, sample: Sample, eps: float) -> Forecast:
    n_rows, dimensions = sample.n_rows, sample.points.shape[1]
    expected = estimate(sample.points, eps, sample.metric, n_rows=n_rows, seed=sample.params.seed)
    cuts = cuts_of(sample.params, n_rows, dimensions)
    plan = plan_join(sample.points, sample.ids, n_rows, eps, sample.metric, cuts)
    joined = {
        "pairs": expected.pairs,
        "pairs_low": expected.pairs_low,
        "pairs_high": expected.pairs_high,
        "neighbours": expected.neighbours,
        "parts": plan.n_parts,
        "replicas": plan.expected_rows / n_rows,
        "largest_part_rows": plan.expected_part_rows,
        "largest_part_bytes": WORKER_BYTES + plan.expected_part_rows * row_bytes(dimensions),
        "pair_bytes": expected.pair_bytes,
        "candidates": plan.expected_candidates,
        "seconds_on_one_core": plan.expected_seconds,
        "time": _time_class(plan.expected_seconds)[0],
    }
    return Forecast(**(asdict(known) | joined))


def _time_class(seconds: float) -> tuple[str, float]:
    """The word for a time, and the seconds of its unit."""
    return next(((word, unit) for word, unit, end in TIMES if seconds < end), ("days", 86400.0))


def _lines(found: Forecast, params: RunParams) -> Iterator[tuple[str, str]]:
    """What is said to people, as (name, text) lines."""
    left_out = f" ({found.rows_left_out:,} more left out: not numbers, or not finite)"
    yield "rows", f"{found.rows:,}" + (left_out if found.rows_left_out else "")
    yield "sample", f"{found.sample_rows:,} rows"
    if found.exponent is None:
        yield "exponent", f"unknown: {found.note}"
    else:
        yield "exponent", f"{found.exponent:.2f} ({found.exponent_low:.2f} to {found.exponent_high:.2f})"
    if found.eps is not None:
        yield "eps", f"{found.eps:g} {found.unit} ({found.metric})".replace("  ", " ")
        yield "pairs", f"about {found.pairs:,.0f} ({found.pairs_low:,.0f} to {found.pairs_high:,.0f})"
        if found.max_pairs is None and (found.pairs or 0) > params.max_pairs:
            yield "", f"more than the job allows (max_pairs {params.max_pairs:,})"
        yield "neighbours", f"{found.neighbours:,.1f} per point"
        yield "parts", f"{found.parts}"
        yield "replicas", f"{found.replicas:.2f} rows per point"
        yield "largest part", f"{found.largest_part_rows:,.0f} rows"
        yield "largest worker", f"{_bytes(found.largest_part_bytes or 0)} at most"
        yield "bytes of pairs", f"{_bytes(found.pair_bytes or 0)} in memory"
        seconds = found.seconds_on_one_core or 0.0
        word, unit = _time_class(seconds)
        of_core = f"{seconds / unit:.2g} {word} of one core, {found.candidates:,.0f} candidates"
        yield "time", f"{word} ({of_core}; without Spark's start and the writing of pairs)"
    wishes = [(f"{found.neighbours_wished:g} neighbours", found.eps_for_neighbours, found.why_not_neighbours)]
    if found.max_pairs is not None:
        wishes.append((f"{found.max_pairs:,} pairs", found.eps_for_max_pairs, found.why_not_max_pairs))
    for wish, eps, why_not in wishes:
        if found.exponent is not None:
            yield f"eps for {wish}", f"none: {why_not}" if eps is None else f"{eps:g} {found.unit}".rstrip()


def _bytes(number: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:,.3g} TB"
