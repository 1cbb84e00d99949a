"""Similarity joins of strings: every pair within k edits of characters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.strings import Codes, fill_edits, fill_qgrams
from epsjoin.local.arguments import MAX_BINS, are_several, check_count
from epsjoin.local.edit_join import MAX_PAIRS, EditJoin
from epsjoin.local.groups import Groups, count_equal, group_equal
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Counters, add_counts

Q, BINS = 1, 13
"""Default length of the q-grams that are counted, and number of bins of the counts."""


def string_join(
    strings: Iterable[str],
    k: int,
    other: Iterable[str] | None = None,
    *,
    q: int = Q,
    bins: int = BINS,
    max_pairs: int = MAX_PAIRS,
    n_jobs: int | None = 1,
    counters: Counters | None = None,
) -> Pairs:
    """Find every pair of strings within k edits, sorted by (left, right).

    Parameters
    ----------
    strings : the strings; the left ones if ``other`` is given.
    k : maximum number of characters to insert, delete or replace, at least 0 (the Levenshtein distance).
    other : the right strings; without them, the strings are joined with themselves.
    q : length of the q-grams that are counted. The result does not depend on it, nor on ``bins``.
    bins : number of bins of the counts, 65,536 at most.
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
    Characters are code points: an é of one code point and an é of two are two edits apart;
    ``unicodedata.normalize`` makes them equal. One edit changes the counts of q-grams by 2 q at most, so that
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
    join = EditJoin.check("strings", k, max_pairs, n_jobs, counters)
    check_count("q", q)
    check_count("bins", bins, most=MAX_BINS)
    numbers: dict[str, int] = {}
    left = _group("strings", strings, numbers)
    right = None if other is None else _group("other", other, numbers)
    for side in (left,) if right is None else (left, right):
        add_counts(join.counters, strings=len(side.groups.rows), different=len(side.groups.firsts))
    right_groups = None if right is None else right.groups
    join.refuse_more(count_equal(left.groups, right_groups))
    add_counts(join.counters, candidates=0)
    texts = left.firsts, (right or left).firsts
    join = join._replace(k=min(join.k, _longest(*texts)))  # no two strings are farther apart

    def compare(candidates: Iterator[Pairs]) -> Iterator[Pairs]:
        for batch in candidates:
            distances = edits_within(texts[0], batch.left, texts[1], batch.right, join.k)
            add_counts(join.counters, candidates=int(np.count_nonzero(distances)))
            near = (distances > 0) & (distances <= join.k)
            yield Pairs(batch.left[near], batch.right[near], distances[near].astype(np.float64))

    points = texts[0].counts(q, bins), texts[1].counts(q, bins)
    return join.find(left.groups, right_groups, points, 2 * q, compare)


class Texts(NamedTuple):
    """Strings as code points; made by :func:`encode`.

    Parameters
    ----------
    starts : (n + 1,) int64, where each string begins in ``codes``.
    codes : (characters,) uint32, the code points of all strings.
    """

    starts: Ints
    codes: Codes

    def counts(self, q: int, bins: int) -> Floats:
        """Return (n, bins) float64, how many of the q-grams of each string fall into each bin."""
        counted = np.zeros((len(self.starts) - 1, bins))
        fill_qgrams(self.starts, self.codes, q, counted)
        return counted


def encode(strings: Collection[str]) -> Texts:
    """Turn strings into code points; halves of surrogate pairs are characters as others are."""
    starts = np.concatenate(([0], np.cumsum([len(text) for text in strings]))).astype(np.int64)
    encoded = "".join(strings).encode("utf-32-le", "surrogatepass")
    return Texts(starts, np.frombuffer(encoded, np.uint32))


def edits_within(left: Texts, i: Ints, right: Texts, j: Ints, k: int) -> Ints:
    """Compute the edit distances of pairs of strings.

    Parameters
    ----------
    left, right : the strings.
    i, j : (m,) int64, the strings of each pair.
    k : distances beyond it are not told apart.

    Returns
    -------
    (m,) int64, ``k + 1`` for all distances beyond k.
    """
    distances = np.empty(len(i), np.int64)
    fill_edits(*left, i, *right, j, min(k, _longest(left, right)), distances)  # its memory grows with k
    return distances


def _longest(left: Texts, right: Texts) -> int:
    """Return the number of characters of the longest string of either side."""
    return max(int(np.diff(side.starts).max(initial=0)) for side in (left, right))


class _Side(NamedTuple):
    """Strings of one side: which of them are equal, and the first of each group."""

    groups: Groups
    firsts: Texts


def _group(name: str, strings: Iterable[str], numbers: dict[str, int]) -> _Side:
    """Group equal strings, which have one number on both sides."""
    if not are_several(strings):
        raise ArgumentError(f"{name} must be a list of strings, not one {type(strings).__name__}")
    to_texts = getattr(strings, "to_pylist", None)  # of Arrow, whose items are scalars, not texts
    given = list(strings if to_texts is None else to_texts())
    for row, text in enumerate(given):
        if not isinstance(text, str):
            raise ArgumentError(f"{name} must be strings; row {row} is {type(text).__name__}")
    groups = group_equal(np.array([numbers.setdefault(text, len(numbers)) for text in given], np.int64))
    return _Side(groups, encode([given[row] for row in groups.firsts.tolist()]))
