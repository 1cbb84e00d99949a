"""Pairs as the rows of a sparse matrix (CSR): columns rise in each row, each pair stands at both its ends."""

from __future__ import annotations

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.pairs.sort_pairs import RowNumbers


@njit
def count_lower_upper(left: RowNumbers, right: RowNumbers, lower: Ints, upper: Ints) -> None:
    """Add to each row how many pairs it has with smaller rows, and how many with larger ones.

    Parameters
    ----------
    left, right : (m,) row numbers, ``left < right``.
    lower, upper : (n,) int64; modified.
    """
    for i in range(left.size):
        upper[left[i]] += 1
        lower[right[i]] += 1


@njit
def fill_both_ends(
    left: RowNumbers,
    right: RowNumbers,
    values: Floats,
    lower: Ints,
    upper: Ints,
    columns: RowNumbers,
    entries: Floats,
) -> None:
    """Write each pair to the rows of both its ends.

    Parameters
    ----------
    left, right : (m,) row numbers, sorted by (left, right), ``left < right``.
    values : (m,) float64, the entries of the matrix; (0,) where nobody asks for them.
    lower, upper : (n,) int64, for each row the next place of a smaller and of a larger column; modified.
    columns, entries : (2 m,) the result; modified.

    Notes
    -----
    O(m). Pairs come by rising left row, so the smaller columns of a row rise; its larger columns rise because
    the pairs of one left row come by rising right row.
    """
    has_values = values.size > 0
    for i in range(left.size):
        row = left[i]
        column = right[i]
        place = upper[row]
        mirrored = lower[column]
        upper[row] = place + 1
        lower[column] = mirrored + 1
        columns[place] = column
        columns[mirrored] = row
        if has_values:
            entries[place] = values[i]
            entries[mirrored] = values[i]
