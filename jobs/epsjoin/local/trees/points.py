"""Documents as the pipeline stores and compares them: packed trees, points that bound, and their places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsjoin.kernels.arrays import Floats
from epsjoin.kernels.trees.shape import Labels
from epsjoin.local.trees.packed import pack, unpack
from epsjoin.local.trees.prepared import BINS, check_options, prepare, root_digests
from epsjoin.local.trees.trees import Trees

OPTIONS = check_options(ordered=False, relabel=1, insert=1, bins=BINS)
"""How the pipeline compares documents: the children of a node are a set, every edit costs 1."""

CHUNK = 1 << 10
"""Number of documents that are prepared at a time, however many a batch has."""


def to_points(texts: Sequence[str]) -> tuple[list[bytes], Floats]:
    """Read JSON documents.

    Returns
    -------
    Packed trees, and (n, 48) float64: half of the histograms of each tree. The Manhattan distance of two
    points is at most the number of edits between the trees (Kailing et al. 2004, section 4; here as one sum).
    Halves of whole numbers are exact in float64, and so are their sums.
    """
    packed: list[bytes] = []
    points = [np.empty((0, sum(BINS)))]
    for begin in range(0, len(texts), CHUNK):
        trees = Trees.from_json(texts[begin : begin + CHUNK])
        packed += pack(trees)
        points.append(prepare(trees, OPTIONS).points(OPTIONS.costs) / 2)
    return packed, np.concatenate(points)


def find_places(packed: Sequence[bytes]) -> Labels:
    """Return (n,) uint64, equal for documents without an edit between them, whatever their keys' order."""
    return root_digests(unpack(packed), OPTIONS) if len(packed) else np.empty(0, np.uint64)
