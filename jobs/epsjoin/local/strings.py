"""Similarity joins of strings: every pair within k edits of characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.strings import Codes, fill_edits, fill_qgrams
from epsjoin.local.arguments import check_count
from epsjoin.local.groups import Groups, expand, group_equal, pairs_within
from epsjoin.local.join.arrays import iter_join, iter_self_join
from epsjoin.local.sweep.pairs import Pairs, collect
from epsjoin.local.sweep.sweeping import Counters, add_counts, check_counters, check_n_jobs

MAX_PAIRS = 10**8
"""Default maximum number of pairs."""


def string_join(
    strings: Iterable[str],
    k: int,
    other: Iterable[str] | None = None,
    *,
    q: int = 1,
    bins: int = 13,
    max_pairs: int = MAX_PAIRS,
    n_jobs: int | None = 1,
    counters: Counters | None = None,
) -> Pairs:
    """Find every pair of strings within k edits, sorted by (left, right).

    Parameters
    ----------
    strings : the strings; the left ones where there are others.
    k : maximum number of characters to insert, delete or replace, at least 0 (the Levenshtein distance).
    other : the right strings; without them, the strings are joined with themselves.
    q : length of the q-grams that are counted. The result does not depend on it, nor on ``bins``.
    bins : number of bins of the counts.
    max_pairs : maximum number of pairs in the result.
    n_jobs : number of threads that look for candidates, 1 by default; -1 is one per processor.
    counters : dictionary to whose entries the work is added: ``strings``, ``different`` (of each side),
        ``candidates`` (pairs of different strings that the counts let through), ``pairs``.

    Returns
    -------
    Pairs
        The numbers of both strings and their distance; ``left < right`` where strings are joined with
        themselves.

    Raises
    ------
    ArgumentError
        An argument has a wrong type or value.
    BudgetError
        There are more than ``max_pairs`` pairs.

    See Also
    --------
    tree_join : the same of trees.

    Notes
    -----
    Characters are code points: an é in one and in two of them are two edits apart; ``unicodedata.normalize``
    makes them equal. One edit changes the counts of q-grams by 2 q at most, so that
    :func:`epsjoin.self_join` of the counts with 2 q k in Manhattan distance finds all candidates. Each is
    compared in O(k length).

    References
    ----------
    Ukkonen, *Approximate string-matching with q-grams and maximal matches*, Theoretical Computer Science 92,
    1992: the bound.

    Examples
    --------
    >>> string_join(["Passau", "Pasau", "Padua"], k=1)
    Pairs(left=array([0]), right=array([1]), distance=array([1.]))
    """
    check_count("k", k, 0)
    check_count("q", q)
    check_count("bins", bins)
    check_count("max_pairs", max_pairs, 0)
    counted, n_threads = check_counters(counters), check_n_jobs(n_jobs)
    left = _side("strings", strings, q, bins)
    right = None if other is None else _side("other", other, q, bins)
    n_rows = len(left.groups.rows), len((right or left).groups.rows)
    for side in (left,) if right is None else (left, right):
        add_counts(counted, strings=len(side.groups.rows), different=len(side.groups.firsts))
    if right is None and left.groups.n_within > max_pairs:
        raise _too_many(left.groups.n_within, max_pairs)
    return collect(_batches(left, right, k, q, n_threads, counted, max_pairs), n_rows)


class _Side(NamedTuple):
    """Different strings.

    Parameters
    ----------
    groups : which of all strings are equal.
    starts, codes : the code points of the first string of each group.
    counts : of their q-grams.
    """

    groups: Groups
    starts: Ints
    codes: Codes
    counts: Floats


def _side(name: str, strings: Iterable[str], q: int, bins: int) -> _Side:
    given = [] if isinstance(strings, (str, bytes)) else list(strings)
    if isinstance(strings, (str, bytes)):
        raise ArgumentError(f"{name} must be a list of strings, not one {type(strings).__name__}")
    for row, text in enumerate(given):
        if not isinstance(text, str):
            raise ArgumentError(f"{name} must be strings; row {row} is {type(text).__name__}")
    numbers: dict[str, int] = {}
    groups = group_equal(np.array([numbers.setdefault(text, len(numbers)) for text in given], np.int64))
    starts = np.concatenate(([0], np.cumsum([len(text) for text in numbers]))).astype(np.int64)
    encoded = "".join(numbers).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(encoded, np.uint32) if encoded else np.empty(0, np.uint32)
    counts = np.zeros((len(numbers), bins))
    fill_qgrams(starts, codes, q, counts)
    return _Side(groups, starts, codes, counts)


def _batches(
    left: _Side, right: _Side | None, k: int, q: int, n_threads: int, counters: Counters, max_pairs: int
) -> Iterator[Pairs]:
    """Yield all pairs, those of equal strings of one side first."""
    other = right or left
    n_pairs = 0
    if right is None:
        within = pairs_within(left.groups)
        n_pairs = len(within.left)
        yield within
    eps = max(2.0 * q * k, 0.5)  # counts are whole numbers: of equal ones alone, where k is 0
    if right is None:
        candidates = iter_self_join(left.counts, eps, "manhattan", n_jobs=n_threads)
    else:
        candidates = iter_join(left.counts, right.counts, eps, "manhattan", n_jobs=n_threads)
    add_counts(counters, candidates=0)
    for batch in candidates:
        distances = np.empty(len(batch.left), np.int64)
        fill_edits(left.starts, left.codes, batch.left, other.starts, other.codes, batch.right, k, distances)
        near = distances <= k
        found = Pairs(batch.left[near], batch.right[near], distances[near].astype(np.float64))
        add_counts(counters, candidates=len(batch.left))
        n_pairs += int((left.groups.sizes[found.left] * other.groups.sizes[found.right]).sum())
        if n_pairs > max_pairs:
            raise _too_many(n_pairs, max_pairs)
        yield expand(left.groups, None if right is None else right.groups, found)
    add_counts(counters, pairs=n_pairs)


def _too_many(n_pairs: int, max_pairs: int) -> BudgetError:
    return BudgetError(
        f"there are at least {n_pairs:,} pairs, and max_pairs = {max_pairs:,}; a smaller k gives fewer, and "
        "so does leaving out all but one of strings that are equal"
    )
