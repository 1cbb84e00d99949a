"""Rows of many dimensions for tests of products, and filter rows that no planner would choose."""

from __future__ import annotations

import numpy as np

from epsjoin.local.metric import get_metric
from epsjoin.local.product.rows import FilterSpace, embed

KINDS = ("noise", "lattice", "few", "clusters", "far", "tiny", "denormal", "scaled")


def awkward_rows(kind, n, d, seed):
    """Rows of many dimensions that are hard on a filter."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((n, d))
    if kind == "lattice":  # many distances are equal
        rows = random.integers(-1, 2, (n, d)).astype(float)
    elif kind == "few":  # rows that are equal, and rows of zeros
        rows = rows[random.integers(0, min(n, 3), n)] * random.integers(0, 3, (n, 1))
    elif kind == "clusters":  # distances that are small beside the lengths
        rows = 1e3 * rows[random.integers(0, min(n, 3), n)] + random.standard_normal((n, d))
    elif kind == "far":  # the squares of some do not fit into float32
        rows[: n // 3] *= 10.0 ** random.uniform(0, 25, (n // 3, 1))
    elif kind == "tiny":
        rows *= 1e-30
    elif kind == "denormal":
        rows *= 1e-40
    elif kind == "scaled":  # rows of few directions, whose cosines are 1 but for rounding
        rows = rows[random.integers(0, min(n, 5), n)] * 10.0 ** random.uniform(-8, 8, (n, 1))
    return rows


def any_space(rows, metric, m, seed):
    """Filter rows that no planner would choose: any centre, a radius that some rows exceed, any axes."""
    random = np.random.default_rng(seed)
    embedded = embed(rows, get_metric(metric))
    centre = embedded[0] * random.integers(0, 2)
    length = np.sort(np.linalg.norm(embedded - centre, axis=1))[random.integers(len(rows) // 2, len(rows))]
    axes = (
        np.linalg.qr(random.standard_normal((rows.shape[1], m)))[0].T if m else np.empty((0, rows.shape[1]))
    )
    return FilterSpace(centre, 2.0 ** np.ceil(np.log2(max(length, 1e-60))), np.ascontiguousarray(axes))


def features(n, d=96, latent=8, seed=0):
    """Rows that lie near a surface of few dimensions."""
    random = np.random.default_rng(seed)
    inner = random.standard_normal((n, latent)) @ random.standard_normal((latent, 64))
    return (np.tanh(inner) @ random.standard_normal((64, d))).astype(np.float32)


def uniform(n, d):
    """Rows without structure."""
    return np.random.default_rng(d).random((n, d))


def in_groups(n, d):
    """Rows near fifty others."""
    random = np.random.default_rng(d)
    return random.random((50, d))[random.integers(50, size=n)] + random.normal(0, 0.05, (n, d))
