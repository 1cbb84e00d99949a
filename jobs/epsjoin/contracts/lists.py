"""Columns of lists in a source's contract: each number of a list becomes a column of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from epsjoin.contracts.odcs import LIST, check_choice, custom_properties
from epsjoin.errors import ContractError

MAX_ITEMS = 10_000
"""Maximum length of a list, of which each number is a column of the table ``points``."""

_OF_LIST = {"name", "physicalName", "description", "businessName", "tags", "logicalType", "physicalType"}
_OF_LIST |= {"items", "logicalTypeOptions", "required", "customProperties"}
"""What may be said of a list."""

_OF_ITEMS = {"logicalType", "logicalTypeOptions", "description"}
"""What may be said of its items."""

ITEM_TYPES = ("number", "integer")
"""Types that the items of a list can have."""


def expand_lists(file: Path, properties: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Replace each list among the properties of a schema by a property for each of its numbers.

    The list ``v`` of 3 numbers becomes ``v_1``, ``v_2`` and ``v_3``, each with its place under the key
    ``item``; what the list says of ``items`` holds for each of them.

    Parameters
    ----------
    file : the contract's file, for messages.
    properties : the columns as the contract has them.

    Raises
    ------
    ContractError
        A list has no fixed length or too great a one, its items are no numbers, it has not the role
        coordinate, or what is said of it holds for no list.
    """
    expanded: list[Mapping[str, Any]] = []
    for body in properties:
        expanded += _expand(file, body) if body.get("logicalType") == LIST else [body]
    return expanded


def _expand(file: Path, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    name = str(body["name"])
    place = f"{file}: column {name}"
    items, options = body.get("items") or {}, body.get("logicalTypeOptions") or {}
    check_choice(place, "logicalType of the items", items.get("logicalType"), ITEM_TYPES)
    for which, given, known in (("a list", body, _OF_LIST), ("its items", items, _OF_ITEMS)):
        if unknown := sorted(given.keys() - known):
            raise ContractError(
                f"{place}: {which} cannot have {', '.join(unknown)}; known are {', '.join(sorted(known))}"
            )
    n = options.get("minItems")
    if not isinstance(n, int) or n < 1 or n != options.get("maxItems"):
        raise ContractError(
            f"{place}: a list needs logicalTypeOptions: {{minItems: n, maxItems: n}}, n being the length of "
            f"every list, not {options}"
        )
    if n > MAX_ITEMS:
        raise ContractError(f"{place}: a list can have {MAX_ITEMS:,} numbers, not {n:,}")
    if custom_properties(file, body).get("role") != "coordinate":
        raise ContractError(
            f"{place}: a list can only be the coordinates of a point (customProperties: role: coordinate); "
            "leave the column out if it is something else"
        )
    in_file = body.get("physicalName") or name
    described = str(body.get("description", "")).strip()
    for item in range(n):
        yield {
            **items,
            **({"required": body["required"]} if "required" in body else {}),
            "name": f"{name}_{item + 1}",
            "physicalName": in_file,
            "description": f"Number {item + 1} of the list {in_file}. {described}".strip(),
            "customProperties": body["customProperties"],
            "item": item,
        }
