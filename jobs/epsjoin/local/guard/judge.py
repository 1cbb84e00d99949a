"""What the guard finds in a snapshot, and what follows from it.

A finding is *held* if the limit of its check is exceeded and the snapshot shall not come in, *accepted* if a
person said that it may, *warned* if it is unusual and comes in, *ok* otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from epsjoin.console import percent, percents
from epsjoin.local.guard.causes import CAUSES, MIN_MOVED, find_causes
from epsjoin.local.guard.seen import Matched, Seen, Values

HOLDING = ("keys", "swapped", "scale", "shift", "sign", "format", "left_out", "lost", "new", "moved")
"""The checks that hold a snapshot; those that say more about what has happened come first."""

CHECKS = (*HOLDING, "updated", "stale", "columns", "order")
"""All checks."""

MIN_RECORDS = 10
"""Minimum number of records that were lost, came or moved for a check to look at their fraction."""

MAX_SAMPLE = 10_000
"""Maximum number of moved records, and of updated ones, whose values are looked at."""

WARN_LOST, WARN_FACTOR = 0.005, 3.0
"""The fraction of lost records, and how many times that of the runs before, above which the guard warns."""

TINY_CHANGE, TINY_FRACTION = 1e-6, 0.9
"""A change below this fraction of a number's value is one of format, if this fraction of all changes are."""


class Finding(NamedTuple):
    """What a check has found.

    Parameters
    ----------
    check : one of ``CHECKS``.
    observed : the number that was compared with the limit; ``None`` if there was nothing to compare.
    limit : ``None`` if there is none.
    verdict : ok, warned, held or accepted.
    against : the run before, with which the snapshot was compared; ``None``: there is none.
    words : what was found, a sentence without its end.
    """

    check: str
    observed: float | None
    limit: float | None
    verdict: str
    against: str | None
    words: str


class _Raw(NamedTuple):
    """A finding before it is judged: it is known whether it is unusual, but not what follows from it."""

    observed: float | None
    words: str
    is_beyond: bool = False


def judge(seen: Seen, limits: Mapping[str, float | None], accept: Collection[str] = ()) -> list[Finding]:
    """Judge a snapshot.

    Parameters
    ----------
    limits : by the names of checks; ``None``: the check holds nothing.
    accept : checks that must not hold the snapshot this time.

    Returns
    -------
    A finding for each of ``CHECKS``, in their order.
    """
    findings = []
    raw = _look(seen, limits)
    for check in CHECKS:
        observed, words, is_beyond = raw[check]
        limit, verdict = limits.get(check), "ok"
        if is_beyond and check in HOLDING:
            verdict = "accepted" if check in accept else "held"
            seen_of, allowed = percents(observed, limit)
            words += f" ({seen_of}, {allowed} are allowed)"
        elif check == "left_out" and observed is not None:
            words += f" of {percent(observed)}"
        elif is_beyond:
            verdict = "warned"
        elif check == "lost" and (unusual := _usual_loss_exceeded(seen, observed)):
            verdict, words = "warned", f"{words} ({unusual})"
        findings.append(Finding(check, observed, limit, verdict, seen.against, words))
    return findings


def refusal_of(findings: Iterable[Finding]) -> str | None:
    """What to tell a person whose snapshot is held: the first finding, the others, the way out."""
    held = [finding for finding in findings if finding.verdict == "held"]
    if not held:
        return None
    others = "".join(f", {each.check} {percent(each.observed)}" for each in held[1:])
    also = others and f"; held as well{others.replace(',', ':', 1)}"
    accept = json.dumps({"accept": [each.check for each in held]})
    return f"{held[0].words}{also}; mend the source, or if that is right, run again with {accept}"


def _look(seen: Seen, limits: Mapping[str, float | None]) -> dict[str, _Raw]:
    if seen.against is None:
        return dict.fromkeys(CHECKS, _Raw(None, "there is no earlier run to compare with"))
    found = {
        "lost": _compare_numbers(seen, "lost", limits),
        "new": _compare_numbers(seen, "new", limits),
        "columns": _compare_columns(seen),
        "left_out": _compare_left_out(seen, limits),
        "stale": _Raw(0.0, "no earlier run that was looked at had these files"),
    }
    if seen.same_as is not None:
        words = (
            f"{seen.what} is the file of run {seen.same_as}, byte by byte, and run {seen.against} had another"
        )
        found["stale"] = _Raw(1.0, words, is_beyond=True)
    if seen.matched is None:
        why = f"the records of run {seen.against} have no digests of this kind, only their number is known"
        return {**dict.fromkeys(CHECKS, _Raw(None, why)), **found}
    found |= dict(_look_at_matched(seen, seen.matched, limits))
    found |= dict(_look_for_causes(seen.moved, limits))
    found["format"] = _look_at_format(seen, seen.matched, limits)
    return found


def _exceeds(observed: float, limit: float | None) -> bool:
    return limit is not None and observed > limit


def _usual_loss_exceeded(seen: Seen, observed: float | None) -> str:
    """Say which usual loss is exceeded by a snapshot that loses no more than is allowed; empty if none is."""
    if observed is None or seen.lost < MIN_RECORDS:
        return ""
    usual = max(WARN_LOST, WARN_FACTOR * seen.most_lost)
    if observed <= usual:
        return ""
    of_runs = f", {WARN_FACTOR:g} times the most of the runs before" if usual > WARN_LOST else ""
    return f"{percent(observed)}, more than the {percent(usual)} that are usual{of_runs}"


