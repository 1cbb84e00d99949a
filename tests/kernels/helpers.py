"""Codes, trees and assigned rows, as the tests of several kernels make and read them."""

from __future__ import annotations

import itertools

import numpy as np

from epsjoin.local.plan.tree.cut_tree import make_tree


def make_code(bits: str, width: int):
    code = np.zeros(width, np.uint8)
    packed = np.packbits(np.array([int(b) for b in bits], np.uint8))
    code[: len(packed)] = packed
    code[-2:] = divmod(len(bits), 256)
    return code


def random_tree(random, n_cuts, leaf_axis, draw_cut):
    """A tree of any cuts, each an axis and a position that ``draw_cut`` returns."""
    axis, position, left, right = [leaf_axis], [0.0], [-1], [-1]
    for _ in range(n_cuts):
        node = int(random.choice([i for i, child in enumerate(left) if child < 0]))
        axis[node], position[node] = draw_cut()
        left[node], right[node] = len(axis), len(axis) + 1
        for column, empty in ((axis, leaf_axis), (position, 0.0), (left, -1), (right, -1)):
            column += [empty, empty]
    return make_tree(axis, position, left, right)


def axes_of_bits(tree):
    """The axis that each bit of a mask stands for."""
    return {b: a for a, b in zip(tree.axis.tolist(), tree.bit.tolist(), strict=True) if b}


def assigned_parts(rows, number, axis_of_bit):
    """The parts of one object, each with the axes in its mask."""
    here = rows.row == number
    below = [
        frozenset(axis for bit, axis in axis_of_bit.items() if mask >> bit & 1)
        for mask in rows.mask[here].tolist()
    ]
    return list(zip(rows.part[here].tolist(), below, strict=True))


def reporting_parts(rows, n):
    """For every two of n objects, the parts that report them."""
    by_row = [
        dict(zip(rows.part[rows.row == i].tolist(), rows.mask[rows.row == i].tolist(), strict=True))
        for i in range(n)
    ]
    for i, j in itertools.combinations(range(n), 2):
        common = by_row[i].keys() & by_row[j].keys()
        yield i, j, [part for part in common if not by_row[i][part] & by_row[j][part]]
