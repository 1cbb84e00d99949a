"""The parameters of a run, checked once and frozen."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeGuard

from epsjoin.errors import ArgumentError

_RULES = json.loads(Path(__file__).with_name("params.schema.json").read_text(encoding="utf-8"))["properties"]
"""What a parameter may be; the trigger form of a DAG reads the same file, without this package."""

MAX_SAMPLE_ROWS: int = _RULES["sample_rows"]["maximum"]
"""Maximum of the parameter ``sample_rows``."""

WAYS_TO_EPS = ("eps", "pairs", "k_distance_quantile", "neighbours")
"""Parameters that lead to eps; the first that is set counts, the others play no part."""

ACCEPTABLE: tuple[str, ...] = tuple(_RULES["accept"]["items"]["enum"])
"""Checks of the guard whose findings a run may accept."""

MATCH_HOW = ("inner", "left", "right", "outer")
"""Whose best matches are asked for."""

MATCH_TAKE = ("all", "one")
"""How many of a row's best matches are returned."""


def _choices(name: str) -> tuple[str, ...]:
    return tuple(choice for choice in _RULES[name]["enum"] if choice is not None)


CUTS, DECISIONS = _choices("cuts"), _choices("decisions")
OF_REGULAR_CUTS = ("k", "msl", "rule", "decisions")
"""Parameters that play no part where cuts are planned."""


@dataclass(frozen=True)
class RunParams:
    """What a person may set for a run; every job of the run gets the same parameters.

    Parameters
    ----------
    eps : distance threshold in the metric's unit; ``None`` lets ``fit_epsilon`` choose it.
    neighbours : choose eps so that a point has this many neighbours on average (itself not counted).
    pairs : choose eps so that the join has this many pairs.
    k_distance_quantile : choose eps as this quantile of the distance to the (min_pts - 1)-th neighbour.
        At most one of ``neighbours``, ``pairs`` and ``k_distance_quantile`` counts, the last two before
        the first; a given ``eps`` beats them all.
    eps_digits : significant digits of an eps that is chosen; 17 are all. A given ``eps`` is not rounded.
    min_pts : points within eps, the point itself included, that make a point core.
    lof_k : neighbours that the local outlier factor looks at; ``None``: ``min_pts - 1``, at least 1.
    accept : checks of the guard that may hold nothing in this run, see :mod:`epsjoin.local.guard.judge`.
    cuts : ``planned`` (a tree of cuts fitted to a sample) or ``regular`` (the papers' halving, GESS).
    n_parts : parts to cut the join into; ``None``: as many as the number of points and a
        worker's memory ask for, at least 8.
    k : regular cuts: a cube that crosses more than k cuts of a level is not split; 0 is MSJ. ``None``:
        chosen on a sample.
    msl : regular cuts: the deepest level at which a cube may be split, 0 the first; ``None``: chosen.
    rule : regular cuts: a split rule in place of ``k`` and ``msl``, such as ``k<=3 and generation<=1``.
    decisions : regular cuts: ``inside``, ``global`` or ``local``, see :class:`epsjoin.Cuts`.
    replication_budget : rows per point that replication must not exceed.
    worker_memory_mb : memory of a Python worker, in MB of 2**20 bytes: parts are cut so small that the worker
        itself, the rows of a part and a batch of pairs fit. Its least value is what other steps may hold.
    increment : the pairs are computed from those of an earlier run where at most this fraction of the points
        has changed; 0: never.
    most_generations : number of increments after which all points are joined again.
    max_pairs : the join is refused when more pairs are expected, or when more appear.
    sample_rows : points that a plan and a fit look at.
    seed : of every random choice.

    Raises
    ------
    ArgumentError
        A value is of the wrong type or out of its range.
    """

    eps: float | None = None
    neighbours: float = 10.0
    pairs: float | None = None
    k_distance_quantile: float | None = None
    eps_digits: int = 3
    min_pts: int = 5
    lof_k: int | None = None
    accept: tuple[str, ...] = ()
    cuts: str = "planned"
    n_parts: int | None = None
    k: int | None = None
    msl: int | None = None
    rule: str | None = None
    decisions: str = "inside"
    replication_budget: float = 4.0
    worker_memory_mb: int = 1024
    increment: float = 0.1
    most_generations: int = 50
    max_pairs: int = 1_000_000_000
    sample_rows: int = 20_000
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is not None:
                _check(field.name, value)

    @property
    def n_neighbours(self) -> int:
        """Neighbours that the local outlier factor looks at, the point itself not counted."""
        return self.lof_k if self.lof_k is not None else max(1, self.min_pts - 1)

    def in_use(self) -> dict[str, Any]:
        """The parameters that play a part: one way to eps, for planned cuts none of regular ones, ..."""
        way = next(name for name in WAYS_TO_EPS if getattr(self, name) is not None)
        idle = {*WAYS_TO_EPS} - {way} | ({"rule"} if self.rule is None else {"k", "msl"})
        idle |= {*OF_REGULAR_CUTS} if self.cuts == "planned" else set()
        idle |= {"eps_digits"} if way == "eps" else set()
        idle |= set() if self.accept else {"accept"}
        return {name: value for name, value in asdict(self).items() if name not in idle}

    @classmethod
    def from_json(cls, text: str, defaults: Mapping[str, Any] | None = None) -> RunParams:
        """Parameters from a JSON object, over a data set's defaults, over those of this class.

        A ``null`` is the same as leaving the key out, so that an empty field of a form means "default".

        Raises
        ------
        ArgumentError
            The text is not a JSON object, has a key twice or one that is no parameter; or it sets what only
            regular cuts have, and the cuts are planned; or it sets a rule and what the rule stands for.
        """
        try:
            given = json.loads(text, object_pairs_hook=_to_object)
        except ArgumentError:
            raise
        except (ValueError, RecursionError) as error:  # also of thousands of digits, or of brackets
            raise ArgumentError(f"--params is not JSON: {error}") from error
        if not isinstance(given, dict):
            raise ArgumentError(f"--params must be a JSON object, not {type(given).__name__}")
        known = {field.name for field in fields(cls)}
        given = {name: value for name, value in given.items() if value is not None}
        # whoever says how eps shall be chosen does not want the data set's own eps or way of choosing it
        is_chosen = any(way in given for way in WAYS_TO_EPS)
        dropped = {*WAYS_TO_EPS} if is_chosen else set()
        if "rule" in given or not given.keys().isdisjoint(("k", "msl")):  # one of them replaces the other
            dropped |= {"k", "msl"} if "rule" in given else {"rule"}
        kept = {name: value for name, value in (defaults or {}).items() if name not in dropped}
        merged = {**kept, **given}
        unknown = sorted(set(merged) - known)
        if unknown:
            raise ArgumentError(f"unknown parameter {unknown[0]!r}; known are {', '.join(sorted(known))}")
        if "accept" in (defaults or {}):
            raise ArgumentError("accept is for one run; a contract allows more by the limits of its guard")
        if isinstance(merged.get("accept"), list):
            merged["accept"] = tuple(merged["accept"])
        params = cls(**{name: _as_whole(name, value) for name, value in merged.items()})
        idle = [name for name in OF_REGULAR_CUTS if name in given and params.cuts == "planned"]
        if idle:
            raise ArgumentError(
                f'{idle[0]} is for regular cuts: add "cuts": "regular", or leave {idle[0]} out'
            )
        twice = [name for name in ("k", "msl") if name in merged and "rule" in merged]
        if twice:
            raise ArgumentError(f"a rule stands in place of k and msl: leave out rule or {twice[0]}")
        return params


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ArgumentError(f"--params has {twice[0]!r} more than once")
    return dict(pairs)


