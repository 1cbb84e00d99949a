"""The eps at which a number of pairs that rises with eps reaches a target."""

from __future__ import annotations

import math
from collections.abc import Callable

from epsjoin.errors import ArgumentError

PRECISION = 1e-3
"""Relative difference of a number of pairs to its target that is near enough."""

_EPS_PRECISION = 1e-4
"""Relative width of a bracket at which the number of pairs is taken to jump inside it."""

_FACTOR, _MAX_FACTORS = 16.0, 20
"""The factor by which eps shrinks in the search for fewer pairs, and how often at most."""


def bracket_eps(pairs_within: Callable[[float], float], target: float, guess: float) -> tuple[float, float]:
    """Find two close eps, of which the first has at most ``target`` pairs, and the second at least as many.

    Parameters
    ----------
    pairs_within : the number of pairs for an eps, which rises with it.
    target : number of pairs, above 0, at most that of an infinite eps.
    guess : where to begin.

    Returns
    -------
    tuple[float, float]
        Equal if an eps has the target up to a thousandth; otherwise a ten-thousandth apart.

    Raises
    ------
    ArgumentError
        Even an eps 24 orders of magnitude smaller has more pairs: they are of equal points.
    """
    low = high = guess
    at_low = at_high = pairs_within(guess)
    for _ in range(_MAX_FACTORS):
        if at_low <= target:
            break
        high, at_high = low, at_low
        low /= _FACTOR
        at_low = pairs_within(low)
    else:
        raise ArgumentError(f"about {at_low:,.0f} pairs are of equal points, or nearly equal ones")
    while at_high < target:
        low, at_low = high, at_high
        high *= 2.0
        at_high = pairs_within(high)
    is_straight = True
    while high > low * (1.0 + _EPS_PRECISION):
        if at_low >= target * (1.0 - PRECISION):
            return low, low
        fraction = 0.5
        if is_straight and at_low > 0:  # a power law is straight; bisection where that does not help
            fraction = math.log(target / at_low) / math.log(at_high / at_low)
            fraction = min(max(fraction, 0.01), 0.99)
        is_straight = not is_straight
        middle = low * (high / low) ** fraction
        at_middle = pairs_within(middle)
        if at_middle <= target:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
    return low, high
