"""What an experiment gives: claims with their verdicts, tables, pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

VERDICTS = {True: "holds", False: "does not hold", None: "cannot be judged"}


class Claim(NamedTuple):
    """A sentence of the text and what becomes of it.

    Parameters
    ----------
    text : the claim, with the text's numbers.
    ours : the numbers that were found here.
    verdict : whether it holds; ``None``: it cannot be judged.
    expected : the verdict of the runs before; another one is a change that somebody should look at.
    """

    text: str
    ours: str
    verdict: bool | None
    expected: bool | None

    @property
    def is_as_expected(self) -> bool:
        return self.verdict == self.expected


class Line(NamedTuple):
    """A curve; ``y`` may hold NaN where there is nothing."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


class Picture(NamedTuple):
    """Curves over one axis. ``name`` is that of the file, without its ending."""

    name: str
    caption: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    is_log_x: bool = False
    is_log_y: bool = True


class Table(NamedTuple):
    """Rows of text below a caption."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


Counts = Mapping[str, Sequence[int]]
"""Whole numbers by what is counted: words before a colon say of what, those behind it name the numbers."""


class Result(NamedTuple):
    """All that one experiment shows.

    Parameters
    ----------
    claims, pictures, tables : for the page.
    timed : tables of seconds, which another machine finds otherwise.
    counts : what every machine must find, to the last digit.
    """

    claims: Sequence[Claim]
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    timed: Sequence[Table] = ()
    counts: Counts = MappingProxyType({})


class Experiment(NamedTuple):
    """One or several figures.

    Parameters
    ----------
    name : for ``--only``.
    title : for the page.
    setting : data and parameters, in a sentence or two.
    run : does it.
    run_few : does it on few rows, in about a second, for the tests; None: is not tested so.
    """

    name: str
    title: str
    setting: str
    run: Callable[[], Result]
    run_few: Callable[[], Result] | None = None


def short(value: float) -> str:
    """Three digits, as people write them."""
    return f"{value:,.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


def within(found: float, expected: float, ratio: float) -> bool:
    """Whether both are within a factor of each other."""
    return max(found, expected) <= ratio * min(found, expected)
