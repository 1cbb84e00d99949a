"""The comparison of packed trees."""

from __future__ import annotations

from epsjoin.kernels.arrays import Ints
from epsjoin.local.trees.packed import unpack
from epsjoin.local.trees.prepared import TreeOptions, prepare
from epsjoin.local.trees.refine import refine
from epsjoin.spark.join.records import Compare, Near


def tree_comparer(k: int, options: TreeOptions, counters: dict[str, float] | None = None) -> Compare:
    """Make the comparison of packed trees; equal ones are at distance 0.

    Parameters
    ----------
    k : maximum distance.
    counters : to which candidates, refinements and subtree_pairs are added, see :func:`epsjoin.tree_join`.
    """

    def compare(left: list[bytes], i: Ints, right: list[bytes], j: Ints) -> Near:
        of_left, of_right = (prepare(unpack(side), options) for side in (left, right))
        found = refine(of_left, i, of_right, j, k, options, with_equal=True)
        if counters is not None:
            for name in ("candidates", "refinements", "subtree_pairs"):
                counters[name] = counters.get(name, 0) + getattr(found, name)
        return Near(found.rows, found.pairs.distance)

    return compare
