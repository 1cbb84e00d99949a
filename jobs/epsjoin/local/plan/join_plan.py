"""The plan of a join: everything besides rows that is needed to spread rows and to join parts."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bytes, Floats, Ints
from epsjoin.kernels.plan.cuts import CutTree
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan.keys import CodeKey, Key, MaskKey
from epsjoin.local.plan.sizes import row_bytes
from epsjoin.local.plan.split_rules.encode import Space
from epsjoin.local.plan.split_rules.own_rule import Rule
from epsjoin.local.plan.split_rules.rules import SplitRule, make_split_rule, rule_from_json
from epsjoin.local.scale import Scale, ScaledMetric


class ExpectedParts(NamedTuple):
    """What a plan expects of each of its parts, made by :mod:`epsjoin.local.plan.expectation.expected_parts`.

    Parameters
    ----------
    rows : (n_parts,) float64, replicas.
    pairs : (n_parts,) float64, pairs of the result; their sum is the plan's ``expected_pairs``.
    seconds : (n_parts,) float64, of one core, by the costs that cuts are chosen by; only ratios matter.
    """

    rows: Floats
    pairs: Floats
    seconds: Floats


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """All that ``replicate`` and ``join_part`` need besides rows; a few KB.

    Parameters
    ----------
    kind : "planned" or "regular".
    eps : threshold in the metric's unit.
    metric, p : see :func:`epsjoin.local.metric.get_metric`; p is None except for minkowski.
    n_parts : number of parts, numbered from 0; may be fewer than were aimed at.
    dimensions : coordinates of a point.
    low : (e,) float64, lower corner of the sample's bounding box in embedded coordinates.
    width : its largest side. Points outside the box are no trouble.
    tree : planned cuts, else None.
    axes : (a,) int64, axes in use: of the tree (e and more: its directions), or of the codes, in code order.
    levels : regular cuts: the deepest level that a cube of the sample reaches; 0 for planned cuts.
    replication_budget : rows per point, see :class:`Cuts`.
    rule, decisions : regular cuts: see :class:`Cuts`; the rule is None for planned cuts.
    boundaries : (n_parts - 1, w) uint8, regular cuts: the first key of each part but part 0.
    expected_rows : replicas in all parts.
    expected_part_rows : replicas in the largest part.
    expected_candidates : pairs of rows that are compared: the papers' number, the counter ``candidates`` of
        :func:`epsjoin.local.join.parts.join_part`.
    expected_pairs : pairs in the result.
    sample_rows : rows of the sample; the expectations are scaled from them.
    scale : one eps per dimension and weights; None without.
    parts : what is expected of each part; None if it was not needed, and in plans of earlier versions.
    """

    kind: str
    eps: float
    metric: str
    p: float | None
    n_parts: int
    dimensions: int
    low: Floats
    width: float
    tree: CutTree | None
    axes: Ints
    levels: int
    replication_budget: float
    rule: Rule | None
    decisions: str
    boundaries: Bytes
    expected_rows: float
    expected_part_rows: float
    expected_candidates: float
    expected_pairs: float
    sample_rows: int
    scale: Scale | None = None
    parts: ExpectedParts | None = None

    def to_json(self) -> str:
        """Write the plan as one JSON object; :meth:`from_json` reads the same plan, bit for bit.

        Floats are written by ``repr``, which is exact; boundaries in hexadecimal.

        Raises
        ------
        ArgumentError
            The split rule is a function, which has no text.
        """
        tree = None if self.tree is None else {name: a.tolist() for name, a in self.tree._asdict().items()}
        budget = None if math.isinf(self.replication_budget) else self.replication_budget
        scale = {} if self.scale is None else {"scale": list(self.scale)}
        parts = None if self.parts is None else self.parts._asdict()
        return json.dumps(
            {
                **scale,
                **{name: getattr(self, name) for name in _PLAIN_FIELDS},
                "low": self.low.tolist(),
                "axes": self.axes.tolist(),
                "tree": tree,
                "parts": None if parts is None else {name: a.tolist() for name, a in parts.items()},
                "boundaries": [row.tobytes().hex() for row in self.boundaries],
                "key_bytes": self.boundaries.shape[1],
                "replication_budget": budget,  # JSON has no infinity
                "rule": None if self.rule is None else _rule_text(self.rule),
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> JoinPlan:
        """Read the plan that :meth:`to_json` wrote.

        Raises
        ------
        ArgumentError
            The text is no such plan.
        """
        try:
            read = json.loads(text)
            tree = None if read["tree"] is None else _tree_from_lists(read["tree"])
            keys = [np.frombuffer(bytes.fromhex(key), np.uint8) for key in read["boundaries"]]
            budget, scale, parts = read["replication_budget"], read.get("scale"), read.get("parts")
            return cls(
                **{name: read[name] for name in _PLAIN_FIELDS},
                low=np.array(read["low"], np.float64),
                axes=np.array(read["axes"], np.int64),
                tree=tree,
                boundaries=np.array(keys, np.uint8).reshape(len(keys), read["key_bytes"]),
                replication_budget=math.inf if budget is None else budget,
                rule=None if read["rule"] is None else rule_from_json(read["rule"]),
                scale=None if scale is None else Scale(*scale),
                parts=None if parts is None else _parts_from_lists(parts),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(f"this is no join plan: {error}") from error

    @property
    def n_stored_parts(self) -> int:
        """Number of values of the column ``part`` of ``replicas``: a part each."""
        return self.n_parts

    @property
    def expected_stored_rows(self) -> float:
        """Rows of the table ``replicas`` of a run: the replicas in all parts."""
        return self.expected_rows

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of a part in a worker's memory."""
        return row_bytes(self.dimensions)

    @property
    def expected_seconds(self) -> float:
        """Seconds that one core sweeps, by the costs that the cuts were chosen by; a rough guess."""
        return self.key.seconds(
            self.expected_rows, len(self.low), self.expected_candidates, self.expected_pairs
        )

    @property
    def key(self) -> Key:
        """The keys of the rows: how rows are assigned to parts, and how a part is joined."""
        if self.tree is not None:
            return MaskKey(self.tree)
        rule = self.rule if self.rule is not None else make_split_rule(0, 0, 1.0)
        eps = self.get_metric().embedded_eps(self.eps)
        space = Space(self.axes, self.low, self.width, eps, self.levels, self.decisions)
        return CodeKey(space, rule, self.boundaries)

    def get_metric(self) -> Metric:
        """Make the plan's metric."""
        metric = get_metric(self.metric, self.p)
        return metric if self.scale is None else ScaledMetric(metric.name, metric.p, self.scale)


_PLAIN_FIELDS = (
    *("kind", "eps", "metric", "p", "n_parts", "dimensions", "width", "levels", "decisions"),
    *("expected_rows", "expected_part_rows", "expected_candidates", "expected_pairs", "sample_rows"),
)


def _rule_text(rule: Rule) -> str:
    if isinstance(rule, SplitRule):
        return rule.to_json()
    raise ArgumentError("a plan with a split rule of your own cannot be written as text: it is a function")


def _parts_from_lists(columns: dict[str, list[float]]) -> ExpectedParts:
    return ExpectedParts(*(np.array(columns[name], np.float64) for name in ExpectedParts._fields))


def _tree_from_lists(columns: dict[str, list[Any]]) -> CutTree:
    kinds = {**dict.fromkeys(CutTree._fields, np.int64), "position": np.float64, "basis": np.float64}
    arrays: dict[str, Any] = {name: np.array(columns[name], kind) for name, kind in kinds.items()}
    basis = arrays["basis"]
    return CutTree(**{**arrays, "basis": basis if basis.ndim == 2 else np.empty((0, 0))})
