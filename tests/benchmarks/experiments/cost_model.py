"""What GESS would cost: the dissertation's models of rows, comparisons, memory and I/O.

Rows, comparisons and memory are those of uniform data: the cubes are taken as independent and uniform in the
unit cube, all sides equal, decided level by level ("global"), with the rule "k crossed dimensions, down to
level msl" (k = 0: MSJ; k = d at all levels: ORE). Per dimension, a cube of side s that no cut above level l
crosses is crossed by one of level l with the probability

    p_l = 1 - (1 - 2**(l+1) s) / (1 - 2**l s)                                   (3.4 for d = 1)

and crosses q cuts of the level with the binomial probability b(q; d, p_l). From r rows that reach level l

    r P(X_l > k) stop there, and r sum(2**q P(X_l = q), q = 0..k) go on          (3.10)

and all that reach the deepest level stop there. Two rows that stop at levels i and j are compared when the
coarser cell is a prefix of the finer, and a space of n-ary cells has 2**(d min(i, j)) of these: lemma 2
(3.3). On the stack are, at any time, the rows of each level that one cell of it has (tau of section
3.6.1.2, times the rows).

How good it is. Without replication (k = 0) level counts and comparisons are exact in the mean, rounding and
the border aside. With replication the model takes replicas as whole cubes in random places; the dissertation
(section 3.6.1) finds it "very accurate" and "slightly pessimistic", an upper bound for the comparisons:
pieces are smaller than cubes and fall deeper. (For ORE the bound is about three times too high.) The rows are
no bound, since pieces that stop less often are split more often.

On real data it can only be a guess. Section 3.7.2 puts the fractal dimension P of the data in the place of d:
for msl = 0, k = 3 the model with replication is 3 to 4 orders of magnitude below the measured comparisons on
two of four data sets, the one without at most one order off on CAD. Section 3.7.3 finds no support for it.
One cube in level 0 alone costs n comparisons. ``d`` may be such a P here.

The I/O is counted in pages, and needs of the data no more than the sizes of its level files
(:func:`io_cost`).

References
----------
Dittrich's dissertation on GESS, sections 3.3, 3.4, 3.6.1, 3.7, equations 3.3 to 3.14. Where its
formulas are incomplete: docs/notes-on-papers.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError
from epsjoin.kernels.codes import BITS, deepest_level
from oracles.papers import merge_passes


class ExpectedWork(NamedTuple):
    """What a join is expected to do.

    Parameters
    ----------
    left_rows, right_rows : (levels + 1,) float64, rows whose code ends at each level, replicas among them;
        of one table with itself both are the same.
    comparisons : rows compared with a row on the stack, the papers' distance computations (DC).
    area : rows on the stack at once, of both tables; over the rows of the input it is the papers' tau.
    """

    left_rows: NDArray[np.float64]
    right_rows: NDArray[np.float64]
    comparisons: float
    area: float


def inner_side(eps: float) -> float:
    """Side of the cubes after the points were moved so that all cubes lie within the unit cube.

    Parameters
    ----------
    eps : relative to the space's side; cubes of points at the border reach out by ``eps / 2``.

    Notes
    -----
    The space grows to ``1 + eps`` and is scaled back: ``eps / (1 + eps)``, and ``x`` becomes
    ``(x + eps/2) / (1 + eps)``. Dittrich's dissertation, section 3.3, has ``x' = eps/2 + x (1 - eps)`` with
    the side ``(1 - eps) eps``, the same but for terms of ``eps**3``; its cubes do not fill the unit cube.

    Clamped to the space instead, as :func:`epsjoin.kernels.codes.cube_corners` does, cubes stop at each
    level with the same probabilities; the outermost cells are then a little likelier than the others.
    """
    return eps / (1.0 + eps)


def crossing_probability(level: int, side: float) -> float:
    """Probability that a cut of ``level`` crosses, in one dimension, a cube that no cut above crosses.

    Parameters
    ----------
    level : 0 is the whole space.
    side : of the cube, at most ``2**-(level + 1)``, in a space of side 1.
    """
    return 1.0 - (1.0 - 2.0 ** (level + 1) * side) / (1.0 - 2.0**level * side)


def crossed_dimensions(d: float, p: float, q: int) -> float:
    """Probability of crossing the cuts of exactly ``q`` of ``d`` dimensions, each with probability ``p`` < 1.

    ``d`` may be a fractal dimension: the binomial coefficient is continued by the gamma function up to
    ``q = ceil(d)``, and 0 beyond.
    """
    if q > math.ceil(d):
        return 0.0
    if p == 0.0:
        return float(q == 0)
    log_ways = math.lgamma(d + 1) - math.lgamma(q + 1) - math.lgamma(d - q + 1)
    return math.exp(log_ways + q * math.log(p) + (d - q) * math.log1p(-p))


def expected_rows(n: int, d: float, side: float, levels: int, k: int, msl: int = BITS) -> NDArray[np.float64]:
    """Rows that stop at each level: equations 3.10, which for k = 0 are 3.4 and 3.5.

    Parameters
    ----------
    n : cubes.
    d : dimensions, or a fractal dimension.
    side : of the cubes, in a space of side 1; ``side * 2**levels`` must be below 1.
    levels : deepest level, mL.
    k, msl : at most k crossed dimensions are split, down to level msl.

    Returns
    -------
    (levels + 1,) float64. Its sum over ``n`` is the replication rate.
    """
    rows = np.zeros(levels + 1)
    reached = float(n)
    for level in range(levels):
        p = crossing_probability(level, side)
        k_here = k if level <= msl else 0
        split = [crossed_dimensions(d, p, q) for q in range(min(k_here, math.ceil(d)) + 1)]
        if float(d).is_integer():  # summed from the far end: 1 - sum(split) would lose what is below 1e-16
            stopping = math.fsum(crossed_dimensions(d, p, q) for q in range(len(split), int(d) + 1))
        else:
            stopping = max(0.0, 1.0 - math.fsum(split))
        rows[level] = reached * stopping
        reached *= math.fsum(2.0**q * fraction for q, fraction in enumerate(split))
    rows[levels] = reached
    return rows


def expected_comparisons(left: NDArray[np.float64], right: NDArray[np.float64], d: float) -> float:
    """Lemma 2, equation 3.3: comparisons of two tables from the rows per level, (levels + 1,) each.

    A row of level i meets the rows of level j in 1 of ``2**(d min(i, j))`` cells.
    """
    level = np.arange(len(left))
    fraction = 2.0 ** (-d * np.minimum(level[:, None], level))
    return float(left @ fraction @ right)


def expected_area(rows: NDArray[np.float64], d: float) -> float:
    """Rows on the stack at any one time, from the rows per level, (levels + 1,), of all tables: n tau.

    Of the ``2**(d l)`` cells of level l one is open. Dittrich's dissertation, section 3.6.1.2; the largest
    stack was found within a factor of 2 of it where it holds ten rows or more.
    """
    return float(rows @ 2.0 ** (-d * np.arange(len(rows))))


def expected_work(
    n: int, d: float, eps: float, k: int, msl: int = BITS, n_right: int | None = None
) -> ExpectedWork:
    """Expected rows per level and comparisons of a join of uniform points.

    Parameters
    ----------
    n : points.
    d : dimensions, above 0; a fractal dimension at your own risk, see the module.
    eps : relative to the side of the space that holds the points, above 0.
    k, msl : the split rule, see :mod:`epsjoin.local.plan.split_rules.rules`.
    n_right : points of the second table; none for one table with itself, in which each pair of different
        points is compared once for each cell in which it meets, and replicas of one point never.

    Raises
    ------
    ArgumentError
        An argument is out of its range.

    Notes
    -----
    O(levels x min(d, k) + levels**2).
    """
    for name, value, least in (("n", n, 0), ("n_right", n_right or 0, 0), ("k", k, 0), ("msl", msl, -1)):
        if value < least:
            raise ArgumentError(f"{name} must be at least {least}, not {value}")
    for name, number in (("d", d), ("eps", eps)):
        if not 0.0 < number < math.inf:
            raise ArgumentError(f"{name} must be a number above 0, not {number}")
    levels = deepest_level(1.0, eps, math.ceil(d))
    side = inner_side(eps)
    left = expected_rows(n, d, side, levels, k, msl)
    if n_right is None:
        twice = expected_comparisons(left, left, d)
        comparisons = twice * (1.0 - 1.0 / n) / 2.0 if n else 0.0
        return ExpectedWork(left, left, comparisons, expected_area(left, d))
    right = expected_rows(n_right, d, side, levels, k, msl)
    return ExpectedWork(left, right, expected_comparisons(left, right, d), expected_area(left + right, d))


def io_cost(
    method: str,
    pages: Sequence[float],
    memory: float,
    levels: NDArray[np.float64] | None = None,
    omega: float = 1.0,
) -> float:
    """Pages that a join reads and writes after it has read its input once: equations 3.11 to 3.14.

    Parameters
    ----------
    method : "msj" sorts a file per level, and writes it sorted; "gess" sorts one file per table, and its last
        merge goes straight into the join.
    pages : of each table.
    memory : pages that fit into the memory, which one sort at a time has for itself.
    levels : (levels + 1,) float64, for "msj": the share of the rows in each level file, as
        ``expected_work(1, d, eps, 0).left_rows``.
    omega : for "gess": rows that a row becomes.

    Raises
    ------
    ArgumentError
        ``method`` is neither of the two; "msj" without ``levels``; fewer than 3 pages of memory.

    Notes
    -----
    MSJ writes each level file, reads it and writes it in runs, and reads it for the join: 4 accesses a page,
    and 2 more in each merge. The 2 is missing in equation 3.11, not in the line above it nor in figure 3.8.
    GESS writes runs and reads them for the join, and a merge more is 2 accesses more: 2 for each of the
    merge passes, the last of which writes nothing. Runs are as long as the memory: replacement selection
    would make them twice as long (:func:`largest_sort`).
    """
    if memory < 3:
        raise ArgumentError(f"memory must be at least 3 pages, not {memory}: no two runs could be merged")
    if method == "gess":
        return sum(2.0 * omega * n * max(1, merge_passes(omega * n / memory, memory - 1)) for n in pages)
    if method != "msj" or levels is None:
        raise ArgumentError(f'method must be "gess" or "msj", the latter with levels, not {method!r}')
    files = [n * share for n in pages for share in levels]
    return 4.0 * sum(pages) + math.fsum(2.0 * n * merge_passes(n / memory, memory - 1) for n in files)


def largest_sort(memory: float) -> float:
    """Pages of a table that ``memory`` pages sort in one merge, beside another table: section 3.4.2.

    In the last merge a third of the memory is this table's, and its runs are, by replacement selection, twice
    as long as the memory.
    """
    return (memory / 3.0 - 1.0) * 2.0 * memory
