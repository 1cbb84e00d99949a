"""Settings of a plan: how a join is cut into parts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Ints
from epsjoin.local.arguments import check_count
from epsjoin.local.plan.encode import DECISIONS
from epsjoin.local.plan.rules import OwnRule, Rule, SplitRule, make_split_rule, parse_split_rule
from epsjoin.params import CUTS


@dataclass(frozen=True)
class Cuts:
    """How to cut a join into parts.

    Parameters
    ----------
    kind : "planned" (a tree fitted to a sample) or "regular" (the papers' halving). The pairs are the same.
    n_parts : parts to aim at; there are fewer when rows or the budget do not allow more.
    least_part_seconds : minimum of a part's expected seconds of work. Fewer parts are aimed at where parts
        would have less: to plan and to start them would take longer.
    k, msl : regular cuts: split where a cube crosses at most k cuts of a level, down to level msl. What is
        None is chosen on the sample: k up to 5, msl up to 4 or the deepest level, 32 rows of a cube at most.
    replication_budget : rows per point. Regular cuts: no cube becomes more rows than this before it is
        carried over part borders. Planned cuts, and regular ones with a chosen k or msl: the sample's
        average stays below it, carried rows included. May be infinite.
    sample_rows : rows of the sample on which the join is planned.
    seed : of the sample.
    rule : regular cuts: a split rule in place of ``k`` and ``msl``, or its text, such as
        ``"k<=3 and not level>2"``; the budget holds for it, too.
    decisions : regular cuts: "global" decides all dimensions of a level together (quadtree), "local" one
        after the other (binary tree).
    most_part_rows : maximum number of rows of a part, as far as the sample shows; more parts are made until
        no part has more. None: no limit.

    Raises
    ------
    ArgumentError
        A value is out of its range.

    Examples
    --------
    >>> str(Cuts("regular", k=1, msl=3).split_rule())
    'k<=1 and level<=3'
    >>> from epsjoin import self_join
    >>> len(self_join([[0.0], [1.0], [4.0]], eps=3.0, cuts=Cuts(n_parts=2)).left)  # as without cuts
    2
    """

    kind: str = "planned"
    n_parts: int = 1
    k: int | None = None
    msl: int | None = None
    replication_budget: float = 4.0
    sample_rows: int = 20_000
    seed: int = 0
    rule: Rule | str | None = None
    decisions: str = "global"
    most_part_rows: int | None = None
    least_part_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in CUTS:
            raise ArgumentError(f"cuts must be one of {', '.join(CUTS)}, not {self.kind!r}")
        for name, least in (("n_parts", 1), ("sample_rows", 1), ("seed", 0)):
            check_count(name, getattr(self, name), least)
        for name, least in (("k", 0), ("msl", 0), ("most_part_rows", 1)):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), least)
        if not 0.0 <= self.least_part_seconds < math.inf:
            raise ArgumentError(
                f"least_part_seconds must be finite and at least 0, not {self.least_part_seconds}"
            )
        if not self.replication_budget >= 1.0:
            raise ArgumentError(
                f"replication_budget must be at least 1 row per point, not {self.replication_budget}"
            )
        if self.decisions not in DECISIONS:
            raise ArgumentError(f"decisions must be one of {', '.join(DECISIONS)}, not {self.decisions!r}")
        self.split_rule()

    def split_rule(self) -> Rule | None:
        """Make the rule for regular cuts, under the budget; None where :func:`plan_join` chooses k or msl.

        Raises
        ------
        ArgumentError
            ``rule`` is no rule, or no text of one.
        """
        if self.rule is None:
            if self.k is None or self.msl is None:
                return None
            return make_split_rule(self.k, self.msl, self.replication_budget)
        rule = parse_split_rule(self.rule) if isinstance(self.rule, str) else self.rule
        if not isinstance(rule, (SplitRule, OwnRule)):
            raise ArgumentError(f"rule must be a split rule or its text, not {rule!r}")
        return rule.within(self.replication_budget)

    def sample(self, n_rows: int) -> Ints:
        """Draw the rows of the sample, ascending."""
        if n_rows <= self.sample_rows:
            return np.arange(n_rows)
        return np.sort(np.random.default_rng(self.seed).choice(n_rows, self.sample_rows, replace=False))
