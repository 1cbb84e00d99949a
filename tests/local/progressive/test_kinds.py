"""Conditions 4.1 and 4.2 for every kind of join, what kinds refuse, and that the driver knows none."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.kernels.codes import is_prefix
from epsjoin.local.plan.split_rules.encode import encode
from epsjoin.local.progressive import driver
from epsjoin.local.progressive.kinds import columns
from epsjoin.local.progressive.kinds.columns import Band, Equi, Spatial, Temporal
from epsjoin.local.progressive.kinds.kind import JoinCondition, JoinKind
from epsjoin.local.progressive.kinds.points import PointsInCells
from epsjoin.local.progressive.kinds.similarity import Similarity
from epsjoin.local.progressive.kinds.sweep_areas import Decides
from epsjoin.local.progressive.rows import NO_RUN, SweepRows
from oracles import examples, progressive
from oracles import join as twin
from tests.local.progressive.cases import KINDS, Case, RowByRow, fitted, make_case


def keyed(case: Case, values: np.ndarray) -> tuple[Decides, SweepRows]:
    """All rows with their replicas, as they are written, by key."""
    checked = case.kind.check("rows", values)
    kind = fitted(case, checked, max(1, len(checked) // 6))
    row, key, mark = kind.keyed(checked, np.arange(len(checked)))
    none = np.full(len(row), NO_RUN, np.int32)
    rows = SweepRows(key, row, row, np.zeros(len(row), np.uint8), checked[row], mark, none)
    return kind if isinstance(kind, JoinKind) else RowByRow(kind), rows.sorted()


@examples(60)
@given(st.sampled_from(KINDS), st.sampled_from(twin.KINDS), st.integers(0, 2**16))
def test_kinds__expire_no_row_before_its_last_partner_and_for_good(name, points, seed):
    case = make_case(name, 60, seed, points)
    kind, rows = keyed(case, case.rows)
    removed = kind.expire_of(rows)[:, None] < rows.key[None, :]
    assert (removed[:, :-1] <= removed[:, 1:]).all()  # condition 4.2: whom v removes, all later rows remove
    u, v = (axis.ravel() for axis in np.triu_indices(rows.n, 1))
    met = ~np.isnan(kind.meet(rows, u, v)) & (rows.ids[u] != rows.ids[v])
    if name == "planned":  # met in one part only
        met &= rows.key[u] == rows.key[v]
    expires = kind.expire_of(rows)
    assert (rows.key[v[met]] <= expires[u[met]]).all()  # condition 4.1, also for equal keys
    assert (rows.key <= expires).all()  # a row has not expired when it comes
    stays = rows.key[v] <= expires[u]
    found = [
        tuple(sorted(pair)) for pair in zip(rows.ids[u[met & stays]], rows.ids[v[met & stays]], strict=True)
    ]
    joins = case.joins if name != "band of two limits" else progressive.band(1.0, 0.2)  # by key, not by table
    if name != "band of two limits":
        assert sorted(found) == sorted(progressive.pairs(joins, case.rows, None))


def test_similarity__with_codes_of_points_meets_nothing():
    # table 4.1 of the dissertation, last row, to the letter: codes of points are no prefixes of one another
    points, _ = twin.awkward_points("uniform", 60, 2, 3)
    kind = Similarity(0.1, cuts="regular", k=1).fit(points, 60)
    assert isinstance(kind, PointsInCells)
    space, rule = kind.codes.space, kind.codes.rule
    of_points = encode(points, space._replace(eps=1e-300, levels=40), rule).codes
    of_cubes = encode(points, space, rule)
    pairs = twin.brute_force(points, 0.1)
    assert len(pairs) > 30

    def meet(x: int, y: int, codes: np.ndarray, row: np.ndarray) -> bool:
        return any(is_prefix(a, b) or is_prefix(b, a) for a in codes[row == x] for b in codes[row == y])

    assert not any(meet(x, y, of_points, np.arange(60)) for x, y in pairs)
    assert all(meet(x, y, of_cubes.codes, of_cubes.row) for x, y in pairs)


def test_driver__knows_no_kind_of_join():
    names = {
        name
        for name, value in {**vars(columns), "Similarity": Similarity}.items()
        if isinstance(value, type) and issubclass(value, JoinCondition) and value is not JoinKind
    }
    assert names == {"Equi", "Band", "Temporal", "Spatial", "Similarity"}
    assert names == {type(make_case(name, 2, 0).kind).__name__ for name in KINDS}, "all are in the tests"
    folder = Path(driver.__file__).parent
    for file in folder.rglob("*.py"):
        if file.name not in ("columns.py", "similarity.py", "points.py"):
            code = re.sub(r"^ *(>>>|\.\.\.) .*$", "", file.read_text(), flags=re.MULTILINE)  # no examples
            found = re.findall(rf"\b({'|'.join(names)})\b", code, re.IGNORECASE)
            assert not found, file.name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Band(-1.0), "eps must be a finite number of at least 0, not -1.0"),
        (lambda: Temporal("right"), "closed must be 'both' or 'left'"),
        (
            lambda: Temporal("left").check("left", [[1.0, 1.0]]),
            "left: an interval must end after its beginning; row 0",
        ),
        (lambda: Temporal().check("left", [[1.0, np.nan]]), "row 0 is"),
        (lambda: Spatial().check("right", [[0.0, 0.0, 1.0]]), "right must have a lower and an upper corner"),
        (lambda: Spatial().check("right", [[0.0, 2.0, 1.0, 1.0]]), "row 0 has a lower corner above"),
        (lambda: Equi().check("left", ["a"]), "left must be numbers, not <U1"),
        (lambda: Equi().check("left", [[1, 2]]), r"left must have the shape \(n, 1\), not \(1, 2\)"),
        (
            lambda: Equi().check("left", np.ones(1, np.longdouble)),
            "left must be numbers of at most 64 bits, not",
        ),
        (
            lambda: Temporal().check("right", np.ones((1, 2), np.longdouble)),
            "right must be numbers of at most 64",
        ),
        (lambda: Equi().lowered(1.0), "Equi has no eps"),
        (lambda: Band(1.0).lowered(2.0), "eps can only be lowered"),
        (lambda: Band(1.0, 2.0).check_one_table(), "Band has one eps"),
        (lambda: Similarity(1.0).lowered(0.0), "eps must be a number above 0"),
        (lambda: Similarity([1.0, 2.0]).lowered(0.5), "eps cannot be lowered"),
        (lambda: Similarity(-1.0), "eps must be a finite number above 0"),
    ],
)
def test_kinds__refuse(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.filterwarnings("error")
def test_band__of_numbers_whose_difference_is_no_float_warns_of_nothing():
    kind = Band(1e308)
    left, right = kind.check("left", [1.7e308]), kind.check("right", [-1.7e308])
    assert kind.expire(left, np.array([False])).tolist() == [np.inf]
    assert np.isnan(kind.joins(left, right)).tolist() == [True]


def test_temporal__takes_days_and_their_hours_as_times():
    days = np.array([["2024-01-01", "2024-01-02"]], "M8[D]")
    hours = np.array([["2024-01-02T00", "2024-01-02T05"]], "M8[h]")
    kind = Temporal()
    assert kind.joins(kind.check("left", days), kind.check("right", hours)).tolist() == [True]
    with pytest.raises(ArgumentError, match="more than 292 years from 1970"):
        kind.check("left", np.array([["1500-01-01", "1500-01-02"]], "M8[D]"))
