"""What both ways of ranking share: the columns, the text for the first ranks, a check of the pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.errors import TableError
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.rank import deviating_dimensions, robust_spread, turn_to

MAX_EXPLAINED = 10_000
"""Number of the first ranks for which ``dimensions`` is filled."""

OUTLIERS = (
    "id long, rank long, lof double, k_distance double, degree long, is_noise boolean, dimensions string"
)


class Scoring(NamedTuple):
    """How points are scored.

    Parameters
    ----------
    eps, metric : threshold and metric of the pairs.
    k : number of neighbours that the local outlier factor uses.
    names : names of the dimensions.
    are_candidates : whether the pairs are candidates, of which the degrees of ``clusters`` count only some.
    """

    eps: float
    metric: Metric
    k: int
    names: Sequence[str]
    are_candidates: bool = False


def check_near(found: int, expected: int, are_candidates: bool = False) -> None:
    """Refuse pairs that do not have the neighbours which the degrees of ``clusters`` imply.

    Candidates may have more.
    """
    if found < expected if are_candidates else found != expected:
        raise TableError(
            f"{found:,} neighbours were found in the pairs, {expected:,} by the degrees of clusters; "
            "run cluster again, then outliers"
        )


class Usual(NamedTuple):
    """The name of each dimension and the usual values in it, from which points and clusters deviate.

    Parameters
    ----------
    centre, spread : (d,) float64, see :func:`epsjoin.local.neighbours.rank.robust_spread`.
    names : of the dimensions.
    turn : full turn of the second dimension if it is a longitude, whose values differ by the shorter way
        round; otherwise 0.
    """

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    names: tuple[str, ...]
    turn: float

    @classmethod
    def of(cls, sample: NDArray[np.float64], names: Sequence[str], metric: Metric) -> Usual:
        """Find what is usual from a sample of the points."""
        turn = metric.full_turn
        centre, spread = robust_spread(sample, turn)
        # for the largest numbers it is beyond float64; then deviations are measured by the largest float64
        return cls(centre, np.minimum(spread, np.finfo(np.float64).max), tuple(names), turn)

    def describe(self, points: NDArray[np.float64]) -> pa.Array:
        """Describe in which dimensions each point deviates most: a column of strings."""
        if not len(points):
            return pa.array([], pa.string())
        found = deviating_dimensions(turn_to(points, self.centre, self.turn), self.centre, self.spread)
        names = pa.array(self.names, pa.string())
        words = [
            pc.binary_join_element_wise(names.take(pa.array(axis)), _format_tenths(z), " ")
            for axis, z in zip(found.dimension.T, found.z.T, strict=True)
        ]
        return pc.binary_join_element_wise(*words, ", ")


def _format_tenths(values: NDArray[np.float64]) -> pa.Array:
    """Format numbers with sign and one decimal, huge ones shortly; each distinct one once: that is slow."""
    rounded, at = np.unique(np.round(values, 1) + 0.0, return_inverse=True)  # + 0.0: never -0.0
    texts = [f"{value:+.1f}" if abs(value) < 1e9 else f"{value:+.3g}" for value in rounded.tolist()]
    return pa.array(texts, pa.string()).take(pa.array(at))
