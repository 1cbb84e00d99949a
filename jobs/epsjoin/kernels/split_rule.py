"""When a cube may be split: the predicates of GESS, as data that a kernel can test.

The papers' joins are settings of one rule:

=====  ==================  ==========================  ==================
join   k                   msl                         budget
=====  ==================  ==========================  ==================
ORE    d (all dimensions)  the deepest level           no limit
MSJ    0                   any                         any
GESS   1, 2, 3, ...        0, 1, 2, ...                as you like
=====  ==================  ==========================  ==================

Why every rule is safe. Replication gives each cube H(x) a set of disjoint cells that cover it. Take any
two cubes that meet, and their reference point r in both. Exactly one cell A of x holds r and exactly one
cell B of y does. Two cells of a recursive partitioning that share r are nested, so the code of one is a
prefix of the other's, the merge compares these two rows, and the longer code is a prefix of the code of r.
For any other two rows of the pair r is outside one of the cells. If their codes are nested, r can be outside
the smaller cell only, since it is in no smaller cell without being in the larger: the longer code is then
not a prefix of the code of r, and the pair is not reported. Nothing here asks *why* a cube was split:
the rule may look at the cube, the level, the rows the cube has already become, or at a coin that depends on
the cube alone. It must only give the same rows each time that the cube is encoded.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from epsjoin.kernels.accelerate import njit

NO_LIMIT = 1 << 40


class SplitRule(NamedTuple):
    """The composed rule: a split is made when all three predicates hold.

    Parameters
    ----------
    k : at most this many dimensions are crossed at the level; 0 never splits.
    msl : deepest level at which a cube may be split; 0 is the first level, -1 never splits.
    max_rows : a cube never becomes more rows than this; a split that would exceed it is not made.
    """

    k: int
    msl: int
    max_rows: int


def make_split_rule(k: int, msl: int, replication_budget: float) -> SplitRule:
    """Give the rule "k crossed dimensions, down to level msl, at most floor(budget) rows per cube".

    ``replication_budget`` may be infinite.
    """
    limited = replication_budget < NO_LIMIT
    return SplitRule(k, msl, max(1, math.floor(replication_budget)) if limited else NO_LIMIT)


@njit
def may_split(rule: SplitRule, level: int, n_crossed: int, rows: int) -> bool:
    """Whether a cube may be split.

    Parameters
    ----------
    rule : the three predicates.
    level : level of the cell whose cuts are crossed; 0 is the whole space.
    n_crossed : dimensions whose cut the cube crosses at this level; at least 1.
    rows : rows that the whole cube has become so far, this piece counted as one.

    Notes
    -----
    Seed 003 writes strategy 2 as ``level < msl``; here msl is the last level that may be split.
    """
    if n_crossed > rule.k or level > rule.msl or n_crossed > 40:
        return False
    return rows - 1 + (1 << n_crossed) <= rule.max_rows
