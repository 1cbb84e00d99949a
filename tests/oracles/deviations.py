"""What sets clusters apart, as the glossary defines it: medians of lists, one dimension after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median


def z_score(value: float, values: Sequence[float]) -> float:
    """How far a value is from the median of all values, in median absolute deviations x 1.4826."""
    middle = median(values)
    spread = 1.4826 * median([abs(each - middle) for each in values])
    off = value - middle
    return off / spread if spread else math.copysign(math.inf, off) if off else 0.0


def together(longitudes: Sequence[float]) -> list[float]:
    """Longitudes from -180 to 180, of which those east of the widest gap are a turn further west.

    At 180 degrees there is a cut where no gap has a twelfth of a turn, or twice that of the gap there.
    """
    ascending = sorted(longitudes)
    ends = [*ascending[1:], ascending[0] + 360.0]
    gaps = [end - begin for begin, end in zip(ascending, ends, strict=True)]
    west = ascending[gaps.index(max(gaps))]
    if max(gaps) < 30.0 or max(gaps) < 2.0 * gaps[-1]:
        return list(longitudes)
    return [each - 360.0 if each > west else each for each in longitudes]


def deviations(
    points: Sequence[Sequence[float]], labels: Sequence[int]
) -> dict[int, list[tuple[int, float]]]:
    """Label -> the two dimensions with the largest |z|, then |difference|, then the lower one; with z."""
    columns = list(zip(*points, strict=True))
    found = {}
    for label in sorted({*labels} - {-1}):
        told = []
        for dimension, column in enumerate(columns):
            mine = median([value for value, of in zip(column, labels, strict=True) if of == label])
            z = z_score(mine, column)
            told.append((-abs(z), -abs(mine - median(column)), dimension, z))
        found[label] = [(dimension, z) for _, _, dimension, z in sorted(told)[:2]]
    return found
