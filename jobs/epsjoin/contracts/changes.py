"""What has changed in a contract since it was published, and which version that needs.

A change that breaks something needs a new major version, a change that adds something a new minor version.
Titles and descriptions may change freely.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from epsjoin.contracts.shapes import Shape
from epsjoin.contracts.sources import COMMA, GUARD

BUMPS = ("", "minor", "major")
"""Semver bumps that a change can require, ascending; empty: none."""

Bump: TypeAlias = Literal["minor", "major"]

_OF_FILES = ("physicalName", "decimals", "format", "item")
"""How a source's column is read from its files, where the contract says so."""

_DEFAULTS: Mapping[str, object] = {"delimiter": json.dumps(COMMA)}
"""What holds where a shape does not name it."""


@dataclass(frozen=True)
class Change:
    """One difference between a contract and what was published.

    Parameters
    ----------
    bump : the semver bump that the change requires.
    words : the change in words.
    """

    bump: Bump
    words: str


def changes_between(known: Shape, now: Shape) -> Iterator[Change]:
    """Yield the differences between a published contract and its present state.

    A change is major if it can break a reader of a table, a supplier of a source, or rows that exist:
    something is gone, has another type or meaning, or a condition is stricter; in a table also a column that
    was required and is optional. Other changes are minor.
    """
    is_source = now["of"] == "source"
    for name in known["fixed"] | now["fixed"]:
        before, after = (shape["fixed"].get(name, _DEFAULTS.get(name)) for shape in (known, now))
        if before != after:
            yield Change("major", f"{name} was {_format(before)} and is {_format(after)}")
    for name in sorted(known["columns"].keys() | now["columns"].keys()):
        before, after = known["columns"].get(name), now["columns"].get(name)
        if after is None:
            yield Change("major", f"column {name} is gone or has another name")
        elif before is None:
            bump: Bump = "major" if after["required"] or after["role"] != "payload" else "minor"
            kind = "a required" if after["required"] else "an optional"
            yield Change(bump, f"column {name} is new, {kind} one")
        else:
            yield from _compare_column(name, before, after, is_source)
    for name in sorted(known["rules"].keys() | now["rules"].keys()):
        before, after = known["rules"].get(name), now["rules"].get(name)
        if before != after:
            yield _compare_rule(name, before, after)
    before, after = (_limits_of(shape) for shape in (known, now))
    for name, old in before.items() if is_source else ():
        new = after[name]
        if old != new:
            is_tighter = old is None or (new is not None and new < old)
            words = f"{name} was {_format(old)} and is {_format(new)}"
            yield Change("major" if is_tighter else "minor", words)


def _limits_of(source: Shape) -> dict[str, float | None]:
    """The limits above which a snapshot is refused, by name; ``None``: any."""
    guard = {**GUARD, **source.get("guard", {})}
    return {
        "max_quarantine_share": source.get("max_quarantine_share"),
        **{f"guard: {check}": limit for check, limit in guard.items()},
    }


def _compare_column(name: str, before: Shape, after: Shape, is_source: bool) -> Iterator[Change]:
    for what in ("type", "role", *_OF_FILES):
        old, new = before.get(what), after.get(what)
        if old != new:
            yield Change("major", f"column {name}: {what} was {_format(old)} and is {_format(new)}")
    if after["required"] and not before["required"]:
        yield Change("major", f"column {name} was optional and is required")
    if before["required"] and not after["required"]:
        yield Change("minor" if is_source else "major", f"column {name} was required and is optional")
    for what, sign in (("minimum", 1), ("maximum", -1), ("max_nodes", -1)):
        old, new = before.get(what), after.get(what)  # only a tree's column has max_nodes
        if old != new:
            is_tighter = old is None or (new is not None and sign * new > sign * old)
            yield Change(
                "major" if is_tighter else "minor",
                f"column {name}: {what} was {_format(old)} and is {_format(new)}",
            )
    old, new = set(before["values"]), set(after["values"])
    if old != new:
        is_looser = not new or (bool(old) and old < new)
        yield Change(
            "minor" if is_looser else "major",
            f"column {name}: values were {_format(before['values'])} and are {_format(after['values'])}",
        )


def _compare_rule(name: str, before: Shape | None, after: Shape | None) -> Change:
    if before is None:
        what = "is new"
    elif after is None:
        what = "is gone"
    else:
        parts = (part for part in ("query", "must_be", "severity") if before[part] != after[part])
        what = f"has another {' and '.join(parts)}"
    # whether a changed query is stricter or looser cannot be known
    stops = after is not None and after["severity"] == "error"
    return Change("major" if stops else "minor", f"rule {name} {what}")


def _format(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)
