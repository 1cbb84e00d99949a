"""The nearest numbers of two sorted columns, and what finding them looks at."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.bestmatch.criteria import nearest_begins


def runs_of(left, right, eps, find=nearest_begins):
    begins, ends = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    pairs = find(left, right, eps, begins, ends)
    return pairs, [list(range(*ends)) for ends in zip(begins.tolist(), ends.tolist(), strict=True)]


def test_nearest_begins__finds_all_that_are_nearest():
    random = np.random.default_rng(0)
    for case in range(300):
        span = 2 + case % 9
        left, right = (np.sort(random.integers(0, span, random.integers(0, 30)) * 0.1) for _ in range(2))
        eps = float(random.choice([0.0, 0.1, 0.3, np.inf]))
        expected = []
        for x in left:
            far = np.abs(x - right)
            expected.append(np.flatnonzero((far == far.min(initial=np.inf)) & (far <= eps)).tolist())
        assert runs_of(left, right, eps) == (sum(map(len, expected)), expected)


class Counted(np.ndarray):
    """Numbers that count how often one is read."""

    reads = 0

    def __getitem__(self, place):
        Counted.reads += 1
        return super().__getitem__(place)


def test_nearest_begins__does_not_look_at_each_of_many_equal_numbers():
    find = getattr(nearest_begins, "py_func", nearest_begins)
    left = np.sort(np.concatenate((np.linspace(-1.0, 1.0, 201), np.zeros(800))))
    right = np.repeat([-5.0, 0.0, 5.0], 1000).view(Counted)
    Counted.reads = 0
    pairs, runs = runs_of(left, right, 2.0, find)
    assert pairs == 1000 * len(left)
    assert all(run[0] == 1000 and run[-1] == 1999 for run in runs)
    assert Counted.reads <= 3000 + 60 * len(left)
