"""Choose the split rule and the borders of parts of regular cuts, those of the papers, on a sample."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Bytes, Floats
from epsjoin.kernels.codes import as_keys, code_order
from epsjoin.kernels.plan.regular import carry
from epsjoin.kernels.sweep.stack_sweep import stack_comparisons
from epsjoin.local.plan.costs import STACK_NS_PER_COMPARISON, STACK_NS_PER_ROW, max_sample_rows
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.split_rules.encode import Space, encode
from epsjoin.local.plan.split_rules.rules import SplitRule, make_split_rule

_TRIED_K = range(6)
"""Values of k that are tried."""
_TRIED_MSL = range(5)
"""Values of msl that are tried, together with the deepest level."""
_MAX_SAMPLE_ROWS = 5000
"""Maximum number of rows on which some thirty rules are tried: it takes tenths of a second."""
_MAX_ROWS_PER_CUBE = 32
"""Maximum number of rows of a cube under a chosen rule: trying it is cheap even with an infinite budget."""


def cut(codes: Bytes, n_parts: int, scale: float) -> tuple[Bytes, float, float]:
    """Choose boundaries; return them, the sample's rows in all parts, with carried ones, and comparisons."""
    row_cost, candidate_cost = STACK_NS_PER_ROW * scale, STACK_NS_PER_COMPARISON * scale * scale
    boundaries, compared = choose_boundaries(codes, n_parts, row_cost, candidate_cost)
    return boundaries, float(len(carry(codes, boundaries).coded)), compared


def choose_rule(embedded: Floats, space: Space, cuts: Cuts, n_rows: int) -> tuple[SplitRule, int]:
    """Choose k and msl where they are None, and the parts to aim at.

    Every rule is tried on some rows of the sample, the one with the least work is taken: 250 ns per row,
    carried ones included, and 2.5 ns per comparison; ties go to the smaller k, then to the smaller msl. A
    rule with more rows than the budget allows is none; where all have more, half the parts are tried: in
    one part nothing is carried, and k = 0 makes one row per point.
    """
    tried_rows = embedded
    if len(tried_rows) > _MAX_SAMPLE_ROWS:
        some = np.random.default_rng(cuts.seed).choice(len(tried_rows), _MAX_SAMPLE_ROWS, replace=False)
        tried_rows = tried_rows[np.sort(some)]
    m = len(tried_rows)
    scale = n_rows / m if m else 0.0
    deepest = max(space.levels - 1, 0)
    all_k = [k for k in _TRIED_K if k <= len(space.axes)] if cuts.k is None else [cuts.k]
    all_msl = sorted({*(msl for msl in _TRIED_MSL if msl < deepest), deepest})
    coded = []
    for k in all_k:
        tried = all_msl[: 1 if k == 0 else None] if cuts.msl is None else [cuts.msl]
        for msl in tried:
            rule = make_split_rule(k, msl, min(cuts.replication_budget, _MAX_ROWS_PER_CUBE))
            coded.append((rule, encode(tried_rows, space, rule).codes))
    allowed_rows = max_sample_rows(m, cuts.replication_budget)
    n_parts = cuts.n_parts
    while True:
        allowed: list[tuple[float, int]] = []
        for number, (_, codes) in enumerate(coded):
            _, rows, compared = cut(codes, n_parts, scale)
            if rows <= allowed_rows:
                work = STACK_NS_PER_ROW * rows * scale + STACK_NS_PER_COMPARISON * compared * scale * scale
                allowed.append((work, number))
        # where none is allowed, there are always too many rows with this k, under the first rule the fewest
        if allowed or n_parts == 1:
            return coded[min(allowed, default=(0.0, 0))[1]][0], n_parts
        n_parts //= 2


def choose_boundaries(
    codes: Bytes, n_parts: int, row_cost: float, candidate_cost: float
) -> tuple[Bytes, float]:
    """Choose part boundaries of equal work among the codes of a sample.

    Parameters
    ----------
    codes : (m, w) uint8, in any order; not modified.
    n_parts : parts to aim at; equal codes are never divided, so there may be fewer.
    row_cost, candidate_cost : cost of a row and of a comparison on the stack, in any one unit.

    Returns
    -------
    boundaries : (parts - 1, w) uint8, ascending, distinct, each a code of the sample.
    compared : comparisons on the stack in all parts.
    """
    width = codes.shape[1]
    ordered = codes[code_order(codes)]
    compared = stack_comparisons(ordered)
    boundaries = np.empty((0, width), np.uint8)
    if n_parts > 1 and len(ordered) > 1:
        work = np.cumsum(row_cost + candidate_cost * compared)
        places = np.searchsorted(work, work[-1] * np.arange(1, n_parts) / n_parts)
        keys = np.unique(as_keys(ordered[places]))
        keys = keys[keys > as_keys(ordered)[0]]  # part 0 keeps the first row
        boundaries = keys.view(np.uint8).reshape(len(keys), width)
    return boundaries, float(compared.sum())
