"""Settings of a plan: how a join is cut into parts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Ints
from epsjoin.local.arguments import as_number, check_choice, check_count, check_seed
from epsjoin.local.plan.split_rules.own_rule import OwnRule, Rule
from epsjoin.local.plan.split_rules.rules import SplitRule, make_split_rule, parse_split_rule
from epsjoin.params import CUTS, DECISIONS


@dataclass(frozen=True)
class Cuts:
    """How to cut a join into parts.

    Parameters
    ----------
    kind : "planned" (the default) cuts where a sample shows that the parts will have equal work; "regular"
        halves the space again and again, as the papers do. The pairs are the same.
    n_parts : number of parts, 1 by default. There are fewer if the points or ``replication_budget`` do not
        allow this many.
    least_part_seconds : minimum expected work of a part, in seconds; 0 by default. Where parts would have
        less, there are fewer of them, since a part also takes time to plan and to start.
    k, msl : only for regular cuts: when the cube of a point is split. A cube is split at a level if it
        crosses at most k cuts of that level, and down to level msl. By default both are chosen on the sample,
        with k up to 5, msl up to 4 (or the deepest level), and at most 32 rows for a cube.
    replication_budget : maximum number of rows that a point may become, 4 by default; may be infinite. For
        planned cuts, and for regular cuts whose k or msl is chosen, it limits the average over the sample.
        For other regular cuts it limits each single point, and rows that are carried to a further part do not
        count.
    sample_rows : number of rows of the sample on which the join is planned, 20,000 by default.
    seed : seed of the sample, 0 by default.
    rule : only for regular cuts: a split rule in place of ``k`` and ``msl``, or its text, such as
        ``"k<=3 and not level>2"`` or ``"k<=3 and generation<=1"``. ``replication_budget`` limits it, too.
    decisions : only for regular cuts: "inside" (the default) and "global" decide all dimensions of a level
        together, as in a quadtree; "local" decides one after the other, as in a binary tree. "inside" makes
        the rows of "global" and compares fewer of them: a cube that stops gets the smallest cell that holds
        it, which may lie inside a level. "global" is what the papers do.
    most_part_rows : maximum number of rows of a part, as estimated from the sample. There are more parts than
        ``n_parts`` where it is necessary. By default there is no limit.

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
    decisions: str = "inside"
    most_part_rows: int | None = None
    least_part_seconds: float = 0.0

    def __post_init__(self) -> None:
        check_choice("cuts", self.kind, CUTS)
        counts = {"n_parts": 1, "sample_rows": 1, "k": 0, "msl": 0, "most_part_rows": 1}
        for name, least in counts.items():
            if getattr(self, name) is not None or name in ("n_parts", "sample_rows"):
                # as Python's int: NumPy's short integers overflow in what is computed from them
                object.__setattr__(self, name, check_count(name, getattr(self, name), least))
        check_seed("seed", self.seed)
        if not 0.0 <= as_number(self.least_part_seconds) < math.inf:
            raise ArgumentError(
                f"least_part_seconds must be finite and at least 0, not {self.least_part_seconds!r}"
            )
        if not as_number(self.replication_budget) >= 1.0:
            raise ArgumentError(
                f"replication_budget must be at least 1 row per point, not {self.replication_budget!r}"
            )
        for name in ("least_part_seconds", "replication_budget"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)):  # such as a Decimal
                object.__setattr__(self, name, as_number(value))
        check_choice("decisions", self.decisions, DECISIONS)
        self.split_rule()

    def split_rule(self) -> Rule | None:
        """Make the rule for regular cuts, under the budget; None where :func:`plan_join` chooses k or msl.

        Raises
        ------
        ArgumentError
            ``rule`` is neither a rule nor the text of one.
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
