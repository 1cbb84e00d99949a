"""MatWin: the window algorithm for best matches of two sorted streams, line by line as it was printed.

Source: Kemper, Stegmaier: Evaluating Bestmatch-Joins on Streaming Data, MIP-0204, 2002: algorithm 2, with the
reading of algorithm 3 and without pages, and algorithm 1. The numbers in comments are those of its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

Number = float | Fraction
Row = Sequence[Number]
Pair = tuple[int, int]


class EndlessError(Exception):
    """The windows stand still: the next step would be the last one again."""


class Step(NamedTuple):
    """What one step of the windows gave.

    Parameters
    ----------
    read_left, read_right : rows read so far.
    done : the pairs that left the buffer, by row numbers.
    """

    read_left: int
    read_right: int
    done: list[Pair]


def values_of(left: Row, right: Row) -> list[Number]:
    return [abs(a - b) for a, b in zip(left, right, strict=True)]


def is_within(left: Row, right: Row, eps: Row) -> bool:
    return all(value <= limit for value, limit in zip(values_of(left, right), eps, strict=True))


def dominates(better: list[Number], worse: list[Number]) -> bool:
    """At most as far in all criteria, and nearer in one; the paper compares rows, not distances."""
    return all(a <= b for a, b in zip(better, worse, strict=True)) and better != worse


def nested_loops(left: Sequence[Row], right: Sequence[Row], eps: Row) -> set[Pair]:
    """Algorithm 1 of the paper, for pairs within eps only."""
    best = set()
    for i, r in enumerate(left):
        near = [j for j, s in enumerate(right) if is_within(r, s, eps)]
        for j in near:
            if not any(dominates(values_of(r, right[k]), values_of(r, right[j])) for k in near):
                best.add((i, j))
    return best


def matwin(left: Sequence[Row], right: Sequence[Row], eps: Row, *, mended: bool = True) -> Iterator[Step]:
    """Algorithm 2 of the paper, step by step.

    Parameters
    ----------
    left, right : rows, ascending by column 0.
    eps : one threshold per column.
    mended : compute in fractions, in which ``(v - eps) + eps`` is v; know the first step by a flag of its own
        instead of ``oldMaxRS = 0``; let windows begin below 0, and a stream be empty. Without, everything
        stands as it was printed.

    Raises
    ------
    EndlessError
        Not mended: rounding has put the upper bound below the next row, which is then never read.
    """
    if mended:
        left, right = ([[Fraction(value) for value in row] for row in rows] for rows in (left, right))
        eps = [Fraction(value) for value in eps]
        if not left:
            return
    found: dict[int, list[int]] = {}  # O, by left row
    is_fresh, old_max = True, 0.0
    window_left: list[int] = []
    window_right: list[int] = []
    r = s = 0  # 4: the next rows to read
    low = left[0][0] - eps[0]
    if not mended:
        low = max(0.0, low)  # 5
    high = low + eps[0]

    def update(lefts: list[int], rights: list[int]) -> None:
        for i in lefts:
            for j in rights:
                if is_within(left[i], right[j], eps):
                    value = values_of(left[i], right[j])
                    others = found.setdefault(i, [])
                    if not any(dominates(values_of(left[i], right[k]), value) for k in others):
                        others[:] = [k for k in others if not dominates(value, values_of(left[i], right[k]))]
                        others.append(j)

    def take(is_done: set[int]) -> list[Pair]:
        return [(i, j) for i in sorted(is_done) for j in sorted(found.pop(i))]

    while r < len(left) or window_left:  # 8
        was = (r, s, low, high, len(window_left))
        new_left: list[int] = []
        new_right: list[int] = []
        while r < len(left) and left[r][0] <= high:  # 9, algorithm 3
            new_left.append(r)
            r += 1
        while s < len(right) and right[s][0] <= high:
            if right[s][0] >= low:
                new_right.append(s)
            s += 1
        if is_fresh if mended else old_max == 0:  # 10
            update(window_left + new_left, window_right + new_right)
        else:
            update(window_left, new_right)  # 13
            update(new_left, window_right + new_right)  # 14
        window_left += new_left
        window_right += new_right
        is_fresh, old_max = False, float(high)  # 17
        window_left = [i for i in window_left if left[i][0] != low]  # 18
        if r == len(left) and not window_left:  # 19
            break
        if r == len(left):
            low = min(left[i][0] for i in window_left)  # 22
        elif window_left:
            low = min(*(left[i][0] for i in window_left), left[r][0] - eps[0])  # 24
        else:
            low = left[r][0] - eps[0]  # 26
            is_fresh, old_max = True, 0.0
        high = low + eps[0]  # 29
        window_right = [j for j in window_right if right[j][0] >= low]  # 30
        yield Step(r, s, take({i for i in found if left[i][0] < low}))  # 31
        if was == (r, s, low, high, len(window_left)):
            raise EndlessError(f"the window is [{low}, {high}], and the next row is at {left[r][0]}")
    yield Step(r, s, take(set(found)))  # 33
