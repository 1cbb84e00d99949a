"""Versions by replaying them: states as dictionaries, ranges and end sets as their definitions say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

State = Mapping[int, object]
"""Key to value."""


def replay(parents: Sequence[int], changes: Sequence[Mapping[int, object]]) -> list[dict[int, object]]:
    """The state at every version: that of its parent (-1: none) with its changes; None deletes."""
    states: list[dict[int, object]] = []
    for parent, changed in zip(parents, changes, strict=True):
        state = dict(states[parent]) if parent >= 0 else {}
        state.update(changed)
        states.append({key: value for key, value in state.items() if value is not None})
    return states


def ancestors(parents: Sequence[int], version: int) -> list[int]:
    """The versions from this one up to the root."""
    found = []
    while version >= 0:
        found.append(version)
        version = parents[version]
    return found


def end_set(parents: Sequence[int], start: int, changes: Sequence[int]) -> set[int]:
    """The changes below the start with no other change on the way from there."""
    found = set()
    for change in changes:
        way = ancestors(parents, change)
        if change != start and start in way:
            between = way[1 : way.index(start)]
            if not set(between) & set(changes):
                found.add(change)
    return found


def ranges(states: Mapping[int, State]) -> set[tuple[int, object, int, int | None]]:
    """Maximal ranges of a history without branches: (key, value, first run, first run after or None)."""
    runs = sorted(states)
    found = set()
    for key in {key for state in states.values() for key in state}:
        begin = None
        for number, run in enumerate(runs):
            value = states[run].get(key)
            before = states[runs[number - 1]].get(key) if number else None
            if value != before and value is not None:
                begin = run
            after = states[runs[number + 1]].get(key) if number + 1 < len(runs) else None
            is_last = number + 1 == len(runs)
            if value is not None and (is_last or value != after):
                found.add((key, value, begin, None if is_last else runs[number + 1]))
    return found
