"""Cubes in fixed point and the Z-order codes of cells.

A *code* is one row of ``w`` bytes: the bits of the path from the root, ``d`` bits per level in the order of
the axes, padded with zeros, then the number of bits as two bytes, big end first. Compared byte by byte such
rows sort in Z-order with every prefix before its extensions: where two codes differ within the bits of the
shorter one, that bit decides; otherwise the padding decides (zeros are never larger than the longer one's
bits), and between equal bits the length does. A code may end inside a level: its cell is then halved in the
first axes and not yet in the others. Nothing here needs whole levels: the number of bits says where a code
ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bools, Bytes, Floats, Ints
from epsjoin.kernels.sorting import FEW, lexsort

BITS = 62
"""Number of bits of a fixed-point coordinate, a positive int64: numba and NumPy make no float of it."""
TOP = (1 << BITS) - 1
"""Largest fixed-point coordinate."""
MAX_CODE_BITS = 0xFFFE
"""Maximum number of bits of a code: two bytes hold it, and one value that no code has ends a key range."""
_ROUNDING = 2.0**-50
"""Relative slack of a rounded sum: more than 2 ulp of the sum itself."""


def code_width(n_bits: int) -> int:
    """Bytes of a code with room for ``n_bits`` bits."""
    return (n_bits + 7) // 8 + 2


def deepest_level(width: float, eps: float, d: int) -> int:
    """Compute the last level at which a cell is at least eps wide.

    Parameters
    ----------
    width : largest side of the space; 0 when all points are equal.
    eps : side of a cube, in the same unit.
    d : dimensions of a code; a code has at most ``MAX_CODE_BITS`` bits, which may end the levels earlier.
    """
    level = 0
    side = width / 2.0
    while side >= eps and level < BITS and (level + 1) * d <= MAX_CODE_BITS:
        level += 1
        side /= 2.0
    return level


@njit
def cube_lower(x: float, half: float) -> float:
    """Compute a float64 that is never above ``x - half``, nor far below it; monotone in x.

    The rounded difference is off by half an ulp of itself at most; twice that is taken off.
    """
    value = x - half
    return value - abs(value) * _ROUNDING


@njit
def cube_upper(x: float, half: float) -> float:
    """Compute a float64 that is never below ``x + half``, nor far above it; monotone in x."""
    value = x + half
    return value + abs(value) * _ROUNDING


@njit
def to_fixed(value: float, low: float, scale: float) -> int:
    """Fixed-point coordinate of ``value``, clamped to 0 .. 2**BITS - 1; monotone in ``value``."""
    scaled = (value - low) * scale
    if not scaled > 0.0:
        return 0
    if scaled >= 4.611686018427388e18:  # 2**62
        return TOP
    return int(scaled)


@njit
def cube_corners(embedded: Floats, axes: Ints, low: Floats, width: float, eps: float) -> tuple[Ints, Ints]:
    """Lower and upper corners of the cubes H(x), side eps, centred on x, in fixed point.

    Parameters
    ----------
    embedded : (n, d) float64; not modified.
    axes : (a,) int64, the axes that are coded, in code order.
    low : (d,) float64, lower corner of the space.
    width : largest side of the space; every axis is scaled by it, so that eps keeps its meaning.
    eps : side of a cube in embedded coordinates.

    Returns
    -------
    lower, upper : (n, a) int64, unit ``width * 2**-BITS``, within 0 .. 2**BITS - 1.

    Notes
    -----
    For any two points with ``|x_i - y_i| <= eps``: ``upper(x)_i >= lower(y)_i``. In float64 the corners
    lie outside the exact cube, whatever the size of the values; from there on only monotone steps
    follow (subtract, scale, truncate, clamp), which keep ``>=``. So clamping is exact as well: points
    outside the space behave as if the outermost cells reached to infinity, and two cubes that meet
    still meet after it; cubes that meet only after it are separated by the metric.

    Fixed point instead of the floats' own bits follows Dittrich's dissertation, sections 3.5 and 5.3.4.1.
    """
    n = embedded.shape[0]
    n_axes = axes.shape[0]
    lower = np.empty((n, n_axes), np.int64)
    upper = np.empty((n, n_axes), np.int64)
    half = eps / 2.0
    scale = 4.611686018427388e18 / width if width > 0.0 else 0.0
    for row in range(n):
        for j in range(n_axes):
            x = embedded[row, axes[j]]
            lower[row, j] = to_fixed(cube_lower(x, half), low[axes[j]], scale)
            upper[row, j] = to_fixed(cube_upper(x, half), low[axes[j]], scale)
    return lower, upper


@njit
def write_code(corner: Ints, level: int, code: Bytes, n_more: int) -> None:
    """Write the code of the cell of this level that holds a point.

    Parameters
    ----------
    corner : (a,) int64, the point in fixed point.
    level : 0 is the whole space.
    code : (w,) uint8, overwritten.
    n_more : axes, from the first on, in which the cell is halved once more; less than a.
    """
    n_axes = corner.shape[0]
    width = code.shape[0]
    for byte in range(width):
        code[byte] = 0
    position = 0
    for depth in range(level + 1):
        shift = BITS - 1 - depth
        for j in range(n_axes if depth < level else n_more):
            if (corner[j] >> shift) & 1:
                code[position >> 3] |= np.uint8(128 >> (position & 7))
            position += 1
    code[width - 2] = np.uint8(position >> 8)
    code[width - 1] = np.uint8(position & 255)


@njit
def code_bits(code: Bytes) -> int:
    """Count the bits of a code, 0 for the whole space."""
    width = code.shape[0]
    return int((np.int64(code[width - 2]) << 8) | np.int64(code[width - 1]))


@njit
def is_prefix(short: Bytes, long: Bytes) -> bool:
    """Whether the first code is a prefix of the second, that is, its cell holds the other's; also if equal.

    O(bytes), no allocation.
    """
    bits = code_bits(short)
    if bits > code_bits(long):
        return False
    whole = bits >> 3
    for byte in range(whole):
        if short[byte] != long[byte]:
            return False
    rest = bits & 7
    if rest == 0:
        return True
    shift = 8 - rest
    is_same: bool = (np.int64(short[whole]) >> shift) == (np.int64(long[whole]) >> shift)
    return is_same


@njit
def owns_pair(code: Bytes, lower_x: Ints, lower_y: Ints) -> bool:
    """Whether the cell of ``code`` holds the reference point ``max(lower_x, lower_y)`` of a pair.

    Parameters
    ----------
    code : (w,) uint8, the longer of the two rows' codes; the shorter one is its prefix.
    lower_x, lower_y : (a,) int64, fixed point, lower corners of both whole cubes; not modified.

    Notes
    -----
    O(bits), no allocation. With the shorter code a pair would be reported more than once: see
    ``test_stack_sweep__uses_the_longer_code``.

    References
    ----------
    Dittrich, Seeger, KDD 2001, pp. 47-56: reference point method. Dittrich's dissertation, definition 9.
    """
    n_axes = lower_x.shape[0]
    bits = code_bits(code)
    position = 0
    shift = BITS - 1
    while position < bits:
        for j in range(min(n_axes, bits - position)):
            reference = max(lower_x[j], lower_y[j])
            if ((reference >> shift) & 1) != ((np.int64(code[position >> 3]) >> (7 - (position & 7))) & 1):
                return False
            position += 1
        shift -= 1
    return True


@njit
def hold_cubes(codes: Bytes, lower: Ints, upper: Ints) -> Bools:
    """Whether each row's cell holds its whole cube; if not, the row is a replica.

    Parameters
    ----------
    codes : (n, w) uint8; lower, upper : (n, a) int64, corners of the whole cubes. Not modified.

    Returns
    -------
    (n,) bool. The row alone tells this: a cube that was split has disjoint cells, none of which holds it, and
    a cube that was not split lies in its cell.
    """
    held = np.empty(codes.shape[0], np.bool_)
    for row in range(codes.shape[0]):
        held[row] = owns_pair(codes[row], lower[row], lower[row]) and owns_pair(
            codes[row], upper[row], upper[row]
        )
    return held


def as_keys(codes: Bytes) -> NDArray[np.bytes_]:
    """View the codes as one sortable NumPy column, without a copy when the rows are contiguous.

    NumPy drops trailing zero bytes when it hands out one element as ``bytes``. Within an array all
    keys have the same width and are compared over the whole of it, so nothing is lost here.
    """
    n, width = codes.shape
    return np.ascontiguousarray(codes).view(f"S{width}").reshape(n)


def code_order(codes: Bytes) -> Ints:
    """Stable order of the codes: Z-order, a prefix before its extensions. O(n) for each 8 bytes of a code."""
    n, width = codes.shape
    if n < FEW:
        return np.argsort(as_keys(codes), kind="stable").astype(np.int64, copy=False)
    padded = np.zeros((n, -(-width // 8) * 8), np.uint8)
    padded[:, :width] = codes
    return lexsort(list(padded.view(">u8").astype(np.uint64).T[::-1]))


@njit
def range_ends(codes: Bytes) -> Bytes:
    """Compute the end of each code's key range: the code followed by ones, not below any of its extensions.

    Parameters
    ----------
    codes : (n, w) uint8; not modified.

    Returns
    -------
    (n, w) uint8; keys, not codes: their length is one that no code has.
    """
    n, width = codes.shape
    ends = codes.copy()
    for row in range(n):
        bits = code_bits(codes[row])
        byte = bits >> 3
        if bits & 7:
            ends[row, byte] |= np.uint8((1 << (8 - (bits & 7))) - 1)
            byte += 1
        while byte < width:
            ends[row, byte] = 255
            byte += 1
    return ends
