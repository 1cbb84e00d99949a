"""Progress: shares that rise to one, a bar on stderr, and errors that end the join."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.join.arrays import iter_join, iter_self_join, join, self_join
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.progress import Progress

POINTS = np.random.default_rng(3).random((20_000, 2))
CUTS = {"none": None, "planned": Cuts(n_parts=4), "regular": Cuts("regular", n_parts=4)}


def shares_of(call):
    shares = []
    call(shares.append)
    return shares


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_joins__tell_rising_shares_that_end_with_one(n_jobs, cuts):
    options = {"n_jobs": n_jobs, "cuts": CUTS[cuts]}
    left, right = POINTS[:9000], POINTS[9000:]
    for shares in (
        shares_of(lambda tell: self_join(POINTS, 0.004, progress=tell, **options)),
        shares_of(lambda tell: list(iter_self_join(POINTS, 0.004, progress=tell, **options))),
        shares_of(lambda tell: join(left, right, 0.004, progress=tell, **options)),
        shares_of(lambda tell: join(left, right, 0.004, how="anti", progress=tell, **options)),
        shares_of(lambda tell: list(iter_join(left, right, 0.004, how="outer", progress=tell, **options))),
    ):
        assert len(shares) >= 4
        assert 0.0 < shares[0] < 0.5
        assert (np.diff(shares) > 0.0).all()
        assert shares[-1] == 1.0
        assert all(type(share) is float for share in shares)


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_self_join__of_few_rows_is_done_at_once(n, cuts):
    shares = shares_of(lambda tell: self_join(np.zeros((n, 2)), 1.0, progress=tell, cuts=CUTS[cuts]))
    assert shares[-1:] == [1.0]
    assert (np.diff(shares) > 0.0).all()


def test_self_join__draws_a_bar_on_stderr(capfd):
    self_join(POINTS[:3000], 0.004, progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "self_join 100%|" in shown.err
    assert shown.err.endswith("\n")
    join(POINTS[:100], POINTS[:100], 0.004, progress=True)
    assert "join 100%|" in capfd.readouterr().err


def test_self_join__draws_nothing_without_a_wish(capfd):
    self_join(POINTS[:3000], 0.004)
    assert capfd.readouterr() == ("", "")


def test_iter_self_join__closes_its_bar_when_it_is_left_early(capfd):
    batches = iter_self_join(POINTS, 0.01, progress=True, batch_rows=1000)
    next(batches)
    batches.close()
    shown = capfd.readouterr().err
    assert shown.endswith("\n")
    assert "100%" not in shown


@pytest.mark.parametrize("wish", ["yes", 1, 0.5])
def test_joins__refuse_a_wrong_wish_at_the_call(wish):
    for call in (
        lambda: self_join(POINTS, 0.1, progress=wish),
        lambda: iter_self_join(POINTS, 0.1, progress=wish),
        lambda: join(POINTS, POINTS, 0.1, progress=wish),
    ):
        with pytest.raises(ArgumentError, match=f"progress must be True, False or a function, not {wish!r}"):
            call()


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_self_join__stops_with_the_error_of_the_function(n_jobs, cuts):
    calls = []

    def stop(share):
        calls.append(share)
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        self_join(POINTS, 0.004, progress=stop, n_jobs=n_jobs, cuts=CUTS[cuts])
    assert len(calls) == 1
    assert calls[0] < 1.0


def test_self_join__does_not_tell_that_it_is_done_when_it_was_refused():
    shares = []
    with pytest.raises(BudgetError):
        self_join(POINTS, 0.004, max_pairs=500, progress=shares.append)
    assert 1.0 not in shares


def test_progress__tells_no_share_twice_and_none_that_falls():
    shares = []
    with Progress(shares.append, "test") as shown:
        for share in (0.0, 0.25, 0.25, 0.125, 0.5, 1.5, 1.0):
            shown.show(share)
    assert shares == [0.25, 0.5, 1.0]


def test_progress__closes_its_bar_also_after_an_error(capfd):
    shown = Progress(True, "test")  # kept: a bar that is forgotten closes itself
    shown.show(0.5)
    with pytest.raises(LookupError), shown:
        raise LookupError
    shown_text = capfd.readouterr().err
    assert "test  50%|" in shown_text
    assert shown_text.endswith("\n")
    del shown
