"""The planner of joins by products: how many axes, and what it expects to be let through."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin.local.metric import get_metric
from epsjoin.local.plan import product
from epsjoin.local.plan.product import ProductSample, has_products, plan_product
from epsjoin.local.scale import scale_metric

PAIRS, ROWS = 5e9, 100_000


def plan(rows, eps, metric="euclidean"):
    sample = ProductSample(rows[:200], rows[200:400], rows[400:])
    return plan_product(sample, PAIRS, ROWS, eps, get_metric(metric))


def surface(d, latent, seed=0):
    random = np.random.default_rng(seed)
    return random.standard_normal((800, latent)) @ random.standard_normal((latent, d))


def test_plan_product__takes_as_many_axes_as_the_data_fills():
    rows = surface(200, 20) + 1e-3 * np.random.default_rng(1).standard_normal((800, 200))
    near = plan(rows, 20.0)
    assert len(near.space.axes) <= 24
    within = np.linalg.svd(near.space.axes @ np.linalg.qr(rows[:20].T)[0])[1]
    assert within[: min(20, len(within))].min() > 0.99, "they are principal axes"


def test_plan_product__takes_all_coordinates_where_there_is_no_structure():
    rows = np.random.default_rng(2).standard_normal((800, 64))
    assert len(plan(rows, 10.5).space.axes) == 0
    assert 0 < len(plan(rows, 4.0).space.axes) < 32, "a few coordinates tell rows apart where eps is small"


def test_plan_product__looks_for_no_axes_where_few_cannot_tell_rows_apart(monkeypatch):
    monkeypatch.setattr(product, "_principal_axes", refuse)
    monkeypatch.setattr(product, "_by_variance", refuse)
    rows = np.random.default_rng(2).standard_normal((800, 384))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert len(plan(rows, 0.82, "cosine").space.axes) == 0
    with pytest.raises(AssertionError, match="looked for"):
        plan(rows, 0.3, "cosine")


def refuse(*_):
    raise AssertionError("axes were looked for")


def test_plan_product__is_not_deceived_by_axes_of_the_rows_they_are_tried_on():
    # 400 rows of 384 dimensions have principal axes, though these are those of chance
    rows = np.random.default_rng(3).standard_normal((800, 384))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    planned = plan(rows, 0.3, "cosine")
    assert planned.survivors < 1e-3 * PAIRS
    assert len(planned.space.axes) > 128, "more than there are principal axes"


def test_plan_product__expects_the_survivors_that_come():
    rows = surface(64, 12, 3)
    planned = plan(rows, 20.0)
    distances = np.linalg.norm(rows[:400, None] - rows[400:], axis=2)
    pairs = PAIRS * np.mean(distances <= 20.0)
    assert 0.99 * pairs <= planned.survivors <= 4.0 * pairs


def test_has_products__is_said_of_euclid_and_cosine_without_weights():
    points = np.ones((3, 40))
    names = ("euclidean", "cosine", "manhattan", "chebyshev", "haversine")
    assert [name for name in names if has_products(get_metric(name))] == ["euclidean", "cosine"]
    assert not has_products(scale_metric(get_metric("euclidean"), points, 1.0, np.ones(40))[0])


@pytest.mark.filterwarnings("error")
def test_plan_product__of_coordinates_whose_sums_overflow_warns_of_nothing():
    rows = np.full((4, 32), 1.7e308)
    assert (
        plan_product(ProductSample(rows, rows, rows), 6.0, 4, 1.0, get_metric("euclidean")).survivors == 6.0
    )
