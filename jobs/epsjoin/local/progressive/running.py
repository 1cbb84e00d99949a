"""How many pairs a progressive join will have, while it runs.

*While runs are read* the pairs of the runs so far stand for all: rows that have met are a sample of all
combinations, if rows come in random order, which :class:`OrderCheck` tests. *While runs are merged* the
pairs that are known from the runs tell how far the merge is: of the ``z`` pairs of the runs ``w`` lie below
the current key, so the ``c`` pairs of different runs that it has found below the key become ``c z / w``. This
assumes no order: it is exact at the end of the merge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.plan.expectation.expected import NORMAL_95
from epsjoin.local.progressive.rows import Keys, Values

ORDER_BINS = 16
"""Bins by which the order of the rows is checked."""
ORDER_COLUMNS = 4
"""Number of columns by which it is checked, besides the key."""
ORDER_LEVEL = 1e-3
"""Probability of a false alarm of the order check."""
_STUDENT_95 = (
    *(math.inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""Student's t at 95 % by degrees of freedom; more than 20 are taken for 20."""
_MANY_RUNS = 5
"""Number of runs from which on their own differences give the interval."""
NOT_RANDOM = "rows do not come in random order"
OF_SOME_ROWS = "from a sample of some parts of the table"


class RunningEstimate(NamedTuple):
    """The number of pairs that a progressive join is expected to have.

    Parameters
    ----------
    pairs : the number; None as long as nothing is known.
    low, high : its 95 % interval; None where there is none.
    note : why there is no interval, or empty.

    Examples
    --------
    >>> from epsjoin import Similarity, progressive_join
    >>> with progressive_join([[0.0], [1.0], [2.0]], on=Similarity(1.0)) as found:
    ...     batches = list(found)
    >>> found.estimate  # at the end it is exact
    RunningEstimate(pairs=2.0, low=2.0, high=2.0, note='')
    """

    pairs: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


class RunPairs(NamedTuple):
    """Pairs of a run whose rows have all met.

    Parameters
    ----------
    pairs : their number.
    combinations : how many pairs of rows have met: m n, or m (m - 1) / 2.
    variance : of ``pairs``, from the degrees of the run's rows: m s²(left degrees) + n s²(right degrees).
    """

    pairs: float
    combinations: float
    variance: float


def combinations(rows: tuple[float, float], two_tables: bool) -> float:
    """How many pairs of rows there are."""
    return rows[0] * rows[1] if two_tables else rows[0] * max(0.0, rows[0] - 1.0) / 2.0


def from_runs(runs: list[RunPairs], everything: float, fraction: float, is_random: bool) -> RunningEstimate:
    """Estimate all pairs from those of the runs.

    Parameters
    ----------
    runs : those so far.
    everything : combinations of all rows.
    fraction : of the rows that have been read.
    is_random : whether the order check passed.
    """
    met = sum(run.combinations for run in runs)
    if not met:
        return RunningEstimate(None)
    known = sum(run.pairs for run in runs)
    scale = everything / met
    estimate = max(known * scale, known)
    if not is_random:
        return RunningEstimate(estimate, note=NOT_RANDOM)
    full = [run for run in runs if run.combinations >= 0.5 * max(run.combinations for run in runs)]
    if len(full) >= _MANY_RUNS:
        rates = np.array([run.pairs / run.combinations for run in full])
        counted = math.sqrt(sum(run.pairs / run.combinations**2 for run in full) / len(full))
        apart = max(float(rates.std(ddof=1)), counted)  # a few runs may be near each other by chance
        half = student(len(full) - 1) * apart / math.sqrt(len(full)) * everything
    else:
        # known rows have no error; few of their combinations have met, so the count keeps its own error
        half = NORMAL_95 * math.sqrt(sum(run.variance for run in runs) * (1.0 - fraction) + known) * scale
    return RunningEstimate(estimate, max(known, estimate - half), estimate + half)


def from_merge(z: Floats, w: Floats, c: float, c_of: Floats) -> tuple[float, float | None]:
    """Estimate the pairs of different runs that a merge has still to find.

    Parameters
    ----------
    z, w : (q,) pairs of each run, and those of them below the current key.
    c, c_of : pairs of different runs found below the key, and those with a row of each run.

    Returns
    -------
    The number, and half the width of its 95 % interval by leaving out one run after the other; None where
    nothing is known.
    """
    below, above = float(w.sum()), float((z - w).sum())
    if not below:
        return math.nan, None
    rest = c * above / below
    q = len(z)
    without = below - w
    if q < 3 or not (without > 0.0).all():
        return rest, None
    left_out = (c - c_of) * (above - (z - w)) / without * q / (q - 2.0)
    variance = (q - 1.0) / q * float(((left_out - left_out.mean()) ** 2).sum())
    # the rest is a count, and so is what it is estimated from: never more certain than for independent pairs,
    # of which one more may exist, so that 0 is not certain either
    rate = (c + 1.0) / below
    variance = max(variance, rate**2 * (above + 2.0)) + rate * above * (1.0 + above / below)
    return rest, student(q - 1) * math.sqrt(variance)


