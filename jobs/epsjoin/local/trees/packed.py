"""Trees as bytes, one value each, for tables and shuffles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsjoin.errors import DataRefusedError
from epsjoin.local.trees.trees import Trees

NODE_BYTES = 13
"""Bytes of a node: its label's hash (8), the size of its subtree (4), and whether it is a list (1)."""


def pack(trees: Trees) -> list[bytes]:
    """Pack each tree by itself: all hashes, then all sizes, then all marks of lists, little-endian.

    The texts of the labels are left out.
    """
    assert trees.is_list is not None  # noqa: S101  # every Trees has set it
    labels, sizes = trees.label.astype("<u8"), trees.size.astype("<u4")
    marks = trees.is_list.astype(np.uint8)
    packed = []
    for begin, end in zip(trees.starts[:-1].tolist(), trees.starts[1:].tolist(), strict=True):
        packed.append(b"".join(column[begin:end].tobytes() for column in (labels, sizes, marks)))
    return packed


def unpack(packed: Sequence[bytes]) -> Trees:
    """Read packed trees, without the texts of their labels.

    Raises
    ------
    DataRefusedError
        A value is not a packed tree.
    ArgumentError
        Its sizes are not those of a tree.
    """
    lengths = np.array([len(each) for each in packed], np.int64)
    if (lengths % NODE_BYTES).any() or not lengths.all():
        first = int(np.flatnonzero((lengths % NODE_BYTES != 0) | (lengths == 0))[0])
        raise DataRefusedError(
            f"value {first} has {lengths[first]} bytes; a packed tree has {NODE_BYTES} for each of its nodes"
        )
    nodes = lengths // NODE_BYTES
    starts = np.concatenate(([0], np.cumsum(nodes)))
    label, size = np.empty(starts[-1], np.uint64), np.empty(starts[-1], np.int64)
    is_list = np.empty(starts[-1], np.bool_)
    for each, n, begin in zip(packed, nodes.tolist(), starts.tolist(), strict=False):
        label[begin : begin + n] = np.frombuffer(each, "<u8", n)
        size[begin : begin + n] = np.frombuffer(each, "<u4", n, 8 * n)
        is_list[begin : begin + n] = np.frombuffer(each, np.uint8, n, 12 * n) != 0
    return Trees(starts, label, size, is_list)
