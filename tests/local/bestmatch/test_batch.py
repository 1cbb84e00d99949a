"""Best matches of two tables are those of the definition, however they are computed."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin import bestmatch_join
from epsjoin.params import MATCH_HOW
from oracles import bestmatch as twin
from tests.local.bestmatch.cases import KINDS, make_case, rows_of

CASES = 120
"""Cases of each kind: 720 for each ``how``."""
LONG_CASES = 2000
"""Further cases of each kind for each ``how``, in the long test."""


def assert_is_the_definition(kind, seeds):
    for seed in seeds:
        case = make_case(kind, seed)
        best = case.best()
        for how in MATCH_HOW:
            found = bestmatch_join(case.left, case.right, how=how, **case.arguments)
            expected = twin.joined(best, len(case.left), len(case.right), how)
            assert rows_of(found) == expected, (kind, seed, how)
            values = [
                [c.number(worth) for c, worth in zip(case.criteria, best.within[pair], strict=True)]
                if pair in best.within
                else [np.nan] * len(case.criteria)
                for pair in zip(found.left.tolist(), found.right.tolist(), strict=True)
            ]
            values = np.array(values).reshape(len(values), len(case.criteria))
            np.testing.assert_allclose(found.values, values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_bestmatch_join__is_the_definition(kind):
    assert_is_the_definition(kind, range(CASES))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_bestmatch_join__is_the_definition_in_2000_cases_for_each_how_and_kind(kind):
    assert_is_the_definition(kind, range(CASES, CASES + LONG_CASES))


def test_bestmatch_join__keeps_both_of_two_partners_at_one_distance():
    """Strictly better is meant of distances: by tuples, each of the two would dominate the other."""
    for how in MATCH_HOW:
        best = bestmatch_join([[0.0]], [[-1.0], [1.0]], eps=2.0, how=how)
        assert (best.left.tolist(), best.right.tolist()) == ([0, 0], [0, 1])
        best = bestmatch_join([[0.0, 0.0]], [[-1.0, 1.0], [1.0, -1.0]], eps=2.0, how=how)
        assert (best.left.tolist(), best.right.tolist()) == ([0, 0], [0, 1])