def _as_whole(name: str, value: Any) -> Any:
    """Make 2 of 2.0 where a whole number is asked for: to JSON, and so to the form, they are the same."""
    is_whole = isinstance(value, float) and value.is_integer()
    return int(value) if is_whole and "integer" in _RULES[name]["type"] else value


def _check(name: str, value: Any) -> None:
    """Refuse a value that ``params.schema.json`` does not allow."""
    rule = _RULES[name]
    if "items" in rule:
        is_allowed = isinstance(value, tuple) and all(
            each in ACCEPTABLE and value.count(each) == 1 for each in value
        )
        allowed = f"a list of some of {', '.join(ACCEPTABLE)}, each once at most"
    elif "enum" in rule:
        is_allowed, allowed = value in _choices(name), f"one of {', '.join(_choices(name))}"
    elif "pattern" in rule:
        is_allowed = isinstance(value, str) and len(value) <= rule["maxLength"]
        is_allowed = is_allowed and re.search(rule["pattern"], value) is not None
        allowed = 'comparisons of k, level or generation with numbers, such as "k<=3 and generation<=1"'
    elif "integer" in rule["type"]:
        low, high = rule["minimum"], rule["maximum"]
        is_allowed = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        allowed = f"a whole number from {low} to {high}"
    elif "minimum" in rule:
        low, high = rule["minimum"], rule.get("maximum", math.inf)
        is_allowed = is_finite(value) and low <= value <= high
        allowed = f"a number from {low} to {high}"
        if "maximum" not in rule:
            allowed = f"a number of rows per point, at least {low}"
    else:
        low, high = rule["exclusiveMinimum"], rule.get("exclusiveMaximum", math.inf)
        is_allowed = is_finite(value) and low < value < high
        allowed = f"a number above {low}" + (f" and below {high}" if high < math.inf else ", and finite")
    if not is_allowed:
        raise ArgumentError(
            f"{name} must be {allowed}, not {list(value) if isinstance(value, tuple) else value!r}"
        )


def is_finite(value: object) -> TypeGuard[float]:
    """Whether a value of a file in JSON or YAML is a finite number; a bool is none."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float comes near
        return False