def variance_of_some(pairs: float, runs: list[RunPairs], met: list[float], everything: float) -> float:
    """Compute the variance of the pairs of some combinations of rows, whose rows are random parts of all.

    Parameters
    ----------
    pairs : their number, or an estimate of it.
    runs : the runs that the parts consist of.
    met : combinations of each part, all of whose rows have met.
    everything : combinations of all rows.

    Notes
    -----
    A part with a fraction s of the rows has s² of the combinations. A row in it finds about s of its
    neighbours there, so that a row with many neighbours counts more in a large part than in a small one. The
    variance of this is the sum of the squared differences of degrees, times the variance of s over the rows,
    which is 0 if all parts are equally large. The former is estimated from the runs, less what the randomness
    of counts adds to it. The rest is the variance of a count without the known pairs.
    """
    share, of_runs = (np.sqrt(np.array(each) / everything) for each in (met, [r.combinations for r in runs]))
    differing = sum(max(0.0, run.variance - 2.0 * run.pairs) for run in runs)
    differing /= float((of_runs**3).sum()) or 1.0  # single rows have no degrees
    known = float((share**2).sum())
    spread = max(0.0, float((share**3).sum()) - known**2)
    return pairs * max(0.0, 1.0 - known) + differing * spread


def student(freedom: int) -> float:
    """Student's t that holds 95 % at so many degrees of freedom."""
    return _STUDENT_95[min(freedom, len(_STUDENT_95) - 1)]


class OrderCheck:
    """Whether the rows of all runs are distributed alike: χ² over bins with equally many rows of one.

    Parameters
    ----------
    edges, counts : of the runs so far, as the properties of these names give them.

    Notes
    -----
    The key alone is not enough: where keys are parts, the cuts need not lie along the axis by which rows are
    sorted. So the key and the first columns are tested, each at its share of the level.
    """

    def __init__(self, edges: Sequence[Keys] = (), counts: Sequence[Sequence[Sequence[int]]] = ()) -> None:
        self.edges = list(edges)
        self._counts: list[list[Ints]] = [[np.array(run, np.int64) for run in one] for one in counts]

    def add(self, keys: Keys, values: Values) -> None:
        """Add a run.

        Parameters
        ----------
        keys : (n,) of each row once.
        values : (n, c), the rows.
        """
        if not len(keys):
            return
        columns = [keys, *(values[:, axis] for axis in range(min(values.shape[1], ORDER_COLUMNS)))]
        if not self.edges:
            at = np.arange(1, ORDER_BINS) * len(keys) // ORDER_BINS
            self.edges = [np.unique(np.sort(column)[at]) for column in columns]
            self._counts = [[] for _ in columns]
        for column, edges, counts in zip(columns, self.edges, self._counts, strict=True):
            counts.append(np.bincount(bins_of(edges, column), minlength=len(edges) + 1))

    @property
    def counts(self) -> list[list[list[int]]]:
        """Rows in each bin, of each run, by the key and by each column."""
        return [[run.tolist() for run in one] for one in self._counts]

    @property
    def is_random(self) -> bool:
        """Whether nothing speaks against a random order of the rows."""
        level = ORDER_LEVEL / max(1, len(self._counts))
        return all(_same_distribution(np.array(one, np.float64)) >= level for one in self._counts)


def _same_distribution(counts: Floats) -> float:
    """Probability that rows of counts as far apart, or farther, come from one distribution."""
    if len(counts) < 2:
        return 1.0
    counts = counts[:, counts.sum(axis=0) > 0]
    if counts.shape[1] < 2:
        return 1.0
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return chi_square_tail(statistic, (counts.shape[0] - 1) * (counts.shape[1] - 1))


def chi_square_tail(statistic: float, freedom: int) -> float:
    """Probability of a larger χ², by the normal approximation of its cube root (Wilson, Hilferty 1931)."""
    if statistic <= 0.0:
        return 1.0
    variance = 2.0 / (9.0 * freedom)
    x = ((statistic / freedom) ** (1.0 / 3.0) - (1.0 - variance)) / math.sqrt(variance)
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def bins_of(edges: Keys, keys: Keys) -> Ints:
    """The bin of each key; the lower edges of all but the first are ascending."""
    return np.searchsorted(edges, keys, "right")
