"""The step ``fit_epsilon``: fit the power law of pair counts on a sample, and choose eps by it."""

from __future__ import annotations

from typing import Any, NamedTuple

from epsjoin.console import counted, in_unit, say
from epsjoin.contracts.trees import is_whole
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.kernels.arrays import Floats
from epsjoin.lake import slices, targets, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.local.epsilon.epsilon_fit import EpsilonFit
from epsjoin.local.epsilon.fit import fit_epsilon as fit_points
from epsjoin.local.epsilon.k_distance import quantile_of_all
from epsjoin.local.epsilon.limits import Expectation
from epsjoin.local.metric import Metric, get_metric
from epsjoin.params import MAX_SAMPLE_ROWS, RunParams
from epsjoin.spark.job import Job
from epsjoin.spark.points import stored_points


class ChosenEps(NamedTuple):
    """An eps, the method by which it was chosen, and the method's target (``None`` if eps was set)."""

    eps: float
    method: str
    target: float | None


def run(job: Job) -> dict[str, float]:
    """Replace the run's slices of ``epsilon`` and ``epsilon_curve``.

    An eps that is chosen has ``eps_digits`` significant digits, so that it stays the same while the points
    change little, and the expected pairs are those of this eps. An eps that is set is taken as it is.

    Of documents, whose eps is always set, everything is about their points: the pairs that are expected are
    candidates.

    If a parameter sets eps, the power law is fitted all the same, for the report. Points without a power law
    then only add a note to the table.

    Raises
    ------
    ArgumentError
        A parameter sets an eps that is too small or too large for the metric; or eps of documents is not
        whole.
    DataRefusedError
        eps must be chosen, but the points follow no power law (they are too few, or too many are equal). A
        quantile of the k-distances needs none where all points are sampled.
    BudgetError
        More than ``max_pairs`` pairs are expected; the message has the largest eps that fits.
    TableError
        ``points`` has no slice of this run.
    """
    source, params = job.lake.source, job.params
    if source.tree and not is_whole(params.eps):
        raise ArgumentError(
            f"eps of {source.name} must be a whole number of edits, 1 at least, not {params.eps!r}; it is "
            "not chosen by neighbours, pairs or a quantile"
        )
    metric = get_metric(source.point_metric)
    if params.eps is not None:
        metric.check_eps(params.eps)
    inputs = Fingerprints(job.lake, job.run, is_made_now=True)
    epsilon = inputs.slice("epsilon")
    points = stored_points(job)
    n_points = points.n
    _, sample = points.sample(params.sample_rows, params.seed)
    max_k = max(64, params.min_pts - 1)
    fit: EpsilonFit | None = None
    note = None
    try:
        fit = fit_points(sample, metric, params.sample_rows, params.seed, n_points, max_k)
    except ArgumentError as error:
        note = str(error)
    if params.eps is not None:
        choice = ChosenEps(float(params.eps), "given", None)
    else:
        try:
            if fit is None:
                choice = _choose_without_law(params, sample, n_points, metric, note)
            else:
                choice = _choose_by_law(params, fit)
        except ArgumentError as error:
            raise DataRefusedError(f"eps cannot be chosen from these points: {error}") from error
    expectation = Expectation(sample, n_points, metric, params.seed, params.sample_rows, fit)
    expected_pairs = expectation.refuse_too_many(choice.eps, params.max_pairs, source.unit).pairs
    row: dict[str, Any] = {
        "eps": choice.eps,
        "metric": source.point_metric,
        "method": choice.method,
        "target": choice.target,
        "note": note,
        "n_points": n_points,
        "n_sample": len(sample) if fit is None else fit.n_sample,
        "expected_pairs": expected_pairs,
        "expected_neighbours": 2 * expected_pairs / n_points if n_points else 0.0,
        **({} if fit is None else _describe_law(fit)),
    }
    curve = [] if fit is None else _list_curve(fit, n_points)
    written = targets.target_of(job.lake, epsilon).write([slices.table_of(job.lake, "epsilon", [row])])
    files = [written] if written else []
    rows = slices.table_of(job.lake, "epsilon_curve", curve)
    slices.write_slice(job.lake, inputs.slice("epsilon_curve", epsilon=files), rows)
    transactions.commit(job.lake, {epsilon: files})
    eps = f"{in_unit(choice.eps, source.unit)} ({choice.method}{_format_target(choice.target)})"
    say(f"fit_epsilon: eps {eps}, {counted(expected_pairs, 'pair')} expected")
    if fit is not None:
        interval = f"{fit.power_law.interval_low:.2f} to {fit.power_law.interval_high:.2f}"
        say(f"fit_epsilon: exponent {fit.exponent:.2f} ({interval})")
    counters = {
        "n_sample": float(row["n_sample"] or 0),
        "eps": choice.eps,
        "expected_pairs": expected_pairs,
    }
    return counters if fit is None else {**counters, "exponent": fit.exponent}


def _describe_law(fit: EpsilonFit) -> dict[str, float]:
    """Return the columns of ``epsilon`` that tell a power law."""
    law = fit.power_law
    return {
        "exponent": law.exponent,
        "exponent_low": law.interval_low,
        "exponent_high": law.interval_high,
        "range_low": law.range_low,
        "range_high": law.range_high,
        "r_squared": law.r_squared,
    }


def _list_curve(fit: EpsilonFit, n_points: int) -> list[dict[str, float | bool]]:
    """List the rows of ``epsilon_curve``: the sample's pairs within each radius, scaled to all points."""
    law = fit.power_law
    scale = (n_points * (n_points - 1)) / (fit.n_sample * (fit.n_sample - 1))
    return [
        {"radius": r, "pairs": n * scale, "in_fit": law.range_low <= r <= law.range_high}
        for r, n in zip(fit.curve.radius.tolist(), fit.curve.pairs.tolist(), strict=True)
    ]


def _format_target(target: float | None) -> str:
    return "" if target is None else f" {target:g}"


def _choose_by_law(params: RunParams, fit: EpsilonFit) -> ChosenEps:
    digits, share = params.eps_digits, params.k_distance_quantile
    if params.pairs is not None:
        return ChosenEps(fit.eps_for(pairs=params.pairs, digits=digits), "pairs", params.pairs)
    if share is not None:
        eps = fit.eps_for(k_distance_quantile=share, k=_rank(params), digits=digits)
        return ChosenEps(eps, "k_distance_quantile", share)
    eps = fit.eps_for(neighbours=params.neighbours, digits=digits)
    return ChosenEps(eps, "neighbours", params.neighbours)


def _choose_without_law(
    params: RunParams, sample: Floats, n_points: int, metric: Metric, note: str | None
) -> ChosenEps:
    """Choose eps where there is no power law: the k-distances need none where all points are looked at."""
    share = None if params.pairs is not None else params.k_distance_quantile
    is_whole, k = len(sample) == n_points, _rank(params)
    if is_whole and share is not None:
        eps = quantile_of_all(sample, metric, share, k, params.eps_digits, params.seed)
        return ChosenEps(eps, "k_distance_quantile", share)
    other = ""
    if share is not None and n_points <= MAX_SAMPLE_ROWS:
        other = f", or raise sample_rows ({len(sample):,}) to all {n_points:,} points"
    elif is_whole and len(sample) > k and (sample != sample[0]).any():
        other = " or by k_distance_quantile"
    raise ArgumentError(f"{note} (parameter eps){other}")


def _rank(params: RunParams) -> int:
    """Return the rank of the neighbours whose distances are k-distances."""
    return max(1, params.min_pts - 1)