def _compare_numbers(seen: Seen, check: str, limits: Mapping[str, float | None]) -> _Raw:
    n, of = (seen.lost, seen.n_before) if check == "lost" else (seen.new, seen.n_now)
    fraction = n / max(1, of)
    least = "" if seen.matched else "at least "
    if check == "lost":
        words = f"{least}{n:,} of {of:,} records of run {seen.against} are missing in {seen.what}"
    else:
        words = f"{least}{n:,} of {of:,} records of {seen.what} are not in run {seen.against}"
    return _Raw(fraction, words, n >= MIN_RECORDS and _exceeds(fraction, limits[check]))


def _compare_columns(seen: Seen) -> _Raw:
    came = [name for name in seen.columns_now if name not in seen.columns_before]
    went = [name for name in seen.columns_before if name not in seen.columns_now]
    told = [f"{what}: {', '.join(names)}" for names, what in ((came, "new"), (went, "gone")) if names]
    words = f"the files have other columns than in run {seen.against}: {'; '.join(told)}"
    return _Raw(len(came) + len(went), words if told else "the files have the same columns", bool(told))


def _compare_left_out(seen: Seen, limits: Mapping[str, float | None]) -> _Raw:
    if seen.left_out_now is None or seen.left_out_before is None:
        return _Raw(None, "no record is left out, or the two runs have other conditions")
    difference = round(abs(seen.left_out_now - seen.left_out_before), 12)  # 0.07 - 0.06 is more than 0.01
    now, before = percents(seen.left_out_now, seen.left_out_before)
    words = f"{now} of the records are left out, in run {seen.against} {before}: a difference"
    return _Raw(difference, words, _exceeds(difference, limits["left_out"]))


def _look_at_matched(
    seen: Seen, matched: Matched, limits: Mapping[str, float | None]
) -> Iterator[tuple[str, _Raw]]:
    kept = max(1, matched.kept)
    of_kept = f"of {matched.kept:,} records that stayed"
    fraction = matched.updated / kept
    most = sorted(seen.changed, key=lambda name: (-seen.changed[name], name))[:3]
    which = ", ".join(f"{name} in {seen.changed[name]:,}" for name in most if seen.changed[name])
    words = f"{matched.updated:,} {of_kept} have another value"
    if seen.n_updated:
        which = which or "no column that both runs have in one type"
        words += f"; of {seen.n_updated:,} that were looked at: {which}"
    yield (
        "updated",
        _Raw(fraction, words, matched.updated >= MIN_RECORDS and _exceeds(fraction, limits["updated"])),
    )
    fraction = matched.moved / kept
    is_beyond = matched.moved >= MIN_RECORDS and _exceeds(fraction, limits["moved"])
    yield "moved", _Raw(fraction, f"{matched.moved:,} {of_kept} are elsewhere", is_beyond)
    fraction = matched.taken_over / max(1, seen.n_now)
    words = f"{matched.taken_over:,} of {seen.n_now:,} records stand where one with another key stood"
    is_beyond = matched.taken_over >= MIN_RECORDS and _exceeds(fraction, limits["keys"])
    guess = ", so the keys seem to be written or given otherwise" if is_beyond else ""
    yield "keys", _Raw(fraction, words + guess, is_beyond)
    if matched.distance is None:
        yield "order", _Raw(None, "there are too many records to compare their order")
    else:
        words = (
            f"the order differs by {matched.distance:.2f}: 0 is the same, 0.67 a random one, 1 the reverse"
        )
        yield "order", _Raw(matched.distance, words)


def _look_for_causes(moved: Values, limits: Mapping[str, float | None]) -> Iterator[tuple[str, _Raw]]:
    causes = find_causes(moved)
    few = f"fewer than {MIN_MOVED} records moved, or their coordinates are not comparable"
    for check in CAUSES:
        if check not in causes:
            yield check, _Raw(None, few)
            continue
        n, of, words = causes[check]
        words += f" in {n:,} of {of:,} moved records" if n else ""
        yield check, _Raw(n / of, words, _exceeds(n / of, limits[check]))


def _look_at_format(seen: Seen, matched: Matched, limits: Mapping[str, float | None]) -> _Raw:
    before, now = seen.updated.before, seen.updated.now
    if not before.size:
        return _Raw(None, "too few records were updated to look at how their numbers are written")
    is_changed = ~np.isnan(before) & ~np.isnan(now) & (before != now)
    is_tiny = is_changed & (np.abs(now - before) < TINY_CHANGE * np.maximum(np.abs(now), np.abs(before)))
    tiny, changed = int(is_tiny.sum()), int(is_changed.sum())
    fraction = float(is_tiny.any(axis=1).mean()) * matched.updated / max(1, matched.kept)
    words = f"{tiny:,} of {changed:,} changed numbers differ by less than a millionth of their value"
    is_beyond = tiny >= max(MIN_RECORDS, TINY_FRACTION * changed) and _exceeds(fraction, limits["format"])
    if is_beyond:
        words += ", so they seem to be written with other digits, which decimals in the contract would round"
    return _Raw(fraction, words, is_beyond)
