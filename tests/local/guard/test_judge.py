"""The guard's judgement on arrays and numbers: each check holds above its limit, and not at it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from epsjoin.contracts.sources import GUARD
from epsjoin.kernels.arrays import Floats
from epsjoin.local.guard import causes
from epsjoin.local.guard.judge import CHECKS, HOLDING, Finding, judge, refusal_of
from epsjoin.local.guard.seen import Matched, Seen, Values
from epsjoin.local.snapshots import Digests, count_common, find_difference, order_distance, places_given_up

SAME = Matched(kept=10_000, updated=0, moved=0, taken_over=0, distance=0.0)
SEEN = Seen("a.csv", "2023-05-01", 10_000, 10_000, SAME, columns_before=("a",), columns_now=("a",))
NAMES = ("lat", "lon")
NUMBERS = {"lost": 200 / 1000, "new": 800 / 1600, "updated": 80 / 800, "moved": 40 / 800, "keys": 64 / 1600}


def found_in(seen: Seen, limits: Any = GUARD) -> dict[str, Finding]:
    return {finding.check: finding for finding in judge(seen, limits)}


def unusual(seen: Seen, limits: Any = GUARD) -> dict[str, str]:
    return {check: f.verdict for check, f in found_in(seen, limits).items() if f.verdict != "ok"}


def kept(n: int, before: int, now: int) -> Seen:
    return replace(SEEN, n_before=before, n_now=now, matched=replace(SAME, kept=n))


def matched(**what: int) -> Seen:
    return replace(SEEN, matched=replace(SAME, **what))


def few(**what: int) -> Seen:
    return replace(SEEN, n_before=12, n_now=12, matched=replace(SAME, kept=12, **what))


@pytest.mark.parametrize(
    ("at_the_limit", "above", "expected"),
    [
        (
            replace(kept(9500, 10_000, 9500), most_lost=1.0),
            replace(kept(9499, 10_000, 9499), most_lost=1.0),
            {"lost": "held"},
        ),
        (kept(1, 10, 1), kept(0, 10, 0), {"lost": "held"}),  # nine records hold nothing
        (kept(10_000, 10_000, 20_000), kept(9999, 9999, 20_000), {"new": "held"}),
        (matched(moved=2000, updated=2000), matched(moved=2001, updated=2001), {"moved": "held"}),
        (matched(updated=5000), matched(updated=5001), {"updated": "warned"}),
        (matched(taken_over=5000), matched(taken_over=5001), {"keys": "held"}),
        (
            replace(SEEN, left_out_before=0.5, left_out_now=0.5078125),
            replace(SEEN, left_out_before=0.5, left_out_now=0.515625),
            {"left_out": "held"},
        ),
        (
            replace(SEEN, left_out_before=0.5, left_out_now=0.4921875),
            replace(SEEN, left_out_before=0.5, left_out_now=0.484375),
            {"left_out": "held"},
        ),
        (SEEN, replace(SEEN, same_as="2022-05-01"), {"stale": "warned"}),
        (SEEN, replace(SEEN, columns_now=("a", "b")), {"columns": "warned"}),
        (SEEN, replace(SEEN, columns_now=()), {"columns": "warned"}),
        (kept(9950, 10_000, 9950), kept(9949, 10_000, 9949), {"lost": "warned"}),
        (
            replace(kept(9900, 10_000, 9900), most_lost=0.01 / 3),
            replace(kept(9899, 10_000, 9899), most_lost=0.01 / 3),
            {"lost": "warned"},
        ),
        (kept(991, 1000, 991), kept(990, 1000, 990), {"lost": "warned"}),
        # of few records nine may be as they will
        (few(updated=9), few(updated=10), {"updated": "warned"}),
        (few(moved=9), few(moved=10), {"moved": "held"}),
        (few(taken_over=9), few(taken_over=10), {"keys": "held"}),
    ],
)
def test_judge__finds_unusual_what_is_above_a_limit_and_not_what_is_at_it(
    at_the_limit: Seen, above: Seen, expected: dict[str, str]
) -> None:
    assert unusual(at_the_limit) == {}
    assert unusual(above) == expected


def moved(now: Floats, before: Floats) -> Seen:
    some = Values(NAMES, before, now)
    return replace(matched(moved=len(now), updated=len(now)), moved=some)


def places(n: int) -> Floats:
    return np.random.default_rng(0).uniform(10, 80, (n, 2))


def change(n: int, n_changed: int, by: Any) -> Seen:
    """Of n moved records so many by the same cause, the others elsewhere."""
    before, now = places(n), np.random.default_rng(1).uniform(-80, -10, (n, 2))
    now[:n_changed] = before[:n_changed]
    now[:n_changed] = by(now[:n_changed])
    return moved(now, before)


CAUSES = {
    "scale": (
        lambda p: p * [1.0, 1.852],
        90,
        91,
        "lon is 1.852 times what it was",
    ),
    "shift": (lambda p: p + np.array([3.0, 0.0]), 90, 91, "lat is 3 more than it was"),
    "sign": (lambda p: p * [1, -1], 90, 91, "lon has the other sign"),
    "swapped": (lambda p: p[:, ::-1], 50, 51, "lat and lon have changed places"),
}


@pytest.mark.parametrize("check", CAUSES)
def test_judge__finds_the_one_cause_of_most_moves(check: str) -> None:
    by, at, above, words = CAUSES[check]
    assert unusual(change(100, at, by)) == {}
    assert unusual(change(100, above, by)) == {check: "held"}
    finding = found_in(change(100, above, by))[check]
    assert finding.words.startswith(f"{words} in {above} of 100 moved records (")
    assert finding.observed == above / 100
    assert unusual(change(99, 99, by)) == {}, "fewer than a hundred moves have no common cause"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_judge__finds_the_cause_in_whichever_coordinate_it_is(place: int) -> None:
    """The others are anything; two others have changed places in a few records."""
    rng = np.random.default_rng(3)
    before = rng.uniform(10, 80, (100, 3))
    before[:5] = 0.0  # nothing is so many times 0
    names = ("a", "b", "c")
    for check, by in (("scale", lambda x: 2 * x), ("shift", lambda x: x + 2), ("sign", lambda x: -x)):
        now = rng.uniform(10, 80, (100, 3))
        now[:, place] = by(before[:, place])
        found = found_in(replace(matched(moved=100, updated=100), moved=Values(names, before, now)))[check]
        assert (found.observed, found.words[0]) == (1.0 if check == "shift" else 0.95, names[place])
    one, other = sorted({0, 1, 2} - {place})
    now = rng.uniform(10, 80, (100, 3))
    now[:60, one], now[:60, other] = before[:60, other], before[:60, one]
    now[60:, place], now[60:, other] = before[60:, other], before[60:, place]
    now[60:80, other] = before[60:80, one]
    before[:10] = now[:10] = 5.0  # the same either way
    found = found_in(replace(matched(moved=100, updated=100), moved=Values(names, before, now)))["swapped"]
    assert found.observed == 0.5
    assert found.words.startswith(f"{names[one]} and {names[other]} have")


@pytest.mark.parametrize("check", ["scale", "shift", "sign"])
def test_judge__takes_changes_for_the_same_that_differ_by_a_thousandth_of_them(check: str) -> None:
    by = CAUSES[check][0]
    for apart, is_held in ((0.9e-3, True), (1.1e-3, False)):
        before = np.full((101, 2), 50.0)
        change_by = by(before) - before if check == "shift" else by(before) / before
        change_by[::2] *= np.where(change_by[::2] != (0 if check == "shift" else 1), 1 + apart, 1)
        now = before + change_by if check == "shift" else before * change_by
        held = {name for name, verdict in unusual(moved(now, before)).items() if verdict == "held"}
        assert (check in held) is is_held, apart


def test_judge__looks_at_as_many_moves_as_it_may_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "MAX_COMPARISONS", 4 * 150)
    assert " in 150 of 150 moved records" in found_in(change(200, 200, CAUSES["sign"][0]))["sign"].words


@pytest.mark.parametrize(("before", "now"), [(6, 7), (3, 4), (7, 6), (13, 14), (1, 2), (60, 61)])
def test_judge__holds_nothing_at_the_limit_though_floats_are_above_it(before: int, now: int) -> None:
    seen = replace(SEEN, left_out_before=before / 100, left_out_now=now / 100)
    assert unusual(seen) == {}
    (told,) = (
        f
        for f in judge(replace(seen, left_out_now=now / 100 + np.sign(now - before) * 1e-6), GUARD)
        if f.verdict != "ok"
    )
    assert told.words.endswith("(1.0001%, 1% are allowed)"), "what is above a limit does not look like it"


@pytest.mark.parametrize(("check", "change"), [("sign", -1.0), ("scale", 1000.0), ("shift", None)])
def test_causes__of_a_minority_are_found(check: str, change: float | None) -> None:
    random = np.random.default_rng(4)
    before = random.uniform(1, 2, (1000, 2))
    now = before + random.normal(0, 0.3, before.shape)
    some = random.permutation(1000)[:400]
    now[some] = before[some]
    now[some, 1] = before[some, 1] + 7.0 if change is None else before[some, 1] * change
    found = causes.find_causes(Values(NAMES, before, now))
    assert found[check].n == pytest.approx(400, abs=3)
    assert found[check].words.startswith("lon ")
    others = {"sign", "scale", "shift", "swapped"} - {check}
    assert all(found[other].n < 20 for other in others)


def test_judge__tells_apart_how_much_two_runs_leave_out() -> None:
    told = found_in(replace(SEEN, left_out_before=0.0, left_out_now=1e-6))["left_out"].words
    assert told.startswith("0.0001% of the records are left out, in run 2023-05-01 0%: a difference")
    told = found_in(replace(SEEN, left_out_before=2 / 3, left_out_now=2 / 3))["left_out"].words
    assert told.startswith("66.7% of the records are left out, in run 2023-05-01 66.7%: a difference")


def test_judge__compares_what_is_left_out_where_both_runs_tell_it() -> None:
    for one in ({"left_out_before": 0.5}, {"left_out_now": 0.5}):
        assert found_in(replace(SEEN, **one))["left_out"].observed is None


def test_judge__observes_fractions_of_what_stayed_was_or_is_there() -> None:
    matched = Matched(kept=800, updated=80, moved=40, taken_over=64, distance=0.25)
    seen = replace(SEEN, n_before=1000, n_now=1600, matched=matched)
    found = found_in(replace(seen, columns_before=("a", "b"), columns_now=("a", "c", "d")))
    observed = {check: found[check].observed for check in (*NUMBERS, "columns", "order")}
    assert observed == NUMBERS | {"columns": 3, "order": 0.25}


def test_refusal__begins_with_what_says_most() -> None:
    seen = replace(kept(0, 100, 100), matched=replace(SAME, kept=0, taken_over=100))
    seen = replace(seen, left_out_before=0.0, left_out_now=0.5)
    findings = judge(seen, GUARD)
    assert [f.check for f in findings if f.verdict == "held"] == ["keys", "left_out", "lost", "new"]
    refusal = refusal_of(findings) or ""
    assert refusal.startswith("100 of 100 records stand where one with another")
    assert "; held as well: left_out 50%, lost 100%, new 100%; mend" in refusal
    assert refusal.endswith('{"accept": ["keys", "left_out", "lost", "new"]}')


def written(n_tiny: int, n_other: int, updated: int) -> Seen:
    before = np.full((n_tiny + n_other, 1), 8.0)
    now = before.copy()
    now[:n_tiny] += 7e-6
    now[n_tiny:] += 9e-6
    return replace(matched(updated=updated), updated=Values(("x",), before, now))


def test_judge__tells_other_digits_from_other_values() -> None:
    assert unusual(written(100, 0, updated=500)) == {}
    assert unusual(written(100, 0, updated=501)) == {"format": "held"}
    assert unusual(written(90, 10, updated=1000)) == {"format": "held"}
    assert unusual(written(89, 11, updated=1000)) == {}
    assert unusual(written(9, 0, updated=1000)) == {}, "nine numbers are too few"
    seen = written(100, 0, updated=1000)
    before, now = (np.repeat(each, 2, axis=1) for each in (seen.updated.before, seen.updated.now))
    now[:, 1] = before[:, 1]
    assert unusual(replace(seen, updated=Values(NAMES, before, now))) == {"format": "held"}, "one is enough"
    now[:, 1] = np.nan
    assert unusual(replace(seen, updated=Values(NAMES, before, now))) == {"format": "held"}, "no number"
    assert "decimals in the contract" in found_in(written(100, 0, updated=501))["format"].words


def test_judge__holds_nothing_without_limits_and_lets_pass_what_is_accepted() -> None:
    seen = kept(0, 10_000, 10_000)
    assert unusual(seen, dict.fromkeys(GUARD)) == {"lost": "warned"}
    assert unusual(seen) == {"lost": "held", "new": "held"}
    findings = judge(seen, GUARD, ["lost"])
    assert [f.check for f in findings] == list(CHECKS)
    assert {f.check: f.verdict for f in findings if f.verdict != "ok"} == {"lost": "accepted", "new": "held"}
    assert (refusal_of(findings) or "").endswith('run again with {"accept": ["new"]}')
    assert refusal_of(judge(seen, GUARD, HOLDING)) is None


def test_judge__says_which_usual_loss_is_exceeded() -> None:
    seen = kept(9949, 10_000, 9949)
    lost = found_in(seen)["lost"]
    assert (lost.verdict, lost.limit) == ("warned", 0.05)
    assert lost.words.endswith("are missing in a.csv (0.51%, more than the 0.5% that are usual)")
    lost = found_in(replace(seen, n_now=9600, most_lost=0.01, matched=None))["lost"]
    assert lost.words.endswith("(4%, more than the 3% that are usual, 3 times the most of the runs before)")


def test_judge__compares_numbers_alone_where_records_are_not_matched() -> None:
    seen = Seen("a.csv", "2023-05-01", 10_000, 9499)
    assert unusual(seen) == {"lost": "held"}
    assert unusual(replace(seen, n_now=9500)) == {"lost": "warned"}
    assert unusual(replace(seen, n_now=20_001)) == {"new": "held"}
    assert found_in(seen)["moved"].observed is None
    assert set(unusual(Seen("a.csv"))) == set()


def snapshot(rows: dict[int, tuple[int, int]]) -> Digests:
    """Records by id: what stands for their values, and for their places."""
    words = np.array([[[a, a], [b, b]] for a, b in rows.values()], np.uint64).reshape(-1, 2, 2)
    return Digests(np.array(list(rows), np.int64), words[:, 0], words[:, 1])


def test_difference__is_that_of_two_dictionaries() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        old, new = (
            {
                int(i): (int(rng.integers(3)), int(rng.integers(3)))
                for i in rng.permutation(12)[: rng.integers(13)]
            }
            for _ in range(2)
        )
        before, now = snapshot(old), snapshot(new)
        found = find_difference(before, now)
        both = [i for i in new if i in old]
        matching = found.matching
        assert before.ids[matching.deleted].tolist() == [i for i in old if i not in new]
        assert now.ids[matching.inserted].tolist() == [i for i in new if i not in old]
        assert before.ids[matching.before].tolist() == now.ids[matching.now].tolist() == both
        assert found.is_updated.tolist() == [old[i][0] != new[i][0] for i in both]
        assert found.is_moved.tolist() == [old[i][1] != new[i][1] for i in both]
        moves = [i for i in both if old[i][1] != new[i][1]]
        left = [old[i][1] for i in [*(old.keys() - new.keys()), *moves]]
        taken = [new[i][1] for i in [*(new.keys() - old.keys()), *moves]]
        common = sum(min(left.count(place), taken.count(place)) for place in range(3))
        assert count_common(*places_given_up(before, now, found)) == common


def test_order_distance__is_0_of_the_same_order_and_1_of_the_reverse() -> None:
    rows = dict.fromkeys(range(100), (0, 0))
    back = dict.fromkeys(reversed(range(100)), (0, 0))
    assert order_distance(find_difference(snapshot(rows), snapshot(rows)).matching) == 0.0
    assert order_distance(find_difference(snapshot(rows), snapshot(back)).matching) == 1.0
    assert order_distance(find_difference(snapshot({}), snapshot({})).matching) == 0.0
    half = snapshot(dict.fromkeys(reversed(range(50)), (0, 0)))
    for one, other in ((half, snapshot(rows)), (snapshot(rows), half)):
        assert order_distance(find_difference(one, other).matching) == 0.25, "in proportion to the larger"
