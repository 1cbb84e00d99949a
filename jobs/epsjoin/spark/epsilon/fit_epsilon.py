"""The step ``fit_epsilon``: fit the power law of pair counts on a sample, and choose eps by it."""

from __future__ import annotations

from typing import Any, NamedTuple

from epsjoin.console import counted, in_unit, say
from epsjoin.contracts.sources import SourceContract
from epsjoin.contracts.trees import is_whole
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.kernels.arrays import Floats
from epsjoin.lake import slices, targets, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.local.epsilon.epsilon_fit import EpsilonFit
from epsjoin.local.epsilon.fit import fit_epsilon as fit_points
from epsjoin.local.epsilon.k_distance import quantile_of_all
from epsjoin.local.epsilon.limits import Expectation
from epsjoin.local.metric import Metric, get_metric
from epsjoin.params import MAX_SAMPLE_ROWS, RunParams
from epsjoin.spark.job.job import Job
from epsjoin.spark.points.points import stored_points


class ChosenEps(NamedTuple):
    """An eps, the method by which it was chosen, and the method's target (``None`` if eps was set)."""

    eps: float
    method: str
    target: float | None


def run(job: Job) -> dict[str, float]:
    """Replace the run's slices of ``epsilon`` and ``epsilon_curve``.

    An eps that is chosen has ``eps_digits`` significant digits, so that it stays the same while the points
    change little, and the expected pairs are those of this eps. An eps that is set is taken as it is.

    For documents, whose eps is always set, everything is about their points: the expected pairs are
    candidates.

    If a parameter sets eps, the power law is fitted all the same, for the report. If the points then follow
    no power law, this only adds a note to the table.

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
    _check_given_eps(source, params)
    inputs = Fingerprints(job.lake, job.run, is_made_now=True)
    epsilon = inputs.slice("epsilon")
    fitted = _fit(job)
    choice = _choose(params, fitted)
    expectation = fitted.expectation(params)
    expected_pairs = expectation.refuse_too_many(choice.eps, params.max_pairs, source.unit).pairs
    _write(job, inputs, epsilon, fitted, _describe(choice, expected_pairs, fitted))
    eps = f"{in_unit(choice.eps, source.unit)} ({choice.method}{_format_target(choice.target)})"
    say(f"fit_epsilon: eps {eps}, {counted(expected_pairs, 'pair')} expected")
    counters = {"n_sample": float(fitted.n_sample), "eps": choice.eps, "expected_pairs": expected_pairs}
    fit = fitted.fit
    if fit is None:
        return counters
    interval = f"{fit.power_law.interval_low:.2f} to {fit.power_law.interval_high:.2f}"
    say(f"fit_epsilon: exponent {fit.exponent:.2f} ({interval})")
    return {**counters, "exponent": fit.exponent}


class _Fitted(NamedTuple):
    """A sample of the points, and its power law or the reason why it follows none."""

    n_points: int
    sample: Floats
    metric: Metric
    fit: EpsilonFit | None
    note: str | None

    @property
    def n_sample(self) -> int:
        """Number of rows that were fitted, or could not be."""
        return len(self.sample) if self.fit is None else self.fit.n_sample

    def expectation(self, params: RunParams) -> Expectation:
        """The pairs to expect of these points."""
        rows = self.sample, self.n_points
        return Expectation(*rows, self.metric, params.seed, params.sample_rows, self.fit)


def _check_given_eps(source: SourceContract, params: RunParams) -> None:
    """Refuse an eps that the metric cannot have, and documents without one."""
    if source.tree and not is_whole(params.eps):
        raise ArgumentError(
            f"eps of {source.name} must be a whole number of edits, 1 at least, not {params.eps!r}; it is "
            "not chosen by neighbours, pairs or a quantile"
        )
    if params.eps is not None:
        get_metric(source.point_metric).check_eps(params.eps)


def _fit(job: Job) -> _Fitted:
    """Fit the power law of a sample of the points."""
    params, metric = job.params, get_metric(job.lake.source.point_metric)
    points = stored_points(job)
    _, sample = points.sample(params.sample_rows, params.seed)
    max_k = max(64, params.min_pts - 1)
    try:
        fit = fit_points(sample, metric, params.sample_rows, params.seed, points.n, max_k)
    except ArgumentError as error:
        return _Fitted(points.n, sample, metric, None, str(error))
    return _Fitted(points.n, sample, metric, fit, None)


def _choose(params: RunParams, fitted: _Fitted) -> ChosenEps:
    """Choose eps as the parameters say.

    Raises
    ------
    DataRefusedError
        It cannot be chosen from these points.
    """
    if params.eps is not None:
        return ChosenEps(float(params.eps), "given", None)
    try:
        if fitted.fit is None:
            return _choose_without_law(params, fitted)
        return _choose_by_law(params, fitted.fit, fitted.n_points)
    except ArgumentError as error:
        raise DataRefusedError(f"eps cannot be chosen from these points: {error}") from error


def _write(job: Job, inputs: Fingerprints, epsilon: Slice, fitted: _Fitted, row: dict[str, Any]) -> None:
    """Replace both slices. The curve is made from the files of ``epsilon``, which are committed after it."""
    curve = [] if fitted.fit is None else _list_curve(fitted.fit, fitted.n_points)
    written = targets.target_of(job.lake, epsilon).write([slices.table_of(job.lake, "epsilon", [row])])
    files = [written] if written else []
    rows = slices.table_of(job.lake, "epsilon_curve", curve)
    slices.write_slice(job.lake, inputs.slice("epsilon_curve", epsilon=files), rows)
    transactions.commit(job.lake, {epsilon: files})


def _describe(choice: ChosenEps, expected_pairs: float, fitted: _Fitted) -> dict[str, Any]:
    """The row of ``epsilon``."""
    n_points = fitted.n_points
    return {
        "eps": choice.eps,
        "metric": fitted.metric.name,
        "method": choice.method,
        "target": choice.target,
        "note": fitted.note,
        "n_points": n_points,
        "n_sample": fitted.n_sample,
        "expected_pairs": expected_pairs,
        "expected_neighbours": 2 * expected_pairs / n_points if n_points else 0.0,
        **({} if fitted.fit is None else _describe_law(fitted.fit)),
    }


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


def _choose_by_law(params: RunParams, fit: EpsilonFit, n_points: int) -> ChosenEps:
    digits, fraction = params.eps_digits, params.k_distance_quantile
    if params.pairs is not None:
        return ChosenEps(fit.eps_for(pairs=params.pairs, digits=digits), "pairs", params.pairs)
    if fraction is not None:
        k = _rank(params, fit.n_sample, n_points)
        eps = fit.eps_for(k_distance_quantile=fraction, k=k, digits=digits)
        return ChosenEps(eps, "k_distance_quantile", fraction)
    eps = fit.eps_for(neighbours=params.neighbours, digits=digits)
    return ChosenEps(eps, "neighbours", params.neighbours)


def _choose_without_law(params: RunParams, fitted: _Fitted) -> ChosenEps:
    """Choose eps without a power law: the k-distances need none if all points are looked at."""
    sample, n_points = fitted.sample, fitted.n_points
    fraction = None if params.pairs is not None else params.k_distance_quantile
    is_whole = len(sample) == n_points
    if is_whole and fraction is not None:
        k = _rank(params, n_points, n_points)
        eps = quantile_of_all(sample, fitted.metric, fraction, k, params.eps_digits, params.seed)
        return ChosenEps(eps, "k_distance_quantile", fraction)
    other = ""
    if fraction is not None and n_points <= MAX_SAMPLE_ROWS:
        other = f", or raise sample_rows ({len(sample):,}) to all {n_points:,} points"
    elif is_whole and len(sample) >= params.min_pts and len(sample) > 1 and (sample != sample[0]).any():
        other = " or by k_distance_quantile"
    raise ArgumentError(f"{fitted.note} (parameter eps){other}")


def _rank(params: RunParams, n_sample: int, n_points: int) -> int:
    """Return the rank of the neighbours whose distances are k-distances.

    Raises
    ------
    ArgumentError
        No point of the sample has so many neighbours in it.
    """
    k = max(1, params.min_pts - 1)
    if k < n_sample:
        return k
    looked_at, other = counted(n_points, "point has", "points have"), ""
    if n_sample < n_points:
        looked_at, other = f"the {n_sample:,} sampled points have", ", raise sample_rows"
    raise ArgumentError(
        f"k_distance_quantile looks at the neighbour number {k:,} of a point (min_pts {params.min_pts:,}), "
        f"and {looked_at} {n_sample - 1:,} at most; lower min_pts{other} or choose eps by hand (eps)"
    )
