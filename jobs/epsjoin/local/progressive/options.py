"""How a progressive join runs."""

from __future__ import annotations

from typing import Literal, NamedTuple

from epsjoin.local.progressive.results import How
from epsjoin.local.progressive.sizes import Sizes

Traversal = Literal["last", "eager", "idle"]
TRAVERSALS = ("last", "eager", "idle")


class Options(NamedTuple):
    """How a progressive join runs.

    Parameters
    ----------
    how, traversal : as of :func:`epsjoin.progressive_join`.
    sizes : how memory is divided.
    has_numbers : whether ids differ from the row numbers.
    first_pairs : how many pairs the rows that are joined first should have; None: any number.
    """

    how: How
    traversal: Traversal
    sizes: Sizes
    has_numbers: bool = False
    first_pairs: int | None = None
