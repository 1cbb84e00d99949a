"""The edit distance of two strings by its definition: the whole table, cell by cell."""

from __future__ import annotations


def levenshtein(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, mine in enumerate(left, 1):
        before, row = row, [i]
        for j, its in enumerate(right, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (mine != its)))
    return row[-1]
