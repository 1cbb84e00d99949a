"""What a join will yield and cost, as ``epsjoin estimate`` tells people and programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from epsjoin.console import counted
from epsjoin.contracts import trees
from epsjoin.report import words

TIME_UNITS = (("seconds", 1.0, 60.0), ("minutes", 60.0, 3600.0), ("hours", 3600.0, 86400.0))
"""Units of time: name, seconds in one, seconds from which the next unit is used; the last unit is days."""


@dataclass(frozen=True)
class Forecast:
    """The prediction; its fields are the keys of ``--json``, and ``None`` stands for what is not known.

    Parameters
    ----------
    rows, right_rows, sample_rows : number of points, with two tables of the left one; of the right one; in
        the sample of the first.
    rows_left_out, rows_bad : rows without a coordinate; rows whose coordinate is no finite number, or that
        cannot be split into fields.
    first_bad : where the first bad row is and what is wrong with it; empty if none is bad.
    metric, unit, eps : the metric, the unit of its distances, the distance threshold.
    exponent, exponent_low, exponent_high : exponent of the power law of pair counts, with its 95 % interval.
    note : the reason why there is no power law.
    pairs, pairs_low, pairs_high, neighbours : see :class:`epsjoin.local.epsilon.estimate.Estimate`; for
        documents those of their points, which are an upper bound.
    parts, replicas, candidates, seconds_on_one_core : see :class:`epsjoin.local.plan.join_plan.JoinPlan`;
        replicas are rows per point.
    join : for a run, whether its pairs follow from those of an earlier one, or why not.
    largest_part_rows, largest_part_bytes : rows of the largest part, estimated from the sample, and the
        memory of a worker that joins it.
    pair_bytes : bytes of the pairs in memory.
    time : the unit that fits the time on one core: seconds, minutes, hours or days.
    target_neighbours, eps_for_neighbours, max_pairs, eps_for_max_pairs : what ``--neighbours`` and
        ``--max-pairs`` ask for, and the eps that yields it.
    why_not_neighbours, why_not_max_pairs : the reason why no eps yields it.
    """

    rows: int
    rows_left_out: int
    rows_bad: int
    first_bad: str
    sample_rows: int
    metric: str
    unit: str
    eps: float | None
    exponent: float | None
    exponent_low: float | None
    exponent_high: float | None
    note: str | None
    target_neighbours: float
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


def choose_time_unit(seconds: float) -> tuple[str, float]:
    """Choose the unit for a time: its name and the seconds in one."""
    return next(((name, unit) for name, unit, end in TIME_UNITS if seconds < end), ("days", 86400.0))


def describe(forecast: Forecast, allowed_pairs: int) -> Iterator[tuple[str, str]]:
    """Yield the prediction as lines of (name, text) for people."""
    unit = forecast.unit
    yield "rows", words.count(forecast.rows)
    if forecast.right_rows is not None:
        yield "right rows", words.count(forecast.right_rows)
    if forecast.rows_left_out:
        yield "left out", f"{counted(forecast.rows_left_out, 'row')} more: a coordinate is missing"
    if forecast.rows_bad:
        yield "bad", f"{counted(forecast.rows_bad, 'row')} more, such as {forecast.first_bad}"
    yield "sample", counted(forecast.sample_rows, "row")
    if forecast.exponent is None:
        yield "exponent", f"unknown: {forecast.note}"
    else:
        exponent, low, high = (
            words.measure(value, digits=3)
            for value in (forecast.exponent, forecast.exponent_low, forecast.exponent_high)
        )
        yield "exponent", f"{exponent} ({low} to {high})"
    if forecast.eps is not None:
        yield from _describe_join(forecast, forecast.eps, allowed_pairs)
    if forecast.exponent is None:
        return
    aim, eps = f"{forecast.target_neighbours:g} neighbours", forecast.eps_for_neighbours
    yield _describe_aim(aim, eps, forecast.why_not_neighbours, unit)
    if forecast.max_pairs is not None:
        aim, eps = f"{words.count(forecast.max_pairs)} pairs", forecast.eps_for_max_pairs
        yield _describe_aim(aim, eps, forecast.why_not_max_pairs, unit)


def _describe_join(forecast: Forecast, eps: float, allowed_pairs: int) -> Iterator[tuple[str, str]]:
    """Yield what the join with this eps will yield and cost."""
    pairs, low, high = map(words.count, (forecast.pairs, forecast.pairs_low, forecast.pairs_high))
    yield "eps", f"{words.measure(eps, forecast.unit, digits=6)} ({forecast.metric})"
    is_exact = forecast.pairs_low == forecast.pairs_high
    told = f"{pairs} (of all rows)" if is_exact else f"about {pairs} ({low} to {high})"
    is_bound = forecast.metric == trees.METRIC
    yield "pairs", f"{told}; at most, as candidates whose documents refine compares" if is_bound else told
    limit = forecast.max_pairs or allowed_pairs
    if (forecast.pairs_high or 0.0) > limit:
        perhaps = "" if (forecast.pairs_low or 0.0) > limit else "perhaps "
        yield "", f"{perhaps}more than the job allows (max_pairs {words.count(limit)})"
    neighbours = forecast.neighbours or 0.0
    is_small = 0 < neighbours < 0.1
    told = words.measure(neighbours, digits=2) if is_small else f"{neighbours:,.1f}"
    yield "neighbours", f"{told} per point"
    if forecast.join is not None:
        yield "join", forecast.join
    yield "parts", words.count(forecast.parts)
    yield "replicas", f"{forecast.replicas or 0.0:,.2f} rows per point"
    yield "largest part", f"{words.count(forecast.largest_part_rows)} rows"
    yield "largest worker", f"{words.size(forecast.largest_part_bytes)} at most"
    yield "bytes of pairs", f"{words.size(forecast.pair_bytes)} in memory"
    seconds = forecast.seconds_on_one_core or 0.0
    name, unit_seconds = choose_time_unit(seconds)
    of_core = f"{words.measure(seconds / unit_seconds, digits=2)} {name} of one core"
    candidates = f"{words.count(forecast.candidates)} candidates"
    yield "time", f"{name} ({of_core}, {candidates}; without Spark's start and the writing of pairs)"


def _describe_aim(aim: str, eps: float | None, why_not: str | None, unit: str) -> tuple[str, str]:
    return f"eps for {aim}", f"none: {why_not}" if eps is None else words.measure(eps, unit, digits=6)
