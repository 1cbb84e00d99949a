"""What differs between two files, by two dictionaries; and how their order differs, by counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any


def difference(
    old: Iterable[tuple[Hashable, Any]], new: Iterable[tuple[Hashable, Any]]
) -> dict[str, set[Any]]:
    """Keys by what became of their row; rows are (key, rest), a key occurs once in a file."""
    before, now = dict(old), dict(new)
    return {
        "deleted": {key for key in before if key not in now},
        "inserted": {key for key in now if key not in before},
        "updated": {key for key in now if key in before and before[key] != now[key]},
        "same": {key for key in now if key in before and before[key] == now[key]},
    }


def multiset_difference(
    old: Iterable[Hashable], new: Iterable[Hashable]
) -> tuple[Counter[Any], Counter[Any]]:
    """How often each row went, and came."""
    return Counter(old) - Counter(new), Counter(new) - Counter(old)


def most_waiting(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    """The most rows that wait for their partner after any step, on one side, if both are read in step."""
    both, most = set(old) & set(new), 0
    for t in range(max(len(old), len(new))):
        seen_old, seen_new = (set(rows[: t + 1]) & both for rows in (old, new))
        most = max(most, len(seen_old - seen_new), len(seen_new - seen_old))
    return most


def distance(old: Sequence[Hashable], new: Sequence[Hashable]) -> float:
    place = {key: i for i, key in enumerate(old)}
    total = sum(abs(place[key] - i) for i, key in enumerate(new) if key in place)
    n = max(len(old), len(new))
    return total / (n * n / 2) if n else 0.0


def window(old: Sequence[Any], new: Sequence[Any], places: int) -> tuple[list[Any], list[Any]]:
    """Algorithm 4.1, word by word: the keys that it calls deleted and inserted."""
    waits_old: list[Any] = []
    waits_new: list[Any] = []
    deleted: list[Any] = []
    inserted: list[Any] = []
    for t in range(max(len(old), len(new))):
        for mine, rows, theirs, out in (
            (waits_old, old, waits_new, deleted),
            (waits_new, new, waits_old, inserted),
        ):
            if t >= len(rows):
                continue
            if rows[t] in theirs:
                theirs.remove(rows[t])
                continue
            mine.append(rows[t])
            if len(mine) > places:
                out.append(mine.pop(0))
    return deleted + waits_old, inserted + waits_new
