"""Few axes let through no fewer pairs than is said before any are looked for."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin.local.plan.separation import separate


@pytest.mark.parametrize("latent", [4, 64])
@pytest.mark.parametrize("are_turned", [False, True])
def test_separation__is_no_more_than_what_the_best_axes_let_through(latent, are_turned):
    random = np.random.default_rng(latent)
    rows = random.standard_normal((1000, latent)) @ random.standard_normal((latent, 64)) / np.sqrt(latent)
    left, right = rows[:500], rows[500:]
    differences = left - right
    axes = np.eye(64)[np.argsort(-np.square(differences).mean(axis=0))]
    if are_turned:
        axes = np.linalg.eigh(differences.T @ differences)[1].T[::-1]
    for eps in (4.0, 8.0, 12.0):
        separation = separate(left, right, eps)
        for m in (2, 8, 32):
            passed = np.mean(np.square(differences @ axes[:m].T).sum(axis=1) <= eps**2)
            assert separation.passing(m, are_turned=are_turned) <= passed
    assert separate(left, right, 12.0).passing(2, are_turned=are_turned) > 0.3


def test_separation__of_rows_that_overflow_is_unknown():
    rows = np.full((4, 32), 1e300)
    rows[::2] *= -1.0
    separation = separate(rows[:2], rows[1:3], 1.0)
    assert [separation.passing(8, are_turned=turned) for turned in (False, True)] == [0.0, 0.0]
    assert separate(rows[:1], rows[1:2], 1e301).passing(8, are_turned=True) == 0.0, "of one pair, too"
