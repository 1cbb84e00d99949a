"""Versions of contracts: each contract is compared with what was last published of it.

``data_contracts/published.json`` holds the version of every contract and what others rely on;
:mod:`epsjoin.contracts.changes` says which version a change needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from epsjoin.contracts.changes import BUMPS, changes_between
from epsjoin.contracts.shapes import Read, Shape, is_shape, parse_version, read_shapes
from epsjoin.errors import ContractError

FILE = "published.json"
"""Name of the file of published contracts, in the folder of the contracts."""


def check(contracts: Path, names: Sequence[str] = ()) -> list[str]:
    """Check the versions of contracts in a folder.

    Parameters
    ----------
    names : of the data sets and tables to check; by default all.

    Returns
    -------
    A sentence for each contract that is not valid, or has the id of another one, and for each whose version
    is too low; if there are none, for each that is not published; empty if all is well.

    Raises
    ------
    ContractError
        There is no contract, or none of a name; ``published.json`` is not JSON.
    """
    known = _read_published(contracts)
    found = read_shapes(contracts, known)
    chosen = _choose(names, known, found)
    faults = _find_faults(known, found, chosen)
    news = _find_news(known, found, chosen - faults.keys())
    publishing = f"'bin/epsjoin contract publish' writes it to {FILE}"
    return [*faults.values(), *(f"{line}; {publishing}" for line in news)]


def publish(contracts: Path, names: Sequence[str] = ()) -> list[str]:
    """Write contracts of a folder to ``published.json``; a contract without a file is removed from it.

    Parameters
    ----------
    names : of the data sets and tables to publish; by default all. Others stay as they were published.

    Returns
    -------
    A line for each contract that is new, changed or removed.

    Raises
    ------
    ContractError
        As :func:`check`; or one of these contracts is not valid, has the id of another one, is a draft that
        was named, or its version is too low for what has changed. Then nothing is written.
    """
    known = _read_published(contracts)
    found = read_shapes(contracts, known)
    chosen = _choose(names, known, found)
    faults = list(_find_faults(known, found, chosen).values())
    if names:
        drafts = sorted(found.drafts & chosen)
        faults += [f"{name} is a draft; set its status to active to publish it" for name in drafts]
    elif faults and len(faults) < len(chosen):
        faults.append("to publish others, name them")
    if faults:
        raise ContractError("; ".join(faults))
    news = _find_news(known, found, chosen)
    others = {name: shape for name, shape in known.items() if name not in chosen}
    now = others | {name: shape for name, shape in found.shapes.items() if name in chosen}
    text = json.dumps(now, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    beside = contracts / f"{FILE}.new"  # the old one is whole until the new one is
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(contracts / FILE)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise ContractError(f"{contracts / FILE} is not written: {error.strerror}") from error
    return news


def _choose(names: Sequence[str], known: Mapping[str, Shape], found: Read) -> set[str]:
    """The contracts of these names, which may be a data set's or a table's; all if there are no names."""
    there = known.keys() | found.shapes.keys() | found.drafts | found.invalid.keys()
    chosen = {each for each in there if not names or each.partition(" ")[2] in names}
    unknown = sorted(set(names) - {each.partition(" ")[2] for each in chosen})
    if unknown:
        others = ", ".join(sorted({each.partition(" ")[2] for each in there}))
        raise ContractError(f"no contract {', '.join(unknown)} is there; there are {others}")
    return chosen


def _find_news(known: Mapping[str, Shape], found: Read, chosen: Set[str]) -> list[str]:
    """Describe those of the chosen contracts that are not as they were published."""
    names = [name for name in sorted(chosen) if known.get(name) != found.shapes.get(name)]
    return [f"{name}: {_describe_version(known.get(name), found.shapes.get(name))}" for name in names]


def _find_faults(known: Mapping[str, Shape], found: Read, chosen: Set[str]) -> dict[str, str]:
    """Say what is wrong with chosen contracts, first of those that are not valid."""
    invalid = {name: sentence for name, sentence in found.invalid.items() if name in chosen}
    return invalid | _find_breaches(known, {n: s for n, s in found.shapes.items() if n in chosen})


def _describe_version(known: Shape | None, now: Shape | None) -> str:
    if now is None:
        return "the contract is gone"
    before = "" if known is None else f", after {known['version']}"
    return f"version {now['version']} is new{before}"


def _find_breaches(known: Mapping[str, Shape], now: Mapping[str, Shape]) -> dict[str, str]:
    wrong = {}
    for name in sorted(known.keys() & now.keys()):
        changes = list(changes_between(known[name], now[name]))
        before = parse_version(name, known[name]["version"])
        version = parse_version(name, now[name]["version"])
        bump = max((change.bump for change in changes), key=BUMPS.index, default="")
        lowest = {"": before, "minor": (before[0], before[1] + 1, 0), "major": (before[0] + 1, 0, 0)}[bump]
        if version < lowest:
            words = "; ".join(change.words for change in changes if change.bump == bump)
            why = {
                "major": f"{words}: this breaks what was published",
                "minor": f"{words}: this adds to what was published",
                "": "the version has gone back",
            }[bump]
            wrong[name] = (
                f"{name}: {why} as version {known[name]['version']}; undo it, or set the contract's version "
                f"(now {now[name]['version']}) to {'.'.join(map(str, lowest))} or above"
            )
    return wrong


def _read_published(contracts: Path) -> dict[str, Shape]:
    file = contracts / FILE
    if not file.is_file():
        return {}
    try:
        published = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ContractError(f"{file}: not JSON ({error}); take the last one that was committed") from error
    if not isinstance(published, dict):
        raise ContractError(f"{file}: no object of contracts; take the last one that was committed")
    for name, shape in published.items():
        if not is_shape(shape):
            raise ContractError(
                f"{file}: {name} is not as it was published; take the last file that was committed"
            )
    return published
