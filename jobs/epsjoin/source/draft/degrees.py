"""Which columns of a file are degrees on a map, by their names and values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from epsjoin.contracts.sources import MAX_DEGREES
from epsjoin.source.draft.guess_column import Guess

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PLACES = {
    "latitude": re.compile(r"(lat|latitude|lats)(d|deg|dd)?", re.IGNORECASE),
    "longitude": re.compile(r"(lon|lng|long|longitude|lons)(d|deg|dd)?", re.IGNORECASE),
}
"""Words in the names of columns of degrees, by role."""

_LENGTHS = ("m", "km", "ft", "mi", "metre", "metres", "meter", "meters", "feet", "miles")
"""Words in the names of columns that are no degrees."""


def find_places(columns: Mapping[str, Guess]) -> tuple[list[tuple[str, str]], list[tuple[str, float]]]:
    """Pairs of latitude and longitude; and columns with the name of one whose values are no degrees."""
    found: dict[str, dict[str, str]] = {role: {} for role in _PLACES}
    far = []
    for name, guess in columns.items():
        for role, rest in _roles_in(name):
            if max(-guess.minimum, guess.maximum) <= MAX_DEGREES[role]:
                found[role].setdefault(rest, name)
            else:
                far.append((name, guess.maximum if guess.maximum > -guess.minimum else guess.minimum))
    pairs = [
        (name, found["longitude"][rest])
        for rest, name in found["latitude"].items()
        if rest in found["longitude"]
    ]
    if not pairs and all(len(names) == 1 for names in found.values()):
        pairs = list(zip(found["latitude"].values(), found["longitude"].values(), strict=True))
    return pairs, [] if pairs else far


def are_degrees(guesses: Sequence[Guess]) -> bool:
    """Whether two columns of numbers could be a latitude and a longitude, in either order.

    Their values are such, and their names have no word for a length.
    """
    if any(part.lower() in _LENGTHS for guess in guesses for part in _WORDS.findall(guess.name)):
        return False
    reach = sorted(max(-guess.minimum, guess.maximum) for guess in guesses)
    return all(guess.type == "number" for guess in guesses) and 10 < reach[0] <= 90 and 10 < reach[1] <= 180


def role_of(name: str) -> str | None:
    """The role of a column that its name tells; None if it tells none, or both."""
    roles = [role for role, _ in _roles_in(name)]
    return roles[0] if len(roles) == 1 else None


def _roles_in(name: str) -> Iterator[tuple[str, str]]:
    """Yield the roles for which a name has a word, each with the other words of the name."""
    parts = _WORDS.findall(name)
    for role, pattern in _PLACES.items():
        place = next((i for i, part in enumerate(parts) if pattern.fullmatch(part)), None)
        if place is not None:
            yield role, " ".join(part.lower() for part in (*parts[:place], *parts[place + 1 :]))
