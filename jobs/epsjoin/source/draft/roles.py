"""Which columns of a file could be the key and the coordinates of a contract that is drafted of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from epsjoin.console import counted
from epsjoin.source.draft.degrees import are_degrees, find_places
from epsjoin.source.draft.guess import FileGuess
from epsjoin.source.draft.guess_column import Guess

MAX_PLACE, _MIN_VECTOR = 3, 8
"""Number of numbers up to which a list is a place; and from which on it is the coordinates, whatever numbers
stand beside it."""

TEXT_OF_LISTS = "has lists of numbers as texts; in files of json or parquet they could be the coordinates"

TEXT_WITH_COMMAS = "has numbers with a comma in them as texts; with a decimal point they could be coordinates"

TEXT_OF_CODES = "is a text, as no number keeps all digits of"
"""Of a column with codes; it is followed by one of them."""

BAD_FRACTION = 0.01
"""The fraction of bad rows that a draft allows."""


def key_of(columns: Mapping[str, Guess]) -> str | None:
    """The first column whose values are unique; columns with the name of a key come before others."""
    if "id" in columns and columns["id"].given == "id":  # it could be nothing else
        return "id"
    return next((name for name in _could_be_keys(columns) if columns[name].is_unique), None)


def why_no_key(columns: Mapping[str, Guess], n_records: int) -> str:
    """Say what a contract without a key means, and which column is one but for a few records."""
    place = "none; a record is known by its place in the file"
    for guess in map(columns.__getitem__, _could_be_keys(columns)):
        faults = {
            ("repeated value", ""): guess.n_again,
            ("missing value", ""): guess.n_missing,
            ("value of another type", "values of another type"): guess.n_odd,
        }
        if 0 < sum(faults.values()) <= BAD_FRACTION * n_records:
            named = ", ".join(counted(n, *what) for what, n in faults.items() if n)
            return f"{place}. {guess.given} would be one but for {named}"
    return place


def _could_be_keys(columns: Mapping[str, Guess]) -> Iterator[str]:
    """Columns that could be a key if their values were unique; those with the name of a key first."""
    candidates = [name for name, guess in columns.items() if guess.type in ("integer", "string")]
    named = [c for c in candidates if re.search(r"(^|_)(id|key|code|uuid)$", c, re.IGNORECASE)]
    others = (c for c in candidates if columns[c].type == "string" or c == candidates[0])
    yield from named
    yield from others


def roles_of(columns: Mapping[str, Guess], key: str | None) -> tuple[dict[str, str], list[str]]:
    """The roles of the coordinates by name, and what a person must decide about them."""
    usable = {
        name: guess
        for name, guess in columns.items()
        if name != key
        and (
            guess.type == "number"
            or (guess.type == "integer" and max(-guess.minimum, guess.maximum) <= 2**53)
        )
    }
    places, far = find_places(usable)
    lists = {name: guess.n_items for name, guess in columns.items() if guess.n_items}
    vector = max(lists, key=lists.__getitem__, default=None)
    if vector is not None and not places and (lists[vector] >= _MIN_VECTOR or not usable):
        return {vector: "coordinate"}, _doubts_of_vector(vector, columns, usable)
    left_out = [
        f"{name} is left out: a list can only be the coordinates, which are other columns" for name in lists
    ]
    if places:
        (latitude, longitude), *others = places
        doubts = left_out
        if others:
            listed = ", ".join(" and ".join(place) for place in places)
            doubts.append(f"a row has several positions ({listed}); the first is taken")
        return {latitude: "latitude", longitude: "longitude"}, doubts
    doubts = left_out + [
        f"{name} looks like degrees by its name, but has values such as {value:g}" for name, value in far
    ]
    numbers = [name for name, guess in usable.items() if guess.type == "number"] or list(usable)
    if len(numbers) == 2 and not far and are_degrees([columns[name] for name in numbers]):
        doubts.append(
            f"{' and '.join(numbers)} look like degrees; if they are, give them the roles latitude and "
            "longitude, and set metric: haversine, unit: km"
        )
    return dict.fromkeys(numbers, "coordinate"), doubts


def _doubts_of_vector(vector: str, columns: Mapping[str, Guess], others: Iterable[str]) -> list[str]:
    """What a person must decide where the coordinates are a list."""
    lists = [name for name in columns if columns[name].n_items and name != vector]
    doubts = [f"{name} is left out: one list is taken" for name in lists]
    if columns[vector].n_items > MAX_PLACE:
        doubts.append(
            "metric: cosine, as of embeddings, to which a length says nothing; if it does, euclidean"
        )
    else:
        doubts.append(
            f"if {vector} is a position in degrees, make columns of latitude and longitude of it: of a list "
            "they cannot be told apart"
        )
    if names := ", ".join(others):
        doubts.append(f"numbers that count in no distance: {names}")
    return doubts


def why_no_coordinates(found: FileGuess, key: str | None) -> str:
    """The reason why no column can be a coordinate."""
    numeric = [guess for guess in found.columns if guess.type in ("integer", "number")]
    numbers = [guess for guess in numeric if guess.name != key]
    if not numbers:
        of = f" except the key {key}" if numeric else ""
        left_out = "; ".join(
            f"{guess.name!r} is left out: {guess.unusable}" for guess in found.columns if guess.unusable
        )
        texts = (f"{guess.name!r} {TEXT_OF_LISTS}" for guess in found.columns if guess.is_text_of_lists)
        commas = (f"{guess.name!r} {TEXT_WITH_COMMAS}" for guess in found.columns if guess.has_commas)
        codes = (f"{guess.name!r} {TEXT_OF_CODES} {guess.code}" for guess in found.columns if guess.code)
        more = "; ".join(filter(None, (left_out, *texts, *commas, *codes)))
        return f"no column holds numbers{of}, so none can be a coordinate{'; ' * bool(more)}{more}"
    why = "; ".join(f"{guess.name!r}: {guess.unusable or 'beyond 2**53'}" for guess in numbers[:3])
    return f"columns hold numbers, but none of them can be a coordinate ({why}); rename them in the file"
